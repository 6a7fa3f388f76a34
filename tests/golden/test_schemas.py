"""A JSON Schema for every document, made from the frozen ones; UPDATE_GOLDEN=1 writes them anew.

They stand in the guide, for those who read the documents with programs of their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from retrieval_bench.cli.commands import parsed
from tests.builders.frozen import DOCUMENTS, HERE, MEASURING, READING, paths_of
from tests.builders.reference_pages import SCHEMAS as FOLDER
from tests.builders.reference_pages import commands, meaning

_TYPES = {
    "text": "string",
    "number": "number",
    "truth": "boolean",
    "list": "array",
    "map": "object",
    "null": "null",
}


def known_paths(name: str) -> list[tuple[str, str]]:
    """Every key of all frozen documents of that name with its type."""
    found: list[tuple[str, str]] = []
    for file in sorted(HERE.glob(f"keys/{name}*.txt")):
        if file.stem.partition("-")[0] == name:
            lines = file.read_text("utf-8").splitlines()
            found += [(key, kind) for key, _, kind in (line.rpartition(": ") for line in lines)]
    for file in sorted(HERE.glob(f"expected/{name}*.json")):
        if file.stem.partition("-")[0] == name and file.read_text("utf-8").startswith("{"):
            found += paths_of(json.loads(file.read_text("utf-8")))
    return found


def schema_of(name: str, paths: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Keys with the types that their values may have; any may be null, and others may come. Of what
    is null in every frozen document no type is known."""
    root: dict[str, Any] = {"type": ["object"]}
    for path, kind in sorted(set(paths)):
        node = root
        for part in path.split("."):
            node = _below(node, part.removesuffix("[]"))
            for _ in range(part.count("[]")):
                _add(node, "array")
                node = node.setdefault("items", {})
        if not (name == "tune" and ".value" in path):  # of parameters: whatever a config may hold
            _add(node, _TYPES[kind])
    for field, property_ in root["properties"].items():
        property_["description"] = meaning(name, field)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"retrieval-bench {DOCUMENTS[name]} --format json",
        **_finished(root),
    }


def _below(node: dict[str, Any], key: str) -> dict[str, Any]:
    _add(node, "object")
    if key == "*":
        return node.setdefault("additionalProperties", {})  # type: ignore[no-any-return]
    return node.setdefault("properties", {}).setdefault(key, {})  # type: ignore[no-any-return]


def _add(node: dict[str, Any], kind: str) -> None:
    node.setdefault("type", [])
    if kind not in node["type"]:
        node["type"].append(kind)


def _finished(node: dict[str, Any]) -> dict[str, Any]:
    """With "null" everywhere but at the root, and keys in one order."""
    made: dict[str, Any] = {}
    if node.get("description"):
        made["description"] = node["description"]
    if node.get("type", ["null"]) != ["null"]:
        made["type"] = sorted({*node["type"], "null"})
    if "properties" in node:
        made["properties"] = {k: _finished(v) for k, v in sorted(node["properties"].items())}
    for name in ("items", "additionalProperties"):
        if name in node:
            made[name] = _finished(node[name])
    return made


def test_every_document_of_every_command_is_frozen() -> None:
    cases = {**READING, **MEASURING}
    assert {name.partition("-")[0] for name in cases} == set(DOCUMENTS)
    of_commands = {one.get_default("run"): name for name, one in commands()}
    lacking = set(of_commands) - {parsed(words).run for words in cases.values()}
    assert not {of_commands[run] for run in lacking}, "see tests/builders/frozen.py"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_has_every_frozen_key(name: str) -> None:
    text = json.dumps(schema_of(name, known_paths(name)), indent=1, ensure_ascii=False) + "\n"
    path = FOLDER / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(HERE.glob("expected/*.json")), ids=lambda file: file.stem)
def test_frozen_documents_are_valid_and_broken_ones_are_not(file: Path) -> None:
    schema = json.loads((FOLDER / f"{file.stem.partition('-')[0]}.json").read_text("utf-8"))
    document = json.loads(file.read_text("utf-8"))
    jsonschema.validate(document, schema)
    for key, value in document.items():
        wrong = 1 if isinstance(value, str) else "a text"
        with pytest.raises(jsonschema.ValidationError) if value is not None else nullcontext():
            jsonschema.validate({**document, key: wrong}, schema)


def test_the_guide_names_every_schema() -> None:
    page = (FOLDER.parent / "json.md").read_text("utf-8")
    assert all(f"(schemas/{name}.json)" in page for name in DOCUMENTS)
    assert {file.stem for file in FOLDER.glob("*.json")} == set(DOCUMENTS)
