"""Calls into code that is not ours: how they fail, when they are repeated, what they use up."""
