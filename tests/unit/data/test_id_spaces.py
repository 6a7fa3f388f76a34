"""Ids of two sides that never meet, and what sets them apart."""

from __future__ import annotations

import pytest

from retrieval_bench.data.id_spaces import RETURNED, apart
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
