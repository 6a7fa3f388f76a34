"""The git repository that the user stands in, and the files of its commits in folders of their own,
written by git and checked at every use.

``git read-tree -u`` fills such a folder, with an index of its own beside it. So the repository of
the user is only read: ``git worktree list`` gets no entry that a removed cache would leave
behind, no hook runs, and neither ``git gc`` nor ``git worktree prune`` can take the folder away.
And yet line ends, filters and attributes are those of a checkout, which ``git archive`` changes,
and a clone, which has no settings of the repository, too.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.core.errors import ConfigError, close_names, counted
from retrieval_bench.core.installed.git import LFS_POINTER, run_git

_SHOWN_NAMES = 10
_LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository with a working tree.

    Attributes:
        root: top folder of the user's working tree.
        git_dir: of this working tree.
        shallow: whether its history ends early.
    """

    root: Path
    git_dir: Path
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
        asked = ("--is-shallow-repository", "--absolute-git-dir", "--show-toplevel")
        done = run_git("rev-parse", *asked, folder=folder)
        if done.returncode != 0:
            raise ConfigError(
                f"no revision can be looked up: {last_lines(done.stderr)}",
                where=str(folder),
                accepted="a folder in the working tree of a git repository, not a bare one",
                fix="go to a working tree (git clone, git worktree add), or compare configs: --a "
                "and --b",
            )
        shallow, git_dir, top = done.stdout.split("\n", 2)
        return cls(Path(top.removesuffix("\n")).resolve(), Path(git_dir), shallow == "true")

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
        fix = "correct the name; `git branch --all` and `git tag` show what there is"
        if self.head() is None:
            fix = "the repository has no commit yet: make one, or compare configs: --a and --b"
        elif self.shallow:
            fix = (
                "this clone holds only the last commits: `git fetch --unshallow` gets the others "
                "(in a hosted CI, `fetch-depth: 0`); or correct the name"
            )
        names = self._names()
        more = len(names) - _SHOWN_NAMES
        close = [name for name in names if revision and name.endswith(f"/{revision}")][:3]
        close = close or close_names(revision, names)
        known = f"did you mean {' or '.join(close)}? " if close else ""
        if more <= 0 or not close:
            known += ", ".join(sorted(names[:_SHOWN_NAMES])) or "there are none"
            known += f" and {more} more" if more > 0 else ""
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


_SETTINGS = (
    "core.bare=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "core.sparseCheckout=false",  # a part of the commit is not the commit
    "core.splitIndex=false",  # would put a file into the repository
    "core.untrackedCache=false",
    "index.sparse=false",
    "submodule.recurse=false",
)
_POINTER_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Checkout:
    """Files of a commit.

    Attributes:
        label: what is shown.
        folder: where they are, beside what else is kept of the commit.
    """

    repository: Repository
    commit: str
    label: str
    folder: Path

    @property
    def tree(self) -> Path:
        """Where the files are."""
        return self.folder / "tree"

    def write(self) -> None:
        """Write the files.

        Raises:
            ConfigError: git cannot.
        """
        self.tree.mkdir()
        done = self._git("read-tree", "--reset", "-u", self.commit)
        if done.returncode != 0:
            raise ConfigError(
                f"the files of {self.label} cannot be checked out; git says:\n    "
                f"{last_lines(done.stderr) or f'nothing, exit code {done.returncode}'}",
                where=str(self.folder),
                fix="make `git worktree add` work for this revision first; files kept by Git LFS "
                "need git-lfs and its server",
            )

    def changed(self, *, new: bool = False) -> list[str] | None:
        """Files that are others than in the commit, and, if asked for, those that are in no commit
        nor spoken of by .gitignore; None where git cannot tell.

        Rules on line ends may make git call a fresh file changed: that is not damage.
        """
        if not self.tree.is_dir() or not (self.folder / "index").is_file():
            return None
        words = ["--modified", *(["--others"] if new else [])]
        rules = ("--exclude-standard", "--exclude=__pycache__/")
        done = self._git("ls-files", "-z", *words, *rules)
        return _paths(done) if done.returncode == 0 else None

    def notes(self) -> list[str]:
        """What belongs to the revision and is not there."""
        notes = []
        entries = _paths(self._git("ls-files", "-z", "--stage"))
        modules = [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]
        if modules:
            number = counted(len(modules), "submodule")
            notes.append(f"{self.label}: {number} left empty, such as {modules[0]}")
        in_lfs = _paths(self._git("ls-files", "-z", ":(attr:filter=lfs)"))
        pointers = [path for path in in_lfs if _is_pointer(self.tree / path)]
        if pointers:
            notes.append(
                f"{self.label}: {counted(len(pointers), 'file')} with a pointer of Git LFS in "
                f"place of the content, such as {pointers[0]}"
            )
        return notes

    def _git(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Git on the files, with the index beside them."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        return run_git(
            *settings,
            *words,
            folder=self.tree,
            variables={
                "GIT_DIR": str(self.repository.git_dir),
                "GIT_WORK_TREE": str(self.tree),
                "GIT_INDEX_FILE": str(self.folder / "index"),
            },
        )


def _paths(done: subprocess.CompletedProcess[str]) -> list[str]:
    return sorted(filter(None, done.stdout.split("\0")))


def _is_pointer(path: Path) -> bool:
    if not path.is_file() or path.stat().st_size > _POINTER_BYTES:
        return False
    return path.read_bytes().startswith(LFS_POINTER)
