"""``bench --protocol tutorial``."""
