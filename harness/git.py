"""Calls of git that depend on the folder alone, whoever calls."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
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

_NO_CODE = (":(exclude)results", ":(exclude,top)*__pycache__*")


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


def changed(folder: Path | None = None, *, besides: Path | None = None) -> bool:
    """Whether files of the working tree around ``folder`` are others than those of its commit, new
    ones included; also where git cannot tell.

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
