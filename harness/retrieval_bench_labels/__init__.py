"""Judgements made by people: what to judge, judging it, how far it carries, and the way out.

Modules: ``label`` (the records), ``pool`` (which documents), ``store`` (one SQLite file),
``queue`` (what comes next, for whom), ``grades`` (one grade of several people's), ``draws`` and
``deciding`` (labels until the decision), ``completeness``, and the ways in and out.
"""
