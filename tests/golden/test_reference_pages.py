"""The pages of the guide that are made from the code; UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import api_records
from tests.builders.reference_pages import (
    MEANINGS,
    SCHEMAS,
    json_page,
    meaning,
    options_page,
    python_page,
)

PAGES = {"options.md": options_page, "json.md": json_page, "python.md": python_page}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    path, text = SCHEMAS.parent / name, PAGES[name]()
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("file", sorted(SCHEMAS.glob("*.json")), ids=lambda file: file.stem)
def test_every_field_of_a_document_has_a_meaning(file: Any) -> None:
    found = json.loads(file.read_text("utf-8"))["properties"]
    assert not [field for field in found if not meaning(file.stem, field)], "see meanings.yaml"


def test_a_meaning_is_of_a_document_with_such_a_field() -> None:
    for name, fields in MEANINGS.items():
        file = SCHEMAS / f"{name}.json"
        if file.exists():
            known = set(json.loads(file.read_text("utf-8"))["properties"])
            told = {one for names in fields if ": " not in names for one in names.split(", ")}
            assert {one for one in told if "." not in one} <= known, name


@pytest.mark.parametrize("kind", api_records.records(), ids=lambda kind: kind.__qualname__)
def test_a_record_names_its_attributes(kind: type) -> None:
    told = {
        name
        for one in kind.__mro__
        for name in api_records.names_in(api_records.documented(one).get("Attributes", {}))
    }
    assert set(api_records.fields(kind)) <= told
    for name in set(api_records.attributes(kind)) - told:
        assert inspect.getdoc(inspect.getattr_static(kind, name)), name


@pytest.mark.parametrize("function", api_records.functions().values(), ids=lambda one: one.__name__)
def test_a_function_names_its_arguments(function: Callable[..., Any]) -> None:
    told = api_records.names_in(api_records.documented(function)["Args"])
    assert set(inspect.signature(function).parameters) == told
