"""The action of GitHub and the template of GitLab: each of their scripts is run, by bash."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from retrieval_bench import export_dataset
from tests.builders.ci_jobs import ACTION, CI, Comments, comments, on_github, on_gitlab
from tests.builders.files import save, save_all
from tests.builders.git_project import GitProject
from tests.builders.guide import guide_page
from tests.builders.processes import completed
from tests.builders.service import Reply, service

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")]
WORKFLOW = CI / "github.yml"
GOOD, BAD = (
    {"my.yaml": "name: my\ntarget: bm25\nparams: {k1: 0.9, b: 0.4}\n"},
    {"my.yaml": "name: my\ntarget: bm25\nparams: {k1: 500.0, b: 1.0}\n"},
)

CLOSE = {"Connection": "close"}
COMMAND = f"""
[ "$1" = --guide ] && {{ echo {CI.parent}/README.md; exit; }}
echo "words: $*"
[ "$2" = bad ] && exit 2
while [ "$1" != --junit ]; do shift; done
echo > "$2"
"""
"""In place of the command: it passes, or ends before it judges."""


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a config, data and a baseline."""
    folder = tmp_path_factory.mktemp("seed") / "search"
    project = GitProject(folder)
    export_dataset("science-mini", "beir", folder / "my-data")
    project.commit({**GOOD, ".gitignore": "results/runs\n"})
    words = ["-m", "retrieval_bench", "baseline", "my.yaml", "--dataset", "my-data"]
    subprocess.run([sys.executable, *words], cwd=folder, check=True, capture_output=True)
    project.commit({})
    return folder


@pytest.fixture
def project(seed: Path, tmp_path: Path) -> GitProject:
    shutil.copytree(seed, tmp_path / "search")
    return GitProject(tmp_path / "search")


@pytest.fixture
def api() -> Iterator[Comments]:
    with comments() as kept:
        yield kept


def given() -> dict[str, str]:
    """What the workflow of the guide gives the action."""
    (job,) = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"].values()
    return dict(job["steps"][-1]["with"])


@pytest.mark.needs("check_jsonschema")
@pytest.mark.parametrize(
    ("file", "schema", "options"),
    [
        (ACTION, "vendor.github-actions", []),
        (WORKFLOW, "vendor.github-workflows", []),
        (CI / "gitlab.yml", "vendor.gitlab-ci", ["--data-transform", "gitlab-ci"]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_each_file_is_what_its_service_takes(file: Path, schema: str, options: list[str]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = completed(*command, *options, str(file), check=False)
    assert done.returncode == 0, done.stdout


def test_a_workflow_has_six_lines_and_others_actions_are_pinned_by_commit() -> None:
    text = WORKFLOW.read_text("utf-8")
    assert len(text.splitlines()) == 6
    used = re.findall(r"uses: (\S+?)[,}\s]", text + ACTION.read_text("utf-8"))
    own = [name for name in used if name.startswith("OWNER/")]
    assert {name.partition("@")[0] for name in own} == {
        "OWNER/retrieval-bench/harness/docs/ci/action"
    }
    others = set(used) - set(own)
    assert {name.partition("@")[0] for name in others} == {
        *("actions/checkout", "actions/setup-python", "actions/cache")
    }
    assert all(re.fullmatch(r"[0-9a-f]{40}", name.partition("@")[2]) for name in others)
    assert f"```{{.yaml .ci}}\n{text}```" in guide_page("ci.md")


def test_nothing_that_is_given_stands_in_a_script() -> None:
    steps = yaml.safe_load(ACTION.read_text("utf-8"))["runs"]["steps"]
    assert all("${{" not in step.get("run", "") for step in steps)


def test_a_good_commit_is_green_and_a_bad_one_red_with_one_comment_that_is_updated(
    project: GitProject, api: Comments, tmp_path: Path
) -> None:
    api.bodies[1] = "Nice."
    project.commit({"README.md": "search\n"})
    code, log, summary = on_github(project.folder, given(), tmp_path / "one", api=api.url)
    assert code == 0, log
    assert "comment written" in log
    assert "exit code 0" in api.bodies[2]
    assert "PASS" in summary
    project.commit(BAD)
    code, log, summary = on_github(project.folder, given(), tmp_path / "two", api=api.url)
    assert code == 1, log
    assert "comment updated" in log
    assert list(api.bodies) == [1, 2]
    assert api.bodies[1] == "Nice."
    assert api.bodies[2].startswith("<!-- retrieval-bench: my.yaml on my-data -->\n### Search: my")
    assert api.bodies[2].partition("\n")[2] == summary
    assert "FAIL" in summary
    assert "nDCG@10" in summary
    (junit,) = (tmp_path / "two").glob("retrieval-bench.*/junit.xml")
    assert ElementTree.parse(junit).findall(".//failure")


@pytest.mark.parametrize("token", ["", "of-a-fork"])
def test_without_a_token_that_may_write_the_answer_is_in_the_summary_and_the_code_the_same(
    project: GitProject, api: Comments, tmp_path: Path, token: str
) -> None:
    api.refuses = 403
    project.commit(BAD)
    code, log, summary = on_github(
        project.folder, given(), tmp_path / "job", api=api.url, token=token
    )
    assert code == 1
    assert ("HTTP Error 403" if token else "no token") in log
    assert "FAIL" in summary
    assert not api.bodies


def test_bad_input_is_told_in_the_summary_and_a_push_has_no_comment(
    project: GitProject, api: Comments, tmp_path: Path
) -> None:
    asked = {**given(), "dataset": "nowhere", "options": "--policy quality --k 10"}
    code, log, summary = on_github(
        project.folder, asked, tmp_path / "job", api=api.url, event="push"
    )
    assert code == 2
    assert "dataset 'nowhere' is neither a known name nor a folder" in " ".join(summary.split())
    assert "comment" not in log
    assert not api.bodies


def test_the_comment_is_found_behind_a_hundred_others(
    project: GitProject, api: Comments, tmp_path: Path
) -> None:
    api.bodies |= dict.fromkeys(range(1, 131), "Nice.")
    api.bodies[130] = "<!-- retrieval-bench: my.yaml on my-data -->\nof yesterday"
    on_github(project.folder, given(), tmp_path / "job", api=api.url)
    assert "PASS" in api.bodies[130]
    assert len(api.bodies) == 130


def test_the_template_of_gitlab_judges_and_writes_one_note(
    project: GitProject, api: Comments
) -> None:
    asked = {"RETRIEVER": "my.yaml", "DATASET": "my-data"}
    code, log = on_gitlab(project.folder, asked, api=api.url)
    assert code == 0, log
    assert "PASS" in api.bodies[1]
    project.commit(BAD)
    code, log = on_gitlab(project.folder, asked, api=api.url)
    assert code == 1, log
    assert "FAIL" in api.bodies[1]
    assert len(api.bodies) == 1
    assert (project.folder / ".retrieval-bench" / "junit.xml").is_file()
    code, log = on_gitlab(project.folder, asked, api=api.url, token="")
    assert (code, "no token" in log) == (1, True)


def test_uses_in_one_job_keep_their_files_apart_and_no_comment_turns_one_red(
    tmp_path: Path,
) -> None:
    for name, text in (("python", "exit 1"), ("retrieval-bench", COMMAND)):
        save(tmp_path / "bin" / name, f"#!/bin/sh\n{text}").chmod(0o755)
    save_all(tmp_path, {"a1": "", "a2": ""})
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    for retriever, expected in (("good", 0), ("bad", 2)):
        asked = {"retriever": retriever, "dataset": "d", "options": "a?"}
        code, log, _ = on_github(tmp_path, asked, tmp_path / "job", PATH=path)
        assert (code, "words: regress" in log, "d a? --junit" in log) == (expected, True, True)
        of_gitlab = {"RETRIEVER": retriever, "DATASET": "d", "PATH": path}
        assert on_gitlab(tmp_path, of_gitlab, api="")[0] == expected
    assert not (tmp_path / ".retrieval-bench" / "junit.xml").exists()
    answers = [file.read_text("utf-8") for file in (tmp_path / "job").rglob("answer.md")]
    assert sorted(text.splitlines()[0][-1] for text in answers) == ["0", "2"]
    assert len([*(tmp_path / "job").rglob("junit.xml")]) == 1


@pytest.mark.parametrize(
    "reply",
    [Reply({"message": "x"}), Reply(), Reply(b"[{", headers={"Content-Length": "9", **CLOSE})],
)
def test_an_answer_in_no_known_form_is_told(
    reply: Reply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = save(tmp_path / "event.json", '{"pull_request": {"number": 7}}')
    with service(lambda _request: reply) as there:
        monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
        monkeypatch.setenv("GITHUB_API_URL", there.url)
        monkeypatch.setenv("TOKEN", "of-mine")
        main = runpy.run_path(str(ACTION.parent / "comment.py"))["main"]
        assert main(str(event), "my.yaml").startswith("no comment (")
    event.write_text("[]", encoding="utf-8")
    assert "no comment (AttributeError" in main(str(event), "my.yaml")


@pytest.mark.long
@pytest.mark.install
def test_a_fresh_repository_with_six_lines_is_judged_by_what_the_action_installs(
    project: GitProject, api: Comments, tmp_path: Path
) -> None:
    venv.create(tmp_path / "python", with_pip=True)
    path = f"{tmp_path / 'python' / 'bin'}:/usr/bin:/bin"
    for at, (files, expected) in enumerate([({"README.md": "search\n"}, 0), (BAD, 1)]):
        project.commit(files)
        code, log, _ = on_github(
            project.folder, given(), tmp_path / str(at), api=api.url, without=(), PATH=path
        )
        assert code == expected, log
    assert "FAIL" in api.bodies[1]
