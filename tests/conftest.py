"""What holds for all tests."""

from hypothesis import settings

# An example's time is the machine's, which may be three times slower tomorrow; what hangs, pytest-timeout ends.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
