"""The tables that only the page has: systems in rows, which a reader can sort, by quality and by
cost; what the figures rest on; and the runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrieval_bench.comparison.comparison import Comparison, DatasetComparison
from retrieval_bench.comparison.holm import QUALITY_ALPHA
from retrieval_bench.comparison.slices import FEW, Slice, Slicing
from retrieval_bench.comparison.speed import TYPICAL
from retrieval_bench.comparison.verdicts import Delta
from retrieval_bench.core.errors import counted
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
from retrieval_bench.metrics.conventions import CONVENTIONS
from retrieval_bench.reports.render.table import Marked, NoteKind, Table, kind_of
from retrieval_bench.reports.tables.difference_cells import (
    DifferenceCells,
    answered_rows,
    most_telling,
)
from retrieval_bench.reports.tables.latency import latency_tables, ratio_interval, ratio_text
from retrieval_bench.reports.tables.letters import letter, marks
from retrieval_bench.reports.tables.run_facts import latency_of, levels
from retrieval_bench.runs.evaluation import Mean
from retrieval_bench.runs.run import Run, relative_folder
from retrieval_bench.stats.resampling import EXACT_ROWS

PAIRS_ON_PAGE = 66
"""Of twelve systems all, of more those of the best one."""

_FASTER = {Verdict.BETTER: "faster", Verdict.WORSE: "slower", Verdict.MISSING: "no times"}


def quality_table(comparison: Comparison, group: DatasetComparison) -> Table:
    """Systems in rows, the best by the first metric first; metrics in columns."""
    place = {name: at for at, name in enumerate(comparison.names)}
    beaten = {metric: group.beaten(metric) for metric in group.metrics}
    judged = list(dict.fromkeys(name for run in group.runs for name in run.evaluation.judged))

    def cell(name: str, metric: Metric) -> str:
        mean = group.mean(name, metric)
        if math.isnan(mean):
            return "-"
        places = [place[group.names[at]] for at in beaten[metric][name]]
        return Marked(quality_text(mean), marks(sorted(places), len(place)))

    rows = []
    for name, run in by_quality(group):
        shares = [quality_text(run.evaluation.judged.get(share)) for share in judged]
        rows.append(
            [
                name,
                letter(place[name], len(place)),
                *(cell(name, metric) for metric in group.metrics),
                *shares,
            ]
        )
        ends = [interval_of(run.evaluation.mean(m).ci95, short_quality) for m in group.metrics]
        rows.append(["", "", *ends, *("" for _ in judged)])
    return Table(
        f"Quality on {group.dataset}: means over {_queries(group)} and their 95 % intervals",
        ["system", "", *map(str, group.metrics), *judged],
        rows,
        words=(0, 1),
    )


def cost_table(group: DatasetComparison) -> Table:
    """Systems in rows: times of a call, throughput, and what the index takes."""
    names = list(dict.fromkeys(level for run in group.runs for level in levels(latency_of(run))))
    failed = any(run.summary.get("n_failed") for run in group.runs)
    stalls = any(latency_of(run).get("stalls") for run in group.runs)
    rows = []
    for name, run in by_quality(group):
        latency, index = latency_of(run), run.summary.get("index", {})
        entries = [latency.get(level, {}) for level in names]
        mean = latency.get("mean")
        rows.append(
            [
                name,
                *(ms_text(entry.get("value")) for entry in entries),
                "-" if not mean else _three(1000 / mean),
                f"{latency.get('n', 0):,}",
                *([f"{latency.get('stalls') or 0:,}"] if stalls else []),
                *([f"{run.summary.get('n_failed', 0):,}"] if failed else []),
                seconds_text(index.get("seconds")),
                _megabytes(index.get("peak_rss_bytes")),
                _megabytes(index.get("disk_bytes")),
            ]
        )
        ends = [interval_of(entry.get("ci95"), short_ms) for entry in entries]
        rows.append(["", *ends, *("" for _ in rows[-1][len(ends) + 1 :])])
    return Table(
        f"Cost on {group.dataset}: time of a call, throughput, index",
        [
            "system",
            *(f"{level} ms" for level in names),
            "calls/s",
            "calls",
            *(["stalls"] if stalls else []),
            *(["failed"] if failed else []),
            "index s",
            "memory MB",
            "disk MB",
        ],
        rows,
        notes=[
            "calls/s: one call at a time, 1000 / mean ms; no load test",
            "memory MB: highest of the process so far, with all that was loaded before",
            "disk MB: what the retriever keeps; MB = 10^6 bytes; -: not known, or too few calls",
        ],
    )


def differences_wide(
    comparison: Comparison, group: DatasetComparison, metric: Metric, most: int = PAIRS_ON_PAGE
) -> Table:
    """The pairs of one metric with their verdicts; of more than ``most`` those of the best system
    by the first metric."""
    deltas = group.of(metric)
    best_first = [name for name, _ in by_quality(group)]
    shown = most_telling(deltas, best_first, baseline=comparison.baseline, most=most)
    tests = sorted({name for delta in deltas for name in delta.tests})
    rows = [row for delta in shown for row in _difference_rows(delta, tests)]
    tested = sum(delta.p is not None for delta in deltas)
    exact = bool(tested) and max(delta.n for delta in deltas) <= EXACT_ROWS
    how = "all sign patterns" if exact else f"{group.resamples:,} resamples"
    notes = [
        "b − a, with its 95 % bootstrap interval; the verdict speaks of b",
        "d: mean difference over the standard deviation of the differences",
        f"p: paired randomisation test ({how}), Holm over {counted(tested, 'pair')} of this metric",
        f"equivalent, small: shown to differ by less than {comparison.margin:g}",
        "in brackets: further queries that would decide it with 80 % power",
    ]
    if len(shown) < len(deltas):
        one = comparison.baseline or best_first[0]
        left_out = f"{len(deltas) - len(shown):,} more pairs, without {one}, are not in this table"
        notes.append(f"{left_out}; compare --format json has all")
    return Table(
        f"Paired differences in {metric} on {group.dataset}",
        [
            "b − a",
            "difference",
            "d",
            *("won", "tied", "lost", "p (Holm)"),
            *(f"p ({name})" for name in tests),
            "verdict",
        ],
        rows,
        notes=notes,
        words=(0, 7 + len(tests)),
    )


def _difference_rows(delta: Delta, tests: Sequence[str]) -> list[list[str]]:
    cells = DifferenceCells.of(delta, tests)
    remark = ""
    if delta.difference is None:
        remark = delta.reason
    elif delta.rests_on_failures:
        remark = "(rests on failures)"
    elif delta.queries_needed is not None:
        remark = f"({counted(delta.queries_needed, 'query')} more for {delta.needed_for})"
    elif delta.small:
        remark = "(small)"
    return [
        [
            f"{delta.b} − {delta.a}",
            cells.difference,
            cells.effect,
            *cells.counts,
            cells.p,
            *cells.tests,
            delta.verdict.value,
        ],
        [
            "",
            interval_of(delta.ci95, lambda value: f"{value:+.3f}"),
            *([""] * (5 + len(tests))),
            remark,
        ],
        *(answered_rows(delta.answered, 5 + len(tests)) if delta.answered is not None else ()),
    ]


def speed_table(group: DatasetComparison) -> Table:
    """Which system is faster, pair by pair; of very many pairs those of the best system.

    A percentile that no pair has a verdict on is told in a note and fills no rows.
    """
    best = by_quality(group)[0][0]
    told = {d.what for d in group.latency if d.ratio is not None} or {TYPICAL}
    deltas = [
        delta
        for delta in group.latency
        if delta.what in told
        and (len(group.latency) <= 2 * PAIRS_ON_PAGE or best in (delta.a, delta.b))
    ]
    rows = [
        [
            f"{delta.b} / {delta.a}",
            delta.what,
            ratio_text(delta) or "-",
            ratio_interval(delta) or "-",
            _FASTER.get(delta.verdict, delta.verdict.value),
        ]
        for delta in deltas
    ]
    notes = [note for table in latency_tables(group.latency) for note in table.notes]
    return Table(
        f"Which is faster on {group.dataset}",
        ["b / a", "calls", "time", "98 % interval", "verdict"],
        rows,
        notes=[note for note in notes if kind_of(note) is not NoteKind.MORE],
        words=(0, 1, 4),
    )


def slice_tables_wide(slicing: Slicing) -> list[Table]:
    """Means of the first metric on every slice, and differences from the baseline; one column for
    each system."""
    metric, parts = slicing.metrics[0], (slicing.whole, *slicing.slices)
    others = list(slicing.whole.differences)
    tables = [
        _slice_table(
            f"{metric} by {slicing.what} on {slicing.dataset}",
            slicing.systems,
            [(one, one.means, quality_text) for one in parts],
        )
    ]
    if others:
        tables.append(
            _slice_table(
                f"Difference in {metric} from {slicing.baseline}, by {slicing.what}",
                others,
                [(one, one.differences, signed) for one in parts],
            )
        )
    return tables


def _slice_table(
    title: str,
    systems: Sequence[str],
    parts: Sequence[tuple[Slice, Mapping[str, tuple[Mean, ...]], Callable[[float], str]]],
) -> Table:
    rows = []
    for one, of_systems, form in parts:
        means = [of_systems[name][0] for name in systems]
        rows.append(
            [one.label, f"{one.n:,}{'*' * (one.n < FEW)}", *(form(mean.mean) for mean in means)]
        )
        rows.append(["", "", *(interval_of(mean.ci95, short_quality) for mean in means)])
    return Table(title, ["queries", "n", *systems], rows, rules=[2])


def by_quality(group: DatasetComparison) -> list[tuple[str, Run]]:
    """The systems, the best by the first metric first."""
    return group.ranked(group.metrics[0])


def rules_table(comparison: Comparison) -> Table:
    """What the figures rest on, dataset by dataset."""
    facts = {group.dataset: _rules(comparison, group) for group in comparison.groups}
    names = dict.fromkeys(name for of_group in facts.values() for name in of_group)
    return Table(
        "Data, conventions and tests",
        ["", *facts],
        [[name, *(of_group.get(name, "-") for of_group in facts.values())] for name in names],
        words=tuple(range(len(facts) + 1)),
    )


def _rules(comparison: Comparison, group: DatasetComparison) -> dict[str, str]:
    summaries = [run.summary for run in group.runs]

    def all_of(values: Sequence[Any]) -> str:
        return " / ".join(dict.fromkeys(str(value) for value in values))

    def data(name: str) -> str:
        return all_of([summary["dataset"].get(name, "?") for summary in summaries])

    used = list(dict.fromkeys(summary.get("convention", "?") for summary in summaries))
    sources = [f"{name} ({CONVENTIONS[name].source})" for name in used if name in CONVENTIONS]
    return {
        "split": data("split"),
        "documents": data("n_documents"),
        "evaluated queries": data("n_queries"),
        "queries that need no search": data("n_unanswerable"),
        "fingerprint": data("fingerprint"),
        "hits per query (k)": all_of([summary.get("k", "?") for summary in summaries]),
        "convention": " / ".join(sources or map(str, used)),
        "ties": all_of([summary.get("tie_rule", "?") for summary in summaries]),
        "version of the metrics": all_of([s.get("metrics_version", "?") for s in summaries]),
        "intervals of means": "95 %, percentile bootstrap over queries",
        "test": f"paired randomisation, {_patterns(group)}, two-sided",
        "family (Holm)": "the pairs of one metric on one dataset",
        "level": f"{QUALITY_ALPHA:g}",
        "margin of equivalence": f"{comparison.margin:g}",
        "compared": (
            "every pair" if comparison.baseline is None else f"all with {comparison.baseline}"
        ),
    }


def _patterns(group: DatasetComparison) -> str:
    """How many sign patterns the test looks at."""
    tested = [delta.n for delta in group.deltas if delta.p is not None]
    if tested and max(tested) <= EXACT_ROWS:
        return "all sign patterns"
    return f"{group.resamples:,} resamples"


def runs_table(comparison: Comparison) -> Table:
    """Which runs the page is made from."""
    rows = []
    for group in comparison.groups:
        for name, run in zip(group.names, group.runs, strict=True):
            git = run.manifest.get("environment", {}).get("git") or {}
            retriever = run.manifest.get("retriever", {})
            rows.append(
                [
                    name,
                    group.dataset,
                    str(run.summary.get("status", "?")),
                    str(run.manifest.get("created", "?"))[:16].replace("T", " "),
                    str(retriever.get("hash") or "-"),
                    str(git.get("commit") or "-")[:12] if isinstance(git, dict) else "-",
                    relative_folder(run),
                ]
            )
    return Table(
        "Runs",
        ["system", "dataset", "status", "made (UTC)", "configuration", "revision", "folder"],
        rows,
        words=tuple(range(7)),
    )


def _queries(group: DatasetComparison) -> str:
    counts = sorted({run.evaluation.means[0].n for run in group.runs})
    return f"{' to '.join(f'{n:,}' for n in dict.fromkeys((counts[0], counts[-1])))} queries"


def _megabytes(found: Any) -> str:
    if not found:
        return "-"
    value = found / 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def _three(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
