"""Code says things by their names: no dialect among variables, no riddle before a docstring.

``found``, ``one`` and ``told`` are what a variable is called when nobody looked for its name.
"What" and bare fragments ("Of a duet.") are how a docstring begins when nobody said what it is.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PRODUCT = ("harness/retrieval_bench", "retrievers/retrieval_bench_retrievers")
DIALECT = ("found", "one", "told")
FEWER_THAN = 100
"""Functions in which a variable or parameter may have such a name."""

_LITTLE = """
Of As From With At When That By In On Over Without Between After Where Why Who Whether Which Those
"""
FRAGMENTS = frozenset(_LITTLE.split())
SHARE = 0.03
"""Of all docstrings: at most so many begin with "What", and so many with a fragment."""

_Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


@cache
def _trees() -> tuple[ast.Module, ...]:
    paths = sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in paths)


@pytest.mark.parametrize("name", DIALECT)
def test_a_variable_has_the_name_of_its_thing(name: str) -> None:
    assert _bindings(_trees())[name] < FEWER_THAN


def test_docstrings_do_not_begin_with_what() -> None:
    openers = Counter(_openers(_trees()))
    assert openers["What"] < SHARE * openers.total()


def test_docstrings_do_not_begin_with_a_fragment() -> None:
    openers = Counter(_openers(_trees()))
    fragments = {word: n for word, n in openers.items() if word in FRAGMENTS}
    assert sum(fragments.values()) < SHARE * openers.total(), fragments


def test_what_is_counted() -> None:
    tree = ast.parse(
        'def _f(one):\n    """Of a duet."""\n    for one in one: found = one\n'
        "    return [one for one in found], lambda told: told\n"
        'class C:\n    """What it is."""\n'
    )
    assert _bindings([tree]) == {"one": 1, "found": 1, "told": 1}
    assert Counter(_openers([tree])) == {"Of": 1, "What": 1}


def _bindings(trees: Iterable[ast.Module]) -> Counter[str]:
    """Count the functions, classes and modules that bind each name of the dialect."""
    counts: Counter[str] = Counter()
    for tree in trees:
        for scope in (tree, *(node for node in ast.walk(tree) if _opens_scope(node))):
            counts.update(set(_bound(scope)) & set(DIALECT))
    return counts


def _opens_scope(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef)


def _bound(scope: ast.AST) -> Iterator[str]:
    """Give the names that ``scope`` binds itself, in comprehensions, too."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if isinstance(node, ast.arg):
            yield node.arg
        if not _opens_scope(node):
            yield from _bound(node)


def _openers(trees: Iterable[ast.Module]) -> Iterator[str]:
    """Give the first word of each docstring."""
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, _Documented) and (text := ast.get_docstring(node)):
                yield text.split()[0].strip(".,:;`*")
