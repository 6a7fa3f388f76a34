"""The commands ``baseline``, ``regress`` and ``data history``."""
