"""JSON Schemas of the YAML files that people write, made from what reads them."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticOmit

from retrieval_bench.core import plugins
from retrieval_bench.core.as_json.document import DIALECT
from retrieval_bench.core.config import RetrieverConfig
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.data.formats import formats
from retrieval_bench.data.settings import DatasetConfig
from retrieval_bench_catalog.schemas import attributes_of
from retrieval_bench_catalog.tables.parameters import details

FILLED = {"type": "string", "pattern": r"\$\{\w+\}"}
"""Text that an environment variable fills."""


class _Known(GenerateJsonSchema):
    """Leaves out the types that no YAML can have, such as a retriever that is built already."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Any:
        raise PydanticOmit


def of_model(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of the file that ``model`` reads, with what its attributes mean."""
    made = model.model_json_schema(schema_generator=_Known)
    meanings = attributes_of(model)
    for name, field in made["properties"].items():
        if name in meanings:
            field["description"] = meanings[name]
    made["description"] = " ".join((inspect.getdoc(model) or "").split("\n\n")[0].split())
    return {"$schema": DIALECT, **_bare(made)}


def _bare(schema: Any) -> Any:
    """``schema`` without the titles that pydantic makes up."""
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _bare(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def filled(schema: Any) -> Any:
    """``schema``, in which text that the environment fills may stand for a number or a truth
    value."""
    if isinstance(schema, list):
        return [filled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: filled(value) for key, value in schema.items()}
    if schema.get("type") in ("integer", "number", "boolean"):
        said = {key: made.pop(key) for key in ("description", "default") if key in made}
        return {**said, "anyOf": [made, {"$ref": "#/$defs/Filled"}]}
    return made


def retriever() -> dict[str, Any]:
    """The schema of a retriever's config, with the parameters of every target."""
    made = of_model(RetrieverConfig)
    del made["properties"]["source"]
    made["required"] = ["target"]
    names = plugins.names("retriever")
    made["properties"]["target"] = {
        "description": "short name, module:Class or file.py:Class",
        "anyOf": [{"enum": names}, {"type": "string", "pattern": ":"}],
    }
    choices = []
    for name in names:
        try:
            params = _parameters(name, made["$defs"])
        except HarnessError:  # `data list targets` says why it does not load
            continue
        made["$defs"][name] = params
        of = {"params": {"$ref": f"#/$defs/{name}"}}
        then = {"properties": of, **({"required": ["params"]} if params["required"] else {})}
        choices.append({"if": {"properties": {"target": {"const": name}}}, "then": then})
    made = filled(made)
    made["$defs"]["Filled"] = FILLED
    return {**made, "allOf": choices}


def _parameters(target: str, shared: dict[str, Any]) -> dict[str, Any]:
    """What may stand under ``params`` of a target; models in it become definitions.

    Raises:
        HarnessError: it does not load.
    """
    factory, known = plugins.resolve("retriever", target), details(target)
    init = factory.__init__ if inspect.isclass(factory) else factory
    hints = typing.get_type_hints(init)
    signature = inspect.signature(factory).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.values())
    properties = {}
    for parameter in known.parameters:
        schema = _of_hint(hints.get(parameter.name, Any), shared)
        if parameter.meaning:
            schema["description"] = parameter.meaning
        default = signature[parameter.name].default
        if not parameter.required and _is_plain(default):
            schema["default"] = default
        properties[parameter.name] = schema
    return {
        "description": known.description,
        "type": "object",
        "properties": properties,
        "required": [parameter.name for parameter in known.parameters if parameter.required],
        "additionalProperties": open_ended,
        "examples": [yaml.safe_load(known.yaml).get("params", {})],
    }


def _of_hint(hint: Any, shared: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter; an empty one where its type says nothing to YAML."""
    adapter = plugins.adapter_of(hint)
    try:
        made = {} if adapter is None else adapter.json_schema(schema_generator=_Known)
    except PydanticOmit:
        return {}
    shared |= _bare(made.pop("$defs", {}))
    return dict(_bare(made))


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def dataset() -> dict[str, Any]:
    """The schema of ``dataset.yaml``."""
    made = of_model(DatasetConfig)
    files = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    splits = made["properties"]["splits"]
    splits["additionalProperties"] = {"anyOf": [*files["anyOf"], splits["additionalProperties"]]}
    named = {"enum": sorted(formats())}
    made["properties"]["format"] |= {"anyOf": [named, {"pattern": ":"}]}
    made = _numbers_as_text(filled(made))
    made["$defs"]["Filled"] = FILLED
    return dict(made)


def _numbers_as_text(schema: Any) -> Any:
    """``schema``, in which a number may stand for a text, such as ``version: 1.0``."""
    if isinstance(schema, list):
        return [_numbers_as_text(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: _numbers_as_text(value) for key, value in schema.items()}
    return made | ({"type": ["string", "number"]} if schema.get("type") == "string" else {})
