"""Chunkers in front of retrievers: what is indexed, what comes back, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.config import config_hash, load_retriever_config
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset, Document, Query, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.building import built
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import Judgements, judge_lists
from retrieval_bench.runs.run import Run
from retrieval_bench_chunks.chunked import VERSION, Chunked, Cut, in_front
from retrieval_bench_chunks.counting import Counter
from retrieval_bench_chunks.cutting import Windows
from retrieval_bench_chunks.delivery import Delivery, Hit
from retrieval_bench_chunks.fates import WHOLE, _fate, fates_of
from retrieval_bench_chunks.foreign import ForeignChunker
from retrieval_bench_chunks.judging import as_kept, with_decided
from retrieval_bench_chunks.metrics import CURVE
from retrieval_bench_chunks.pictures.recall import recall_over_tokens
from retrieval_bench_chunks.ranges import Place
from retrieval_bench_retrievers.lexical.bm25 import BM25

DOCUMENTS = [
    Document("leave", "Annual leave is 25 days. " + "Nothing else is said here. " * 20),
    Document("travel", "Train tickets are paid. " * 3 + "Ask the office. " * 30 + "Rail is best."),
    Document("empty", " \n "),
]
QUICK = Protocol(rounds=1, min_calls=1, max_calls=4, warm_up_s=0)


def data(**truth: Any) -> Dataset:
    queries = [
        Query("q1", "annual leave", metadata=truth and {"spans": [truth]}),
        Query("q2", "rail"),
    ]
    held: Any = DOCUMENTS
    qrels: Any = None if truth else {"q1": {"leave": 1}, "q2": {"travel": 1}}
    return build_dataset("made", held, queries, qrels)


def run(retriever: Any, dataset: Dataset, **more: Any) -> Run:
    (measured,) = prepare([retriever], dataset, protocol=QUICK, save=False, **more).run(save=False)
    return measured


def test_hits_of_chunks_are_ranges_where_truth_is_spans() -> None:
    measured = run("bm25+characters-100-10", data(document="leave", quote="25 days"), k=1)
    hits = measured.rankings.row(0).doc_ids
    assert hits[0] == "leave#0-99"
    assert measured.evaluation.by_metric["SpanR(tokens=1000)"].mean == 1
    chunk = measured.manifest["retriever"]["chunk"]
    assert chunk == {"by": "characters", "size": 100, "overlap": 10}
    facts = measured.manifest["retriever"]["facts"]["chunk"]
    assert facts["version"] == VERSION
    assert facts["chunks"] == len(list(Cut_of(100, 10)))
    assert measured.manifest["spans"]["filled"]["500"] == 0
    assert any("hold fewer than 500 tokens" in w for w in measured.summary.warnings)


def Cut_of(size: int, overlap: int) -> Iterator[tuple[int, int]]:  # noqa: N802
    for document in DOCUMENTS:
        yield from Windows(size, overlap).cut(document.text)


def test_what_is_chunked_takes_no_writes_for_they_would_be_whole_documents() -> None:
    class Writable(BM25):
        @property
        def capabilities(self) -> Capabilities:
            return replace(super().capabilities, writes=True)

    assert Writable().capabilities.writes
    assert Chunked(Writable(), Windows(100, 0), {}).capabilities == BM25().capabilities


def test_chunks_count_as_their_documents_where_documents_are_judged() -> None:
    measured = run("bm25+sentences-60", data(), k=2)
    assert {hit for row in range(2) for hit in measured.rankings.row(row).doc_ids} == {
        *("leave", "travel"),
    }
    assert measured.evaluation.by_metric["R@2"].mean == 1


def test_a_config_names_a_chunker_and_has_a_hash_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("target: bm25\nchunk: {by: tokens, size: 20, overlap: 5}\n", encoding="utf-8")
    config, short = load_retriever_config(str(path)), load_retriever_config("bm25+tokens-20-5")
    assert config.chunk == short.chunk == {"by": "tokens", "size": 20, "overlap": 5}
    assert short.name == "bm25+tokens-20-5"
    assert isinstance(built(config), Chunked)
    assert isinstance(built(short), Chunked)
    assert config_hash("bm25", {}) != config_hash("bm25", {}, config.chunk)
    with pytest.raises(ConfigError, match="a second chunker"):
        load_retriever_config(f"{path}+tokens-9")


@pytest.mark.parametrize(
    ("chunk", "fault"),
    [
        ({"by": "words", "size": 9}, "chunk by 'words'"),
        ({"by": "tokens"}, "without a size"),
        ({"by": "tokens", "size": 0}, "size"),
        ({"by": "tokens", "size": 9, "overlap": 5}, "at most half of the size"),
        ({"by": "tokens", "size": 9, "steps": 1}, "steps"),
        ({"by": "tokens", "size": 9, "params": {"a": 1}}, "with params"),
        ({"by": "langchain:Nothing", "size": 9}, "no 'Nothing' in langchain_text_splitters"),
        ({"by": "textwrap:wrap", "size": 9}, "with a size"),
        ({"by": "no_such_module:cut"}, "no_such_module"),
    ],
)
def test_what_a_chunker_cannot_be_is_refused(chunk: Any, fault: str) -> None:
    with pytest.raises(HarnessError) as caught:
        in_front(BM25(), chunk, "mine.yaml", None)
    assert fault in caught.value.render()


def test_a_leg_has_a_chunker_of_its_own_and_a_step_has_none() -> None:
    cut = {"by": "characters", "size": 50}
    legs = ["bm25+sentences-60", {"target": "bm25", "name": "windows", "chunk": cut}]
    hybrid = {"target": "hybrid", "params": {"legs": legs}}
    measured = run(hybrid, data(document="leave", quote="25 days"), k=4)
    hits = measured.rankings.row(0).doc_ids
    assert {hit.partition("#")[0] for hit in hits} <= {"leave", "travel"}
    assert all("#" in hit for hit in hits)
    assert measured.evaluation.by_metric["SpanR@4"].mean == 1
    judged = run(hybrid, data(), k=2)
    assert {hit for row in range(2) for hit in judged.rankings.row(row).doc_ids} == {
        *("leave", "travel"),
    }
    other = {"legs": [legs[0], {**legs[1], "chunk": {**cut, "size": 60}}]}  # type: ignore[dict-item]
    assert config_hash("hybrid", hybrid["params"]) != config_hash("hybrid", other)  # type: ignore[arg-type]
    steps = {"target": "pipeline", "params": {"steps": [{"retrieve": "bm25+sentences-60"}]}}
    with pytest.raises(ConfigError, match="chunk of 'bm25\\+sentences-60', in a step"):
        run(steps, data())


def test_set_changes_a_key_of_the_chunker() -> None:
    set_ = ["k1=1.5", "chunk.size=80"]
    config = load_retriever_config("bm25+sentences-60", set_)
    assert config.chunk == {"by": "sentences", "size": 80}
    assert config.params["k1"] == 1.5
    assert load_retriever_config("bm25", ["chunk.by=tokens", "chunk.size=9"]).chunk == {
        **{"by": "tokens", "size": 9},
    }
    assert load_retriever_config("bm25", ["k1=1.5"]).chunk is None


@pytest.mark.parametrize("overlap", [0, 5, 25, 50])
def test_overlap_is_paid_each_time_and_counts_once_in_recall(overlap: int) -> None:
    dataset = data(document="leave", start=0, end=60)
    measured = run(f"bm25+characters-100-{overlap}", dataset, k=40)
    values = {name: of.mean for name, of in measured.evaluation.by_metric.items()}
    assert values["SpanR@40"] == 1
    assert 0 < values["SpanP(tokens=1000)"] <= 1


def test_a_title_alone_is_a_chunk_and_the_same_span_twice_is_one() -> None:
    held = [Document("a", "", "Annual leave"), Document("b", "Travel is paid back.")]
    dataset = build_dataset("titles", held, [Query("q", "annual leave")], {"q": {"a": 1}})
    assert run("bm25+tokens-20", dataset, k=2).evaluation.by_metric["nDCG@2"].mean == 1
    lost = ForeignChunker(partial(_gives, "stands nowhere"), "mine")
    assert list(Cut(lost).of(0, Document("c", "Another text.", "Annual leave"))) == []
    spans = [{"document": "b", "quote": "Travel"}] * 2
    twice: Any = build_dataset("twice", held, [Query("q", "?", metadata={"spans": spans})], None)
    assert len(twice.qrels["q"].truth) == 1


def test_documents_without_texts_have_no_chunk() -> None:
    held: Any = [Document("a", ""), Document("b", " \n")]
    with pytest.raises(ConfigError, match="no chunk: no document has a text"):
        in_front(BM25(), {"by": "tokens", "size": 9}, "x", None).index(held)


def test_a_retriever_that_holds_its_corpus_takes_no_chunker() -> None:
    with pytest.raises(ConfigError, match="holds its corpus already"):
        built(load_retriever_config("http-elasticsearch").model_copy(update={"chunk": {"by": "x"}}))


def ranges_of(front: Chunked, text: str) -> list[tuple[int, int]]:
    chunker: Any = front.chunker
    return list(chunker.texts_of(Document("d", text))[0])


def test_functions_and_splitters_of_libraries_cut_as_they_do(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def halves(text, at=0.5):\n    n = int(len(text) * at)\n"
        "    yield 0, n\n    yield text[n:].strip()\n",
        encoding="utf-8",
    )
    front = in_front(BM25(), {"by": "own.py:halves", "params": {"at": 0.25}}, "x", tmp_path)
    assert ranges_of(front, "one two three four") == [(0, 4), (4, 18)]
    front = in_front(
        BM25(), {"by": "langchain:RecursiveCharacterTextSplitter", "size": 60}, "x", None
    )
    assert "langchain-text-splitters" in front.said["version"]
    for document in DOCUMENTS:
        for start, end in ranges_of(front, document.text):
            assert end - start <= 60
            assert document.text[start:end].strip()


def test_an_overlap_is_handed_over_without_a_size_too() -> None:
    given: Any = {"by": "langchain:CharacterTextSplitter", "overlap": 7}
    said: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "langchain_text_splitters.CharacterTextSplitter", lambda **own: said.append(own)
        )
        in_front(BM25(), given, "x", None)
        in_front(BM25(), {**given, "overlap": 0}, "x", None)
        in_front(BM25(), {**given, "overlap": 0, "size": 9}, "x", None)
    sizes = [{k: v for k, v in own.items() if k != "add_start_index"} for own in said]
    assert sizes == [{"chunk_overlap": 7}, {}, {"chunk_size": 9, "chunk_overlap": 0}]


def test_an_index_of_a_function_is_that_of_its_code(tmp_path: Path) -> None:
    code, identities = "def lines(text):\n    return text.split('\\n')\n", []
    for text in (code, code, code.replace("n')", "t')")):
        (tmp_path / "cut.py").write_text(text, encoding="utf-8")
        front = in_front(BM25(), {"by": "cut.py:lines"}, "x", tmp_path)
        identities.append(front.index_identity())
    assert identities[0] == identities[1] != identities[2]
    assert None not in identities
    assert in_front(BM25(), {"by": "builtins:sorted"}, "x", None).index_identity() is None


@pytest.mark.needs("llama_index")
def test_splitters_of_llamaindex_cut_as_they_do() -> None:
    params = {"chunk_size": 30, "chunk_overlap": 0}
    front = in_front(BM25(), {"by": "llamaindex:SentenceSplitter", "params": params}, "x", None)
    for document in DOCUMENTS:
        ranges, texts, lost = front.chunker.texts_of(document)  # type: ignore[union-attr]
        assert bool(ranges) == bool(document.text.strip())
        assert (texts, lost) == ({}, 0)


def test_a_text_that_does_not_stand_there_is_aligned_or_counted() -> None:
    text = "One sentence stands here. Another sentence stands there. The third one is the last."

    def split(_text: str) -> list[Any]:
        return [
            "One sentence stands here.",
            "Summary: the second.\n\nANOTHER  sentence stands there.",
            "The third one\nis the last.",
            "made up by a model, and in no document",
            "",
        ]

    ranges, texts, lost = ForeignChunker(split, "mine").texts_of(Document("d", text))
    assert text[slice(*ranges[0])] == "One sentence stands here."
    assert text[slice(*ranges[-1])] == "The third one is the last."
    assert lost in (1, 2)
    assert texts[len(ranges) - 1] == "The third one\nis the last."
    for wrong in ((5, 2), (0, 900), 7, (1, 2, 3), (None, 1)):
        chunker = ForeignChunker(partial(_gives, wrong), "mine")
        with pytest.raises(ContractError, match="chunk by mine gave"):
            chunker.texts_of(Document("d", text))
    ranged = ForeignChunker(partial(_gives, (np.int64(0), np.int64(5))), "mine")
    assert ranged.texts_of(Document("d", text))[0] == [(0, 5)]


@pytest.mark.parametrize("text", ["ab ab ab", "Yes No Yes Yes end", "ab Yes ab, Yes ab"])
def test_of_equal_texts_each_stands_behind_the_one_before(text: str) -> None:
    ranges, _, lost = ForeignChunker(str.split, "mine").texts_of(Document("d", text))
    assert [text[start:end] for start, end in ranges] == text.split()
    assert (ranges, lost) == (sorted(set(ranges)), 0)


def _gives(wrong: Any, _text: str) -> list[Any]:
    return [wrong]


class Service(BM25):
    """Answers with texts of a cut of its own."""

    def search(self, query: Query, k: int) -> Ranking:
        del query
        texts = [
            "Annual leave\nis 25 days.",
            "Nothing else is said here.",
            "from nowhere at all, nobody knows",
        ]
        return Ranking(["x", "y", "z"][:k], texts=texts[:k])

    @property
    def capabilities(self) -> Any:
        from retrieval_bench.core.retriever import Capabilities

        return Capabilities(external=True, has_scores=False)


def test_hits_of_a_service_are_aligned_by_their_texts_and_the_ways_are_told() -> None:
    measured = run(Service(), data(document="leave", quote="25 days"), k=3)
    assert measured.evaluation.by_metric["SpanR@3"].mean == 1
    kept = measured.manifest["spans"]
    assert kept["ways"] == {"normalised": 1, "ambiguous": 1, "lost": 1}
    assert kept["foreign"]["q1"]["x"] == [24, [["leave", 0, 24]]]
    assert kept["foreign"]["q1"]["z"] == [33, []]
    assert any("1 of 3 hits stood nowhere" in warning for warning in measured.summary.warnings)


class Numbered(Service):
    """Its ids are ranks, and it fails where it is asked for rails."""

    def search(self, query: Query, k: int) -> Ranking:
        if query.text == "rail":
            raise RuntimeError("down")
        return Ranking(["0"], texts=[f"{query.text} stand here."][:k])


def test_ids_that_mean_another_text_in_each_query_and_failures_count_right() -> None:
    texts = ("Cats stand here.", "Dogs stand here.", "rail stand here.")
    documents: Any = [Document(text[:4], f"{text} {text[:4]}") for text in texts]
    queries = [
        Query(at, text[:4], metadata={"spans": [{"document": text[:4], "quote": text}]})
        for at, text in zip("abx", texts, strict=True)
    ]
    dataset = build_dataset("made", documents, queries, None)
    measured = run(Numbered(), dataset, k=1)
    facts = measured.manifest["spans"]
    assert measured.evaluation.by_metric["SpanR(tokens=1000)"].mean == pytest.approx(2 / 3)
    assert facts["curve"]["1000"] == pytest.approx(2 / 3)
    spans: Any = as_kept(dataset.qrels, measured)
    each = [spans[at].delivery(["0"]) for at in "ab"]
    assert [of.within().recall for of in each] == [1, 1]
    assert facts["tokens_delivered"] == sum(of.tokens_of(0) for of in each) / 3
    again: Any = with_decided(dataset.qrels, [measured, measured])
    assert again["b"].foreign == spans["b"].foreign != again["a"].foreign
    kept = {"tokens": "estimate", "foreign": {"a": measured.manifest["spans"]["foreign"]["b"]}}
    with pytest.raises(ConfigError, match="hit '0' of query 'a' is another text"):
        with_decided(dataset.qrels, [measured, SimpleNamespace(manifest={"spans": kept})])


@pytest.mark.parametrize("text", ["Leave IS 25 days!", "Annual   leave is 25 days."])
def test_figures_of_a_saved_run_are_those_that_were_measured(text: str) -> None:
    class One(Service):
        def search(self, query: Query, k: int) -> Ranking:
            return Ranking([query.id], texts=[text][:k])

    documents: Any = [Document("d", f"Say: Annual  {'*' * 9}leave *is* 25 days. Else.")]
    dataset = build_dataset(
        "made",
        documents,
        [Query("q", "?", metadata={"spans": [{"document": "d", "start": 0, "end": 40}]})],
        None,
    )
    measured = run(One(), dataset, k=1, metrics=["SpanR", "SpanP", "SpanIoU"])
    judged = judge_lists({"q": ["q"]}, ["q"], Judgements(as_kept(dataset.qrels, measured)))
    for metric in measured.evaluation.metrics:
        again = float(metric.compute(judged)[0])
        assert again == measured.evaluation.values(metric)[0]
        assert 0 < again <= 1


def test_a_span_that_one_hit_holds_is_whole_though_another_had_some_of_it() -> None:
    hits = [Hit((Place("d", 0, end),), "x" * end) for end in (5, 20)]
    fate = _fate(Place("d", 0, 10), Delivery(hits, {"d": [(0, 10)]}, Counter("estimate")))
    assert (fate.fate, fate.hits, fate.rank) == (WHOLE, 1, 2)


@pytest.mark.needs("bpe_openai")
def test_the_best_precision_is_that_of_the_chunker_of_the_run() -> None:
    documents: Any = [Document("d", "Donaudampfschifffahrt 20261129 " * 20)]
    truth = {"spans": [{"document": "d", "start": 100, "end": 140}]}
    query = Query("q", "Donaudampfschifffahrt", metadata=truth)
    dataset = build_dataset("made", documents, [query], None)
    measured = run("bm25+tokens-20", dataset, k=1)
    (priced,) = fates_of([measured], dataset).runs
    facts = measured.manifest["retriever"]["facts"]["chunk"]
    best = []
    for changed in ({"counted": "estimate"}, {"version": VERSION - 1}):
        retriever = measured.manifest["retriever"]
        facts_then = {**retriever["facts"], "chunk": {**facts, **changed}}
        then = replace(
            measured,
            manifest={**measured.manifest, "retriever": {**retriever, "facts": facts_then}},
        )
        best.append(fates_of([then], dataset).runs[0].best_precision)
    assert None is not priced.best_precision != best[0]
    assert best[1] is None


def test_a_tie_is_told_and_tokens_of_two_kinds_share_no_axis() -> None:
    curve = {str(budget): 0.9 for budget in CURVE}
    evaluation = SimpleNamespace(query_ids=["q"])
    runs: Any = [
        SimpleNamespace(
            manifest={"spans": {"curve": curve, "tokens": tokens}}, evaluation=evaluation
        )
        for tokens in ("estimate", "estimate", "o200k_base")
    ]
    said = str(recall_over_tokens(["one", "two"], runs[:2]))
    assert "At 1,000 tokens one, two are highest, with 0.900." in said
    assert "At 1,000 tokens one is highest" in str(recall_over_tokens(["one"], runs[:1]))
    assert recall_over_tokens(["one", "two"], runs[1:]) is None
