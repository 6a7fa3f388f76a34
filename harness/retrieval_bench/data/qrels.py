"""Judgements as TREC text (4 columns), BEIR table (3, with a header) or JSON, or as ratings.

TREC: ``query iteration document grade``, separated by blanks or tabs; the iteration is ignored.
A line with exactly three tabs is split on them, so that its ids may hold blanks; one that begins
with ``#`` is not read. BEIR: tabs, after a header line with ``query-id<TAB>corpus-id<TAB>score``;
columns beside these are not read. JSON: ``{query: {document: grade}}`` or ``{query: [document,
...]}``, in one object or in one a line. Which it is, the first line tells.
Ratings are those of :mod:`.data.ratings`: CSV of Quepid, whose queries are known by their texts,
and the body of ``_rank_eval``; a query without a rating is not judged.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.core.types import Qrels
from retrieval_bench.data import ratings
from retrieval_bench.data.faults import Faults, FileFaults, Place, reporting, shown
from retrieval_bench.data.files.lines import (
    STANDARD_INPUT,
    first_line,
    json_file,
    json_lines,
    lines,
    parse_json,
)
from retrieval_bench.data.files.mistaken import other_separator
from retrieval_bench.data.files.shards import Location
from retrieval_bench.data.settings import JudgementColumns
from retrieval_bench.data.source import Judgement, Located, Stream, file_stream, take_grade, take_id

BEIR_HEADER = ["query-id", "corpus-id", "score"]

COMMENT = "#"
"""Begins a line of TREC text that is not read."""

UNASKED = "judgements of queries that are not among the queries"
"""What judgements are called whose query the dataset does not have."""

TRUTH_KEYS = ("docids", "docid", "topk")
"""Where a line of the Korean competition's ground truth may have its list."""

_HEADER_SHOWN = "<TAB>".join(BEIR_HEADER)
_BEIR_LINE = f"3 columns separated by tabs: {_HEADER_SHOWN}"
_TREC_LINE = "4 columns: query, iteration, document, grade"
_JSON_VALUE = "{document: grade, ...} or [document, ...], either empty for an unanswerable query"
_BLANKS = " \t\v\f\r"


def read_qrels(path: Path | str) -> Qrels:
    """The judgements of a TREC, BEIR or JSON file, of Quepid or a body of ``_rank_eval``; gzipped
    when its name ends in ``.gz``.

    Query ids stand in the order of their first judgement, document ids in the order of the file.
    The documents of a JSON list have grade 1; an empty list or object is kept as an empty mapping:
    a query that no document answers.

    Raises:
        DataError: everything that is wrong in the file, line by line; a pair judged twice with two
            grades is wrong, with the same grade it counts once. A file without judgements is
            wrong, too.
    """
    path = user_path(path)
    with reporting("the file of judgements", path) as faults:
        report = faults.of(path)
        qrels: Qrels = {}
        if is_regular(path, faults):
            qrels = _json(path, faults) if _is_json(path) else collect(judgements(path), faults)[0]
        if not qrels and not report.count:
            accepted = f"{_TREC_LINE}; or {_BEIR_LINE}; or JSON: query: {_JSON_VALUE}"
            report.error(None, "no judgements", accepted)
    return qrels


def is_regular(path: Path, faults: Faults) -> bool:
    """False, and a fault, for what exists and is no file: it cannot be read from its start again,
    as a pipe, or not at all, as a folder."""
    if path == STANDARD_INPUT:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:  # whoever opens it tells what is wrong
        return True
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        faults.of(path).error(None, kind, "a file; - reads standard input")
    return stat.S_ISREG(mode)


def judgements(location: Location) -> Stream[Judgement]:
    """The judgements of a TREC or BEIR file, or of ratings, as a stream."""
    return file_stream(location, _read)


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


def by_query(
    path: Path,
    faults: Faults,
    *,
    one_object: bool,
    list_keys: tuple[str, ...],
    name: str = "query",
) -> Iterator[tuple[Place, str, Any]]:
    """Places, query ids and what a JSON file has for them, each query once.

    Args:
        one_object: True = the file is one object ``{query: value}``; False = JSON lines of such
            objects or of ``{"eval_id": query, key: value}``.
        list_keys: what ``key`` may be; other keys are ignored.
        name: what messages call a query.
    """
    report = faults.of(path)
    first: dict[str, Place] = {}
    pairs = _object(path, faults, name) if one_object else _lines(path, faults, name, list_keys)
    for place, given, value in pairs:
        query_id = take_id({name: given}, name, place, report)
        if query_id is not None and not report.repeats(name, query_id, place, first, "each once"):
            yield place, query_id, value


def is_one_object(path: Path) -> bool:
    """False when a JSON file has its objects line by line."""
    start = first_line(path)
    if '"eval_id"' in start:
        return start.lstrip().startswith("[")
    filled = (text for _, text in lines(path, Faults()) if text and not text.isspace())
    if len(list(islice(filled, 2))) < 2:
        return True
    try:
        return not isinstance(parse_json(start), dict)
    except ValueError:
        return True


def _object(path: Path, faults: Faults, name: str) -> Iterator[tuple[Place, Any, Any]]:
    report = faults.of(path)
    whole = json_file(path, faults)
    if isinstance(whole, dict):
        yield from ((f"{name} {shown(key)}", key, value) for key, value in whole.items())
    elif not report.count:
        report.error(None, f"{shown(whole)}", f"one JSON object with {name} ids as keys")


def _lines(
    path: Path, faults: Faults, name: str, list_keys: tuple[str, ...]
) -> Iterator[tuple[Place, Any, Any]]:
    report = faults.of(path)
    for number, record in json_lines(path, faults):
        key = next((key for key in list_keys if key in record), None)
        if key is None and "eval_id" not in record:
            yield from ((number, key, value) for key, value in record.items())
        elif key is None or "eval_id" not in record:
            accepted = f'{{"eval_id": ..., "{list_keys[0]}": [...]}} or {{{name}: ...}}'
            report.error(number, f"{shown(record)}", accepted)
        else:
            yield number, record["eval_id"], record[key]


def _json(path: Path, faults: Faults) -> dict[str, dict[str, int]]:
    report = faults.of(path)
    qrels: dict[str, dict[str, int]] = {}
    for place, query_id, value in by_query(
        path, faults, one_object=is_one_object(path), list_keys=TRUTH_KEYS
    ):
        if not isinstance(value, dict | list):
            report.error(place, f"the value is {shown(value)}", _JSON_VALUE)
            continue
        pairs: Iterable[tuple[Any, Any]] = (
            value.items() if isinstance(value, dict) else ((document, 1) for document in value)
        )
        qrels[query_id] = grades = {}
        for document, given in pairs:
            doc_id = take_id({"document": document}, "document", place, report)
            label = f"grade of {shown(document)}"
            grade = take_grade({label: given}, label, place, report)
            if doc_id is not None and grade is not None:
                grades[doc_id] = grade
    return qrels


def _is_json(path: Path) -> bool:
    return first_line(path).lstrip().startswith(("{", "[")) and not ratings.is_rank_eval(path)


def _rank_eval(path: Path, faults: Faults) -> Located[Judgement]:
    indexes: dict[str, str] = {}
    for place, request in ratings.requests(path, faults)[1]:
        yield from ratings.rank_eval(place, request, faults.of(path), indexes)[1]


def _quepid(path: Path, faults: Faults) -> Located[Judgement]:
    rows = ratings.quepid(path, JudgementColumns(), faults)
    return ((row.place, row.judgement) for row in rows if row.judgement is not None)


def _read(path: Path, faults: Faults) -> Located[Judgement]:
    if ratings.is_quepid(path):
        return _quepid(path, faults)
    if ratings.is_rank_eval(path):
        return _rank_eval(path, faults)
    start = first_line(path, comment=COMMENT)
    if (other := other_separator(start, "\t", len(BEIR_HEADER))) and len(start.split()) == 1:
        fault = f"columns separated by {other} in {shown(start)}"
        faults.of(path).error(None, fault, f"{_TREC_LINE}; or {_BEIR_LINE}")
        return iter(())
    if start.split() == list(BEIR_HEADER) and "\t" not in start:
        faults.of(path).error(None, f"columns separated by blanks in {shown(start)}", _BEIR_LINE)
        return iter(())
    cells = [cell.strip() for cell in start.split("\t")]
    is_beir = len(cells) == len(BEIR_HEADER) or set(BEIR_HEADER) <= set(cells)
    return _beir(path, faults) if is_beir else _trec(path, faults)


def _beir(path: Path, faults: Faults) -> Located[Judgement]:
    report = faults.of(path)
    header: list[str] | None = None
    for number, text in lines(path, faults):
        if not text.strip():
            continue
        cells = text.split("\t")
        if header is None:
            header = [cell.strip() for cell in cells]
            if set(BEIR_HEADER) <= set(header) and len(set(header)) == len(header):
                continue
            report.error(number, f"header is {shown(text)}", _HEADER_SHOWN)
            header = BEIR_HEADER
            if not cells[-1].strip().isdecimal():
                continue
        names = header
        if len(cells) == len(header):  # columns beside these are not read
            cells, names = [cells[header.index(name)] for name in BEIR_HEADER], BEIR_HEADER
        judgement = _judgement(cells, number, report, _beir_line(header), names)
        if judgement is not None:
            yield number, judgement


def _beir_line(header: Sequence[str]) -> str:
    return f"{len(header)} columns separated by tabs: {'<TAB>'.join(header)}"


def _trec(path: Path, faults: Faults) -> Located[Judgement]:
    report = faults.of(path)
    names = ["query", "iteration", "document", "grade"]
    for number, text in lines(path, faults):
        if not text.strip():
            continue
        if text.startswith(COMMENT):
            report.warn("comment lines, not read", number)
            continue
        if text.count("\t") == len(names) - 1:
            cells = [cell.strip(_BLANKS) for cell in text.split("\t")]
        else:  # ASCII blanks only, as TREC tools split: others are part of an id
            cells = [cell.decode() for cell in text.encode().split()]
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
    record = dict(zip(names, [*cells[:-1], cells[-1].strip()], strict=True))
    query_id = take_id(record, names[0], number, report)
    doc_id = take_id(record, names[-2], number, report)
    grade = take_grade(record, names[-1], number, report)
    if query_id is None or doc_id is None or grade is None:
        return None
    return Judgement(query_id, doc_id, grade)
