"""What may never break is seen to break: each fault of the table is caught by two tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.running import ENOUGH, ROOT, copied, judged
from tests.mutants.table import MUTANTS, Mutant


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("mutants"))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_can_be_put_in_place(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text("utf-8").count(mutant.before) == 1
    assert all((ROOT / test).exists() for test in mutant.tests)
    assert not any("golden" in test for test in mutant.tests), "a frozen text says what is, not why"


def test_there_are_thirty_of_them() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 30


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_is_caught(project: Path, mutant: Mutant) -> None:
    assert len(judged(project, mutant)) >= ENOUGH
