"""What became of answers: records with a person's label for each system.

JSON lines, one record for each question, in either form, also mixed::

    {"id": "q1", "source": "drop", "outcomes": {"bm25": "correct", "hybrid": "rejected"}}
    {"id": "q1", "source": "drop", "bm25": {"human_score": 1, ...}, "hybrid": {"human_score": 2}}

The second is how the records of arXiv 2504.05324 come: every key with an object that has an
``outcome`` or a ``human_score`` is a system. A label is a word, or the code of these records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from retrieval_bench.data.faults import FileFaults, Place, reporting, shown
from retrieval_bench.data.files import json_lines
from retrieval_bench.data.source import take_id

Outcome = Literal["correct", "hallucinated", "rejected"]

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""All there are: the answer is right, it is wrong, or there is none ("I do not know")."""

_CODES: Mapping[int, Outcome] = {1: "correct", 0: "hallucinated", 2: "rejected"}
_LABEL_KEYS = ("outcome", "human_score")
_ACCEPTED = f"{', '.join(OUTCOMES)}, or 1, 0, 2"


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """One question.

    Attributes:
        fields: what the record says beside labels, texts and numbers as text; for groups.
        outcomes: system -> label; without the systems that have none.
    """

    id: str
    fields: Mapping[str, str]
    outcomes: Mapping[str, Outcome]


@dataclass(frozen=True, slots=True)
class OutcomeRecords:
    """All items of a file.

    Attributes:
        systems: in the order in which they first appear.
        warnings: what was counted and is no fault, in plain words.
    """

    systems: tuple[str, ...]
    items: tuple[LabelledItem, ...]
    warnings: tuple[str, ...] = ()


def read_outcomes(path: Path | str) -> OutcomeRecords:
    """The labelled items of a file of JSON lines.

    An item without a label of a system that others have is counted in ``warnings`` and left out of
    the figures of that system.

    Raises:
        DataError: everything that is wrong in the file, line by line: an id twice, a label that is
            none, a record without an id; a file without labels is wrong, too.
    """
    path = Path(path).expanduser()
    items: list[LabelledItem] = []
    places: dict[str, int] = {}
    with reporting("the file of outcomes", path) as faults:
        report = faults.of(path)
        for number, record in json_lines(path, faults):
            item_id = take_id(record, "id", number, report)
            outcomes = dict(_outcomes(record, number, report))
            if item_id is None:
                continue
            if item_id in places:
                found = f"id {shown(item_id)} again, first at {report.at(places[item_id])}"
                report.error(number, found, "one record for each question")
                continue
            places[item_id] = number
            items.append(LabelledItem(item_id, _fields(record), outcomes))
        systems = tuple(dict.fromkeys(name for item in items for name in item.outcomes))
        if not systems and not report.count:
            accepted = '{"id": ..., "outcomes": {"NAME": "correct"}} on each line'
            report.error(None, "no outcome of any system", accepted)
        for item in items:
            for name in systems:
                if name not in item.outcomes:
                    kind = f"items without an outcome of {name}, not in its figures"
                    report.warn(kind, places[item.id], shown(item.id))
    return OutcomeRecords(systems, tuple(items), faults.warnings())


def _outcomes(
    record: Mapping[str, Any], place: Place, report: FileFaults
) -> Iterator[tuple[str, Outcome]]:
    for name, value in _labels(record, place, report):
        if value is None:
            continue
        outcome = _outcome(value)
        if outcome is None:
            report.error(place, f"outcome of {shown(name)} is {shown(value)}", _ACCEPTED)
        else:
            yield name, outcome


def _labels(
    record: Mapping[str, Any], place: Place, report: FileFaults
) -> Iterator[tuple[str, Any]]:
    """System and label as they stand there."""
    for name, value in record.items():
        if name == "outcomes":
            if isinstance(value, dict):
                yield from value.items()
            else:
                report.error(place, f"outcomes is {shown(value)}", '{"NAME": "correct", ...}')
        elif isinstance(value, dict):
            key = next((key for key in _LABEL_KEYS if key in value), None)
            if key is not None:
                yield name, value[key]


def _outcome(value: Any) -> Outcome | None:
    if isinstance(value, str):
        folded = value.strip().casefold()
        return next((outcome for outcome in OUTCOMES if outcome == folded), None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return next((outcome for code, outcome in _CODES.items() if code == value), None)
    return None


def _fields(record: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in record.items()
        if name != "id" and isinstance(value, str | int | float)
    }
