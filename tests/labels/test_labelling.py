"""What is said of labels that miss relevant documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from retrieval_bench.reports.render.table import NoteKind, kind_of, text_of
from retrieval_bench_labels.decide.status import Status, status
from retrieval_bench_labels.tables.labelling import status_tables
from tests.builders import some
from tests.builders.labels import make_pool, make_store, said

ALIKE: Mapping[str, slice] = {"one": slice(0, 4), "two": slice(0, 4)}
APART: Mapping[str, slice] = {"one": slice(0, 2), "two": slice(1, 4)}


def judged(path: Path, returned: Mapping[str, slice]) -> Status:
    """Judge four documents of each of six queries as relevant, of which a system returns some."""
    pool = make_pool(queries=6, depth=4)
    lists = {
        name: {query.id: query.documents[part] for query in pool.queries}
        for name, part in returned.items()
    }
    pool = replace(pool, lists=lists)
    store = make_store(path / "labels.db", pool)
    for query in pool.queries:
        store.add_all(said(pool, query.id, doc, "ann", 1) for doc in query.documents)
    return status(store)


def warnings(found: Status) -> str:
    notes = [note for table in status_tables(found, "labels.db") for note in table.notes]
    notes += [note for table in status_tables(found, "labels.db") for note in table.lead]
    return "\n".join(text_of(note) for note in notes if kind_of(note) is NoteKind.WARNING)


def test_recall_is_said_to_be_overstated_where_the_systems_share_few_relevant_documents(
    tmp_path: Path,
) -> None:
    found = judged(tmp_path, APART)
    chapman = (12 + 1) * (18 + 1) / (6 + 1) - 1
    assert some(found.completeness.share_found) == pytest.approx(24 / chapman)
    assert "recall is overstated" in warnings(found)


def test_recall_is_not_said_to_be_overstated_where_the_systems_find_the_same(
    tmp_path: Path,
) -> None:
    found = judged(tmp_path, ALIKE)
    assert some(found.completeness.share_found) == 1
    assert "overstated" not in warnings(found)
