"""Commands that judge: ``score``."""
