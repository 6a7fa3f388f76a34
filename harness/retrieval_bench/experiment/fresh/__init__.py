"""Measuring in fresh processes, seen from the parent."""
