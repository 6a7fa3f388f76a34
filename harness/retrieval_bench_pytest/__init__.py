"""Retrieval in a test of pytest: not worse than its baseline, and at least so good."""
