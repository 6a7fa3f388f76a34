"""Pools of documents to judge, and files of labels with them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from retrieval_bench.core.types import Document
from retrieval_bench_labels.judge.judging import Judging
from retrieval_bench_labels.judge.server import LabelServer, open_server
from retrieval_bench_labels.label import Label, Pair, Pool, PooledQuery, digest
from retrieval_bench_labels.store import Store

HOSTILE: Mapping[str, str] = {
    "script": "<script>window.broken = 1</script>",
    "closing": "</script><img src=x onerror='window.broken = 2'>",
    "comment": "<!-- <script> ]]> {{7*7}} ${7*7} &lt;b&gt;",
    "link": '<a href="javascript:window.broken=3">javascript:alert(1)</a>',
    "override": "abc \u202e txt.exe \u202d\u2066 end",
    "arabic": "ما هي عاصمة فرنسا؟ باريس هي العاصمة. وهي مدينة كبيرة.",
    "korean": "프랑스의 수도는 파리이다. 파리는 센 강에 있다. 에펠탑이 유명하다.",
    "emoji": "👩‍👩‍👧 zero\u200bwidth 𝒜𝒷𝒸 é\u0301. The second sentence is here.",
    "control": "nul \x00 bell \x07 escape \x1b[31mred\x1b[0m line\r\nfeed \u2028 end",
    "long": "A sentence of thirty letters. " * 3_400,
    "wide": "x" * 2_000,
    "null": "null",
    "proto": "__proto__",
    "empty": "",
}
"""Texts that try to be something else than a text."""


def make_pool(
    queries: int = 3, depth: int = 3, texts: Mapping[str, str] | None = None, seed: int = 0
) -> Pool:
    """Queries ``q0``, ... with ``depth`` documents each, or one query with the ``texts`` that are
    given."""
    if texts is not None:
        documents = {id_: Document(id_, text, f"title: {text[:60]}") for id_, text in texts.items()}
        asked = [PooledQuery("q0", "Which <b>text</b> is it?", tuple(documents), 1.0)]
    else:
        asked = [
            PooledQuery(f"q{q}", f"question {q}?", tuple(f"d{q}-{d}" for d in range(depth)), 1.0)
            for q in range(queries)
        ]
        documents = {
            doc: Document(doc, f"The text of {doc}. It has two sentences.", f"Title {doc}")
            for query in asked
            for doc in query.documents
        }
    lists = {query.id: query.documents for query in asked}
    turned = {query.id: query.documents[::-1] for query in asked}
    return Pool(
        dataset="sample",
        source=None,
        split="test",
        fingerprint="f" * 16,
        depth=depth,
        seed=seed,
        metric="nDCG@10",
        margin=0.01,
        systems=("one", "two"),
        lists={"one": lists, "two": turned},
        queries=tuple(asked),
        documents=documents,
    )


def make_store(path: Path, pool: Pool | None = None) -> Store:
    """A file of labels with a pool."""
    store = Store.create(path)
    store.put_pool(pool or make_pool())
    return store


def changed_text(pool: Pool, doc: str, text: str) -> Pool:
    """The pool with another text of one document."""
    documents = dict(pool.documents)
    documents[doc] = replace(documents[doc], text=text)
    return replace(pool, documents=documents)


def said(pool: Pool, query: str, doc: str, who: str, grade: int | None) -> Label:
    """What somebody says who has read the text."""
    (text,) = (one.text for one in pool.queries if one.id == query)
    return Label(Pair(query, doc), who, grade, digest=digest(text, pool.documents[doc]))


@contextmanager
def served(store: Store, port: int | None = None) -> Iterator[LabelServer]:
    """A server of ``store`` that answers."""
    server = open_server(Judging(store), port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
