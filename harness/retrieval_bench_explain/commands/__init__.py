"""The command ``explain``, and ``compare --slices``."""
