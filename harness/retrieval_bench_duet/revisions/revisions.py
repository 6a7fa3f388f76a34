"""A git revision of the repository that the user stands in, as a place that code comes from."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.cache import cache_folder
from retrieval_bench.core.installed.git import changed, code_state
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench_duet.revisions.dependencies import (
    Needs,
    check_extras,
    declaring,
    other_locks,
    package_roots,
    projects_around,
)
from retrieval_bench_duet.revisions.environments import (
    Setup,
    among_packages,
    beneath,
    install,
    installed_from_files,
    is_code_of,
    is_installed,
    new_environment,
    python_in,
    run_setup,
    search_path,
)
from retrieval_bench_duet.revisions.kept import kept
from retrieval_bench_duet.revisions.trees import Checkout, Repository
from retrieval_bench_duet.sides import Place, Side

WORKTREE = "WORKTREE"
"""The user's own files as they are now. In capitals only; a branch of this name is still reached as
``refs/heads/WORKTREE``."""

_OWN_PACKAGES = {"retrieval_bench": "harness", "retrieval_bench_retrievers": "retrievers"}
"""Of this project, with the folder that each lies in."""

_MEASURABLE = "harness/retrieval_bench/experiment/preparation.py"
"""A file of every revision of this project that a duet can measure."""


def place_of(
    revision: str,
    folder: Path | None = None,
    *,
    cache: Path | None = None,
    setup: Setup | None = None,
    reporter: Reporter | None = None,
) -> Place:
    """The code of a revision, checked out and with an interpreter that has what it needs.

    Files and environments are made once and kept in the cache; they are in use, and so not removed
    by other processes, until this process ends.

    Args:
        revision: what git understands as a commit (branch, tag, hash, ``main~2``), or
            :data:`WORKTREE`.
        folder: where the user stands; the current folder by default.
        cache: folder for what is kept, :func:`.cache_folder` by default.
        setup: how environments are made.

    Raises:
        ConfigError: no repository, an unknown revision, a folder that is not in it, or files or
            packages that cannot be had.
    """
    folder = (folder or Path.cwd()).resolve()
    repository = Repository.around(folder)
    inside = folder.relative_to(repository.root)
    own_projects = projects_around(repository.root, folder)
    if revision == WORKTREE:
        return _own_tree(repository, folder, own_projects)
    commit = repository.commit(revision)
    label = commit[:7] if commit.startswith(revision) else f"{revision} ({commit[:7]})"
    root = cache or cache_folder()
    if root is None:
        raise ConfigError(
            "no folder is known where revisions could be kept",
            fix="let the variable RETRIEVAL_BENCH_CACHE name one",
        )
    setup = setup or Setup()
    # A command reads the user's own tree, and in linked ones other things lie; where the user
    # stands decides which project it is about.
    identity = asdict(setup) | {"tree": str(repository.root), "inside": str(inside)}
    identity |= beneath(repository.root)
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    # Absolute: the processes that use what is kept there stand elsewhere.
    made = (root / "commits").absolute() / f"{commit[:12]}-{key}"
    checkout = Checkout(repository, commit, label, made)
    return _Revision(checkout, inside, own_projects, setup, reporter or Silent()).place()


@dataclass(frozen=True, slots=True)
class _Revision:
    """A commit whose files and environment are kept.

    Attributes:
        inside: where the user stands, as a path within the repository.
        own_projects: around that, in the user's tree, the innermost first.
    """

    checkout: Checkout
    inside: Path
    own_projects: Sequence[Path]
    setup: Setup
    reporter: Reporter

    def place(self) -> Place:
        """It, in use until this process ends."""
        files = self.checkout
        about = kept(files.folder, self._make, self._is_whole, self.reporter)
        projects, needs = self._projects(), self._needs()
        python, packages = Path(sys.executable), None
        notes = [*about["notes"]]
        if self.setup.command or needs is not None:
            python = python_in(files.folder)
            packages = files.folder / "env" if about["own_packages"] else None
        if not self.setup.command:
            notes += [
                f"{files.label}: {name} is another one and was not used, since pip cannot read it; "
                "`setup` can install by it"
                for name in other_locks(projects, self.own_projects)
            ]
        root = files.repository.root
        return Place(
            files.label,
            files.tree / self.inside,
            python,
            _search_path(search_path(python), projects, files.tree, root),
            files.commit,
            files.tree,
            root,
            tuple(notes),
            roots=package_roots(files.repository, files.commit, files.tree),
            packages=packages,
        )

    def _make(self) -> dict[str, Any]:
        files, root = self.checkout, self.checkout.repository.root
        with self.reporter.phase(Phase(Step.CHECKING_OUT, files.label)):
            files.write()
        differences, project = files.changed(), declaring(self._projects())
        check_extras(project, self.setup.extras or (), files.label)
        needs = self._needs()
        if self.setup.command or needs is not None:
            with self.reporter.phase(Phase(Step.MAKING_ENVIRONMENT, files.label)):
                new_environment(files.folder, root)
                if needs is None:
                    run_setup(self.setup.command, files.folder, project, root, files.label)
                else:
                    ours = _is_ours(self._projects())
                    install(needs, files.folder, files.label, has_harness=ours)
        self._check_unchanged(differences)
        return {
            "notes": files.notes(),
            "needs": needs and repr(needs),
            "changed": self._changed(),
            "own_packages": bool(self.setup.command) or installed_from_files(files.folder),
        }

    def _is_whole(self, about: Mapping[str, Any]) -> bool:
        if about.get("changed") is None or about["changed"] != self._changed():
            return False
        needs = self._needs()
        if needs is None and not self.setup.command:
            return True
        starts = os.access(python_in(self.checkout.folder), os.X_OK)
        return starts and about["needs"] == (needs and repr(needs))

    def _changed(self) -> list[str] | None:
        # What the user's command added is as it wants it to be.
        return self.checkout.changed(new=not self.setup.command)

    def _needs(self) -> Needs | None:
        """What to install; None where the user's command does, or the running interpreter has
        it."""
        projects, extras = self._projects(), self.setup.extras
        there = Needs.of(projects, extras, self.own_projects)
        here = Needs.of(self.own_projects, extras, projects)
        return None if self.setup.command or there.nothing or there == here else there

    def _projects(self) -> tuple[Path, ...]:
        """The projects around where the user stands, if a duet can measure them."""
        files = self.checkout
        return _measurable(files.repository, files.tree, self.inside, files.label)

    def _check_unchanged(self, before: list[str] | None) -> None:
        now = self.checkout.changed()
        if now != before:
            others = sorted({*(now or ())} - {*(before or ())}) or before or []
            who = "`setup`" if self.setup.command else "installing what it needs"
            raise ConfigError(
                f"{who} changed files of {self.checkout.label}: {', '.join(others[:3])}",
                where=str(self.checkout.tree),
                accepted="new files only: what is measured must be the code of the revision",
                fix="let the command leave the files that git knows as they are",
            )


def _own_tree(repository: Repository, folder: Path, projects: tuple[Path, ...]) -> Place:
    root = repository.root
    return Place(
        WORKTREE,
        folder,
        sys_path=_search_path(sys.path, projects, root, root),
        commit=None if changed(folder) else repository.head(),
        tree=root,
        origin=root,
        state=code_state(root),
        roots=package_roots(repository, None, root),
    )


def _measurable(repository: Repository, tree: Path, inside: Path, label: str) -> tuple[Path, ...]:
    """The projects around ``inside`` in the files of a revision, if a duet can measure them."""
    there = tree / inside
    if not there.is_dir():
        raise ConfigError(
            f"{label} has no folder {inside.as_posix()}",
            where=str(repository.root / inside),
            accepted="a folder that is in both revisions",
            fix=f"call from another folder, such as {repository.root}",
        )
    projects = projects_around(tree, there)
    # One from before the packages had these names does not look like ours: today's would answer.
    ours = _is_ours([*projects, *projects_around(repository.root, repository.root / inside)])
    if ours and not any((project / _MEASURABLE).is_file() for project in projects):
        raise ConfigError(
            f"{label} is older than what a duet can measure",
            accepted=f"a revision with {_MEASURABLE}",
        )
    return projects


def _is_ours(projects: Sequence[Path]) -> bool:
    """Return whether the code is that of this project, and not that of somebody who uses it."""
    files = [f"{folder}/{name}/__init__.py" for name, folder in _OWN_PACKAGES.items()]
    return any(all((project / file).is_file() for file in files) for project in projects)


def _search_path(
    entries: Sequence[str], projects: Sequence[Path], tree: Path, origin: Path
) -> tuple[str, ...]:
    """Python's library, the tree, and all else that is on the path now.

    An entry in the user's tree becomes the same place in ``tree``, or is left out where that does
    not have it. Packages that are installed in an environment within the user's tree stay.
    """
    library: list[str] = []
    twins: list[str] = []
    others: list[str] = []  # of which twins are some
    for path in (Path(entry).absolute() for entry in entries):
        own = path.resolve()
        if is_installed(path):
            (others if among_packages(path) else library).append(str(path))
        elif path.suffix == ".zip" and path.stem.startswith("python"):
            library.append(str(path))
        elif own.is_relative_to(origin):
            twin = tree / own.relative_to(origin)
            # Where today's tree has a folder of packages the revision may have a package.
            if twin.is_dir() and (_is_package(path) or not _is_package(twin)):
                twins.append(str(twin))
                others.append(str(twin))
        else:
            others.append(str(path))
    # No other folders that settings name: those of examples or tests may be among them.
    roots = [
        str(root)
        for project in projects
        for root in (*_own_roots(project), project, project / "src")
        if root == project or (root.is_dir() and not _is_package(root))
    ]
    # The user's own package of such a name must not hide this project's.
    hides = not _is_ours(projects) and any(
        _is_package(Path(root, name)) for root in roots for name in _OWN_PACKAGES
    )
    code = [*others, *roots] if hides else [*roots, *twins, *others]
    return tuple(dict.fromkeys([*library, *code]))


def _own_roots(project: Path) -> list[Path]:
    return [project / root for root in _OWN_PACKAGES.values()] if _is_ours([project]) else []


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def wrong_code(sides: Sequence[Side], facts: Sequence[Mapping[str, Any]]) -> str:
    """Return why the processes measured other code than was asked for, in a sentence; "" when all
    is well.

    Args:
        facts: what each process says of itself; ``files`` are those that code was loaded from.
    """
    for side, fact in zip(sides, facts, strict=True):
        place = side.place
        if place.tree and place.state is not None and place.state != code_state(place.tree):
            return f"{place.label} was not measured: files of it were edited meanwhile"
        for file in fact["files"]:
            if why := _misplaced(side.place, file):
                return f"{side.place.label} was not measured: {why}"
    a, b = (side.place for side in sides)
    if a.tree is None or b.tree is None or a.tree == b.tree:
        return ""
    of_trees = [
        file
        for side, fact in zip(sides, facts, strict=True)
        for file in fact["files"]
        if side.place.tree is not None and is_code_of(side.place.tree, Path(file))
    ]
    if not of_trees and _config(a, facts[0]) == _config(b, facts[1]):
        return (
            f"{a.label} and {b.label} load no code of the repository, and their configs are the "
            "same: a duet of a thing with itself shows nothing"
        )
    return ""


def _config(place: Place, facts: Mapping[str, Any]) -> str:
    """The config of a side, whatever the folder that its tree is in."""
    text = json.dumps(facts["config"], sort_keys=True)
    return text if place.tree is None else text.replace(json.dumps(str(place.tree))[1:-1], "")


def same_code(a: Place, b: Place) -> str:
    """Return why two places cannot differ, in a sentence; "" when they may."""
    if a.commit is None or a.commit != b.commit:
        return ""
    if a.label == b.label:
        return f"both sides are {a.label}, so there is nothing to compare"
    return f"{a.label} and {b.label} are the same commit, so there is nothing to compare"


def _misplaced(place: Place, file: str) -> str:
    """Return why a file should not have been loaded at ``place``, "" when it is fine."""
    if place.tree is None or not file:
        return ""
    path = Path(file).resolve()
    if is_code_of(place.tree, path):
        return ""
    if place.origin is not None and is_code_of(place.origin, path):
        return f"{path} was loaded, a file of your own tree"
    return _other_copy(place, path, place.tree)


def _other_copy(place: Place, path: Path, tree: Path) -> str:
    """Return why a file from elsewhere hides code of the revision, "" when there is none."""
    on_path = [Path(entry) for entry in place.sys_path if is_code_of(tree, Path(entry))]
    name = _import_path(path, place.sys_path)
    if name in _OWN_PACKAGES and not _is_ours([tree, *on_path]):
        return ""
    module = name.replace("/", ".")
    said = f"{module} was loaded from {path.parent}, though the revision has its own"
    if any(_holds(root, name) for root in on_path):
        return f"{said}; uninstall the other one"
    # Of a project that is not on the path, a copy has to be installed. What lies in an environment
    # for this commit alone was installed from it.
    if place.packages is not None and place.packages.resolve() in path.parents:
        return ""
    for root in place.roots:
        if _holds(root, name):
            own = place.tree == place.origin
            fix = "install that one editable" if own else "let `setup` install that one"
            return f"{said} in {root.relative_to(tree)}; {fix}"
    return ""


def _holds(root: Path, name: str) -> bool:
    return _is_package(root / name) or (root / f"{name}.py").is_file()


def _import_path(path: Path, entries: Sequence[str]) -> str:
    """The package, or the module, that one imports to get at a file; with the namespace that it is
    in, as in ``acme/search``."""
    folder, name = path.parent, path.name.partition(".")[0]
    while _is_package(folder):
        folder, name = folder.parent, folder.name
    known = {Path(entry).resolve() for entry in entries}
    top, whole = folder, name
    while top not in known and top.name.isidentifier():
        top, whole = top.parent, f"{top.name}/{whole}"
    return whole if top in known else name
