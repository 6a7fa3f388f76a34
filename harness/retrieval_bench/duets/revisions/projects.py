"""Which folders of a tree are projects, and where the packages of a project lie."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrieval_bench.duets.revisions.dependencies import is_project, read_toml, table_of
from retrieval_bench.duets.revisions.repository import Repository

_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_BUILDERS = ("hatch", "maturin", "pdm", "poetry", "scikit-build", "setuptools", "uv")
_FOLDERS = re.compile(r"(?:package_dir|where)\s*=\s*(\{[^}]*\}|.*)")
_WORD = re.compile(r"[\w./-]+")


def projects_around(tree: Path, folder: Path) -> tuple[Path, ...]:
    """The project that ``folder`` belongs to, when it is not all of ``tree``; then ``tree``."""
    for project in (folder, *folder.parents):
        if project == tree:
            break
        if any((project / name).is_file() for name in _FILES):
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
    folders = {tree / Path(file).parent for file in repository.files(commit, _FILES)}
    projects = sorted(folder for folder in folders if is_project(folder))
    return tuple(dict.fromkeys(root for project in projects for root in _sources(project)))


def _sources(project: Path) -> Iterator[Path]:
    """The folder of a project, its ``src``, and what its settings name for packages to lie in."""
    tool = table_of(read_toml(project / "pyproject.toml") or {}, "tool")
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
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if "exclude" not in name:
                yield from _texts(one)
