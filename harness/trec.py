"""TREC run text: read from any tool, written so that every TREC tool keeps our order.

A line is ``query Q0 document rank score tag``. Tools of the field order a run by score, in single
precision, and break ties by id in their own way; rank and line order mean nothing to them. So
:func:`write_run` makes scores strictly fall in single precision, also after printing.
"""

from __future__ import annotations

import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from harness.errors import DataError
from harness.types import Hit, Ranking

_COLUMNS = "six columns: query Q0 document rank score tag"
_BOM = b"\xef\xbb\xbf"
_MOST_FAULTS = 20
_UNWRITABLE = re.compile(r"[\t\n\r\ud800-\udfff]")
_SIGN_BIT = np.int64(0x80000000)
_HIGHEST = np.int64(0x7F7FFFFF)
"""Position of the largest finite float32 among all of them, counted from zero."""


def read_run(path: str | Path) -> dict[str, list[Hit]]:
    """The rankings of a run file: query id -> hits, both in the order of the file.

    Nothing is sorted: a tool that orders by score does so itself. The columns ``Q0``, rank and tag
    are not looked at. A line with exactly five tabs is split on tabs, so that ids may hold blanks,
    any other on white space. A BOM, CRLF and blank lines are tolerated; ``.gz`` is unpacked.

    Raises:
        DataError: unreadable file, wrong number of columns, a score that is no finite number, text
            that is not UTF-8, a document twice in one query; the faults with file and line.
    """
    path = Path(path)
    run: dict[str, dict[str, float]] = {}
    faults: list[str] = []
    n_faults = 0
    for number, line in _lines(path):
        columns = line.split(b"\t") if line.count(b"\t") == 5 else line.split()
        fault = _take(columns, run)
        if fault:
            n_faults += 1
            if n_faults <= _MOST_FAULTS:
                faults.append(f"{path}:{number}: {fault}")
    if n_faults > len(faults):
        faults.append(f"and {n_faults - len(faults)} more")
    if faults:
        raise DataError(
            f"a run with {n_faults} unusable line{'s' if n_faults > 1 else ''}",
            where=str(path),
            accepted=f"{_COLUMNS}; finite scores; each document once per query",
            fix="correct the lines below, or write the run again",
            faults=faults,
        )
    return {query: [Hit(*hit) for hit in hits.items()] for query, hits in run.items()}


def write_run(
    target: str | Path | TextIO,
    rankings: Mapping[str, Ranking | Sequence[tuple[str, float]]],
    tag: str,
) -> None:
    """Write ``rankings`` (query id -> best first) as a TREC run; the order of both is kept.

    Scores are rounded to single precision and, where they would tie or rise, lowered to the next
    number below the one before. A ranking without scores gets 1/rank. Values outside of single
    precision become its largest. When an id holds a blank, the whole file is written with tabs;
    :func:`read_run` reads both. Blanks in ``tag`` become ``_``. A path ending in ``.gz`` is packed,
    with the same bytes each time. Queries without hits leave no line.

    Raises:
        DataError: an id that is empty, or holds a tab, a line break or a lone surrogate; a score
            that is not finite.
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


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers from 1, without a BOM."""
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.removeprefix(_BOM) if number == 1 else line
    except (OSError, EOFError, zlib.error) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise DataError(
            f"cannot read the run: {reason}",
            where=str(path),
            accepted=f"a text file (or .gz) of {_COLUMNS}",
            fix="check the path",
        ) from None


def _open(path: Path) -> io.BufferedIOBase:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _take(columns: list[bytes], run: dict[str, dict[str, float]]) -> str | None:
    """Put one line into ``run``, or say what is wrong with it."""
    if len(columns) != 6:
        return f"{len(columns)} columns"
    try:
        query, document = columns[0].decode(), columns[2].decode()
    except UnicodeDecodeError as problem:
        return f"not UTF-8 ({problem.reason})"
    try:
        score = float(columns[4])
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        return f"score {columns[4].decode(errors='replace')!r} is no finite number"
    if not query or not document:
        return "an empty id"
    hits = run.setdefault(query, {})
    if document in hits:
        return f"document {document!r} a second time for query {query!r}"
    hits[document] = score
    return None


def _run_lines(
    rankings: Mapping[str, Ranking | Sequence[tuple[str, float]]], tag: str
) -> Iterator[str]:
    table = [(query, *_columns(query, ranking)) for query, ranking in rankings.items()]
    ids = [i for query, doc_ids, _ in table for i in (query, *doc_ids)]
    for id_ in ids:
        if not id_ or _UNWRITABLE.search(id_):
            raise DataError(
                f"id {id_!r} cannot stand in a TREC run",
                accepted="ids of at least one character that UTF-8 can hold, without tabs and "
                "line breaks",
                fix="rename it in the dataset",
            )
    # ASCII white space, as TREC tools split; other blanks of Unicode are part of an id for them.
    blank = "\t" if any(c in id_ for id_ in ids for c in " \v\f") else " "
    label = "_".join(tag.split()) or "run"
    for query, doc_ids, scores in table:
        head = f"{query}{blank}Q0{blank}"
        tail = f"{blank}{label}\n"
        digits = map(str, scores)  # the fewest that lead back to this float32
        for rank, (doc_id, score) in enumerate(zip(doc_ids, digits, strict=True), start=1):
            yield f"{head}{doc_id}{blank}{rank}{blank}{score}{tail}"


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
