"""TREC run text, written so that every TREC tool keeps our order.

A line is ``query Q0 document rank score tag``. Tools of the field order a run by score, in single
precision, and break ties by id in their own way; rank and line order mean nothing to them. So
:func:`write_run` makes scores strictly fall in single precision, also after printing.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Ranking

_UNWRITABLE = re.compile(r"[ \t\n\r\v\f\ud800-\udfff]")
"""ASCII white space, as TREC tools split; other blanks of Unicode are part of an id for them."""
_SIGN_BIT = np.int64(0x80000000)
_HIGHEST = np.int64(0x7F7FFFFF)
"""Position of the largest finite float32 among all of them, counted from zero."""


def write_run(
    target: str | Path | TextIO,
    rankings: Mapping[str, Ranking | Sequence[tuple[str, float]]],
    tag: str,
) -> None:
    """Write ``rankings`` (query id -> best first) as a TREC run; the order of both is kept.

    Scores are rounded to single precision and, where they would tie or rise, lowered to the next
    number below the one before. A ranking without scores gets 1/rank. Values outside of single
    precision become its largest. Blanks in ``tag`` become ``_``. A path ending in ``.gz`` is
    packed, with the same bytes each time. Queries without hits leave no line.

    Raises:
        DataError: an id that is empty, begins with #, as a comment does, or holds white space, at
            which readers split, or a lone surrogate; a score that is not finite.
    """
    if not isinstance(target, str | Path):
        target.writelines(_run_lines(rankings, tag))
    elif Path(target).suffix == ".gz":
        with (
            Path(target).open("wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
            io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
        ):
            text.writelines(_run_lines(rankings, tag))
    else:
        with Path(target).open("w", encoding="utf-8", newline="\n") as text:
            text.writelines(_run_lines(rankings, tag))


def _run_lines(
    rankings: Mapping[str, Ranking | Sequence[tuple[str, float]]], tag: str
) -> Iterator[str]:
    table = [(query, *_columns(query, ranking)) for query, ranking in rankings.items()]
    ids = [i for query, doc_ids, _ in table for i in (query, *doc_ids)]
    for id_ in ids:
        if not id_ or _UNWRITABLE.search(id_) or id_.startswith("#"):
            raise DataError(
                f"id {id_!r} cannot stand in a TREC run, which is split at white space",
                accepted="ids of at least one character that UTF-8 can hold, without white space, "
                "at which others split, and without # at their start, which begins a comment",
                fix="rename it in the dataset, if you need the file",
            )
    label = "_".join(tag.split()) or "run"
    for query, doc_ids, scores in table:
        head, tail = f"{query} Q0 ", f" {label}\n"
        digits = map(str, scores)  # the fewest that lead back to this float32
        for rank, (doc_id, score) in enumerate(zip(doc_ids, digits, strict=True), start=1):
            yield f"{head}{doc_id} {rank} {score}{tail}"


def _columns(
    query: str, ranking: Ranking | Sequence[tuple[str, float]]
) -> tuple[Sequence[str], NDArray[np.float32]]:
    scores: Any
    if isinstance(ranking, Ranking):
        doc_ids, scores = ranking.doc_ids, ranking.scores
    else:
        doc_ids, scores = [doc_id for doc_id, _ in ranking], [score for _, score in ranking]
    n = len(doc_ids)
    values = np.full(n, np.nan) if scores is None else np.asarray(scores, dtype=np.float64)
    if np.isnan(values).all():
        values = 1.0 / np.arange(1, n + 1)
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(
            f"score {values[at]} of document {doc_ids[at]!r}, query {query!r}",
            accepted="finite numbers, or no score at all",
            fix="leave documents without a score out of the ranking",
        )
    return doc_ids, _strictly_falling(values)


def _strictly_falling(scores: NDArray[np.float64]) -> NDArray[np.float32]:
    """``scores`` in single precision, each lowered as little as makes it less than the one before.

    Works on the positions of float32 numbers in their own order, where the next one below is one
    less: x[i] = min(s[i], x[i-1] - 1) is a running minimum of s[i] + i. At the low end of the
    range, where there is no room, the ones before are raised.
    """
    n = scores.shape[0]
    limit = float(np.finfo(np.float32).max)
    bits = np.clip(scores, -limit, limit).astype(np.float32).view(np.uint32).astype(np.int64)
    position = np.where(bits & _SIGN_BIT, -(bits & ~_SIGN_BIT), bits)
    step = np.arange(n)
    falling = np.minimum.accumulate(position + step) - step
    falling = np.maximum(falling, -_HIGHEST + step[::-1])
    lowered = np.where(falling < 0, -falling | _SIGN_BIT, falling).astype(np.uint32)
    return np.frombuffer(lowered.tobytes(), dtype=np.float32)
