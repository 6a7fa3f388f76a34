"""The commands of ``label``."""
