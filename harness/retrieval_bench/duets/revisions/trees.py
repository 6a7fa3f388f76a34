"""The files of a commit in a folder of their own, written by git and checked at every use.

The folder is filled by ``git read-tree -u`` with an index of its own beside it. So the repository
of the user is only read: ``git worktree list`` gets no entry that a removed cache would leave
behind, no hook runs, and neither ``git gc`` nor ``git worktree prune`` can take the folder away.
And yet line ends, filters and attributes are those of a checkout, which ``git archive`` changes.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError, counted
from retrieval_bench.core.git import run_git
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.duets.revisions.kept import Kept
from retrieval_bench.duets.revisions.repository import Repository, last_lines

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
_LFS = b"version https://git-lfs.github.com/spec/"
_POINTER_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of a commit.

    Attributes:
        folder: where they are.
        notes: what to know of it.
    """

    folder: Path
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preparation:
    """What the user's command adds to the files of a commit.

    It is run once, in files that nothing was added to before, and what it adds is kept and removed
    together with them. In files that it prepared before, `mkdir` would fail and `ln -s` would write
    through the link of the first time, into the user's own folder.

    Attributes:
        identity: all that it depends on besides the commit.
        run: gets the folder that the files lie in as ``tree``; may add files there and beside it.
        whole: whether what it put into such a folder can still be used.
    """

    identity: str
    run: Callable[[Path], None]
    whole: Callable[[Path], bool]


def tree_of(
    repository: Repository,
    commit: str,
    label: str,
    cache: Path,
    *,
    preparation: Preparation | None = None,
    reporter: Reporter | None = None,
) -> Tree:
    """The files of ``commit``, from the cache or made now.

    Args:
        label: what is shown.
        preparation: gives a folder of its own, in which files may be that git does not know.

    Raises:
        ConfigError: git cannot write the files, the cache cannot be used, or the preparation
            failed or changed files of the commit.
    """
    told = reporter or Silent()
    if preparation is None:
        kept = Kept(cache / "revisions", "files of revisions", most=MOST_TREES, reporter=told)
    else:
        kept = Kept(cache / "prepared", "prepared revisions", most=MOST_PREPARED, reporter=told)
    more = preparation.identity if preparation else ""
    identity = "\0".join([str(repository.common), commit, more])
    key = f"{commit[:12]}-{hashlib.sha256(os.fsencode(identity)).hexdigest()[:12]}"

    def make(folder: Path) -> dict[str, Any]:
        with told.phase(Phase(Step.CHECKING_OUT, label)):
            about = _check_out(repository, commit, label, folder)
        if preparation is not None:
            preparation.run(folder)
            _check_unchanged(repository, commit, label, folder, about["differences"])
        return about

    def whole(folder: Path, about: dict[str, Any]) -> bool:
        found = _differences(repository, commit, folder)
        if found is None or found != about.get("differences"):
            return False
        return preparation.whole(folder) if preparation else not _strangers(repository, folder)

    folder, about = kept.folder(key, make, whole)
    return Tree(folder / "tree", tuple(about["notes"]))


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
    """What is not there though it belongs to the revision."""
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
    return path.read_bytes().startswith(_LFS)


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
