"""The interpreter of a revision: the one that runs now, or an environment made for it once.

An environment holds only what differs. Behind its own packages it sees those of the running
interpreter, so that pip installs what the revision wants in another version or wants besides, and
the harness itself is there whether the revision has it or not.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.git import git_variables
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.duets.revisions.dependencies import (
    Needs,
    fingerprint,
    is_distributed,
    needs,
    unknown_extras,
)
from retrieval_bench.duets.revisions.kept import Kept
from retrieval_bench.duets.revisions.trees import Repository, Tree, last_lines, python_in, starts

_SHOWN_LINES = 10
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def among_packages(path: Path) -> bool:
    """Return whether a path is one of installed packages."""
    return bool(_INSTALLED & {*path.parts})


def is_installed(path: Path) -> bool:
    """Return whether a path is one of installed packages or of Python's library, in whatever
    folder."""
    library = Path(sysconfig.get_path("stdlib"))
    return among_packages(path) or library in (path, *path.parents)


def is_code_of(tree: Path, path: Path) -> bool:
    """Return whether a path lies in a tree, and is not one of packages that are installed there."""
    return not is_installed(path) and tree in (path.resolve(), *path.resolve().parents)


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
    words = [str(python), "-P", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(run_program(words, "an environment cannot be used", cwd=folder).strip())
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


def _underlay(own_tree: Path) -> list[str]:
    """Where the running interpreter has packages, but for the user's own tree."""
    paths = [Path(entry) for entry in sys.path if entry]
    return list(
        dict.fromkeys(
            str(path.absolute())
            for path in paths
            if path.is_dir()
            and path != Path(sys.executable).parent
            and (among_packages(path) or not is_installed(path))
            and not is_code_of(own_tree, path)
        )
    )


def _distributions() -> list[str]:
    """Names and versions of all that is installed, as their folders say it."""
    return sorted(
        path.name
        for entry in sys.path
        if among_packages(Path(entry))
        for path in Path(entry).glob("*-info")
    )


def beneath(own_tree: Path) -> dict[str, Any]:
    """Describe what an environment is put on."""
    return {
        "python": [sys.version, sys.executable, sys.prefix],
        "underlay": _underlay(own_tree),
        "installed": _distributions(),
    }


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


MOST_ENVIRONMENTS = 5
"""So many are kept, the most recently used ones."""

HARNESS = "retrieval-bench"


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


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The interpreter of a revision.

    Attributes:
        packages: the environment, when it was made for this commit and no other.
        notes: what to know of it.
    """

    python: Path
    packages: Path | None = None
    notes: tuple[str, ...] = ()


def python_of(
    tree: Tree,
    repository: Repository,
    cache: Path,
    setup: Setup,
    *,
    projects: Sequence[Path],
    own_projects: Sequence[Path],
    has_harness: bool,
    reporter: Reporter | None = None,
) -> Interpreter:
    """The interpreter of a revision that no command of the user prepared.

    Args:
        projects: folders in ``tree`` that say what is needed, the innermost first.
        own_projects: the same folders in the user's tree.
        has_harness: whether the revision is one of this project.

    Raises:
        ConfigError: the installation failed.
    """
    here = fingerprint(repository.root, own_projects)
    there = fingerprint(tree.folder, projects)
    project = _declaring(projects)
    _check_extras(project, setup, tree.label)
    if here == there:
        return Interpreter(Path(sys.executable))
    own = own_projects[0 if project == projects[0] else -1]
    wanted = needs(project, setup.extras, own)
    locks = [name for name in sorted({*here, *there}) if _is_lock(name)]
    notes = tuple(
        f"{tree.label}: {name} is another one and was not used, since pip cannot read it; "
        "`setup` can install by it"
        for name in locks
        if here.get(name) != there.get(name)
    )
    if wanted.nothing:
        return Interpreter(Path(sys.executable), notes=notes)
    identity = beneath(repository.root) | {
        "needs": there,
        "extras": wanted.extras,
        "harness": has_harness,
        # What is built, or lies behind a path, may depend on any file.
        "commit": "" if wanted.self_contained else tree.commit,
    }
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]

    def make(folder: Path) -> dict[str, Any]:
        with (reporter or Silent()).phase(Phase(Step.MAKING_ENVIRONMENT, tree.label)):
            new_environment(folder, repository.root)
            _install(wanted, folder, project, tree.label, has_harness=has_harness)
        return {"revision": tree.label, "commit": tree.commit}

    kept = Kept(cache / "environments", "environments", most=MOST_ENVIRONMENTS, reporter=reporter)
    folder, _ = kept.folder(key, make, lambda folder, _: starts(folder))
    packages = None if wanted.self_contained else folder / "env"
    return Interpreter(python_in(folder), packages, notes)


def prepared_by(
    command: str,
    repository: Repository,
    inside: Path,
    label: str,
    projects: Callable[[Path], Sequence[Path]],
    *,
    reporter: Reporter | None = None,
) -> tuple[Callable[[Path], None], str]:
    """A command of the user, run with an environment beside the files, and its identity, both for
    :func:`.tree_of`.

    Args:
        inside: where the user stands, as a path within the repository.
        projects: of a tree, the folders that say what is needed.
    """

    def run(folder: Path) -> None:
        project = _declaring(projects(folder / "tree"))
        with (reporter or Silent()).phase(Phase(Step.MAKING_ENVIRONMENT, label)):
            new_environment(folder, repository.root)
            _run_command(command, folder, project, repository, label)

    # The command reads the user's own tree, and in linked ones other things lie; where the user
    # stands decides which project it is run in.
    own = {"command": command, "tree": str(repository.root), "inside": inside.as_posix()}
    return run, json.dumps(beneath(repository.root) | own, sort_keys=True)


def search_path(python: Path, own_tree: Path) -> list[str]:
    """Where ``python`` looks for modules, with all that the running interpreter sees behind it.

    Of ``PYTHONPATH`` only what lies in the user's tree goes first: it is code of the repository.
    All else goes behind the packages of an environment, where pip saw it: in front of them it would
    hide the versions that the revision asks for.

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
    library = sysconfig.get_path("stdlib")  # PYTHONPATH goes before it
    ahead = sys.path[: sys.path.index(library)] if library in sys.path else []
    own = [entry for entry in ahead if is_code_of(own_tree, Path(entry))]
    return list(dict.fromkeys([*own, *found, *sys.path]))


def _declaring(projects: Sequence[Path]) -> Path:
    """The innermost folder that says what to install."""
    names = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
    return next((p for p in projects if any((p / name).is_file() for name in names)), projects[-1])


def _check_extras(project: Path, setup: Setup, label: str) -> None:
    unknown, declared = unknown_extras(project, setup.extras or ())
    if unknown:
        raise ConfigError(
            f"extras {', '.join(unknown)}, which {label} does not have",
            where=str(project / "pyproject.toml"),
            accepted=", ".join(declared) or "(none)",
        )


def _is_lock(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last.endswith(".lock") or last.startswith(("pylock", "Pipfile"))


def _install(wanted: Needs, folder: Path, project: Path, label: str, *, has_harness: bool) -> None:
    python = python_in(folder)
    requirements = list(wanted.requirements)
    if not has_harness:
        # So that pip keeps to what the harness itself needs, too.
        with suppress(metadata.PackageNotFoundError):
            requirements.append(f"{HARNESS}=={metadata.version(HARNESS)}")
    listed = folder / "requirements.txt"
    listed.write_text("\n".join(requirements) + "\n", encoding="utf-8")
    words = ["--requirement", str(listed)]
    for path in wanted.files:
        words += ["--requirement", str(path)]
    for path in wanted.constraints:
        words += ["--constraint", str(path)]
    source = folder / "source"
    if wanted.builds:
        # Not in its place: what a build leaves behind would be taken for damage.
        shutil.copytree(project, source, symlinks=True)
        words.append(str(source) + (f"[{','.join(wanted.extras)}]" if wanted.extras else ""))
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    try:
        run_program(
            [*pip, "--no-warn-script-location", *words],
            f"what {label} needs cannot be installed",
            cwd=project,
            variables={"PIP_USER": "0"},
            fix="make it installable, name the extras that it needs, or give a command as `setup`",
        )
    finally:
        shutil.rmtree(source, ignore_errors=True)


def _run_command(
    command: str, folder: Path, project: Path, repository: Repository, label: str
) -> None:
    scripts = python_in(folder).parent
    run_program(
        command,
        f"`setup` failed for {label}: {command}",
        cwd=project,
        variables={
            "PATH": os.pathsep.join(filter(None, [str(scripts), os.environ.get("PATH")])),
            "VIRTUAL_ENV": str(folder / "env"),
            "RETRIEVAL_BENCH_TREE": str(repository.root),
        },
        fix="correct the command; it runs in the folder of the revision, see `where`",
    )
