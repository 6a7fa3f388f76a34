"""What is shown of times held against each other: pairs of systems with ratios and verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.comparison.speed import LIMIT, TAIL, TYPICAL, LatencyDelta
from retrieval_bench.core.figures import interval_of
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.table import Note, NoteKind, Table
from retrieval_bench.stats.percentiles import FEWEST_LAUNCHES

LATENCY_PAIRS = 6
"""Of more pairs only those of the first system; the JSON document has all."""

LONGEST_PAIR = 22
"""Letters of two names that stand beside each other; longer ones stand below each other."""

_WORDS = {
    Verdict.BETTER: "faster",
    Verdict.WORSE: "slower",
    Verdict.MISSING: "no times",
}

_PLAIN = 2.0
"""Up to this ratio, and down to its inverse, it is shown as it is."""


def latency_tables(deltas: Sequence[LatencyDelta]) -> list[Table]:
    """One table of all pairs, typical times above tails; none without pairs."""
    shown = _shown(deltas)
    if not shown:
        return []
    typical = [delta for delta in shown if delta.what == TYPICAL]
    tails = [delta for delta in shown if delta.what == TAIL and delta.ratio is not None]
    rows = [row for delta in (*typical, *tails) for row in _rows(delta)]
    start = sum(len(_rows(delta)) for delta in typical)
    return [
        Table(
            "Latency, paired",
            ("", "time", "98 % interval", "verdict"),
            rows,
            (start,) if tails else (),
            [*_how(deltas, typical, tails), *_reasons(shown), *_more(deltas, shown)],
            words=(0, 3),
        )
    ]


def _shown(deltas: Sequence[LatencyDelta]) -> Sequence[LatencyDelta]:
    if len({(delta.a, delta.b) for delta in deltas}) <= LATENCY_PAIRS:
        return deltas
    return [delta for delta in deltas if deltas[0].a in (delta.a, delta.b)]


def _rows(delta: LatencyDelta) -> list[list[str]]:
    """One line, or two where the names are long."""
    label = "" if delta.what == TYPICAL else f"{delta.what} "
    ratio, interval = ratio_text(delta), ratio_interval(delta)
    figures = [ratio or "-", interval or "-", _WORDS.get(delta.verdict, delta.verdict.value)]
    if len(label) + len(delta.a) + len(delta.b) <= LONGEST_PAIR:
        return [[f"{label}{delta.b} / {delta.a}", *figures]]
    return [[label + delta.b, *figures], [f"/ {delta.a}", "", "", ""]]


def ratio_text(delta: LatencyDelta) -> str:
    """Such as "x 1.05" or "135 x faster", of b beside a; empty where there is none."""
    ratio = delta.ratio
    if ratio is None:
        return ""
    if 1 / _PLAIN <= ratio <= _PLAIN:
        return f"x {ratio:.3f}"
    return f"{_times(1 / ratio)} x faster" if ratio < 1 else f"{_times(ratio)} x slower"


def ratio_interval(delta: LatencyDelta) -> str:
    """The interval of :func:`ratio_text`, in its direction; empty where there is none."""
    if delta.ratio is None or delta.ci98 is None:
        return ""
    if 1 / _PLAIN <= delta.ratio <= _PLAIN:
        return interval_of(delta.ci98, lambda end: f"{end:.3f}")
    low, high = delta.ci98
    return interval_of((1 / high, 1 / low) if delta.ratio < 1 else (low, high), _times)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _how(
    deltas: Sequence[LatencyDelta],
    typical: Sequence[LatencyDelta],
    tails: Sequence[LatencyDelta],
) -> list[str]:
    """What the figures are, and when a difference is told."""
    judged = [delta for delta in (*typical, *tails) if delta.beyond is not None]
    if not judged:
        return []
    what = "time: of the first named over that of the second, call beside call, of a typical query"
    slow = "; p95: of the slow ones" if tails else ""
    notes = [f"{what}{slow}; the verdict speaks of the first"]
    enough = judged[0].launches >= FEWEST_LAUNCHES
    limits = {delta.what: f"{100 * (delta.beyond or 0):g} %" for delta in judged}
    least = limits[TYPICAL] + (f" (p95: {limits[TAIL]})" if TAIL in limits else "")
    tested = sum(delta.p is not None for delta in deltas)
    verdicts = f"faster, slower: shown to differ by more than {least}"
    if enough:
        verdicts += f"; equivalent: by less than {100 * LIMIT:g} %"
    family = f" with Holm over {tested} tests" if tested > 1 else ""
    return [*notes, f"interval: over {judged[0].over}; {verdicts} (1 %, one-sided{family})"]


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


def _more(deltas: Sequence[LatencyDelta], shown: Sequence[LatencyDelta]) -> list[str]:
    more = len({(d.a, d.b) for d in deltas}) - len({(d.a, d.b) for d in shown})
    return [Note(f"{more:,} more pairs: --format json has all", NoteKind.MORE)] if more else []
