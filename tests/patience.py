"""How long a test waits for what ends soon: longer than the slowest machine needs, shorter than for ever.

A bound of steps, sizes or counts is asserted as such; time only tells what ends from what hangs.
"""

from __future__ import annotations

import pytest

LONG_S = 60.0
does_not_hang = pytest.mark.timeout(LONG_S)
"""Fails a test that would go on for minutes or years."""
