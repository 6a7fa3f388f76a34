"""From words to a run: every part built and checked, measured here or in fresh processes."""
