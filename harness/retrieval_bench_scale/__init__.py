"""Corpora too large to search whole or to index twice: approximate search, work in pieces."""
