"""The command ``doctor``, and ``bench --probe``."""
