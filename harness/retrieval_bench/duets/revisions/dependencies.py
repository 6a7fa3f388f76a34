"""Projects of a tree, where their packages lie, and what they need: to tell whether two
trees need the same, and what to install.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from retrieval_bench.duets.revisions.trees import Repository

_FILES = (
    *("setup.py", "setup.cfg", "requirements*.txt", "requirements*.in", "requirements/*.txt"),
    *("requirements/*.in", "constraints*.txt", "*.lock", "pylock*.toml", "Pipfile", "Pipfile.lock"),
)
"""Files that count as they are; of pyproject.toml only what is about dependencies does."""

_PROJECT_KEYS = ("dependencies", "optional-dependencies", "requires-python", "dynamic")

# What pip takes for a file, though it reads as the name of a package.
_ARCHIVE = re.compile(r"\.(whl|zip|tar|t[bglx]z)\b", re.IGNORECASE)
_OPTION_WITHOUT_PATH = re.compile(
    r"(-i|--index-url|--extra-index-url)[\s=]\s*https?://\S+"
    r"|--(no-binary|only-binary|trusted-host)[\s=]\s*[^\s/]+"
    r"|--(no-index|pre|prefer-binary|require-hashes)"
)
_COMMENT = re.compile(r"(^|\s+)#.*$", re.MULTILINE)
_HASH = re.compile(r"\s--hash[\s=]\s*\S+")


def fingerprint(tree: Path, projects: Sequence[Path]) -> dict[str, str]:
    """Return the fingerprint of every file in ``tree`` that says what is needed: its path, and a
    hash of what it says.

    Args:
        projects: folders in ``tree`` that are looked at.
    """
    fingerprint = {}
    for project in projects:
        paths = {path for pattern in _FILES for path in project.glob(pattern) if path.is_file()}
        for path in sorted(paths):
            fingerprint[path.relative_to(tree).as_posix()] = _hash(path.read_bytes())
        path = project / "pyproject.toml"
        if path.is_file():
            said = _about_dependencies(path)
            if said:
                content = json.dumps(said, sort_keys=True, default=str).encode()
                fingerprint[path.relative_to(tree).as_posix()] = _hash(content)
    return fingerprint


def _about_dependencies(path: Path) -> dict[str, Any]:
    project, poetry = table(path, "project"), table(path, "tool", "poetry")
    parts = {
        "project": {key: project[key] for key in _PROJECT_KEYS if key in project},
        "build-system": table(path, "build-system"),
        "groups": table(path, "dependency-groups"),
        "poetry": {k: poetry[k] for k in ("dependencies", "extras", "group") if k in poetry},
        "unreadable": _hash(path.read_bytes()) if _toml(path) is None else "",
    }
    return {name: part for name, part in parts.items() if part}


@dataclass(frozen=True, slots=True)
class Needs:
    """Packages that pip is to install for a project.

    Attributes:
        requirements: as in a requirements file.
        files, constraints: files for the options ``-r`` and ``-c`` of pip.
        builds: whether only the project itself can tell, so that it has to be built.
        extras: names of optional dependencies that are in ``requirements``, or that the project is
            to be built with.
        self_contained: whether all that matters is in the files of :func:`fingerprint`: nothing is
            built, and no path or URL leads to other files.
    """

    requirements: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    constraints: tuple[Path, ...] = ()
    builds: bool = False
    extras: tuple[str, ...] = ()
    self_contained: bool = True

    @property
    def nothing(self) -> bool:
        """True if there is nothing to install."""
        return not (self.requirements or self.files or self.builds)


def needs(project: Path, extras: Sequence[str] | None, own: Path) -> Needs:
    """Read what the files of ``project`` ask for.

    Args:
        extras: names of optional dependencies to install; None = those whose packages are all
            installed in the interpreter that runs now, by the names of ``project`` or, for an extra
            of the same name, by those of ``own``. Others were not in use either.
        own: the same folder in the user's tree.
    """
    declared = table(project / "pyproject.toml", "project")
    # Without [project] it is setup.py, setup.cfg or a build backend that knows.
    builds = bool({"dependencies", "optional-dependencies"} & {*declared.get("dynamic", [])}) or (
        not declared and is_project(project)
    )
    optional, theirs = _optional(project), _optional(own)
    if extras is None:
        used = {name for groups in (optional, theirs) for name in groups if _in_use(groups[name])}
        chosen = [name for name in optional if name in used]
    else:
        chosen = [canonicalize_name(name) for name in extras]
    requirements: list[str] = []
    if not builds and declared:
        requirements = [str(item) for item in declared.get("dependencies", [])]
        name = canonicalize_name(str(declared.get("name", "")))
        requirements += _expanded(optional, chosen, name)
    files = tuple(path for path in [project / "requirements.txt"] if path.is_file())
    constraints = tuple(path for path in [project / "constraints.txt"] if path.is_file())
    texts = [path.read_text("utf-8", "replace") for path in (*files, *constraints)]
    by_name = all(map(_by_names, (*texts, *requirements)))
    return Needs(
        tuple(requirements), files, constraints, builds, tuple(chosen), not builds and by_name
    )


def _by_names(text: str) -> bool:
    """Return whether lines for pip ask for packages by name and version only, so that whoever has
    the same lines gets the same."""
    lines = _COMMENT.sub("", "\n".join(text.splitlines())).replace("\\\n", " ")
    return all(_is_by_name(_HASH.sub("", line).strip()) for line in lines.split("\n"))


def _is_by_name(line: str) -> bool:
    if not line or _OPTION_WITHOUT_PATH.fullmatch(line):
        return True
    wanted = _requirement(line)
    return wanted is not None and wanted.url is None and not _ARCHIVE.search(wanted.name)


def _requirement(line: str) -> Requirement | None:
    """None where it is none of a package by its name: an option, a path, a URL."""
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def unknown_extras(project: Path, extras: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the ``extras`` that ``project`` does not declare, and all that it does declare; none
    are unknown where its files do not tell."""
    said, declared = table(project / "pyproject.toml", "project"), list(_optional(project))
    if not said or "optional-dependencies" in said.get("dynamic", []):
        return [], declared
    return [name for name in extras if canonicalize_name(name) not in declared], declared


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
        or (old.is_file() and bool(_INSTALLS.search(old.read_text("utf-8", "replace"))))
    )


def table(path: Path, *names: str) -> dict[str, Any]:
    """A table of a TOML file, empty where it has none or cannot be read."""
    content: Any = _toml(path)
    for name in names:
        content = content.get(name) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}


def _toml(path: Path) -> dict[str, Any] | None:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_BUILDERS = ("hatch", "maturin", "pdm", "poetry", "scikit-build", "setuptools", "uv")
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
    for name in ("setup.py", "setup.cfg"):
        if (project / name).is_file():
            text = (project / name).read_text("utf-8", "replace")
            named += [word for found in _FOLDERS.findall(text) for word in _WORD.findall(found)]
    yield project
    for name in named:
        folder = Path(os.path.normpath(project / name))
        if project in folder.parents and _is_folder(folder):
            # A package may be named, or the place that it is in.
            while folder != project and (folder / "__init__.py").is_file():
                folder = folder.parent
            yield folder


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a text of any length is no name of a file
        return False


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
