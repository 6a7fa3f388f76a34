from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from retrieval_bench.core.notices import Code
from retrieval_bench_retrievers.encoders.fit import EncoderFit, TokenFit, measure, sample

ENGLISH = "Plants turn water and light into sugar, and the air that we breathe comes of it. " * 5
KOREAN = "식물은 물과 빛으로 당을 만들고 우리가 숨쉬는 공기는 거기에서 나온다. " * 8
CHINESE = "植物利用水和阳光制造糖分，我们呼吸的空气就是这样产生的。" * 8
RUSSIAN = "Растения превращают воду и свет в сахар, и отсюда берётся воздух. " * 5
UNKNOWN = 0


class Encoding(NamedTuple):
    ids: list[int]
    offsets: list[tuple[int, int]]
    special_tokens_mask: list[int]


class Pieces:
    """Splits words into pieces of so many letters; words of other alphabets are unknown."""

    def __init__(self, length: int, *, known: str = r"\w", per_letter: int = 1) -> None:
        self._piece = re.compile(rf"{known}{{1,{length}}}|[^\w\s]|\w+")
        self._known = re.compile(rf"{known}+|[^\w\s]")
        self._repeats = per_letter

    def encode(self, text: str) -> Encoding:
        spans = [found.span() for found in self._piece.finditer(text) for _ in range(self._repeats)]
        known = [bool(self._known.fullmatch(text[start:end])) for start, end in spans]
        ids = [1, *(2 if is_known else UNKNOWN for is_known in known), 1]
        return Encoding(ids, [(0, 0), *spans, (0, 0)], [1, *(0 for _ in spans), 1])


def fit_of(text: str, tokenizer: Pieces, max_length: int | None = None) -> TokenFit:
    return measure(tokenizer, UNKNOWN, [text], max_length)


def beside(
    documents: TokenFit,
    queries: TokenFit,
    max_length: int | None = None,
    languages: Sequence[str] = (),
) -> EncoderFit:
    model: Any = SimpleNamespace(name="M", max_seq_length=max_length)
    model.languages, model.missing_prompts = lambda: languages, list
    return EncoderFit(model, documents, queries)


def warnings(
    documents: TokenFit, queries: TokenFit, language: str | None = None, **of_model: Any
) -> list[Any]:
    return [*beside(documents, queries, **of_model).warnings(language)]


FINE = fit_of(ENGLISH, Pieces(8))


def test_counts_leave_out_what_the_model_adds() -> None:
    fit = measure(Pieces(3), UNKNOWN, ["abcd, ef", "ghi"], None)
    assert (fit.texts, fit.tokens, fit.unknown) == (2, 5, 0)
    assert (fit.letters["Latin"], fit.pieces["Latin"]) == (9, 4)
    assert fit.per_letter("Latin") == 4 / 9


def test_a_text_is_cut_off_when_it_has_more_tokens_than_are_read_additions_included() -> None:
    fit = measure(Pieces(9), UNKNOWN, ["a b", "a b c", "a b c d e"], 5)
    assert (fit.cut_texts, fit.cut_tokens) == (1, 2)


def test_unknown_tokens_count_with_the_letters_in_them() -> None:
    fit = fit_of("sea 고래", Pieces(9, known="[a-z]"))
    assert (fit.tokens, fit.unknown) == (2, 1)
    assert fit.unknown_letters == {"Hangul": 2}
    assert fit.per_letter("Hangul") == 0


def test_a_syllable_written_in_its_parts_is_one_letter() -> None:
    fit = fit_of("\u1100\u1169\u1105\u1162", Pieces(1))
    assert fit.letters == {"Hangul": 2}
    assert fit.per_letter("Hangul") == 2


def test_scripts_are_told_apart() -> None:
    fit = fit_of("sea ｓｅａ 海 うみ カイー море θάλασσα بحر ים 123 🌊", Pieces(9))
    assert fit.letters == {
        "Latin": 6,
        "Han": 1,
        "Kana": 5,
        "Cyrillic": 4,
        "Greek": 7,
        "Arabic": 3,
        "Hebrew": 2,
    }


@pytest.mark.parametrize(
    ("text", "tokenizer", "reason"),
    [
        (KOREAN, Pieces(1, per_letter=3), "100.0 % of the letters are Hangul"),
        (KOREAN, Pieces(9, known="[a-z]"), "100.0 % of these are unknown to it"),
        (CHINESE, Pieces(9, known="[植物利用水和阳光制造糖分我们呼吸的]"), "are unknown to it"),
        (RUSSIAN, Pieces(1), "1.00 tokens per letter (about 0.2 where it fits)"),
    ],
)
def test_an_encoder_that_cannot_read_the_script_is_announced(
    text: str, tokenizer: Pieces, reason: str
) -> None:
    (warning,) = warnings(fit_of(text, tokenizer), FINE)
    assert warning.startswith("M does not fit the corpus: ")
    assert reason in warning
    assert ". Expect dense rankings near chance, and fusion to lose by them. " in warning
    assert "`bench hybrid-multilingual`" in warning


@pytest.mark.parametrize(
    ("text", "tokenizer"),
    [
        (ENGLISH, Pieces(8)),
        (ENGLISH, Pieces(5)),
        (KOREAN, Pieces(1)),
        (KOREAN, Pieces(2)),
        (CHINESE, Pieces(1)),
        (RUSSIAN, Pieces(4)),
        ("Cây cối làm ra đường từ nước và ánh sáng mặt trời. " * 5, Pieces(6)),
        ("Donaudampfschifffahrtsgesellschaftskapitän " * 5, Pieces(4)),
        ("고래 " * 20, Pieces(1, per_letter=3)),
        ("", Pieces(1)),
        ("12 34 -- 🌊 " * 50, Pieces(1)),
    ],
    ids=[
        "English",
        "English in short pieces",
        "Korean by syllable",
        "Korean",
        "Chinese by character",
        "Russian",
        "short words",
        "long words",
        "too little to judge by",
        "nothing",
        "no letters",
    ],
)
def test_an_encoder_that_fits_is_left_in_peace(text: str, tokenizer: Pieces) -> None:
    fit = fit_of(text, tokenizer)
    assert warnings(fit, fit) == []


def test_a_script_that_is_rare_in_the_corpus_is_left_in_peace() -> None:
    mixed = fit_of(ENGLISH * 5 + KOREAN, Pieces(8, known="[A-Za-z]"))
    assert mixed.unknown > 0
    assert warnings(mixed, mixed) == []


def test_queries_that_the_encoder_cannot_read_are_announced_too() -> None:
    korean = fit_of(KOREAN, Pieces(1, per_letter=3))
    (of_queries,) = warnings(FINE, korean)
    assert of_queries.startswith("M does not fit the queries: ")
    (of_both,) = warnings(korean, korean)
    assert of_both.startswith("M does not fit the corpus and the queries: ")


def test_an_alphabet_in_short_pieces_is_announced_mildly() -> None:
    (warning,) = warnings(fit_of(ENGLISH, Pieces(3)), FINE)
    assert warning.startswith("M may fit the corpus poorly: 100.0 % of the letters are Lat")
    assert "unknown" not in warning
    assert warning.endswith("than from an encoder made for this language or subject.")


@pytest.mark.parametrize(
    ("languages", "language", "warned"),
    [
        (["en"], "fr", True),
        (["en"], "en", False),
        (["en"], "en-GB", False),
        (["en", "fr"], "fr", False),
        (["multilingual"], "fr", False),
        ([], "fr", False),
        (["en"], None, False),
    ],
)
def test_the_language_of_the_dataset_is_compared_with_those_of_the_models_card(
    languages: list[str], language: str | None, warned: bool
) -> None:
    said = warnings(FINE, FINE, languages=languages, language=language)
    assert bool(said) is warned
    assert all("its model card names en, the dataset says fr" in warning for warning in said)


def test_of_many_languages_on_a_card_a_few_are_named() -> None:
    codes = ["ar", "de", "en", "es", "it", "ja", "ko", "zh"]
    (warning,) = warnings(FINE, FINE, languages=codes, language="fr")
    assert "its model card names ar, de, en, es, it and 3 more, the dataset says fr" in warning


LONG = TokenFit(texts=10, tokens=6850, cut_texts=10, cut_tokens=4290)
SHORT = TokenFit(texts=10, tokens=60)


def test_queries_that_are_cut_off_are_a_warning_as_documents_are() -> None:
    (of_queries,) = warnings(SHORT, LONG, max_length=256)
    assert of_queries == (
        "M reads 256 tokens: 100 % of the queries are cut off, so dense rankings may be "
        "underrated. Shorten them, or use an encoder that reads more."
    )
    (of_documents,) = warnings(LONG, SHORT, max_length=256)
    assert of_documents.startswith("M reads 256 tokens: 100 % of the documents are cut off, ")
    both = warnings(LONG, LONG, max_length=256)
    assert both == [of_documents, of_queries]
    codes = [warning.code for warning in both]
    assert codes == [Code.CUT_OFF, Code.QUERIES_CUT_OFF]


@pytest.mark.parametrize(("cut", "warned"), [(0, False), (1, False), (2, True)])
def test_more_than_a_tenth_of_the_queries_must_be_cut_off(cut: int, warned: bool) -> None:
    fit = TokenFit(texts=10, tokens=100, cut_texts=cut, cut_tokens=cut)
    assert bool(warnings(SHORT, fit, max_length=256)) is warned
    assert warnings(SHORT, fit, max_length=None) == []


def test_the_facts_are_one_line_with_shares_of_texts_and_tokens() -> None:
    documents = TokenFit(texts=8, tokens=400, unknown=2, cut_texts=3, cut_tokens=100)
    queries = TokenFit(texts=4, tokens=30, unknown=0)
    (facts,) = beside(documents, queries, 256).facts()
    assert facts == (
        "encoder M reads 256 tokens of a text: cut off are 37.5 % of the documents (25.0 % of "
        "their tokens) and 0.0 % of the queries; unknown tokens: 0.5 % in documents, 0.0 % in "
        "queries"
    )
    (facts,) = beside(documents, TokenFit()).facts()
    assert facts == (
        "encoder M reads texts of any length; unknown tokens: 0.5 % in documents, 0.0 % in queries"
    )


def test_facts_without_a_catch_are_short() -> None:
    short = TokenFit(texts=8, tokens=400)
    (facts,) = beside(short, short, 256).facts()
    assert facts == ("encoder M reads 256 tokens of a text: nothing is cut off; no unknown tokens")


@pytest.mark.parametrize(("n", "size"), [(0, 5), (3, 5), (5, 5), (6, 5), (99, 10), (1000, 500)])
def test_a_sample_is_spread_over_all_texts_and_never_larger_than_asked(n: int, size: int) -> None:
    taken = sample([str(i) for i in range(n)], size)
    assert min(n, size) / 2 <= len(taken) <= size
    assert taken[:1] == ["0"][:n]
    places = [int(text) for text in taken]
    assert len({b - a for a, b in pairwise(places)}) <= 1
