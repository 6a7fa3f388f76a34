"""Cold starts: what the first answer of a fresh process costs."""
