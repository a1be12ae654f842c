"""Task files of other benchmarks -> a suite, and a report of all that could not be kept.

Knows other formats and the task language's words; how a suite is validated is `spec`'s business, and runs are none of
its own.
"""

from agenteval.interchange.imports import FORMATS, import_suite
from agenteval.interchange.report import ImportReport, Unmapped

__all__ = ["FORMATS", "ImportReport", "Unmapped", "import_suite"]
