"""Tables of times held against each other: pairs of systems with ratios and verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.pairs.speed import LIMIT, TAIL, TYPICAL, LatencyDelta
from retrieval_bench.core.figures import times_text
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.cells import Cell, Content, Form
from retrieval_bench.reports.render.table import Note, NoteKind, Table
from retrieval_bench.reports.render.words import on_dataset, speed_label
from retrieval_bench.stats.percentiles import FEWEST_LAUNCHES

PAIRS_SHOWN = 66
"""Of more pairs only those of the best system; the JSON document has all."""

_FASTER = Form(lambda times: f"{times_text(times)} faster", lambda times: times_text(times)[:-1])
_SLOWER = Form(lambda times: f"{times_text(times)} slower", lambda times: times_text(times)[:-1])


def ratio_cell(delta: LatencyDelta) -> Cell:
    """Return how many times b is faster or slower than a, with its interval."""
    ratio, ends = delta.ratio, delta.ci98
    if ratio is None:
        return Cell(None)
    if ratio < 1:
        return _FASTER(1 / ratio, None if ends is None else (1 / ends[1], 1 / ends[0]))
    return _SLOWER(ratio, ends)


def speed_tables(group: DatasetComparison) -> list[Table]:
    """Return which system is faster, typical times above tails; nothing without pairs.

    A percentile that no pair has a verdict on is told in a note and fills no rows.
    """
    shown = _shown(group)
    if not shown:
        return []
    typical = [delta for delta in shown if delta.what == TYPICAL]
    tails = [delta for delta in shown if delta.what == TAIL and delta.ratio is not None]
    rows: list[list[Content]] = [
        [f"{delta.b} / {delta.a}", delta.what, ratio_cell(delta), _verdict(delta)]
        for delta in (*typical, *tails)
    ]
    more = (len(group.latency) - len(shown)) // 2
    left_out = [Note(f"{more:,} more pairs: --format json has all.", NoteKind.MORE)] if more else []
    return [
        Table(
            f"Which is faster {on_dataset(group.dataset)}",
            ("", "calls", "latency ratio", "verdict"),
            rows,
            (len(typical),) if tails else (),
            [*_how(group.latency, typical, tails), *_reasons(shown), *left_out],
            words=(0, 1, 3),
        )
    ]


def _verdict(delta: LatencyDelta) -> Cell:
    """Show the verdict, with how large a difference one process can show, where that is why nothing
    is shown."""
    few = delta.launches < FEWEST_LAUNCHES and delta.beyond is not None
    hidden = delta.verdict is Verdict.UNDECIDED and few
    remark = f"(below {100 * (delta.beyond or 0):.0f} %)" if hidden else ""
    return Cell(speed_label(delta.verdict), remark=remark)


def _shown(group: DatasetComparison) -> Sequence[LatencyDelta]:
    if len(group.latency) <= 2 * PAIRS_SHOWN:
        return group.latency
    best, _ = group.ranked(group.metrics[0])[0]
    return [delta for delta in group.latency if best in (delta.a, delta.b)]


def _how(
    deltas: Sequence[LatencyDelta], typical: Sequence[LatencyDelta], tails: Sequence[LatencyDelta]
) -> list[str]:
    """Explain the figures, and when a difference is told."""
    judged = [delta for delta in (*typical, *tails) if delta.beyond is not None]
    if not judged:
        return []
    slow = "; p95: over the slow ones" if tails else ""
    limits = {delta.what: f"{100 * (delta.beyond or 0):g} %" for delta in judged}
    least = limits[TYPICAL] + (f" (p95: {limits[TAIL]})" if TAIL in limits else "")
    equal = ""
    if judged[0].launches >= FEWEST_LAUNCHES:
        equal = f'; "equally fast": by less than {100 * LIMIT:g} %'
    tested = sum(delta.p is not None for delta in deltas)
    family = f", Holm-corrected over {tested} tests" if tested > 1 else ""
    return [
        (
            f"Latency ratio: first over second, median over paired calls{slow}. The verdict is "
            "about the first system."
        ),
        f"Brackets: 98 % interval over {judged[0].over}.",
        (
            f'"faster", "slower": shown to differ by more than {least}{equal} (one-sided tests at '
            f"1 %{family})."
        ),
    ]


def _reasons(shown: Sequence[LatencyDelta]) -> list[str]:
    """Each reason once, behind those that have it, if not all do."""
    notes = []
    for what in (TYPICAL, TAIL):
        deltas = [delta for delta in shown if delta.what == what]
        reasons: dict[str, list[str]] = {}
        for delta in deltas:
            known = what == TAIL and any(
                other.what == TYPICAL
                and (other.a, other.b, other.reason) == (delta.a, delta.b, delta.reason)
                for other in shown
            )
            if delta.reason and not known:
                reasons.setdefault(delta.reason, []).append(f"{delta.b} / {delta.a}")
        for reason, pairs in reasons.items():
            start = "" if what == TYPICAL else "p95"
            if len(pairs) < len(deltas):
                start = f"{start} {', '.join(pairs)}".strip()
            notes.append(f"{start}: {reason}" if start else reason)
    return notes
