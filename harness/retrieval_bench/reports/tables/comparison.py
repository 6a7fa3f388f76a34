"""What is shown of a comparison: systems side by side, paired differences with verdicts, systems
over several datasets, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from retrieval_bench.comparison.comparison import Comparison, DatasetComparison
from retrieval_bench.comparison.recommendation import Recommendation, recommend
from retrieval_bench.comparison.slices import Slicing
from retrieval_bench.comparison.speed import timed_differently, timed_together
from retrieval_bench.comparison.verdicts import Delta
from retrieval_bench.core.figures import (
    interval_of,
    ms_text,
    quality_text,
    seconds_text,
    short_ms,
    short_quality,
    signed,
)
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.reports.render.table import Marked, Note, NoteKind, Table, kind_of
from retrieval_bench.reports.tables.board import board_tables
from retrieval_bench.reports.tables.difference_cells import (
    DifferenceCells,
    answered_rows,
    most_telling,
)
from retrieval_bench.reports.tables.latency import latency_tables
from retrieval_bench.reports.tables.letters import letter, marks, meaning
from retrieval_bench.reports.tables.run_facts import (
    latency_of,
    levels,
    measured_on,
    shown_warnings,
    title_of,
    unanswerable,
    unsupported,
)
from retrieval_bench.reports.tables.slice import slice_tables
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.resampling import EXACT_ROWS

SYSTEMS_PER_TABLE = 4
"""As many as fit beside each other in 80 columns; more of them stand below each other."""

METRICS_PER_TABLE = 5

LONGEST_PAIR = 16
"""Letters of two names that stand beside each other; longer ones stand below each other."""

PAIRS_IN_TABLE = 20
"""In the table of differences; the JSON document has all."""


def comparison_tables(
    comparison: Comparison, slicings: Sequence[Slicing] = (), *, wide: bool = False
) -> list[Table]:
    """For each dataset the systems side by side and the paired differences of the first metric;
    then slices, systems over datasets, and the answer.

    Args:
        wide: a pair is one row, and a column one figure, for those who read on with a program.
    """
    tables = [
        table for group in comparison.groups for table in _group_tables(comparison, group, wide)
    ]
    tables += slice_tables(slicings)
    if len(comparison.groups) > 1:
        tables += board_tables(comparison)
    return [*tables, *map(answer_table, recommend(comparison))]


def _group_tables(comparison: Comparison, group: DatasetComparison, wide: bool) -> list[Table]:
    differences = wide_differences_table if wide else differences_table
    return [
        *systems_tables(comparison, group),
        *(differences(comparison, group, group.metrics[0]) for _ in [0] if group.deltas),
        *(
            replace(table, title=f"{table.title}, on {group.dataset}")
            for table in latency_tables(group.latency)
        ),
    ]


def systems_tables(comparison: Comparison, group: DatasetComparison) -> list[Table]:
    """Means, times and costs of every system of one dataset, and what was measured how."""
    shown = _Systems(comparison, group)
    if len(group.names) <= SYSTEMS_PER_TABLE:
        tables = [shown.side_by_side()]
    else:
        tables = [shown.ranked(), *shown.metrics_of_many()]
    warnings = (Note(f"warning: {text}", NoteKind.WARNING) for text in group.warnings)
    notes = [*_comparison_notes(group), *warnings]
    if any(group.beaten(metric)[name] for metric in group.metrics for name in group.names):
        what = meaning(len(comparison.names))
        how = "(p < .05, with Holm over the pairs of each metric by itself)"
        notes.insert(0, Note(f"{what} {how}", NoteKind.LEGEND))
    tables[-1] = replace(tables[-1], notes=[*tables[-1].notes, *notes])
    return tables


class _Systems:
    """The systems of one dataset, in columns or in rows."""

    def __init__(self, comparison: Comparison, group: DatasetComparison) -> None:
        self._group = group
        self._place = {name: at for at, name in enumerate(comparison.names)}
        self._beaten = {metric: group.beaten(metric) for metric in group.metrics}
        self._letters = {name: letter(at, len(self._place)) for name, at in self._place.items()}

    def side_by_side(self) -> Table:
        """Systems in columns, intervals below the figures."""
        rows: list[list[str]] = []
        runs = self._group.runs
        for metric in self._group.metrics:
            means = [run.evaluation.mean(metric) for run in runs]
            rows.append([str(metric), *(self._marked(metric, name) for name in self._group.names)])
            rows.append(["", *(interval_of(mean.ci95, short_quality) for mean in means)])
        judged = dict.fromkeys(name for run in runs for name in run.evaluation.judged)
        rows += [
            [name, *(quality_text(run.evaluation.judged.get(name)) for run in runs)]
            for name in judged
        ]
        rules = [len(rows)]
        for level in dict.fromkeys(level for run in runs for level in levels(latency_of(run))):
            entries = [latency_of(run).get(level, {}) for run in runs]
            rows.append([f"{level} ms", *(ms_text(entry.get("value")) for entry in entries)])
            if any(entry.get("ci95") for entry in entries):
                rows.append(["", *(interval_of(entry.get("ci95"), short_ms) for entry in entries)])
        rules.append(len(rows))
        costs = ((n, f) for n, f in _COSTS.items() if n == "index s" or any(map(f, runs)))
        rows += [[name, *(cost(run) for run in runs)] for name, cost in costs]
        rows += [[name, *map(fact, runs)] for name, fact in self._different()]
        return Table(
            title_of([run.summary for run in runs], " / ".join(self._group.names)),
            ["", *map(self._headed, self._group.names)],
            rows,
            rules,
        )

    def ranked(self) -> Table:
        """Systems in rows by the first metric, with times and costs."""
        metric = self._group.metrics[0]
        facts = self._different()
        if any(run.summary.get("n_failed") for run in self._group.runs):
            facts.append(("failed", _COSTS["failed"]))
        columns = ["", "system", str(metric), "95 % interval", "p50 ms", "p95 ms", "index s"]
        rows = [
            [
                self._letters[name],
                name,
                self._marked(metric, name),
                interval_of(run.evaluation.mean(metric).ci95, short_quality),
                *(ms_text(latency_of(run).get(level, {}).get("value")) for level in ("p50", "p95")),
                _COSTS["index s"](run),
                *(fact(run) for _, fact in facts),
            ]
            for name, run in self._group.ranked(metric)
        ]
        return Table(
            title_of([run.summary for run in self._group.runs], f"{len(rows)} systems"),
            [*columns, *(name for name, _ in facts)],
            rows,
            words=(0, 1),
        )

    def metrics_of_many(self) -> list[Table]:
        """Systems in rows, every metric in a column."""
        metrics = self._group.metrics
        return [
            Table(
                f"Every metric on {self._group.dataset}",
                ["", "system", *map(str, metrics[start : start + METRICS_PER_TABLE])],
                [
                    [
                        self._letters[name],
                        name,
                        *(
                            self._marked(metric, name, short_quality)
                            for metric in metrics[start : start + METRICS_PER_TABLE]
                        ),
                    ]
                    for name, _ in self._group.ranked(metrics[0])
                ],
                words=(0, 1),
            )
            for start in range(0, len(metrics), METRICS_PER_TABLE)
        ]

    def _headed(self, name: str) -> str:
        return f"{name} ({self._letters[name]})"

    def _marked(
        self, metric: Metric, name: str, form: Callable[[float], str] = quality_text
    ) -> str:
        mean = self._group.mean(name, metric)
        if np.isnan(mean):
            return "-"
        names = self._group.names
        places = [self._place[names[at]] for at in self._beaten[metric][name]]
        return Marked(form(mean), marks(sorted(places), len(self._place)))

    def _different(self) -> list[tuple[str, Callable[[Run], str]]]:
        """Facts that are worth a row only where systems differ in them."""
        return [
            (name, fact)
            for name, fact in _TOLD_WHERE_DIFFERENT.items()
            if len({fact(run) for run in self._group.runs}) > 1
        ]


def differences_table(comparison: Comparison, group: DatasetComparison, metric: Metric) -> Table:
    """The pairs of one metric on one dataset: the family that Holm corrects together."""
    deltas = group.of(metric)
    best_first = [name for name, _ in group.ranked(metric)]
    telling = most_telling(deltas, best_first, baseline=comparison.baseline, most=PAIRS_IN_TABLE)
    shown = telling[:PAIRS_IN_TABLE]
    tests = sorted({name for delta in deltas for name in delta.tests})
    split = any(len(delta.a) + len(delta.b) > LONGEST_PAIR for delta in shown)
    rows = [row for delta in shown for row in _difference_rows(delta, tests, split)]
    notes = [
        (
            "difference: the first named minus the second, below it the 95 % bootstrap interval; "
            "the verdict speaks of the first"
        ),
        "d: mean difference over the standard deviation, below it the queries won/tied/lost",
    ]
    notes += _test_notes(comparison, group, deltas, shown, tests)
    if any(delta.queries_needed is not None for delta in shown):
        notes.append("~n more: queries that would decide it with 80 % power")
    if len(shown) < len(deltas):
        text = f"{len(deltas) - len(shown):,} more pairs: --format json has all"
        notes.append(Note(text, NoteKind.MORE))
    return Table(
        f"Paired differences in {metric} on {group.dataset}",
        ["", "difference", "d, W/T/L", "p (Holm)", *[", ".join(tests)][: len(tests)], "verdict"],
        rows,
        (),
        notes,
        words=(0, 5 if tests else 4),
    )


def _test_notes(
    comparison: Comparison,
    group: DatasetComparison,
    deltas: Sequence[Delta],
    shown: Sequence[Delta],
    tests: Sequence[str] = (),
) -> list[str]:
    """How the pairs of one metric were tested, and what the verdicts of those ``shown`` mean.

    Args:
        tests: further ones that stand in one cell.
    """
    tested = [delta for delta in deltas if delta.p is not None]
    exact = bool(tested) and max(delta.n for delta in tested) <= EXACT_ROWS
    how = "all sign patterns" if exact else f"{group.resamples:,} resamples"
    family = "the pair" if len(tested) == 1 else f"the {len(tested):,} pairs"
    notes = []
    if tested:
        notes.append(
            f"p: paired randomisation test ({how}), Holm over {family} of this metric and dataset"
        )
    if tests:
        which = "of that test" if len(tests) == 1 else "of these tests, below each other"
        notes.append(f"{', '.join(tests)}: p {which}, Holm likewise")
    said = {delta.verdict for delta in shown}
    if Verdict.EQUIVALENT in said or any(delta.within_margin for delta in shown):
        notes.append(
            f"equivalent, small: shown to differ by less than {comparison.margin:g} (two one-sided "
            "tests, Holm)"
        )
    if any(delta.answered is not None for delta in shown):
        notes.append(
            "both answered: the same without the queries that failed on either side; where that "
            "changes the verdict, the verdict rests on failures and is undecided"
        )
    return notes


def wide_differences_table(
    comparison: Comparison, group: DatasetComparison, metric: Metric
) -> Table:
    """As :func:`differences_table`, a row for each pair and a column for each figure; all pairs."""
    deltas = group.of(metric)
    tests = sorted({name for delta in deltas for name in delta.tests})
    failed = any(delta.answered is not None for delta in deltas)
    columns = [
        "pair", "difference", "low", "high", "d", "won", "tied", "lost", "p (Holm)",
        *(f"p {name} (Holm)" for name in tests),
        *(("both answered", "difference there", "low there", "high there") if failed else ()),
        "verdict", "more queries",
    ]  # fmt: skip
    explained = differences_table(comparison, group, metric)
    notes = [
        (
            "difference: the first named minus the second, low and high: its 95 % bootstrap "
            "interval; the verdict speaks of the first"
        ),
        "d: mean difference over the standard deviation; won, tied, lost: queries",
        *_test_notes(comparison, group, deltas, deltas),
        "more queries: so many more would decide it with 80 % power",
    ]
    rows = [_wide_row(delta, tests, failed=failed) for delta in deltas]
    return Table(explained.title, columns, rows, (), notes, words=(0, len(columns) - 2))


def _wide_row(delta: Delta, tests: Sequence[str], *, failed: bool) -> list[str]:
    cells = DifferenceCells.of(delta, tests, nothing="")
    low, high = map(signed, delta.ci95) if delta.ci95 else ("", "")
    verdict = delta.verdict.value + (", small" if delta.small else "")
    there = ["", "", "", ""] if failed else []
    if (answered := delta.answered) is not None:
        ends = map(signed, answered.ci95) if answered.ci95 else ("", "")
        difference = "" if answered.difference is None else signed(answered.difference)
        there = [f"{answered.n:,}", difference, *ends]
    return [
        f"{delta.b} - {delta.a}",
        cells.difference,
        low,
        high,
        cells.effect,
        *cells.counts,
        cells.p,
        *cells.tests,
        *there,
        f"{verdict} ({delta.reason})" if delta.reason else verdict,
        "" if delta.queries_needed is None else f"{delta.queries_needed:,}",
    ]


def _difference_rows(delta: Delta, tests: Sequence[str], split: bool) -> list[list[str]]:
    """Two lines: what is shown, and its interval, its queries and its remark below it."""
    cells = DifferenceCells.of(delta, tests)
    pair = (delta.b, f"- {delta.a}") if split else (f"{delta.b} - {delta.a}", "")
    further = cells.tests if delta.difference is not None else ()
    more = [[cell] for cell in [*further, "", ""][:2]] if tests else [[], []]
    below = ""
    if delta.difference is None:
        below = f"({delta.reason})"
    elif delta.rests_on_failures:
        below = "rests on failures"
    elif delta.queries_needed is not None:
        below = f"~{delta.queries_needed:,} more"
    elif delta.small:
        below = "small"
    rows = [
        [pair[0], cells.difference, cells.effect, cells.p, *more[0], delta.verdict.value],
        [
            pair[1],
            interval_of(delta.ci95, lambda value: f"{value:+.3f}"),
            "" if delta.difference is None else "/".join(cells.counts),
            "",
            *more[1],
            below,
        ],
    ]
    if delta.answered is not None:
        rows += answered_rows(delta.answered, 2 + len(more[0]))
    return rows


def answer_table(found: Recommendation) -> Table:
    """The answer: a sentence, and what it rests on."""
    return Table(found.sentence, (), (), notes=found.reasons)


def _status(run: Run) -> str:
    return "PARTIAL" if run.summary.get("status") == "partial" else "complete"


def _threads(run: Run) -> str:
    return str(run.manifest.get("environment", {}).get("threads", "?"))


_TOLD_WHERE_DIFFERENT: Mapping[str, Callable[[Run], str]] = {
    "status": _status,
    "k": lambda run: str(run.summary.get("k", "?")),
    "threads": _threads,
    "rounds": lambda run: str(latency_of(run).get("rounds", "?")),
}


def _needless(run: Run) -> str:
    n, hits = unanswerable(run.summary)
    return f"{hits} of {n}" if n else ""


def _number(n: int) -> str:
    return f"{n:,}" if n else ""


_COSTS: Mapping[str, Callable[[Run], str]] = {
    "index s": lambda run: seconds_text(run.summary.get("index", {}).get("seconds")),
    "calls": lambda run: f"{latency_of(run).get('n', 0):,}",
    "stalls": lambda run: _number(latency_of(run).get("stalls") or 0),
    "failed": lambda run: _number(run.summary.get("n_failed", 0)),
    "needless": _needless,
}


def _comparison_notes(group: DatasetComparison) -> list[str]:
    runs, pairs = group.runs, list(zip(group.names, group.runs, strict=True))
    data = {
        (facts["fingerprint"], facts["split"]): f"{facts['name']} ({facts['split']})"
        for facts in (run.summary["dataset"] for run in runs)
    }
    if len(data) > 1:
        what = "datasets or splits"
        named = ", ".join(data.values())
        text = f"NOT COMPARABLE: these runs are on {len(data)} {what}: {named}"
        return [Note(text, NoteKind.WARNING)]
    notes = [
        "quality: mean over queries, percentile-bootstrap interval; latency: all measured calls",
        *_said(measured_on, pairs),
        _how_timed(runs),
    ]
    in_columns = len(runs) <= SYSTEMS_PER_TABLE
    if in_columns and any(latency_of(run).get("stalls") for run in runs):
        notes.append(
            "stalls: calls far slower than their query usually is; they are in all figures"
        )
    if in_columns and any(unanswerable(run.summary)[0] for run in runs):
        notes.append("needless: queries that need no search and got hits (not in the means)")
    return [
        *notes,
        *_said(lambda run: unsupported(run.summary), pairs),
        *_said(lambda run: run.summary.get("health", ()), pairs, "health"),
        *_said(_warnings_of, pairs, "warning"),
    ]


def _warnings_of(run: Run) -> list[str]:
    return [Note(text, NoteKind.WARNING) for text in shown_warnings(run.summary)]


def _how_timed(runs: Sequence[Run]) -> str:
    different = timed_differently(runs)
    if different:
        return Note(f"times: {different}, NOT COMPARABLE", NoteKind.WARNING)
    if not timed_together(runs):
        text = "times: measured at different times, a difference may be the machine's"
        return Note(text, NoteKind.WARNING)
    return "times: measured together, alternating query by query"


def _said(
    sentences_of: Callable[[Run], Sequence[str]], pairs: Sequence[tuple[str, Run]], label: str = ""
) -> list[str]:
    """What runs say, each sentence once, behind the names of those that say it, if not all do."""
    speakers: dict[str, list[str]] = {}
    for name, run in pairs:
        for sentence in dict.fromkeys(sentences_of(run)):
            speakers.setdefault(sentence, []).append(name)
    notes: list[str] = []
    for sentence, names in speakers.items():
        start, who = label, "" if len(names) == len(pairs) else ", ".join(names)
        if who:
            start = f"{label} ({who})" if label else who
        text = f"{start}: {sentence}" if start else sentence
        notes.append(Note(text, kind_of(sentence)))
    return notes
