"""What needs judgements says so of a dataset that has none, in one voice."""

from __future__ import annotations

from collections.abc import Mapping

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Dataset

TO_JUDGE = "retrieval-bench label pool @last"
"""What makes judgements of what the last run, or the last comparison, found."""


_NAMED = 3
"""So many judges are named."""


def judged_by(judges: Mapping[str, str]) -> str:
    """Such as "judged by anna and gpt-5 (model)"; nothing where nobody is known.

    Args:
        judges: as of :class:`~retrieval_bench.core.types.Dataset`.
    """
    if not judges:
        return ""
    told = [who if kind == "person" else f"{who} ({kind})" for who, kind in judges.items()]
    shown = told[:_NAMED] + [f"{len(told) - _NAMED} more"] * (len(told) > _NAMED)
    *first, last = shown
    return f"judged by {', '.join(first)} and {last}" if first else f"judged by {last}"


def require_judged(dataset: Dataset, what: str, *, instead: str = "") -> None:
    """Refuse ``what``, which needs judgements, for a dataset without any.

    Args:
        what: one thing, such as "tuning".
        instead: what can be done without them, in a phrase.

    Raises:
        DataError: nothing is judged in ``dataset``.
    """
    if not dataset.judged:
        raise unjudged(dataset.name, dataset.split, what, instead=instead)


def unjudged(name: str, split: str, what: str, *, instead: str = "") -> DataError:
    """The error of :func:`require_judged`, for whoever has a run and not its dataset."""
    fix = f"judge some: measure with bench or compare, then {TO_JUDGE}"
    return DataError(
        f"nothing is judged in {name!r}, and {what} rests on judgements",
        where=f"dataset {name!r}, split {split!r}",
        accepted="a dataset of which some queries are judged",
        fix=f"{fix}; {instead}" if instead else fix,
    )
