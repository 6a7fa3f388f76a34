"""From text to terms, in any script."""
