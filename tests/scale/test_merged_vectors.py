"""What ``dense`` opens after ``data encode``: the vectors of the blocks, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench import Document
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.data import load_dataset
from retrieval_bench_retrievers.dense.dense import Dense
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from retrieval_bench_scale.shards.encode import encode_corpus
from tests.builders import some
from tests.builders.files import json_lines, save_all
from tests.builders.tiny_encoder import WORDS, build_tiny_model, one_thread

pytestmark = pytest.mark.dense

TEXTS = [" ".join(WORDS.split()[at % 40 : at % 40 + at % 23]) for at in range(1_100)]
"""Of which many are equal, also beyond a block, and some empty."""


@pytest.fixture
def params(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Of a model that encodes texts together, over two blocks, with an empty cache."""
    monkeypatch.setenv("RETRIEVAL_BENCH_CACHE", str(here / "cache"))
    rows = [{"_id": f"d{at:04}", "text": text} for at, text in enumerate(TEXTS)]
    save_all(
        here / "data",
        {
            "corpus.jsonl": json_lines([*rows, {"_id": "last", "text": "the last one"}]),
            "queries.jsonl": json_lines([{"_id": "q", "text": "water of trees"}]),
            "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\td0001\t1\n",
        },
    )
    with one_thread():
        yield {"model": str(build_tiny_model(here / "tiny")), "device": "cpu"}


def indexed(params: dict[str, Any]) -> Dense:
    made = Dense(**params)
    made.index(some(load_dataset("data").documents))
    return made


@pytest.mark.usefixtures("in_here")
def test_runs_open_the_vectors_of_the_blocks_in_place_of_those_of_earlier_runs(
    params: dict[str, Any], here: Path
) -> None:
    before = indexed(params)
    assert before.describe()["encoded"] == before.describe()["distinct_texts"] > 500
    encode_corpus({"target": "dense", "params": params}, "data", on="local:1", exact=5, out=here)
    after = indexed(params)
    assert after.describe()["encoded"] == 0
    blocks = np.concatenate([np.load(here / f"00000{at}.npy") for at in range(2)])
    first = {text: blocks[at] for at, text in reversed([*enumerate(TEXTS)])}
    found = after._stored.of([*first])
    assert found.tobytes() == np.stack([*first.values()]).tobytes()
    query = load_dataset("data").queries[0]
    lines = [line.split() for line in (here / "exact-5.run").read_text("utf-8").splitlines()]
    ranking = after.search(query, 5)
    assert [line[2] for line in lines] == list(ranking.doc_ids)
    scores = np.asarray(ranking.scores, np.float64)
    np.testing.assert_allclose([float(line[4]) for line in lines], scores, atol=1e-5)


def test_a_hybrid_lends_the_encoder_of_its_one_dense_leg(params: dict[str, Any]) -> None:
    leg = {"target": "dense", "params": params}
    assert some(Hybrid(legs=["bm25", leg]).document_encoder()).normalized
    twice = Hybrid(legs=[{"name": "a", **leg}, {"name": "b", **leg}])
    assert twice.document_encoder() is None


@pytest.mark.usefixtures("in_here")
def test_without_a_cache_there_is_no_place_to_put_them(params: dict[str, Any], here: Path) -> None:
    dense = {"target": "dense", "params": {**params, "cache": False}}
    with pytest.raises(ConfigError, match="cache: false"):
        encode_corpus(dense, "data", on="local:1", out=here)
    assert not list(here.glob("*.npy")), "it is said before the work"
    encode_corpus(dense, "data", on="local:1", out=here, shard="1/1")
    assert np.load(here / "000001.npy").shape == (77, 32)


def test_vectors_of_another_device_torch_or_precision_are_not_the_same(
    params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    encoder = some(Dense(**params).document_encoder())
    encoder.load()
    usual = some(encoder.identity())
    assert (usual["device"], usual["weights"]) == ("cpu", "torch.float32")
    monkeypatch.setattr(torch, "__version__", f"{torch.__version__}+other")
    assert some(encoder.identity())["torch"] == f"{usual['torch']}+other"


def test_texts_of_a_block_that_are_one_for_the_tokenizer_are_kept_once(
    params: dict[str, Any],
) -> None:
    encoder = some(Dense(**params).document_encoder())
    encoder.load()
    texts = ["\ud83d leaf", "\ude00 leaf", "stone"]
    encoder.keep(texts, encoder.documents(texts))
    made = Dense(**params)
    made.index([Document(f"d{at}", text) for at, text in enumerate(texts)])
    assert made.describe()["encoded"] == 0
