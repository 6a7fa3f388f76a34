"""Parquet: values that JSON does not have, and runs as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench import bench
from retrieval_bench.core.types import Dataset
from retrieval_bench.data import load_dataset
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.files.rows import rows
from retrieval_bench.measure.protocol import Protocol
from tests.builders.files import json_lines, save_all

pytestmark = pytest.mark.needs("pyarrow")

SEOUL = timezone(timedelta(hours=9))
QUICK = Protocol(rounds=1, warm_up_s=0)
TIMES = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)]


def parquet(path: Path, columns: Mapping[str, Any]) -> Path:
    import pyarrow as arrow
    from pyarrow import parquet as writer

    path.parent.mkdir(parents=True, exist_ok=True)
    writer.write_table(arrow.table(dict(columns)), path)
    return path


def dated(folder: Path, times: Sequence[Any]) -> Dataset:
    """The collection of K6: four documents of one text, each on a day of its own."""
    asked = [{"id": i, "text": "news", "filter": {"ts": {"gte": "2024-01-02"}}} for i in (1, 2, 3)]
    judged = [{"query_id": i, "doc_id": 9 + i} for i in (1, 2, 3)]
    save_all(
        folder,
        {
            "dataset.yaml": "format: plain\nfiles: {documents: c.parquet, queries: q.jsonl}\n"
            "splits: {test: j.jsonl}\ncolumns: {judgements: {grade: null}}\n",
            "q.jsonl": json_lines(asked),
            "j.jsonl": json_lines(judged),
        },
    )
    parquet(folder / "c.parquet", {"id": [10, 11, 12, 13], "text": ["news"] * 4, "ts": times})
    return load_dataset(folder)


@pytest.mark.parametrize(
    ("times", "first"),
    [
        (TIMES, "2024-01-01T00:00:00+00:00"),
        ([one.replace(tzinfo=None) for one in TIMES], "2024-01-01T00:00:00"),
        ([one.date() for one in TIMES], "2024-01-01"),
        ([one.astimezone(SEOUL) for one in TIMES], "2024-01-01T09:00:00+09:00"),
        (np.array(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"], "datetime64[ns]"),
         "2024-01-01T00:00:00"),
        ([one.isoformat() for one in TIMES], "2024-01-01T00:00:00+00:00"),
    ],
    ids=["UTC", "no zone", "dates", "a zone", "nanoseconds", "text"],
)  # fmt: skip
def test_dates_and_times_are_texts_whoever_reads_them(
    tmp_path: Path, times: Sequence[Any], first: str
) -> None:
    """K6: filters, the check of leaks and exported files agree."""
    data = dated(tmp_path / "data", times)
    assert next(document.metadata["ts"] for document in data.documents or ()) == first
    (told,) = data.warnings
    assert told.startswith("queries with a relevant document that their filter leaves out: it")
    assert told.endswith("q.jsonl '1')")
    found = bench("bm25", data, k=3, protocol=QUICK).run
    assert found.rankings.row(0).doc_ids == ["11", "12", "13"]
    assert found.summary.filters is not None
    assert found.summary.filters.leaked == 0


@pytest.mark.needs("retrieval_bench_exchange")
def test_they_can_be_exported(tmp_path: Path) -> None:
    """K6: where JSON was asked for, it was refused."""

    from retrieval_bench_exchange.export import export_dataset

    export_dataset(dated(tmp_path / "data", TIMES), "beir", tmp_path / "out")
    assert '"ts": "2024-01-02T00:00:00+00:00"' in (tmp_path / "out" / "corpus.jsonl").read_text()


def test_what_json_does_not_have_is_taken_apart_inside_of_others_too(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "c.parquet",
        {
            "seen": [[date(2024, 1, 2), None]],
            "about": [{"at": time(8, 30), "took": timedelta(minutes=2)}],
            "price": [Decimal("2.50")],
            "count": [Decimal(7)],
            "left": [3],
        },
    )
    ((_, row),) = rows(path, (), Faults())
    assert row == {
        "seen": ["2024-01-02", None],
        "about": {"at": "08:30:00", "took": "PT120S"},
        "price": 2.5,
        "count": 7,
        "left": 3,
    }
