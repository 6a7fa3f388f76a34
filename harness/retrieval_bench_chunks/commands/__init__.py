"""``explain --spans``."""
