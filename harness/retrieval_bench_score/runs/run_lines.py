"""Lines of run files: TREC run text of any tool, and tables of hits.

A line of TREC is ``query Q0 document rank score tag``. BEIR's table of results,
``query-id<TAB>corpus-id<TAB>score``, is read by the same code, and the runs of MS MARCO and
ColBERT, ``query<TAB>document<TAB>rank`` with or without a score behind it. A rank is never taken
for a score: :func:`looks_ranked` tells where the one stands for the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.data.faults import Faults, FileFaults, shown
from retrieval_bench.data.files.lines import lines, opened
from retrieval_bench.data.files.packed import UNREADABLE

TREC_COLUMNS = ("query", "Q0", "document", "rank", "score", "tag")
BEIR_COLUMNS = ("query-id", "corpus-id", "score")
MARCO_COLUMNS = ("query", "document", "rank")
COLBERT_COLUMNS = (*MARCO_COLUMNS, "score")

_AT = {
    TREC_COLUMNS: (0, 2, 4),
    BEIR_COLUMNS: (0, 1, 2),
    MARCO_COLUMNS: (0, 1, 2),
    COLBERT_COLUMNS: (0, 1, 2),
}
"""Where query, document and score stand, or in place of a score the rank."""
_ACCEPTED = {
    TREC_COLUMNS: f"six columns: {' '.join(TREC_COLUMNS)}",
    BEIR_COLUMNS: f"three columns separated by tabs: {'<TAB>'.join(BEIR_COLUMNS)}",
    MARCO_COLUMNS: f"three columns separated by tabs: {'<TAB>'.join(MARCO_COLUMNS)}",
    COLBERT_COLUMNS: f"four columns separated by tabs: {'<TAB>'.join(COLBERT_COLUMNS)}",
}
LOOKS_RANKED = (
    "the scores of each query are the numbers from 1 on and its lines do not fall with them: they "
    "look like ranks, by which the last would be the best"
)
SCORES_NOT_RANKS = (
    f"scores of which the highest is the best; ranks as a table {'<TAB>'.join(MARCO_COLUMNS)}; or "
    "scores that happen to be so, with the best line of each query first"
)
_HEADERS = f"{'<TAB>'.join(BEIR_COLUMNS)}, or a table {'<TAB>'.join(MARCO_COLUMNS)}"
_WHOLE = re.compile(r"\d+(\.0*)?")
_MIXED = re.compile(r"\s*\S+\s+Q0\s+\S+\s+\S+\s+\S+\s+\S+\s*")
"""A line of TREC, separated by tabs as well as by blanks."""
_BLANKS = b" \t\n\r\v\f"
_COMMENT = re.compile(rb"^[ \t]*#", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"
_BATCH = 1 << 20
"""Bytes read at once."""


class Block(NamedTuple):
    """Lines of one query that stand near each other.

    Attributes:
        doc_ids: in the order of the file, repetitions included.
        scores: float64, finite, one for each document.
        lines: line numbers from 1, one for each document.
    """

    query_id: str
    doc_ids: list[str]
    scores: NDArray[np.float64]
    lines: NDArray[np.intp]


def run_blocks(path: Path, faults: Faults, columns: tuple[str, ...] = TREC_COLUMNS) -> list[Block]:
    """The lines of a run file by query, each query in the order of the file, in several blocks
    where it is long or scattered; queries come in the order of their first line.

    TREC lines with exactly five tabs are split on them, so that ids may hold blanks inside, any
    other on ASCII white space; ``Q0``, rank and tag are not looked at. Lines of the other tables
    are split on tabs, and the first one is the header, which those with ranks may lack. A BOM, CRLF
    and blank lines are tolerated; a TREC line that begins with ``#`` is not read. Lines that cannot
    be used are reported to ``faults`` and left out.

    Args:
        path: a regular file; one with faults is read twice.
        columns: one of the constants of this module, as :func:`columns_of` tells them.
    """
    # Reading in large pieces is several times faster, but cannot say where a fault is.
    blocks = _clean_blocks(path, columns)
    return _told_blocks(path, faults, columns) if blocks is None else blocks


def columns_of(start: str) -> tuple[str, ...]:
    """The columns that a file has whose first line is ``start``."""
    cells = [cell.strip().lower() for cell in start.split("\t", len(COLBERT_COLUMNS))]
    if len(cells) not in (len(MARCO_COLUMNS), len(COLBERT_COLUMNS)) or _MIXED.fullmatch(start):
        return TREC_COLUMNS
    ranked = cells[2] == "rank" or bool(_WHOLE.fullmatch(cells[2]))
    if len(cells) == len(COLBERT_COLUMNS):
        return COLBERT_COLUMNS if ranked else TREC_COLUMNS
    return MARCO_COLUMNS if ranked else BEIR_COLUMNS


def looks_ranked(scores: Iterable[Sequence[float] | NDArray[np.float64]]) -> bool:
    """Return whether scores are ranks: those of every query are the numbers from 1 (or 0) on, each
    once, and not in every query best first.

    Args:
        scores: of each query, in the order of its lines.
    """
    rising = False
    for values in map(np.asarray, scores):
        if not _from_one_on(values):
            return False
        rising = rising or bool((values[1:] > values[:-1]).any())
    return rising


def check_ranks(blocks: Mapping[str, NDArray[np.float64]], report: FileFaults, header: str) -> None:
    """Report ranks that are none: without a header that says so, numbers may be anything.

    Args:
        blocks: query id -> what stands in the column of ranks.
        header: the first line of the file.
    """
    named = "rank" in header.lower().split("\t")[2]
    for query_id, values in blocks.items():
        fits = _from_one_on(values)
        if named:
            fits = bool((values == np.floor(values)).all() and (values >= 0).all())
            fits = fits and len(set(values.tolist())) == len(values)
        if not fits:
            given = ", ".join(f"{value:g}" for value in values[:4])
            report.error(
                f"query {shown(query_id)}",
                f"the third column is {given}{', ...' if len(values) > 4 else ''}: no ranks",
                f"ranks from 1 on, each once; or scores, below a header "
                f"{'<TAB>'.join(BEIR_COLUMNS)}",
            )


def _from_one_on(values: NDArray[np.float64]) -> bool:
    lowest, highest = (values.min(), values.max()) if len(values) else (1, 0)
    if lowest not in (0, 1) or highest - lowest != len(values) - 1:
        return False
    return len(set(values.tolist())) == len(values) and bool((values == np.floor(values)).all())


def _clean_blocks(path: Path, columns: tuple[str, ...]) -> list[Block] | None:
    """The blocks of a file without any fault, None for every other file."""
    blocks: list[Block] = []
    n_lines = 0
    header = columns is not TREC_COLUMNS
    try:
        with opened(path) as file:
            while batch := file.read(_BATCH):
                batch += file.readline()
                if n_lines == 0:
                    batch = batch.removeprefix(_BOM)
                if not batch.endswith(b"\n"):
                    batch += b"\n"
                if b"#" in batch and not header and _COMMENT.search(batch):
                    return None
                cells, numbers = _table(batch, columns)
                if header and len(numbers):
                    header = False
                    if _is_header(cells[: len(columns)], columns):
                        cells, numbers = cells[len(columns) :], numbers[1:]
                    elif columns is BEIR_COLUMNS:
                        return None
                blocks += _blocks(cells, numbers + n_lines, columns)
                n_lines += batch.count(b"\n")
    except (*UNREADABLE, ValueError):
        return None
    return blocks


def _table(batch: bytes, columns: tuple[str, ...]) -> tuple[list[bytes], NDArray[np.intp]]:
    """Cells of all lines that are not blank, one after the other, and the numbers of these lines.

    Raises:
        ValueError: a line has another number of columns.
    """
    n_columns = len(columns)
    tabs = batch.count(b"\t")
    # Where tabs are the only blanks, or there are none, white space separates the same cells.
    plain = columns is TREC_COLUMNS if not tabs else _has_only_tabs(batch)
    if plain:
        cells = batch.split()
        counts = _count_words(batch)
    else:
        rows = [_cells(line, columns) for line in batch.split(b"\n")]
        cells = [cell for row in rows for cell in row]
        counts = np.array([len(row) for row in rows])
    numbers = np.flatnonzero(counts) + 1
    if (counts[numbers - 1] != n_columns).any():
        raise ValueError("a line with another number of columns")
    if plain and columns is not TREC_COLUMNS and tabs != (n_columns - 1) * len(numbers):
        raise ValueError("an empty cell")
    return cells, numbers


def _has_only_tabs(batch: bytes) -> bool:
    lone = batch.count(b"\r") != batch.count(b"\r\n")
    return not (lone or any(blank in batch for blank in (b" ", b"\v", b"\f")))


def _count_words(batch: bytes) -> NDArray[np.intp]:
    """Return how many words each line has, where ``batch`` ends with a line feed."""
    codes = np.frombuffer(batch, dtype=np.uint8)
    blank = (codes == ord(" ")) | (codes - np.uint8(ord("\t")) < len("\t\n\v\f\r"))
    ends = np.flatnonzero(blank[1:] & ~blank[:-1]) + 1
    before = np.searchsorted(ends, np.flatnonzero(codes == ord("\n")), side="right")
    return np.diff(before, prepend=0)


def _blocks(
    cells: list[bytes], numbers: NDArray[np.intp], columns: tuple[str, ...]
) -> Iterator[Block]:
    """Blocks of faultless rows, one for each query.

    Raises:
        ValueError: some cell is not what it should be.
    """
    queries, documents, values = (cells[at :: len(columns)] for at in _AT[columns])
    if not values:
        return
    scores = np.fromiter(map(float, values), np.float64, len(values))
    if b"_" in b"".join(values) or not np.isfinite(scores).all():
        raise ValueError("a score that is no finite number")
    doc_ids = b"\n".join(documents).decode().split("\n")
    positions = {query: at for at, query in enumerate(dict.fromkeys(queries))}
    if not all(map(bytes.strip, documents)) or not all(map(bytes.strip, positions)):
        raise ValueError("an empty id")
    query_at = np.fromiter(map(positions.__getitem__, queries), np.intp, len(queries))
    if (query_at[1:] < query_at[:-1]).any():
        order = np.argsort(query_at, kind="stable")
        doc_ids = [doc_ids[at] for at in order.tolist()]
        scores, numbers = scores[order], numbers[order]
    ends = np.cumsum(np.bincount(query_at)).tolist()
    for query, start, end in zip(positions, [0, *ends], ends, strict=False):
        yield Block(query.decode(), doc_ids[start:end], scores[start:end], numbers[start:end])


def _told_blocks(path: Path, faults: Faults, columns: tuple[str, ...]) -> list[Block]:
    """The same line by line: whatever cannot be used is reported with its line."""
    report = faults.of(path)
    rows: list[bytes] = []
    numbers: list[int] = []
    header = columns is not TREC_COLUMNS
    for number, text in lines(path, faults):
        cells = _cells(text.encode(), columns)
        if not cells:
            continue
        if columns is TREC_COLUMNS and text.lstrip().startswith("#"):
            report.warn("comment lines, not read", number)
            continue
        if header:
            header = False
            if _is_header(cells, columns):
                continue
            if columns is BEIR_COLUMNS:
                report.error(number, f"header is {shown(text)}", _HEADERS)
                continue
        if _is_usable(cells, columns, text, number, report):
            rows += cells
            numbers.append(number)
    return list(_blocks(rows, np.array(numbers, dtype=np.intp), columns))


def _is_header(cells: list[bytes], columns: tuple[str, ...]) -> bool:
    words = [cell.strip().decode(errors="replace") for cell in cells]
    if columns is BEIR_COLUMNS:
        return words == list(BEIR_COLUMNS)
    return words[2].lower() == "rank"


def _cells(line: bytes, columns: tuple[str, ...]) -> list[bytes]:
    """The cells of a line, none of a blank one; one more than there are columns stands for all
    that are too many, so that a line of megabytes is no list of megabytes."""
    n_columns = len(columns)
    if not line.strip(_BLANKS):
        return []
    if columns is not TREC_COLUMNS:
        return line.rstrip(b"\r\n").split(b"\t", n_columns)
    if line.count(b"\t") == n_columns - 1:
        return [cell.strip(_BLANKS) for cell in line.split(b"\t")]
    return line.split(None, n_columns)


def _is_usable(
    cells: list[bytes], columns: tuple[str, ...], text: str, number: int, report: FileFaults
) -> bool:
    """True for a row without fault; its faults are reported."""
    if len(cells) != len(columns):
        count = f"{len(cells)}" if len(cells) < len(columns) else f"more than {len(columns)}"
        plural = "" if len(cells) == 1 else "s"
        report.error(number, f"{count} column{plural} in {shown(text)}", _ACCEPTED[columns])
        return False
    query, document, value = (cells[at] for at in _AT[columns])
    try:
        score = math.nan if b"_" in value else float(value)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        name = "score" if "rank" not in columns or columns is TREC_COLUMNS else "rank"
        report.error(number, f"{name} is {shown(value.decode())}", "a finite number such as 1.5")
    if not query.strip() or not document.strip():
        report.error(number, f"an empty id in {shown(text)}", _ACCEPTED[columns])
        return False
    return math.isfinite(score)
