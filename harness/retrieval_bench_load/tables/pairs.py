"""Tables of two loads beside each other."""

from __future__ import annotations

from collections.abc import Iterator

from retrieval_bench.comparison.claims import unless_open
from retrieval_bench.reports.render.cells import (
    RATE,
    RATIO,
    SHORT_DIFFERENCE,
    SHORT_QUALITY,
    Content,
)
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench_load.engine.levels import State
from retrieval_bench_load.loads import LEAST_LIMIT, ComparedLoads, LevelPair
from retrieval_bench_load.tables.load import tail_cell

_P95 = 1
_LEGEND = (
    "b against a: change of latency with 95 % interval, each by itself. Faster, slower: by more "
    f"than {LEAST_LIMIT:.0%}, since two moments of a machine also differ by what else it did; "
    "duet --rate puts both side by side."
)


def load_pair_tables(compared_loads: ComparedLoads) -> list[Table]:
    """A row for each figure of each level that both have."""
    a, b = compared_loads.loads
    rows: list[list[Content]] = []
    rules = []
    for pair in compared_loads.levels:
        rules.append(len(rows))
        rows += _pair_rows(pair, metric_label(a.metric) if a.metric else "")
    notes = []
    if compared_loads.alone:
        notes.append(f"Only one has: {', '.join(compared_loads.alone)}.")
    if compared_loads.notes:
        notes.append(f"Not the same: {'; '.join(compared_loads.notes)}.")
    notes += [
        (
            f"a = {a.retriever}, {compared_loads.a}; b = {b.retriever}, {compared_loads.b}; "
            f"{a.dataset}, k = {a.k}."
        ),
        _LEGEND,
    ]
    columns = ("load", "", "a", "b", "b against a", "")
    return [Table(_pair_answer(compared_loads), columns, rows, rules[1:], notes, words=(0, 1, 5))]


def _pair_answer(compared_loads: ComparedLoads) -> str:
    levels = [pair for pair in compared_loads.levels if pair.percentiles or pair.verdict]
    words = []
    for verdict in ("slower", "faster"):
        shown = [
            pair.level
            for pair in levels
            if verdict in (pair.verdict, *(percentile.verdict for percentile in pair.percentiles))
        ]
        if shown:
            words.append(f"{verdict} at {', '.join(shown)}")
    if compared_loads.capacity in ("higher", "lower"):
        words.append(f"the rate that keeps the limit is {compared_loads.capacity}")
    if not levels:
        return "No level was measured in both loads"
    answer = "; ".join(words) or "neither shown to be slower nor faster than a"
    told = [text for load in compared_loads.loads for text in load.warnings]
    return unless_open("compare LOAD LOAD", f"b is {answer}", told)


def _pair_rows(pair: LevelPair, metric: str) -> Iterator[list[Content]]:
    a, b = pair.a.result, pair.b.result
    state = pair.verdict or ("" if pair.percentiles else "can't tell")
    rates = (RATE(a.answered_rate), RATE(b.answered_rate))
    yield [pair.level, "answers/s", *rates, "", ""]
    if not pair.percentiles:
        yield ["", "state", str(a.state), str(b.state), "", state]
    for at, percentile in enumerate(pair.percentiles):
        unclear = at == _P95 and percentile.verdict == "can't tell"
        if unclear or (percentile.a is None and percentile.b is None):
            continue
        low, high = percentile.interval or (None, None)
        change = RATIO(percentile.ratio, None if low is None or high is None else (low, high))
        times = (tail_cell(a.latency[at]), tail_cell(b.latency[at]))
        yield ["", f"p{percentile.level:g} ms", *times, change, percentile.verdict]
    if pair.difference is not None and State.NOT_MEASURED not in (a.state, b.state):
        means = [item.quality.mean if item.quality else None for item in (pair.a, pair.b)]
        cells = [SHORT_QUALITY(mean) for mean in means]
        yield ["", metric, *cells, SHORT_DIFFERENCE(pair.difference, pair.ci95), ""]
