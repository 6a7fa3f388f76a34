"""Tuning without self-deception: parameters chosen on some queries, reported on others."""
