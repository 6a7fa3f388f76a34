from __future__ import annotations

import pytest

from retrieval_bench.metrics import parse_metrics
from retrieval_bench.reports.render import csv
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.render.words import letter, marks, metric_label, on_dataset


def test_letters_as_long_as_there_are_some_then_numbers() -> None:
    assert [letter(at, 25) for at in (0, 15, 16, 24)] == ["a", "p", "r", "z"]
    assert [letter(at, 26) for at in (0, 25)] == ["1", "26"]


@pytest.mark.parametrize(
    ("places", "of", "shown"),
    [
        ([], 4, ""),
        ([0, 2], 4, "ac"),
        ([0, 1, 2], 5, "abc"),
        ([0, 1, 2, 3], 5, "a-d"),
        ([0, 2, 3, 4, 5, 7], 25, "ac-fh"),
        ([], 26, ""),
        ([0, 3, 4, 5, 6, 25], 26, "6"),
    ],
)
def test_marks_of_several_systems(places: list[int], of: int, shown: str) -> None:
    assert marks(places, of) == shown


@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("AP", "MAP"), ("AP(norm=hits)@3", "MAP(norm=hits)@3"), ("RR@10", "MRR@10"),
        ("R@100", "recall@100"), ("Success@1", "success@1"), ("P@5", "precision@5"),
        ("RBP(p=0.8)", "RBP(p=0.8)"), ("Rprec", "Rprec"), ("nDCG@10", "nDCG@10"),
        ("set_R", "set_R"), ("file.py:R@5", "file.py:R@5"),
    ],
)  # fmt: skip
def test_people_read_the_usual_names_of_metrics_and_programs_the_codes(
    code: str, label: str
) -> None:
    assert metric_label(code) == label
    assert csv.render([Table("t", (metric_label(code),), [("1",)])]) == f"# t\n{code}\n1\n"


def test_the_usual_names_can_be_typed() -> None:
    codes = ["AP@10", "RR", "R@100", "Success@1", "P@5"]
    assert [str(m) for m in parse_metrics([metric_label(code) for code in codes])] == codes


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("scifact", "on scifact"),
        ("time", "on dataset time"),
        ("Average", "on dataset Average"),
        ("time-2024", "on time-2024"),
    ],
)
def test_a_common_word_is_said_to_be_the_name_of_a_dataset(name: str, told: str) -> None:
    assert on_dataset(name) == told
