"""Projects of a tree, where their packages lie, and what they need: to tell whether two
trees need the same, and what to install.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_duet.revisions.trees import Repository

_LISTS = tuple(
    f"{name}.{end}"
    for name in ("requirements*", "requirements/*", "constraints*")
    for end in ("txt", "in")
)
_GIVEN = (("--requirement", "requirements.txt"), ("--constraint", "constraints.txt"))
_LOCKS = ("*.lock", "pylock*.toml", "Pipfile", "Pipfile.lock")
_BUILDING = ("setup.py", "setup.cfg")
_PROJECT_FILES = ("pyproject.toml", *_BUILDING)


@dataclass(frozen=True, slots=True)
class Needs:
    """What pip is to install for a project; equal where it would install the same.

    Attributes:
        project: that says so; it does not count.
        requirements: as in a requirements file.
        words: for pip, run in the folder of the project: the requirements and constraints files.
        lists: text of those files, and of all that they may name, by the path in the tree.
        extras: names of optional dependencies that are in ``requirements``, or that the project is
            to be built with.
        building: where only the project itself can tell, so that it has to be built: text of what
            it does so by; else none.
    """

    project: Path = field(compare=False)
    requirements: tuple[str, ...]
    words: tuple[str, ...]
    lists: Mapping[str, str]
    extras: tuple[str, ...]
    building: Mapping[str, str]

    @classmethod
    def of(
        cls, projects: Sequence[Path], extras: Sequence[str] | None, others: Sequence[Path]
    ) -> Needs:
        """What the innermost of ``projects`` that has files about it asks for.

        Args:
            extras: names of optional dependencies to install; None = those whose packages are all
                installed in the interpreter that runs now, by the names of the project or, for an
                extra of the same name, by those of the project in the other tree. Others were not
                in use either.
            others: the projects in the other tree.
        """
        project = declaring(projects)
        declared = table(project / "pyproject.toml", "project")
        # Without [project] it is setup.py, setup.cfg or a build backend that knows.
        builds = not declared and is_project(project)
        builds |= not {"dependencies", "optional-dependencies"}.isdisjoint(_dynamic(declared))
        optional, theirs = _optional(project), _optional(declaring(others))
        if extras is None:
            chosen = [n for n in optional if _in_use(optional[n]) or _in_use(theirs.get(n, []))]
        else:
            chosen = [canonicalize_name(name) for name in extras]
        requirements = []
        if not builds:
            requirements = [str(item) for item in declared.get("dependencies", [])]
            name = canonicalize_name(str(declared.get("name", "")))
            requirements += _expanded(optional, chosen, name)
        given = [option for option in _GIVEN if (project / option[1]).is_file()]
        # What is built may read them, too.
        lists = _texts_of(projects, _LISTS) if given or builds else {}
        words = tuple(word for option in given for word in option)
        building = _building(project) if builds else {}
        return cls(project, tuple(requirements), words, lists, tuple(chosen), building)

    @property
    def nothing(self) -> bool:
        """True if there is nothing to install."""
        return not (self.requirements or "--requirement" in self.words or self.building)


def declaring(projects: Sequence[Path]) -> Path:
    """The innermost folder that says what to install."""
    names = (*_PROJECT_FILES, "requirements.txt")
    return next((p for p in projects if any((p / name).is_file() for name in names)), projects[-1])


def _building(project: Path) -> dict[str, str]:
    tables = ("project",), ("build-system",), *(("tool", builder) for builder in _BUILDERS)
    said = [table(project / "pyproject.toml", *names) for names in tables]
    files = {path.name: _text(path) for path in _matching(project, _BUILDING)}
    return {"pyproject.toml": json.dumps(said, sort_keys=True, default=str)} | files


def other_locks(projects: Sequence[Path], others: Sequence[Path]) -> list[str]:
    """Lock files that are others in two trees, as paths within them.

    Args:
        projects: folders of one tree that are looked at, the last of which is all of it.
        others: those of the other.
    """
    there, here = _texts_of(projects, _LOCKS), _texts_of(others, _LOCKS)
    return sorted(name for name in {*here, *there} if here.get(name) != there.get(name))


def _texts_of(projects: Sequence[Path], patterns: Sequence[str]) -> dict[str, str]:
    """The files in any of the folders, the last of which is the tree, by their paths in that."""
    paths = [path for project in projects for path in _matching(project, patterns)]
    return {path.relative_to(projects[-1]).as_posix(): _text(path) for path in paths}


def _matching(folder: Path, patterns: Sequence[str]) -> list[Path]:
    paths = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return sorted(paths)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def _requirement(line: str) -> Requirement | None:
    """None where it is none of a package by its name: a path, a URL."""
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def check_extras(project: Path, extras: Iterable[str], label: str) -> None:
    """Refuse ``extras`` that ``project`` does not declare, as far as its files tell.

    Raises:
        ConfigError: there are such.
    """
    said, declared = table(project / "pyproject.toml", "project"), _optional(project)
    unknown = [name for name in extras if canonicalize_name(name) not in declared]
    if unknown and said and "optional-dependencies" not in _dynamic(said):
        raise ConfigError(
            f"extras {', '.join(unknown)}, which {label} does not have",
            where=str(project / "pyproject.toml"),
            accepted=", ".join(declared) or "(none)",
        )


def _dynamic(declared: Mapping[str, Any]) -> list[str]:
    return list(declared.get("dynamic", []))


def _expanded(optional: Mapping[str, list[str]], names: Sequence[str], own: str) -> list[str]:
    """Requirements of the extras ``names``; an extra may name others as ``own[other]``."""
    expanded: list[str] = []
    names = list(names)
    for name in names:  # grows meanwhile
        for line in optional.get(name, []):
            wanted = _requirement(line)
            if wanted and wanted.extras and canonicalize_name(wanted.name) == own:
                others = set(map(canonicalize_name, wanted.extras)) - {*names}
                names += [other for other in optional if other in others]
            else:
                expanded.append(line)
    return expanded


def _in_use(lines: Iterable[str]) -> bool:
    """Return whether the running interpreter has every package of an extra, of whatever version.

    What is needed under a condition only does not count, and an extra without anything else is not
    in use."""
    wanted = filter(None, map(_requirement, lines))
    packages = [item.name for item in wanted if item.marker is None]
    return bool(packages) and all(map(is_distributed, packages))


def is_distributed(package: str) -> bool:
    """Return whether the running interpreter has a package, by the name it is installed under."""
    try:
        metadata.distribution(package)
    except (metadata.PackageNotFoundError, ValueError):
        return False
    return True


def _optional(project: Path) -> dict[str, list[str]]:
    groups = table(project / "pyproject.toml", "project", "optional-dependencies")
    return {
        canonicalize_name(name): [str(item) for item in value]
        for name, value in groups.items()
        if isinstance(value, list)
    }


def is_project(folder: Path) -> bool:
    """Return whether a folder says how it is installed; many have such files for settings of other
    tools only."""
    path, old = folder / "pyproject.toml", folder / "setup.cfg"
    return (
        bool(table(path, "project") or table(path, "build-system"))
        or (folder / "setup.py").is_file()
        or (old.is_file() and bool(_INSTALLS.search(_text(old))))
    )


def table(path: Path, *names: str) -> dict[str, Any]:
    """A table of a TOML file, empty where it has none or cannot be read."""
    try:
        content: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    for name in names:
        content = content.get(name) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}


_BUILDERS = ("flit", "hatch", "maturin", "pdm", "poetry", "scikit-build", "setuptools", "uv")
_INSTALLS = re.compile(r"^\[(options|metadata)\]", re.MULTILINE)
_FOLDERS = re.compile(r"(?:package_dir|where)\s*=\s*(\{[^}]*\}|.*)")
_WORD = re.compile(r"[\w./-]+")


def projects_around(tree: Path, folder: Path) -> tuple[Path, ...]:
    """The project that ``folder`` belongs to, when it is not all of ``tree``; then ``tree``."""
    for project in (folder, *folder.parents):
        if project == tree:
            break
        if any((project / name).is_file() for name in _PROJECT_FILES):
            return project, tree
    return (tree,)


def package_roots(repository: Repository, commit: str | None, tree: Path) -> tuple[Path, ...]:
    """Folders in ``tree`` that packages of any of its projects lie in.

    Only projects that can be installed count, since only of these there may be an installed copy.
    A folder ``numpy`` or ``yaml`` among examples, tests or data is no sign of one, and numpy that
    is loaded from elsewhere is then not the wrong one.

    Args:
        commit: whose files ``tree`` holds, None for the user's own tree as it is.
    """
    folders = {tree / Path(file).parent for file in repository.files(commit, _PROJECT_FILES)}
    projects = sorted(folder for folder in folders if is_project(folder))
    return tuple(dict.fromkeys(root for project in projects for root in _sources(project)))


def _sources(project: Path) -> Iterator[Path]:
    """The folder of a project, its ``src``, and what its settings name for packages to lie in."""
    tool = table(project / "pyproject.toml", "tool")
    named = ["src", *(text for builder in _BUILDERS for text in _texts(tool.get(builder)))]
    for path in _matching(project, _BUILDING):
        named += [word for found in _FOLDERS.findall(_text(path)) for word in _WORD.findall(found)]
    yield project
    for name in named:
        folder = Path(os.path.normpath(project / name))
        if project in folder.parents and os.path.isdir(folder):  # noqa: PTH112 - of any length
            # A package may be named, or the place that it is in.
            while folder != project and (folder / "__init__.py").is_file():
                folder = folder.parent
            yield folder


def _texts(value: Any) -> Iterator[str]:
    """All texts in settings, but for those on what to leave out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name, one in value.items():
            if "exclude" not in name:
                yield from _texts(one)
