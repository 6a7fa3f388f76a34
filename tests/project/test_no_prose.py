"""No behaviour hangs on prose: all texts of a kind become nonsense, and everything still works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.core import progress
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.progress import Step
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.reports.render.table import Note
from retrieval_bench_launches import launches
from retrieval_bench_launches.launches import LaunchSpec, run_launches
from retrieval_bench_pages.analysis import analyse
from retrieval_bench_pages.html_page import report_page
from tests.builders.baselines import today
from tests.builders.launched import SCRIPTED, bad, resummarize
from tests.builders.page_sample import make_dataset, make_runs
from tests.builders.reporters import Remembering
from tests.cli.project import make_project

pytestmark = pytest.mark.behaviour

NONSENSE = "zzyzx"


@pytest.fixture(autouse=True)
def nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one place of each kind of text: steps, notes, remedies."""
    monkeypatch.setattr(progress, "TEXTS", dict.fromkeys(Step, NONSENSE))
    made = Note.__init__
    monkeypatch.setattr(Note, "__init__", lambda note, text, kind: made(note, NONSENSE, kind))
    told = HarnessError.__init__

    def without_remedy(self: HarnessError, given: str, **parts: Any) -> None:
        told(self, given, **parts | {"fix": NONSENSE})

    monkeypatch.setattr(HarnessError, "__init__", without_remedy)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make_project(tmp_path))
    (tmp_path / "scripted.py").write_text(SCRIPTED, encoding="utf-8")
    return tmp_path


def launched(*actions: str, **protocol: Any) -> tuple[list[dict[str, Any]], Remembering]:
    """The launches in a manifest, and what was reported meanwhile."""
    reporter = Remembering()
    spec = LaunchSpec([bad(*actions)], "data", k=2, protocol=Protocol(**{"rounds": 1} | protocol))
    (run,) = run_launches(spec, reporter, resummarize=resummarize)
    return run.manifest["launches"], reporter


@pytest.mark.slow
def test_a_hung_launch_is_killed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "SILENCE_S", 3)
    found, reporter = launched("none", "hang", warm_up_s=0.5, timeout_s=0.3, launches=2)
    assert [one["status"] for one in found] == ["complete", "lost"]
    assert {phase.step for phase in reporter.phases} == {Step.INDEXING, Step.SEARCHING}
    assert all(phase.text.endswith(NONSENSE) for phase in reporter.phases)


@pytest.mark.slow
def test_a_launch_that_dies_is_lost(project: Path) -> None:
    found, _ = launched("exit", "none", rounds=2, warm_up_s=0.0, launches=2)
    assert [one["status"] for one in found] == ["lost", "complete"]


@pytest.mark.slow
def test_the_page_folds_away_what_is_no_warning() -> None:
    data = make_dataset()
    page = report_page(analyse(compare_runs(make_runs(data, warnings=["take care"])), [data]))
    loud, folding, folded = page.partition("How this was measured")
    assert folding
    shown = f'<li dir="auto" class="warning">{NONSENSE}</li>'
    assert shown in loud
    assert shown not in folded.partition("</details>")[0]


def test_a_damaged_baseline_can_be_made_anew(tmp_path: Path) -> None:
    held = today(tmp_path)
    held.places.quality.parent.mkdir(parents=True, exist_ok=True)
    held.places.quality.write_text("{", encoding="utf-8")
    found = held.quality()
    assert found.usable is None
    assert found.remedy == f"{NONSENSE}: MAKE --force"


def test_a_baseline_of_a_newer_version_cannot(tmp_path: Path) -> None:
    held = today(tmp_path)
    held.places.quality.parent.mkdir(parents=True, exist_ok=True)
    held.places.quality.write_text('{"schema_version": 99}', encoding="utf-8")
    assert held.quality().remedy == NONSENSE
