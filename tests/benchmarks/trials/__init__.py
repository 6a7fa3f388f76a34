"""Trials of the skill: four small repositories, what was made in them by it, and the judge."""
