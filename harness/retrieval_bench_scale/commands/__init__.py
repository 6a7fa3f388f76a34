"""The command ``data encode``, and ``bench --sweep``."""
