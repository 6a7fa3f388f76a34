"""Tables of ``explain``: the means with the oracle ceiling, the groups, and queries as blocks.

What comes from data is made harmless by the renderers; long texts are cut with an ellipsis. The
JSON document has all of it in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from retrieval_bench.comparison.claims import Claim, left_open, unless
from retrieval_bench.comparison.pairs.voided import void
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.measure.calls import OK
from retrieval_bench.reports.render.cells import COUNT, DIFFERENCE, QUALITY, SHORT_QUALITY, Content
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result, warning
from retrieval_bench.reports.render.text import cells_of, clean, cut
from retrieval_bench.reports.render.words import metric_label, unit_note
from retrieval_bench.reports.tables.run_facts import title_of
from retrieval_bench.runs.evaluation import Mean
from retrieval_bench.stats.clusters import Clusters, number_of
from retrieval_bench_explain.ceilings import Ceiling
from retrieval_bench_explain.diff import Explanation, Placed, QueryDetail, System
from retrieval_bench_explain.differences import Differences
from retrieval_bench_explain.kept_lists import LEFT_BELOW, LOST, NO_LEG, RERANKING, texts_of
from retrieval_bench_explain.partitions import Partition, QueryGroup

DOCUMENTS_SHOWN = 10
"""Of each run in one block; and of the relevant documents that no run shows there."""

_NAME, _DOCUMENT, _QUERY, _QUERY_ID = 22, 40, 240, 20
"""Cells of a system's name, of a document, and of the text and the id of a query."""

_TITLES = {
    "outcome": "Who is better on each query: {metric}",
    "best leg": "Which leg of {of} is best alone on each query: {metric}",
    "fusion": "What {by} did to the {best} in {of} on each query: {metric}",
}


def diff_tables(found: Differences) -> list[Table]:
    """The answer in short, then the chosen queries one by one."""
    explanation = found.explanation
    blocks = [_block(explanation, detail, texts=found.texts) for detail in found.details]
    if blocks:
        legend = "Rank in each list; -: not in it. A grade stands only where there is a judgement."
        blocks[-1] = blocks[-1].with_notes([legend])
    return [*explanation_tables(explanation, explanation.warnings), *blocks]


def diff_brief(of: Differences) -> list[Table]:
    """The answer, the means, the groups, and a line for each of the chosen queries; those that were
    named one by one in full."""
    if of.named or not of.details:
        return diff_tables(of)
    explanation = of.explanation
    at = 0 if len(explanation.runs) > 1 else -1  # who is better, or what fusion did
    rows = [
        (
            _ends(detail.query.id, _QUERY_ID),
            signed(detail.difference),
            detail.groups[at],
            cut(detail.query.text, _DOCUMENT) if of.texts else "",
        )
        for detail in of.details
    ]
    more = next_step("more:  --query ID (its documents and ranks), -v (those of all of these)")
    title = f"Queries: {' minus '.join(explanation.subtracted)}"
    columns = ("query", "difference", "", "text" if of.texts else "")
    table = Table(title, columns, rows, words=(0, 2, 3), notes=[more])
    means = replace(_means(explanation, ()), notes=[*map(warning, explanation.warnings)])
    groups = [_groups(explanation, partition) for partition in [*explanation.partitions][at:][:1]]
    return [Table(answer(explanation), (), ()), means, *groups, table]


def explanation_tables(explanation: Explanation, warnings: Sequence[str] = ()) -> list[Table]:
    """The answer, the means with ``warnings`` below, and the groups of queries."""
    groups = [_groups(explanation, partition) for partition in explanation.partitions]
    return [Table(answer(explanation), (), ()), _means(explanation, warnings), *groups]


def answer(explanation: Explanation) -> str:
    """Sum up the explanation in a sentence."""
    n, metric = counted(len(explanation.query_ids), "query"), metric_label(explanation.metric)
    gap = explanation.gap
    size = f"{abs(gap.difference):.3f}"
    if not gap.higher and not gap.lower:
        return f"{gap.one} and {gap.other} have the same {metric} on all {n}."
    if len(explanation.runs) == 1:
        why = left_open("explain", explanation.runs[0].summary.warnings)
        verb = "gains" if gap.difference > 0 else "loses"
        if explanation.made_by == RERANKING:
            made = f"What follows {gap.other} {verb} {size} {metric}"
        else:
            made = f"Fusion {verb} {size} {metric} against {gap.other} alone"
        return unless(why, f"{made}: it hurt {gap.lower:,} of {n} and helped {gap.higher:,}.")
    ahead, behind = (1, 0) if gap.difference > 0 else (0, 1)
    names = explanation.systems[ahead].name, explanation.systems[behind].name
    why = void(Claim.QUALITY, explanation.runs[ahead], explanation.runs[behind], names)
    where = "above" if gap.difference > 0 else "below"
    return unless(
        why,
        f"{gap.one} is {size} {where} {gap.other} in {metric}: better on {gap.higher:,} of {n}, "
        f"worse on {gap.lower:,}.",
    )


def _means(explanation: Explanation, warnings: Sequence[str]) -> Table:
    oracles = explanation.ceilings([explanation.metric])
    ceilings = {of: ceiling for of, (ceiling,) in oracles.items()}
    systems, n_runs, k = explanation.systems, len(explanation.runs), explanation.k
    legs_first = [*range(n_runs, len(systems)), *range(n_runs)]
    order = legs_first if n_runs == 1 else range(len(systems))
    rows: list[list[Content]] = [
        [*_mean_row(systems[at].name, explanation.means[at]), ""] for at in order
    ]
    rules = [len(rows)]
    rows += _oracle_rows(ceilings, explanation.made_by)
    hybrid = any(ceiling.fused is not None for ceiling in ceilings.values())
    by, lists = explanation.made_by, [] if explanation.made_by == RERANKING else ["legs"]
    kind = ("leg" if lists else "list") if hybrid else "system"
    every = f"all that the {'legs returned' if lists else 'lists hold'}"
    notes = [
        f"perfect choice: on each query the {kind} that is best there.",
        f"perfect {by}: {every if hybrid else f'both first {k}'}, best grades first, cut at {k}.",
    ]
    if hybrid:
        notes.append(
            f"gained: how much of the way from the best {kind} up to the perfect one {by} goes."
        )
    of = Clusters.of_queries(explanation.clusters, explanation.query_ids)
    notes += unit_note(number_of(of), explanation.runs[0].summary.dataset.cluster_key)
    names = [system.name for system in systems[:n_runs]]
    what = f"{names[0]} and its {'legs' if lists else 'steps'}"
    what = what if n_runs == 1 else " / ".join(names)
    width = 3 if hybrid else 2
    return Table(
        title_of([run.summary for run in explanation.runs], what),
        ("", metric_label(explanation.metric), "gained")[:width],
        [row[:width] for row in rows],
        rules,
        [*notes, *map(warning, warnings)],
    )


def _mean_row(name: str, mean: Mean) -> list[Content]:
    return [cut(name, _NAME), QUALITY(mean.mean, mean.ci95)]


def _oracle_rows(ceilings: Mapping[str, Ceiling], by: str) -> list[list[Content]]:
    """Two for each hybrid; hybrids of the same legs have the same oracles, and share them."""
    alike: dict[tuple[tuple[str, ...], Mean, Mean], list[str]] = {}
    for of, each in ceilings.items():
        alike.setdefault((tuple(each.legs), each.choice, each.fusion), []).append(of)
    rows = []
    for (_, choice, fusion), runs in alike.items():
        of = f" ({' / '.join(runs)})" if len(alike) > 1 else ""
        for oracle, mean in (("choice", choice), (by, fusion)):
            gained = " / ".join(_gained(ceilings[run], mean, by) for run in runs)
            rows.append([*_mean_row(f"perfect {oracle}{of}", mean), gained])
    return rows


def _gained(ceiling: Ceiling, oracle: Mean, by: str) -> str:
    """Write the gain as a percentage; below the best leg a number would say little, the distance
    may be tiny."""
    part = ceiling.realised(oracle)
    if part is None:
        return ""
    below = "below list" if by == RERANKING else "below leg"
    return below if part < 0 else f"{100 * part:.0f} %"


def _groups(explanation: Explanation, partition: Partition) -> Table:
    metric, n = explanation.metric, len(explanation.query_ids)
    legs_only = partition.kind == "best leg"  # what fusion gained has a table of its own

    def row(label: str, group: QueryGroup) -> list[Content]:
        share = f"{100 * group.n / n:.0f} %" if n else ""
        gain = [] if legs_only else [DIFFERENCE(group.gain)]
        return [label, COUNT(group.n), share, *map(QUALITY, group.means.values()), *gain]

    groups = partition.groups(metric)
    labels = [label.removesuffix(f" in {partition.of}") for label in partition.labels]
    return Table(
        _TITLES[partition.kind].format(
            of=partition.of,
            metric=metric_label(metric),
            by=explanation.made_by,
            best=partition.columns[0],
        ),
        ("", "queries", "", *partition.columns, *([] if legs_only else ["difference"])),
        [*map(row, labels, groups), row("all", partition.whole(metric))],
        [len(groups)],
        [] if legs_only else [_subtracted(explanation, partition)],
    )


def _subtracted(explanation: Explanation, partition: Partition) -> str:
    """Explain the column of differences; of a hybrid, beside what the answer goes by."""
    if len(explanation.runs) == 2 and partition.kind == "fusion":
        return f"Difference: {partition.of} minus {partition.columns[0]}."
    first, other = explanation.subtracted
    if len(explanation.runs) == 2 or explanation.made_by == RERANKING:
        return f"Difference: {first} minus {other}."
    return (
        f"Difference: {first} minus the leg that is best on that query. What fusion hurt and "
        "helped, "
        f"above, is beside {explanation.gap.other} on every query."
    )


def _block(explanation: Explanation, detail: QueryDetail, *, texts: bool) -> Table:
    """The query, what came of it, and the documents."""
    n_runs = len(explanation.runs)
    hybrids = [run for run in range(n_runs) if explanation.legs_of(run)]
    # With two of them the ranks have to say it: there is no room for two columns of words.
    fused = explanation.systems[hybrids[0]].name if len(hybrids) == 1 else None
    shown = _shown(detail, n_runs)
    values = [SHORT_QUALITY(value) for value in detail.values.values()]
    rows: list[list[Content]] = [[metric_label(explanation.metric), "", "", *values]]
    for placed in shown:
        fate = "" if fused is None else placed.fates.get(fused, "")
        if fate == NO_LEG and explanation.made_by == RERANKING:
            fate = "not found"
        grade = "" if placed.grade is None else str(placed.grade)
        ranks = map(COUNT, placed.ranks.values())
        rows.append([_document(placed), _FATES.get(fate, fate), grade, *ranks])
    heads = ["document", explanation.made_by, "grade", *_heads(explanation.systems)]
    kept = [at for at in range(len(heads)) if fused is not None or at != 1]
    text = f": {cut(detail.query.text, _QUERY)}" if texts else ""
    return Table(
        f"query {detail.query.id}{text}",
        [heads[at] for at in kept],
        [[row[at] for at in kept] for row in rows],
        [1],
        _block_notes(detail, shown),
        words=(0, 1) if fused is not None else (0,),
        lead=[
            result(f"difference {signed(detail.difference)}: {', '.join(detail.groups)}"),
            *(_rewritten(explanation, detail) if texts else []),
        ],
    )


def _rewritten(explanation: Explanation, detail: QueryDetail) -> list[AnyNote]:
    """Note the texts searched for in place of the query, where steps made other texts of it."""
    notes: list[AnyNote] = []
    for run, system in zip(explanation.runs, explanation.systems, strict=False):
        of = f" of {system.name}" if len(explanation.runs) > 1 else ""
        for step, made in texts_of(run, detail.query.id).items():
            if list(made) != [detail.query.text]:
                shown = " | ".join(cut(text, _QUERY) for text in made)
                notes.append(result(f"{step}{of}: {shown}"))
    return notes


def _document(placed: Placed) -> str:
    if not placed.title:
        return _ends(placed.doc_id, _DOCUMENT)
    return cut(f"{_ends(placed.doc_id, _DOCUMENT // 2)}: {placed.title}", _DOCUMENT)


def _ends(text: str, cells: int) -> str:
    """``text`` without its middle where it is too long: ids of chunks differ in their last part."""
    if cells_of(clean(text)) <= cells:
        return clean(text)
    end = clean(text)[-(cells // 4) :]
    return cut(text, cells - cells_of(end)) + end


_FATES = {LOST: "lost", LEFT_BELOW: "left below", NO_LEG: "no leg"}


def _shown(detail: QueryDetail, n_runs: int) -> list[Placed]:
    """The first documents of each run and the relevant ones, in the order of ``detail``."""
    top = [
        document
        for document in detail.documents
        if any(r and r <= DOCUMENTS_SHOWN for r in [*document.ranks.values()][:n_runs])
    ]
    relevant = [
        document for document in detail.documents if document.relevant and document not in top
    ]
    kept = {placed.doc_id for placed in (*top, *relevant[:DOCUMENTS_SHOWN])}
    return [document for document in detail.documents if document.doc_id in kept]


def _heads(systems: Sequence[System]) -> list[str]:
    """Short names for columns: of a leg its own, unless another system has it."""
    names = [system.leg or system.name for system in systems]
    return [
        cut(name if names.count(name) == 1 else system.name, _NAME)
        for name, system in zip(names, systems, strict=True)
    ]


def _block_notes(detail: QueryDetail, shown: Sequence[Placed]) -> list[AnyNote]:
    notes: list[AnyNote] = [
        warning(cut(f"{name} failed: {status}", _QUERY))
        for name, status in detail.status.items()
        if status != OK
    ]
    left_out = sum(placed.relevant for placed in detail.documents) - sum(
        placed.relevant for placed in shown
    )
    if left_out:
        notes.append(warning(f"{counted(left_out, 'more relevant document')}: --format json."))
    return notes
