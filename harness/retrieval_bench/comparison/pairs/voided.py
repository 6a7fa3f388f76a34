"""Claims on two systems that a warning of one of them makes void: that one is better, or faster."""

from __future__ import annotations

import numpy as np

from retrieval_bench.comparison.claims import SHARED, Claim, Void, gist, voiding
from retrieval_bench.core.figures import times_text
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.runs.run import Run


def void(claim: Claim, ahead: Run, behind: Run, names: tuple[str, str]) -> str:
    """Return why ``ahead`` cannot be said to be better than ``behind``, or faster; else nothing."""
    for run, other, name, what in (
        (ahead, behind, names[0], Void.PRAISE),
        (behind, ahead, names[1], Void.BLAME),
    ):
        own = run.summary.warnings
        if common := SHARED & _codes(other):
            own = [text for text in own if getattr(text, "code", None) not in common]
        if text := voiding(own, claim, what):
            return f"{name}: {gist(text)}"
    return ""


def first_calls(ahead: Run, behind: Run, names: tuple[str, str]) -> str:
    """Hold the first call of each query of two systems against each other, where answers are
    remembered after it; empty where these calls are not known."""
    if Code.REMEMBERED not in _codes(ahead) | _codes(behind):
        return ""
    firsts = [run.timings.first_ns for run in (ahead, behind)]
    if firsts[0].shape != firsts[1].shape or not firsts[0].size:
        return ""
    known = (firsts[0] > 0) & (firsts[1] > 0)
    if not known.any():
        return ""
    ratio = float(np.exp(np.median(np.log(firsts[0][known]) - np.log(firsts[1][known]))))
    return (
        f"by the first call of each query, {names[0]} takes {times_text(ratio)} as long as "
        f"{names[1]}"
    )


def small_only(*runs: Run) -> bool:
    """Return whether a warning of one of ``runs`` leaves only large differences in time."""
    return any(voiding(run.summary.warnings, Claim.SPEED, Void.SMALL) for run in runs)


def _codes(run: Run) -> set[Code]:
    return {text.code for text in run.summary.warnings if isinstance(text, Notice)}
