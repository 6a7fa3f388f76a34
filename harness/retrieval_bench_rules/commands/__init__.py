"""``bench --no-forbidden`` and ``compare --no-forbidden``."""
