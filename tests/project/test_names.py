"""READMEs and recipes name modules, objects and files that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("*/README.md"))]
PAGES += sorted((ROOT / "tests").glob("*/**/README.md"))
PRODUCT = ROOT / "harness/retrieval_bench"
PACKAGES = {folder.name for folder in PRODUCT.iterdir() if folder.is_dir()}
BASES = (
    *(".", "harness", "harness/retrieval_bench", "retrievers/retrieval_bench_retrievers"),
    *("tests", "tests/kernel", "tests/golden"),
)
"""Folders that names of files are counted from, beside that of the page."""
PLACEHOLDERS = re.compile(r"[A-Z]{4,}")
MADE = {"results/runs", "runs/", "duets/", "reference/", "baselines/"}
"""Folders that commands make."""

_QUOTED = re.compile(r"`([\w./-]+)`")
_NAME = re.compile(r"[a-z_]\w*(\.\w+)+")


def _quoted(page: Path) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    yield from dict.fromkeys(_QUOTED.findall(text))


def _objects(page: Path) -> Iterator[str]:
    """Give the dotted names of the product, in full."""
    for quoted in _quoted(page):
        first = quoted.partition(".")[0]
        if _NAME.fullmatch(quoted) and not quoted.endswith((".md", ".py", ".txt")):
            if first in PACKAGES:
                yield f"retrieval_bench.{quoted}"
            elif first.startswith("retrieval_bench"):
                yield quoted


def _files(page: Path) -> Iterator[str]:
    for quoted in _quoted(page):
        if ("/" in quoted or quoted.endswith(".py")) and quoted not in MADE:
            yield quoted


def _exists(name: str) -> bool:
    """Say whether a module, or an object in one, has this name."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        module = ".".join(parts[:n])
        try:
            place = import_module(module)
        except ModuleNotFoundError:
            continue
        return n == len(parts) or (n == len(parts) - 1 and _defined(place, parts[n]))
    return False


def _defined(module: ModuleType, name: str) -> bool:
    """Say whether a module defines a name, or a package hands it on; what a module imports from
    elsewhere is not where a reader should look."""
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    here = re.search(rf"^((class|def) {name}\b|{name}\b.*=)", text, re.MULTILINE)
    return here is not None or (hasattr(module, "__path__") and hasattr(module, name))


def _is_there(file: str, page: Path) -> bool:
    if placeholder := PLACEHOLDERS.search(file):
        file = file[: placeholder.start()].rpartition("/")[0]
    if any((ROOT / base / file).exists() for base in (page.parent, *BASES)):
        return True
    return "/" not in file and any((ROOT / "tests").rglob(file))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    assert not [name for name in _objects(page) if not _exists(name)]
    assert not [file for file in _files(page) if not _is_there(file, page)]


def test_a_name_that_does_not_exist_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(
        "`core.ranking.top_k`, `core.ranking.bottom_k`, `core.ranking.Hit`,\n"
        "`retrieval_bench.bench`, `cli.nothing`, `tests/builders/`,\n"
        "`tests/nothing.py`, `tests/kernel/ROOM/test_MODULE.py`\n```\n`cli.too`\n```\n",
        encoding="utf-8",
    )
    missing = [name for name in _objects(page) if not _exists(name)]
    names = ("core.ranking.bottom_k", "core.ranking.Hit", "cli.nothing")
    assert missing == [f"retrieval_bench.{name}" for name in names]
    assert [file for file in _files(page) if not _is_there(file, page)] == ["tests/nothing.py"]
