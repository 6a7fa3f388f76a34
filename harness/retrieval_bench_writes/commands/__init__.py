"""``bench --writes``."""
