"""Judges with a warranty: a model's labels carry a verdict as far as people's bear them out."""
