from __future__ import annotations

import pytest

from retrieval_bench.core.scripts import (
    ScriptSample,
    main_script,
    main_scripts,
    no_common_script,
    script_profile,
)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Déjà vu", "Latin"),
        ("ＡＢＣ", "Latin"),
        ("한국어", "Hangul"),
        ("信息々", "Han"),
        ("ひらカター", "Kana"),
        ("ｶﾀｶﾅ", "Kana"),
        ("Привет", "Cyrillic"),
        ("مرحبا", "Arabic"),
        ("हिन", "Devanagari"),
        ("ελλάς", "Greek"),
        ("ไทย", "Thai"),
    ],
)
def test_each_letter_belongs_to_a_script(text: str, script: str) -> None:
    assert script_profile([text]) == {script: 1.0}


def test_only_letters_count_and_shares_add_up_and_texts_without_letters_have_no_profile() -> None:
    profile = script_profile(["한국어 abc!", "1234 😀 --- 한글"])
    assert profile == pytest.approx({"Hangul": 5 / 8, "Latin": 3 / 8})
    assert list(profile) == ["Hangul", "Latin"]
    assert script_profile([]) == {}
    assert script_profile(["", "12 😀"]) == {}
    assert main_scripts({}) == "no letters"
    assert main_script({}) is None


def test_a_long_stream_is_sampled_evenly() -> None:
    texts = ["가"] * 3000 + ["b"] * 1000
    assert script_profile(iter(texts), sample=50) == pytest.approx(
        {"Hangul": 0.75, "Latin": 0.25}, abs=0.02
    )


def test_the_sample_keeps_at_most_twice_what_was_asked_and_little_of_each() -> None:
    sample = ScriptSample(10)
    for _ in range(1234):
        sample.add("x" * 5000)
    assert 10 <= len(sample._kept) < 20
    assert max(map(len, sample._kept)) == 400


def test_the_phrase_names_the_scripts_that_matter_largest_first() -> None:
    phrase = main_scripts({"Latin": 0.27, "Hangul": 0.71, "Han": 0.02})
    assert phrase == "Hangul 71 %, Latin 27 %"
    assert main_script({"Latin": 0.27, "Hangul": 0.71}) == "Hangul"


@pytest.mark.parametrize(
    ("corpus", "queries", "none"),
    [
        ({"Hangul": 1.0}, {"Latin": 1.0}, True),
        ({"Hangul": 0.97, "Latin": 0.03}, {"Latin": 1.0}, True),
        ({"Hangul": 0.7, "Latin": 0.3}, {"Latin": 1.0}, False),
        ({"Latin": 1.0}, {"Latin": 1.0}, False),
        ({}, {"Latin": 1.0}, False),
        ({"Latin": 1.0}, {}, False),
    ],
)
def test_corpus_and_queries_may_have_no_script_in_common(
    corpus: dict[str, float], queries: dict[str, float], none: bool
) -> None:
    assert no_common_script(corpus, queries) is none
