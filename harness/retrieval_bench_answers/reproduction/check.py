"""Published numbers against what is measured here, with one tolerance for all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Ranking
from retrieval_bench_answers.outcomes import RATES, outcome_report, read_outcomes
from retrieval_bench_answers.reproduction.answered import (
    Answered,
    GroupTable,
    NotAtHandError,
    group_table,
    sentence,
)
from retrieval_bench_answers.reproduction.published import (
    Published,
    PublishedFigure,
    PublishedLists,
    PublishedOutcomes,
)
from retrieval_bench_score.conventions import convention

OK_WITHIN = 0.002
CLOSE_WITHIN = 0.01

_ROUNDING = 1e-9
MEAN = "mean"
SAME_LISTS = "same lists"
SCORES_OFF = "scores off"


class Status(StrEnum):
    """Verdict of a measured value on a published one; the words on screen."""

    OK = "OK"
    CLOSE = "CLOSE"
    FAIL = "FAIL"
    NOT_MEASURED = "NOT MEASURED"


@dataclass(frozen=True, slots=True)
class Checked(Documented):
    """One published value.

    Attributes:
        measured: here, on the published dataset by the published system; None without a status
            other than NOT MEASURED.
        beside: what is measured on another dataset, or by another system; never judged.
        reason: why it was not measured, or what ``beside`` is.
        n: queries or items behind the value that is shown.
    """

    name: str
    source: str
    metric: str
    convention: str
    published: float
    status: Status
    measured: float | None = None
    beside: float | None = None
    n: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Distance that a measured value may lie from the published one to be so called."""

    ok: float
    close: float


@dataclass(frozen=True, slots=True)
class Reproduction(Documented):
    """All that was looked at."""

    KEYS = (
        "title=published.title url=published.url tolerance figures outcomes table "
        "remarks=published.remarks"
    )

    published: Published
    figures: tuple[Checked, ...]
    outcomes: tuple[Checked, ...]
    table: GroupTable | None

    @property
    def worst(self) -> Status:
        """FAIL if there is one, NOT MEASURED if nothing was measured."""
        return worst_of(value.status for value in (*self.figures, *self.outcomes))

    @property
    def tolerance(self) -> Tolerance:
        """The tolerances within which values agree."""
        return Tolerance(OK_WITHIN, CLOSE_WITHIN)


@dataclass(frozen=True, slots=True)
class Papers(Documented):
    """Published figures.

    Attributes:
        papers: name of a file -> what came of it.
    """

    papers: Mapping[str, Reproduction]


def reproduce(
    published: Published, folder: Path | None, reporter: Reporter | None = None
) -> Reproduction:
    """Measure what the data in ``folder`` allow, and compare.

    Raises:
        ConfigError: a convention or metric that does not exist.
    """
    answered = Answered(published, folder, reporter)
    figures: list[Checked] = []
    for figure in published.figures:
        figures += _figure(figure, answered)
    for lists in published.lists:
        figures += _lists(lists, answered)
    outcomes = _all_outcomes(published.outcomes, answered)
    table = None if published.table is None else group_table(published.table, answered)
    return Reproduction(published, tuple(figures), tuple(outcomes), table)


def worst_of(statuses: Iterable[Status]) -> Status:
    """FAIL if there is one, NOT MEASURED if nothing was measured."""
    order = (Status.FAIL, Status.CLOSE, Status.OK, Status.NOT_MEASURED)
    return min(statuses, key=order.index, default=Status.NOT_MEASURED)


def status_of(published: float, measured: float) -> Status:
    """OK within 0.002, CLOSE within 0.01, else FAIL."""
    difference = abs(measured - published) - _ROUNDING
    if difference <= OK_WITHIN:
        return Status.OK
    return Status.CLOSE if difference <= CLOSE_WITHIN else Status.FAIL


def _figure(figure: PublishedFigure, answered: Answered) -> list[Checked]:
    rules = convention(figure.convention)
    names = {given: str(rules.parse([given])[0]) for given in figure.values}
    means: Mapping[str, tuple[float, int]] = {}
    reason = ""
    judged = not figure.differs
    try:
        reason = answered.data(figure.dataset).unjudged
        judged = judged and not reason
        means = _means(figure, figure.dataset, answered)
        reason = "; ".join(part for part in (reason, figure.differs) if part)
    except NotAtHandError as problem:
        reason, judged = str(problem), False
        means, reason = _beside(figure, answered, reason)
    return [
        _checked(figure, names[given], value, means.get(names[given]), judged=judged, reason=reason)
        for given, value in figure.values.items()
    ]


def _checked(
    figure: PublishedFigure,
    metric: str,
    value: float,
    measured: tuple[float, int] | None,
    *,
    judged: bool,
    reason: str,
) -> Checked:
    mean, n = (None, None) if measured is None else measured
    common = (figure.name, figure.source, metric, figure.convention, value)
    if judged and mean is not None and not math.isnan(mean):
        return Checked(*common, status_of(value, mean), measured=mean, n=n)
    return Checked(*common, Status.NOT_MEASURED, beside=mean, n=n, reason=reason)


def _means(
    figure: PublishedFigure, dataset: str, answered: Answered
) -> dict[str, tuple[float, int]]:
    rules = convention(figure.convention)
    scored = answered.scored(figure.system, dataset, figure.k, rules, list(figure.values))
    evaluation = scored.evaluation
    return {
        str(metric): (mean.mean, mean.n)
        for metric, mean in zip(evaluation.metrics, evaluation.means, strict=True)
    }


def _lists(given: PublishedLists, answered: Answered) -> list[Checked]:
    """Share of the queries with exactly the published list, and how far a score is off at most."""
    published = {SAME_LISTS: 1.0, SCORES_OFF: 0.0}
    likeness: dict[str, float] = {}
    reason, n = "", None
    try:
        ours, theirs = answered.lists_like(given.system, given.run)
        likeness, n = _likeness(ours.rankings("list"), theirs.rankings("list"))
    except NotAtHandError as problem:
        reason = str(problem)
    return [
        Checked(given.name, given.source, metric, "-", value, Status.NOT_MEASURED, reason=reason)
        if metric not in likeness
        else Checked(
            given.name,
            given.source,
            metric,
            "-",
            value,
            status_of(value, likeness[metric]),
            measured=likeness[metric],
            n=n,
        )
        for metric, value in published.items()
        if reason or metric in likeness
    ]


def _likeness(
    ours: Mapping[str, Ranking], theirs: Mapping[str, Ranking]
) -> tuple[dict[str, float], int]:
    """The two values of :func:`_lists` (the second where both have scores), and of how many."""
    same = 0
    off: list[float] = []
    for query_id, wanted in theirs.items():
        got = ours.get(query_id, Ranking([]))
        same += list(got.doc_ids) == list(wanted.doc_ids)
        if got.scores is None or wanted.scores is None:
            continue
        score_of = dict(zip(got.doc_ids, got.scores, strict=True))
        off += [
            abs(float(score_of[hit.doc_id]) - hit.score) / (abs(hit.score) or 1.0)
            for hit in wanted
            if hit.doc_id in score_of
        ]
    likeness = {SAME_LISTS: same / len(theirs)}
    return (likeness | {SCORES_OFF: max(off)} if off else likeness), len(theirs)


def _beside(
    figure: PublishedFigure, answered: Answered, reason: str
) -> tuple[Mapping[str, tuple[float, int]], str]:
    """Compute the values of another dataset, and complete the reason."""
    if figure.beside is None:
        return {}, reason
    try:
        means = _means(figure, figure.beside, answered)
    except NotAtHandError as problem:
        also = "" if str(problem) == reason else f"; nor {figure.beside}: {problem}"
        return {}, reason + also
    parts = (reason, f"beside: on {figure.beside}", figure.differs)
    return means, "; ".join(part for part in parts if part)


def _all_outcomes(published: Sequence[PublishedOutcomes], answered: Answered) -> list[Checked]:
    by_outcome: dict[
        tuple[str, str | None], Mapping[tuple[str, str], dict[str, float | None]] | str
    ]
    by_outcome = {}
    figures = []
    for given in published:
        key = (given.records, given.by)
        if key not in by_outcome:
            try:
                by_outcome[key] = _rates(answered.path(given.records), given.by)
            except (NotAtHandError, HarnessError) as problem:
                by_outcome[key] = sentence(problem)
        rates = by_outcome[key]
        for rate, value in given.values.items():
            common = (given.name, given.source, rate, "-", value)
            if isinstance(rates, str):
                figures.append(Checked(*common, Status.NOT_MEASURED, reason=rates))
                continue
            group = given.group or "all"
            measured = rates.get((group, given.system), {}).get(rate)
            if measured is None:
                reason = f"the records have no {rate} of {given.system} in {group}"
                figures.append(Checked(*common, Status.NOT_MEASURED, reason=reason))
            else:
                figures.append(Checked(*common, status_of(value, measured), measured=measured))
    return figures


def _rates(path: Path, by: str | None) -> dict[tuple[str, str], dict[str, float | None]]:
    """(group, system) -> rate -> value; with the groups "all" and "mean"."""
    report = outcome_report(read_outcomes(path), [] if by is None else [by])
    groups = [report.all, *(group for of in report.by for group in of.groups)]
    rates: dict[tuple[str, str], dict[str, float | None]] = {
        (group.label, system.name): {name: system.rates[name].value for name in RATES}
        for group in groups
        for system in group.systems
    }
    for of in report.by:
        rates |= {(MEAN, name): dict(means) for name, means in of.means().items()}
    return rates
