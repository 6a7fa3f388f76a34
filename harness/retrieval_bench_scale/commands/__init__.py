"""The commands ``data index``, ``data encode`` and ``data cache``, and ``bench --sweep``."""
