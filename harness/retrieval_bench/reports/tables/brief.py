"""The short output of ``bench`` and ``compare``: the answer, what changes how it must be read, the
figures that it rests on, and what to do next. The rest is behind ``-v``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import PurePath

from retrieval_bench.capabilities import service
from retrieval_bench.comparison.claims import Claim, in_doubt
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison, Recommendation
from retrieval_bench.comparison.pairs.comparability import other_settings
from retrieval_bench.comparison.pairs.speed import timed_differently, timed_together
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import BELOW_CLOCK
from retrieval_bench.core.installed.installation import typed
from retrieval_bench.core.notices import LOUD, loudest_first, says
from retrieval_bench.core.types import KEEP, Verdict
from retrieval_bench.experiment.layers import ready
from retrieval_bench.metrics import Metric
from retrieval_bench.reports.render.cells import MEGABYTES, SHORT_MS, SHORT_QUALITY, Content
from retrieval_bench.reports.render.table import (
    NOTHING,
    AnyNote,
    Findings,
    Note,
    NoteKind,
    Table,
    kind_of,
    next_step,
    result,
    warning,
)
from retrieval_bench.reports.render.words import (
    metric_label,
    on_dataset,
    quoting,
    verdict_label,
    word_beside,
)
from retrieval_bench.reports.tables.again import same_of
from retrieval_bench.reports.tables.measure.hits import hits_text, next_to_judge, nothing_judged
from retrieval_bench.reports.tables.measure.run import needless, without_selves
from retrieval_bench.reports.tables.run_facts import (
    below_clock,
    corpus,
    evaluated,
    of_one_run,
    origin_of,
)
from retrieval_bench.reports.tables.understand.comparison import (
    board_tables,
    gap_of,
    how_timed,
    merged_notes,
    queries_of,
)
from retrieval_bench.reports.tables.usage import costs, usage_text
from retrieval_bench.runs.run import Run, relative_folder
from retrieval_bench.runs.summary import Summary
from retrieval_bench.runs.timing_facts import LatencyFacts
from retrieval_bench.stats.defaults import MARGIN

SYSTEMS_SHOWN, WARNINGS_SHOWN = 8, 4
"""The others are behind ``-v``."""

NOT_COMPARED = "not compared"

# -- a run ---------------------------------------------------------------------------------------


def run_brief(run: Run, findings: Findings = NOTHING) -> Table:
    """The answer, what changes how it must be read, the figures that the run stands behind, where
    it was saved, and what to do next."""
    summary, latency = run.summary, run.summary.latency_ms
    lead: list[AnyNote] = list(nothing_judged(run))
    if origin_of(summary.dataset):
        lead.append(result(f"Over {evaluated(summary.dataset)}."))
    lead += [*findings.lead, *findings.brief]
    warnings, worth_knowing = first_warnings(map(warning, _warnings(run)))
    lead += warnings
    means = list(zip(run.evaluation.metrics, run.evaluation.means, strict=True))
    rows: list[list[Content]] = [
        [metric_label(metric), SHORT_QUALITY(mean.mean, mean.ci95)]
        for metric, mean in means[1:]
        if run.judged
    ]
    rows += [] if run.judged else [["hits a query", hits_text(run)]]
    rows += [["latency", text] for text in [_latency(latency)] if text]
    rows += [["cost", text] for text in [usage_text(run)] if text]
    rows += [["ready in", text] for text in [_ready(summary)] if text]
    notes: list[AnyNote] = [*without_selves(summary), *needless(summary), *worth_knowing]
    folder = [] if run.folder is None else [next_step(f"saved: {relative_folder(run)}")]
    then = findings.next or _next(run)
    after = [next_step(f"next:  {then}")] if then and folder else []
    where = "summary.txt in that folder" if folder else "-v"
    more = Note(f"more:  {where} (stages, legs, all percentiles and notes)", NoteKind.MORE)
    judge = [] if run.judged else next_to_judge([run], measured=True)
    return Table(
        _title(run),
        ("", ""),
        rows,
        notes=[*notes, *folder, *after, more, *judge],
        words=(0, 1),
        lead=lead,
    )


def _next(run: Run) -> str:
    """The command that puts another retriever beside it, if one can measure it, too; one that
    would be handed whole documents is none beside one that has them cut."""
    told, data = run.manifest.get("retriever", {}), run.summary.dataset
    target = str(told.get("target"))
    typed = told.get("hash") and not told.get("overrides")  # an object has no hash
    typed = typed and (told.get("source") or not told.get("params")) and not told.get("chunk")
    known = run.judged and run.answered and data.n_documents
    if not (typed and known) or target == "trec_run":
        return ""
    words = [] if data.self_hits == KEEP else ["--self-hits", data.self_hits]
    other = "dense-light" if "bm25" in target else "bm25"
    return ready(same_of(run, "compare", other, *words), [other])


def first_warnings(notices: Iterable[AnyNote]) -> tuple[list[AnyNote], list[AnyNote]]:
    """The first warnings with how many more there are, and the notes."""
    kinds: tuple[list[AnyNote], list[AnyNote]] = ([], [])
    for note in notices:
        kinds[kind_of(note) is not NoteKind.WARNING].append(note)
    warnings, notes = kinds
    left_out = len(warnings) - WARNINGS_SHOWN
    them = "it" if left_out == 1 else "them"
    more = [warning(f"{counted(left_out, 'more warning')}: -v shows {them}.")] * (left_out > 0)
    return [*warnings[:WARNINGS_SHOWN], *more], notes


def _title(run: Run) -> str:
    metric, mean = run.evaluation.metrics[0], run.evaluation.means[0]
    cell = SHORT_QUALITY(mean.mean, mean.ci95)
    of_quality, of_time = (
        in_doubt("bench", run.summary.warnings, claim) for claim in (Claim.QUALITY, Claim.SPEED)
    )
    figures = [f"{metric_label(metric)} {cell.text} {cell.more}".strip() + of_quality] * run.judged
    p50 = run.summary.latency_ms.at("p50")
    if below_clock(run):
        figures.append(f"p50 {BELOW_CLOCK}")
    elif p50.value is not None:
        time = SHORT_MS(p50.value, p50.ci95)
        figures.append(f"{f'p50 {time.text} {time.more}'.strip()} ms{of_time}")
    partial = " (PARTIAL RUN)" if run.summary.status == "partial" else ""
    title = f"{run.name} {on_dataset(run.summary.dataset.name)}{partial}"
    return f"{title}: {', '.join(figures)}" if figures else title


def _warnings(run: Run) -> list[str]:
    """Warn of what changes how the figures must be read."""
    summary = run.summary
    failed = []
    if summary.n_failed and run.judged:  # a warning of the run tells it, too
        queries = counted(summary.n_failed, "query")
        failed = [f"Search FAILED on {queries}: each evaluated one counts 0 in every mean."]
        if answered := summary.answered:
            name, entry = next(iter(answered.metrics.items()))
            figure = f"{metric_label(name)} {SHORT_QUALITY(entry.mean).text}"
            failed[0] += f" Over the {answered.n:,} that were answered: {figure}."
    return [*failed, *loudest_first(summary.warnings)]


def _latency(latency: LatencyFacts) -> str:
    """The percentiles that the run stands behind."""
    figures = []
    for level, entry in latency.levels.items():
        if entry.value is None or (level == "p99" and entry.ci95 is None):
            continue
        cell = SHORT_MS(entry.value, entry.ci95)
        figures.append(f"{level} {cell.text} {cell.more}".strip())
    if not figures:
        return ""
    return f"{'   '.join(figures[:2])} ms over {counted(latency.n, 'call')}, 1 client"


def _ready(summary: Summary) -> str:
    index, n = summary.index, summary.dataset.n_documents or 0
    if index.seconds is None:
        return ""
    memory = index.peak_rss_bytes
    peak = f", peak memory {MEGABYTES.text(memory)} MB" if memory else ""
    what = "opening the saved index of" if index.opened else "indexing"
    return f"{index.seconds:.1f} s ({what} {counted(n, 'document')}){peak}"


# -- a comparison --------------------------------------------------------------------------------


def comparison_brief(comparison: Comparison, *, measured: bool = True) -> list[Table]:
    """For each dataset the answer, what changes how it must be read, and one table with the pairs
    against the leader; then systems over datasets.

    Args:
        measured: whether the runs were measured and saved now.
    """
    tables = list[Table]()
    for group, answer in zip(comparison.groups, comparison.recommendations, strict=True):
        if group.judged:
            tables.append(_group_brief(comparison, group, answer))
        else:
            tables += service("show in short how alike runs answer")(group, answer)
    boards = board_tables(comparison) if len(comparison.judged) > 1 else []
    folders = [run.folder for run in comparison.runs if run.folder is not None]
    saved, bar = [], comparison.margin if comparison.margin != MARGIN else None
    if folders and measured:
        where = str(PurePath(relative_folder(comparison.runs[0])).parent)
        saved = [
            next_step(f"share: {typed('report', '@last', margin=bar)}"),
            next_step(f"saved: {counted(len(folders), 'run')} in {where}"),
        ]
    options = {"margin": bar, "baseline": comparison.baseline}
    again = typed("compare", "@last", "-v", **options) if folders and measured else "-v"
    what = "all metrics, all pairs, latency tests, how it was measured"
    if not comparison.judged:
        what = "more queries that differ, latency tests, how it was measured"
    unjudged = [run for group in comparison.unjudged for run in group.runs]
    alone = measured and len(comparison.groups) == 1  # @last is the last dataset only
    judge = next_to_judge(unjudged, measured=alone) if unjudged else []
    *first, last = [*tables, *boards]
    return [*first, last.with_notes([*saved, next_step(f"more:  {again} ({what})"), *judge])]


def _group_brief(comparison: Comparison, group: DatasetComparison, answer: Recommendation) -> Table:
    metric, n = group.metrics[0], len(group.names)
    leader = comparison.baseline or answer.system or group.ranked(metric)[0][0]
    columns, rows = beside_leader(group, metric, leader)
    lead: list[AnyNote] = [result(" ".join([answer.sentence, *answer.reasons[:1]]))]
    lead += [result(group.sentence)] if group.sentence else []
    warnings, worth_knowing = first_warnings(warnings_of(group))
    lead += warnings
    notes: list[AnyNote] = [*map(result, answer.reasons[1:3]), *worth_knowing]
    pairs = list(zip(group.names, group.runs, strict=True))
    notes += merged_notes(lambda run: without_selves(run.summary), pairs)
    notes += [*files_of(group), *other_settings(group.names, group.runs)]
    if n > len(rows):
        left_out = f"{counted(n - len(rows), 'more system')}: -v shows all."
        notes.append(Note(left_out, NoteKind.MORE))
    if group.meaning:
        notes.append(f'"better", "worse", brackets: {group.meaning}.')
    elif any(row[3] not in ("", NOT_COMPARED) for row in rows):
        corrected = " after Holm's correction" if len(group.of(metric)) > 1 else ""
        notes.append(
            f'"better", "worse": paired randomisation test, p < .05{corrected}; brackets: '
            f'{group.brackets(metric)}. "Faster": median over paired calls.'
        )
    notes += quoting(rows)
    return Table(title_of_group(group), columns, rows, notes=notes, words=(0, 3), lead=lead)


def files_of(group: DatasetComparison) -> list[str]:
    """Return which system is which of the user's files, where the name does not say it."""
    files = []
    for name, run in zip(group.names, group.runs, strict=True):
        source = PurePath(run.manifest.get("retriever", {}).get("source") or "")
        if source.suffix in (".yaml", ".yml") and source.stem != run.name:
            files.append(f"{name} is {source.name}.")
    return files


def beside_leader(
    group: DatasetComparison, metric: Metric, leader: str, most: int = SYSTEMS_SHOWN
) -> tuple[list[str], list[list[Content]]]:
    """Columns and rows: at most ``most`` systems, the leader first, each with its mean, its
    difference from the leader, recall at the largest depth, and its times."""
    deep = [m for m in group.metrics if m.name == "R" and m != metric]
    deepest = max(deep, key=lambda m: m.cut or math.inf, default=None)
    heads, cells = costs(group.runs)
    rows: list[list[Content]] = []
    for name, run in sorted(group.ranked(metric), key=lambda pair: pair[0] != leader)[:most]:
        row: list[Content] = [name, SHORT_QUALITY(run.evaluation.mean(metric).mean)]
        row += ("-", "") if name == leader else against(group, metric, name, leader)
        if deepest is not None:
            row.append(SHORT_QUALITY(run.evaluation.mean(deepest).mean))
        rows.append([*row, *cells(run)])
    columns = ["system", metric_label(metric), f"against {leader}", ""]
    columns += [metric_label(deepest)] if deepest is not None else []
    return [*columns, *heads], rows


def title_of_group(group: DatasetComparison) -> str:
    """The dataset, how deep, and how systems were timed."""
    cuts = sorted({run.summary.k for run in group.runs})
    timed = ""
    if any(run.summary.latency_ms.mean is not None for run in group.runs):
        together = timed_together(group.runs) and not timed_differently(group.runs)
        timed = f"; times {'interleaved' if together else 'measured apart'}, 1 client"
    documents = {corpus(run.summary.dataset) for run in group.runs}
    of = f", {documents.pop()}" if len(documents) == 1 else ""
    return f"{group.dataset}: {queries_of(group)}{of}, top {' / '.join(map(str, cuts))}{timed}"


def against(
    group: DatasetComparison, metric: Metric, name: str, leader: str
) -> tuple[Content, Content]:
    """The difference of ``name`` from ``leader`` with its interval, and the verdict on it."""
    for delta in group.of(metric):
        if {delta.a, delta.b} == {name, leader}:
            break
    else:
        return "-", NOT_COMPARED
    sign = 1 if delta.b == name else -1
    bound = delta.bound if sign == 1 or delta.bound is None else (-delta.bound[1], -delta.bound[0])
    turned = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    verdict = delta.verdict if sign == 1 else turned.get(delta.verdict, delta.verdict)
    word = verdict_label(verdict, identical=delta.identical)
    return gap_of(delta, sign, short=True), word_beside(word, bound)


def warnings_of(group: DatasetComparison) -> list[AnyNote]:
    """Warn of what changes how the answer must be read, equal warnings of several systems
    together."""
    pairs = list(zip(group.names, group.runs, strict=True))
    timed = how_timed(group.runs)

    def of_runs(*, loud: bool) -> list[AnyNote]:
        return merged_notes(
            lambda run: [
                warning(text)
                for text in loudest_first(of_one_run(run))
                if says([text], *LOUD) is loud
            ],
            pairs,
        )

    return [
        *of_runs(loud=True),
        *map(warning, group.warnings),
        *([timed] if kind_of(timed) is NoteKind.WARNING else []),
        *of_runs(loud=False),
    ]
