"""``compare --judged-by`` and ``label judge``."""
