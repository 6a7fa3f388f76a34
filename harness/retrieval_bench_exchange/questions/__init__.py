"""Formats of questions with their answers and what these are answered by."""
