from __future__ import annotations

import importlib.util
import runpy
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_bench.core.errors import ConfigError, MissingDependencyError
from retrieval_bench.core.installed.installation import how_to_add
from retrieval_bench_retrievers.text import terms
from retrieval_bench_retrievers.text.terms import stop_words
from retrieval_bench_retrievers.text.tokenizers import SNOWBALL, make_tokenizer
from tests.builders.processes import loads


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("한국어 검색", ["한국", "국어", "검색"]),
        ("LG전자는 2차전지 가", ["lg", "전자", "자는", "2", "차전", "전지", "가"]),
        ("東京タワーは高い。", ["東京", "京タ", "タワ", "ワー", "ーは", "は高", "高い"]),
        ("信息检索，模型", ["信息", "息检", "检索", "模型"]),
        ("สวัสดี 123", ["สว", "วั", "ัส", "สด", "ดี", "123"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("Привет, МИР", ["привет", "мир"]),
        ("tea 🍵 I❤️🍎", ["tea", "🍵", "i", "❤", "🍎"]),
        ("ＡＢＣ ﬁre ｶﾀｶﾅ", ["abc", "fire", "カタ", "タカ", "カナ"]),
        ("co\u00adoperate", ["cooper"]),
        ("3.14 and 1,000.50 in 2024.", ["3.14", "1,000.50", "2024"]),
        ("3.14 € ou 1,5", ["3.14", "ou", "1,5"]),
        ("_x_ foo_bar C++", ["x", "foo", "bar", "c"]),
        ("vitamin C, hepatitis B", ["vitamin", "c", "hepat", "b"]),
        (
            "The dogs' owner doesn't run; it's O'Neill’s",
            ["dog", "owner", "doesn", "run", "o", "neill"],
        ),
        ("", []),
        ("  \n\t  ", []),
        ("the of and", []),
    ],
)
def test_auto_reads_every_script(text: str, terms: list[str]) -> None:
    assert make_tokenizer("auto")(text) == terms


def test_composed_and_decomposed_spelling_give_the_same_terms() -> None:
    tokenize = make_tokenizer("auto")
    text = "한국어 déjà がぎ"
    assert tokenize(unicodedata.normalize("NFD", text)) == tokenize(text)


def test_auto_takes_stems_and_stop_words_of_the_dataset_s_language() -> None:
    french = make_tokenizer("auto", "fr")
    assert french("Les chanteuses de l'opéra") == ["chanteux", "oper"]
    assert french.describe()["stemmer"] == "french"
    assert french.describe()["stop_words"] == len(stop_words("french")) > 100


def test_the_stop_words_are_those_of_bm25s_and_say_so() -> None:
    package = importlib.util.find_spec("bm25s")
    assert package is not None
    assert package.origin is not None
    lists = runpy.run_path(str(Path(package.origin).with_name("stopwords.py")))
    for stemmer in set(SNOWBALL.values()):
        suffix = "EN" if stemmer == "english" else stemmer.upper()
        theirs = lists.get(f"STOPWORDS_{suffix}", ())
        assert stop_words(stemmer) == {word.casefold() for word in theirs}, stemmer
    kept = Path(terms.__file__).with_name("stop_words.txt").read_text(encoding="utf-8")
    assert "bm25s" in kept
    assert "MIT License" in kept


def test_a_language_of_the_parameters_wins_over_that_of_the_dataset() -> None:
    tokenize = make_tokenizer({"name": "auto", "language": "de"}, "fr")
    assert tokenize.describe()["language"] == "de"
    assert tokenize("die Häuser") == ["haus"]


@pytest.mark.parametrize("language", [None, "en", "en-GB", "EN_us", "english", "ko", "ja", "zh"])
def test_auto_stems_english_words_by_default_and_between_bigrams(language: str | None) -> None:
    assert make_tokenizer("auto", language)("the searches") == ["search"]


def test_a_dataset_language_without_stemmer_keeps_words_as_they_are() -> None:
    tokenize = make_tokenizer("auto", "vi")
    assert tokenize("the Searches") == ["the", "searches"]
    assert tokenize.describe()["stemmer"] is None


def test_turkish_has_two_letters_i() -> None:
    assert make_tokenizer("auto", "tr")("ISI İZ") == make_tokenizer("auto", "tr")("ısı iz")
    assert make_tokenizer("auto", "tr")("ISI") != make_tokenizer("auto", "tr")("isi")


def test_english_lists_come_without_importing_the_library_that_ships_them() -> None:
    code = "from retrieval_bench_retrievers.text.tokenizers import make_tokenizer\n"
    code += "make_tokenizer('auto')('the dogs')"
    assert not loads(code, "bm25s", "numba", "scipy", "kiwipiepy")


@pytest.mark.parametrize(
    ("spec", "text", "terms"),
    [
        ("whitespace", "The Dogs, don't", ["the", "dogs,", "don't"]),
        ({"name": "whitespace", "lower": False}, "The Dogs,", ["The", "Dogs,"]),
        ("word", "The Dogs, LG전자 हिन्दी", ["the", "dogs", "lg전자", "हिन्दी"]),
        ("english", "The Dogs' 한국어 cities", ["dog", "한국어", "citi"]),
        ({"name": "ngram"}, "Hello, it", ["hel", "ell", "llo", "it"]),
        ({"name": "ngram", "n": 2}, "한국어 a", ["한국", "국어", "a"]),
        ({"name": "ngram", "n": 1}, "ab", ["a", "b"]),
        ("bm25s", "Vitamin C and il-2 in 3.14", ["vitamin", "il", "14"]),
        ("bm25s", "한국어 searches", ["한국어", "search"]),
        (
            "lucene",
            "Vitamin C, il-2, 1,000.5; 3D m²",
            ["vitamin", "c", "il", "2", "1,000.5", "3d", "m"],
        ),
        ("lucene", "U.S.A. p.m. a:b foo_bar __ 2, 3", ["u.s.a", "p.m", "a:b", "foo_bar", "2", "3"]),
        ("lucene", "The dog’s owner's O'Neill 's", ["dog", "owner", "o'neil", "s"]),
        (
            "lucene",
            "東京タワーは 한국어 हिन्दी naïve",
            ["東", "京", "タワー", "は", "한국어", "हिन्दी", "naïv"],
        ),
        ("lucene", "α-synuclein co­operate 🍵", ["α", "synuclein", "co­oper", "🍵"]),
    ],
)
def test_the_other_tokenizers(spec: Any, text: str, terms: list[str]) -> None:
    assert make_tokenizer(spec)(text) == terms


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", ["auto", "word", "english", "ngram", "whitespace", "lucene", "bm25s"]
)
@given(text=st.text(max_size=200))
@settings(deadline=None, max_examples=60)
def test_terms_are_never_empty_nor_blank_and_case_never_counts(spec: str, text: str) -> None:
    tokenize = make_tokenizer(spec)
    terms = tokenize(text)
    assert all(term and not term.isspace() for term in terms)
    assert tokenize(text) == terms
    if spec != "whitespace":
        assert tokenize(text + " ZEBRA") == tokenize(text + " zebra")


def test_what_is_remembered_is_bounded_and_does_not_change_the_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "several different running words 한국어 running " + "x" * 100
    expected = make_tokenizer("auto")(text)
    monkeypatch.setattr(terms, "_REMEMBERED", 2)
    tokenize = make_tokenizer("auto")
    assert tokenize(text) == expected
    assert tokenize(text) == expected
    assert len(tokenize._terms) == 2  # type: ignore[attr-defined]


def test_threads_may_share_a_tokenizer() -> None:
    texts = [f"running {chr(97 + i % 26)}{i}ing universities{i % 7}" for i in range(400)]
    expected = [make_tokenizer("auto")(text) for text in texts]
    shared = make_tokenizer("auto")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(shared, texts)) == expected


def test_an_unknown_name_is_answered_with_close_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown tokenizer 'whitspace'\n.*mean whitespace\?"):
        make_tokenizer("whitspace")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"n": 3}, "tokenizer without a name"),
        ({"name": ["auto"]}, "unknown tokenizer"),
        ({"name": "ngram", "size": 3}, "'ngram' has no option 'size'\n  accepted: n"),
        ({"name": "word", "n": 3}, "'word' takes no option"),
        ({"name": "ngram", "n": 0}, "n: 0\n  accepted: a whole number from 1 to 20"),
        ({"name": "ngram", "n": True}, "n: True"),
        ({"name": "ngram", "n": 2.5}, "n: 2.5"),
        ({"name": "whitespace", "lower": "no"}, "lower: 'no'\n  accepted: true or false"),
        ({"name": "auto", "language": "frnch"}, "language 'frnch'"),
        ({"name": "auto", "language": False}, "in quotes"),
    ],
)
def test_a_specification_that_cannot_be_used_is_an_error(spec: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_tokenizer(spec)
    assert message in str(caught.value)


def test_kiwi_says_what_to_install_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "kiwipiepy" else find(name)
    )
    with pytest.raises(MissingDependencyError, match="pip install kiwipiepy") as caught:
        make_tokenizer("kiwi")
    assert how_to_add("korean") in caught.value.fix


@pytest.mark.slow
@pytest.mark.needs("kiwipiepy")
def test_kiwi_keeps_what_carries_meaning_in_any_script() -> None:
    tokenize = make_tokenizer("kiwi")
    assert tokenize("아버지가 방에 들어가신다. Привет!") == ["아버지", "방", "들어가", "привет"]
    assert tokenize.describe()["name"] == "kiwi"
