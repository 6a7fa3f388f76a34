"""Freshness: when what was written is found, and what was deleted no longer."""
