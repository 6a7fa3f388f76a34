from __future__ import annotations

import pytest

from retrieval_bench.reports.tables.letters import letter, marks


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
