"""Chunkers: what holds for each of them on any text, and where they cut."""

from __future__ import annotations

import itertools
import random
import re
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest

from retrieval_bench_chunks import cutting
from retrieval_bench_chunks.counting import Counter
from retrieval_bench_chunks.cutting import BY_LEVELS, Chunker, Levels, TokenWindows, Windows

SAMPLES = {
    "english": 'One sentence. Another one! A third?\n\nA paragraph, "quoted." And more.\n' * 9,
    "markdown": "# Title\n\nText.\n\n## Part\n\n- a\n- b\n\n```\n# no heading\n```\n\n## Two\ntext "
    * 5,
    "korean": "연차는 십오 일입니다. 병가는 다릅니다.\n\n기차표는 총무팀에 문의하세요. " * 9,
    "japanese": "これは文です。次の文です！「引用です。」最後ですか？" * 9,
    "emoji": "👩‍👩‍👧 family 🇰🇷 flags e\u0301 " * 20,
    "crlf": "line one\r\nline two\r\n\r\nnext paragraph\r\n" * 9,
    "no blanks": "x" * 777,
    "blanks": " \n\t " * 40,
    "empty": "",
    "short": "a",
}


def chunkers(size: int, overlap: int) -> dict[str, Chunker]:
    by_levels = {name: Levels(size, overlap, levels) for name, levels in BY_LEVELS.items()}
    return {
        "characters": Windows(size, overlap),
        "tokens": TokenWindows(max(2, size // 4), overlap // 4, Counter()),
        "estimated": TokenWindows(max(2, size // 4), overlap // 4, Counter("estimate")),
        **by_levels,
    }


NAMES = tuple(chunkers(10, 0))


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", NAMES)
def test_every_character_but_white_space_is_in_a_chunk_of_the_size(name: str, sample: str) -> None:
    text = SAMPLES[sample]
    for size, overlap in ((7, 0), (40, 0), (40, 10), (40, 20), (10_000, 0)):
        ranges = chunkers(size, overlap)[name].cut(text)
        inside = {at for start, end in ranges for at in range(start, end)}
        assert [text[at] for at in range(len(text)) if at not in inside and text[at].strip()] == []
        assert ranges == sorted(set(ranges)), "rising, and none twice"
        for start, end in ranges:
            assert text[start:end] == text[start:end].strip() != ""
            assert name in ("tokens", "estimated") or end - start <= size
        if overlap == 0:
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(ranges))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "estimated"])
def test_neighbours_share_at_most_the_overlap(name: str) -> None:
    text = "some words, " * 60
    shared = 0
    for overlap in (12, 20):
        ranges = chunkers(40, overlap)[name].cut(text)
        for (_, end), (start, _) in itertools.pairwise(ranges):
            assert end - start <= overlap if name != "tokens" else end - start <= overlap * 3
            shared += max(0, end - start)
    assert shared > 0


def test_tokens_are_windows_of_that_many_tokens() -> None:
    counter = Counter()
    text = SAMPLES["english"]
    for start, end in TokenWindows(10, 0, counter).cut(text)[:-1]:
        assert 8 <= counter.count(text[start:end]) <= 12


def cut(name: str, size: int, text: str) -> list[str]:
    return [text[start:end] for start, end in Levels(size, 0, BY_LEVELS[name]).cut(text)]


def test_sentences_stay_whole_where_they_fit() -> None:
    text = 'He said "Stop." Then he left. 그는 갔다。彼は行った！Why?'
    assert cut("sentences", 15, text) == [
        'He said "Stop."',
        "Then he left.",
        "그는 갔다。彼は行った！",
        "Why?",
    ]


def test_a_paragraph_that_is_too_long_is_cut_into_sentences() -> None:
    text = "Short one.\n\nFirst sentence here. Second sentence here.\n\nLast."
    assert cut("paragraphs", 25, text) == [
        *("Short one.", "First sentence here.", "Second sentence here.", "Last."),
    ]


def test_markdown_is_cut_at_headings_and_none_is_seen_in_code() -> None:
    text = "# A\ntext of a\n```\n# code\n```\n# B\ntext of b"
    assert cut("markdown", 30, text) == ["# A\ntext of a\n```\n# code\n```", "# B\ntext of b"]
    windows = text.replace("\n", "\r\n")
    assert [len(part.splitlines()) for part in cut("markdown", 36, windows)] == [5, 2]
    inline = "# A\n```one``` is code\n# B\ntext"
    assert cut("markdown", 24, inline) == ["# A\n```one``` is code", "# B\ntext"]


def test_what_fits_is_kept_together() -> None:
    assert cut("recursive", 1_000, SAMPLES["english"]) == [SAMPLES["english"].strip()]
    assert cut("recursive", 12, "a b c\n\nd e f\n\nlonger than twelve") == [
        *("a b c\n\nd e f", "longer than", "twelve"),
    ]


def test_no_chunk_lies_within_another_one() -> None:
    assert Windows(10, 5).cut("     abc     ") == [(5, 8)]
    assert Windows(5, 2).cut("abcde" + " " * 10) == [(0, 5)]
    text = "x" * 180 + "\n" + "next words"
    assert Levels(100, 20, BY_LEVELS["recursive"]).cut(text) == [(0, 100), (80, 180), (181, 191)]
    chance = random.Random(12)
    for _ in range(300):
        text = "".join(chance.choices("ab  .\n", k=chance.randint(0, 60)))
        for chunker in chunkers(chance.randint(4, 20), 2).values():
            for bounds in zip(*chunker.cut(text), strict=True):
                assert list(bounds) == sorted(set(bounds))


def test_headings_are_looked_for_once_however_many_fences_there_are() -> None:
    text = "# A\n\n```\n# no\n```\n\n" * 300
    asked, whole = list[str](), cutting._FENCED

    def looked_for(text: str) -> Iterator[re.Match[str]]:
        asked.append(text)
        return whole.finditer(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "_FENCED", SimpleNamespace(finditer=looked_for))
        ranges = Levels(10, 0, BY_LEVELS["markdown"]).cut(text)
    assert len(asked) == 1
    assert [text[start:end] for start, end in ranges[:2]] == ["# A", "```\n# no"]


def test_random_texts_are_covered() -> None:
    chance = random.Random(11)
    for _ in range(120):
        text = "".join(chance.choices("ab .!?\n\r#。가é`", k=chance.randint(0, 200)))
        for chunker in chunkers(chance.randint(4, 30), 2).values():
            ranges: Sequence[tuple[int, int]] = chunker.cut(text)
            inside = {at for start, end in ranges for at in range(start, end)}
            assert {at for at in range(len(text)) if text[at].strip()} <= inside


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x" * 50_000_000, "one two three. " * 3_400_000])
def test_a_document_of_fifty_megabytes_is_cut(text: str) -> None:
    start = time.perf_counter()
    for chunker in (Windows(1_000, 100), Levels(1_000, 100, BY_LEVELS["recursive"])):
        ranges = chunker.cut(text)
        assert ranges[-1][1] >= len(text) - 2
        assert max(end - start for start, end in ranges) <= 1_000
    assert time.perf_counter() - start < 300
