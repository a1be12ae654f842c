"""A report of some runs: values read from the store, and the page and the comment that show them."""

from agenteval.report.page.render import report_html
from agenteval.report.page.values import Report, make_report

__all__ = ["Report", "make_report", "report_html"]
