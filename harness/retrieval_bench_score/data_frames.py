"""The line that makes dictionaries of a data frame, for an error; loads no library of frames."""

from __future__ import annotations

from typing import Any

_QUERY = ("query_id", "qid", "query-id", "q_id", "topic", "query")
_DOCUMENT = ("doc_id", "docno", "docid", "corpus-id", "corpus_id", "document_id", "document", "doc")
_GRADE = ("relevance", "grade", "label", "rel", "judgement", "judgment", "score")
"""Names of columns, those first that others would be mistaken for: beside ``qid``, PyTerrier has
the text of the query under ``query``, and beside ``docno`` numbers of its own under ``docid``."""


def advice(given: Any, name: str, *, judgements: bool = False) -> str:
    """Advise what to do with a data frame of pandas or polars; empty for anything else.

    Args:
        given: one row for each document of each query.
        name: how the line calls it.
        judgements: its figures are grades; else scores, or ranks where it has no scores.
    """
    pandas, polars = hasattr(given, "iterrows"), hasattr(given, "iter_rows")
    if not (hasattr(given, "columns") and (pandas or polars)):
        return "call its .to_pandas() first" if hasattr(given, "to_pandas") else ""
    columns = {column.lower(): column for column in given.columns if isinstance(column, str)}
    query, document = _first(columns, _QUERY, "query"), _first(columns, _DOCUMENT, "doc")
    figure = _first(columns, _GRADE, "grade") if judgements else columns.get("score", "")
    frame, of = name, f'dict(zip(of["{document}"], of["{figure or "score"}"]))'
    twice = pandas and {query, document, figure} <= set(given.columns)
    twice = twice and bool(given.duplicated([query, document]).any())
    if not figure and "rank" in columns:
        figure, of = columns["rank"], f'list(of["{document}"])'
        frame += f'.sort_values("{figure}")' if pandas else f'.sort("{figure}")'
    elif twice:  # a dictionary would keep the last in silence
        frame += f'.sort_values("{figure}", ascending=False)'
        frame += f'.drop_duplicates(["{query}", "{document}"])'
    line = f'{{q: {of} for q, of in {frame}.groupby("{query}")}}'
    if polars:
        line = f'{{q: {of} for (q,), of in {frame}.group_by(["{query}"], maintain_order=True)}}'
    unknown = [item for item in (query, document, figure or "score") if item not in given.columns]
    if unknown:
        return f"give {line}, with your columns in the place of {' and '.join(map(repr, unknown))}"
    return f"give {line}"


def named(given: Any) -> str:
    """Name the kind of ``given``, with the names of its columns where it has such."""
    kind = type(given)
    columns = list(given.columns) if hasattr(given, "columns") else []
    has = f" with the columns {', '.join(map(str, columns[:8]))}" if columns else ""
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}{has}".replace("builtins.", "")


def _first(columns: dict[str, str], known: tuple[str, ...], otherwise: str) -> str:
    return next((columns[item] for item in known if item in columns), otherwise)
