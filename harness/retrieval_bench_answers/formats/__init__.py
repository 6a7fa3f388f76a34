"""Formats of datasets of shared tasks, a module each."""
