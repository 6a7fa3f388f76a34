"""``bench --cold``."""
