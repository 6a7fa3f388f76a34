"""Ratings as search engines keep them: exports of Quepid, and requests of ``_rank_eval``.

Quepid (app/controllers/api/v1 of its repository, 2026): CSV with ``query,docid,rating`` from a
case, or ``query,docid`` and a column for each judge from a book. A query is known by its text. An
empty rating is none, and a row without a document names a query alone. A pair with several ratings
has the one that Quepid gives it when it makes ratings of a book: the mean of one or two, rounded,
or the lowest of the best three. A blank that stands before one of ``= + - @``, so that no
spreadsheet takes the cell for a formula, is taken off.

Elasticsearch and OpenSearch: the JSON body of ``_rank_eval``, with ``requests``, each with ``id``
and ``ratings`` of ``_index``, ``_id`` and ``rating``. A document is known by its ``_id``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from retrieval_bench.data.faults import Faults, FileFaults, Place, shown
from retrieval_bench.data.files.lines import head, json_file, kind_of, table
from retrieval_bench.data.files.rows import table_rows
from retrieval_bench.data.settings import JudgementColumns
from retrieval_bench.data.source import Judgement, objects, take_grade, take_id

FORMULA = ("=", "+", "-", "@")
"""What a cell of Quepid does not begin with: a blank stands in front."""

QUERY, DOCUMENT, RATING = "query", "docid", "rating"

_NUMBER = re.compile(r"[+-]?[0-9]{1,9}(\.[0-9]+)?")
_REQUESTS = re.compile(rb'(?<!\\\\)"requests"\s*:\s*\[\s*[{\]]')
_SNIFFED = 1 << 16


class Rated(NamedTuple):
    """A query of Quepid with a document and its grade, or alone."""

    place: Place
    query: str
    judgement: Judgement | None


def is_quepid(path: Path) -> bool:
    """Return whether the header is that of Quepid."""
    if kind_of(path) != ".csv":
        return False
    _, cells = next(table(path, Faults()), (0, []))
    return [cell.strip() for cell in cells[:2]] == [QUERY, DOCUMENT] and len(cells) > 2


def is_rank_eval(path: Path) -> bool:
    """Return whether the file begins as a body of ``_rank_eval`` does."""
    return kind_of(path) == ".json" and bool(_REQUESTS.search(head(path, _SNIFFED)))


def quepid(path: Path, columns: JudgementColumns, faults: Faults) -> Iterator[Rated]:
    """The rows of a table; ``columns`` name what is not called as usual, and one judge."""
    report = faults.of(path)
    named = columns.model_fields_set
    query = columns.query if "query" in named else QUERY
    document = columns.document if "document" in named else DOCUMENT
    judge = columns.grade if "grade" in named else None
    needed = [name for name in (query, document, judge) if name]
    for place, row in table_rows(path, needed, faults):
        judges = [judge] if judge else [name for name in row if name not in (query, document)]
        cells = {query: _bare(row[query]), document: _bare(row[document])}
        asked = take_id(cells, query, place, report)
        ratings = _ratings(row, judges, place, report)
        if asked is None or ratings is None:
            continue
        if not ratings:
            yield Rated(place, asked, None)
            continue
        doc_id = take_id(cells, document, place, report)
        grade = _combined(ratings, judges, place, report)
        if doc_id is not None and grade is not None:
            if len(set(ratings)) > 1:
                pair = f"{shown(asked)} {shown(doc_id)}"
                report.warn("pairs on which judges differ, rated as Quepid does", place, pair)
            yield Rated(place, asked, Judgement(asked, doc_id, grade))


def guarded(cell: str) -> str:
    """``cell`` with a blank in front where it would be taken for a formula."""
    return f" {cell}" if cell.lstrip(" ").startswith(FORMULA) else cell


def _bare(cell: str) -> str:
    return cell[1:] if cell.startswith(" ") and cell.lstrip(" ").startswith(FORMULA) else cell


def _ratings(
    row: dict[str, str], judges: list[str], place: Place, report: FileFaults
) -> list[float] | None:
    """The ratings of one row that are there; None after a fault."""
    given = {judge: row[judge].strip() for judge in judges if row[judge].strip()}
    wrong = {judge: cell for judge, cell in given.items() if not _NUMBER.fullmatch(cell)}
    for judge, cell in wrong.items():
        accepted = "a number such as 0, 1, 2; `columns: {judgements: {grade: NAME}}` takes one "
        report.error(place, f"{judge} is {shown(cell)}", f"{accepted}column only")
    return None if wrong else [float(cell) for cell in given.values()]


def _combined(
    ratings: list[float], judges: list[str], place: Place, report: FileFaults
) -> int | None:
    if len(ratings) == 2:  # Ruby rounds a half away from zero
        mean = sum(ratings) / 2
        return int(abs(mean) + 0.5) * (1 if mean >= 0 else -1)
    grade = sorted(ratings, reverse=True)[:3][-1]
    if not grade.is_integer():
        name = judges[0] if len(judges) == 1 else "a rating"
        report.error(place, f"{name} is {grade:g}", "a whole number such as 0, 1, 2")
        return None
    return int(grade)


def requests(path: Path, faults: Faults) -> tuple[dict[str, Any], Iterator[tuple[str, Any]]]:
    """The body and its requests, with their places; faults where it is none."""
    report = faults.of(path)
    whole = json_file(path, faults)
    listed = whole.get("requests") if isinstance(whole, dict) else None
    if not isinstance(listed, list):
        if not report.count:
            report.error(None, shown(whole), 'the body of _rank_eval: {"requests": [...]}')
        return {}, iter(())
    return whole, objects(listed, "requests", report)


def rank_eval(
    place: str, request: dict[str, Any], faults: FileFaults, indexes: dict[str, str]
) -> tuple[str | None, list[tuple[Place, Judgement]]]:
    """Id and judgements of one request, None for an id with a fault.

    Args:
        indexes: document -> the index where it was seen, filled here: one id in two indexes is a
            fault, since only the id is kept.
    """
    query_id = take_id(request, "id", place, faults)
    judgements: list[tuple[Place, Judgement]] = []
    for at, rated in objects(request.get("ratings", []), f"{place}.ratings", faults):
        doc_id = take_id(rated, "_id", at, faults)
        grade = take_grade(rated, "rating", at, faults)
        index = str(rated.get("_index", ""))
        if doc_id is None or grade is None or query_id is None:
            continue
        if indexes.setdefault(doc_id, index) != index:
            other = indexes[doc_id]
            report = f"document {shown(doc_id)} is in the index {shown(index)}, and in {other!r}"
            faults.error(at, report, "ids that differ in all indexes")
        judgements.append((at, Judgement(query_id, doc_id, grade)))
    return query_id, judgements
