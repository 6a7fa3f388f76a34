"""``compare --until-decided``."""
