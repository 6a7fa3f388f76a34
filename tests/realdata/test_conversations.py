"""Last turns of conversations, whose judged passages come from documents that several share: the
figures of the guide, with clusters and without."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from retrieval_bench import compare
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from tests.builders.files import save

pytestmark = pytest.mark.realdata

KEYS = ("conversation_id", "Collection")


def together(judged: dict[str, dict[str, int]]) -> dict[str, str]:
    """Query -> one of those that share a document with it, directly or by others; ids of passages
    end with two offsets."""
    group = {query: query for query in judged}
    first: dict[str, str] = {}
    for query, passages in judged.items():
        for passage in passages:
            own, other = group[query], group[first.setdefault(passage.rsplit("-", 2)[0], query)]
            group = {q: other if of == own else of for q, of in group.items()}
    return group


def last_turns(folder: Path, key: str | None) -> Dataset:
    lines = (folder / "reference.jsonl").read_text(encoding="utf-8").splitlines()
    tasks = [json.loads(line) for line in lines]
    judged: dict[str, dict[str, int]] = {}
    for path in sorted((folder / "qrels").glob("*.tsv")):
        for row in path.read_text(encoding="utf-8").splitlines()[1:]:
            query, passage, grade = row.split("\t")
            judged.setdefault(query, {})[passage] = int(grade)
    passages = {of["document_id"]: of["text"].strip() for task in tasks for of in task["contexts"]}
    groups = together(judged)

    queries = [
        Query(
            name,
            task["input"][-1]["text"],
            metadata={"document": groups[name], **{of: task[of] for of in KEYS}},
        )
        for task in tasks
        if (name := task["task_id"]) in judged
    ]
    documents = [Document(name, text) for name, text in passages.items()]
    return replace(build_dataset("mtrag-un", documents, queries, judged), cluster_key=key)


@pytest.mark.parametrize(
    ("key", "clusters", "ends"),
    [
        (None, None, (-0.215, -0.148, 0.698, 0.777)),
        ("conversation_id", None, (-0.215, -0.148, 0.698, 0.777)),
        ("document", 304, (-0.214, -0.149, 0.626, 0.792)),
        ("Collection", 4, (-1.0, 1.0, 0.248, 0.912)),
    ],
)
def test_clusters_of_last_turns(
    bench_data: Path,
    tmp_path: Path,
    key: str | None,
    clusters: int | None,
    ends: tuple[float, ...],
) -> None:
    data = last_turns(bench_data / "conversations" / "mtrag-un", key)
    assert (len(data.evaluated), data.n_documents) == (332, 1152)
    words = save(tmp_path / "words.yaml", "target: bm25\nparams: {tokenizer: whitespace}\n")
    protocol = Protocol(rounds=1, warm_up_s=0.0)
    document = compare(["bm25", words], data, metrics=["nDCG@10"], protocol=protocol).as_dict()
    (delta,) = document["comparisons"]
    assert (delta["n"], delta.get("clusters")) == (332, clusters)
    figures = document["systems"][0]["metrics"]["nDCG@10"]
    assert figures["mean"] == pytest.approx(0.7394, abs=5e-5)
    assert (*delta["ci"], *figures["ci95"]) == pytest.approx(ends, abs=6e-4)
