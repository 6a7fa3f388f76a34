"""Jobs of CI as their services run them: their scripts by bash, and an API that keeps comments."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.builders.guide import GUIDE
from tests.builders.service import Reply, Request, service

CI = GUIDE / "ci"
ACTION = CI / "action" / "action.yml"
_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


class Comments:
    """The comments of a change request, and an API that reads and writes them.

    Attributes:
        url: of the API.
        bodies: by id.
        refuses: the status of every answer to what writes, in place of doing it.
    """

    def __init__(self) -> None:
        self.url = ""
        self.bodies: dict[int, str] = {}
        self.refuses = 0

    def answer(self, request: Request) -> Reply:
        """As GitHub and GitLab do."""
        parts = urlsplit(request.path)
        if request.method == "GET":
            asked = {name: int(values[0]) for name, values in parse_qs(parts.query).items()}
            start = (asked["page"] - 1) * asked["per_page"]
            rows = [{"id": name, "body": body} for name, body in self.bodies.items()]
            return Reply(rows[start : start + asked["per_page"]])
        if self.refuses:
            return Reply({"message": "Resource not accessible"}, status=self.refuses)
        if request.method == "POST":
            assert re.search(r"/issues/7/comments$|/merge_requests/7/notes$", parts.path)
            name = len(self.bodies) + 1
        else:
            (number,) = re.findall(r"(?:issues/comments|merge_requests/7/notes)/(\d+)$", parts.path)
            assert request.method == ("PUT" if "notes" in parts.path else "PATCH")
            name = int(number)
            assert name in self.bodies
        self.bodies[name] = request.body["body"]
        return Reply({"id": name}, status=201 if request.method == "POST" else 200)


@contextmanager
def comments() -> Iterator[Comments]:
    """Comments of change request 7."""
    kept = Comments()
    with service(kept.answer) as there:
        kept.url = there.url
        yield kept


def bash(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it as services do: it ends at the first command that fails."""
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    names = [n for n in os.environ if n in ("PATH", "HOME", "TMPDIR") or n.startswith("PIP_")]
    env = {name: os.environ[name] for name in names}
    here = str(Path(sys.executable).parent)  # as setup-python has it, in front
    env["PATH"] = os.pathsep.join([here, env["PATH"]])
    return subprocess.run(
        words, cwd=folder, env=env | variables, capture_output=True, text=True, check=False
    )


def on_github(
    repository: Path,
    given: Mapping[str, str],
    beside: Path,
    *,
    api: str = "",
    event: str = "pull_request",
    without: tuple[str, ...] = ("install",),
    token: str = "secret-token",
    **variables: str,
) -> tuple[int, str, str]:
    """Run the steps of the action in their order.

    Args:
        given: what stands behind ``with``.
        beside: folder for the files of the service.
        without: names of steps that are left out.

    Returns:
        The exit code of the job, its log, and the job summary.
    """
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    inputs = {name: str(of.get("default", "")) for name, of in action["inputs"].items()}
    inputs |= given
    outputs: dict[str, str] = {}
    known = {"github.token": token, "github.event_name": event}

    contexts = {"inputs": inputs, "steps.regress.outputs": outputs}

    def value(match: re.Match[str]) -> str:
        place, _, name = match[1].rpartition(".")
        return known[match[1]] if match[1] in known else contexts[place][name]

    beside.mkdir(exist_ok=True)
    (beside / "event.json").write_text(json.dumps({event: {"number": 7}}), encoding="utf-8")
    env = {
        "GITHUB_ACTION_PATH": str(ACTION.parent),
        "GITHUB_API_URL": api,
        "GITHUB_EVENT_PATH": str(beside / "event.json"),
        "GITHUB_OUTPUT": str(beside / "output"),
        "GITHUB_REPOSITORY": "ada/search",
        "GITHUB_STEP_SUMMARY": str(beside / "summary"),
        "RUNNER_TEMP": str(beside),
        **variables,
    }
    log = ""
    for step in action["runs"]["steps"]:
        if "run" not in step or step["name"] in without:
            continue
        if condition := step.get("if"):
            name, _, text = condition.partition(" == ")
            if known[name] != text.strip("'"):
                continue
        assert step["shell"] == "bash"
        said = {n: _EXPRESSION.sub(value, text) for n, text in step.get("env", {}).items()}
        said = {n: _EXPRESSION.sub(value, text) for n, text in said.items()}  # of defaults
        (beside / "output").write_text("", encoding="utf-8")
        done = bash(step["run"], repository, **env, **said)
        log += done.stdout + done.stderr
        lines = (beside / "output").read_text(encoding="utf-8").splitlines()
        outputs |= dict(line.split("=", 1) for line in lines)
        if done.returncode and not step.get("continue-on-error"):
            break
    summary = beside / "summary"
    return done.returncode, log, summary.read_text("utf-8") if summary.is_file() else ""


def on_gitlab(
    repository: Path, given: Mapping[str, str], *, api: str, token: str = "secret-token"
) -> tuple[int, str]:
    """Run the script of the template; the exit code of the job, and its log."""
    (job,) = yaml.safe_load((CI / "gitlab.yml").read_text(encoding="utf-8")).values()
    usual = {n: text for n, text in job["variables"].items() if "$" not in text}
    variables = {**usual, **given}
    known = {"CI_API_V4_URL": api, "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "7"}
    secret = {"RETRIEVAL_BENCH_TOKEN": token} if token else {}
    done = bash("\n".join(job["script"]), repository, **variables, **known, **secret)
    return done.returncode, done.stdout + done.stderr
