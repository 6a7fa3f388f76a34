"""What needs judgements, or documents, says so of a dataset that has none, in one voice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrieval_bench.core.errors import DataError, counted
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset, Query

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


def require_queries(dataset: Dataset, queries: Sequence[Query]) -> None:
    """Refuse a split of which no query can be asked.

    Raises:
        DataError: ``queries``, those to be asked, are none.
    """
    if not queries:
        raise DataError(
            f"no query of {dataset.name!r} has a judgement in split {dataset.split!r}",
            accepted="at least one judged or unanswerable query",
            fix="; ".join(["choose another --split, or check the ids", *dataset.warnings]),
        )


def require_corpus(dataset: Dataset, retrievers: Mapping[str, Capabilities]) -> None:
    """Refuse a dataset without documents for retrievers that index some.

    Args:
        retrievers: by name.

    Raises:
        DataError: it has none, and one of them is not external.
    """
    needy = [name for name, can in retrievers.items() if not can.external]
    if dataset.documents is None and needy:
        raise DataError(
            f"dataset {dataset.name!r} has no corpus, and {', '.join(needy)} needs one to index",
            accepted="an external retriever (`external: true`), or a dataset with documents",
            fix="; ".join(
                [
                    "add the documents to the dataset folder, or declare the retriever external",
                    *dataset.warnings,
                ]
            ),
        )


CHOSEN = "the judged queries were chosen by how much systems differ on them"
"""Why no verdict rests on a dataset that says what its queries were drawn from."""


def require_all_judged(dataset: Dataset, what: str) -> None:
    """Refuse ``what``, a verdict on queries like these, for queries that were chosen.

    Args:
        what: one thing, such as "the quality gate".

    Raises:
        DataError: only some of the queries are judged, by how much systems differ on them.
    """
    if dataset.drawn_from is None:
        return
    raise DataError(
        f"{CHOSEN}: {what} would take them for all",
        where=f"dataset {dataset.name!r}: {len(dataset.evaluated):,} of "
        f"{counted(dataset.drawn_from, 'query')} are judged",
        accepted="a dataset on which judging was not ended early",
        fix="judge the rest (retrieval-bench label start) and export again; until then "
        "`retrieval-bench label status` has the verdict",
    )


def unjudged(name: str, split: str, what: str, *, instead: str = "") -> DataError:
    """The error of :func:`require_judged`, for whoever has a run and not its dataset."""
    fix = f"judge some: measure with bench or compare, then {TO_JUDGE}"
    return DataError(
        f"nothing is judged in {name!r}, and {what} rests on judgements",
        where=f"dataset {name!r}, split {split!r}",
        accepted="a dataset of which some queries are judged",
        fix=f"{fix}; {instead}" if instead else fix,
    )
