"""Commands that judge: ``label``, ``score``, ``reproduce``."""
