"""One engine over one corpus, in a process of its own: it builds, says so, and searches.

A script that needs nothing of this package, so that the interpreter of another revision can run it:
``python -P one_engine.py SPEC``, SPEC being JSON with ``engine``, ``documents`` (a file of JSON
lines), ``n``, ``queries`` (texts), ``k`` and ``folder`` (for what it writes). It prints a line of
JSON after the build, and one in the end.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

WARM_UP = 50
K1, B = 0.9, 0.4


class Ready(NamedTuple):
    """An index that can be searched.

    Attributes:
        search: text -> (ids, scores), best first.
        nbytes: of the index, in memory or on disk.
        batch: all texts at once, for an engine whose single calls are not to be compared.
    """

    search: Callable[[str], tuple[list[str], list[float]]]
    nbytes: int
    batch: Callable[[list[str]], object] | None = None


class Lines:
    """Documents as the retriever takes them, read anew at every walk."""

    def __init__(self, path: str, n: int) -> None:
        self._path, self._n = path, n

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Any]:
        from retrieval_bench.core.types import Document

        return (Document(doc_id, text) for doc_id, text in texts(self._path))


def texts(path: str) -> Iterator[tuple[str, str]]:
    """Ids and texts of a file of JSON lines."""
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            yield record["_id"], record["text"]


def bm25(spec: dict[str, Any]) -> Ready:
    """This project's, of whatever revision the interpreter finds."""
    from retrieval_bench.core.plugins import resolve
    from retrieval_bench.core.types import Query

    retriever = resolve("retriever", "bm25")(k1=K1, b=B)
    retriever.index(Lines(spec["documents"], spec["n"]))

    def search(text: str) -> tuple[list[str], list[float]]:
        ranking = retriever.search(Query("q", text), spec["k"])
        return list(ranking.doc_ids), np.asarray(ranking.scores).tolist()

    return Ready(search, int(retriever.describe()["index_bytes"]))


def bm25s(spec: dict[str, Any]) -> Ready:
    """bm25s with its numba backend, on the terms of this project's tokenizer."""
    import bm25s as library

    from retrieval_bench_retrievers.text.tokenizers import make_tokenizer

    tokenize = make_tokenizer("auto")
    vocabulary: dict[str, int] = {}
    ids, tokens = [], []
    for doc_id, text in texts(spec["documents"]):
        ids.append(doc_id)
        terms = tokenize(text)
        tokens.append([vocabulary.setdefault(term, len(vocabulary)) for term in terms])
    model = library.BM25(method="lucene", k1=K1, b=B, backend="numba")
    model.index((tokens, vocabulary), show_progress=False)
    nbytes = sum(model.scores[name].nbytes for name in ("data", "indices", "indptr"))

    def search(text: str) -> tuple[list[str], list[float]]:
        found, scores = model.retrieve(
            [tokenize(text)], k=spec["k"], n_threads=0, show_progress=False
        )
        return [ids[at] for at in found[0].tolist()], scores[0].tolist()

    return Ready(search, nbytes)


def turbo(spec: dict[str, Any]) -> Ready:
    """bm25-turbo, on texts that are lower-case words already."""
    library = import_module("bm25_turbo_python")

    ids, corpus = zip(*texts(spec["documents"]), strict=True)
    index = library.BM25(k1=K1, b=B, method="lucene")
    index.index(list(corpus))

    def search(text: str) -> tuple[list[str], list[float]]:
        found, scores = index.search(text, spec["k"])
        return [ids[at] for at in found], list(scores)

    path = Path(spec["folder"]) / "turbo"
    index.save(str(path))
    return Ready(search, _on_disk(path))


def tantivy(spec: dict[str, Any]) -> Ready:
    """tantivy with its parameters of BM25, which cannot be changed (k1 1.2, b 0.75)."""
    library = import_module("tantivy")

    builder = library.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", tokenizer_name="whitespace")
    path = Path(spec["folder"]) / "tantivy"
    path.mkdir()
    index = library.Index(builder.build(), path=str(path))
    writer = index.writer(heap_size=300_000_000, num_threads=2)
    for doc_id, text in texts(spec["documents"]):
        writer.add_document(library.Document(id=doc_id, text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(text: str) -> tuple[list[str], list[float]]:
        asked = index.parse_query(text, ["text"])
        hits = searcher.search(asked, spec["k"], count=False).hits
        return [searcher.doc(at)["id"][0] for _, at in hits], [score for score, _ in hits]

    return Ready(search, _on_disk(path))


def pisa(spec: dict[str, Any]) -> Ready:
    """PISA through pyterrier-pisa: its time is that of a batch, divided."""
    import pandas as pd

    library = import_module("pyterrier_pisa")
    path = Path(spec["folder"]) / "pisa"
    index = library.PisaIndex(str(path), stemmer="none", stops="none", threads=1)
    index.index({"docno": doc_id, "text": text} for doc_id, text in texts(spec["documents"]))
    ranker = index.bm25(k1=K1, b=B, num_results=spec["k"], threads=1)

    def batch(asked: list[str]) -> Any:
        return ranker(pd.DataFrame({"qid": [*map(str, range(len(asked)))], "query": asked}))

    def search(text: str) -> tuple[list[str], list[float]]:
        found = batch([text])
        return found["docno"].tolist(), found["score"].tolist()

    return Ready(search, _on_disk(path), batch)


def _on_disk(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def main(spec: dict[str, Any]) -> None:
    """Build and search once."""
    began = time.perf_counter()
    ready: Ready = globals()[spec["engine"]](spec)
    wall = time.perf_counter() - began
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in used)
    print(json.dumps({"build_s": wall, "cpu_s": cpu, "bytes": ready.nbytes}), flush=True)
    asked = spec["queries"]
    for text in asked[:WARM_UP]:
        ready.search(text)
    found, walls = [], []
    for text in asked[: 100 if ready.batch else None]:
        start = time.perf_counter()
        answer = ready.search(text)
        walls.append(time.perf_counter() - start)
        found.append(answer)
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]
    said = {"p50_s": float(np.quantile(walls, 0.5)), "p95_s": float(np.quantile(walls, 0.95))}
    if ready.batch:
        start = time.perf_counter()
        ready.batch(asked)
        said = {"p50_s": (time.perf_counter() - start) / len(asked), "p95_s": float("nan")}
    print(json.dumps({**said, "rankings": digest}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
