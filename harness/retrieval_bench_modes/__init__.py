"""Runs that are judged otherwise: until each pair is decided, and where nothing is judged."""
