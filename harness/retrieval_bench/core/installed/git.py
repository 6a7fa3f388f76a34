"""Calls of git that depend on the folder alone, whoever calls."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_OF_A_CALLER = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""What git sets for a hook: it would point at the repository of the hook, or at its index."""

_CODE = (".py", ".pyi", ".yaml", ".yml", ".toml", ".cfg")
_WORDS_BEFORE_PATH = {"1": 8, "u": 10, "?": 1}
"""By the kind of a line of ``git status``, its second format."""

_NO_CODE = (":(exclude)results", ":(exclude,top)*__pycache__*")

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that Git LFS left in place of the one it stands for."""


def git_variables() -> dict[str, str]:
    """The environment without what a hook of git put there; answers in English, no questions."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_A_CALLER}
    return kept | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def run_git(
    *words: str,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Call git in ``folder``; what it says, as text in which any file name survives.

    Args:
        variables: of the environment, set for this call only.

    Raises:
        OSError: there is no git, or no such folder.
        subprocess.TimeoutExpired: it took longer than ``timeout`` seconds.
    """
    return subprocess.run(
        ["git", *words],
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=git_variables() | dict(variables or {}),
        timeout=timeout,
        check=False,
    )


def code_state(root: Path) -> str | None:
    """A text that is another one once code in the working tree at ``root`` was edited, or another
    commit was checked out; None where git cannot tell.

    Code is what git tracks, and new files whose names end as those of Python, YAML and TOML do: a
    program may keep its data beside them. What is installed in an environment is none.
    """
    words = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all")
    where = (":/", *_NO_CODE, ":(exclude,top)*site-packages*")
    try:
        done = run_git(*words, "--", *where, folder=root, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    told = []
    for line in done.stdout.split("\0"):
        kind = line[:1]
        if kind == "#":
            told += [line] if line.startswith("# branch.oid") else []
        elif kind in _WORDS_BEFORE_PATH:
            path = line.split(" ", _WORDS_BEFORE_PATH[kind])[-1]
            if kind == "?" and not path.endswith(_CODE):
                continue
            told.append(line)
            with suppress(OSError):  # it is gone, and git says so
                status = (root / path).lstat()
                told.append(f"{status.st_mtime_ns} {status.st_size}")
    return "\0".join(told)


def why_no_commit(folder: Path | None = None) -> str:
    """Return why no commit is known of the working tree around ``folder``, in words; those of git
    where it refuses to read a repository."""
    try:
        done = run_git("rev-parse", "--git-dir", folder=folder, timeout=10)
    except subprocess.TimeoutExpired:
        return "git does not answer"
    except OSError:
        return "there is no command `git`"
    if done.returncode == 0:
        return "the repository has no commit yet"
    if "not a git repository" in done.stderr:
        return "outside of a git repository"
    return f"git refuses to read the repository ({' '.join(done.stderr.split())})"


def changed(folder: Path | None = None, *, besides: Path | None = None) -> bool:
    """Return whether files of the working tree around ``folder`` are others than those of its
    commit, new ones included; also where git cannot tell.

    What git ignores does not count, nor what Python keeps beside modules, nor what lies in
    ``results`` below ``folder``: it is no code.

    Args:
        besides: another folder that does not count.
    """
    words = ("status", "--porcelain", "--untracked-files=normal", "--", ":/", *_NO_CODE)
    more = [] if besides is None else [f":(exclude){besides}"]
    # A folder outside of the repository cannot be left out, and need not be.
    for left_out in (more, []):
        try:
            done = run_git(*words, *left_out, folder=folder, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return True
        if done.returncode == 0:
            return bool(done.stdout)
    return True
