"""Judgements in the two formats of the field: TREC (4 columns) and BEIR (3, with a header).

TREC: ``query iteration document grade``, separated by blanks or tabs; the iteration is ignored.
A line with exactly three tabs is split on them, so that its ids may hold blanks. BEIR: tabs, after
the header line ``query-id<TAB>corpus-id<TAB>score``. Which it is, the first line tells.
"""

from __future__ import annotations

from pathlib import Path

from harness.data.faults import Faults, FileFaults, Place, reporting, shown
from harness.data.files import first_line, lines
from harness.data.source import (
    Judgement,
    Located,
    Stream,
    file_stream,
    take_grade,
    take_id,
)
from harness.types import Qrels

BEIR_HEADER = ["query-id", "corpus-id", "score"]

_HEADER_SHOWN = "<TAB>".join(BEIR_HEADER)
_BEIR_LINE = f"3 columns separated by tabs: {_HEADER_SHOWN}"
_TREC_LINE = "4 columns: query, iteration, document, grade"


def read_qrels(path: Path | str) -> Qrels:
    """The judgements of a TREC or BEIR file, gzipped when its name ends in ``.gz``.

    Query ids stand in the order of their first judgement, document ids in the order of the file.

    Raises:
        DataError: everything that is wrong in the file, line by line; a pair judged twice with two
            grades is wrong, with the same grade it counts once. A file without judgements is
            wrong, too.
    """
    path = Path(path).expanduser()
    with reporting("the file of judgements", path) as faults:
        qrels, places = collect(judgements(path), faults)
        report = faults.of(path)
        if not places and not report.count:
            report.error(None, "no judgements", f"{_TREC_LINE}; or {_BEIR_LINE}")
    return qrels


def judgements(path: Path) -> Stream[Judgement]:
    """The judgements of a TREC or BEIR file as a stream."""
    return file_stream(path, _read)


def collect(
    stream: Stream[Judgement], faults: Faults
) -> tuple[dict[str, dict[str, int]], dict[tuple[str, str], Place]]:
    """Judgements by query and document, and the place of each; repetitions are reported."""
    report = faults.of(stream.label)
    qrels: dict[str, dict[str, int]] = {}
    places: dict[tuple[str, str], Place] = {}
    for place, (query_id, doc_id, grade) in stream.read(faults):
        grades = qrels.setdefault(query_id, {})
        pair = (query_id, doc_id)
        if doc_id not in grades:
            grades[doc_id] = grade
            places[pair] = place
        elif grades[doc_id] == grade:
            report.warn("judgements given twice", place, f"{shown(query_id)} {shown(doc_id)}")
        else:
            report.error(
                place,
                f"query {shown(query_id)}, document {shown(doc_id)} has grade {grade} here and "
                f"{grades[doc_id]} at {report.at(places[pair])}",
                "one grade for a pair",
            )
    return qrels, places


def _read(path: Path, faults: Faults) -> Located[Judgement]:
    is_beir = len(first_line(path).split("\t")) == len(BEIR_HEADER)
    return _beir(path, faults) if is_beir else _trec(path, faults)


def _beir(path: Path, faults: Faults) -> Located[Judgement]:
    report = faults.of(path)
    header_seen = False
    for number, text in lines(path, faults):
        if not text.strip():
            continue
        cells = text.split("\t")
        if not header_seen:
            header_seen = True
            if [cell.strip() for cell in cells] == BEIR_HEADER:
                continue
            report.error(number, f"header is {shown(text)}", _HEADER_SHOWN)
            if not cells[-1].strip().isdecimal():
                continue
        judgement = _judgement(cells, number, report, _BEIR_LINE, BEIR_HEADER)
        if judgement is not None:
            yield number, judgement


def _trec(path: Path, faults: Faults) -> Located[Judgement]:
    report = faults.of(path)
    names = ["query", "iteration", "document", "grade"]
    for number, text in lines(path, faults):
        if not text.strip():
            continue
        by_tabs = text.count("\t") == len(names) - 1
        cells = [cell.strip() for cell in text.split("\t")] if by_tabs else text.split()
        judgement = _judgement(cells, number, report, f"{_TREC_LINE}; or {_BEIR_LINE}", names)
        if judgement is not None:
            yield number, judgement


def _judgement(
    cells: list[str], number: int, report: FileFaults, accepted: str, names: list[str]
) -> Judgement | None:
    if len(cells) != len(names):
        plural = "" if len(cells) == 1 else "s"
        report.error(number, f"{len(cells)} column{plural} in {shown(' '.join(cells))}", accepted)
        return None
    record = dict(zip(names, cells, strict=True))
    query_id = take_id(record, names[0], number, report)
    doc_id = take_id(record, names[-2], number, report)
    grade = take_grade(record, names[-1], number, report)
    if query_id is None or doc_id is None or grade is None:
        return None
    return Judgement(query_id, doc_id, grade)
