"""The command ``explain``."""
