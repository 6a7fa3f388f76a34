"""What ``diff`` shows: the means with the oracle ceiling, the groups, and queries as blocks.

Tables fit 80 columns in any script; texts are cut with an ellipsis, and what comes from data is
made harmless first. The JSON document has all of it in full.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from retrieval_bench.comparison.diff import (
    LEFT_BELOW,
    LOST,
    NO_LEG,
    Explanation,
    Placed,
    QueryDetail,
    System,
)
from retrieval_bench.comparison.winners import Ceiling, Partition, QueryGroup
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import interval_text, quality_text, short_quality, signed
from retrieval_bench.measure.runner import OK
from retrieval_bench.reports.pictures.text import cells_of, clean, cut
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.tables.run_facts import title_of
from retrieval_bench.runs.evaluation import Mean

WIDTH = 80
DOCUMENTS_SHOWN = 10
"""Of each run in one block; and of the relevant documents that no run shows there."""

_NAME = 12
"""Cells of a system's name above a column of numbers."""

_LABEL = 22
_QUERY = 3 * WIDTH
"""Cells of a query's text; a terminal wraps them."""

_ROOM, _LEAST_ROOM = 28, 16
"""Cells for a document: so many before all legs are shown, and never fewer."""

_TITLES = {
    "outcome": "Who is better: {metric}, by query",
    "best leg": "Which leg of {of} is best alone: {metric}, by query",
    "fusion": "What fusion made of the best leg in {of}: {metric}, by query",
}


def diff_tables(
    explanation: Explanation,
    ceilings: Mapping[str, Sequence[Ceiling]],
    details: Sequence[QueryDetail],
    *,
    texts: bool = True,
    warnings: Sequence[str] = (),
) -> list[Table]:
    """The answer in short, then the queries of ``details`` one by one.

    Args:
        ceilings: of each hybrid, the first entry being that of the explanation's metric.
        texts: False = ids only.
        warnings: shown below the first table.
    """
    tables = [_means(explanation, ceilings, warnings)]
    tables += [_groups(explanation, partition) for partition in explanation.partitions]
    blocks = [table for one in details for table in _block(explanation, one, texts=texts)]
    if blocks:
        legend = "rank in each list, - = not in it; a grade only where it is judged"
        blocks[-1] = replace(blocks[-1], notes=[*blocks[-1].notes, legend])
    return [*tables, *blocks]


def _means(
    explanation: Explanation, ceilings: Mapping[str, Sequence[Ceiling]], warnings: Sequence[str]
) -> Table:
    systems, n_runs, k = explanation.systems, len(explanation.runs), explanation.k
    legs_first = [*range(n_runs, len(systems)), *range(n_runs)]
    order = legs_first if n_runs == 1 else range(len(systems))
    rows = [(*_mean_row(systems[at].name, explanation.means[at]), "") for at in order]
    rules = [len(rows)]
    rows += _oracle_rows({of: each[0] for of, each in ceilings.items()})
    hybrid = any(each[0].fused is not None for each in ceilings.values())
    notes = [
        f"perfect choice: for each query the {'leg' if hybrid else 'system'} that is best",
        (
            f"perfect fusion: {'all that the legs returned' if hybrid else f'both first {k}'}, "
            f"best grades first, cut at {k}"
        ),
    ]
    if hybrid:
        notes.append("gained: how much of the way from the best leg up to there fusion goes")
    notes.append("difference: {} minus {}".format(*map(clean, explanation.subtracted)))
    notes.append(f"queries: {len(explanation.query_ids):,} evaluated")
    names = [system.name for system in systems[:n_runs]]
    what = f"{names[0]} and its legs" if n_runs == 1 else " / ".join(names)
    width = 4 if hybrid else 3
    return Table(
        clean(title_of([run.summary for run in explanation.runs], what)),
        ("", str(explanation.metric), "95 % interval", "gained")[:width],
        [row[:width] for row in rows],
        rules,
        [*notes, *(f"warning: {clean(warning)}" for warning in warnings)],
    )


def _mean_row(name: str, mean: Mean) -> tuple[str, str, str]:
    return (cut(name, _LABEL), _known(mean.mean), interval_text(mean.ci95))


def _oracle_rows(ceilings: Mapping[str, Ceiling]) -> list[tuple[str, str, str, str]]:
    """Two for each hybrid; hybrids of the same legs have the same oracles, and share them."""
    alike: dict[tuple[tuple[str, ...], Mean, Mean], list[str]] = {}
    for of, each in ceilings.items():
        alike.setdefault((tuple(each.legs), each.choice, each.fusion), []).append(of)
    rows = []
    for (_, choice, fusion), runs in alike.items():
        of = f" ({' / '.join(runs)})" if len(alike) > 1 else ""
        for oracle, mean in (("choice", choice), ("fusion", fusion)):
            told = " / ".join(_gained(ceilings[run], mean) for run in runs)
            rows.append((*_mean_row(f"perfect {oracle}{of}", mean), told))
    return rows


def _gained(ceiling: Ceiling, oracle: Mean) -> str:
    """As a percentage; below the best leg a number would say little, the distance may be tiny."""
    part = ceiling.realised(oracle)
    if part is None:
        return ""
    return "below leg" if part < 0 else f"{part:.0%}".replace("%", " %")


def _groups(explanation: Explanation, partition: Partition) -> Table:
    metric, n = explanation.metric, len(explanation.query_ids)
    labels = [cut(one.removesuffix(f" in {partition.of}"), _LABEL) for one in partition.labels]
    heads = [cut(name, _NAME) for name in partition.columns]
    legs_only = partition.kind == "best leg"  # what fusion gained has a table of its own
    share, kept = _kept(max(map(cells_of, labels)), heads, fixed=not legs_only)

    def row(label: str, group: QueryGroup) -> tuple[str, ...]:
        part = [f"{group.n / n:.0%}".replace("%", " %") if n else ""] if share else []
        means = [_known(group.means[at]) for at in kept]
        gain = [] if legs_only else [signed(group.gain)]
        return (label, f"{group.n:,}", *part, *means, *gain)

    groups = partition.groups(metric)
    left_out = len(heads) - len(kept)
    return Table(
        _TITLES[partition.kind].format(of=clean(partition.of), metric=metric),
        (
            *("", "queries"),
            *([""] if share else []),
            *(heads[at] for at in kept),
            *([] if legs_only else ["difference"]),
        ),
        [*map(row, labels, groups), row("all", partition.whole(metric))],
        [len(groups)],
        [f"{counted(left_out, 'column')} more: --format json"] if left_out else [],
    )


def _kept(label: int, heads: Sequence[str], *, fixed: bool) -> tuple[bool, list[int]]:
    """Whether there is room for shares, and which columns there is room for: the last one, the
    fused ranking, and as many others as fit beside it. ``fixed``: all, and the difference."""
    widths = [max(cells_of(head), len("0.0000")) + 3 for head in heads]
    room = WIDTH - 2 - label - len("queries") - 3
    if fixed or sum(widths) + len("100 %") + 3 <= room:
        return True, list(range(len(heads)))
    kept = [len(heads) - 1]
    for at in range(len(heads) - 1):
        if sum(widths[i] for i in (*kept, at)) <= room:
            kept.append(at)
    return False, sorted(kept)


def _block(explanation: Explanation, detail: QueryDetail, *, texts: bool) -> list[Table]:
    """The query, then what came of it and the documents."""
    title = f"query {cut(detail.query.id, WIDTH // 3)}"
    told = f"difference {signed(detail.difference)}, {', '.join(map(clean, detail.groups))}"
    if not texts:
        return [_documents(explanation, detail, f"{title}: {told}")]
    asked = Table(f"{title}: {cut(detail.query.text, _QUERY)}", (), ())
    return [asked, _documents(explanation, detail, told)]


def _documents(explanation: Explanation, detail: QueryDetail, title: str) -> Table:
    n_runs = len(explanation.runs)
    hybrids = [run for run in range(n_runs) if explanation.legs_of(run)]
    # With two of them the ranks have to say it: there is no room for two columns of words.
    fused = explanation.systems[hybrids[0]].name if len(hybrids) == 1 else None
    shown = _shown(detail, n_runs)
    fates = [] if fused is None else [_fate(one.fates.get(fused, "")) for one in shown]
    words = [] if fused is None else [max(map(cells_of, ["fusion", *fates]))]
    n, room = _fitting(explanation, n_runs, words)
    values = [short_quality(value) for value in detail.values[:n]]
    rows = [(*values, "", cut(str(explanation.metric), room), "")]
    for at, one in enumerate(shown):
        ranks = (f"{rank:,}" if rank else "-" for rank in one.ranks[:n])
        grade = "" if one.grade is None else str(one.grade)
        rows.append((*ranks, grade, _document(one, room), fates[at] if fates else ""))
    width = n + 2 + len(words)
    return Table(
        title,
        (*_heads(explanation.systems)[:n], "grade", "document", "fusion")[:width],
        [row[:width] for row in rows],
        [1],
        _block_notes(explanation, detail, shown),
        words=range(n + 1, width),
    )


def _fitting(explanation: Explanation, n_runs: int, words: Sequence[int]) -> tuple[int, int]:
    """How many systems have room for their ranks, and the cells that are left for a document."""
    heads = _heads(explanation.systems)
    n = len(heads)
    while True:
        taken = [*(max(cells_of(head), len("1.000")) for head in heads[:n]), len("grade"), *words]
        # Three cells between columns, and one at either end.
        room = WIDTH - sum(taken) - 3 * len(taken) - 2
        if room >= _ROOM or n == n_runs:
            return n, max(room, _LEAST_ROOM)
        n -= 1


def _shown(detail: QueryDetail, n_runs: int) -> list[Placed]:
    """The first documents of each run and the relevant ones, in the order of ``detail``."""
    top = [
        one for one in detail.documents if any(0 < r <= DOCUMENTS_SHOWN for r in one.ranks[:n_runs])
    ]
    relevant = [one for one in detail.documents if one.relevant and one not in top]
    kept = {one.doc_id for one in (*top, *relevant[:DOCUMENTS_SHOWN])}
    return [one for one in detail.documents if one.doc_id in kept]


def _heads(systems: Sequence[System]) -> list[str]:
    """Short names for columns: of a leg its own, unless another system has it."""
    names = [system.leg or system.name for system in systems]
    plain = [
        name if names.count(name) == 1 else system.name
        for name, system in zip(names, systems, strict=True)
    ]
    return [cut(name, _NAME) for name in plain]


def _fate(given: str) -> str:
    return {LOST: "lost", LEFT_BELOW: "left below", NO_LEG: "no leg"}.get(given, given)


def _document(one: Placed, room: int) -> str:
    if not one.title:
        return _ends(one.doc_id, room)
    return cut(f"{_ends(one.doc_id, room // 2)}: {one.title}", room)


def _ends(text: str, cells: int) -> str:
    """``text`` without its middle where it is too long: ids of chunks differ in their last part."""
    if cells_of(clean(text)) <= cells:
        return clean(text)
    end = clean(text)[-(cells // 4) :]
    return cut(text, cells - cells_of(end)) + end


def _block_notes(
    explanation: Explanation, detail: QueryDetail, shown: Sequence[Placed]
) -> list[str]:
    notes = [
        cut(f"{system.name} failed: {status}", WIDTH)
        for system, status in zip(explanation.systems, detail.status, strict=False)
        if status != OK
    ]
    left_out = sum(one.relevant for one in detail.documents) - sum(one.relevant for one in shown)
    if left_out:
        notes.append(f"{counted(left_out, 'relevant document')} more: --format json")
    return notes


def _known(value: float) -> str:
    return quality_text(None if math.isnan(value) else value)
