"""The report as one HTML file that loads nothing: see :func:`report_page`."""

from retrieval_bench.reports.page.html_page import report_page

__all__ = ["report_page"]
