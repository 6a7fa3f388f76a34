"""Matching: what is the same text, what a word is in which script, and what a glob fits."""

from __future__ import annotations

import pytest

from retrieval_bench_rules.matching import compiled, fits, folded, glob, has, plain


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("You have 25 days of Annual Leave.", "annual leave"),
        ("annual \n\t leave", "annual leave"),
        ("annual\u00a0leave\u3000days", "annual leave days"),
        ("CAFE\u0301 du Port", "café du port"),
        ("Die STRASSE ist gesperrt", "straße"),
        ("ΟΔΟΣ", "οδος"),
        ("연차\u1112\u1172\u1100\u1161".replace("\u1112\u1172\u1100\u1161", "휴가"), "연차휴가"),
        ("\u1112\u1172\u1100\u1161 신청", "휴가"),
        ("员工每年有十五天年假。", "年假"),
        ("congés payés : 25 jours", "Congés  Payés"),
    ],
)
def test_case_form_and_white_space_do_not_count(text: str, phrase: str) -> None:
    assert has(folded(text), folded(phrase))


@pytest.mark.parametrize(
    ("text", "phrase"),
    [("cafe", "café"), ("annualleave", "annual leave"), ("年 假", "年假"), ("ﬁle", "f1le")],
)
def test_what_is_another_letter_counts(text: str, phrase: str) -> None:
    assert not has(folded(text), folded(phrase))


@pytest.mark.parametrize(
    ("text", "phrase", "stands"),
    [
        ("the cat sat", "cat", True),
        ("concatenate", "cat", False),
        ("concatenate the cat", "cat", True),
        ("v1.2 and v1.25", "1.25", False),
        ("version 1.2, not 1.25", "1.2", True),
        ("snake_case", "snake", False),
        ("l'été indien", "été", True),
        ("हिन्दी", "हिन्द", False),  # a vowel sign goes on with the word
        ("हिन्दी भाषा", "हिन्दी", True),
        ("员工有年假吗", "年假", True),  # no blank between words: nothing is asked
        ("有給休暇を取る", "休暇", True),
        ("วันลาพักร้อน", "ลาพัก", True),
        ("API文档", "API", True),
        ("APIs文档", "API", False),
        ("연차는 15일입니다", "연차", True),  # a particle
        ("연차에서는 빠집니다", "연차", True),  # two
        ("연차휴가 규정", "연차", False),
        ("월연차 규정", "연차", False),
        ("API는 느립니다", "API", True),
        ("연차에서는요즘", "연차", False),
    ],
)
def test_words_stand_alone_as_each_script_writes_them(text: str, phrase: str, stands: bool) -> None:
    assert has(folded(text), folded(phrase), words=True) is stands


@pytest.mark.parametrize(
    ("source", "pattern", "does"),
    [
        ("handbook/leave.md", "handbook/*.md", True),
        ("handbook/de/leave.md", "handbook/*.md", True),
        ("old/handbook/leave.md", "handbook/*.md", False),
        ("old/handbook/leave.md", "*/handbook/*.md", True),
        ("handbook/leave.md", "leave.md", True),
        ("handbook/sick-leave.md", "leave.md", False),
        ("handbook\\leave.md", "handbook/leave.md", True),
        ("handbook/Leave.md", "handbook/leave.md", False),
        ("https://docs.example/v2/a?x=1", "https://docs.example/v2/*", True),
        ("faq-12", "faq-1[0-9]", True),
        ("faq-2", "faq-?", True),
        ("app/[old]/page.tsx", "app/[old]/page.tsx", True),
        ("app/o/page.tsx", "app/[old]/page.tsx", True),
        ("src/[slug].tsx", "[slug].tsx", True),
        ("src/[slug].tsx.bak", "[slug].tsx", False),
        ("handbook/leave.md", "handbook\\*.md", True),
        ("휴가/연차.md", "휴가/*", True),
        ("cafe\u0301.md", "café.md", True),
    ],
)
def test_globs_are_for_the_whole_source_or_its_last_part(
    source: str, pattern: str, does: bool
) -> None:
    assert fits(source, glob(pattern)) is does


def test_patterns_are_searched_whatever_the_case() -> None:
    assert compiled(r"\b2\d days\b").search(plain("You have\n25   DAYS"))
    assert not compiled(r"(?-i:DAYS)").search("25 days")


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(", "no regular expression"),
        ("x*", "matches the empty text"),
        ("(a+)+b", "in several ways"),
        (r"(?:\w+\s*)+!", "in several ways"),
        ("(?:(?:ab)*c{30,})+d", "in several ways"),
        ("(?:a|aa)+$", "in several ways"),
        ("(?:a?){30}b", "in several ways"),
        ("(?:(?:a|b)?){6}c", "in several ways"),
        ("(a{1,19})+$", "in several ways"),
        ("(a+){19}b", "in several ways"),
        ("(?:y(x*)?)+$", "in several ways"),
        (r"(?=(?:\w|ab)+!)a", "in several ways"),
        (r"(?:\w{90}x?){90}", "in several ways"),  # too large to be looked at
    ],
)
def test_patterns_that_mean_nothing_or_take_for_ever_are_refused(pattern: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        compiled(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:\w++ )+!",
        "(?>a+)+b",
        r"(?:\d{1,3}\.)+\d",
        "a+b+",
        r"v\d+(\.\d+)*",
        "(?:foo|foobar)+x",
        "(?:a?){0,30}b",
        "(?:[0-9a-f]{2})+z",
        r"(\w+\s?){1,3}x",
        r"https?://\w+(?:/\w+)*",
        r"(\w)\1+",
        "(a)?(?(1)b|c)+",
        "[+-9]",
        r"[+-/]\d+",
        "[,-.]",
    ],
)
def test_patterns_that_are_not_tried_twice_are_taken(pattern: str) -> None:
    assert compiled(pattern)
