"""A small git repository of somebody who uses the harness."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.core.installed.git import git_variables
from tests.builders.files import save_all

if TYPE_CHECKING:
    from retrieval_bench_duet.sides import Place

_WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


class GitProject:
    """A repository in ``folder`` with a branch ``main``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        """What git says."""
        done = subprocess.run(
            ["git", *_WHO, *words],
            cwd=self.folder,
            env=git_variables(),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def at(self, revision: str, **options: Any) -> Place:
        """The code of ``revision``, with what is kept in the usual cache."""
        from retrieval_bench_duet.revisions.revisions import place_of

        return place_of(revision, self.folder, **options)

    def write(self, files: dict[str, str]) -> None:
        """Write files by their relative paths."""
        save_all(self.folder, files)

    def commit(self, files: dict[str, str], *, without: tuple[str, ...] = ()) -> str:
        """Commit everything as it is after writing ``files``; the hash."""
        self.write(files)
        for name in without:
            (self.folder / name).unlink()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--no-verify", "-m", "change")
        return self.git("rev-parse", "HEAD")
