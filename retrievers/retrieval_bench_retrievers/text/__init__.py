"""The way from text to terms, in any script."""
