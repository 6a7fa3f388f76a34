"""The way from the name of a module, or of a file, to the module."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from retrieval_bench.core.calls.foreign import foreign_code, message_of
from retrieval_bench.core.errors import ConfigError, PluginError


def find_file(name: str, base: Path | None) -> tuple[Path | None, list[Path]]:
    """The file that ``name`` means, None when there is none; and the places that were looked at.

    Args:
        base: folder that a relative name is tried against first.

    Raises:
        ConfigError: a name that no file can have, or a folder that may not be read.
    """
    with looked_up(name):
        given = Path(name).expanduser()
        tried = [given] if given.is_absolute() or base is None else [base / given, given]
        return next((path for path in tried if path.is_file()), None), tried


@contextmanager
def looked_up(name: str | Path) -> Iterator[None]:
    """Look for a file inside; tell of a name that no file can have."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as problem:  # RuntimeError: an unknown home
        shown = str(name) if len(str(name)) <= 100 else f"{str(name)[:100]}..."
        raise ConfigError(
            f"no file can be looked for under {shown!r}",
            where=getattr(problem, "strerror", None) or str(problem),
            accepted="the path of a file that may be read",
        ) from None


def user_path(given: str | Path) -> Path:
    """``given``, in which ``~`` and ``~NAME`` at the beginning are home folders.

    Raises:
        ConfigError: of a user who has none here.
    """
    try:
        return Path(given).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"no home folder is known of {Path(given).parts[0]!r}",
            where=str(given),
            accepted="~ for your own, ~NAME for that of a user of this machine",
            fix="correct the name, or begin a path that starts here with ./",
        ) from None


def load_module(name: str, base: Path | None) -> Any:
    """The module ``name``, in ``base`` or the current folder, too.

    Raises:
        PluginError: there is none, or it cannot be imported.
    """
    _make_importable(base)
    try:
        return _imported(name)
    except PluginError as raised:
        problem = raised.__cause__
        if not isinstance(problem, ModuleNotFoundError) or problem.name is None:
            raise
        missing = name == problem.name or name.startswith(f"{problem.name}.")
        if not missing:
            raise
        raise PluginError(
            f"no module named {problem.name!r}, needed for {name!r}",
            accepted="a module that Python can import from here, or a file",
            fix="install it, or name the file: ./path/to/file.py:attribute",
        ) from problem


def _imported(name: str) -> Any:
    with foreign_code(partial(_unimportable, name)):
        return importlib.import_module(name)


def _unimportable(name: str, problem: BaseException) -> PluginError:
    return PluginError(f"importing {name!r} failed with {message_of(problem)}")


def refuse_namesake(module: Any, name: str, attribute: str, base: Path | None) -> None:
    """Python keeps one module of a name: a second one, beside another config, is not that."""
    if base is None:
        return
    stem = base.joinpath(*name.split("."))
    beside = next((p for p in (stem / "__init__.py", Path(f"{stem}.py")) if p.is_file()), None)
    loaded = getattr(module, "__file__", None)
    if beside is None or (loaded and Path(loaded).resolve() == beside.resolve()):
        return
    raise PluginError(
        f"{name!r} means two modules: {loaded or 'one without a file'} is loaded, {beside} is "
        "beside the config",
        accepted="a module of another name, or a file",
        fix=f"name the file: ./{beside.relative_to(base).as_posix()}:{attribute}",
    )


def _make_importable(base: Path | None) -> None:
    # At the end of the path: what is installed comes first, as everywhere else in Python.
    for folder in (str(base) if base else None, str(Path.cwd())):
        if folder and folder not in sys.path:
            sys.path.append(folder)


def load_file(name: str, base: Path | None) -> Any:
    """The module in a file; one that was loaded before is not loaded again.

    Raises:
        ConfigError, PluginError: there is no such file, or it cannot be imported.
    """
    path, tried = find_file(name, base)
    if path is None:
        raise PluginError(
            f"no file {name!r}", kind="no-file", where=", ".join(str(p.absolute()) for p in tried)
        )
    # Hashed, since a/b.py and a_b.py would read the same with other signs for the separators.
    identity = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    module_name = f"_harness_file_{identity[:16]}_{path.stem}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    _make_importable(base)
    if (packaged := _in_its_package(path)) is not None:
        return packaged
    return _executed(module_name, path)


def _executed(name: str, file: Path, places: list[str] | None = None) -> Any:
    """The module in ``file`` under ``name``; with ``places`` a package whose modules lie there."""
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=places)
    if spec is None or spec.loader is None:
        raise PluginError(f"{file} cannot be read as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with foreign_code(partial(_unimportable, str(file))):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # half made
        raise
    return module


def _in_its_package(path: Path) -> Any:
    """The module in ``path`` as a part of its package, so that its relative imports work; None
    where it is in none that can be loaded, or another one of that name is loaded already."""
    path = path.resolve()
    folders: list[Path] = []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folders.insert(0, folder)
        folder = folder.parent
    names = [*(each.name for each in folders), path.stem]
    if not folders or not all(name.isidentifier() for name in names):
        return None
    loaded = sys.modules.get(names[0])
    if loaded is None:
        # By its place: one of the same name may be installed, and this file was named.
        try:
            for depth, each in enumerate(folders, start=1):
                _executed(".".join(names[:depth]), each / "__init__.py", [str(each)])
        except PluginError:  # the file may do without its package
            return None
    elif str(folders[0]) not in getattr(loaded, "__path__", ()):
        return None
    return _imported(".".join(names))
