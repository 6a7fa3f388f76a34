"""The package ir_datasets with datasets of our own: its classes over local files, no network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAME = "rb-own"
DUA = "Please confirm you agree to share alike"
NOWHERE = "http://127.0.0.1:9/corpus.tsv"
MIRROR = "http://127.0.0.1:9/mirror"


@contextmanager
def own_irds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package, for as long: ``rb-own/test`` and ``/train`` are here, ``rb-own/far`` has a
    corpus that nobody serves, ``rb-own/bought`` one that nobody may hand on."""
    home = folder / "home"
    home.mkdir()
    monkeypatch.setenv("IR_DATASETS_HOME", str(home))
    import ir_datasets  # makes its home when it is imported

    monkeypatch.setenv("IR_DATASETS_DL_TRIES", "1")
    monkeypatch.setenv("IR_DATASETS_DL_DISABLE_PBAR", "true")
    texts = {
        "corpus.tsv": "d1\tThe sea is deep.\nd2\t바다는 깊다.\nd3\tDesert sand.\n",
        "queries.tsv": "q1\thow deep is the sea?\nq2\t바다는 얼마나 깊은가?\n",
        "test.qrels": "q1 0 d1 1\nq2 0 d2 2\nq2 1 d2 1\nq2 0 d3 -1\n",
        "train.qrels": "q2 0 d2 1\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    util, formats = ir_datasets.util, ir_datasets.formats
    here = {name: util.download.LocalDownload(folder / name) for name in texts}
    far = util.Download(
        [util.download.RequestsDownload(NOWHERE), util.download.RequestsDownload(MIRROR)],
        cache_path=str(home / "corpus.tsv"),
        size_hint=1_234_567,
        dua=DUA,
    )
    wrap = util.Download
    bought = util.Download(
        [util.download.LocalDownload(home / "bought.tsv")],
        cache_path=str(home / "bought.tsv"),
    )
    queries = formats.TsvQueries(wrap([here["queries.tsv"]]), lang="en")
    parts = {
        "test": (wrap([here["corpus.tsv"]]), "test.qrels"),
        "train": (wrap([here["corpus.tsv"]]), "train.qrels"),
        "far": (far, "test.qrels"),
        "bought": (bought, "test.qrels"),
    }
    names = []
    for part, (corpus, qrels) in parts.items():
        docs = formats.TsvDocs(corpus, namespace=NAME, lang="en", count_hint=3)
        judged = formats.TrecQrels(wrap([here[qrels]]), {1: "relevant"})
        names.append(f"{NAME}/{part}")
        ir_datasets.registry.register(names[-1], ir_datasets.Dataset(docs, queries, judged))
    names.append(NAME)
    ir_datasets.registry.register(NAME, ir_datasets.Dataset(docs, queries))
    yield ir_datasets
    for name in names:
        del ir_datasets.registry._registered[name]
