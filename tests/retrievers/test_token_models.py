"""Late interaction and learned sparse retrieval, on small models that the tests build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError, ModelError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.dense import maxsim
from retrieval_bench_retrievers.dense.maxsim import MaxSim, TokenVectors
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.encoders.term_encoder import TermEncoder
from retrieval_bench_retrievers.encoders.token_encoder import TokenEncoder
from retrieval_bench_retrievers.lexical.learned_sparse import LearnedSparse
from retrieval_bench_retrievers.pipeline.pipeline import Pipeline
from retrieval_bench_retrievers.rerank.named import reranker_of
from tests.builders.tiny_encoder import build_tiny_model, one_thread
from tests.builders.tiny_token_models import build_multi_vector_model, build_sparse_encoder

pytestmark = pytest.mark.needs("sentence_transformers", "torch", "transformers")

DOCUMENTS = [
    Document("d2", "the whale is a fish", metadata={"kind": "sea"}),
    Document("d1", "iron and gold", "Stones", metadata={"kind": "land"}),
    Document("d3", "ants and bees", metadata={"kind": "land"}),
    Document("d4", ""),
    Document("d5", "the whale is a fish"),
]
Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("models")
    build_multi_vector_model(folder / "tokens")
    build_sparse_encoder(folder / "terms")
    build_tiny_model(folder / "single")
    with one_thread():
        yield folder


def by_hand(query: Floats, document: Floats) -> float:
    """MaxSim, pair of tokens by pair of tokens."""
    return float(sum(max(float(q @ d) for d in document) for q in query))


class TestTokenVectors:
    @pytest.fixture
    def documents(self) -> list[Floats]:
        rng = np.random.default_rng(3)
        made = [rng.normal(size=(n, 8)).astype(np.float32) for n in (3, 1, 0, 7, 2)]
        return [one / np.linalg.norm(one, axis=1, keepdims=True) for one in made]

    @pytest.fixture
    def query(self) -> Floats:
        return np.random.default_rng(4).normal(size=(5, 8)).astype(np.float32)

    @pytest.mark.parametrize("block", [1, 12, 1 << 20])
    def test_it_is_the_sum_of_the_greatest_similarities(
        self, documents: list[Floats], query: Floats, block: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(maxsim, "_BLOCK", block)
        kept = TokenVectors("float32", 8)
        kept.set(documents)
        wanted = [by_hand(query, one) if len(one) else 0.0 for one in documents]
        np.testing.assert_allclose(kept.scores(query), wanted, rtol=1e-5)
        rows = np.array([4, 0, 2])
        np.testing.assert_allclose(kept.scores(query, rows), np.array(wanted)[rows], rtol=1e-5)

    def test_int8_is_exact_in_what_it_keeps(self, documents: list[Floats], query: Floats) -> None:
        kept = TokenVectors("int8", 8)
        kept.set(documents)
        coarse = []
        for one in documents:
            factors = np.abs(one).max(axis=1, initial=0, keepdims=True) / 127
            coarse.append((np.rint(one / factors) * factors).astype(np.float32))
        wanted = [by_hand(query, one) if len(one) else 0.0 for one in coarse]
        np.testing.assert_allclose(kept.scores(query), wanted, rtol=1e-5)
        whole = TokenVectors("float32", 8)
        whole.set(documents)
        np.testing.assert_allclose(kept.scores(query), whole.scores(query), atol=0.1)
        assert kept.nbytes < whole.nbytes


class TestMaxSim:
    @pytest.mark.slow
    def test_scores_are_those_of_the_library(self, models: Path) -> None:
        from sentence_transformers import MultiVectorEncoder

        retriever = MaxSim(str(models / "tokens"))
        retriever.index(DOCUMENTS)
        found = retriever.search(Query("q", "a whale and gold"), 5)
        library = MultiVectorEncoder(str(models / "tokens"), device="cpu")
        texts = {one.id: one.contents for one in DOCUMENTS}
        wanted = library.similarity(
            library.encode_query(["a whale and gold"]),
            [library.encode_document([texts[doc_id]])[0] for doc_id in found.doc_ids],
        )
        assert found.scores is not None
        np.testing.assert_allclose(found.scores, wanted.numpy()[0], atol=1e-4)
        assert set(found.stages or {}) == {"encode", "maxsim"}
        assert list(found.doc_ids).index("d2") + 1 == list(found.doc_ids).index("d5")

    def test_filters_come_before_the_cut(self, models: Path) -> None:
        retriever = MaxSim(str(models / "tokens"), precision="int8")
        retriever.use_filters(["kind"])
        retriever.index(DOCUMENTS)
        query = Query("q", "whale", filter=parse_filter({"kind": "land"}))
        assert set(retriever.search(query, 2).doc_ids) == {"d1", "d3"}
        nothing = Query("q", "whale", filter=parse_filter({"kind": "sky"}))
        assert not retriever.search(nothing, 2).doc_ids

    def test_what_was_kept_is_said(self, models: Path) -> None:
        retriever = MaxSim(str(models / "tokens"), precision="int8")
        retriever.index(DOCUMENTS)
        said = retriever.describe()
        assert (said["precision"], said["documents"], said["dimension"]) == ("int8", 5, 128)
        assert said["vector_bytes"] > 128 * said["tokens"]

    def test_an_unknown_precision_is_refused(self, models: Path) -> None:
        with pytest.raises(ConfigError, match=r"^precision = 'int4'") as caught:
            MaxSim(str(models / "tokens"), precision="int4")
        assert "float32" in str(caught.value.accepted)

    def test_it_reranks_in_a_pipeline_by_vectors_made_before_the_call(self, models: Path) -> None:
        steps: list[Mapping[str, Any]] = [
            {"retrieve": "bm25", "depth": 5},
            {"rerank": "maxsim", "params": {"model": str(models / "tokens")}},
        ]
        pipeline = Pipeline(steps=steps)
        pipeline.index(DOCUMENTS)
        alone = MaxSim(str(models / "tokens"))
        alone.index(DOCUMENTS)
        query = Query("q", "whale gold ants")
        found, wanted = pipeline.search(query, 3), alone.search(query, 5)
        kept = [one for one in wanted.doc_ids if one in set(found.doc_ids)]
        assert list(found.doc_ids) == kept
        assert len(kept) == 3


class TestLearnedSparse:
    def test_the_score_is_the_product_of_the_weights(self, models: Path) -> None:
        from sentence_transformers import SparseEncoder

        retriever = LearnedSparse(str(models / "terms"))
        retriever.index(DOCUMENTS)
        found = retriever.search(Query("q", "a whale and gold"), 5)
        library = SparseEncoder(str(models / "terms"), device="cpu")
        texts = {one.id: one.contents for one in DOCUMENTS}
        query = library.encode_query(["a whale and gold"]).to_dense().numpy()[0]
        weights = [
            library.encode_document([texts[doc_id]]).to_dense().numpy()[0]
            for doc_id in found.doc_ids
        ]
        assert found.scores is not None
        np.testing.assert_allclose(found.scores, np.array(weights) @ query, rtol=1e-4)
        assert list(found.scores) == sorted(found.scores, reverse=True)
        assert set(found.stages or {}) == {"encode", "sparse"}

    def test_filters_come_before_the_cut(self, models: Path) -> None:
        retriever = LearnedSparse(str(models / "terms"))
        retriever.use_filters(["kind"])
        retriever.index(DOCUMENTS)
        query = Query("q", "whale", filter=parse_filter({"kind": "land"}))
        assert set(retriever.search(query, 2).doc_ids) == {"d1", "d3"}


@pytest.mark.parametrize("kind", [TokenEncoder, TermEncoder])
def test_a_model_of_single_vectors_is_refused(models: Path, kind: type[Encoder]) -> None:
    """The library would give it a projection of random weights, and figures that mean nothing."""
    encoder = kind(str(models / "single"))
    with pytest.raises(ModelError, match="has no weights") as caught:
        encoder.load()
    assert "multi-vector" in str(caught.value) or "sparse" in str(caught.value)


def test_a_reranker_of_late_interaction_needs_a_model(models: Path) -> None:
    with pytest.raises(ModelError, match="no folder"):
        reranker_of("maxsim", {"model": "./nowhere"})
