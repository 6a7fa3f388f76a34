"""A test that imports an optional package is skipped where it is missing, by one mechanism."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import optional
from tests.builders.imports import CAPABILITIES

TESTS = Path(__file__).parents[1]
ENV = os.environ | {"PYTHONPATH": str(TESTS.parent)}
MODULES = sorted(TESTS.rglob("*.py"))
ALWAYS = {
    # The project, what it always needs, and what runs the tests.
    *("retrieval_bench", *(path.name for path in CAPABILITIES), "retrieval_bench_retrievers"),
    *("tests", "argcomplete", "hypothesis"),
    *("langchain_core", "numpy", "py3langid", "pydantic", "pytest", "rank_bm25", "rich", "scipy"),
    *("Stemmer", "threadpoolctl", "yaml"),
    # The layers `dev` and `bm25s`, without which `make check` runs nothing.
    *(
        "bm25s",
        "httpx2",
        "ir_datasets",
        "ir_measures",
        "jmespath",
        "jsonschema",
        "langchain_classic",
    ),
    *("vl_convert", "pandas", "pytrec_eval", "pytrec_eval_ext", "ranx", "sklearn", "statsmodels"),
}
_LOADERS = ("Lazily", "import_module", "importorskip")


def _imports(node: ast.AST) -> Iterator[str]:
    """Give the packages that the code below ``node`` loads by name."""
    for part in ast.walk(node):
        names: list[str] = []
        if isinstance(part, ast.Import):
            names = [alias.name for alias in part.names]
        elif isinstance(part, ast.ImportFrom) and not part.level:
            names = [part.module or ""]
        elif isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in _LOADERS:
            names = list(_texts(part))
        yield from (name.partition(".")[0] for name in names)


def _texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _optional(node: ast.AST) -> set[str]:
    return set(_imports(node)) - ALWAYS - set(sys.stdlib_module_names)


def _needed(nodes: list[ast.expr]) -> set[str]:
    """Give the packages that the markers in ``nodes`` name."""
    packages: set[str] = set()
    for call in (part for node in nodes for part in ast.walk(node)):
        if isinstance(call, ast.Attribute) and call.attr == "dense":
            packages |= {*optional.LAYERS["dense"], *optional.LAYERS["dense-light"]}
        elif isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.needs":
            packages |= {text for arg in call.args for text in _texts(arg)}
    return packages


def _unguarded(tree: ast.Module) -> dict[str, set[str]]:
    """Give the optional packages that a test, or a helper of its module, loads without a marker."""
    everywhere = _needed(
        [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        ]
    )
    somewhere = _needed(_expressions(tree))
    faults: dict[str, set[str]] = {}
    for node in tree.body:
        name = getattr(node, "name", "the head of the module")
        if name.startswith(("test_", "Test")):
            markers = [m for part in ast.walk(node) for m in getattr(part, "decorator_list", ())]
            lacking = _optional(node) - everywhere - _needed(markers)
        else:
            lacking = _optional(node) - somewhere
        if lacking:
            faults[name] = lacking
    return faults


def _unguarded_helpers(tree: ast.Module) -> dict[str, set[str]]:
    """Give the helpers that load optional packages where no test of the module is marked."""
    helpers = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    files = {name: TESTS.parent / f"{name.replace('.', '/')}.py" for name in helpers}
    loaded = {
        name: packages
        for name, file in files.items()
        if name.startswith("tests.") and name != "tests.optional" and file.is_file()
        if (packages := _optional_in(file))
    }
    return {} if loaded and _needed(_expressions(tree)) else loaded


def _expressions(tree: ast.Module) -> list[ast.expr]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.expr)]


@cache
def _optional_in(path: Path) -> set[str]:
    return _optional(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(TESTS)))
def test_optional_imports_stand_behind_the_marker(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    packages = _optional_in(path)
    assert packages <= set(optional.OPTIONAL), "add the package to tests/optional.py"
    if path.stem.startswith("test_"):
        tree = ast.parse(text)
        assert not packages or not _unguarded(tree), "mark them with pytest.mark.needs(package)"
        assert not _unguarded_helpers(tree), "so with tests whose helpers load a package"
        fixtures = path.with_name("conftest.py")
        if fixtures.exists() and (loaded := _optional_in(fixtures)):
            assert loaded <= _needed(_expressions(tree))
    if path != Path(__file__):
        assert "importorskip" not in text, "use pytest.mark.needs(package)"


def test_a_test_without_its_marker_is_seen() -> None:
    code = (
        "import pytest\nfrom tests.lazily import Lazily\nllama = Lazily('llama_index.core')\n"
        "def test_a():\n    import haystack\n"
        "@pytest.mark.needs('haystack')\ndef test_b():\n    import haystack\n"
        "@pytest.mark.dense\nclass TestC:\n    def test_c(self):\n        import torch.nn\n"
    )
    assert _unguarded(ast.parse(code)) == {
        "the head of the module": {"llama_index"},
        "test_a": {"haystack"},
    }
    assert _unguarded(ast.parse(f"pytestmark = pytest.mark.needs('llama_index')\n{code}")) == {
        "test_a": {"haystack"}
    }


def test_the_end_of_a_run_says_what_adds_the_skipped_tests() -> None:
    reasons = [
        *["not installed: haystack"] * 3,
        "not installed: llama_index, sentence_transformers",
        "not installed: chromadb, langchain_chroma",
        *["BENCH_DATA is not set: no real data on this machine"] * 12,
        "root may write all",
    ]
    assert optional.summary(reasons) == [
        "18 tests were skipped; this would add them:",
        "  12  make test BENCH_DATA=FOLDER, the folder of real data",
        "   3  make tools",
        "   1  make setup LAYERS=dense and make tools",
        "   1  .venv/bin/pip install chromadb langchain-chroma",
        "   1  nothing: not for this machine or this retriever (pytest -rs says why)",
    ]
    assert optional.summary([]) == []


@pytest.mark.slow
def test_a_later_run_takes_only_what_an_earlier_one_skipped(tmp_path: Path) -> None:
    """Which is how the gate adds the tests of other tools and of real data to a newcomer's run."""
    (tmp_path / "test_some.py").write_text(
        "import pytest\ndef test_a(): pass\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_b(n):\n    if n == 2: pytest.skip('no')\n",
        encoding="utf-8",
    )
    run = [*(sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "--rootdir", ".")]
    run += ["-p", "no:langsmith_plugin", "test_some.py"]
    again = ["--skipped-before", f".pytest_cache/v/{optional.SKIPPED}"]
    first, later = (
        subprocess.run(
            [*run, *more], cwd=tmp_path, env=ENV, check=True, text=True, capture_output=True
        )
        for more in ([], again)
    )
    assert "2 passed, 1 skipped" in first.stdout
    assert "1 skipped, 2 deselected" in later.stdout


def test_a_missing_package_is_a_reason_and_one_that_is_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(optional, "find_spec", lambda name: None if name == "haystack" else name)
    optional.installed.cache_clear()
    try:
        assert optional.missing(["faiss", "haystack"]) == "not installed: haystack"
        assert optional.missing(["faiss"]) is None
    finally:
        optional.installed.cache_clear()
