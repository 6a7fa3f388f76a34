"""The commands ``data fetch``, ``data export`` and ``data load``."""
