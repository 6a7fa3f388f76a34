"""Formats of questions whose answers are spans of documents, a module each."""
