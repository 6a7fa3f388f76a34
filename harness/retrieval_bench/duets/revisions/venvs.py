"""How an environment is made on top of the running interpreter, and what is asked of it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.git import git_variables
from retrieval_bench.duets.revisions.dependencies import is_distributed
from retrieval_bench.duets.revisions.repository import last_lines

_SHOWN_LINES = 10
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def among_packages(path: Path) -> bool:
    """Whether a path is one of installed packages."""
    return bool(_INSTALLED & {*path.parts})


def is_installed(path: Path) -> bool:
    """Whether a path is one of installed packages or of Python's library, in whatever folder."""
    library = Path(sysconfig.get_path("stdlib"))
    return among_packages(path) or library in (path, *path.parents)


def is_code_of(tree: Path, path: Path) -> bool:
    """Whether a path lies in a tree, and is not one of packages that are installed there."""
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
    library = Path(sysconfig.get_path("stdlib"))
    found = []
    for entry in sys.path:
        path = Path(entry)
        if not entry or not path.is_dir() or path == Path(sys.executable).parent:
            continue
        if library in (path, *path.parents) and not among_packages(path):
            continue
        if is_code_of(own_tree, path):
            continue
        found.append(str(path.absolute()))
    return list(dict.fromkeys(found))


def _distributions() -> list[str]:
    """Names and versions of all that is installed, as their folders say it."""
    return sorted(
        path.name
        for entry in sys.path
        if among_packages(Path(entry))
        for path in Path(entry).glob("*-info")
    )


def beneath(own_tree: Path) -> dict[str, Any]:
    """What an environment is put on."""
    return {
        "python": [sys.version, sys.executable, sys.prefix],
        "underlay": _underlay(own_tree),
        "installed": _distributions(),
    }


def starts(folder: Path) -> bool:
    """Whether the environment in ``folder`` has its interpreter."""
    return os.access(python_in(folder), os.X_OK)


def python_in(folder: Path) -> Path:
    """The interpreter of the environment in ``folder``."""
    return folder / "env" / "bin" / "python"


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
