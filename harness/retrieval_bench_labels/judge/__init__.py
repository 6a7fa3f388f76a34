"""Judging: in a browser, and in a file for somebody else."""
