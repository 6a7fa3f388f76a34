"""Code says things by their names: no dialect among variables, no riddle before a docstring.

``found``, ``one`` and ``told`` are what a variable is called when nobody looked for its name.
"What" and bare fragments ("Of a duet.") are how a docstring begins when nobody said what it is.
"Return" before them hides that, and is false of what returns nothing.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("harness", "retrievers")
DIALECT = ("found", "one", "told")
FEWER_THAN = 100
"""Functions in which a variable or parameter may have such a name."""

_LITTLE = """
Of As From With At When That By In On Over Without Between After Where Why Who Whether Which Those
"""
FRAGMENTS = frozenset(_LITTLE.split())
SHARE = 0.03
"""Of all docstrings: at most so many begin with "What", and so many with a fragment."""

BEHIND_RETURN = {"what": "What", "those": "Those", "that": "Those", "it": "Those"}
"""Openers that "Return" does not mend."""
GIVES_NO_RESULT = {"property", "cached_property", "contextmanager", "asynccontextmanager"}
"""Decorators of functions that are called for something else than what they return."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


@pytest.fixture(scope="module")
def trees() -> list[ast.Module]:
    paths = sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))
    return [ast.parse(path.read_text(encoding="utf-8")) for path in paths]


@pytest.fixture(scope="module")
def openers(trees: list[ast.Module]) -> Counter[str]:
    return Counter(_openers(trees))


def test_a_variable_has_the_name_of_its_thing(trees: list[ast.Module]) -> None:
    bindings = _bindings(trees)
    assert {name: n for name, n in bindings.items() if n >= FEWER_THAN} == {}


def test_docstrings_do_not_begin_with_what(openers: Counter[str]) -> None:
    assert openers["What"] < SHARE * openers.total()


def test_docstrings_do_not_begin_with_a_fragment(openers: Counter[str]) -> None:
    fragments = {word: n for word, n in openers.items() if word in FRAGMENTS}
    assert sum(fragments.values()) < SHARE * openers.total(), fragments


def test_what_returns_nothing_does_not_say_return(trees: list[ast.Module]) -> None:
    assert not list(_false_returns(trees))


def test_what_is_counted() -> None:
    tree = ast.parse(
        'def _f(one):\n    """Of a duet."""\n    for one in one: found = one\n'
        "    return [one for one in found], lambda told: told\n"
        'class C:\n    """What it is."""\n'
    )
    assert _bindings([tree]) == {"one": 1, "found": 1, "told": 1}
    assert Counter(_openers([tree])) == {"Of": 1, "What": 1}


@pytest.mark.parametrize(
    ("text", "opener"),
    [
        ("Return what it is.", "What"),
        ("Return those of it.", "Those"),
        ("Return that, too.", "Those"),
        ("Return it: so.", "Those"),
        ("Return\n    what is there.", "What"),
        ("Return the mean.", "Return"),
        ("Return.", "Return"),
        ("Load what it is.", "Load"),
    ],
)
def test_return_mends_no_opener(text: str, opener: str) -> None:
    assert list(_openers([ast.parse(f'"""{text}"""')])) == [opener]


@pytest.mark.parametrize(
    ("head", "false"),
    [
        ("@property\ndef f(self) -> int:", True),
        ("@functools.cached_property\ndef f(self) -> int:", True),
        ("@contextmanager\ndef f() -> Iterator[None]:", True),
        ("@x\n@contextlib.asynccontextmanager\nasync def f() -> AsyncIterator[int]:", True),
        ("def f() -> None:", True),
        ('def f() -> "None":', True),
        ("@staticmethod\ndef f() -> int | None:", False),
        ("@lru_cache(maxsize=1)\ndef f():", False),
    ],
)
def test_what_counts_as_a_false_return(head: str, false: bool) -> None:
    tree = ast.parse(f'{head}\n    """Return the mean."""')
    assert list(_false_returns([tree])) == ["f"] * false
    assert not list(_false_returns([ast.parse(f'{head}\n    """The mean."""')]))


def _bindings(trees: Iterable[ast.Module]) -> Counter[str]:
    """Count the functions, classes and modules that bind each name of the dialect."""
    bound = {
        (name, id(scope))
        for tree in trees
        for node, scope in _scoped(tree)
        if (name := _bound(node)) in DIALECT
    }
    return Counter(name for name, _ in bound)


def _scoped(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Give each node with the scope in which it stands; a comprehension is none of its own."""
    left: list[tuple[ast.AST, ast.AST]] = [(tree, tree)]
    while left:
        parent, scope = left.pop()
        if isinstance(parent, _SCOPES):
            scope = parent
        inner = [(node, scope) for node in ast.iter_child_nodes(parent)]
        left += inner
        yield from inner


def _bound(node: ast.AST) -> str:
    """Name what a node binds; "" where it binds nothing."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else ""


def _openers(trees: Iterable[ast.Module]) -> Iterator[str]:
    """Give the first word of each docstring, the second where "Return" stands before a riddle."""
    for _, words in _documented(trees):
        first, second = [word.strip(".,:;`*") for word in [*words, ""][:2]]
        yield BEHIND_RETURN.get(second, first) if first == "Return" else first


def _false_returns(trees: Iterable[ast.Module]) -> Iterator[str]:
    """Name the functions whose docstring says "Return" and that are not called for a result."""
    for node, words in _documented(trees):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            says = words[0].strip(".,:;`*") == "Return"
            if says and (_returns_none(node) or GIVES_NO_RESULT & _decorators(node)):
                yield node.name


def _documented(trees: Iterable[ast.Module]) -> Iterator[tuple[_Documented, list[str]]]:
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, _Documented) and (text := ast.get_docstring(node)):
                yield node, text.split()


def _returns_none(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return isinstance(node.returns, ast.Constant) and node.returns.value in (None, "None")


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
