"""JSON documents held against their schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench_catalog.documents import DOCUMENTS, schema_of


def name_of(shown: Documented) -> str:
    """The document that shows such a record."""
    (name,) = (name for name, entry in DOCUMENTS.items() if type(shown) in entry.kinds)
    return name


@cache
def closed(name: str) -> dict[str, Any]:
    """The schema of a document, with no key besides those that it names."""
    return _closed(schema_of(name))  # type: ignore[no-any-return]


def keys_of(schema: Any) -> Iterator[str]:
    """The names of all properties, at any depth."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        for one in schema.values():
            yield from keys_of(one)
    if isinstance(schema, list):
        for one in schema:
            yield from keys_of(one)


def commands_with(words: str) -> set[str]:
    """Commands, as they are typed, whose documents have keys with one of these words (``a|b``), or
    any, where there is none."""
    word = re.compile(rf"(?:^|_)(?:{words})(?:_|$)" if words else "")
    return {
        of.command
        for name, of in DOCUMENTS.items()
        if any(map(word.search, keys_of(schema_of(name))))
    }


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _closed(one) for key, one in schema.items()}
    names_its_keys = schema.get("type") == "object" and "properties" in schema
    return made | ({"additionalProperties": False} if names_its_keys else {})


def faults(document: Any, name: str) -> list[str]:
    """What of ``document`` is not as the schema ``name`` says."""
    found = Draft202012Validator(closed(name)).iter_errors(document)
    return [f"{name}: {one.json_path}: {one.message}" for one in found]


def unnoticed(document: Any, name: str) -> list[str]:
    """Changes that break ``document`` and that the schema of its name takes all the same: each key
    that must be there without it, and each value with another type, once for every kind of record.
    """
    schema = schema_of(name)
    validator = Draft202012Validator(schema)
    places: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
    for one, of in _records(document, schema, schema):
        places.setdefault(id(of), (one, of))
    found = []
    for one, of in places.values():
        for key, value in list(one.items()):
            described = of["properties"].get(key, {})
            for changed in [_GONE] * (key in of["required"]) + [_WRONG] * _typed(described):
                if changed is _GONE:
                    del one[key]
                else:
                    one[key] = changed
                if validator.is_valid(document):
                    found.append(f"{of.get('description')} {key}: {changed}")
                one[key] = value
    return found


_GONE, _WRONG = "removed", [[{"no": "such"}]]


def _typed(schema: dict[str, Any]) -> bool:
    """Whether not every value will do."""
    return not {"description"} >= set(schema) and schema.get("items", True) != {}


def _records(document: Any, schema: Any, root: Any) -> Iterator[tuple[Any, Any]]:
    """Every object in a document that has keys of its own, with its schema."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    for one in schema.get("anyOf", ()):
        if Draft202012Validator({"$defs": root.get("$defs", {}), **one}).is_valid(document):
            yield from _records(document, one, root)
            return
    if isinstance(document, list):
        each = schema.get("prefixItems") or [schema.get("items", {})] * len(document)
        for inner, of in zip(document, each, strict=True):
            yield from _records(inner, of, root)
    if isinstance(document, dict):
        if "properties" in schema:
            yield document, schema
        others = schema.get("additionalProperties", {})
        for key, inner in document.items():
            yield from _records(inner, schema.get("properties", {}).get(key, others), root)
