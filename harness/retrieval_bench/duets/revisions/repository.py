"""The git repository that the user stands in, and what a name means in it."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.core.errors import ConfigError, close_names, near_names
from retrieval_bench.core.git import run_git

_SHOWN_NAMES = 10
_LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository with a working tree.

    Attributes:
        root: top folder of the user's working tree.
        git_dir: of this working tree.
        common: the folder that all working trees of the repository share.
        shallow: whether its history ends early.
    """

    root: Path
    git_dir: Path
    common: Path
    shallow: bool

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """The repository that ``folder`` lies in.

        Raises:
            ConfigError: no git, no repository, or one without a working tree.
        """
        if shutil.which("git") is None:
            raise ConfigError(
                "there is no command `git`", fix="install git, or compare configs: --a and --b"
            )
        asked = ("--is-inside-work-tree", "--is-shallow-repository", "--absolute-git-dir")
        done = run_git("rev-parse", *asked, "--git-common-dir", folder=folder)
        if done.returncode != 0:
            outside = "not a git repository" in done.stderr
            raise ConfigError(
                "a revision was asked for outside of a git repository"
                if outside
                else f"git cannot read the repository: {last_lines(done.stderr)}",
                where=str(folder),
                accepted="a folder in the working tree of a git repository",
                fix="go to the repository, or compare configs: --a and --b",
            )
        inside, shallow, git_dir, common = done.stdout.splitlines()[:4]
        if inside != "true":
            raise ConfigError(
                "the repository has no files here: it is a bare one, or this is its folder .git",
                where=str(folder),
                accepted="a folder in the working tree of a git repository",
                fix="go to a working tree of it: git worktree add, or git clone",
            )
        top = run_git("rev-parse", "--show-toplevel", folder=folder).stdout.removesuffix("\n")
        return cls(
            Path(top).resolve(),
            Path(git_dir),
            (folder / common).resolve(),
            shallow == "true",
        )

    def head(self) -> str | None:
        """The commit of the working tree, None before the first one."""
        return self._one_object("HEAD^{commit}")

    def commit(self, revision: str) -> str:
        """The full hash of what ``revision`` names.

        Raises:
            ConfigError: it names no commit.
        """
        # A revision never starts with a dash; an option of git would.
        if revision and not revision.startswith("-") and "\0" not in revision:
            # In two steps: `:/text^{commit}` would look for that text.
            found = self._one_object(revision)
            commit = found and self._one_object(f"{found}^{{commit}}")
            if commit:
                return commit
        raise self._unknown(revision)

    def files(self, commit: str | None, names: Collection[str]) -> list[str]:
        """Files with one of these names in any folder, as paths from the top; None = of the working
        tree, with new ones and without those that git ignores.

        Raises:
            ConfigError: git cannot tell.
        """
        if commit is None:
            words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        else:
            words = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit]
        done = run_git(*words, folder=self.root)
        if done.returncode != 0:
            raise ConfigError(
                f"git cannot list the files of {commit or 'the working tree'}: "
                f"{last_lines(done.stderr)}",
                where=str(self.root),
            )
        return [path for path in done.stdout.split("\0") if path.rpartition("/")[2] in names]

    def _one_object(self, name: str) -> str | None:
        """The hash of what git finds under a name."""
        done = run_git("rev-parse", "--verify", "--quiet", name, folder=self.root)
        return done.stdout.strip() if done.returncode == 0 else None

    def _unknown(self, revision: str) -> ConfigError:
        names = self._names()
        fix = "correct the name; `git branch --all` and `git tag` show what there is"
        if self.head() is None:
            fix = "the repository has no commit yet: make one, or compare configs: --a and --b"
        elif self.shallow:
            fix = (
                "this clone holds only the last commits: `git fetch --unshallow` gets the others "
                "(in a hosted CI, `fetch-depth: 0`); or correct the name"
            )
        close = [name for name in names if name.endswith(f"/{revision}")] if revision else []
        if close:
            known = f"did you mean {' or '.join(close[:3])}?"
        elif len(names) <= _SHOWN_NAMES:
            known = near_names(revision, names)
        else:
            near = close_names(revision, names)
            known = f"did you mean {' or '.join(near)}?"
            if not near:
                known = ", ".join(names[:_SHOWN_NAMES]) + f" and {len(names) - _SHOWN_NAMES} more"
        return ConfigError(
            f"unknown revision {revision!r}",
            where=str(self.root),
            accepted=f"a branch, a tag, a commit, HEAD~2 and the like, or WORKTREE; {known}",
            fix=fix,
        )

    def _names(self) -> list[str]:
        words = ("for-each-ref", "--format=%(refname:short)", "--sort=-committerdate")
        done = run_git(*words, "refs/heads", "refs/tags", "refs/remotes", folder=self.root)
        return done.stdout.splitlines()


def last_lines(text: str, n: int = _LAST_LINES) -> str:
    """The end of what a program said, for a message."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n    ".join(lines[-n:])
