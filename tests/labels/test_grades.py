"""One grade of several people's, and whose word counts."""

from __future__ import annotations

import pytest

from retrieval_bench_labels.grades import Whose, settled
from retrieval_bench_labels.label import Kind, Label, Pair

PAIR = Pair("q", "d")


def said(*grades: int | None, kind: Kind = Kind.PERSON) -> list[Label]:
    return [Label(PAIR, f"{kind.value} {at}", grade, kind) for at, grade in enumerate(grades)]


@pytest.mark.parametrize(
    ("grades", "grade", "disputed"),
    [
        ((2,), 2, False),
        ((2, 2), 2, False),
        ((3, 0), 0, True),
        ((1, 2), 1, True),
        ((3, 0, 3), 3, False),
        ((0, 1, 3), 1, False),
        ((None, 2), 2, False),
    ],
)
def test_most_count_else_the_middle(
    grades: tuple[int | None, ...], grade: int, disputed: bool
) -> None:
    found = settled(said(*grades))[PAIR]
    assert (found.grade, found.disputed) == (grade, disputed)


def test_people_come_before_the_dataset_and_that_before_models() -> None:
    model, dataset, person = (
        said(g, kind=k)
        for g, k in zip((3, 2, 0), (Kind.MODEL, Kind.DATASET, Kind.PERSON), strict=True)
    )
    assert settled([*model, *dataset, *person])[PAIR].grade == 0
    assert settled([*model, *dataset])[PAIR].grade == 2
    assert settled(model)[PAIR].kind is Kind.MODEL


def test_whose_judgements_they_are_is_said_and_mixed_ones_are_told() -> None:
    model = [Label(Pair("q", "e"), "gpt", 1, Kind.MODEL)]
    whose = Whose.of(settled([*said(2), *model]).values())
    assert (
        whose.sentence == "Judged by person 0 (person, 1 judgement) and gpt (model, 1 judgement)."
    )
    assert whose.mixed
    assert not Whose.of(settled(said(1, 1)).values()).mixed
    assert Whose.of([]).sentence == "Nothing is judged."
