"""Tables of a comparison: systems side by side, paired differences with verdicts, times, and
the answer. Every format and the page show these tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from retrieval_bench.capabilities import service
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison, Recommendation
from retrieval_bench.comparison.pairs.both_answered import Answered
from retrieval_bench.comparison.pairs.comparability import other_settings
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.speed import timed_differently, timed_together
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import about
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.reports.render.cells import (
    COUNT,
    DIFFERENCE,
    EFFECT,
    MEGABYTES,
    MILLISECONDS,
    QUALITY,
    RATE,
    SECONDS,
    SHORT_DIFFERENCE,
    TIMES,
    Cell,
    Content,
    P,
)
from retrieval_bench.reports.render.table import (
    AnyNote,
    Note,
    NoteKind,
    Table,
    kind_of,
    result,
    text_of,
    warning,
)
from retrieval_bench.reports.render.words import (
    bound_remark,
    letter,
    marks,
    meaning,
    metric_label,
    on_dataset,
    quoting,
    unit_note,
    verdict_label,
)
from retrieval_bench.reports.tables.run_facts import (
    measured_on,
    of_one_run,
    origin_of,
    replayed,
    unsupported,
)
from retrieval_bench.reports.tables.understand.speed import speed_tables
from retrieval_bench.reports.tables.usage import AMOUNT, money_of, tokens_of
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.randomization import EXACT_ROWS

PAIRS_SHOWN = 66
"""Of twelve systems all, of more those of the best one; the JSON document has all."""


def comparison_tables(
    comparison: Comparison, further: Sequence[Table] = (), *, letters: bool = False
) -> list[Table]:
    """The answer; for each dataset quality, costs and the paired differences of the first metric;
    then ``further`` ones, and systems over datasets.

    Args:
        letters: mark each mean with the systems that it is significantly better than.
    """
    answers = zip(comparison.recommendations, comparison.groups, strict=True)
    tables = [answer_table(answer, group) for answer, group in answers]
    for group in comparison.groups:
        tables += [
            *(
                [quality_table(comparison, group, letters=letters)]
                if group.judged
                else service("show how alike runs answer")(group)
            ),
            cost_table(group).with_notes(how_measured(group)),
            *([differences_table(comparison, group, group.metrics[0])] if group.deltas else []),
            *speed_tables(group),
            *kinds_tables(group),
        ]
    return [*tables, *further, *(board_tables(comparison) if len(comparison.judged) > 1 else [])]


def answer_table(recommendation: Recommendation, group: DatasetComparison) -> Table:
    """The answer: a sentence, what it rests on, and what it saved to ask no more than needed."""
    saved = [group.sentence] if group.sentence else []
    notes = list(map(result, [*saved, *recommendation.reasons]))
    return Table(recommendation.sentence, (), (), notes=notes)


def quality_table(
    comparison: Comparison, group: DatasetComparison, *, letters: bool = False
) -> Table:
    """Systems in rows, the best by the first metric first; metrics in columns."""
    names = comparison.names
    place = {name: at for at, name in enumerate(names)}
    beaten = {metric: group.beaten(metric) for metric in group.metrics}
    judged = list(dict.fromkeys(name for run in group.runs for name in run.evaluation.judged))

    def cell(name: str, run: Run, metric: Metric) -> Cell:
        mean = run.evaluation.mean(metric)
        places = sorted(place[group.names[at]] for at in beaten[metric][name])
        return QUALITY(mean.mean, mean.ci95, marks(places, len(names)) if letters else "")

    rows: list[list[Content]] = [
        [
            f"{name} ({letter(place[name], len(names))})" if letters else name,
            *(cell(name, run, metric) for metric in group.metrics),
            *(QUALITY(run.evaluation.judged.get(share)) for share in judged),
        ]
        for name, run in group.ranked(group.metrics[0])
    ]
    notes: list[AnyNote] = [warning(text) for text in group.warnings]
    if letters and any(any(of_metric.values()) for of_metric in beaten.values()):
        notes.append(Note(meaning(len(names)), NoteKind.LEGEND))
    return Table(
        f"Quality {on_dataset(group.dataset)}: means over {queries_of(group)}"
        + (", with 95 % intervals" if group.means_have_intervals else ""),
        ["system", *map(metric_label, group.metrics), *judged],
        rows,
        notes=notes,
    )


def board_tables(comparison: Comparison) -> list[Table]:
    """Systems over datasets, by the first metric that all datasets have; none without one."""
    shared = [m for m in comparison.metrics if all(m in g.metrics for g in comparison.judged)]
    if not shared:
        return []
    board = comparison.board(shared[0])
    rows: list[list[Content]] = [
        [name, *map(QUALITY, means), QUALITY(average)]
        for name, means, average in zip(
            board.systems, board.means.tolist(), board.averages.tolist(), strict=True
        )
    ]
    notes: list[AnyNote] = ["average: over datasets, each counting once; no test looks at it."]
    notes += map(warning, comparison.mixed)
    if np.isnan(board.averages).any():
        notes.append("-: not measured there, so there is no average to compare with the others.")
    return [
        Table(
            f"{metric_label(board.metric)} on {counted(len(board.datasets), 'dataset')}",
            ["", *board.datasets, "average"],
            rows,
            notes=notes,
        )
    ]


def kinds_tables(group: DatasetComparison) -> list[Table]:
    """Show the kind of each system: the retriever that its config names, and the settings given to
    it; none where no run says it."""
    rows: list[list[Content]] = [
        [
            name,
            str(made["target"]),
            ", ".join(f"{key} {value}" for key, value in run.settings.items()) or "-",
        ]
        for name, run in group.ranked(group.metrics[0])
        if "target" in (made := run.manifest.get("retriever", {}))
    ]
    title = f"What the systems {on_dataset(group.dataset)} are"
    columns = ["system", "retriever", "settings"]
    return [Table(title, columns, rows, words=(0, 1, 2))] if rows else []


def cost_table(group: DatasetComparison) -> Table:
    """Systems in rows: times of a call, throughput, what the index takes, and what differs between
    the runs."""
    runs = group.runs
    names = list(dict.fromkeys(level for run in runs for level in run.summary.latency_ms.levels))
    facts = [
        *((name, fact) for name, fact in _WHERE_ANY.items() if any(map(fact, runs))),
        *(
            (name, fact)
            for name, fact in _WHERE_DIFFERENT.items()
            if len({fact(run) for run in runs}) > 1
        ),
    ]
    used = any(run.summary.usage is not None for run in runs)
    rows: list[list[Content]] = []
    for name, run in group.ranked(group.metrics[0]):
        latency, index = run.summary.latency_ms, run.summary.index
        entries = [latency.at(level) for level in names]
        mean = latency.mean
        rows.append(
            [
                name,
                *(MILLISECONDS(entry.value, entry.ci95) for entry in entries),
                RATE(1000 / mean if mean else None),
                COUNT(None if replayed(run) else latency.n),
                SECONDS(index.seconds),
                MEGABYTES(index.peak_rss_bytes or None),
                MEGABYTES(index.disk_bytes or None),
                *([AMOUNT(tokens_of(run.summary))] if used else []),
                *([AMOUNT(money_of(run.summary))] if used else []),
                *(fact(run) or "" for _, fact in facts),
            ]
        )
    notes = [
        "calls/s: one call at a time, 1000 / mean ms; this is no load test.",
        (
            "memory MB: peak of the process so far, with all that was loaded before; disk MB: what "
            "the retriever keeps."
        ),
    ]
    if any(run.summary.latency_ms.stalls for run in runs):
        notes.append(
            "stalls: calls that took far longer than their query usually does; they count in all "
            "figures."
        )
    if any(run.summary.unanswerable.n for run in runs):
        notes.append(
            "unanswerable: how many unanswerable queries returned results (not in the scores)."
        )
    fixed = ["calls/s", "calls", "index s", "memory MB", "disk MB"]
    if used:
        fixed += ["tokens", "money / 1,000"]
        notes.append("tokens: of a query, in and out; money: for 1,000 queries.")
    return Table(
        f"Time and cost {on_dataset(group.dataset)}",
        ["system", *(f"{level} ms" for level in names), *fixed, *(name for name, _ in facts)],
        rows,
        notes=notes,
    )


def _unanswerable(run: Run) -> str:
    unanswerable = run.summary.unanswerable
    return f"{unanswerable.returned_hits} of {unanswerable.n}" if unanswerable.n else ""


def _number(n: int) -> str:
    return f"{n:,}" if n else ""


_WHERE_ANY: Mapping[str, Callable[[Run], str]] = {
    "stalls": lambda run: _number(run.summary.latency_ms.stalls or 0),
    "failed": lambda run: _number(run.summary.n_failed),
    "unanswerable": _unanswerable,
}

_WHERE_DIFFERENT: Mapping[str, Callable[[Run], str]] = {
    "status": lambda run: str(run.summary.status),
    "k": lambda run: str(run.summary.k),
    "threads": lambda run: str(run.manifest.get("environment", {}).get("threads", "?")),
    "rounds": lambda run: str(run.summary.latency_ms.rounds),
}


def differences_table(
    comparison: Comparison, group: DatasetComparison, metric: Metric, most: int = PAIRS_SHOWN
) -> Table:
    """The pairs of one metric on one dataset: the family that Holm corrects together. Of more than
    ``most`` pairs those of the best system."""
    deltas = group.of(metric)
    best_first = [name for name, _ in group.ranked(metric)]
    shown = most_telling(deltas, best_first, baseline=comparison.baseline, most=most)[:most]
    tests = sorted({name for delta in deltas for name in delta.tests})
    rows = [row for delta in shown for row in difference_rows(delta, tests)]
    notes: list[AnyNote] = [
        (
            f"Difference: first {'over' if metric.geometric else 'minus'} second, with its "
            f"interval. The verdict is about the first system."
        ),
        f"Intervals: {group.brackets(metric)}.",
        "d: mean difference over its standard deviation; won, tied, lost: queries.",
        *_test_notes(comparison, group, deltas, tests),
        *quoting(rows),
    ]
    if len(shown) < len(deltas):
        text = f"{len(deltas) - len(shown):,} more pairs: --format json has all."
        notes.append(Note(text, NoteKind.MORE))
    columns = ["", "difference", "d", "won", "tied", "lost", "p (Holm)"]
    return Table(
        f"Paired differences in {metric_label(metric)} {on_dataset(group.dataset)}",
        [*columns, *(f"p {name} (Holm)" for name in tests), "verdict"],
        rows,
        notes=notes,
        words=(0, len(columns) + len(tests)),
    )


_HOW_EQUIVALENT = {
    "bound": "on either side by Gaffke's bound, which assumes nothing but the range",
    "tost": "two one-sided t tests, which assume normal means",
}


def most_telling(
    deltas: Sequence[Delta], best_first: Sequence[str], *, baseline: str | None, most: int
) -> list[Delta]:
    """All ``deltas``; of more than ``most`` those of the baseline or, without one, of the best
    system, the one against the best of the others first.

    Args:
        best_first: the systems, by the metric that decides.
    """
    if len(deltas) <= most:
        return list(deltas)
    system = best_first[0] if baseline is None else baseline
    place = {name: at for at, name in enumerate(best_first)}
    own = [delta for delta in deltas if system in (delta.a, delta.b)]
    return sorted(own, key=lambda delta: place[delta.a if delta.b == system else delta.b])


def difference_rows(delta: Delta, tests: Sequence[str]) -> list[list[Content]]:
    """One row; a second one for the queries that both answered, where some failed."""
    remark = ""
    if delta.reason and delta.difference is None:
        remark = f"({delta.reason})"
    elif delta.rests_on_failures:
        remark = "(rests on failures)"
    elif delta.resolvable_from is not None:
        unit = "query" if delta.clusters is None else "cluster"
        remark = f"({counted(delta.resolvable_from, unit)} could)"
    elif delta.queries_needed is not None:
        remark = f"(needs about {about(delta.n + delta.queries_needed)} queries)"
    elif delta.small:
        remark = "(small)"
    remarks = " ".join(filter(None, (remark, bound_remark(delta.bound))))
    effect = delta.effect_size if delta.difference is not None else None
    row: list[Content] = [
        f"{delta.b} - {delta.a}",
        gap_of(delta),
        EFFECT(effect),
        *map(COUNT, (delta.wins, delta.ties, delta.losses)),
        P(delta.p_adjusted),
        *(P(delta.tests[name][1] if name in delta.tests else None) for name in tests),
        Cell(verdict_label(delta.verdict, identical=delta.identical), remark=remarks),
    ]
    return [row, *([_answered_row(delta.answered, len(tests))] if delta.answered else [])]


def gap_of(delta: Delta, sign: int = 1, *, short: bool = False) -> Cell:
    """The difference with its interval, b minus a; a ratio where the mean is geometric.

    Args:
        sign: -1 for a minus b.
    """
    if delta.ratio is not None:
        ratio, *of_ratio = [item**sign for item in delta.ratio]
        return TIMES(ratio, sorted(of_ratio))
    gap = None if delta.difference is None else sign * delta.difference
    ends = None if delta.ci is None else sorted(sign * end for end in delta.ci)
    return (SHORT_DIFFERENCE if short else DIFFERENCE)(gap, ends)


def _answered_row(answered: Answered, tests: int) -> list[Content]:
    return [
        f"  both answered: {counted(answered.n, 'query')}",
        DIFFERENCE(answered.difference, answered.ci),
        *[""] * 4,
        *[""] * (1 + tests),
        verdict_label(answered.verdict),
    ]


def _test_notes(
    comparison: Comparison, group: DatasetComparison, deltas: Sequence[Delta], tests: Sequence[str]
) -> list[str]:
    """Return how the pairs of one metric were tested, and what their verdicts mean."""
    tested = [delta for delta in deltas if delta.p is not None]
    notes = []
    if group.meaning:
        notes.append(f"Verdicts: by {group.meaning}; they hold at every look. There is no p.")
    if tested:
        notes.append(
            f"p: paired randomisation test ({patterns(group)}), Holm-corrected over "
            f"{counted(len(tested), 'pair')} of this metric and dataset."
        )
        notes += unit_note(tested[0].clusters, group.runs[0].summary.dataset.cluster_key)
    if tests:
        notes.append(f"p {', p '.join(tests)}: of these tests, Holm-corrected likewise.")
    how = f"{_HOW_EQUIVALENT[comparison.equivalence]}, Holm-corrected" if tested else "the interval"
    if any(delta.within_margin or delta.verdict is Verdict.EQUIVALENT for delta in deltas):
        notes.append(
            f'"equivalent", "small": shown to differ by less than {comparison.margin:g} ({how}).'
        )
    if any(delta.resolvable_from is not None for delta in deltas):
        notes.append('"n queries could": so few decide nothing, whatever they say; n would do.')
    if any(delta.queries_needed is not None for delta in deltas):
        notes.append('"Needs about n queries": so many in all would settle it with 80 % power.')
    if any(delta.answered is not None for delta in deltas):
        notes.append(
            f"Both answered: the same {group.without_failures}. Where that changes the verdict, "
            "the verdict rests on failures: can't tell."
        )
    return notes


def patterns(group: DatasetComparison) -> str:
    """Return how many sign patterns the test looks at."""
    tested = [delta.units for delta in group.deltas if delta.p is not None]
    if tested and max(tested) <= EXACT_ROWS:
        return "all sign patterns"
    return f"{group.resamples:,} resamples"


def how_measured(group: DatasetComparison) -> list[AnyNote]:
    """Note what was measured on what, what is missing and why, and what the runs warn of."""
    runs, pairs = group.runs, list(zip(group.names, group.runs, strict=True))
    data = {
        (facts.fingerprint, facts.split): f"{facts.name} ({facts.split})"
        for facts in (run.summary.dataset for run in runs)
    }
    if len(data) > 1:
        where = f"{len(data)} datasets or splits: {', '.join(data.values())}"
        return [warning(f"These runs cannot be compared: they are on {where}.")]
    return [
        *merged_notes(measured_on, pairs),
        *other_settings(group.names, runs),
        *([] if all(map(replayed, runs)) else [how_timed(runs)]),
        *merged_notes(lambda run: unsupported(run.summary), pairs),
        *merged_notes(lambda run: run.summary.health, pairs),
        *merged_notes(lambda run: list(map(warning, of_one_run(run))), pairs),
    ]


def how_timed(runs: Sequence[Run]) -> AnyNote:
    """Return whether the times of ``runs`` can be held against each other."""
    if any(run.asked is not None for run in runs):
        return "Times are not judged: each query was asked once, without warm-up."
    different = timed_differently(runs)
    if different:
        return warning(f"Times cannot be compared: {different}.")
    timed = [run for run in runs if run.summary.latency_ms.mean is not None]
    if timed and not timed_together(timed):
        return warning(
            "Times were measured apart: a difference may be the machine's, not the system's."
        )
    return (
        "Times were measured together, alternating query by query. Beside slow systems a fast one "
        "takes longer than alone."
    )


def merged_notes(
    sentences_of: Callable[[Run], Sequence[AnyNote]], pairs: Sequence[tuple[str, Run]]
) -> list[AnyNote]:
    """Merge the sentences of runs, each once, behind the names of those that say it, if not all
    do."""
    spoken = [(name, note) for name, run in pairs for note in sentences_of(run)]
    kinds = {text_of(note): kind_of(note) for _, note in reversed(spoken)}
    speakers: dict[str, list[str]] = {}
    for name, text in dict.fromkeys((name, text_of(note)) for name, note in spoken):
        # What a hybrid says of a leg that stands beside it is said once.
        of_leg = text.partition(": ")[2]
        speakers.setdefault(of_leg if of_leg in kinds else text, []).append(name)
    return [
        Note(text if len(names) == len(pairs) else f"{', '.join(names)}: {text}", kinds[text])
        for text, names in speakers.items()
    ]


def queries_of(group: DatasetComparison) -> str:
    """Return how many queries the means are over, and where these come from."""
    return f"{group.extent}{origin_of(group.runs[0].summary.dataset)}"
