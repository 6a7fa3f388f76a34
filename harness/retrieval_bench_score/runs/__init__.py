"""Runs of other programs: their files, in every format, and what these rank."""
