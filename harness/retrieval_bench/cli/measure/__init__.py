"""Commands that measure: ``bench``, ``compare``."""
