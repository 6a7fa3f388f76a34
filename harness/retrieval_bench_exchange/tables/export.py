"""Tables of datasets that are fetched, and of what was written of them for another tool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.cells import Cell, Content
from retrieval_bench.reports.render.table import AnyNote, Table, result, warning
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench.runs.run import Run
from retrieval_bench_exchange.export import Exported
from retrieval_bench_exchange.formats.irds import PREFIX, QUERIES_IN_CORPUS, Facts, size_text
from retrieval_bench_exchange.trackers.sent import SentRun


def export_tables(made: Exported) -> list[Table]:
    """One row for each file; below it, what is lost."""
    judgements = counted(made.n_judgements, "judgement")
    title = f"{made.dataset} ({made.split}) as {made.format}: {judgements} of "
    title += counted(made.n_queries, "query")
    rows: list[Sequence[Content]] = [(f"{made.folder}/{name}",) for name in made.files]
    notes = [result(f"It can be read back: --dataset {made.folder} --split {made.split}.")]
    if made.lost:
        left = "; ".join(made.lost)
        notes.append(warning(f"Not written, since {made.format} has no place for it: {left}."))
    return [Table(title, ("",), rows, notes=notes)]


def run_table(run: Run, path: Path) -> Table:
    """Return which run was written where."""
    message = f"{run.name} {on_dataset(run.summary.dataset.name)}, with its metadata: {path}"
    return Table("", (), (), lead=[result(message)])


def sent_table(made: SentRun) -> Table:
    """Return which run a tracker has now, and as what."""
    message = f"{made.run} was sent to {made.into}: {counted(made.figures, 'figure')}, as {made.id}"
    return Table("", (), (), lead=[result(message)])


def fetch_tables(facts: Facts, fingerprint: str | None, *, fetched: bool) -> list[Table]:
    """One row for each fact; ``fingerprint`` is None while files are missing."""
    nothing = "nothing: all of it is here" if facts.complete else "nothing"
    rows: list[Sequence[Content]] = [
        ("documents", _count(facts.n_documents)),
        ("queries", _count(facts.n_queries)),
        ("judgements", _count(facts.n_judgements)),
        ("to fetch", size_text(facts) if facts.missing else nothing),
        *(("from", url) for url in facts.missing),
        *(("to put in place", place) for place in facts.by_hand),
        ("licence", facts.licence or "not stated by ir_datasets; see the page"),
        ("page", facts.page),
        ("folder", facts.folder),
        *([("fingerprint", fingerprint)] if fingerprint is not None else []),
    ]
    name = f"{PREFIX}{facts.name}"
    notes: list[AnyNote] = []
    if fetched:
        notes.append(result(f"It was fetched: use it with --dataset {name}."))
    if facts.name.startswith(QUERIES_IN_CORPUS):
        notes.append(
            "Its queries are documents of the corpus. BEIR leaves out hits with the id of their "
            "query: for figures that compare with published ones measure with --self-hits drop."
        )
    return [Table(name, ("", ""), rows, notes=notes, words=(0, 1))]


def _count(n: int | None) -> Cell:
    return Cell("not known" if n is None else n)
