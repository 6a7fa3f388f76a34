"""Answers that people labelled: how often each system is right, makes things up, or declines.

Each rate has an exact interval, and each pair of systems an exact McNemar test on the questions
that both answered: over all, and within the groups that a field of the records makes.

Records are JSON lines, one for each question, in either form, also mixed::

    {"id": "q1", "source": "drop", "outcomes": {"bm25": "correct", "hybrid": "rejected"}}
    {"id": "q1", "source": "drop", "bm25": {"human_score": 1, ...}, "hybrid": {"human_score": 2}}

The second is how the records of arXiv 2504.05324 come: every key with an object that has an
``outcome`` or a ``human_score`` is a system. A label is a word, or the code of these records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import check_known
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.core.types import Verdict
from retrieval_bench.data.faults import FileFaults, Place, reporting, shown
from retrieval_bench.data.files.lines import json_lines
from retrieval_bench.data.source import take_id
from retrieval_bench.stats.intervals import HIT, clopper_pearson, method
from retrieval_bench.stats.resampling import holm

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
    path = user_path(path)
    items: list[LabelledItem] = []
    places: dict[str, int] = {}
    with reporting("the file of outcomes", path) as faults:
        report = faults.of(path)
        for number, record in json_lines(path, faults):
            item_id = take_id(record, "id", number, report)
            outcomes = dict(_outcomes(record, number, report))
            once = "one record for each question"
            if item_id is None or report.repeats("id", item_id, number, places, once):
                continue
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
    seen: dict[str, Outcome] = {}
    for name, value in _labels(record, place, report):
        if value is None:
            continue
        outcome = _outcome(value)
        if outcome is None:
            report.error(place, f"outcome of {shown(name)} is {shown(value)}", _ACCEPTED)
        elif seen.setdefault(name, outcome) != outcome:
            report.error(place, f"{shown(name)} has two outcomes", "one for each system")
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
            key = next((key for key in _LABEL_KEYS if value.get(key) is not None), None)
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


RATES: Mapping[str, Outcome] = {
    "accuracy": "correct",
    "hallucination_rate": "hallucinated",
    "rejection_rate": "rejected",
}
"""Rate -> the label that it is the share of, among all labelled answers."""

ADJUSTED = "adjusted_accuracy"
"""Share of the correct among the answers that were given, not rejected."""

ALPHA = 0.05
INTERVAL = f"{method(HIT)}, 95 %"
TEST = "exact McNemar, two-sided; Holm over all tests of one table"
NO_GROUP = "(none)"

_BETTER_IS: Mapping[str, int] = {"accuracy": 1, "hallucination_rate": -1}


@dataclass(frozen=True, slots=True)
class Rate(Documented):
    """A share of ``n`` answers; ``value`` and ``ci95`` are None for none."""

    KEYS = "value ci95 n"

    count: int
    n: int

    @property
    def value(self) -> float | None:
        """From 0 to 1."""
        return self.count / self.n if self.n else None

    @property
    def ci95(self) -> tuple[float, float] | None:
        """See :func:`.clopper_pearson`."""
        return clopper_pearson(self.count, self.n) if self.n else None


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of the answers of a system.

    Attributes:
        accuracy, hallucination_rate, rejection_rate: of all answers.
        adjusted_accuracy: correct ones of those that were not rejected.
    """

    accuracy: Rate
    hallucination_rate: Rate
    rejection_rate: Rate
    adjusted_accuracy: Rate


@dataclass(frozen=True, slots=True)
class SystemOutcomes(Documented):
    """One system on the items of one group; counts in the order of ``OUTCOMES``."""

    KEYS = "name n counts *shown_rates"

    name: str
    counts: Mapping[Outcome, int]

    @property
    def n(self) -> int:
        """Labelled answers."""
        return sum(self.counts.values())

    @property
    def rates(self) -> dict[str, Rate]:
        """All of ``RATES``, then the adjusted accuracy."""
        rates = {rate: Rate(self.counts[label], self.n) for rate, label in RATES.items()}
        given = self.n - self.counts["rejected"]
        return {**rates, ADJUSTED: Rate(self.counts["correct"], given)}

    @property
    def shown_rates(self) -> Rates:
        """:attr:`rates` as JSON has them."""
        return Rates(**self.rates)


@dataclass(frozen=True, slots=True)
class Paired(Documented):
    """One rate of two systems on the items that both have.

    Attributes:
        difference: rate of b minus rate of a; None without items.
        only_a, only_b: items with the label from one of the two only.
        p: exact McNemar test; None without items.
        p_adjusted: after Holm over all pairs, rates and groups of one table.
        verdict: of b beside a; None for the rejection rate, of which neither much nor little is
            better.
    """

    KEYS = "rate a b n difference only_a only_b p p_adjusted verdict=word"

    rate: str
    a: str
    b: str
    n: int
    difference: float | None
    only_a: int
    only_b: int
    p: float | None
    p_adjusted: float | None
    verdict: Verdict | None

    @property
    def word(self) -> str | None:
        """The name of the verdict."""
        return None if self.verdict is None else self.verdict.name


@dataclass(frozen=True, slots=True)
class OutcomeGroup(Documented):
    """Some of the items: those with one value of a field, or all."""

    label: str
    n: int
    systems: tuple[SystemOutcomes, ...]
    comparisons: tuple[Paired, ...]


@dataclass(frozen=True, slots=True)
class OutcomeGroups(Documented):
    """The items by the values of one field, in the order in which these first appear."""

    KEYS = "field=by groups mean_of_groups"

    by: str
    groups: tuple[OutcomeGroup, ...]

    def means(self) -> dict[str, dict[str, float | None]]:
        """System -> rate -> its mean over the groups, each of the same weight; None where a group
        has no answer of the system."""
        means: dict[str, dict[str, float | None]] = {}
        for at, system in enumerate(self.groups[0].systems):
            means[system.name] = {}
            for rate in RATES:
                values = [group.systems[at].rates[rate].value for group in self.groups]
                known = [value for value in values if value is not None]
                complete = len(known) == len(values)
                means[system.name][rate] = math.fsum(known) / len(known) if complete else None
        return means

    @property
    def mean_of_groups(self) -> list[dict[str, str | float | None]]:
        """:meth:`means` as rows: the ``name`` of a system, and its rates."""
        return [{"name": name, **rates} for name, rates in self.means().items()]


@dataclass(frozen=True, slots=True)
class OutcomeReport(Documented):
    """All figures of a file of records.

    Attributes:
        interval: how the intervals were made.
        test: how the p-values were made.
        all: all items.
        by: for each field the items by its values.
        warnings: what makes the figures less than they seem.
    """

    KEYS = "interval test all by warnings"

    interval: ClassVar[str] = INTERVAL
    test: ClassVar[str] = TEST
    all: OutcomeGroup
    by: tuple[OutcomeGroups, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcomes(Documented):
    """Labelled answers.

    Attributes:
        records: the file.
        report: figures of all items, and by group.
    """

    KEYS = "records *report"

    records: str
    report: OutcomeReport


def outcome_report(records: OutcomeRecords, by: Sequence[str] | None = None) -> OutcomeReport:
    """Rates and tests over all items, and in groups.

    Args:
        by: fields of the records that make groups; None = ``source`` where there is one.

    Raises:
        ConfigError: a field that no record has.
    """
    known = dict.fromkeys(name for item in records.items for name in item.fields)
    if by is None:
        by = ["source"] if "source" in known else []
    for name in by:
        check_known(name, known, f"field {name!r}", where="--by", fix="name a field of the records")
    whole = _adjusted([_group("all", records.items, records.systems)])[0]
    grouped = [OutcomeGroups(name, _adjusted(_groups(records, name))) for name in dict.fromkeys(by)]
    return OutcomeReport(whole, tuple(grouped), records.warnings)


def mcnemar(only_a: int, only_b: int) -> float:
    """Two-sided exact p of the McNemar test; 1 where the two never differ.

    Source: McNemar (1947), Psychometrika 12; the binomial test of the pairs that differ.
    """
    n = only_a + only_b
    tail = sum(math.comb(n, i) for i in range(min(only_a, only_b) + 1))
    return min(1.0, float(2 * tail / 2**n))


def _groups(records: OutcomeRecords, by: str) -> list[OutcomeGroup]:
    items: dict[str, list[LabelledItem]] = {}
    for item in records.items:
        items.setdefault(item.fields.get(by, NO_GROUP), []).append(item)
    return [_group(label, of_group, records.systems) for label, of_group in items.items()]


def _group(label: str, items: Sequence[LabelledItem], systems: Sequence[str]) -> OutcomeGroup:
    counted = []
    for name in systems:
        given = [item.outcomes[name] for item in items if name in item.outcomes]
        counted.append(
            SystemOutcomes(name, {label: given.count(label) for label in RATES.values()})
        )
    pairs = [_paired(rate, a, b, items) for a, b in combinations(systems, 2) for rate in RATES]
    return OutcomeGroup(label, len(items), tuple(counted), tuple(pairs))


def _paired(rate: str, a: str, b: str, items: Sequence[LabelledItem]) -> Paired:
    label = RATES[rate]
    both = [
        (item.outcomes[a] == label, item.outcomes[b] == label)
        for item in items
        if a in item.outcomes and b in item.outcomes
    ]
    only_a, only_b = both.count((True, False)), both.count((False, True))
    difference = (only_b - only_a) / len(both) if both else None
    p = mcnemar(only_a, only_b) if both else None
    return Paired(rate, a, b, len(both), difference, only_a, only_b, p, None, None)


def _adjusted(groups: Sequence[OutcomeGroup]) -> tuple[OutcomeGroup, ...]:
    """``groups`` with p-values after Holm over all of their tests, and verdicts."""
    tests = [pair.p for group in groups for pair in group.comparisons if pair.p is not None]
    adjusted = iter(holm(np.asarray(tests, dtype=np.float64)).tolist())
    return tuple(
        replace(
            group,
            comparisons=tuple(
                _judged(pair, None if pair.p is None else next(adjusted))
                for pair in group.comparisons
            ),
        )
        for group in groups
    )


def _judged(pair: Paired, p_adjusted: float | None) -> Paired:
    verdict: Verdict | None = None
    direction = _BETTER_IS.get(pair.rate)
    if p_adjusted is None:
        verdict = Verdict.MISSING
    elif direction is not None:
        verdict = Verdict.UNDECIDED
        if p_adjusted < ALPHA and pair.difference:
            verdict = Verdict.BETTER if pair.difference * direction > 0 else Verdict.WORSE
    return replace(pair, p_adjusted=p_adjusted, verdict=verdict)
