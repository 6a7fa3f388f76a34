"""Rows of any file of records: JSON lines, a JSON list, CSV, TSV or parquet.

A table with a header line for ``.csv`` and ``.tsv``; parquet for ``.parquet``; JSON for ``.jsonl``,
``.ndjson`` and ``.json``, and for any other ending when the first line begins as JSON does: a list
of objects when that is ``[``, else an object a line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installed.installation import how_to_add
from retrieval_bench.data.faults import Faults, FileFaults, Place, shown
from retrieval_bench.data.files.lines import first_line, json_file, json_lines, kind_of, table
from retrieval_bench.data.files.mistaken import mistaken_file, other_separator

_TABLES = (".csv", ".tsv")
_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = ".parquet"
_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_BATCH = 1000
_NOT_JSON = re.compile("timestamp|date|time|duration|decimal")
"""Types of arrow, also within others, whose values JSON does not have."""


def rows(
    path: Path, needed: Iterable[str], faults: Faults
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Places and records; the columns ``needed`` must be in the header of a table.

    Raises:
        MissingDependencyError: a parquet file without the package pyarrow.
    """
    kind = kind_of(path)
    if kind in _TABLES:
        return table_rows(path, list(needed), faults)
    if kind == _PARQUET:
        return parquet_rows(path, list(needed), faults)
    start = first_line(path).lstrip()[:1]
    if start == "[":
        return _listed(path, faults)
    if kind in _JSON or start in ("{", ""):
        return iter(json_lines(path, faults))
    accepted = ", ".join((*_JSON, *_TABLES))
    faults.of(path).error(
        None, f"no format known for the ending {kind!r}", f"{accepted}, each also packed"
    )
    return iter(())


def first_keys(path: Path) -> Collection[str]:
    """The keys of the first record; none where there is none."""
    return next((row for _, row in rows(path, (), Faults())), {}).keys()


def in_cells(path: Path) -> bool:
    """Return whether all values of the file are text, as in a table."""
    return kind_of(path) in _TABLES


def table_rows(
    path: Path, needed: list[str], faults: Faults
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and cells by column of a CSV or TSV file."""
    report = faults.of(path)
    header: list[str] | None = None
    for number, cells in table(path, faults):
        if header is None:
            header = [cell.strip() for cell in cells]
            missing = [name for name in needed if name not in header]
            twice = sorted({name for name in header if header.count(name) > 1})
            other = ""
            if missing or twice:
                used = "," if kind_of(path) == ".csv" else "\t"
                fault = f"header is {shown(' '.join(header))}"
                if other := other_separator(used.join(cells), used, 2):
                    fault = f"a table of columns separated by {other}, whose {fault}"
                fault += f", without {', '.join(map(repr, missing))}" if missing else ""
                fault += f", with {', '.join(map(repr, twice))} twice" if twice else ""
                accepted = "columns " + ", ".join(needed)
                if other:
                    accepted += ", separated by tabs, or by commas in a file named .csv"
                elif missing == needed and used == "\t":
                    accepted += ", in a first line; `format: marco` reads tables without a header"
                report.error(number, fault, accepted)
                return
        elif len(cells) != len(header):
            plural = "" if len(cells) == 1 else "s"
            fault = f"{len(cells)} column{plural} in {shown(' '.join(cells))}"
            report.error(number, fault, f"{len(header)}, as in the header")
        else:
            yield number, dict(zip(header, cells, strict=True))


def parquet_rows(
    path: Path, needed: list[str], faults: Faults
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows with their numbers from 1; dates and times are texts of ISO 8601, decimals numbers, as
    JSON has them.

    Raises:
        MissingDependencyError: without the package pyarrow.
    """
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise MissingDependencyError(
            "parquet files need the package pyarrow, which is not installed",
            where=str(path),
            accepted="the same rows as JSON lines need no package",
            fix=f"{how_to_add('parquet')}, or pip install pyarrow",
        ) from None
    report = faults.of(path)
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if missing := [name for name in needed if name not in names]:
                columns = ", ".join(map(shown, names[:8])) or "none"
                missed = ", ".join(map(repr, missing))
                report.error(None, f"no column {missed}; found: {columns}", ", ".join(needed))
                return
            kinds = {field.name: str(field.type) for field in file.schema_arrow}
            foreign = [name for name, kind in kinds.items() if _NOT_JSON.search(kind)]
            for batch in file.iter_batches(_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", row | {name: _as_in_json(row[name]) for name in foreign}
    except (OSError, ValueError) as problem:  # pyarrow's own errors are both
        other = mistaken_file(path)
        report.error(None, *(other or (f"cannot be read as parquet: {problem}", "")))


def _as_in_json(value: Any) -> Any:
    """``value`` of a parquet file in types of JSON, within lists and structs, too."""
    if isinstance(value, date | time):  # a date with a time is a date, too
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"PT{value.total_seconds():.6f}".rstrip("0").rstrip(".") + "S"
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {key: _as_in_json(item) for key, item in value.items()}
    several = isinstance(value, list | tuple)  # a map is a list of pairs
    return [_as_in_json(item) for item in value] if several else value


def yes_or_no(value: str, name: str, place: Place, report: FileFaults) -> bool | None:
    """A cell that says yes or no; None where it is blank, and after a fault."""
    if not value.strip():
        return None
    known = _YES_NO.get(value.strip().lower())
    if known is None:
        report.error(place, f"{name} is {shown(value)}", "true or false")
    return known


def _listed(path: Path, faults: Faults) -> Iterator[tuple[str, dict[str, Any]]]:
    report = faults.of(path)
    for position, item in enumerate(json_file(path, faults) or ()):
        if isinstance(item, dict):
            yield f"[{position}]", item
        else:
            report.error(f"[{position}]", shown(item), "an object")
