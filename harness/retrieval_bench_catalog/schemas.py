"""JSON Schemas of documents, made from the types of the records that they show.

Names that come from data (metrics, legs, queries, files) are no properties: a mapping has
``additionalProperties``. What is always there is required, and what may be null says so. Other keys
may come beside: within one version a document grows.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NotRequired, Union

from retrieval_bench.core.as_json.document import (
    DIALECT,
    LEFT_OUT,
    MISSING,
    SPREAD,
    WHOLE,
    AsText,
    Spelt,
    keys_of_class,
)
from retrieval_bench.core.notices import Code, Notice

SECTIONS = ("Args", "Attributes", "Returns", "Raises")


def documented(documented_object: Any) -> dict[str, dict[str, str]]:
    """The sections of a docstring, each name -> what it is; "" holds the text of its own."""
    entries: dict[str, list[str]] = {"": []}
    section = ""
    for line in inspect.cleandoc(documented_object.__doc__ or "").splitlines():
        if line.removesuffix(":") in SECTIONS:
            section = line.removesuffix(":")
            entries[section] = []
        elif line.startswith("     ") and section:
            entries[section][-1] += f" {line.strip()}"
        elif line.startswith("    ") and section:
            entries[section].append(line.strip())
        elif line:
            section = ""
            entries[""].append(line)
    sections = {"": {"": unmarked(" ".join(entries.pop("")))}}
    for title, texts in entries.items():
        named = [re.match(r"([\w, ]+): (.*)", text) for text in texts]
        if all(named) and title != "Returns":
            sections[title] = {match[1]: unmarked(match[2]) for match in named if match}
        else:
            sections[title] = {"": unmarked(" ".join(texts))}
    return sections


@cache
def attributes_of(kind: type) -> dict[str, str]:
    """Read what the docstrings of a class and of its bases say of each attribute."""
    attributes: dict[str, str] = {}
    for item in reversed(kind.__mro__):
        for names, text in documented(item).get("Attributes", {}).items():
            attributes |= dict.fromkeys((name.strip() for name in names.split(",")), text)
    return attributes


def unmarked(text: str) -> str:
    """Leave out the marks that docstrings have for names."""
    text = re.sub(r":\w+:`\.?(?:[\w.]*\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    return " ".join(text.split())


_PLAIN = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    None: {"type": "null"},
    NoneType: {"type": "null"},
    Any: {},
    object: {},
}


VERSION = "of this document"
WITH_FULL = " (with --full)"


class Field(NamedTuple):
    """A key of an object.

    Attributes:
        name: of the key.
        hint: the type of its value.
        meaning: what it is, in a sentence; empty where nothing says it.
        optional: it may be missing.
        spread: the keys of its value stand in its place.
        whole: it stands only in whole documents.
    """

    name: str
    hint: Any
    meaning: str
    optional: bool = False
    spread: bool = False
    whole: bool = False


def schema(kinds: Sequence[Any], title: str, version: int) -> dict[str, Any]:
    """The JSON Schema of a document that shows a record of one of ``kinds``.

    Args:
        version: ``schema_version`` of the document.
    """
    made = _Schemas()
    head = {"$schema": DIALECT, "title": title}
    root = _one_of([made.document(kind, version) for kind in kinds])
    return {**head, **root, **({"$defs": made.definitions} if made.definitions else {})}


def fields_of(kind: Any) -> Iterator[Field]:
    """The keys that documents have of a record, a model or a typed mapping.

    Raises:
        TypeError: a key has no type.
    """
    if typing.is_typeddict(kind) or hasattr(kind, "model_fields"):
        yield from _fields_of_hints(kind)
        return
    for key in keys_of_class(kind):
        if not key.place:
            for added in kind.added():
                yield from fields_of(added)
            continue
        hint, meaning = kind, ""
        for part in key.place:
            hint, text = _attribute(_without_none(hint), part)
            meaning = text or meaning
        shown = _without_none(hint) if key.optional else hint
        yield Field(key.name, shown, meaning, key.optional, not key.name, key.whole)


def _fields_of_hints(kind: Any) -> Iterator[Field]:
    texts, total = attributes_of(kind), getattr(kind, "__total__", True)
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        if name in getattr(kind, "model_fields", {name}):
            marks = {NotRequired} if typing.get_origin(hint) is NotRequired else set()
            marks |= set(getattr(hint, "__metadata__", ()))
            shown = _without_none(hint) if LEFT_OUT in marks else hint
            lacking = not total or bool(marks & {NotRequired, MISSING, LEFT_OUT})
            spread, whole = SPREAD in marks, WHOLE in marks
            yield Field(name, shown, texts.get(name, ""), lacking, spread, whole)


def _attribute(kind: Any, name: str) -> tuple[Any, str]:
    """The type of an attribute, and its meaning."""
    kind = typing.get_origin(kind) or kind
    for item in kind.__mro__:
        written = inspect.get_annotations(item).get(name)
        if written is not None:
            text = attributes_of(kind).get(name, "")
            return _evaluated(written, vars(sys.modules[item.__module__])), text
        member = vars(item).get(name)
        getter = member.fget if isinstance(member, property) else None
        getter = member.func if isinstance(member, cached_property) else getter
        if getter is not None:
            text = documented(getter)[""][""] or attributes_of(kind).get(name, "")
            return _evaluated(getter.__annotations__["return"], getter.__globals__), text
    raise TypeError(f"{kind.__name__}.{name} has no type")


def _evaluated(written: Any, names: Mapping[str, Any]) -> Any:
    return eval(written, dict(names)) if isinstance(written, str) else written


def _without_none(hint: Any) -> Any:
    """Return the type without None and annotations."""
    if typing.get_origin(hint) is Annotated:
        return _without_none(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (Union, UnionType):
        return Union[tuple(arg for arg in typing.get_args(hint) if arg is not NoneType)]  # noqa: UP007
    return hint


def said(text: str, *, optional: bool = False) -> str:
    """A meaning with the words of JSON in place of those of Python: what may be missing is so where
    its attribute is None."""
    return re.sub(r"\bNone\b", "missing" if optional else "null", text)


class _Schemas:
    """Schemas of types; those of records are definitions."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self._names: dict[Any, str] = {}

    def document(self, kind: Any, version: int) -> dict[str, Any]:
        """The schema of a whole document."""
        made = self._object(kind)
        of_version = {"schema_version": {"description": VERSION, "const": version}}
        made["properties"] = of_version | made["properties"] | of_version
        made["required"] = list(dict.fromkeys(["schema_version", *made["required"]]))
        return made

    def of(self, hint: Any) -> dict[str, Any]:
        """The schema of a type."""
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin in (Annotated, NotRequired, ClassVar):
            return self.of(args[0])
        if origin in (Union, UnionType):
            return _one_of([self.of(arg) for arg in args])
        if origin is Literal:
            return {"enum": list(args)}
        if origin is None and hint in _PLAIN:
            return dict(_PLAIN[hint])
        kind = origin or hint
        if typing.is_typeddict(kind):
            return self._record(hint)
        return self._of_class(kind, args) or self._record(hint)

    def _of_class(self, kind: type, args: Sequence[Any]) -> dict[str, Any]:
        """Return the schema of a class that is no record; empty where it is one."""
        made: dict[str, Any] = {}
        if issubclass(kind, Enum):
            made = {"enum": [item.value for item in kind]}
        elif issubclass(kind, PurePath | AsText | str):
            made = {"type": "string"}
        elif issubclass(kind, Mapping):
            made = {"type": "object", "additionalProperties": self.of(args[1]) if args else {}}
        elif issubclass(kind, tuple) and args and args[-1] is not ...:
            n, items = len(args), [self.of(arg) for arg in args]
            made = {"type": "array", "prefixItems": items, "minItems": n, "maxItems": n}
        elif issubclass(kind, Iterable) and args and not is_dataclass(kind):
            made = {"type": "array", "items": self.of(args[0])}
        return made

    def _record(self, hint: Any) -> dict[str, Any]:
        kind = typing.get_origin(hint) or hint
        own = getattr(kind, "as_dict", None)
        if own is not None:
            gives = _evaluated(own.__annotations__["return"], own.__globals__)
            if gives != dict[str, Any]:
                return self.of(gives)
        if hint not in self._names:
            inner = "".join(arg.__name__ for arg in typing.get_args(hint))
            name = f"{inner}{kind.__name__}"
            if name in self.definitions:
                name = f"{kind.__module__.rpartition('.')[2].title().replace('_', '')}{name}"
            self._names[hint] = name
            self.definitions[name] = {}
            self.definitions[name] |= self._object(hint)
        return {"$ref": f"#/$defs/{self._names[hint]}"}

    def _object(self, hint: Any) -> dict[str, Any]:
        kind, args = typing.get_origin(hint) or hint, typing.get_args(hint)
        stand_for = dict(zip(getattr(kind, "__parameters__", ()), args, strict=True))
        made: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        text = documented(kind)[""][""]
        if text:
            made = {"description": said(text)} | made
        for field in fields_of(kind):
            value = stand_for.get(field.hint, field.hint) if args else field.hint
            if field.spread:
                self._spread(made, value)
                continue
            inner = self._warnings() if field.name == "warnings" else self.of(value)
            if field.meaning:
                meaning = said(field.meaning, optional=field.optional)
                inner = {"description": f"{meaning}{WITH_FULL if field.whole else ''}"} | inner
            made["properties"][field.name] = inner
            if not (field.optional or field.whole):
                made["required"].append(field.name)
        return made

    def _spread(self, made: dict[str, Any], hint: Any) -> None:
        """Add the keys of what stands there: of a record, or of a mapping whose keys are spelt."""
        hint = _without_none(hint)
        if typing.get_origin(hint) is dict:
            names, values = typing.get_args(hint)
            (spelt,) = (item for item in names.__metadata__ if isinstance(item, Spelt))
            made["patternProperties"] = {spelt.pattern: self.of(values)}
            return
        inner = self._object(hint)
        made["properties"] |= inner["properties"]
        made["required"] += inner["required"]
        if "patternProperties" in inner:
            made["patternProperties"] = inner["patternProperties"]

    def _warnings(self) -> dict[str, Any]:
        """Return the schema of a list of warnings, which :func:`.to_document` makes objects
        of."""
        self.definitions.setdefault(
            "Warning",
            {
                "description": attributes_of(Notice)["code"],
                "type": "object",
                "properties": {"code": self.of(Code), "text": {"type": "string"}},
                "required": ["code", "text"],
            },
        )
        return {"type": "array", "items": {"$ref": "#/$defs/Warning"}}


def _one_of(schemas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The schema of what fits one of several."""
    distinct = [schema for at, schema in enumerate(schemas) if schema not in schemas[:at]]
    if {} in distinct:
        return {}
    if all(set(item) == {"type"} for item in distinct):
        types = [item["type"] for item in distinct]
        return {"type": types[0] if len(types) == 1 else types}
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
