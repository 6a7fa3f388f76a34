"""Judging: in a browser, in a terminal, in a file for somebody else."""
