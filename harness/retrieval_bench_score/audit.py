"""Runs scored under several conventions, and why the order of the systems is not the same.

The order under one convention, the base, is compared with that under each other. Where two systems
change places, the rules in which the conventions differ are switched over one by one: those that
turn the order alone are named, with the queries that weigh most. Decides in data, prints nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, DataError, counted, distinct_names
from retrieval_bench.data.files.packed import unpacked_name
from retrieval_bench.metrics import METRICS_VERSION, Judgements, Metric, parse_metric
from retrieval_bench_score.conventions import Convention, Ties
from retrieval_bench_score.runs.imported import RunFile
from retrieval_bench_score.scoring import Answers, counting_queries, values_of


@dataclass(frozen=True, slots=True)
class Cell:
    """One system's mean of one metric.

    Attributes:
        mean: None where there is none.
        n: queries in it.
        reason: why there is no mean; empty where there is one.
    """

    mean: float | None
    n: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Row(Documented):
    """One plain metric name under one convention.

    Attributes:
        concept, convention: the plain name, such as "nDCG"; the name of the convention.
        tie_rule: the order of equal scores, in words.
        metric: the explicit metric that the name stands for, None where it is not defined.
        systems, cells: the names, and a mean for each.
    """

    KEYS = "concept convention metric tie_rule means n"

    concept: str
    convention: str
    tie_rule: str
    metric: Metric | None
    systems: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def means(self) -> dict[str, float | None]:
        """The mean of each system; None where there is none."""
        return {name: cell.mean for name, cell in zip(self.systems, self.cells, strict=True)}

    @property
    def n(self) -> dict[str, int]:
        """Queries in the mean, by system."""
        return {name: cell.n for name, cell in zip(self.systems, self.cells, strict=True)}


@dataclass(frozen=True, slots=True)
class Cause:
    """Rules that turn the order of two systems.

    Attributes:
        rules: the ``name`` of each with what it says under either convention; more than one where
            only all of them together do.
        n_queries: queries that move the difference at all; one that comes into the mean or goes
            out of it moves it by its distance from the mean before.
        queries: the change of the difference by those that move it most in the direction of the
            turn, heaviest first; those of all queries add up to its whole change.
    """

    rules: tuple[Mapping[str, str], ...]
    n_queries: int
    queries: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Turn(Documented):
    """Two systems whose order is not the same under two conventions.

    Attributes:
        concept: plain name of the metric.
        base: the convention that the others are held against.
        convention: the one under which the order is another.
        a, b: the systems; under ``base`` a is not behind b.
        base_difference: mean of a less mean of b under ``base``.
        difference: the same under ``convention``.
        causes: single rules that lead to the order under ``convention`` alone, or one cause that
            holds several.
    """

    KEYS = "concept base convention a b base_difference difference causes"

    concept: str
    base: str
    convention: str
    a: str
    b: str
    base_difference: float
    difference: float
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Audit(Documented):
    """Runs under several conventions.

    Attributes:
        systems: names, told apart.
        base: the convention that the others are held against.
        cut: cut-off where a convention has none of its own.
        rows: by concept, and within it by convention.
        turns: empty where every convention has the order of the base.
        warnings: what could not be scored and why, and what may surprise; each once, with the names
            of the systems that it is about.
        metrics_version: raised by every change that moves a value.
    """

    KEYS = "metrics_version systems base cut rows turns warnings"

    metrics_version: ClassVar[int] = METRICS_VERSION
    systems: tuple[str, ...]
    base: str
    cut: int
    rows: tuple[Row, ...]
    turns: tuple[Turn, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One plain name as one bundle of rules has it: the metric, and the rules around it."""

    metric: Metric
    rules: Convention

    def switched(self, names: Collection[str], to: Reading) -> Reading:
        """Return this reading with the rules called ``names`` as ``to`` has them."""
        metric, rules = self.metric, self.rules
        if "definition" in names:
            metric = replace(to.metric, cut=metric.cut)
        if "cut" in names:
            metric = replace(metric, cut=to.metric.cut)
        for name in names:
            fields = FIELDS.get(name, ())
            rules = replace(rules, **{field: getattr(to.rules, field) for field in fields})
        return Reading(metric, rules)

    def says(self, name: str) -> str:
        """The rule called ``name``, in a few words."""
        if name == "definition":
            return str(replace(self.metric, cut=None))
        if name == "cut":
            return str(self.metric.cut)
        return ", ".join(str(getattr(self.rules, field)) for field in FIELDS[name])


FIELDS: Mapping[str, tuple[str, ...]] = {
    "ties": ("ties",),
    "duplicates": ("duplicates",),
    "queries without relevant documents": ("without_relevant", "unanswerable"),
    "missing queries": ("missing",),
}
"""Rule -> the fields of a convention that it is made of."""

RULES = ("definition", "cut", *FIELDS)
"""All rules in which two readings may differ."""


def reading_of(concept: str, convention: Convention, cut: int) -> Reading | None:
    """Return how ``convention`` reads a plain name; None where it does not define it.

    Args:
        cut: where the convention has no cut-off of its own.
    """
    try:
        metric = convention.read(parse_metric(concept))
    except ConfigError:
        return None
    return Reading(replace(metric, cut=convention.cut or cut), convention)


CONCEPTS = ("AP", "nDCG", "RR", "R", "Success")
"""Plain names that are looked at: those that some convention reads in its own way, and company."""

QUERIES_NAMED = 3
_SYSTEMS_NAMED = 5

EQUAL = 1e-12
"""Means closer than this are equal: their difference is rounding."""

_ENDING = re.compile(r"(?<=.)\.(trec|run|res|txt|tsv|csv|jsonl?)$", re.IGNORECASE)


def audit(
    runs: Sequence[RunFile],
    judgements: Judgements,
    conventions: Sequence[Convention],
    cut: int,
    *,
    unanswerable: Collection[str] = (),
) -> Audit:
    """Score ``runs`` under each of ``conventions``; the first of those is the base.

    Args:
        cut: for conventions that have no cut-off of their own.

    Raises:
        ConfigError: no run, or no convention.
    """
    if not runs or not conventions:
        raise ConfigError(
            f"{len(runs)} runs and {len(conventions)} conventions to audit",
            accepted="one run or more, and one convention or more",
        )
    base, *others = conventions
    patient = base
    if base.duplicates == "error" and any(run.repeated for run in runs):
        patient = replace(base, duplicates="counted again")
    read = {
        (concept, rules): reading_of(concept, rules, cut)
        for concept in CONCEPTS
        for rules in (*conventions, patient)
    }
    bench = _Bench(runs, judgements, unanswerable, [item for item in read.values() if item])
    if patient != base:
        bench.note(
            f"{base.name} refuses repeated documents: its order is compared with that of the other "
            "conventions as if it counted them again"
        )
    rows: list[Row] = []
    turns: list[Turn] = []
    for concept in CONCEPTS:
        rows += [bench.row(concept, c.name, read[concept, c]) for c in dict.fromkeys(conventions)]
        from_ = read[concept, patient]
        for other in dict.fromkeys(others):
            to = read[concept, other]
            if from_ is not None and to is not None:
                turns += bench.turns(concept, base.name, from_, other.name, to)
    return Audit(bench.names, base.name, cut, tuple(rows), tuple(turns), bench.notes())


_Found: TypeAlias = tuple[list[str], NDArray[np.float64]]
"""Queries that count, and their values (queries, metrics)."""


class _Bench:
    """Systems and judgements, scored under any reading; each set of rules is applied once."""

    def __init__(
        self,
        runs: Sequence[RunFile],
        judgements: Judgements,
        unanswerable: Collection[str],
        readings: Sequence[Reading],
    ) -> None:
        self.names = _names(runs)
        self._runs = runs
        self._judgements = judgements
        self._unanswerable = unanswerable
        cuts = {reading.metric.cut for reading in readings}
        self._metrics = list(
            dict.fromkeys(replace(r.metric, cut=cut) for r in readings for cut in cuts)
        )
        self._told: dict[str, list[str]] = {}
        self._values: dict[tuple[object, ...], _Found | DataError] = {}
        self._ordered, self._mean = cache(self._in_order), cache(self._averaged)
        for name, run in zip(self.names, runs, strict=True):
            for warning in (*run.warnings, *self._missing(run)):
                self.note(warning, name)

    def _missing(self, run: RunFile) -> list[str]:
        qrels = self._judgements.qrels
        judged = [q for q, of in qrels.items() if of and q not in self._unanswerable]
        missing = [q for q in judged if q not in run.rankings]
        n = f"{len(missing):,} of {counted(len(judged), 'judged query')}"
        return [f"{n} not in the run"] if missing else []

    def note(self, text: str, system: str | None = None) -> None:
        """Keep something for :meth:`notes`."""
        systems = self._told.setdefault(text, [])
        if system is not None and system not in systems:
            systems.append(system)

    def notes(self) -> tuple[str, ...]:
        """All that was noted, each text once, with the systems that it is about."""
        notes = []
        for text, systems in self._told.items():
            more = len(systems) - _SYSTEMS_NAMED
            named = ", ".join(systems[:_SYSTEMS_NAMED]) + (f" and {more} more" if more > 0 else "")
            notes.append(f"{named}: {text}" if named else text)
        return tuple(notes)

    def row(self, concept: str, convention: str, reading: Reading | None) -> Row:
        if reading is None:
            cells = [Cell(None, reason="not defined")] * len(self._runs)
            return Row(concept, convention, "", None, self.names, tuple(cells))
        cells = [self._cell(at, reading) for at in range(len(self._runs))]
        rule = reading.rules.tie_rule
        return Row(concept, convention, rule, reading.metric, self.names, tuple(cells))

    def _cell(self, at: int, reading: Reading) -> Cell:
        try:
            return Cell(self._mean(at, reading), len(self._of(at, reading)))
        except DataError as problem:
            self.note(f"not scored under {reading.rules.name}: {problem.given}", self.names[at])
            return Cell(None, reason=problem.given)

    def turns(self, concept: str, base: str, from_: Reading, name: str, to: Reading) -> list[Turn]:
        turns = []
        for a, b in combinations(range(len(self._runs)), 2):
            before, after = self._difference(a, b, from_), self._difference(a, b, to)
            if before is None or after is None or _sign(before) == _sign(after):
                continue
            first, second = (a, b) if before > EQUAL or (before >= -EQUAL > after) else (b, a)
            sign = 1 if first == a else -1
            turns.append(
                Turn(
                    concept,
                    base,
                    name,
                    self.names[first],
                    self.names[second],
                    sign * before,
                    sign * after,
                    self._causes(first, second, from_, to),
                )
            )
        return turns

    def _causes(self, a: int, b: int, from_: Reading, to: Reading) -> tuple[Cause, ...]:
        differing = [rule for rule in RULES if from_.switched([rule], to) != from_]
        alone = [[rule] for rule in differing if self._leads(a, b, from_, to, [rule])]
        causes = alone or [self._enough(a, b, from_, to, differing)]
        return tuple(self._cause(a, b, from_, to, rules) for rules in causes)

    def _leads(self, a: int, b: int, from_: Reading, to: Reading, rules: Sequence[str]) -> bool:
        """Return whether these rules suffice for the order under ``to``."""
        reached = self._difference(a, b, from_.switched(rules, to))
        wanted = self._difference(a, b, to)
        return reached is not None and wanted is not None and _sign(reached) == _sign(wanted)

    def _enough(
        self, a: int, b: int, from_: Reading, to: Reading, differing: Sequence[str]
    ) -> list[str]:
        """Rules that turn the order together when no single one does: all of them, less those
        without which it still turns."""
        needed = list(differing)
        for rule in differing:
            fewer = [name for name in needed if name != rule]
            if self._leads(a, b, from_, to, fewer):
                needed = fewer
        return needed

    def _cause(self, a: int, b: int, from_: Reading, to: Reading, rules: Sequence[str]) -> Cause:
        switched = from_.switched(rules, to)
        of_a, of_b = self._moves(a, from_, switched), self._moves(b, from_, switched)
        changes = {q: of_a.get(q, 0.0) - of_b.get(q, 0.0) for q in {**of_a, **of_b}}
        moved = {q: change for q, change in changes.items() if abs(change) > EQUAL}
        direction = np.sign(sum(moved.values()))
        heaviest = sorted(moved, key=lambda q: (-direction * moved[q], q))[:QUERIES_NAMED]
        either = [(reading.rules.name, reading) for reading in (from_, to)]
        said = [{"name": rule, **{name: by.says(rule) for name, by in either}} for rule in rules]
        most = {q: moved[q] for q in heaviest if direction * moved[q] > 0}
        return Cause(tuple(said), len(moved), most)

    def _moves(self, at: int, from_: Reading, to: Reading) -> dict[str, float]:
        """Compute the share of each query in the change of the mean: n' (m' - m) is the sum of v' -
        v, where a query that is in one of the means only has the value m in the other."""
        before, after = self._of(at, from_), self._of(at, to)
        mean = self._mean(at, from_) or 0.0
        return {
            q: (after.get(q, mean) - before.get(q, mean)) / len(after) for q in {**before, **after}
        }

    def _difference(self, a: int, b: int, reading: Reading) -> float | None:
        """Mean of a less mean of b; None where one of them has none."""
        try:
            means = self._mean(a, reading), self._mean(b, reading)
        except DataError:
            return None
        return None if means[0] is None or means[1] is None else means[0] - means[1]

    def _averaged(self, at: int, reading: Reading) -> float | None:
        """The mean; None where no query counts."""
        values = self._of(at, reading)
        return float(np.mean(list(values.values()))) if values else None

    def _of(self, at: int, reading: Reading) -> Mapping[str, float]:
        """Value of each query that counts."""
        rules = reading.rules
        key = (at, *(getattr(rules, field) for fields in FIELDS.values() for field in fields))
        if key not in self._values:
            self._values[key] = self._under(at, rules)
        value = self._values[key]
        if isinstance(value, DataError):
            raise value.with_traceback(None)
        queries, values = value
        column = values[:, self._metrics.index(reading.metric)]
        return dict(zip(queries, column.tolist(), strict=True))

    def _under(self, at: int, rules: Convention) -> _Found | DataError:
        answers = self._ordered(at, rules.ties)
        queries = counting_queries(answers, self._judgements, rules, self._unanswerable)
        try:
            values = values_of(answers, self._judgements, rules, self._metrics, queries)[1]
        except DataError as problem:
            return problem
        return queries, values

    def _in_order(self, at: int, ties: Ties) -> Answers:
        ordered = self._runs[at].ordered(ties)
        return Answers(lists={q: ranking.doc_ids for q, ranking in ordered.items()})


def _names(runs: Sequence[RunFile]) -> tuple[str, ...]:
    """The shortest that tell the runs apart: what their makers called them, or files without their
    endings, with them, with their folders; the same file given again is numbered."""
    files = [run.path.absolute() for run in runs]
    plain = [run.label or _ENDING.sub("", unpacked_name(run.path.name)) for run in runs]
    full = [path.name for path in files]
    foldered = [f"{path.parent.name}/{name}" for path, name in zip(files, plain, strict=True)]
    n_files = len(set(files))
    telling = (names for names in (plain, full, foldered) if len(set(names)) == n_files)
    return tuple(distinct_names(next(telling, full)))


def _sign(difference: float) -> int:
    return 0 if abs(difference) <= EQUAL else 1 if difference > 0 else -1
