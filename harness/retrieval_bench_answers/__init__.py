"""Answers to questions: readers, submissions, labels."""
