"""What an audit finds: means under each convention, and changes of order with their causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retrieval_bench.metrics import METRICS_VERSION, Metric


@dataclass(frozen=True, slots=True)
class Cell:
    """One system's mean of one metric; ``reason`` says why there is none."""

    mean: float | None
    n: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One plain metric name under one convention.

    Attributes:
        metric: the explicit metric that the name stands for, None where it is not defined.
        cells: one for each system.
    """

    concept: str
    convention: str
    tie_rule: str
    metric: Metric | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Weight:
    """How much one query moves the difference of two means when a rule is switched over; the
    weights of all queries add up to the change of that difference."""

    query_id: str
    change: float


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule in which two conventions differ: what it is about, and what each of them says."""

    name: str
    base: str
    other: str


@dataclass(frozen=True, slots=True)
class Cause:
    """Rules that turn the order of two systems.

    Attributes:
        rules: more than one where only all of them together do.
        n_queries: queries that move the difference at all; one that comes into the mean or goes
            out of it moves it by its distance from the mean before.
        queries: those that move it most in the direction of the turn, heaviest first.
    """

    rules: tuple[Rule, ...]
    n_queries: int
    queries: tuple[Weight, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """Two systems whose order is not the same under two conventions.

    Attributes:
        a, b: the systems; under ``base`` a is not behind b.
        base_difference: mean of a less mean of b under ``base``.
        difference: the same under ``convention``.
        causes: single rules that lead to the order under ``convention`` alone, or one cause that
            holds several.
    """

    concept: str
    base: str
    convention: str
    a: str
    b: str
    base_difference: float
    difference: float
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """All of it.

    Attributes:
        systems: names, told apart.
        cut: cut-off where a convention has none of its own.
        rows: by concept, and within it by convention.
        turns: empty where every convention has the order of the base.
        warnings: what could not be scored and why, and what may surprise; each once, with the names
            of the systems that it is about.
    """

    systems: tuple[str, ...]
    base: str
    cut: int
    rows: tuple[Row, ...]
    turns: tuple[Turn, ...]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The document of ``audit --format json``."""
        return {
            "metrics_version": METRICS_VERSION,
            "systems": list(self.systems),
            "base": self.base,
            "cut": self.cut,
            "rows": [
                {
                    "concept": row.concept,
                    "convention": row.convention,
                    "metric": None if row.metric is None else str(row.metric),
                    "tie_rule": row.tie_rule,
                    "means": {
                        name: cell.mean for name, cell in zip(self.systems, row.cells, strict=True)
                    },
                    "n": {name: cell.n for name, cell in zip(self.systems, row.cells, strict=True)},
                }
                for row in self.rows
            ],
            "turns": [_turn_as_dict(turn) for turn in self.turns],
            "warnings": list(self.warnings),
        }


def _turn_as_dict(turn: Turn) -> dict[str, Any]:
    return {
        "concept": turn.concept,
        "base": turn.base,
        "convention": turn.convention,
        "a": turn.a,
        "b": turn.b,
        "base_difference": turn.base_difference,
        "difference": turn.difference,
        "causes": [
            {
                "rules": [
                    {"name": rule.name, turn.base: rule.base, turn.convention: rule.other}
                    for rule in cause.rules
                ],
                "n_queries": cause.n_queries,
                "queries": {weight.query_id: weight.change for weight in cause.queries},
            }
            for cause in turn.causes
        ],
    }
