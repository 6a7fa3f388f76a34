"""The command that a message names fits how this copy was installed."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installed import installation
from retrieval_bench.core.installed.installation import how_to_add, require, typed

ROOT = Path(__file__).parents[3]


class Installed:
    """A distribution, as far as it is asked."""

    requires = ("numpy>=1", "vl-convert-python>=1.9; extra == 'plots'", 'torch ; extra == "dense"')

    def __init__(self, source: dict[str, Any] | None, installer: str = "pip\n") -> None:
        self._files = {
            "direct_url.json": None if source is None else json.dumps(source),
            "INSTALLER": installer,
        }

    def read_text(self, name: str) -> str | None:
        return self._files[name]


def told(monkeypatch: pytest.MonkeyPatch, source: dict[str, Any] | None, **more: str) -> str:
    monkeypatch.setattr(installation, "distribution", lambda _: Installed(source, **more))
    return how_to_add("plots")


def editable(folder: Path) -> dict[str, Any]:
    return {"url": folder.as_uri(), "dir_info": {"editable": True}}


def test_a_checkout_with_its_own_environment_is_asked_to_make(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clone = tmp_path / "my clone"
    clone.mkdir()
    (clone / "Makefile").touch()
    monkeypatch.setattr(sys, "prefix", str(clone / ".venv"))
    command = f"make -C {shlex.quote(str(clone))} setup LAYERS=plots"
    assert told(monkeypatch, editable(clone)) == command
    monkeypatch.chdir(clone)
    assert told(monkeypatch, editable(clone)) == "make setup LAYERS=plots"


def test_a_checkout_in_another_environment_is_installed_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert told(monkeypatch, editable(tmp_path)) == f"pip install -e '{tmp_path}[plots]'"
    assert told(monkeypatch, editable(tmp_path), installer="uv").startswith("uv pip install -e ")


def test_a_repository_is_named_with_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    source = {
        "url": "https://example.org/retrieval-bench.git",
        "vcs_info": {"vcs": "git", "commit_id": "0123abc", "requested_revision": "main"},
    }
    assert told(monkeypatch, source) == (
        'pip install "retrieval-bench[plots] @ git+https://example.org/retrieval-bench.git@0123abc"'
    )


def test_a_wheel_is_named_while_it_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel = tmp_path / "w.whl"
    source = {"url": wheel.as_uri(), "archive_info": {}}
    assert told(monkeypatch, source) == "pip install 'vl-convert-python>=1.9'"
    wheel.touch()
    assert told(monkeypatch, source) == f'pip install "retrieval-bench[plots] @ {wheel.as_uri()}"'
    source["url"] = "https://example.org/w.whl"
    assert told(monkeypatch, source).endswith('[plots] @ https://example.org/w.whl"')


def test_where_the_source_is_unknown_the_packages_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert told(monkeypatch, None) == "pip install 'vl-convert-python>=1.9'"


def test_code_that_was_never_installed_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Installed:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", missing)
    assert how_to_add("plots").startswith("install the extra `plots`")


def test_a_missing_package_is_told_with_its_extra() -> None:
    require("numpy", "light", "here")
    with pytest.raises(MissingDependencyError, match="no-such-thing is not installed") as caught:
        require("no-such-thing", "plots", "here")
    assert (caught.value.where, caught.value.accepted) == ("here", "the extra `plots`")
    assert caught.value.fix == how_to_add("plots")


def test_every_extra_that_is_named_exists_and_no_message_names_an_index() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = set()
    for folder in ("harness", "retrievers"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            assert "retrieval-bench[" not in text, path
            named |= set(re.findall(r"""how_to_add\(["']([\w-]+)""", text))
            named |= set(re.findall(r"""require\([^()]*?, "([\w-]+)",""", text))
    assert {"korean", "bm25s"} <= named <= set(project["optional-dependencies"])


def test_a_command_to_be_copied_says_what_is_not_as_usual() -> None:
    assert typed("bench", "bm25", dataset="science-mini", split="test", k=10, set=()) == (
        "retrieval-bench bench bm25"
    )
    told = typed("bench", "my own.yaml", dataset="a b", k=5, self_hits="drop", set=["x=[1, 2]"])
    assert shlex.split(told) == [
        *("retrieval-bench", "bench", "my own.yaml", "--dataset", "a b", "--k", "5"),
        *("--self-hits", "drop", "--set", "x=[1, 2]"),
    ]
