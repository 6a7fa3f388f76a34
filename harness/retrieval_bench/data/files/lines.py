"""Text files as numbered lines, JSON values and table rows; plain or packed (:mod:`.files.packed`).

Everything is UTF-8; a byte order mark, Windows line ends and blank lines are tolerated. Whatever
cannot be read is reported with its line, and reading goes on with the next line.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NoReturn

from retrieval_bench.data.faults import Faults, shown
from retrieval_bench.data.files import packed
from retrieval_bench.data.files.mistaken import mistaken, mistaken_file
from retrieval_bench.data.files.packed import ENDINGS, UNREADABLE, unpacked_name

_BOM = "\ufeff"
_LONGEST_FIELD = 2**31 - 1
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

STANDARD_INPUT = Path("-")
"""Named in place of a file; what stands there is kept, since files are read more than once."""

Stamp = tuple[int, int] | None
"""Size and modification time of a file; None when there is no such file."""


def stamp(path: Path) -> Stamp:
    """Return the size and time of a file, which change when it is written."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def existing(folder: Path, *names: str) -> str | None:
    """The first of ``names``, each also tried packed, that is a file in ``folder``."""
    candidates = (f"{name}{end}" for name in names for end in ("", *ENDINGS))
    return next((name for name in candidates if (folder / name).is_file()), None)


def kind_of(path: Path) -> str:
    """The suffix that tells the format, as if it were not packed: ``.jsonl`` of ``x.jsonl.gz``."""
    return Path(unpacked_name(path.name.lower())).suffix


def lines(path: Path, faults: Faults) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines without their ends, blank lines included."""
    report = faults.of(path)
    number = 0
    try:
        with opened(path) as stream:
            for raw in stream:
                number += 1
                if number == 1 and (other := mistaken(raw)):
                    report.error(None, *other)
                    return
                try:
                    text = raw.decode("utf-8")
                except UnicodeDecodeError as problem:
                    report.error(number, _broken(raw, problem), "UTF-8 text")
                    continue
                yield number, (text.removeprefix(_BOM) if number == 1 else text).rstrip("\r\n")
    except UNREADABLE as problem:
        report.error(number or None, *_unreadable(path, problem))


def first_line(path: Path, *, comment: str = "\n") -> str:
    """The first line that is not blank and does not begin with ``comment``, without its end,
    undecodable bytes replaced; empty when there is none."""
    try:
        with opened(path) as stream:
            for raw in stream:
                text = raw.decode("utf-8", "replace").removeprefix(_BOM).rstrip("\r\n")
                if text and not text.isspace() and not text.startswith(comment):
                    return text
    except UNREADABLE:
        pass
    return ""


def head(path: Path, size: int) -> bytes:
    """The first ``size`` bytes of the content, fewer or none when it cannot be read."""
    try:
        with opened(path) as stream:
            return stream.read(size)
    except UNREADABLE:
        return b""


def json_lines(path: Path, faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and objects of a file of JSON lines."""
    report = faults.of(path)
    for number, text in lines(path, faults):
        if not text or text.isspace():
            continue
        try:
            value = parse_json(text)
        except ValueError as problem:
            fault = f"no JSON: {_json_problem(problem)}, in {shown(text)}"
            report.error(number, fault, "one JSON object a line")
            continue
        if not isinstance(value, dict):
            report.error(number, f"{shown(value)}", "one JSON object a line")
            continue
        yield number, value


def json_file(path: Path, faults: Faults) -> Any:
    """The JSON value that a whole file holds, None after a fault."""
    report = faults.of(path)
    try:
        with opened(path) as stream:
            raw = stream.read()
    except UNREADABLE as problem:
        report.error(None, *_unreadable(path, problem))
        return None
    if other := mistaken(raw):
        report.error(None, *other)
        return None
    try:
        text = raw.decode("utf-8").removeprefix(_BOM)
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        report.error(line, _broken(raw, problem), "UTF-8 text")
        return None
    try:
        return parse_json(text)
    except json.JSONDecodeError as problem:
        report.error(problem.lineno, f"no JSON: {_json_problem(problem)}", "one JSON value")
    except ValueError as problem:
        report.error(None, f"no JSON: {_json_problem(problem)}", "one JSON value")
    return None


def parse_json(text: str) -> Any:
    """A JSON value; stricter than :func:`json.loads`.

    Raises:
        ValueError: no JSON, a key given twice in one object (of which the library silently keeps
            the last), NaN or infinity, nesting without end, or half of a surrogate pair, which is
            no text and could not be written again.
    """
    try:
        value = _DECODER.decode(text)
        if "\\u" in text and _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair (\\ud800 to \\udfff)") from None
    return value


def table(path: Path, faults: Faults) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells of the rows of a table, the header first.

    ``.csv``: commas, or semicolons where the first line has some and no comma, as spreadsheets
    write it in many countries; cells in double quotes may hold them and line breaks (RFC 4180).
    Everything else: tabs, quotes have no meaning, so that a cell holds neither tab nor line break.
    """
    if kind_of(path) == ".csv":
        yield from _csv(path, faults)
        return
    for number, text in lines(path, faults):
        if text and not text.isspace():
            yield number, text.split("\t")


def _csv(path: Path, faults: Faults) -> Iterator[tuple[int, list[str]]]:
    # The library's limit of 128 KiB for a cell is one setting for the whole process.
    csv.field_size_limit(_LONGEST_FIELD)
    taken: list[int] = []

    def feed() -> Iterator[str]:
        for number, text in lines(path, faults):
            taken.append(number)
            yield text + "\n"

    head = first_line(path)
    sign = ";" if ";" in head and "," not in head else ","
    reader = csv.reader(feed(), strict=True, delimiter=sign)
    while True:
        taken.clear()
        try:
            row = next(reader, None)
        except csv.Error as problem:
            accepted = 'cells in "...", a quote inside doubled'
            faults.of(path).error(taken[0] if taken else None, f"no CSV: {problem}", accepted)
            continue
        if row is None:
            return
        if row:
            yield taken[0], row


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, or of standard input, unpacked."""
    if path == STANDARD_INPUT:
        return packed.unpacked(_all_of(sys.stdin), "standard input")
    return packed.opened(path)


@lru_cache(1)
def _all_of(stream: IO[str] | None) -> bytes:
    """All that ``stream`` holds, read once."""
    return b"" if stream is None else stream.buffer.read()  # type: ignore[attr-defined]


def _unreadable(path: Path, problem: Exception) -> tuple[str, str]:
    """Say what is wrong, and what is accepted."""
    if isinstance(problem, FileNotFoundError):
        return "no such file", ""
    if says := packed.damaged(path, problem):
        return mistaken_file(path) or (says, "")
    reason = problem.strerror if isinstance(problem, OSError) else None
    return f"cannot be read: {reason or problem}", ""


def _broken(raw: bytes, problem: UnicodeDecodeError) -> str:
    around = raw[max(0, problem.start - 15) : problem.start + 15]
    column = problem.start - (raw.rfind(b"\n", 0, problem.start) + 1)
    return f"byte 0x{raw[problem.start]:02x} after {column:,} bytes is no UTF-8, near {around!r}"


def _json_problem(problem: ValueError) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg} (column {problem.colno:,})"
    return str(problem)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {shown(key)} given twice in one object")
            seen.add(key)
    return mapping


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)
