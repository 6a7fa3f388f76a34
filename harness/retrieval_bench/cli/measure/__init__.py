"""Commands that measure: ``bench``, ``compare``, ``load``."""
