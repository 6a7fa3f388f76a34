"""``--language``: what a dataset's card would say, wherever a retriever is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.files import save
from tests.builders.marks import also
from tests.cli.project import QUICK, Command, saved_runs

pytestmark = pytest.mark.usefixtures("project")

RETRIEVER = """
from pathlib import Path
from own import Overlap


class Told(Overlap):
    def use_language(self, language):
        with Path(__file__).with_name("told.txt").open("a") as file:
            file.write(f"{language} ")
"""


@pytest.fixture
def project(project: Path) -> Path:
    save(project / "heard.py", RETRIEVER)
    return project


@pytest.mark.parametrize(
    ("words", "times"),
    [
        (("bench", "heard.py:Told", *QUICK), 1),
        (("compare", "heard.py:Told", "bm25", *QUICK), 1),
        (("report", "heard.py:Told", "bm25", *QUICK), 1),
        (("doctor", "heard.py:Told"), 1),
        (("tune", "heard.py:Told", "--grid", "boost=1,2", "--folds", "2", "--repeats", "2"), 2),
        *also((("bench", "heard.py:Told", *QUICK, "--launches", "2"), 2)),
        (("bench", "heard.py:Told", *QUICK, "--cold", "1"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
@pytest.mark.slow
def test_a_retriever_is_told_the_language(
    project: Path, run: Command, words: tuple[str, ...], times: int
) -> None:
    assert run(*words, "--dataset", "data", "--language", "fr") == 0, run.err
    told = (project / "told.txt").read_text().split()
    assert set(told) == {"fr"}
    assert len(told) >= times


def test_it_stands_above_the_card_and_leaves_the_data_as_they_are(
    project: Path, run: Command
) -> None:
    (project / "data" / "dataset.yaml").write_text("format: beir\nlanguage: de\n")
    bench = ("bench bm25 --dataset data", *QUICK)
    found = [run.json(*bench, *more)["dataset"] for more in ((), ("--language", "fr"))]
    assert [one["language"] for one in found] == ["de", "fr"]
    assert found[0]["fingerprint"] == found[1]["fingerprint"]
    assert run("compare", *map(str, saved_runs(project))) == 0
    assert "language de" in run.unwrapped
    assert "language fr" in run.unwrapped


@pytest.mark.parametrize("command", ["bench", "doctor", "tune"])
def test_what_is_no_code_is_refused(run: Command, command: str) -> None:
    assert "language 'French'" in run.refused(f"{command} bm25 --dataset data --language French")
    assert "an ISO 639 code of two or three small letters" in run.err


def test_saved_runs_have_theirs(project: Path, run: Command) -> None:
    for _ in range(2):
        assert run("bench bm25 --dataset data", *QUICK) == 0
    runs = list(map(str, saved_runs(project)))
    for command in ("compare", "report", "tune"):
        assert "--language" in run.refused(command, *runs, "--language", "fr")


def test_doctor_hands_it_on(run: Command) -> None:
    document = run.json("doctor bm25 --dataset data --language fr")
    assert document["next"].endswith("--dataset data --language fr")
