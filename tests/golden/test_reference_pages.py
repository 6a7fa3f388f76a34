"""The pages of the guide that are made from the code; UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.capabilities import own_packages
from retrieval_bench_catalog.schemas import documented
from tests.builders import api_records
from tests.builders.guide import GUIDE, guide_file
from tests.builders.imports import CORE
from tests.builders.reference_pages import (
    json_page,
    llms_page,
    options_page,
    package_page,
    python_page,
    stub,
)

PAGES = {"options.md": options_page, "json.md": json_page, "python.md": python_page}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    _assert_is(guide_file(name), PAGES[name]())


@pytest.mark.parametrize("module", ["__init__", "testing"])
def test_type_checkers_read_of_the_names_that_are_there(module: str) -> None:
    """In a stub: the modules themselves name no package beside the kernel."""
    _assert_is(CORE / f"{module}.pyi", stub(module))


def test_pages_are_listed_for_programs() -> None:
    _assert_is(GUIDE / "llms.txt", llms_page())


def _assert_is(path: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("package", own_packages())
def test_the_readme_of_a_package_is_what_it_registers(package: str) -> None:
    path, text = CORE.parent / package / "README.md", package_page(package)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", api_records.records(), ids=lambda kind: kind.__qualname__)
def test_a_record_names_its_attributes(kind: type) -> None:
    told = {
        name
        for one in kind.__mro__
        for name in api_records.names_in(documented(one).get("Attributes", {}))
    }
    assert set(api_records.fields(kind)) <= told
    for name in set(api_records.attributes(kind)) - told:
        assert inspect.getdoc(inspect.getattr_static(kind, name)), name


@pytest.mark.parametrize("function", api_records.functions().values(), ids=lambda one: one.__name__)
def test_a_function_names_its_arguments(function: Callable[..., Any]) -> None:
    sections = documented(function)
    assert "Args" in sections, f"{function.__name__}: its docstring has no section Args:"
    told = api_records.names_in(sections["Args"])
    assert set(inspect.signature(function).parameters) == told
