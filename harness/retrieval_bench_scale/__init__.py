"""Corpora too large to search whole: approximate search, and work cut into pieces."""
