"""Ids of two sides that never meet, and what sets them apart."""

from __future__ import annotations

import pytest

from retrieval_bench.core.notices import Code
from retrieval_bench.data.id_spaces import RETURNED, apart, misspelt, unmet
from tests.builders import some


@pytest.mark.parametrize(
    ("ids", "known", "pair", "cause"),
    [
        (["a-1", "b-2"], ["A-1", "B-2"], ("a-1", "A-1"), "case"),
        (["7", "12"], ["0007", "0012"], ("7", "0007"), "zeros"),
        (["0007"], ["7"], ("0007", "7"), "zeros"),
        (["10.0", "11.0"], ["10", "11"], ("10.0", "10"), "decimal"),
        (['"d1"', '"d2"'], ["d1", "d2"], ('"d1"', "d1"), "quotes"),
        (["cafe\u0301"], ["caf\u00e9"], ("cafe\u0301", "caf\u00e9"), "Unicode"),
        (["d1#0", "d1#1", "d2#0"], ["d1", "d2"], ("d1#0", "d1"), "chunks"),
        (["doc_chunk_3"], ["doc"], ("doc_chunk_3", "doc"), "chunks"),
        (["문서1-청크0", "문서2-청크1"], ["문서1", "문서2"], ("문서1-청크0", "문서1"), "chunks"),
        (["文档1：3", "文档2：1"], ["文档1", "文档2"], ("文档1：3", "文档1"), "chunks"),
        (["doc1 (3)", "doc2 (1)"], ["doc1", "doc2"], ("doc1 (3)", "doc1"), "chunks"),
        (["d-1 (2/3)", "d-2 (1/3)"], ["d-1", "d-2"], ("d-1 (2/3)", "d-1"), "chunks"),
        (["отчёт_стр4_3"], ["отчёт"], ("отчёт_стр4_3", "отчёт"), "chunks"),
        (["d1"], ["d1-조각3번째", "d2-조각1번째"], ("d1", "d1-조각3번째"), "chunks"),
        (["a|0", "b|1"], ["a", "b"], ("a|0", "a"), "chunks"),
        (
            ["data/in/a.txt", "data/in/b.txt"],
            ["a.txt", "b.txt"],
            ("data/in/a.txt", "a.txt"),
            "path",
        ),
        (["a.txt"], ["a"], ("a.txt", "a"), "file"),
        (["doc 1", "doc 2"], ["doc_1", "doc_2"], ("doc 1", "doc_1"), "punctuation"),
        (
            ["3c64aaaa0000400080000000deadbeef"],
            ["3c64aaaa-0000-4000-8000-0000deadbeef"],
            ("3c64aaaa0000400080000000deadbeef", "3c64aaaa-0000-4000-8000-0000deadbeef"),
            "punctuation",
        ),
        (["12", "13"], ["doc12", "doc13"], ("12", "doc12"), "number"),
        (["문서-1"], ["문서_1"], ("문서-1", "문서_1"), "punctuation"),
    ],
)
def test_what_sets_ids_apart_is_named(
    ids: list[str], known: list[str], pair: tuple[str, str], cause: str
) -> None:
    found = some(apart(ids, known))
    assert (found.met, found.example) == (0, pair)
    assert cause in found.cause
    assert cause in found.sentence(RETURNED, "judged")


def test_ids_of_nothing_in_common_are_apart_without_a_cause() -> None:
    found = some(apart(["x", "y"], ["p", "q"]))
    assert (found.n, found.met, found.cause) == (2, 0, "")
    assert found.sentence(RETURNED, "judged") == (
        "None of the 2 returned ids is judged ('x' beside 'p'): the two sides seem to use "
        "different ids."
    )


@pytest.mark.parametrize("known", [["a"], ["a", "z"]])
def test_ids_of_which_some_are_known_are_not_apart(known: list[str]) -> None:
    assert apart([*(f"x{i}" for i in range(60)), "a"], known) is None


def test_a_few_known_ids_among_many_of_another_kind_are_no_excuse() -> None:
    ids = ["d7", *(f"D{i}" for i in range(300))]
    found = some(apart(ids, [f"d{i}" for i in range(300)]))
    assert found.met == 1
    assert found.sentence(RETURNED, "in the corpus").startswith("Only 1 of 301 returned ids is in")


def test_a_few_known_ids_among_many_that_are_simply_others_are_no_fault() -> None:
    assert apart(["d7", *(f"x{i}" for i in range(300))], ["d7", "d8"]) is None


@pytest.mark.parametrize(("ids", "known"), [([], ["a"]), (["a"], [])])
def test_nothing_is_not_apart(ids: list[str], known: list[str]) -> None:
    assert apart(ids, known) is None


@pytest.mark.parametrize(
    ("own", "known", "cause"),
    [
        ("cafe\u0301-1", "caf\u00e9-1", "their Unicode form"),
        ("\uff22-1", "B-1", "their Unicode form"),
        ("b-1", "B-1", "upper and lower case"),
        ("STRASSE", "stra\u00dfe", "upper and lower case"),
        (" B-1", "B-1", "blanks"),
        ("B\u00a01", "B 1", "blanks"),
        ("B\u200b-1", "B-1", "characters that nobody sees"),
        ("\ufeffd1", "d1", "characters that nobody sees"),
        ("\u201cB-1\u201d", "B-1", "quotes around them"),
        ("007", "7", "leading zeros"),
        ("doc-007", "doc-7", "leading zeros"),
        ("7.0", "7", "a decimal point"),
        ("'007.0'", "7", "more than one of case"),
    ],
)
def test_one_id_that_is_written_differently_is_told(own: str, known: str, cause: str) -> None:
    """I1: however few they are, with both spellings."""
    lists = [[own, "x"], ["A-1", "y"]]
    (told,) = unmet(lists, {known, "A-1"}, None, "")
    assert told.startswith("1 returned id is written otherwise than the judged ones (")
    assert f"they differ in {cause}" in told
    assert told.code is Code.FOREIGN_IDS
    (of_a_corpus,) = unmet([[own], ["A-1"]], {known}, {known, "A-1"}, "")
    assert of_a_corpus == told


def test_ids_of_one_look_are_shown_by_their_code_points() -> None:
    """I1: nobody sees what differs."""
    (told,) = unmet([["cafe\u0301-1"]], {"caf\u00e9-1"}, None, "")
    assert "('cafe\\u0301-1' beside 'caf\\xe9-1';" in told


@pytest.mark.parametrize("pair", [("1.05", "1.5"), ("10", "1"), ("a-1", "a1"), ("d-12", "d-1-2")])
def test_ids_that_only_look_alike_are_others(pair: tuple[str, str]) -> None:
    assert misspelt(pair[:1], pair[1:]) == []
    assert unmet([[pair[0]]], {pair[1]}, None, "") == []


def test_two_spellings_that_are_both_there_are_two_documents() -> None:
    assert unmet([["a-1", "A-1"]], {"A-1"}, None, "") == []
    assert unmet([["a-1", "A-1"]], {"A-1"}, {"a-1", "A-1"}, "") == []


def test_a_single_hit_outside_of_the_corpus_is_told_with_its_share() -> None:
    """K7: it counted as relevant, and nothing was said."""
    lists = [["d1", "d2"], ["d2", "d9", "d3"], ["d1", "d9"]]
    (told,) = unmet(lists, {"d1", "d9"}, {"d1", "d2", "d3"}, "Load it anew.")
    assert told == (
        "2 of 7 hits (28.6 %) are documents that the corpus does not have, such as 'd9', and 1 of "
        "these are judged. Load it anew."
    )
    (told,) = unmet([["d"] * 4999, ["x"]], {"d"}, {"d"}, "")
    assert told.startswith("1 of 5,000 hits (less than 0.1 %) are")
    assert unmet(lists, {"d1"}, {"d1", "d2", "d3", "d9"}, "") == []
    assert unmet(lists, {"d1"}, None, "") == [], "without a corpus nobody knows"
