"""Names of metrics that other tools use and that are not read here: which of ours is meant.

They are offered, not read, since their authors do not all mean the same: ``hits`` of ranx is a
count, that of others a rate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FORM = re.compile(
    r"(?:(?:cosine|dot|euclidean|manhattan|max|main)_)?"  # sentence-transformers has one of each
    r"(?P<name>[a-z][a-z_\s-]*?)"
    r"(?:[\s_.:@-]*(?:at[\s_.:@-]*)?(?P<cut>\d+))?"
    r"(?:-l(?P<rel>\d))?"
)
_TOP = re.compile(r"top[\s_-]?(?:k[\s_-]accuracy[\s_.:@-]*)?(?P<cut>\d+)(?:[\s_-]accuracy)?")

_OURS: Mapping[str, str] = {
    **dict.fromkeys(
        ("accuracy", "acc", "hits", "hit", "hit_rate", "hitrate", "hit_ratio", "hr", "success"),
        "Success",
    ),
    **dict.fromkeys(("ap", "map", "mean_average_precision", "average_precision"), "AP"),
    **dict.fromkeys(("rr", "mrr", "recip_rank", "mean_reciprocal_rank", "reciprocal_rank"), "RR"),
    **dict.fromkeys(("ndcg", "dcg", "ndcg_cut", "normalized_discounted_cumulative_gain"), "nDCG"),
    **dict.fromkeys(("p", "precision", "prec"), "P"),
    **dict.fromkeys(("r", "recall", "rec"), "R"),
    **dict.fromkeys(("r_cap", "rcap", "recall_cap", "capped_recall"), "P(relative=True)"),
    **dict.fromkeys(("r_precision", "rprecision", "precision_at_r"), "Rprec"),
    **dict.fromkeys(("f", "f1", "f_measure", "f1_score"), "F1"),
    **dict.fromkeys(("expected_reciprocal_rank", "err"), "ERR"),
    "rank_biased_precision": "RBP(p=0.8)",
}
"""In small letters, with ``_`` between words."""

_NEEDS_CUT = ("Success", "P", "R", "F1", "P(relative=True)")


def meant(text: str) -> str:
    """Our name for what ``text`` asks for; empty where nobody can tell."""
    small = text.strip().lower()
    top = _TOP.fullmatch(small)
    match = _FORM.fullmatch(small)
    if top is not None:
        return f"Success@{top['cut']}"
    name = "" if match is None else re.sub(r"[\s_-]+", "_", match["name"]).strip("_")
    ours = _OURS.get(name)
    if match is None or ours is None:
        return ""
    needs_cut = ours in _NEEDS_CUT
    if match["rel"]:
        ours = _at_level(ours, int(match["rel"]))
    cut = match["cut"] or ("10" if needs_cut else "")
    return f"{ours}@{cut}" if cut and not ours.startswith("Rprec") else ours


def _at_level(ours: str, level: int) -> str:
    """``ours`` where only grades from ``level`` on count, which ranx writes ``-l2``."""
    if ours == "nDCG":  # it has gains in place of a level
        return f"nDCG(gains={{{','.join(f'{grade}:0' for grade in range(1, level))}}})"
    name, _, others = ours.rstrip(")").partition("(")
    return f"{name}({', '.join(filter(None, (f'rel={level}', others)))})"
