"""The interpreter of a revision: the one that runs now, or an environment made for it once.

An environment holds only what differs. Behind its own packages it sees those of the running
interpreter, so that pip installs what the revision wants in another version or wants besides, and
the harness itself is there whether the revision has it or not.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.git import git_variables
from retrieval_bench_duet.revisions.dependencies import Needs, is_distributed
from retrieval_bench_duet.revisions.trees import last_lines

_SHOWN_LINES = 10
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def among_packages(path: Path) -> bool:
    """Return whether a path is one of installed packages."""
    return not _INSTALLED.isdisjoint(path.parts)


def is_installed(path: Path) -> bool:
    """Return whether a path is one of installed packages or of Python's library, in whatever
    folder."""
    library = Path(sysconfig.get_path("stdlib"))
    return among_packages(path) or library in (path, *path.parents)


def is_code_of(tree: Path, path: Path) -> bool:
    """Return whether a path lies in ``tree``, and not in an environment that lies there."""
    tree, path = tree.resolve(), path.resolve()
    return path.is_relative_to(tree) and not is_installed(path.relative_to(tree))


def python_in(folder: Path) -> Path:
    """The interpreter of the environment in ``folder``."""
    return folder / "env" / "bin" / "python"


def new_environment(folder: Path, own_tree: Path) -> None:
    """An environment that sees what is installed now behind its own packages."""
    # The running pip is seen from there, too, and can do it; ensurepip takes some seconds.
    pip = ["--without-pip"] if is_distributed("pip") else []
    run_program(
        [sys.executable, "-m", "venv", *pip, str(folder / "env")],
        "an environment cannot be made",
        cwd=folder,
    )
    python = python_in(folder)
    if pip:
        _name_pip(python)
    base = {"base": str(folder / "env")}
    packages = Path(sysconfig.get_path("purelib", "venv", base))
    lines = [
        f"import site; site.addsitedir({entry!a})"
        if among_packages(Path(entry))
        else f"import sys; sys.path.append({entry!a})"
        for entry in _underlay(own_tree)
    ]
    # Python reads these files in an encoding that depends on its version: ASCII is in all of them.
    (packages / "zz_underlay.pth").write_text("\n".join(lines) + "\n", encoding="ascii")


def _name_pip(python: Path) -> None:
    """Let ``pip`` in a command of the user be that of the environment.

    Without it the shell takes the next one on ``PATH``, which installs where the user works."""
    for name in ("pip", "pip3"):
        path = python.parent / name
        text = f'#!/bin/sh\nexec {shlex.quote(str(python))} -m pip "$@"\n'
        path.write_bytes(os.fsencode(text))
        path.chmod(0o755)


def _search_path() -> list[Path]:
    """Folders in which the running interpreter looks, in order.

    Not those that an installed package keeps within itself: setuptools names its `_vendor` there
    once something imports it, so that they depend on what has run, not on what is installed."""
    paths = [Path(entry) for entry in sys.path if entry]
    return [
        path
        for path in paths
        if path.is_dir() and not (among_packages(path) and (path.parent / "__init__.py").is_file())
    ]


def _underlay(own_tree: Path) -> list[str]:
    """Where the running interpreter has packages, but for the user's own tree."""
    return list(
        dict.fromkeys(
            str(path.absolute())
            for path in _search_path()
            if path != Path(sys.executable).parent
            and (among_packages(path) or not is_installed(path))
            and not is_code_of(own_tree, path)
        )
    )


def beneath(own_tree: Path) -> dict[str, Any]:
    """Describe what an environment is put on."""
    return {
        "python": [sys.version, sys.executable, sys.prefix],
        "underlay": _underlay(own_tree),
        "installed": _distributions(),
    }


def _distributions() -> list[str]:
    """Names and versions of all that is installed, as their folders say it."""
    names = {
        path.name
        for folder in _search_path()
        if among_packages(folder)
        for path in folder.glob("*-info")
    }
    return sorted(names)


def run_program(
    words: Sequence[str] | str,
    failed: str,
    *,
    cwd: Path,
    variables: Mapping[str, str] | None = None,
    fix: str = "",
) -> str:
    """Run a program, or a command of the shell; what it said on stdout.

    Raises:
        ConfigError: it failed.
    """
    kept = {k: v for k, v in git_variables().items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        done = subprocess.run(
            words,
            shell=isinstance(words, str),
            cwd=cwd,
            env=kept | dict(variables or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as problem:
        raise ConfigError(f"{failed}: {problem.strerror}", where=str(cwd), fix=fix) from None
    if done.returncode != 0:
        said = last_lines(done.stdout + done.stderr, _SHOWN_LINES)
        raise ConfigError(
            f"{failed} (exit code {done.returncode})" + (f":\n    {said}" if said else ""),
            where=str(cwd),
            fix=fix,
        )
    return done.stdout


HARNESS = "retrieval-bench"

_NO_WARNINGS = ("--no-warn-script-location", "--no-warn-conflicts")
"""Nobody sees them, and for those of conflicts pip reads the metadata of all that is installed:
most of the time of a small installation."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Settings of the user for environments of revisions.

    Attributes:
        extras: optional dependencies to install; None = those that are installed now.
        command: for the shell, run in the folder of the revision in place of the installation, once
            for these files; the environment is active, and ``RETRIEVAL_BENCH_TREE`` is the user's
            own tree.

    Raises:
        ConfigError: both are given.
    """

    extras: tuple[str, ...] | None = None
    command: str = ""

    def __post_init__(self) -> None:
        if self.extras is not None and self.command:
            raise ConfigError(
                "`extras` and `setup` of an environment",
                accepted="one of them",
                fix="let `setup` install the extras, too",
            )


def search_path(python: Path) -> list[str]:
    """Where ``python`` looks for modules, with all that the running interpreter sees behind it.

    What ``PYTHONPATH`` names goes behind the packages of an environment, where pip saw it: in front
    of them it would hide the versions that the revision asks for.

    Raises:
        ConfigError: the interpreter does not start.
    """
    if python == Path(sys.executable):
        return list(sys.path)
    said = run_program(
        [str(python), "-P", "-c", "import json, sys; print(json.dumps(sys.path))"],
        "an interpreter does not start",
        cwd=python.parent,
        fix="remove the environment's folder, so that it is made again",
    )
    found: list[str] = json.loads(said.splitlines()[-1])
    return list(dict.fromkeys([*found, *sys.path]))


def install(wanted: Needs, folder: Path, label: str, *, has_harness: bool) -> None:
    """Install what a revision needs into the environment in ``folder``.

    Args:
        has_harness: whether the revision is one of this project.

    Raises:
        ConfigError: pip cannot.
    """
    requirements = list(wanted.requirements)
    if not has_harness:
        # So that pip keeps to what the harness itself needs, too.
        with suppress(metadata.PackageNotFoundError):
            requirements.append(f"{HARNESS}=={metadata.version(HARNESS)}")
    listed, source = folder / "requirements.txt", folder / "source"
    listed.write_text("\n".join(requirements) + "\n", encoding="utf-8")
    words = ["--requirement", str(listed), *wanted.words]
    if wanted.building:
        # Not in its place: what a build leaves behind would be taken for damage.
        shutil.copytree(wanted.project, source, symlinks=True)
        words.append(str(source) + (f"[{','.join(wanted.extras)}]" if wanted.extras else ""))
    pip = [str(python_in(folder)), "-m", "pip", "install", "--disable-pip-version-check"]
    try:
        run_program(
            [*pip, "--no-input", *_NO_WARNINGS, *words],
            f"what {label} needs cannot be installed",
            cwd=wanted.project,
            variables={"PIP_USER": "0"},
            fix="make it installable, name the extras that it needs, or give a command as `setup`",
        )
    finally:
        shutil.rmtree(source, ignore_errors=True)


def installed_from_files(folder: Path) -> bool:
    """Return whether pip installed anything by a path or a URL into the environment in ``folder``,
    as pip writes down itself."""
    return any((folder / "env").glob("lib/*/site-packages/*.dist-info/direct_url.json"))


def run_setup(command: str, folder: Path, project: Path, own_tree: Path, label: str) -> None:
    """Run the user's command for a revision, with the environment in ``folder``.

    Raises:
        ConfigError: it failed.
    """
    run_program(
        command,
        f"`setup` failed for {label}: {command}",
        cwd=project,
        variables={
            "PATH": os.pathsep.join(
                filter(None, [str(python_in(folder).parent), os.environ.get("PATH")])
            ),
            "VIRTUAL_ENV": str(folder / "env"),
            "RETRIEVAL_BENCH_TREE": str(own_tree),
        },
        fix="correct the command; it runs in the folder of the revision, see `where`",
    )
