"""The commands ``duet`` and ``lab selftest``, and ``doctor --selftest``."""
