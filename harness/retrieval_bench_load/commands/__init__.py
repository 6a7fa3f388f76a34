"""The command ``load``, and what it adds to ``compare``, ``duet`` and ``regress``."""
