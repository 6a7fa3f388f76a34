"""Answers that people labelled: how often each system is right, makes things up, or declines.

Each rate has a Wilson interval, and each pair of systems an exact McNemar test on the questions
that both answered: over all, and within the groups that a field of the records makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.core.types import Verdict
from retrieval_bench.scoring.answers.outcome_records import LabelledItem, Outcome, OutcomeRecords
from retrieval_bench.stats.resampling import holm

RATES: Mapping[str, Outcome] = {
    "accuracy": "correct",
    "hallucination_rate": "hallucinated",
    "rejection_rate": "rejected",
}
"""Rate -> the label that it is the share of, among all labelled answers."""

ADJUSTED = "adjusted_accuracy"
"""Share of the correct among the answers that were given, not rejected."""

ALPHA = 0.05
INTERVAL = "Wilson score, 95 %"
TEST = "exact McNemar, two-sided; Holm over all tests of one table"
NO_GROUP = "(none)"

_Z = 1.959963984540054
_BETTER_IS: Mapping[str, int] = {"accuracy": 1, "hallucination_rate": -1}


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of ``n`` answers; ``value`` and ``ci95`` are None for none."""

    count: int
    n: int

    @property
    def value(self) -> float | None:
        """From 0 to 1."""
        return self.count / self.n if self.n else None

    @property
    def ci95(self) -> tuple[float, float] | None:
        """See :func:`wilson`."""
        return wilson(self.count, self.n) if self.n else None

    def as_dict(self) -> dict[str, Any]:
        """One rate of the JSON document."""
        ci95 = self.ci95
        return {"value": self.value, "ci95": None if ci95 is None else list(ci95), "n": self.n}


@dataclass(frozen=True, slots=True)
class SystemOutcomes:
    """One system on the items of one group; counts in the order of ``OUTCOMES``."""

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

    def as_dict(self) -> dict[str, Any]:
        """One of ``systems`` in the JSON document."""
        rates = {name: rate.as_dict() for name, rate in self.rates.items()}
        return {"name": self.name, "n": self.n, "counts": dict(self.counts), **rates}


@dataclass(frozen=True, slots=True)
class Paired:
    """One rate of two systems on the items that both have.

    Attributes:
        difference: rate of b minus rate of a; None without items.
        only_a, only_b: items with the label from one of the two only.
        p: exact McNemar test; None without items.
        p_adjusted: after Holm over all pairs, rates and groups of one table.
        verdict: of b beside a; None for the rejection rate, of which neither much nor little is
            better.
    """

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

    def as_dict(self) -> dict[str, Any]:
        """One of ``comparisons`` in the JSON document."""
        values = {name: getattr(self, name) for name in Paired.__slots__}
        return {**values, "verdict": None if self.verdict is None else self.verdict.name}


@dataclass(frozen=True, slots=True)
class OutcomeGroup:
    """Some of the items: those with one value of a field, or all."""

    label: str
    n: int
    systems: tuple[SystemOutcomes, ...]
    comparisons: tuple[Paired, ...]

    def as_dict(self) -> dict[str, Any]:
        """One of ``groups``, or ``all``, in the JSON document."""
        return {
            "label": self.label,
            "n": self.n,
            "systems": [system.as_dict() for system in self.systems],
            "comparisons": [pair.as_dict() for pair in self.comparisons],
        }


@dataclass(frozen=True, slots=True)
class OutcomeGroups:
    """The items by the values of one field, in the order in which these first appear."""

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

    def as_dict(self) -> dict[str, Any]:
        """One of ``by`` in the JSON document."""
        means = [{"name": name, **rates} for name, rates in self.means().items()]
        return {
            "field": self.by,
            "groups": [group.as_dict() for group in self.groups],
            "mean_of_groups": means,
        }


@dataclass(frozen=True, slots=True)
class OutcomeReport:
    """All figures of a file of records."""

    all: OutcomeGroup
    by: tuple[OutcomeGroups, ...]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The document of ``outcomes --format json``."""
        return {
            "interval": INTERVAL,
            "test": TEST,
            "all": self.all.as_dict(),
            "by": [groups.as_dict() for groups in self.by],
            "warnings": list(self.warnings),
        }


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
        if name not in known:
            raise ConfigError(
                f"field {name!r}",
                where="--by",
                accepted=near_names(name, known),
                fix="name a field of the records",
            )
    whole = _adjusted([_group("all", records.items, records.systems)])[0]
    grouped = [OutcomeGroups(name, _adjusted(_groups(records, name))) for name in dict.fromkeys(by)]
    return OutcomeReport(whole, tuple(grouped), records.warnings)


def wilson(count: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of ``count`` in ``n``, at least 1.

    Source: Wilson (1927), JASA 22, without correction for continuity.
    """
    share, z2 = count / n, _Z**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    # 0 and 1 themselves, not what rounding makes of them
    return (0.0 if count == 0 else centre - half, 1.0 if count == n else centre + half)


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
        OutcomeGroup(
            group.label,
            group.n,
            group.systems,
            tuple(
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
    return Paired(
        pair.rate, pair.a, pair.b, pair.n, pair.difference, pair.only_a, pair.only_b, pair.p,
        p_adjusted, verdict,
    )  # fmt: skip
