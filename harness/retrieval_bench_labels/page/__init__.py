"""The page on which people judge, as a server gives it and as one file: see ``document``."""
