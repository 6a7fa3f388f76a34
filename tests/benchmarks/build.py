"""Building bm25's index beside bm25s's: time, and memory while it is built and afterwards.

Each build has a process of its own (``python -m tests.benchmarks.build SIDE FILE``), where the
libraries are loaded and compiled before the clock starts.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.core.types import Document
from tests.benchmarks import children, memory
from tests.benchmarks.corpus import Corpus, make_corpus
from tests.benchmarks.report import Group, Options, Row


def measure(options: Options) -> Group:
    """Rows for the time of a build, the index and the peak."""
    n_documents, turns = (1_000, 1) if options.quick else (100_000, 3)
    corpus = make_corpus(n_documents, 0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts"
        _write(corpus, file)
        found: dict[str, list[dict[str, Any]]] = {"ours": [], "bm25s": []}
        for turn in range(turns):
            for side in ("ours", "bm25s") if turn % 2 == 0 else ("bm25s", "ours"):
                found[side].append(children.answer("build", side, str(file)))
    ours, theirs = ({key: _median(done, key) for key in done[0]} for done in found.values())
    return Group(
        f"bm25: building the index of {n_documents:,} documents",
        _rows(ours, theirs, corpus.raw_bytes),
        [
            f"medians of {turns} fresh processes each, in turns; texts in memory, libraries loaded",
            "tokenizing included, the same tokenizer on both sides; bm25s gets numbered tokens",
            "index kept: arrays, vocabulary and list of ids, as describe() counts them",
            (
                "grown by: resident memory after the build less that before (texts, libraries), "
                "so with all that an index brings along; peak: the most in between"
            ),
        ],
    )


def _rows(ours: Mapping[str, float], theirs: Mapping[str, float], raw_bytes: int) -> list[Row]:
    rows = [
        Row("wall time", ours["wall"], "s", theirs["wall"], "bm25s", at_most=2),
        Row("processor time", ours["cpu"], "s", theirs["cpu"], "bm25s", at_most=2),
        Row("index kept", ours["index"], "bytes", raw_bytes, "raw text", at_most=2),
    ]
    if "peak" in ours:
        rows.append(
            Row("process grown by", ours["grown"], "bytes", raw_bytes, "raw text", at_most=2)
        )
        rows.append(Row("peak while building", ours["peak"], "bytes", theirs["peak"], "bm25s"))
    return rows


def _median(done: list[dict[str, Any]], key: str) -> float:
    return float(np.median([one[key] for one in done]))


def _write(corpus: Corpus, file: Path) -> None:
    file.write_text("\n".join(document.text for document in corpus.documents), encoding="utf-8")


def _build_ours(documents: list[Document]) -> tuple[Any, int]:
    from retrieval_bench_retrievers.lexical.bm25 import BM25

    retriever = BM25()
    retriever.index(documents)
    return retriever, int(retriever.describe()["index_bytes"])


def _build_bm25s(documents: list[Document]) -> tuple[Any, int]:
    import bm25s

    from retrieval_bench_retrievers.text.tokenizers import make_tokenizer

    tokenize = make_tokenizer("auto")
    vocabulary: dict[str, int] = {}
    tokens = [
        [vocabulary.setdefault(term, len(vocabulary)) for term in tokenize(document.contents)]
        for document in documents
    ]
    model = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend="numba")
    model.index((tokens, vocabulary), show_progress=False)
    arrays = (model.scores[name] for name in ("data", "indices", "indptr"))
    return model, sum(array.nbytes for array in arrays)


def _child(side: str, file: Path) -> dict[str, float]:
    """One build, measured."""
    build = {"ours": _build_ours, "bm25s": _build_bm25s}[side]
    texts = file.read_text(encoding="utf-8").split("\n")
    documents = [Document(f"d{i:06d}", text) for i, text in enumerate(texts)]
    del texts
    build(documents[:50])
    memory.collect()
    memory.reset_peak()
    before = memory.resident_bytes()
    wall, cpu = time.perf_counter(), time.process_time()
    kept, index_bytes = build(documents)
    measured = {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "index": float(index_bytes),
    }
    peak = memory.peak_bytes()
    memory.collect()
    after = memory.resident_bytes()
    del kept
    if before is not None and after is not None and peak is not None:
        measured |= {"peak": float(peak - before), "grown": float(after - before)}
    return measured


if __name__ == "__main__":
    print(json.dumps(_child(sys.argv[1], Path(sys.argv[2]))))
