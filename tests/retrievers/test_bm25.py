from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import bm25s
import numpy as np
import pytest
import rank_bm25

from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.errors import ConfigError, ContractError, DataError
from retrieval_bench.core.scripts import ScriptSample
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.lexical import bm25
from retrieval_bench_retrievers.lexical.bm25 import BM25
from retrieval_bench_retrievers.lexical.bm25s import BM25S
from retrieval_bench_retrievers.lexical.corpus import LexicalRetriever

LIBRARY = {"okapi": rank_bm25.BM25Okapi, "l": rank_bm25.BM25L, "plus": rank_bm25.BM25Plus}
BOTH = pytest.mark.parametrize("make", [BM25, BM25S])
Make = Callable[..., LexicalRetriever]


def _documents(texts: Sequence[str]) -> list[Document]:
    return [Document(f"d{at:04d}", text) for at, text in enumerate(texts)]


def _indexed(make: Make, texts: Sequence[str], **params: Any) -> LexicalRetriever:
    retriever = make(**params)
    retriever.index(_documents(texts))
    return retriever


def _found(retriever: LexicalRetriever, text: str, k: int = 10) -> dict[str, float]:
    return {hit.doc_id: hit.score for hit in retriever.search(Query("q", text), k)}


def _zipf_texts(seed: int, n: int, *, words: int = 400, longest: int = 60) -> list[str]:
    rng = random.Random(seed)
    vocabulary = [f"w{at}" for at in range(words)]
    weights = [1 / (at + 1) for at in range(words)]
    return [" ".join(rng.choices(vocabulary, weights, k=rng.randint(0, longest))) for _ in range(n)]


def _assert_equal_to_the_library(texts: list[str], query: str, variant: str, **params: Any) -> None:
    tokens = [text.split() for text in texts]
    # The library's own defaults for k1 and b differ from this project's.
    library = LIBRARY[variant](tokens, k1=params.get("k1", 0.9), b=params.get("b", 0.4))
    expected = library.get_scores(query.split())
    retriever = _indexed(BM25, texts, variant=variant, tokenizer="whitespace", **params)
    found = _found(retriever, query, len(texts) + 1)
    asked = set(query.split())
    candidates = {f"d{at:04d}" for at, document in enumerate(tokens) if asked & set(document)}
    assert set(found) == candidates
    for doc_id, score in found.items():
        assert score == pytest.approx(expected[int(doc_id[1:])], rel=1e-5, abs=1e-12)
    assert list(found.values()) == sorted(found.values(), reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("variant", list(LIBRARY))
@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_rank_bm25_on_every_document(variant: str, seed: int) -> None:
    texts = _zipf_texts(seed, 300)
    rng = random.Random(seed)
    for terms in (1, 3, 8, 300):
        query = " ".join(rng.choice(texts[5:] or ["w0"]) for _ in range(terms))
        query = " ".join(query.split()[:terms]) or "w0"
        _assert_equal_to_the_library(texts, query + " unheard", variant)
    _assert_equal_to_the_library(texts, "w1 w2 w1 w0 w1", variant, k1=1.5, b=0.75)
    # With b = 1 the library divides by the length 0 of an empty document.
    filled = [text for text in texts if text]
    _assert_equal_to_the_library(filled, "w1 w20 w300", variant, k1=2.0, b=1.0)


@pytest.mark.parametrize("variant", list(LIBRARY))
@pytest.mark.parametrize(
    "texts",
    [
        ["a"],
        ["a b", "a c"],
        ["a b", "a c", "a"],
        ["a a a b", "b c", "c d e", ""],
        ["a b c", "a b c", "a b c", "a b d", "a b e"],
    ],
)
def test_scores_are_those_of_rank_bm25_where_weights_are_zero_or_negative(
    variant: str, texts: list[str]
) -> None:
    for query in ("a", "a b", "a b c c", "c d e a"):
        _assert_equal_to_the_library(texts, query, variant)


@pytest.mark.parametrize("variant", list(LIBRARY))
def test_weights_of_terms_are_those_of_rank_bm25_to_the_bit(variant: Any) -> None:
    # Its average is a sum in the order in which terms come first in documents by their ids.
    documents = [Document(str(at), text) for at, text in enumerate(_zipf_texts(11, 500))]
    retriever = BM25(variant=variant, tokenizer="whitespace")
    corpus = retriever._read(documents, ScriptSample())
    model = bm25._model(variant, corpus, bm25._by_term(corpus), {"k1": 0.9, "b": 0.4})
    by_id = sorted(documents, key=lambda document: document.id)
    library = LIBRARY[variant]([document.text.split() for document in by_id], k1=0.9, b=0.4)
    assert {term: model.idf[at] for term, at in corpus.vocabulary.items()} == library.idf
    assert [*model.doc_len] == library.doc_len
    assert model.avgdl == library.avgdl


@pytest.mark.parametrize("tokens", [1, 7, 400])
def test_tokens_counted_in_runs_are_those_counted_at_once(
    monkeypatch: pytest.MonkeyPatch, tokens: int
) -> None:
    corpus = BM25(tokenizer="whitespace")._read(
        _documents(["", "", *_zipf_texts(12, 60), ""]), ScriptSample()
    )
    at_once = bm25._by_term(replace(corpus))
    monkeypatch.setattr(bm25, "_RUN", tokens)
    both: Iterator[tuple[Any, Any]] = zip(at_once, bm25._by_term(corpus), strict=True)
    for whole, merged in both:
        assert merged.dtype == whole.dtype
        assert merged.tolist() == whole.tolist()
    assert len(corpus.tokens) == 0


def test_parts_of_mixed_sign_that_nearly_cancel_keep_their_precision() -> None:
    # Most words are in most documents, so that the average weight, and with it that of frequent
    # words, is negative, while "r" weighs positively.
    texts = ["a b c r r", "a b c d", "a b d c", "a c d b", "d b a", "c d b a r"]
    library = rank_bm25.BM25Okapi([text.split() for text in texts], k1=0.9, b=0.4)
    falls, rises = library.get_scores(["a"])[0], library.get_scores(["r"])[0]
    times = [(m, n) for m in range(1, 90) for n in range(1, 90)]
    m, n = min(times, key=lambda pair: abs(pair[0] * falls + pair[1] * rises))
    assert abs(m * falls + n * rises) < 1e-3 * m * abs(falls)
    for query in ("a r", "a b c d r", " ".join(["a"] * m + ["r"] * n)):
        _assert_equal_to_the_library(texts, query, "okapi")
    retriever = _indexed(BM25, texts, tokenizer="whitespace")
    assert min(_found(retriever, "a").values()) < 0


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["lucene", "robertson", "atire", "bm25l", "bm25+"])
def test_scores_are_those_of_bm25s_on_every_document_with_a_query_term(variant: str) -> None:
    texts = [text for text in _zipf_texts(7, 200) if text]
    library = bm25s.BM25(method=variant, k1=0.9, b=0.4)
    library.index([text.split() for text in texts], show_progress=False)
    retriever = _indexed(BM25S, texts, variant=variant, tokenizer="whitespace")
    for query in ("w0", "w0 w1 w7", "w3 w3 w90", "w250 w251 w252"):
        expected = library.get_scores(query.split())
        found = _found(retriever, query, 300)
        asked = set(query.split())
        assert set(found) == {
            f"d{at:04d}" for at, text in enumerate(texts) if asked & set(text.split())
        }
        for doc_id, score in found.items():
            assert score == pytest.approx(float(expected[int(doc_id[1:])]), rel=1e-5)


@BOTH
def test_only_documents_that_share_a_term_are_found(make: Make) -> None:
    retriever = _indexed(make, ["red fox", "blue fox", "grey wolf", "green bird", ""])
    assert set(_found(retriever, "foxes")) == {"d0000", "d0001"}
    assert _found(retriever, "unheard of") == {}
    assert _found(retriever, "") == {}
    assert _found(retriever, "  ,;  ") == {}


def test_a_weightless_term_in_all_documents_still_finds_them() -> None:
    texts = ["a b", "a c", "a d", "a"]
    for variant in ("robertson", "atire"):
        retriever = _indexed(BM25S, texts, variant=variant, tokenizer="word")
        assert list(_found(retriever, "a", 3)) == ["d0000", "d0001", "d0002"]


@BOTH
@pytest.mark.parametrize("texts", [[], [""], ["", "the", "of the"]])
def test_a_corpus_without_terms_finds_nothing(make: Make, texts: list[str]) -> None:
    retriever = _indexed(make, texts)
    assert len(retriever.search(Query("q", "word"), 3)) == 0
    assert retriever.describe()["vocabulary"] == 0
    assert len(retriever.health([Query("q", "word")])) == 1


@BOTH
def test_titles_are_indexed_and_ids_may_be_any_text(make: Make) -> None:
    retriever = make()
    retriever.index(
        [Document("문서 1", "about cars", title="서울"), Document("b", "서점", title="")]
    )
    assert list(_found(retriever, "서울")) == ["문서 1"]


@BOTH
def test_an_id_given_twice_is_an_error(make: Make) -> None:
    with pytest.raises(DataError, match="'a' given twice"):
        make().index([Document("a", "x"), Document("b", "x"), Document("a", "y")])


@BOTH
def test_search_reports_its_stages(make: Make) -> None:
    ranking = _indexed(make, ["red fox", "wolf"]).search(Query("q", "fox"), 1)
    assert set(ranking.stages) == {"tokenize", "sparse"}
    assert all(isinstance(ns, int) and ns > 0 for ns in ranking.stages.values())


@BOTH
def test_the_dataset_s_language_is_used_unless_the_parameters_name_one(make: Make) -> None:
    texts = ["les chanteuses", "un autre texte"]
    told = make()
    told.use_language("fr")
    told.index(_documents(texts))
    assert list(_found(told, "chanteux")) == ["d0000"]
    fixed = make(tokenizer={"name": "auto", "language": "en"})
    fixed.use_language("fr")
    fixed.index(_documents(texts))
    assert _found(fixed, "chanteux") == {}
    assert list(_found(fixed, "les")) == ["d0000"]


@BOTH
def test_a_language_told_after_indexing_asks_for_a_new_index(make: Make) -> None:
    retriever = _indexed(make, ["fox"])
    retriever.use_language("fr")
    with pytest.raises(ContractError, match="before index"):
        retriever.search(Query("q", "fox"), 1)


@BOTH
@pytest.mark.parametrize(
    ("texts", "query", "expected"),
    [
        (["강물이 흐른다", "물 한 잔", "불이 났다", "water"], "물", {"d0000", "d0001"}),
        (["下雨了", "雨", "晴天"], "雨", {"d0000", "d0001"}),
        (["大雨が降った", "雨のち晴れ", "みずうみ"], "雨?", {"d0000", "d0001"}),
        (["강물이 흐른다", "불이 났다", "산에 간다"], "물, 불", {"d0000", "d0001"}),
        (["下雨了", "晴天"], "雪", set()),
    ],
)
def test_a_query_of_single_characters_finds_every_text_that_has_one(
    make: Make, texts: list[str], query: str, expected: set[str]
) -> None:
    assert set(_found(_indexed(make, texts), query)) == expected


@BOTH
def test_single_characters_beside_a_pair_or_a_word_are_asked_as_they_stand(make: Make) -> None:
    retriever = _indexed(make, ["강물이 흐른다", "물 한 잔", "불길", "water"])
    assert set(_found(retriever, "물 불길")) == {"d0001", "d0002"}
    assert set(_found(retriever, "물 water")) == {"d0001", "d0003"}
    assert set(_found(_indexed(make, ["강물", "물"], tokenizer="word"), "물")) == {"d0001"}


@BOTH
def test_it_describes_what_the_parameters_do_not_say(make: Make) -> None:
    facts = _indexed(make, ["red fox", "blue fox and wolf"]).describe()
    assert facts["k1"] == 0.9
    assert facts["b"] == 0.4
    assert facts["library"].startswith(("rank-bm25 ", "bm25s "))
    assert facts["tokenizer"]["name"] == "auto"
    assert facts["vocabulary"] == 4
    assert facts["average_document_length"] == 2.5
    assert facts["index_bytes"] > 0
    assert "vocabulary" not in make().describe()


@pytest.mark.parametrize(
    ("make", "params", "message"),
    [
        (BM25, {"variant": "lucene"}, "variant 'lucene'\n  accepted: okapi, l, plus"),
        (BM25, {"k1": -1}, "k1 = -1\n  accepted: a number from 0"),
        (BM25, {"b": 1.5}, "b = 1.5\n  accepted: a number from 0 to 1"),
        (BM25, {"k1": "high"}, "k1 = 'high'"),
        (BM25, {"k1": float("inf")}, "k1 = inf"),
        (BM25, {"b": float("nan")}, "b = nan"),
        (BM25, {"delta": 1}, "variant 'okapi' has no delta\n  accepted: k1, b, epsilon"),
        (BM25, {"variant": "l", "epsilon": 1}, "variant 'l' has no epsilon"),
        (BM25S, {"variant": "okapi"}, "variant 'okapi'\n  accepted: lucene"),
        (BM25S, {"delta": 1}, "variant 'lucene' has no delta"),
        (BM25S, {"tokenizer": "atuo"}, "did you mean auto?"),
    ],
)
def test_a_parameter_out_of_range_is_an_error(make: Make, params: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(**params)
    assert message in str(caught.value)


def test_delta_and_epsilon_reach_the_library() -> None:
    texts = _zipf_texts(2, 50)
    tokens = [text.split() for text in texts]
    for variant, name, query in (("plus", "delta", "w1 w5"), ("okapi", "epsilon", "w0")):
        library = LIBRARY[variant](tokens, k1=0.9, b=0.4, **{name: 0.7})
        retriever = _indexed(BM25, texts, variant=variant, tokenizer="word", **{name: 0.7})
        expected = library.get_scores(query.split())
        for doc_id, score in _found(retriever, query, 50).items():
            assert score == pytest.approx(expected[int(doc_id[1:])], rel=1e-5)


def test_the_library_keeps_no_dictionary_for_each_document(monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[Any] = []
    count = rank_bm25.BM25Okapi._calc_idf

    def spy(self: Any, nd: Any) -> None:
        models.append(self)
        count(self, nd)

    monkeypatch.setattr(rank_bm25.BM25Okapi, "_calc_idf", spy)
    _indexed(BM25, ["red fox", "fox", ""])
    assert not models[0].doc_freqs
    assert models[0].idf.keys() == {0, 1}
    assert isinstance(models[0], rank_bm25.BM25Okapi)


@pytest.mark.parametrize("name", ["bm25", "bm25s"])
def test_the_shipped_config_gives_the_defaults(name: str) -> None:
    built = load_retriever_config(name).build()
    default = {"bm25": BM25, "bm25s": BM25S}[name]()
    assert type(built) is type(default)
    assert built.describe() == default.describe()


KOREAN = ["한국어 검색 엔진은 빠르다", "서울은 한국의 수도이다"]
CHINESE = ["信息检索系统的评价", "向量模型和词模型"]
ENGLISH = ["a search engine is fast", "the capital of the country"]


@pytest.mark.parametrize(
    ("tokenizer", "texts", "query", "warning"),
    [
        ("auto", KOREAN, "검색", None),
        ("auto", CHINESE, "检索", None),
        ("english", ENGLISH, "engines", None),
        (
            "whitespace",
            KOREAN,
            "서울은",
            "tokenizer 'whitespace' keeps whole words, but the corpus",
        ),
        ("word", CHINESE, "向量模型和词模型", "without blanks between words: use tokenizer 'auto'"),
        (
            "auto",
            KOREAN,
            "fox",
            "the queries are written in Latin 100 %, the corpus in Hangul 100 %",
        ),
        ("auto", ENGLISH, "fox", "no term of 1 of 1 answerable query (100.0%) is in the corpus"),
        # N7: they may well be in the corpus
        ("auto", ENGLISH, "IT", "such as 'IT', are stop words of tokenizer 'auto'"),
        ("english", ENGLISH, "to be {or} not to be", "`tokenizer: word` keeps them"),
        ("lucene", ENGLISH, "The Will", "such as 'The Will', are stop words of tokenizer 'lucene'"),
        ("word", ENGLISH, "to be or not", "no term of 1 of 1 answerable query"),
        ("auto", ENGLISH, "?!", "no term of 1 of 1 answerable query"),
    ],
)
def test_health_says_in_words_what_does_not_fit(
    tokenizer: str, texts: list[str], query: str, warning: str | None
) -> None:
    warnings = _indexed(BM25, texts, tokenizer=tokenizer).health([Query("q", query)])
    if warning is None:
        assert list(warnings) == []
    else:
        assert warning in "\n".join(warnings)


def test_health_tells_of_a_language_without_stemmer() -> None:
    retriever = BM25()
    retriever.use_language("vi")
    retriever.index(_documents(["xin chào"]))
    (warning,) = retriever.health([Query("q", "chào")])
    assert "no Snowball stemmer for language 'vi'" in warning


def test_a_document_of_one_term_a_thousand_times_has_a_finite_score() -> None:
    found = _found(_indexed(BM25, ["w " * 1000, "x", "y z"]), "w")
    assert np.isfinite(list(found.values())).all()
    assert list(found) == ["d0000"]
