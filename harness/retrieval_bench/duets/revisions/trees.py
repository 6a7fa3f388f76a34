"""The git repository that the user stands in, and the files of its commits in folders of their own,
written by git and checked at every use.

``git read-tree -u`` fills such a folder, with an index of its own beside it. So the repository of
the user is only read: ``git worktree list`` gets no entry that a removed cache would leave
behind, no hook runs, and neither ``git gc`` nor ``git worktree prune`` can take the folder away.
And yet line ends, filters and attributes are those of a checkout, which ``git archive`` changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError, close_names, counted, near_names
from retrieval_bench.core.installed.git import LFS_POINTER, run_git
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.duets.revisions.kept import Kept

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
        asked = ("--is-shallow-repository", "--absolute-git-dir", "--git-common-dir")
        done = run_git("rev-parse", *asked, "--show-toplevel", folder=folder)
        if done.returncode != 0:
            raise _no_repository(done.stderr, folder)
        shallow, git_dir, common, top = done.stdout.split("\n", 3)
        return cls(
            Path(top.removesuffix("\n")).resolve(),
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


def _no_repository(said: str, folder: Path) -> ConfigError:
    given, accepted, fix = (
        f"git cannot read the repository: {last_lines(said)}",
        "a folder in the working tree of a git repository",
        "go to the repository, or compare configs: --a and --b",
    )
    if "not a git repository" in said:
        given = "a revision was asked for outside of a git repository"
    elif "must be run in a work tree" in said:
        given = "the repository has no files here: it is a bare one, or this is its folder .git"
        fix = "go to a working tree of it: git worktree add, or git clone"
    return ConfigError(given, where=str(folder), accepted=accepted, fix=fix)


def last_lines(text: str, n: int = _LAST_LINES) -> str:
    """The end of what a program said, for a message."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n    ".join(lines[-n:])


MOST_TREES = 10
"""So many commits are kept, the most recently used ones."""

MOST_PREPARED = 5
"""So many that a command of the user prepared: each holds an environment, too."""

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
class Tree:
    """The files of a commit.

    Attributes:
        label: what is shown.
        folder: where they are.
        notes: what to know of it.
    """

    label: str
    commit: str
    folder: Path
    notes: tuple[str, ...]


def tree_of(
    repository: Repository,
    commit: str,
    label: str,
    cache: Path,
    *,
    prepare: Callable[[Path], None] | None = None,
    identity: str = "",
    reporter: Reporter | None = None,
) -> Tree:
    """The files of ``commit``, from the cache or made now.

    Args:
        label: what is shown.
        prepare: what the user's command adds, files that git does not know and an environment
            beside them. It gets the folder that the files lie in as ``tree``, and is run once, in
            files that nothing was added to before; what it adds is kept and removed together with
            them. In files that it prepared before, `mkdir` would fail and `ln -s` would write
            through the link of the first time, into the user's own folder.
        identity: all that ``prepare`` depends on besides the commit.

    Raises:
        ConfigError: git cannot write the files, the cache cannot be used, or the preparation
            failed or changed files of the commit.
    """
    reporter = reporter or Silent()
    if prepare is None:
        kept = Kept(cache / "revisions", "files of revisions", most=MOST_TREES, reporter=reporter)
    else:
        kept = Kept(cache / "prepared", "prepared revisions", most=MOST_PREPARED, reporter=reporter)
    whose = "\0".join([str(repository.common), commit, identity])
    key = f"{commit[:12]}-{hashlib.sha256(os.fsencode(whose)).hexdigest()[:12]}"

    def make(folder: Path) -> dict[str, Any]:
        with reporter.phase(Phase(Step.CHECKING_OUT, label)):
            about = _check_out(repository, commit, label, folder)
        if prepare is not None:
            prepare(folder)
            _check_unchanged(repository, commit, label, folder, about["differences"])
        return about

    def whole(folder: Path, about: dict[str, Any]) -> bool:
        differences = _differences(repository, commit, folder)
        if differences is None or differences != about.get("differences"):
            return False
        return not _strangers(repository, folder) if prepare is None else starts(folder)

    folder, about = kept.folder(key, make, whole)
    return Tree(label, commit, folder / "tree", tuple(about["notes"]))


def python_in(folder: Path) -> Path:
    """The interpreter of the environment in ``folder``."""
    return folder / "env" / "bin" / "python"


def starts(folder: Path) -> bool:
    """Return whether the environment in ``folder`` has its interpreter."""
    return os.access(python_in(folder), os.X_OK)


def _check_unchanged(
    repository: Repository, commit: str, label: str, folder: Path, before: list[str]
) -> None:
    now = _differences(repository, commit, folder)
    if now != before:
        others = sorted({*(now or ())} - {*before}) or before
        raise ConfigError(
            f"`setup` changed files of {label}: {', '.join(others[:3])}",
            where=str(folder / "tree"),
            accepted="new files only: what is measured must be the code of the revision",
            fix="let the command leave the files that git knows as they are",
        )


def _check_out(repository: Repository, commit: str, label: str, folder: Path) -> dict[str, Any]:
    (folder / "tree").mkdir()
    done = _git(repository, folder, "read-tree", "--reset", "-u", commit)
    if done.returncode != 0:
        raise ConfigError(
            f"the files of {label} cannot be checked out; git says:\n    "
            f"{last_lines(done.stderr) or f'nothing, exit code {done.returncode}'}",
            where=str(folder),
            fix="make `git worktree add` work for this revision first; files kept by Git LFS need "
            "git-lfs and its server",
        )
    return {
        "repository": str(repository.root).encode("utf-8", "backslashreplace").decode(),
        "commit": commit,
        # Rules on line ends may make git call a fresh file changed: that is not damage.
        "differences": _differences(repository, commit, folder) or [],
        "notes": _notes(repository, commit, label, folder),
    }


def _differences(repository: Repository, commit: str, folder: Path) -> list[str] | None:
    """Files that are others than in the commit, None where git cannot tell."""
    words = ("diff", "--name-only", "-z", "--no-ext-diff", "--no-renames", "--ignore-submodules")
    if not (folder / "index").is_file() or not (folder / "tree").is_dir():
        return None
    done = _git(repository, folder, *words, commit)
    return sorted(filter(None, done.stdout.split("\0"))) if done.returncode == 0 else None


def _strangers(repository: Repository, folder: Path) -> list[str]:
    """Files that are in no commit, but for those that .gitignore speaks of."""
    words = ("ls-files", "--others", "--exclude-standard", "--exclude=__pycache__/", "-z")
    return list(filter(None, _git(repository, folder, *words).stdout.split("\0")))


def _notes(repository: Repository, commit: str, label: str, folder: Path) -> list[str]:
    """List what belongs to the revision and is not there."""
    notes = []
    words = ("ls-tree", "-r", "-z", "--full-tree", commit)
    entries = [entry for entry in _git(repository, folder, *words).stdout.split("\0") if entry]
    modules = [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]
    if modules:
        notes.append(
            f"{label}: {counted(len(modules), 'submodule')} left empty, such as {modules[0]}"
        )
    paths = [folder / "tree" / entry.partition("\t")[2] for entry in entries]
    if any(path.name == ".gitattributes" and b"=lfs" in path.read_bytes() for path in paths):
        pointers = [path for path in paths if _is_pointer(path)]
        if pointers:
            notes.append(
                f"{label}: {counted(len(pointers), 'file')} with a pointer of Git LFS in place of "
                f"the content, such as {pointers[0].relative_to(folder / 'tree')}"
            )
    return notes


def _is_pointer(path: Path) -> bool:
    if not path.is_file() or path.stat().st_size > _POINTER_BYTES:
        return False
    return path.read_bytes().startswith(LFS_POINTER)


def _git(repository: Repository, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Git on the files in ``folder`` with the index beside them."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    return run_git(
        *settings,
        *words,
        folder=folder / "tree",
        variables={
            "GIT_DIR": str(repository.git_dir),
            "GIT_WORK_TREE": str(folder / "tree"),
            "GIT_INDEX_FILE": str(folder / "index"),
        },
    )
