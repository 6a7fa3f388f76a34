"""What a measured run is told as: once worked out, the same for the command and for Python."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import bench, compare
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_explain import ledger
from tests.cli.project import Command

ONCE = Protocol(rounds=1, warm_up_s=0.0)
MIX = """
target: hybrid
params:
  legs:
    - {name: words, target: bm25}
    - {name: others, target: bm25, params: {k1: 2.0}}
"""
TIMES = re.compile(r"p50 .*? ms|latency .*|ready in .*|saved: .*|more: .*|\.details .*")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mix.yaml").write_text(MIX, encoding="utf-8")
    return tmp_path


def _without_times(text: str) -> list[str]:
    lines = (TIMES.sub("", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


@pytest.mark.usefixtures("here")
def test_python_prints_what_the_command_prints(
    run: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = str(bench("mix.yaml", save=True, protocol=ONCE))
    assert "its best leg, alone" in printed
    assert "next:  retrieval-bench explain @last" in printed
    capsys.readouterr()
    assert run("bench mix.yaml --rounds 1 --warm-up 0 --no-pictures") == 0
    assert _without_times(printed) == _without_times(run.out)


def test_the_folder_holds_all_tables_as_text(here: Path) -> None:
    found = bench("mix.yaml", save=True, protocol=ONCE)
    assert found.folder is not None
    assert (found.folder / "summary.txt").read_text("utf-8") == str(found.details)
    assert json.loads(json.dumps(found.as_dict(), default=str))["ledger"]["retriever"] == "mix"
    compare(["bm25", "mix.yaml"], save=True, protocol=ONCE)
    assert all((run / "summary.txt").is_file() for run in (here / "results/runs").glob("2*"))


@pytest.mark.usefixtures("here")
def test_the_ledger_is_worked_out_once(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    true = ledger.ledger

    def counting(*given: Any, **options: Any) -> Any:
        asked.append(given)
        return true(*given, **options)

    monkeypatch.setattr(ledger, "ledger", counting)
    assert run("bench mix.yaml --rounds 1 --warm-up 0 --no-pictures") == 0
    assert len(asked) == 1


@pytest.mark.usefixtures("here")
def test_rounds_and_calls_are_said_in_python_as_to_the_command(run: Command) -> None:
    given = run.json("bench bm25 --rounds 2 --min-calls 10 --no-pictures")
    again = bench("bm25", rounds=2, min_calls=10).as_dict()
    assert again["latency_ms"]["n"] == given["latency_ms"]["n"] == 332
    found = compare(["bm25", "bm25"], min_calls=300)
    assert {len(of.timings.wall_ns) for of in found.runs} == {332}, "two rounds of 166 queries"
    for wrong in ({"protocol": ONCE}, {"until_decided": "split"}):
        with pytest.raises(ConfigError, match="rounds or min_calls"):
            compare(["bm25", "bm25"], rounds=2, **wrong)
