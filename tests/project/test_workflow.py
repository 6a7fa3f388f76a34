"""The example workflow of the guide: YAML, commands that exist, and what each exit code becomes."""

from __future__ import annotations

import re
import shlex
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from retrieval_bench import cli
from retrieval_bench_regress.policy import load_policy
from tests.builders.guide import GUIDE, guide_page
from tests.builders.processes import completed

ROOT = Path(__file__).parents[2]
WORKFLOW, CHARTS = (yaml.safe_load(guide_page(f"ci-{name}.yaml")) for name in ("history", "charts"))
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["regress"]["steps"]


def scripts() -> list[str]:
    steps = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    return [step["run"] for step in steps if "run" in step]


def step(name: str) -> str:
    (script,) = [one["run"] for one in STEPS if one.get("name") == name]
    return str(script)


def test_every_command_exists() -> None:
    made = re.findall(r"^make ([a-z-]+)", "\n".join(scripts()), re.MULTILINE)
    assert {"setup", "bench"} <= set(made)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(made) <= set(targets)
    called = re.findall(r"\.venv/bin/retrieval-bench ([^>|\n]+)", "\n".join(scripts()))
    assert {line.split()[0] for line in called} == {"regress", "data"}
    for line in called:
        cli.parser().parse_args(shlex.split(line))


def test_files_that_are_uploaded_or_drawn_are_written() -> None:
    written = set(re.findall(r"> (\S+\.(?:json|md))", "\n".join(scripts())))
    (upload,) = [one["with"] for one in STEPS if "upload-artifact" in one.get("uses", "")]
    assert {path for path in upload["path"].split() if path.endswith((".json", ".md"))} == written
    tools = {one["with"]["output-file-path"]: one["with"]["tool"] for one in CHARTS}
    assert tools == {
        "results/latency.json": "customSmallerIsBetter",
        "results/quality.json": "customBiggerIsBetter",
    }
    assert set(tools) <= written
    assert len({one["with"]["name"] for one in CHARTS}) == 2
    assert not any(one["with"].get("fail-on-alert") for one in CHARTS)


def test_the_history_is_kept_whatever_the_job_ends_with() -> None:
    kept = {one["uses"].rpartition("@")[0]: one for one in STEPS if "actions/cache/" in str(one)}
    restored, saved = (kept[f"actions/cache/{what}"] for what in ("restore", "save"))
    assert saved["if"] == "always()"
    assert STEPS.index(saved) > STEPS.index(restored)
    for name in ("path", "key"):
        assert saved["with"][name] == restored["with"][name]
    assert restored["with"]["key"].startswith(restored["with"]["restore-keys"])


def test_what_could_not_be_judged_is_a_red_job_of_its_own() -> None:
    judged = WORKFLOW["jobs"]["judged"]
    assert judged["needs"] == "regress"
    code = "needs.regress.outputs.code"
    assert judged["if"] == f"{code} == '3' || {code} == '4'"
    assert WORKFLOW["jobs"]["regress"]["outputs"]["code"] == "${{ steps.regress.outputs.code }}"
    assert "exit 1" in judged["steps"][0]["run"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("code", "ends", "warns"), [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 0, 1), (4, 0, 1), (70, 70, 0)]
)
def test_each_exit_code_is_what_the_guide_says(
    tmp_path: Path, code: int, ends: int, warns: int
) -> None:
    command = tmp_path / ".venv" / "bin" / "retrieval-bench"
    command.parent.mkdir(parents=True)
    stub = f"#!/bin/sh\ntest $1 = regress || exit 0\necho '**{code}**'\nexit {code}\n"
    command.write_text(stub, encoding="utf-8")
    command.chmod(0o755)
    output = tmp_path / "output"
    (tmp_path / "results").mkdir()
    bash = partial(completed, "bash", "-e", "-c", cwd=tmp_path, PATH="/usr/bin:/bin")
    done = bash(step("regress"), check=False, GITHUB_OUTPUT=str(output))
    assert done.returncode == ends
    assert done.stdout.count("::warning") == warns
    assert output.read_text(encoding="utf-8") == f"code={code}\n"
    assert (tmp_path / "results" / "regress.md").read_text(encoding="utf-8") == f"**{code}**\n"
    summary = tmp_path / "summary"
    script = re.sub(r"\$\{\{.*?\}\}", str(code), step("summary"))
    bash(script, GITHUB_STEP_SUMMARY=str(summary))
    assert f"exit code {code}" in summary.read_text(encoding="utf-8")
    assert f"\n**{code}**\n" in summary.read_text(encoding="utf-8")


def page() -> str:
    return guide_page("ci.md")


def test_the_small_gate_of_the_guide_works() -> None:
    action = yaml.safe_load((GUIDE / "ci" / "action" / "action.yml").read_text("utf-8"))
    usual = action["inputs"]["options"]["default"]
    for command in (f"regress my.yaml {usual}", *re.findall("`retrieval-bench (.*?)`", page())):
        options = cli.parser().parse_args(shlex.split(command))
        assert load_policy(options.policy, k=10).latency == {}


def test_the_limits_of_the_small_gate_are_some(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```{.yaml .limits}\n(.*?)^```", page(), re.MULTILINE | re.DOTALL)
    file = tmp_path / "policy-quality.yaml"
    file.write_text(block, encoding="utf-8")
    assert set(map(str, load_policy(file, k=10).quality)) == {"nDCG@10", "R@10"}
