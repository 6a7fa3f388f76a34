"""Commands that are proposed work where they are; ``python -m tests.builders.next_lines`` runs all
of them in an environment without extras."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.next_lines import Told, all_told, commands, make_folder


@pytest.fixture(autouse=True)
def folder(here: Path) -> None:
    make_folder(here)


def _wrong(told: list[Told]) -> list[Told]:
    return [one for one in told if one.became not in ("run", "read")]


@pytest.mark.slow
def test_next_lines_carry_dataset_split_depth_parameters_and_quotes() -> None:
    """N1, N2."""
    some = [line for line in commands() if line.startswith(("doctor", "bench bm25", "data"))]
    told = all_told(some[::3])
    assert _wrong(told) == []
    assert any("--split dev --k 4" in one.line for one in told)
    of_bench = [one.line for one in told if one.by.startswith("bench") and "--lang" in one.by]
    assert of_bench
    assert all("--language de" in line for line in of_bench)
    assert any("--dataset 'my data'" in one.line for one in told)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_hundred_next_lines_of_all_commands_work() -> None:
    told = all_told()
    assert _wrong(told) == []
    assert len(told) >= 100
