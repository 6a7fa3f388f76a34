"""Scoring a run, beside pytrec_eval and ranx on the same run in the same process."""

from __future__ import annotations

from collections.abc import Callable

from tests.benchmarks import scoring_alone
from tests.benchmarks.report import Group, Options, Row
from tests.benchmarks.scoring_sides import HITS, METRICS, N_DOCUMENTS, Sides
from tests.benchmarks.timing import middle, race

JUDGED = 20
POOLED = 200

_RACES: tuple[tuple[str, str, float, str, float], ...] = (
    ("join and metrics", "ours", 1 / 3, "", 1 / 3),
    ("metrics only", "metrics_only", 1 / 5, "", 1 / 5),
    ("judgements, join, metrics", "ours_and_judgements", 1 / 3, "_and_judgements", 1 / 3),
    ("all from dictionaries", "ours_from_dictionaries", 1, "_from_dictionaries", 1 / 20),
)
"""What, our side, target beside pytrec_eval, the others' side, target beside ranx."""

_EVERY = 3


def measure(options: Options) -> Group:
    """Rows for few judgements and for many, for a large run and for a first call."""
    n_queries, turns = (100, 1) if options.quick else (5_000, 9)
    rows: list[Row] = []
    compiled, difference = 0.0, 0.0
    for n_judged in (JUDGED, POOLED):
        sides = Sides(n_queries, n_judged)
        compiled = max(compiled, sides.ranx_first_call)
        difference = max(difference, sides.largest_difference())
        rows += _rows(sides, n_judged, turns)
    alone, notes = scoring_alone.measure(options)
    return Group(
        f"Scoring {n_queries:,} queries x {HITS} hits, {len(METRICS)} metrics",
        [*rows, Row("ranx: its first call, which compiles", compiled, "s"), *alone],
        [
            (
                f"medians of {turns} turns in one process, of every {_EVERY}rd turn where ranx "
                "starts from dictionaries; ranx has compiled and uses all cores, the others one"
            ),
            (
                f"{N_DOCUMENTS:,} documents; a third of the judgements are of hits; runs in order "
                f"of score; metrics {', '.join(METRICS)}"
            ),
            (
                "join and metrics: ours from a run's arrays and Judgements, theirs by evaluate() "
                "from what they make of dictionaries, all made before"
            ),
            "metrics only: ours from what is joined before, theirs by evaluate() as above",
            (
                "judgements, join, metrics: with Judgements, RelevanceEvaluator or Qrels made each "
                "time; all from dictionaries: with ranx's Run as well"
            ),
            f"largest difference of any value of any query: {difference:.1e}",
            *notes,
        ],
    )


def _rows(sides: Sides, n_judged: int, turns: int) -> list[Row]:
    """All races on one run."""
    contenders: dict[str, Callable[[int], object]] = {
        "ours": lambda _: sides.ours(),
        "metrics_only": lambda _: sides.metrics_only(),
        "ours_and_judgements": lambda _: sides.ours_and_judgements(),
        "ours_from_dictionaries": lambda _: sides.ours_from_dictionaries(),
        "pytrec": lambda _: sides.pytrec(),
        "pytrec_from_dictionaries": lambda _: sides.pytrec_from_dictionaries(),
        "ranx": lambda _: sides.ranx(),
        "ranx_and_judgements": lambda _: sides.ranx_and_judgements(),
        "ranx_from_dictionaries": lambda _: sides.ranx_from_dictionaries(),
    }
    slow = {"ranx_and_judgements": _EVERY, "ranx_from_dictionaries": _EVERY}
    time = {name: middle(walls) for name, walls in race(contenders, turns, slow).items()}
    rows: list[Row] = []
    for what, ours, beside_pytrec, others, beside_ranx in _RACES:
        # pytrec_eval's run is the dictionary itself: from there on its two last cases are one.
        pytrec = time["pytrec_from_dictionaries" if others else "pytrec"]
        ranx = time[f"ranx{others}"]
        label = f"{what}; {n_judged} judged"
        rows += [
            Row(label, time[ours], "s", pytrec, "pytrec_eval", at_most=beside_pytrec),
            Row(label, time[ours], "s", ranx, "ranx", at_most=beside_ranx),
        ]
    return rows
