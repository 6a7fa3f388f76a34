"""The command ``tune``, and ``compare --fuse``."""
