"""The report as a reader gets it, from records made by hand."""

from __future__ import annotations

import report_records as made
from golden_files import check_golden
from page_text import Page

import agenteval
from agenteval.report.markdown import report_markdown
from agenteval.report.page import report_html


def test_the_page() -> None:
    text = Page(report_html(made.report())).text
    check_golden("report/page.txt", text.replace(f"agenteval {agenteval.__version__}", "agenteval VERSION"))


def test_the_markdown() -> None:
    check_golden("report/comment.md", f"{report_markdown(made.report())}\n")
