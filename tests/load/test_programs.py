"""Programs under load: the target ``command``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from retrieval_bench_load.engine.load import Plan, load
from tests.builders.processes import alive, within


@pytest.mark.slow
def test_each_client_of_a_load_has_a_program_of_its_own(tmp_path: Path) -> None:
    started = tmp_path / "pids"
    code = (
        "import json, os, sys\n"
        f"with open({str(started)!r}, 'a') as file: file.write(f'{{os.getpid()}}\\n')\n"
        "for line in sys.stdin:\n"
        "    id, hits = json.loads(line)['id'], [{'id': 'ast-001'}]\n"
        "    print(json.dumps({'id': id, 'hits': hits}), flush=True)"
    )
    config = {
        "name": "mine",
        "target": "command",
        "params": {"command": [sys.executable, "-I", "-S", "-c", code]},
    }
    (tmp_path / "mine.yaml").write_text(json.dumps(config), encoding="utf-8")
    plan = Plan(clients=[1, 3], seconds=0.5, warm_up_s=0.0)
    made = load(str(tmp_path / "mine.yaml"), "science-mini", plan, out=tmp_path / "load")
    assert made.levels[-1].result.answered
    pids = [int(line) for line in started.read_text().split()]
    assert len(set(pids)) >= 3
    assert within(20, lambda: not any(map(alive, pids)))
