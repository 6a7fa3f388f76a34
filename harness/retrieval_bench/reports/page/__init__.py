"""The report as one HTML file that loads nothing: see :func:`report_page`."""
