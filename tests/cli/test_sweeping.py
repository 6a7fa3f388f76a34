"""``bench --sweep``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.frozen import HERE
from tests.cli.project import Command

OWN = "partly.py:Partly"
SMOKE = ("--dataset", "data", "--k", "1", "--rounds", "1", "--warm-up", "0", "--no-pictures")


@pytest.fixture(autouse=True)
def project(project: Path) -> Path:
    (project / "partly.py").write_bytes((HERE / "files" / "partly.py").read_bytes())
    return project


def test_the_answer_comes_first_and_the_sweep_is_saved(run: Command, project: Path) -> None:
    assert run(f"bench {OWN} --sweep eighths=1,8 --recall .3", *SMOKE) == 0
    lines = run.out.splitlines()
    assert len(lines) <= 20
    assert lines[0].startswith("Partly on data: ")
    assert "of the exact top 1" in run.unwrapped
    (folder,) = (project / "results" / "sweeps").iterdir()
    assert (folder / "sweep.json").is_file()
    assert f"saved: results/sweeps/{folder.name}" in run.unwrapped


def test_the_document_says_recall_of_each_query_and_value(run: Command) -> None:
    document = run.json(f"bench {OWN} --sweep eighths=1,8 --filters 100 --recall .3", *SMOKE)
    assert (document["parameter"], document["target_recall"]) == ("eighths", 0.3)
    plain, whole = document["levels"]
    first, all_ = plain["values"]
    assert first["recall"] < all_["recall"] == 1
    assert len(all_["recalls"]) == len(document["queries"]) == 4
    assert whole["name"] == "100 %"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (f"{OWN} --sweep eighths=two", "'two' is not a number"),
        (f"{OWN} --sweep eighths", "a parameter and up to 50 numbers"),
        (f"{OWN} --sweep width=1,2", "unknown key 'width'"),
        (f"{OWN} --sweep eighths=1 --recall 1.2", "above 0 and below 1"),
        (f"{OWN} --sweep eighths=1 --filters half", "percentages above 0 up to 100"),
        (f"{OWN} --sweep eighths=1 --max-minutes 1", "--max-minutes with --sweep"),
        (f"{OWN} --recall .9", "--recall without --sweep"),
        (f"{OWN} --filters 10", "--filters without --sweep"),
        (f"{OWN} --sweep eighths=1 --cold 2", "--cold with --sweep"),
        ("own.py:Overlap --sweep boost=1", "does not say how it would search exactly"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_measured(
    run: Command, project: Path, words: str, told: str
) -> None:
    assert told in run.refused(f"bench {words}", *SMOKE)
    assert not (project / "results").exists()
