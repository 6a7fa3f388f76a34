"""Formats of data: streams of documents, queries and judgements, with their places in files.

A format module turns files into a :class:`Source`; :mod:`.data.build` checks the source
and makes the dataset. The helpers here take fields out of one record and report what is wrong. A
corpus stays in its file: each walk reads it again, nothing of it is held in between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.filters import Filter, FilterError, parse_filter
from retrieval_bench.core.types import EMPTY, Dataset, Document, Query
from retrieval_bench.data.faults import Faults, FileFaults, Place, shown
from retrieval_bench.data.files.lines import Stamp, existing, stamp
from retrieval_bench.data.files.literals import literal
from retrieval_bench.data.files.packed import unpacked_name
from retrieval_bench.data.files.shards import Location, Shards
from retrieval_bench.data.settings import Columns, Names, SplitFiles

Item = TypeVar("Item")

Located = Iterator[tuple[Place, Item]]

NULL = object()
"""A key that is there and holds null."""

_CONTROL = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
_GRADE = re.compile(r"([+-]?[0-9]{1,9})(\.0+)?")

_ID_ACCEPTED = "text or a whole number, not blank, without tabs and line breaks"


class Judgement(NamedTuple):
    """One line of the judgements: how relevant a document is to a query."""

    query_id: str
    doc_id: str
    grade: int


@dataclass(frozen=True, slots=True)
class Stream(Generic[Item]):
    """Items with their places, read anew on each walk.

    Attributes:
        label: the file as messages name it, or a word for what lies in memory.
        read: a walk; it reports to the faults given and skips what is faulty.
        paths: the files behind it, absolute; none for what lies in memory.
    """

    label: str
    read: Callable[[Faults], Located[Item]]
    paths: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The three parts of a dataset before they are checked.

    Attributes:
        documents: None for a dataset that serves external retrievers only.
        judgements: None where there are none yet, as for a competition in progress.
    """

    documents: Stream[Document] | None
    queries: Stream[Query]
    judgements: Stream[Judgement] | None


@dataclass(frozen=True, slots=True)
class Found:
    """File names that a format recognised in a folder; a split may have no judgements yet, and may
    have documents and queries of its own."""

    documents: Names = None
    queries: Names = None
    splits: Mapping[str, Names | SplitFiles] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Files:
    """Files of the parts of one split; None for a part that there is not. Only a format that says
    so (:attr:`DataFormat.sharded`) is given a part in several files."""

    documents: Location | None
    queries: Location | None
    judgements: Location | None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A dataset as the files of a format.

    Attributes:
        files: path in the folder -> its lines, without their ends; made while they are written.
        described: keys of the ``dataset.yaml`` beside them.
        lost: what the format has no place for, a phrase each.
    """

    files: Mapping[str, Iterable[str]]
    described: Mapping[str, Any]
    lost: Sequence[str] = ()


def file_stream(location: Location, read: Callable[[Path, Faults], Located[Item]]) -> Stream[Item]:
    """A stream that reads a file on each walk, or several ones, one after the other."""
    if isinstance(location, Path):
        return Stream(str(location), partial(read, location), (location,))
    return Stream(location.label, partial(_chained, location, read), location.paths)


def _chained(
    shards: Shards, read: Callable[[Path, Faults], Located[Item]], faults: Faults
) -> Located[Item]:
    """The items of all files, whose places say which one it is."""
    for path in shards.paths:
        name = FileFaults(shards.name(path), faults)
        for place, item in read(path, faults):
            yield name.at(place), item


def held_stream(label: str, items: list[tuple[Place, Item]]) -> Stream[Item]:
    """A stream over items that were read already."""
    return Stream(label, lambda _: iter(items))


def found_splits(folder: Path, fits: Callable[[Path], bool], *documents: str) -> Found | None:
    """Every file of ``folder`` that ``fits``, by its name without endings, and the first of
    ``documents`` that is there; None where no file fits."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and fits(path)]
    splits: dict[str, Names | SplitFiles] = {}
    for path in files:
        splits.setdefault(Path(unpacked_name(path.name)).stem, path.name)
    return Found(existing(folder, *documents), splits=splits) if splits else None


def part(location: Location | None) -> Location:
    """Return where a part lies that the layout guarantees."""
    if location is None:
        raise TypeError("a file that the format needs was not resolved")
    return location


def whole(location: Location | None) -> Path:
    """The one file of a part that the layout guarantees, for a format that takes no more."""
    path = part(location)
    if not isinstance(path, Path):
        raise TypeError("several files for a format that reads one")
    return path


def stamps(stream: Stream[Item]) -> tuple[Stamp, ...]:
    """Return the size and time of each file of ``stream``, which change when it is written."""
    return tuple(map(stamp, stream.paths))


def take_id(record: Mapping[str, Any], key: str, place: Place, report: FileFaults) -> str | None:
    """The id under ``key``, JSON numbers as text; None after a fault."""
    if key not in record:
        report.error(place, _missing(key, record))
        return None
    value = record[key]
    if not isinstance(value, bool) and isinstance(value, Integral):
        return str(value)
    if not isinstance(value, str) or not value.strip() or _CONTROL.search(value):
        report.error(place, f"{key} is {shown(value)}", _ID_ACCEPTED)
        return None
    return value


def take_text(record: Mapping[str, Any], key: str, place: Place, report: FileFaults) -> str | None:
    """The text under ``key``, which may be empty, as null is; None after a fault."""
    if key not in record:
        report.error(place, _missing(key, record))
        return None
    value = record[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        report.error(place, f"{key} is {shown(value)}", "text")
        return None
    return value


def take_title(
    record: Mapping[str, Any], key: str | None, place: Place, report: FileFaults
) -> str | None:
    """The title under ``key``, empty where there is none; None after a fault."""
    if key is None or record.get(key) is None:
        return ""
    return take_text(record, key, place, report)


def take_grade(record: Mapping[str, Any], key: str, place: Place, report: FileFaults) -> int | None:
    """The grade under ``key``; None after a fault."""
    if key not in record:
        report.error(place, _missing(key, record))
        return None
    value = record[key]
    number = not isinstance(value, bool) and isinstance(value, Integral | float)
    text = str(value) if number else value
    grade = _GRADE.fullmatch(text.strip()) if isinstance(text, str) else None
    if grade is None:
        report.error(place, f"{key} is {shown(value)}", "a whole number such as 0, 1, 2")
        return None
    return int(grade[1])


def objects(value: Any, name: str, report: FileFaults) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects in the list ``value``, which stands at ``name``, each with its place."""
    if not isinstance(value, list):
        report.error(name, f"{shown(value)}", "a list of objects")
        return
    for position, item in enumerate(value):
        place = f"{name}[{position}]"
        if isinstance(item, dict):
            yield place, item
        else:
            report.error(place, f"{shown(item)}", "an object")


def looked_up(record: Any, name: str) -> Any:
    """Look up ``name``, of which dots lead into objects and lists, also into those that a text
    holds as JSON or as Python prints them.

    A key that has dots itself wins. None where nothing is there, :data:`NULL` for null.

    Raises:
        LiteralError: a text on the way would be read as something else than it holds.
    """
    if isinstance(record, str) and record.lstrip().startswith(("{", "[")):
        record = literal(record)
    if isinstance(record, list):
        record = {str(at): value for at, value in enumerate(record)}
    if not isinstance(record, Mapping):
        return None
    if name in record:
        return NULL if record[name] is None else record[name]
    pieces = name.split(".")
    heads = (".".join(pieces[:at]) for at in range(1, len(pieces)))
    deeper = (looked_up(record[head], name[len(head) + 1 :]) for head in heads if head in record)
    return next((value for value in deeper if value is not None), None)


def rest(record: Mapping[str, Any], used: frozenset[str]) -> dict[str, Any]:
    """Metadata of a record: every key that is not ``used``, and what an object under ``metadata``
    holds, which wins where both have a key."""
    extra = {key: value for key, value in record.items() if key not in used}
    own = extra.get("metadata")
    if own is None or isinstance(own, Mapping):
        extra.pop("metadata", None)
    return {**extra, **own} if isinstance(own, Mapping) else extra


_FILTER_ACCEPTED = (
    '{"field": value}; where the key is no filter, name another one in dataset.yaml '
    "(columns: {queries: {filter: NAME}})"
)


def take_filter(given: Any, place: Place, report: FileFaults) -> Filter | None:
    """The filter of a record, None where it is none; in a cell it is written as JSON."""
    try:
        return parse_filter(json.loads(given) if isinstance(given, str) else given)
    except FilterError as problem:
        report.error(place, f"filter: {problem}", _FILTER_ACCEPTED)
    except ValueError:
        report.error(place, f"filter: {shown(given)} is no JSON", _FILTER_ACCEPTED)
    return None


def _missing(key: str, record: Mapping[str, Any]) -> str:
    keys = ", ".join(shown(name) for name in list(record)[:8]) or "none"
    return f"no {key!r}; found: {keys}"


@dataclass(frozen=True, slots=True)
class FileCorpus:
    """Documents of files that were found without faults, in their order.

    Walks may overlap. A walk raises :class:`.DataError` when a file is no longer
    the one that was checked (size or modification time), at its start or at its end.

    Attributes:
        fingerprint: of all documents, found while they were checked.
    """

    stream: Stream[Document]
    count: int
    checked: tuple[Stamp, ...]
    fingerprint: str

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Document]:
        self._require_unchanged()
        for _, document in self.stream.read(Faults()):
            yield document
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        if not self.checked or stamps(self.stream) != self.checked:
            raise changed(self.stream.label)


def changed(label: str) -> DataError:
    """The error for a file that was written to while it was in use."""
    return DataError(
        "the corpus file was changed or removed after it was checked",
        where=label,
        accepted="files that stay as they are while a dataset is in use",
        fix="load the dataset again",
    )


def _no_usual_names(_folder: Path) -> None:
    return None


@dataclass(frozen=True, slots=True)
class DataFormat:
    """One format. One of your own is named as ``format: module:name`` in a ``dataset.yaml``.

    Attributes:
        layout: its files, in one phrase.
        needs: parts that every split must have, of "documents", "queries", "judgements".
        open_source: called as ``open_source(files, columns, faults)``; gives three streams, of
            which nothing need be read yet. What is wrong with the files is reported to ``faults``,
            never raised, so that all of it comes at once.
        find: the files of a folder by their usual names, None where it is none of this format; a
            format without usual names leaves it out.
        columns: groups of :class:`.Columns` that the user may name for it.
        write: the way out, called as ``write(dataset, settings, faults)`` with all of ``settings``;
            what the format cannot hold is reported to ``faults``. None where there is none.
        settings: what the user may set for ``write``, with the defaults.
        unjudged: whether ``write`` takes a dataset without judgements.
        read_only: why there is no ``write``, a clause.
        sharded: parts that may lie in several files: ``open_source`` hands them to the readers of
            :mod:`.data.parts` or to :func:`file_stream` as they are.
    """

    layout: str
    needs: tuple[str, ...]
    open_source: Callable[[Files, Columns, Faults], Source]
    find: Callable[[Path], Found | None] = _no_usual_names
    columns: Collection[str] = ()
    write: Callable[[Dataset, Mapping[str, Any], Faults], Outgoing] | None = None
    settings: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    unjudged: bool = False
    read_only: str = ""
    sharded: Collection[str] = ()
