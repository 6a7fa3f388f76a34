"""The JSON Schema of a YAML file of questions with their truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrieval_bench.core.as_json.document import DIALECT
from retrieval_bench_rules.formats.words import LISTS, WORDS
from retrieval_bench_rules.rules import CONDITIONS, EXPECT, FORBID

_TEXT = {"type": "string", "pattern": r"\S"}
_PHRASE = {"anyOf": [_TEXT, {"type": "number"}]}
_PHRASES = {"anyOf": [_PHRASE, {"type": "array", "minItems": 1, "items": _PHRASE}]}
_RANK = {"description": "last rank that counts", "type": "integer", "minimum": 1}
_BLANK = [{"type": "null"}, {"const": ""}, {"type": "array", "maxItems": 0}]

_RULE: Mapping[str, Any] = {
    "description": "Conditions that hold for one and the same hit.",
    "type": "object",
    "properties": {
        "any": {"description": "one of these phrases is in its text", **_PHRASES},
        "all": {"description": "all of these phrases are", **_PHRASES},
        "matches": {"description": "a regular expression that its text has", **_PHRASE},
        "source": {"description": "a glob that fits its source", **_PHRASE},
        "id": {"description": "its id", **_PHRASE},
        "within": {"anyOf": [_RANK, {"type": "null"}]},
        "words": {"description": "phrases stand as words of their own", "type": "boolean"},
    },
    "anyOf": [{"required": [name]} for name in CONDITIONS],
    "additionalProperties": False,
}


def cases() -> dict[str, Any]:
    """The schema: a list of cases, or an object with one, and the words of a case."""
    rule = {"anyOf": [_PHRASE, {"$ref": "#/$defs/Rule"}]}
    rules = {"anyOf": [rule, {"type": "array", "items": rule}, *_BLANK]}
    ids = {"type": ["string", "number", "object", "array", "null"]}
    properties: dict[str, Any] = {"question": {"type": "string"}}
    for kind, words in WORDS.items():
        held = ids if "ids" in kind else {"$ref": "#/$defs/Truth"}
        if kind not in ("question", "id", "within"):
            properties |= dict.fromkeys(words, held)
    properties |= {key: {"$ref": "#/$defs/Truth"} for key in (EXPECT, FORBID)}
    properties["id"] = {"type": ["string", "integer", "null"]}
    properties["answerable"] = {"type": ["boolean", "string"]}
    properties["filter"] = {"type": ["object", "string", "null"]}
    listed = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Case"}}
    return {
        "$schema": DIALECT,
        "description": "Questions with their truth.",
        "anyOf": [
            listed,
            {
                "type": "object",
                "properties": dict.fromkeys(LISTS, listed),
                "anyOf": [{"required": [name]} for name in LISTS],
            },
        ],
        "$defs": {
            "Case": {
                "description": "A question, and what must come or must not.",
                "type": "object",
                "properties": properties,
                "anyOf": [{"required": [word]} for word in WORDS["question"]],
            },
            "Truth": rules,
            "Rule": dict(_RULE),
        },
    }
