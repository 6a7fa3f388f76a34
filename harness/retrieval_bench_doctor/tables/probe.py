"""Tables of ``bench --probe``: each query with the texts of its hits."""

from __future__ import annotations

from retrieval_bench.core.figures import visible
from retrieval_bench.measure.calls import OK
from retrieval_bench.reports.render.cells import Content
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, warning
from retrieval_bench.reports.render.text import clean, cut
from retrieval_bench_doctor.probing import Probe, ProbedHit, ProbedQuery

_TEXT, _ID = 52, 24


def probe_tables(probe: Probe) -> list[Table]:
    """One table for each query, what to know below the last."""
    tables = [_table(probe, query) for query in probe.queries]
    notes: list[AnyNote] = [
        "A grade stands only where there is a judgement. Nothing was warmed up, measured or saved.",
        *map(warning, probe.warnings),
        next_step("next:  leave --probe out to measure"),
    ]
    tables[-1] = tables[-1].with_notes(notes)
    return tables


def _table(probe: Probe, asked: ProbedQuery) -> Table:
    query = asked.query
    messages: list[str] = [f"{query.id}: {visible(clean(query.text))}"]
    if query.filter is not None:
        messages.append(f"filter: {dict(query.filter.source)}")
    if asked.status != OK:
        return Table(messages[0], (), (), notes=[*messages[1:], warning(f"FAILED: {asked.status}")])
    leaks = any(hit.fits is False for hit in asked.hits)
    head = ("", "document", "score", "grade", "text")
    rows = [_row(rank, hit) for rank, hit in enumerate(asked.hits, start=1)]
    notes: list[AnyNote] = [*messages[1:], f"{probe.retriever} answered in {asked.ms:,.3g} ms."]
    if not asked.hits:
        notes.append(warning("no hits"))
    if leaks:
        notes.append(warning("a hit marked with ! lies outside of the filter"))
    return Table(messages[0], head, rows, notes=notes, words=(1, 4))


def _row(rank: int, hit: ProbedHit) -> list[Content]:
    mark = "!" if hit.fits is False else ""
    return [
        f"{rank}{mark}",
        cut(clean(hit.doc_id), _ID),
        "" if hit.score is None else f"{hit.score:.4g}",
        "" if hit.grade is None else str(hit.grade),
        "" if hit.text is None else cut(clean(hit.text), _TEXT),
    ]
