"""Commands that notice a change: ``baseline``, ``regress``, ``duet``, ``history``, ``selftest``."""
