from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core import plugins
from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.errors import (
    ConfigError,
    ContractError,
    MissingDependencyError,
    ModelError,
)
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.installed.installation import how_to_add
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Retriever, Rung
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench.testing import RetrieverConformance
from retrieval_bench_retrievers.dense import faiss_index
from retrieval_bench_retrievers.dense.dense import Dense
from retrieval_bench_retrievers.dense.faiss_index import IndexSettings, Nearest
from retrieval_bench_retrievers.encoders import fit as encoder_fit
from retrieval_bench_retrievers.encoders import vectors as document_vectors
from retrieval_bench_retrievers.encoders.encoder import Encoder, Vectors
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from tests.builders import some
from tests.builders.processes import loads
from tests.builders.tiny_encoder import WORDS, build_tiny_model, one_thread

MODELS: dict[str, Path] = {}
pytestmark = pytest.mark.dense


@pytest.fixture(scope="module", autouse=True)
def _models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("models")
    MODELS["tiny"] = build_tiny_model(folder / "tiny")
    MODELS["unnormalised"] = build_tiny_model(folder / "unnormalised", normalize=False)
    with one_thread():
        yield


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RETRIEVAL_BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def made(**params: Any) -> Dense:
    return Dense(**{"model": str(MODELS["tiny"]), "device": "cpu", **params})


def indexed(documents: list[Document], **params: Any) -> Dense:
    retriever = made(**params)
    retriever.index(documents)
    return retriever


def corpus(n: int, seed: int = 3) -> list[Document]:
    """``n`` documents of three to twelve words, no two alike."""
    draw = random.Random(seed)
    words = WORDS.split()
    texts: dict[str, None] = {}
    while len(texts) < n:
        texts[" ".join(draw.choices(words, k=draw.randint(3, 12)))] = None
    return [Document(f"d{i}", text) for i, text in enumerate(texts)]


def asked(retriever: Dense, text: str, k: int = 10) -> Ranking:
    return retriever.search(Query("q", text), k)


class TestFlat(RetrieverConformance):
    def make(self) -> Retriever:
        return made()


class TestGraph(RetrieverConformance):
    def make(self) -> Retriever:
        return made(index="hnsw", batch_size=3)


class TestEightBits(RetrieverConformance):
    def make(self) -> Retriever:
        return made(precision="int8", dimensions=24)


class TestLists(RetrieverConformance):
    def make(self) -> Retriever:
        return made(index={"type": "ivf", "nlist": 4, "nprobe": 2})


def test_scores_are_cosines_of_the_encoders_vectors() -> None:
    documents = corpus(30)
    encoder = Encoder(str(MODELS["tiny"]), device="cpu")
    encoder.load()
    vectors = np.concatenate([encoder.encode_query(d.text) for d in documents]).astype(np.float64)
    query = encoder.encode_query("river water")[0].astype(np.float64)
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    expected = {d.id: cosine for d, cosine in zip(documents, cosines, strict=True)}
    ranking = asked(indexed(documents), "river water", 30)
    assert set(ranking.doc_ids) == set(expected)
    assert list(some(ranking.scores)) == pytest.approx(
        [expected[i] for i in ranking.doc_ids], abs=1e-5
    )


def test_dot_takes_the_length_of_vectors_into_account_and_cosine_does_not() -> None:
    documents, model = corpus(30), str(MODELS["unnormalised"])
    by_cosine = asked(indexed(documents, model=model), "river water", 30)
    by_dot = asked(indexed(documents, model=model, similarity="dot"), "river water", 30)
    assert max(some(by_cosine.scores)) <= 1.00001
    assert max(some(by_dot.scores)) > 2


def test_the_title_belongs_to_what_is_encoded() -> None:
    retriever = indexed([Document("a", "water", title="river"), Document("b", "river water")])
    ranking = asked(retriever, "river water")
    assert list(ranking.doc_ids) == ["a", "b"]
    assert len(set(some(ranking.scores))) == 1


def test_equal_texts_are_encoded_once_and_score_alike_among_other_ties() -> None:
    documents = [Document(f"{i % 2}{i}", "river water" if i % 2 else "ice") for i in range(60)]
    retriever = indexed(documents)
    assert retriever.describe()["encoded"] == retriever.describe()["distinct_texts"] == 2
    ranking = asked(retriever, "river water", 45)
    expected = sorted(d.id for d in documents if d.text != "ice")
    expected += sorted(d.id for d in documents if d.text == "ice")
    assert list(ranking.doc_ids) == expected[:45]
    assert len(set(some(ranking.scores))) == 2


class _TiesBackwards:
    """Exhaustive search that returns ties, and so cuts them, highest row first."""

    nbytes = 0

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def nearest(self, query: Vectors, k: int, among: Any = None) -> Nearest:
        assert among is None
        scores = self._vectors @ query[0]
        rows = np.lexsort((-np.arange(len(scores)), -scores))[:k]
        return scores[rows], rows


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3, 30, 117, 200, 300])
@pytest.mark.parametrize("copies", [1, 3])
def test_texts_of_one_score_come_by_id_however_many_tie_at_the_cut(
    monkeypatch: pytest.MonkeyPatch, k: int, copies: int
) -> None:
    def in_two_classes(_: Encoder, texts: list[str]) -> Iterator[tuple[list[int], Vectors]]:
        vectors = np.zeros((len(texts), 32), dtype=np.float32)
        vectors[:, 0] = [text.startswith("b") for text in texts]
        yield list(range(len(texts))), vectors

    monkeypatch.setattr(Encoder, "document_batches", in_two_classes)
    monkeypatch.setattr(Encoder, "encode_query", lambda *_: np.eye(1, 32, dtype=np.float32))
    monkeypatch.setattr(IndexSettings, "build", lambda _, vectors: _TiesBackwards(vectors))
    ids = [f"{i:03}" for i in range(200)]
    documents = [Document(i, f"{'ab'[n >= 195]} {n // copies}") for n, i in enumerate(ids)]
    random.Random(1).shuffle(documents)
    ranking = asked(indexed(documents, cache=False), "river", k)
    assert list(ranking.doc_ids) == [*ids[195:], *ids[:195]][:k]


def test_a_shuffled_corpus_gives_the_same_scores_to_the_last_bit() -> None:
    documents = corpus(100)
    shuffled = random.Random(9).sample(documents, len(documents))
    one = asked(indexed(documents, cache=False), "bird on ice", 100)
    other = asked(indexed(shuffled, cache=False), "bird on ice", 100)
    assert list(one) == list(other)


@pytest.mark.parametrize("text", ["", "  \t\n", "\u3000"])
def test_a_blank_query_finds_nothing(text: str) -> None:
    assert len(asked(indexed(corpus(5)), text)) == 0


def test_documents_that_are_blank_or_broken_are_indexed_like_others() -> None:
    documents = [Document("a", ""), Document("b", " "), Document("c", "a\ud800b"), *corpus(3)]
    assert len(asked(indexed(documents), "고래\ud800")) == 6


def test_a_document_id_given_twice_is_an_error() -> None:
    with pytest.raises(ContractError, match="document id 'd1' given twice"):
        made().index([*corpus(3), Document("d1", "again")])


def test_each_search_reports_its_stages_in_nanoseconds() -> None:
    stages = asked(indexed(corpus(5)), "river").stages
    assert set(stages) == {"encode", "dense"}
    assert all(isinstance(ns, int) and ns > 0 for ns in stages.values())


def test_a_search_may_come_from_another_thread() -> None:
    retriever = indexed(corpus(20))
    here = list(asked(retriever, "whale bones"))
    with ThreadPoolExecutor(1) as pool:
        assert list(pool.submit(asked, retriever, "whale bones").result()) == here


def test_after_close_there_is_no_index_but_still_a_description() -> None:
    retriever = indexed(corpus(5))
    retriever.close()
    with pytest.raises(ContractError, match="before index"):
        asked(retriever, "river")
    assert retriever.describe()["documents"] == 5
    assert retriever.health([Query("q", "river")]) == ()


def test_a_failed_second_index_leaves_no_first_one_behind() -> None:
    retriever = indexed(corpus(5))
    with pytest.raises(ContractError):
        retriever.index([Document("a", "x"), Document("a", "y")])
    with pytest.raises(ContractError, match="before index"):
        asked(retriever, "river")


def test_progress_is_told_after_every_batch() -> None:
    retriever, told = made(batch_size=4), []
    retriever.progress = lambda done, total: told.append((done, total))
    documents = corpus(10)
    retriever.index([*documents, Document("again", documents[0].text)])
    assert told == [(4, 10), (8, 10), (10, 10)]


def test_a_second_run_encodes_nothing_and_ranks_the_same() -> None:
    documents = corpus(40)
    first, second = indexed(documents), indexed(documents[::-1])
    assert (first.describe()["encoded"], first.describe()["from_cache"]) == (40, 0)
    assert (second.describe()["encoded"], second.describe()["from_cache"]) == (0, 40)
    assert list(asked(first, "gold and salt", 40)) == list(asked(second, "gold and salt", 40))
    assert first.disk_bytes() == second.disk_bytes() == 80 + 40 * (32 + 4 * 32)


def test_a_cached_run_never_calls_the_encoder_for_documents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = corpus(10)
    indexed(documents)
    called: list[int] = []
    batches = Encoder.document_batches

    def counting(encoder: Encoder, texts: list[str]) -> Any:
        called.append(len(texts))
        return batches(encoder, texts)

    monkeypatch.setattr(Encoder, "document_batches", counting)
    indexed(documents)
    assert called == [0]


@pytest.mark.slow
def test_cosine_and_dot_share_the_cache() -> None:
    documents, model = corpus(10), str(MODELS["unnormalised"])
    indexed(documents, model=model)
    cached = indexed(documents, model=model, similarity="dot")
    assert cached.describe()["encoded"] == 0
    fresh = indexed(documents, model=model, similarity="dot", cache=False)
    assert list(asked(cached, "river")) == list(asked(fresh, "river"))


def test_other_prompts_are_encoded_anew() -> None:
    indexed(corpus(10))
    assert indexed(corpus(10), prompts={"document": "passage: "}).describe()["encoded"] == 10


def test_a_corpus_that_grew_encodes_what_is_new() -> None:
    indexed(corpus(20))
    assert indexed(corpus(25)).describe()["encoded"] == 5


def test_a_damaged_cache_is_rebuilt_and_said(cache_folder: Path) -> None:
    documents = corpus(10)
    expected = list(asked(indexed(documents), "river"))
    (path,) = cache_folder.rglob("*.vectors")
    path.write_bytes(path.read_bytes()[:-7])
    retriever = indexed(documents)
    assert retriever.describe()["encoded"] == 10
    assert list(asked(retriever, "river")) == expected
    assert retriever.health([])[-1].startswith("1 damaged file of the embedding cache removed")
    assert indexed(documents).describe()["encoded"] == 0


def test_each_vector_is_written_once(monkeypatch: pytest.MonkeyPatch, cache_folder: Path) -> None:
    monkeypatch.setattr(document_vectors, "FILE_SIZE", 4)
    retriever = indexed(corpus(11), batch_size=2)
    sizes = [path.stat().st_size for path in cache_folder.rglob("*.vectors")]
    assert sorted(sizes) == [80 + 3 * 160, 80 + 4 * 160, 80 + 4 * 160]
    assert retriever.disk_bytes() == sum(sizes)


@pytest.mark.parametrize("file_size", [4, 1024])
def test_what_was_encoded_before_an_interruption_is_kept(
    monkeypatch: pytest.MonkeyPatch, file_size: int
) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 8:
            raise KeyboardInterrupt

    monkeypatch.setattr(document_vectors, "FILE_SIZE", file_size)
    retriever = made(batch_size=4)
    retriever.progress = interrupt
    with pytest.raises(KeyboardInterrupt):
        retriever.index(corpus(20))
    with pytest.raises(ContractError, match="before index"):
        asked(retriever, "river")
    assert indexed(corpus(20)).describe()["from_cache"] == 8


def test_without_a_cache_nothing_is_written(cache_folder: Path) -> None:
    retriever = indexed(corpus(5), cache=False)
    assert not cache_folder.exists()
    assert retriever.disk_bytes() is None
    assert retriever.describe()["cache"] == "off"


def test_a_cache_that_cannot_be_written_is_said_and_stops_nothing(cache_folder: Path) -> None:
    cache_folder.write_text("a file in the way of the folder")
    retriever = indexed(corpus(5))
    assert len(asked(retriever, "river")) == 5
    assert "the embedding cache cannot be written" in retriever.health([])[-1]


def test_a_model_whose_files_are_not_known_is_not_cached_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    monkeypatch.setattr(Encoder, "identity", lambda _: None)
    retriever = indexed(corpus(5))
    assert "no embedding cache: the model's files were not found" in retriever.health([])[-1]
    assert retriever.describe()["cache"] == retriever.health([])[-1]
    assert not cache_folder.exists()


def test_a_graph_takes_over_from_a_thousand_vectors_on(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = corpus(300)
    small = indexed(documents, index={"type": "hnsw", "m": 8})
    assert small.describe()["index"] == {
        "type": "hnsw",
        "m": 8,
        "ef_construction": 200,
        "ef_search": 128,
        "used": "flat: fewer than 1000 vectors need no graph",
    }
    monkeypatch.setattr(faiss_index, "SMALLEST_GRAPH", 300)
    graph = indexed(documents, index={"type": "hnsw", "m": 8})
    assert graph.describe()["index"]["used"] == "hnsw"
    assert not graph.capabilities.exact
    exact = asked(small, "seed of a tree", 20)
    found = asked(graph, "seed of a tree", 20)
    assert len(set(exact.doc_ids) & set(found.doc_ids)) >= 18
    assert max(some(found.scores)) == pytest.approx(max(some(exact.scores)), abs=1e-5)


def test_a_graph_is_searched_with_as_many_candidates_as_hits_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faiss_index, "SMALLEST_GRAPH", 10)
    narrow = {"type": "hnsw", "m": 8, "ef_search": 1}
    assert len(asked(indexed(corpus(500), index=narrow), "seed of a tree", 300)) == 300


def test_a_graph_gives_no_padding_for_what_it_does_not_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faiss_index, "SMALLEST_GRAPH", 10)
    documents = corpus(500)
    sparse = {"type": "hnsw", "m": 2, "ef_construction": 1}
    ids = asked(indexed(documents, index=sparse), "seed of a tree", 500).doc_ids
    assert 0 < len(ids) < 500
    assert set(ids) <= {document.id for document in documents}


INDEXES: dict[str, Any] = {
    "flat": "flat",
    "hnsw": {"type": "hnsw", "m": 16},
    "ivf": {"type": "ivf", "nlist": 20, "nprobe": 5},
}


@pytest.mark.parametrize("kind", INDEXES)
def test_eight_bits_find_nearly_what_float32_finds_in_fewer_bytes(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faiss_index, "SMALLEST_GRAPH", 100)
    documents = corpus(600)
    whole = indexed(documents, index=INDEXES[kind])
    short = indexed(documents, index=INDEXES[kind], precision="int8")
    found = asked(short, "seed of a tree", 20)
    assert len({*asked(whole, "seed of a tree", 20).doc_ids} & {*found.doc_ids}) >= 18
    scores = [short.describe()["index_bytes"], whole.describe()["index_bytes"]]
    assert scores[1] - scores[0] == 600 * 32 * 3
    assert short.describe()["precision"] == "int8"


def test_an_inverted_file_finds_all_where_a_query_looks_into_every_list(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(faiss_index, "SMALLEST_GRAPH", 10)
    documents = corpus(500)
    exact = asked(indexed(documents), "seed of a tree", 50)
    every = asked(
        indexed(documents, index={"type": "ivf", "nlist": 9, "nprobe": 9}), "seed of a tree", 50
    )
    few = asked(
        indexed(documents, index={"type": "ivf", "nlist": 60, "nprobe": 1}), "seed of a tree", 50
    )
    assert list(every.doc_ids) == list(exact.doc_ids)
    assert 0 < len(few) < 50
    assert capfd.readouterr() == ("", "")


def test_the_first_dimensions_are_compared_as_vectors_of_their_own() -> None:
    documents = corpus(40)
    encoder = Encoder(str(MODELS["tiny"]), device="cpu")
    encoder.load()
    vectors = np.concatenate([encoder.encode_query(d.text)[:, :8] for d in documents])
    query = encoder.encode_query("river water")[0, :8]
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    ranking = asked(indexed(documents, dimensions=8), "river water", 40)
    best = [documents[at].id for at in np.argsort(-cosines)]
    assert list(ranking.doc_ids)[:5] == best[:5]
    assert list(some(ranking.scores)) == pytest.approx(sorted(cosines, reverse=True), abs=1e-5)


def searched(rung: Rung, text: str, k: int) -> Ranking:
    found = some(rung.retriever).search(Query("q", text), k)
    assert isinstance(found, Ranking)
    return found


class TestRungs:
    def test_each_thing_that_is_served_otherwise_is_a_step_from_the_exact_search_on(self) -> None:
        served = made(
            max_seq_length=5, dimensions=8, precision="int8", index={"type": "ivf", "nlist": 4}
        )
        served.use_filters(["place"])
        rungs = served.rungs()
        names = ["exact", "tokens", "dimensions", "int8", "index", "filter"]
        assert [rung.name for rung in rungs] == names
        assert rungs[0].what == "64 tokens, 32 dimensions, float32, exhaustive"
        assert [rung.what for rung in rungs[1:]] == [
            "5 of 64",
            "8 of 32",
            "8 of 32 bits",
            "ivf, nprobe 16",
            "in the index",
        ]
        documents = [Document("a", "ice " * 5 + "river " * 20), Document("b", "ice snow")]
        told = []
        for rung in rungs:
            retriever = some(rung.retriever)
            retriever.index(documents)
            told.append(retriever.describe())
        assert [one["max_seq_length"] for one in told] == [64, 5, 5, 5, 5, 5]
        assert [one["dimensions"] for one in told] == [None, None, 8, 8, 8, 8]
        assert [one["precision"] for one in told] == ["float32"] * 3 + ["int8"] * 3
        assert [one["index"]["type"] for one in told] == ["flat"] * 4 + ["ivf"] * 2
        scores = [
            dict(zip(found.doc_ids, some(found.scores), strict=True))
            for found in (searched(rung, "river", 2) for rung in rungs[:2])
        ]
        assert scores[0]["b"] == pytest.approx(scores[1]["b"], abs=1e-5)
        assert abs(scores[0]["a"] - scores[1]["a"]) > 0.01

    def test_what_is_exact_has_no_step_that_differs(self) -> None:
        rungs = made(max_seq_length=64).rungs()
        assert [rung.name for rung in rungs if rung.retriever is not None] == ["exact"]
        assert all(rung.known for rung in rungs)

    def test_the_filter_is_exact_until_its_own_step(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(faiss_index, "SMALLEST_GRAPH", 10)
        documents = [
            Document(d.id, d.text, metadata={"place": at % 10}) for at, d in enumerate(corpus(900))
        ]
        served = made(index={"type": "ivf", "nlist": 60, "nprobe": 1})
        served.use_filters(["place"])
        rungs = {rung.name: rung.retriever for rung in served.rungs() if rung.retriever}
        where = parse_filter({"place": {"lt": 9}})
        queries = [Query(word, word, filter=where) for word in WORDS.split()[:20]]
        filtered, plain = {}, {}
        for name in ("exact", "index", "filter"):
            rung = rungs[name]
            rung.index(documents)
            filtered[name] = [
                [hit.doc_id for hit in checked_ranking(rung.search(query, 3), 3)]
                for query in queries
            ]
            plain[name] = len(checked_ranking(rung.search(Query("q", "seed"), 90), 90))
        assert filtered["exact"] == filtered["index"] != filtered["filter"]
        assert plain["exact"] == 90 > plain["index"] == plain["filter"]

    def test_what_nobody_can_tell_apart_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Encoder, "positions", None)
        (tokens,) = [rung for rung in made().rungs() if not rung.known]
        assert tokens.name == "tokens"
        assert tokens.what == "24 are read; how many the model could read, it does not say"

    def test_a_hybrid_has_those_of_its_legs_and_the_hits_that_it_reads(self) -> None:
        hybrid = Hybrid(legs=["bm25", made(dimensions=8, max_seq_length=64)], depth=5)
        rungs = [rung for rung in hybrid.rungs() if rung.retriever is not None]
        assert [rung.name for rung in rungs] == ["exact", "dimensions", "depth"]
        assert rungs[-1].what == "5 of 1,000"
        documents = corpus(300)
        found = []
        for rung in rungs:
            some(rung.retriever).index(documents)
            found.append(searched(rung, "seed of a tree", 2))
        dense = [one.legs["Dense"] for one in found]
        assert [len(some(leg.doc_ids)) for leg in dense] == [300, 300, 5]
        hybrid.index(documents)
        assert found[-1].doc_ids == hybrid.search(Query("q", "seed of a tree"), 2).doc_ids

    def test_a_retriever_without_vectors_has_none(self) -> None:
        assert not Hybrid(legs=["bm25", "bm25"]).rungs()


def test_more_dimensions_than_the_model_has_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        made(dimensions=64).prepare()
    assert caught.value.given == "dimensions = 64"
    assert caught.value.accepted.startswith("at most 32")


def test_other_dimensions_share_the_cache() -> None:
    indexed(corpus(20))
    assert indexed(corpus(20), dimensions=8, precision="int8").describe()["encoded"] == 0


def test_the_description_is_of_json_types_before_and_after_indexing() -> None:
    retriever = made()
    before = json.loads(json.dumps(retriever.describe()))
    assert before["dimension"] is None
    retriever.index(corpus(3))
    after = json.loads(json.dumps(retriever.describe()))
    assert (after["similarity"], after["index"], after["cache"]) == (
        "cosine",
        {"type": "flat"},
        "on",
    )
    assert (after["documents"], after["distinct_texts"]) == (3, 3)


def test_health_says_what_is_cut_off_and_unknown() -> None:
    documents = [Document("a", "river " * 23), Document("b", "고래 water water water")]
    said = indexed(documents).health_facts([Query("q", "river water")])
    assert said[0] == (
        f"encoder {MODELS['tiny']} reads 24 tokens of a text: cut off are 50.0 % of the documents "
        "(3.7 % of their tokens) and 0.0 % of the queries; unknown tokens: 3.7 % in documents, "
        "0.0 % in queries"
    )


def test_health_counts_the_prompts_in() -> None:
    retriever = indexed(corpus(5), prompts={"query": "river " * 21, "document": "water " * 20})
    said = retriever.health_facts([Query("q", "river"), Query("r", "river water")])
    assert "cut off are 100.0 % of the documents" in said[0]
    assert "and 50.0 % of the queries" in said[0]


def test_health_warns_of_queries_that_are_one_text_once_they_are_cut_off() -> None:
    long = [Query(str(at), "the river and the stone " * 8 + word) for at, word in enumerate("ab")]
    retriever = indexed(corpus(5))
    first, second = (asked(retriever, query.text) for query in long)
    assert first.doc_ids == second.doc_ids
    (warning,) = retriever.health(long)
    assert "reads 24 tokens: 100 % of the queries are cut off" in warning


def test_health_tells_prompts_that_the_models_folder_asks_for(tmp_path: Path) -> None:
    prompts = {"query": "query: ", "document": "passage: "}
    folder = str(build_tiny_model(tmp_path / "multilingual-e5-tiny"))
    own = str(build_tiny_model(tmp_path / "e5-tiny", prompts=prompts))

    def said(**params: Any) -> list[str]:
        health = indexed(corpus(5), **params).health([Query("q", "river")])
        return [text for text in health if "gets no prompt" in text]

    (warning,) = said(model=folder)
    assert 'Add to its parameters: prompts: {query: "query: ", document: "passage: "}' in warning
    assert said(model=folder, prompts=prompts) == said(model=own) == []


def test_health_announces_an_encoder_that_does_not_know_the_script() -> None:
    documents = [Document(str(i), "고래는 바다에 사는 커다란 동물이다 " * 3) for i in range(5)]
    said = indexed(documents).health([Query("q", "고래는 어디에 사는가")])
    (warning,) = said
    assert "does not fit the corpus: 100.0 % of the letters are Hangul" in warning


def test_health_compares_the_language_that_it_was_told_with_the_models_card(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Encoder, "languages", lambda _: ["en"])
    retriever = made()
    retriever.use_language("fr")
    retriever.index(corpus(5))
    assert "its model card names en, the dataset says fr" in retriever.health([])[0]


def test_texts_are_counted_once_for_facts_and_warnings_and_anew_for_another_corpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[int] = []
    measure = encoder_fit.measure

    def counting(*args: Any) -> encoder_fit.TokenFit:
        measured.append(len(args[2]))
        return measure(*args)

    monkeypatch.setattr(encoder_fit, "measure", counting)
    retriever = indexed(corpus(5))
    retriever.health_facts([Query("q", "river")])
    retriever.health([Query("q", "river")])
    assert measured == [5, 1]
    retriever.index(corpus(6))
    retriever.health([Query("q", "river")])
    retriever.health([Query("q", "river"), Query("r", "water")])
    assert measured == [5, 1, 6, 1, 6, 2]


def test_health_of_a_tokenizer_that_cannot_be_examined_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Encoder, "tokenizer", lambda _: None)
    (line,) = indexed(corpus(5)).health([Query("q", "river")])
    assert line.endswith("its tokenizer cannot be examined")
    assert not any("reads" in fact for fact in indexed(corpus(5)).health_facts([]))


@pytest.mark.parametrize(
    ("params", "given", "accepted"),
    [
        ({"index": "hsnw"}, "index type 'hsnw'", "hnsw"),
        ({"index": {"m": 16}}, "index type None", "flat"),
        ({"index": {"type": "flat", "m": 16}}, "unknown key 'm'", "type"),
        ({"index": {"type": "hnsw", "ef": 16}}, "unknown key 'ef'", "ef_search"),
        ({"index": {"type": "hnsw", "m": 1}}, "index.m = 1", "at least 2"),
        ({"index": {"type": "hnsw", "ef_search": 0}}, "index.ef_search = 0", "at least 1"),
        ({"index": {"type": "ivf", "m": 8}}, "unknown key 'm'", "nlist"),
        ({"index": {"type": "ivf", "nprobe": 0}}, "index.nprobe = 0", "at least 1"),
        ({"precision": "int4"}, "precision = 'int4'", "int8"),
        ({"dimensions": 0}, "dimensions = 0", "at least 1"),
        ({"similarity": "cosin"}, "similarity = 'cosin'", "did you mean cosine"),
        ({"cache": "no"}, "cache = 'no'", "true or false"),
        ({"batch_size": 0}, "batch_size = 0", "at least 1"),
    ],
)
def test_parameters_that_cannot_be_used_are_named(
    params: dict[str, Any], given: str, accepted: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        made(**params)
    assert caught.value.given.startswith(given)
    assert accepted in caught.value.accepted


def test_a_missing_model_folder_is_found_when_the_config_is_read() -> None:
    with pytest.raises(ModelError, match=r"no folder '\./nowhere'"):
        plugins.construct("dense", {"model": "./nowhere"})


def test_without_faiss_the_line_that_installs_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingDependencyError, match="faiss-cpu") as caught:
        made()
    assert caught.value.fix == how_to_add("dense")


@pytest.mark.parametrize(("name", "exact"), [("dense", True), ("dense-hnsw", False)])
def test_the_configs_build(name: str, exact: bool) -> None:
    retriever = load_retriever_config(name).build()
    assert isinstance(retriever, Dense)
    assert retriever.capabilities.exact is exact
    assert retriever.capabilities.score_tolerance == 1e-5


@pytest.mark.slow
def test_building_a_retriever_loads_nothing_heavy() -> None:
    code = "from retrieval_bench_retrievers.dense.dense import Dense\n"
    code += f"Dense(model={str(MODELS['tiny'])!r})"
    assert not loads(code, "torch", "faiss", "sentence_transformers", "transformers")


@pytest.mark.slow
def test_the_default_model_is_announced_as_unfit_for_korean_and_fit_for_english() -> None:
    korean = "식물은 햇빛을 이용해 물과 이산화탄소로 당을 만들며, 이때 산소가 나온다. "
    french = "Les plantes utilisent la lumière du soleil pour fabriquer du sucre avec de l'eau. "
    english = "Plants use the light of the sun to make sugar from water and carbon dioxide. "
    said = {}
    for language, text in (("ko", korean), ("fr", french), ("en", english)):
        retriever = Dense(device="cpu", cache=False)
        retriever.index([Document(str(i), text * 3) for i in range(3)])
        said[language] = retriever.health([Query(str(i), text) for i in range(5)])
        retriever.close()
    assert "does not fit the corpus and the queries" in said["ko"][0]
    assert "may fit the corpus poorly" in said["fr"][0]
    assert said["en"] == []


class TestFilters:
    def documents(self, n: int = 1_500) -> list[Document]:
        plain = [*corpus(n), Document("twin a", "apple pear"), Document("twin b", "apple pear")]
        return [Document(d.id, d.text, metadata={"place": at % 100}) for at, d in enumerate(plain)]

    def filtered(self, text: str, below: int) -> Query:
        return Query("q", text, filter=parse_filter({"place": {"lt": below}}))

    @pytest.mark.parametrize("percent", [100, 50, 10, 1])
    def test_the_list_is_the_full_ranking_without_the_others(self, percent: int) -> None:
        documents = self.documents()
        retriever = made()
        retriever.use_filters(["place"])
        retriever.index(documents)
        assert retriever.capabilities.filters
        kept = {d.id for d in documents if d.metadata["place"] < percent}
        for text in ("apple pear", WORDS.split()[3]):
            full = retriever.search(Query("q", text), len(documents))
            found = retriever.search(self.filtered(text, percent), 10)
            expected = [hit for hit in full if hit.doc_id in kept][:10]
            assert list(found.doc_ids) == [hit.doc_id for hit in expected]
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected])
            assert set(found.stages) == {"encode", "dense", "filter"}

    def test_a_graph_says_how_much_of_the_exact_list_it_finds(self) -> None:
        documents = self.documents(2_500)
        retriever = made(index={"type": "hnsw", "m": 4, "ef_construction": 8, "ef_search": 4})
        retriever.use_filters(["place"])
        retriever.use_k(5)
        retriever.index(documents)
        queries = [self.filtered(text, 60) for text in WORDS.split()[:8]]
        facts = retriever.health_facts([*queries, Query("plain", "apple")])
        (told,) = [fact for fact in facts if "under filters" in fact]
        share = float(told.split("finds ")[1].split()[0])
        assert 0 <= share <= 1
        assert "of the exact top 5, the mean over queries; " in told
        assert told.endswith("of queries find 0.9 of it (8 of 8 queries with a filter)")
        for query in queries:
            assert all(
                int(doc_id[1:]) % 100 < 60
                for doc_id in retriever.search(query, 5).doc_ids
                if doc_id.startswith("d")
            )

    @pytest.mark.parametrize("kind", INDEXES)
    @pytest.mark.parametrize("percent", [60, 10])
    def test_eight_bits_keep_to_the_filter_too(self, kind: str, percent: int) -> None:
        retriever = made(index=INDEXES[kind], precision="int8")
        retriever.use_filters(["place"])
        documents = self.documents(2_500)
        retriever.index(documents)
        kept = {d.id for d in documents if d.metadata["place"] < percent}
        query = self.filtered("apple pear", percent)
        found = list(retriever.search(query, 10).doc_ids)
        assert len(found) == 10
        assert {*found} <= kept
        plain = retriever.search(Query("q", "apple pear"), len(documents)).doc_ids
        if kind == "flat":
            assert found == [doc_id for doc_id in plain if doc_id in kept][:10]

    def test_few_documents_are_searched_one_by_one_beside_a_graph(self) -> None:
        documents = self.documents()
        exact, graph = made(), made(index={"type": "hnsw", "m": 2, "ef_construction": 4})
        for retriever in (exact, graph):
            retriever.use_filters(["place"])
            retriever.index(documents)
        query = self.filtered("apple pear", 20)
        assert list(graph.search(query, 10).doc_ids) == list(exact.search(query, 10).doc_ids)

    def test_nothing_fits(self) -> None:
        retriever = made()
        retriever.use_filters(["place"])
        retriever.index(self.documents(50))
        assert not len(retriever.search(self.filtered("apple", -1), 10))

    def test_what_the_graph_does_not_lead_to_is_found_all_the_same(self) -> None:
        """Each tenant's documents lie together, and the query lies with those of another one."""
        draw = np.random.default_rng(3)
        centres = draw.normal(size=(6, 16)) * 5
        vectors = np.repeat(centres, 1_200, axis=0) + draw.normal(size=(7_200, 16))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        graph = IndexSettings("hnsw", m=8, ef_construction=40, ef_search=16).build(
            vectors.astype(np.float32)
        )
        among = np.arange(1_200, dtype=np.int64)  # of the first tenant
        query = vectors[5_000:5_001].astype(np.float32)
        scores, rows = graph.nearest(query, 10, among)
        assert len(rows) == 10
        assert (rows < 1_200).all()
        assert list(scores) == sorted(scores, reverse=True)
