"""What is shown of a dataset that can be fetched: size, licence, source."""

from __future__ import annotations

from retrieval_bench.data.formats.irds import PREFIX, Facts, size_text
from retrieval_bench.reports.render.table import Table


def fetch_tables(facts: Facts, fingerprint: str | None, *, fetched: bool) -> list[Table]:
    """One row for each fact; ``fingerprint`` is None while files are missing."""
    here = ": all of it is here" if facts.complete else ""
    rows = [
        ("documents", _count(facts.n_documents)),
        ("queries", _count(facts.n_queries)),
        ("judgements", _count(facts.n_judgements)),
        ("to fetch", size_text(facts) if facts.missing else "nothing" + here),
        *(("from", url) for url in facts.missing),
        *(("to put in place", place) for place in facts.by_hand),
        ("licence", facts.licence or "not stated by ir_datasets; see the page"),
        ("page", facts.page),
        ("folder", facts.folder),
    ]
    notes = []
    if fetched:
        notes.append(f"fetched; use it with --dataset {PREFIX}{facts.name}")
    if fingerprint is not None:
        rows.append(("fingerprint", fingerprint))
    return [Table(f"{PREFIX}{facts.name}", ("", ""), rows, notes=notes, words=(0, 1))]


def _count(given: int | None) -> str:
    return "not known" if given is None else f"{given:,}"
