"""``explain --by loss``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.frozen import HERE
from tests.cli.project import Command

pytestmark = pytest.mark.slow

SMOKE = ("--by", "loss", "--dataset", "data", "--k", "2")
OWN = "shrunk.py:Shrunk"


@pytest.fixture(autouse=True)
def project(project: Path) -> Path:
    (project / "shrunk.py").write_bytes((HERE / "files" / "shrunk.py").read_bytes())
    return project


def test_each_step_is_measured_and_nothing_is_saved(run: Command, project: Path) -> None:
    given = ("explain", OWN, *SMOKE, "--set", "words=1", "--rounds", "1")
    document = run.json(*given)
    assert [(one["name"], one["state"]) for one in document["steps"]] == [
        ("exact", "measured"),
        ("weights", "cannot be told apart"),
        ("words", "measured"),
        ("index", "same"),
    ]
    assert document["metrics"] == ["nDCG@2", "R@2"]
    exact, _, words, _ = document["steps"]
    assert words["index_bytes"] < exact["index_bytes"]
    whole, step = document["whole"][0], words["differences"][0]
    assert whole["difference"] == step["difference"] < 0
    assert words["means"]["nDCG@2"] - exact["means"]["nDCG@2"] == pytest.approx(step["difference"])
    assert not (project / "results").exists()
    assert run(*given, "--metric", "R@2") == 0
    lines = run.out.splitlines()
    assert "Shrunk on data: 4 queries, k = 2" in lines[0]
    assert "an exact search" in lines[1]
    assert any(line.lstrip().startswith("words: 1 are read") for line in lines)


def test_what_does_not_go_with_it_is_refused_in_words(run: Command) -> None:
    quick = ("--profile", "smoke", "--no-pictures")
    assert run(f"bench {OWN} --dataset data", *quick) == 0
    assert "a saved run with --by loss" in run.refused("explain @last --by loss")
    assert "2 names with --by loss" in run.refused(f"explain {OWN} own.py:Overlap", *SMOKE)
    assert run(f"explain {OWN} --queries 1 --no-text", *SMOKE) == 2
    assert "--queries, --no-text with --by loss" in run.err
    assert run("explain own.py:Overlap", *SMOKE) == 2
    assert "does not say what an exact form of it would be" in run.err
    assert "a hybrid with such a leg" in run.err
    assert run(f"explain {OWN} --metric GMAP", *SMOKE) == 2
