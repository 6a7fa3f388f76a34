"""Formats of datasets of other tools, a module each."""
