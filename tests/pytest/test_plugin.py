"""The plugin as somebody's project has it: pytest in a process of its own, in their folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench_pytest.measured import Retrieval, Subject
from tests.builders.files import save_all
from tests.cli.project import QUERIES, make_project

SEARCH = """
from pathlib import Path
from own import Overlap

class Search(Overlap):
    def index(self, documents):
        with Path("indexed").open("a") as file:
            file.write("once\\n")
        super().index(documents)

    def search(self, query, k):
        with Path("asked").open("a") as file:
            file.write(".")
        return super().search(query, k)
"""
USUAL = """
import pytest
pytestmark = pytest.mark.retrieval("search.yaml")
"""
NOT_WORSE = f"""{USUAL}
def test_it_is_not_worse(retrieval):
    assert retrieval.not_worse().holds
"""
AGAIN = f"""{USUAL}
@pytest.mark.parametrize("n", range(4))
def test_it_is_not_worse(retrieval, n):
    retrieval.not_worse()
"""
MINIMUM = """
import pytest
@pytest.mark.retrieval("bm25")
@pytest.mark.parametrize("least", [0.3, 0.9, 0.46])
def test_it_is_so_good(retrieval, least):
    assert retrieval.at_least("nDCG@10", least).holds
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_project(tmp_path)
    config = "name: search\ntarget: search.py:Search\n"
    return save_all(
        tmp_path, {"search.py": SEARCH, "search.yaml": config, "pytest.ini": "[pytest]"}
    )


def _pytest(project: Path, *words: str, **files: str) -> subprocess.CompletedProcess[str]:
    save_all(project, {f"test_{name}.py": text for name, text in files.items()})
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *words]
    return subprocess.run(
        command, cwd=project, capture_output=True, text=True, encoding="utf-8", check=False
    )


def _keep(project: Path, *words: str) -> None:
    command = [sys.executable, "-m", "retrieval_bench", "baseline", "search.yaml", *words]
    subprocess.run(command, cwd=project, capture_output=True, check=True)


@pytest.mark.slow
def test_a_change_that_makes_it_worse_fails_with_the_answer_of_regress(project: Path) -> None:
    _keep(project, "--policy", "quality")
    assert "1 passed" in _pytest(project, mine=NOT_WORSE).stdout
    text = (project / "own.py").read_text(encoding="utf-8")
    worse = text.replace("d.contents.lower()", "d.contents[:9].lower()")
    save_all(project, {"own.py": worse})
    said = _pytest(project, mine=NOT_WORSE).stdout
    assert "FAIL: search on science-mini (test), k = 10" in said
    assert "nDCG@10" in said
    assert len(said.splitlines()) < 30


@pytest.mark.slow
def test_all_workers_of_xdist_measure_once(project: Path) -> None:
    _keep(project, "--policy", "quality")
    (project / "indexed").unlink()
    done = _pytest(project, "-n", "3", one=AGAIN, other=AGAIN)
    assert "8 passed" in done.stdout, done.stdout
    assert (project / "indexed").read_text(encoding="utf-8") == "once\n"


@pytest.mark.slow
def test_a_minimum_holds_or_does_not_or_nobody_can_tell(project: Path) -> None:
    done = _pytest(project, mine=MINIMUM)
    assert "2 failed, 1 passed, 1 warning" in done.stdout
    assert "nDCG@10 of bm25 is 0.466 [0.391, 0.542]: below 0.9" in done.stdout
    assert "UndecidedRetrievalWarning" in done.stdout
    assert "can't tell whether it is at least 0.46" in done.stdout
    strict = _pytest(project, "--retrieval-undecided", "fail", mine=MINIMUM)
    assert "2 failed, 1 passed" in strict.stdout
    assert "warning" not in strict.stdout.splitlines()[-1]


WRONG = (
    ("", "the fixture `retrieval` without a marker that fits: missing a required argument"),
    ("@pytest.mark.retrieval('bm25', data='x')", "unexpected keyword argument 'data'"),
    ("@pytest.mark.retrieval('bm25', undecided='no')", "undecided = 'no'"),
    ("@pytest.mark.retrieval('bm25', overrides=5)", "'int' object is not iterable"),
    ("@pytest.mark.retrieval('bm25', '\\udcff')", "is neither a known name nor a folder"),
    ("@pytest.mark.retrieval('bm26')", "bm26"),
    ("@pytest.mark.retrieval('bm25')", "no baseline of quality"),
)
"""Markers, and what is said of each."""


@pytest.mark.slow
def test_what_is_wrong_is_said(project: Path) -> None:
    given = [
        f"{marker}\ndef test_{at}(retrieval):\n    retrieval.not_worse()\n"
        for at, (marker, _) in enumerate(WRONG)
    ]
    done = _pytest(project, mine="import pytest\n" + "".join(given))
    assert done.returncode == 1
    assert "measured.py" not in done.stdout
    assert "passed" not in done.stdout.splitlines()[-1]
    parts = re.split(r"(?m)^_+ .*test_(\d) _+$", done.stdout.partition("short test summary")[0])
    said = dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))
    assert len(said) == len(WRONG)
    for at, (_, says) in enumerate(WRONG):
        assert says in said[at]
        assert len(said[at].splitlines()) < 16


@pytest.mark.slow
def test_metrics_are_measured_at_once_and_what_failed_is_asked_again(project: Path) -> None:
    retrieval = Retrieval(Subject("search.yaml", "data"), project, project)

    def failure(metric: str, least: Any = 0.0) -> str:
        with pytest.raises(pytest.fail.Exception) as failed:
            retrieval.at_least(metric, least)
        return str(failed.value)

    away = (project / "search.py").rename(project / "later.py")
    assert "search.py" in failure("RR@10")
    away.rename(project / "search.py")
    assert all(retrieval.at_least(metric, 0.0).holds for metric in ("RR@10", "R@10", "nDCG@10"))
    assert (project / "asked").read_text(encoding="utf-8") == "." * len(QUERIES)
    assert "metric 'foo@10'\n  where: the metric of the test" in failure("foo@10")
    assert "p50 ms" in failure("p50 ms")
    assert "raise k of the marker to 100" in failure("R@100")
    assert retrieval.at_least("RR@10", "0.0").holds  # type: ignore[arg-type]
    assert failure("RR@10", "much") == "at least 'much' of RR@10: give a number"
    assert failure("RR@10", float("nan")) == "at least nan of RR@10: give a number"


def test_a_project_that_does_not_use_it_loads_nothing_of_it(tmp_path: Path) -> None:
    text = """
import sys
def test_nothing_is_loaded():
    assert "retrieval_bench_pytest.plugin" in sys.modules
    assert not {"retrieval_bench", "numpy", "retrieval_bench_pytest.measured"} & set(sys.modules)
"""
    done = _pytest(tmp_path, "-p", "no:hypothesispytest", mine=text)
    assert "1 passed" in done.stdout, done.stdout
