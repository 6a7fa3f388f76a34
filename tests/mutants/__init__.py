"""Faults that must never live: each is put into a copy of the project, and tests must see it.

`python -m tests.mutants` says of each by which tests it is caught. What only a frozen text sees
counts as not caught: who rewrites the text after a change rewrites the fault with it.
"""
