"""Judging where the file of labels is not: the page with its documents, and the answers back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.data.faults import FileFaults, reporting, shown
from retrieval_bench.data.files.lines import head, json_file
from retrieval_bench_labels.judge.judging import LONGEST_NOTE, checked_name
from retrieval_bench_labels.label import GRADES, Label, Pair, Pool
from retrieval_bench_labels.page.judging_page import whole_page
from retrieval_bench_labels.queue import whole_tasks
from retrieval_bench_labels.store import Store

KIND = "retrieval-bench labels"
"""What a file of answers says that it is."""

SCHEMA_VERSION = 1
"""Of a file of answers."""

_FILE = ("schema_version", "kind", "fingerprint", "who", "labels")


@dataclass(frozen=True, slots=True)
class OfflinePage(Documented):
    """A page to judge on that was written.

    Attributes:
        file: of the page.
        who: whose it is; empty where the page asks.
    """

    file: str
    who: str


def offline_page(pool: Pool, store: Store, who: str = "") -> str:
    """The page as one file, with all that ``who`` could be asked; without a name it asks for one.

    Nobody else is kept from judging the same meanwhile: two answers to one document are compared.
    """
    tasks = whole_tasks(pool, store, who)
    digests = pool.digests()
    documents = dict.fromkeys(doc for task in tasks for doc in task.left)
    data = {
        "mode": "file",
        "dataset": pool.dataset,
        "fingerprint": pool.fingerprint,
        "who": who,
        "guidelines": {str(grade): text for grade, text in pool.guidelines.items()},
        "tasks": [
            {
                "query": {
                    "id": task.query.id,
                    "text": task.query.text,
                    "worth": task.query.weight > 0,
                },
                "documents": [
                    {"id": doc, "digest": digests[Pair(task.query.id, doc)]} for doc in task.left
                ],
                "again": task.again,
            }
            for task in tasks
        ],
        "documents": {
            doc: {"title": pool.documents[doc].title, "text": pool.documents[doc].text}
            for doc in documents
        },
    }
    return whole_page(data)


def is_offline(path: Path) -> bool:
    """Return whether a file says that it holds the answers of a page."""
    return json.dumps(KIND).encode() in head(path, 4096)


def read_offline(path: Path) -> list[Label]:
    """The answers that a page saved, each pair once.

    Raises:
        DataError: with all faults of the file, wherever one is none of ours, damaged or changed by
            hand.
    """
    with reporting("the file of answers", path) as faults:
        report = faults.of(path)
        content = json_file(path, faults)
        return [] if report.count else _answers(content, report, path)


def _answers(content: Any, report: FileFaults, path: Path) -> list[Label]:
    """The answers; every fault is reported, and what has one is left out."""
    if not isinstance(content, dict) or content.get("kind") != KIND:
        report.error(None, f"no file of answers, but {shown(content)}", f'"kind": "{KIND}"')
        return []
    version = content.get("schema_version")
    if version != SCHEMA_VERSION or version is True:
        report.error("schema_version", shown(version), str(SCHEMA_VERSION))
        return []
    _check_keys(content, _FILE, "", report)
    fingerprint, labels = content.get("fingerprint"), content.get("labels")
    if not isinstance(fingerprint, str) or not fingerprint:
        report.error("fingerprint", shown(fingerprint), "that of the pool, as text")
    if not isinstance(labels, list):
        report.error("labels", shown(labels), "a list of answers")
        labels = []
    who = _name(content.get("who"), report)
    by_pair: dict[Pair, Label] = {}
    for number, label in enumerate(labels):
        place = f"labels[{number}]"
        answer = _label(label, who, place, report, path)
        if answer is not None and answer.pair in by_pair:
            report.error(place, f"a second answer to {tuple(answer.pair)}", "each pair once")
        elif answer is not None:
            by_pair[answer.pair] = answer
    return list(by_pair.values())


def _name(given: Any, report: FileFaults) -> str:
    try:
        return checked_name(given if isinstance(given, str) else "")
    except ConfigError as problem:
        report.error("who", shown(given), problem.accepted)
        return ""


def _label(given: Any, who: str, place: str, report: FileFaults, path: Path) -> Label | None:
    if not isinstance(given, dict):
        report.error(place, shown(given), f"an object with {', '.join(_LABEL)}")
        return None
    before = report.count
    _check_keys(given, tuple(_LABEL), f"{place}.", report)
    for name, (fits, accepted) in _LABEL.items():
        if name in given and not fits(given[name]):
            report.error(f"{place}.{name}", shown(given[name]), accepted)
    if report.count > before:
        return None
    return Label(
        Pair(given["query"], given["doc"]),
        who,
        given["grade"],
        digest=given["digest"],
        note=given["note"],
        span=None if given["span"] is None else (given["span"][0], given["span"][1]),
        at=datetime.fromisoformat(given["at"]).astimezone(UTC).isoformat(timespec="seconds"),
        source=path.name,
    )


def _check_keys(
    given: Mapping[str, Any], known: tuple[str, ...], place: str, report: FileFaults
) -> None:
    for name in known:
        if name not in given:
            report.error(f"{place}{name}", "is missing")
    for name in given.keys() - set(known):
        report.error(f"{place}{name}", "is not known", ", ".join(known))


def _is_span(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, list) or len(value) != 2 or any(type(at) is not int for at in value):
        return False
    start, stop = map(int, value)
    return 0 <= start < stop < 2**62


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


_LABEL: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "query": (lambda value: isinstance(value, str) and value != "", "the id of a query"),
    "doc": (lambda value: isinstance(value, str) and value != "", "the id of a document"),
    "digest": (
        lambda value: isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{16}", value)),
        "16 hexadecimal digits",
    ),
    "grade": (
        lambda value: value is None or (type(value) is int and value in GRADES),
        f"{GRADES[0]} to {GRADES[-1]}, or null where it was skipped",
    ),
    "note": (
        lambda value: isinstance(value, str) and len(value) <= LONGEST_NOTE,
        f"a text of up to {LONGEST_NOTE:,} characters",
    ),
    "span": (_is_span, "[first character, the one behind the last], or null"),
    "at": (_is_time, "a time of ISO 8601 with its zone, such as 2026-01-31T12:00:00Z"),
}
"""Fields of an answer: what fits, in code and in words."""
