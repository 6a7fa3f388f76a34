"""Runs scored under several conventions, and why the order of the systems is not the same."""

from retrieval_bench.scoring.audit.result import Audit, Cause, Cell, Row, Rule, Turn, Weight
from retrieval_bench.scoring.audit.search import EQUAL, audit

__all__ = ["EQUAL", "Audit", "Cause", "Cell", "Row", "Rule", "Turn", "Weight", "audit"]
