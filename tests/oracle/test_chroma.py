"""Figures of Chroma's own scorer, for the same ranges and lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.metrics import Judgements, judge_lists, parse_metric
from retrieval_bench_chunks.fates import full_precision
from tests.builders.chroma_lists import CUTS, data_of, lists_of, summed_up
from tests.oracle.freeze_chroma import FROZEN

pytestmark = [pytest.mark.realdata, pytest.mark.slow]


def test_recall_precision_iou_and_full_precision_are_those_of_chroma(bench_data: Path) -> None:
    data = data_of(bench_data / "chunks" / "chroma")
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    spans: Any = data.qrels
    query_ids = [query.id for query in data.queries]
    assert len(query_ids) == 472
    checked = 0
    for lists in lists_of(data):
        hits = {q: [place.id for place in of] for q, of in zip(query_ids, lists.hits, strict=True)}
        run = judge_lists(hits, query_ids, Judgements(spans))
        for k in CUTS:
            for name, figures in frozen[f"{lists.name} {k}"].items():
                values = parse_metric(f"{name}@{k}").compute(run)
                np.testing.assert_allclose(summed_up(list(values)), figures, atol=1e-12, rtol=0)
                checked += 1
        chunks: dict[str, list[tuple[int, int]]] = {}
        for doc_id, start, end in lists.chunks:
            chunks.setdefault(doc_id, []).append((start, end))
        full = [full_precision(spans[q].of_document, chunks) for q in query_ids]
        figures = frozen[f"{lists.name} full"]["full precision"]
        np.testing.assert_allclose(summed_up(full), figures, atol=1e-12, rtol=0)
        checked += 1
    assert checked == len(frozen) - 6 + 2 * 18 + 6
