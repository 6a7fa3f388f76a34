"""The commands ``score run`` and ``score audit``."""
