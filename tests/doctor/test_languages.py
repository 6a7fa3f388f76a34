"""N9: a corpus or questions in more than one language, and in another one than is named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset
from retrieval_bench_doctor.languages import languages_told

ENGLISH = [
    f"The {thing} of the old town was built for people that came with ships and wanted to trade."
    for thing in ("harbour", "market", "library", "bridge", "theatre", "station", "school", "wall")
]
GERMAN = [
    f"Warum wurde {thing} der alten Stadt damals für die Menschen gebaut, die mit Schiffen kamen?"
    for thing in ("der Hafen", "der Markt", "die Bücherei", "die Brücke", "die Schule", "die Mauer")
]
SPANISH = [
    f"¿Por qué se construyó {thing} de la ciudad antigua para las personas que llegaban en barco?"
    for thing in ("el puerto", "el mercado", "la biblioteca", "el puente", "la escuela", "el muro")
]
KOREAN = [
    f"옛 도시의 {thing} 배를 타고 와서 장사를 하려던 사람들을 위하여 지어진 것이다."
    for thing in ("항구는", "시장은", "도서관은", "다리는", "학교는", "성벽은")
]
CHINESE = [
    f"古城的{thing}是为了乘船而来想要做生意的人们而建造的,至今仍然保存完好。"
    for thing in ("港口", "市场", "图书馆", "桥梁", "学校", "城墙")
]


def data(
    documents: Sequence[str], queries: Sequence[str], language: str | None = None, key: str = ""
) -> Dataset:
    return build_dataset(
        "town",
        [Document(f"d{at}", text) for at, text in enumerate(documents)],
        [
            Query(f"q{at}", text, metadata={key: "de"} if key else {})
            for at, text in enumerate(queries)
        ],
        {"q0": {"d0": 1}},
        language=language,
    )


@pytest.mark.parametrize(
    ("documents", "queries", "language", "told"),
    [
        ([*ENGLISH, *GERMAN[:4]], ENGLISH[:3], None, "33 % of the documents look German, not Eng"),
        (
            ENGLISH,
            [*ENGLISH[:4], *GERMAN[:4]],
            "en",
            "50 % of the queries look German, not English",
        ),
        (ENGLISH, SPANISH, "en-GB", "100 % of the queries look Spanish, not English"),
        (
            [*ENGLISH, *KOREAN],
            KOREAN,
            None,
            "43 % of the documents and 100 % of the queries look Ko",
        ),
        ([*GERMAN, *CHINESE], GERMAN, "de", "50 % of the documents look Chinese, not German"),
        (GERMAN, [*GERMAN, *CHINESE], None, "50 % of the queries look Chinese, not German"),
        (ENGLISH, ENGLISH, "fr", "look English, not French"),
        (
            [*ENGLISH[:4], *SPANISH[:3], *GERMAN[:3]],
            ENGLISH,
            "en",
            "30 % of the documents look German, 30 % of the documents look Spanish, not English",
        ),
    ],
)
def test_a_tenth_in_another_language_is_told_with_its_share(
    documents: list[str], queries: list[str], language: str | None, told: str
) -> None:
    (text,) = languages_told(data(documents, queries, language))
    assert told in text
    assert "give the queries `lang` in their metadata, and compare with `--slices lang`" in text


@pytest.mark.parametrize(
    ("documents", "queries", "language"),
    [
        (ENGLISH, ENGLISH, None),
        (GERMAN, GERMAN, "de"),
        (GERMAN, GERMAN, None),
        (ENGLISH * 5, [*ENGLISH * 5, *GERMAN[:4]], "en"),
        (ENGLISH, [" ".join(text.split()[:4]) for text in GERMAN], "en"),
        (ENGLISH, ["A-1 B-2 C-3 D-4 E-5 F-6", "x9 y8 z7 w6 v5 u4"], None),
        ([*ENGLISH, GERMAN[0]], ENGLISH, None),
        ([], [], None),
    ],
)
def test_one_language_a_few_texts_short_queries_and_codes_say_nothing(
    documents: list[str], queries: list[str], language: str | None
) -> None:
    told = languages_told(data(documents or ["1"], queries or ["2"], language))
    assert told == []


def test_queries_that_say_their_language_need_no_other_key() -> None:
    (text,) = languages_told(data(ENGLISH, GERMAN, "en", "language"))
    assert "For figures of each, compare with `--slices language`" in text


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError(27, "File too large"), "File too large"),
        (MemoryError(), "not enough memory"),
    ],
)
def test_a_detector_that_cannot_be_loaded_ends_no_command(
    problem: Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1's kind: a full disk ended ``bench`` after measuring, as a bug."""

    def broken() -> None:
        raise problem

    monkeypatch.setattr("retrieval_bench_doctor.languages._detector", broken)
    (told,) = languages_told(data(GERMAN, GERMAN, "de"))
    assert told == f"The languages of the texts were not looked at: {why}."


def test_plain_english_loads_no_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval_bench_doctor.languages._detector", None)
    assert languages_told(data(ENGLISH, ENGLISH, "en")) == []
