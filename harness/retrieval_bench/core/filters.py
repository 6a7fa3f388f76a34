"""Filters: conditions on the metadata of documents that a query sets beside its text.

Written as JSON, in the words that search engines share::

    {"tenant": "a"}                                  equal
    {"tenant": {"in": ["a", "b"]}}                   one of
    {"since": {"gte": "2026-01-01", "lt": "2027"}}   range: gt, gte, lt, lte
    {"tenant": "a", "year": 2026}                    all of them
    {"and": [...]}, {"or": [...]}, {"not": {...}}

A document whose metadata holds a list fits if one of its values does; one that lacks the field, or
has a value of another kind (a text where a number is asked for), does not. ``not`` takes what is
left. Texts compare by code point, so that dates are written as ISO 8601 has them. A dot leads into
a mapping (``author.country``), unless a key is spelt like that.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeVar

T = TypeVar("T")
Value = str | int | float | bool

RANGES: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
MISSING = object()
"""In place of the value of a field that is not there; fits nothing."""


class FilterError(ValueError):
    """Fault of a filter as written: a sentence."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One field against one value.

    Attributes:
        field: key of the metadata.
        operator: "eq", "in", "gt", "gte", "lt" or "lte".
        value: a tuple for "in".
    """

    field: str
    operator: str
    value: Value | tuple[Value, ...]

    @property
    def values(self) -> tuple[Value, ...]:
        """Those that it names, of which one is enough."""
        return self.value if isinstance(self.value, tuple) else (self.value,)

    def fits(self, value: object) -> bool:
        """Return whether a value of the field meets the condition."""
        if isinstance(value, list | tuple | set | frozenset):
            return any(self.fits(item) for item in value)
        if self.operator == "in":
            assert isinstance(self.value, tuple)
            return any(_kind(value) == _kind(item) and value == item for item in self.value)
        if _kind(value) != _kind(self.value):
            return False
        compare: Callable[[Any, Any], bool] = RANGES.get(self.operator, operator.eq)
        return bool(compare(value, self.value))


@dataclass(frozen=True, slots=True)
class Group:
    """Conditions joined.

    Attributes:
        operator: "and", "or", or "not" (of one part).
        parts: what is joined.
    """

    operator: str
    parts: tuple[Condition | Group, ...]


@dataclass(frozen=True)
class Filter:
    """A condition that a document must meet to be an answer.

    Attributes:
        condition: as a tree, for whoever translates it for an engine.
        source: as written, JSON types; read-only.
    """

    condition: Condition | Group
    source: Mapping[str, Any]

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self.canonical == other.canonical

    @cached_property
    def canonical(self) -> str:
        """One text for all ways of writing the same conditions: keys in order."""
        plain = self.translated(_plain, _plain_group)
        return json.dumps(plain, ensure_ascii=False, sort_keys=True)

    @cached_property
    def conditions(self) -> list[Condition]:
        """All its conditions, however they are joined."""
        return self.translated(_alone, lambda _, parts: [*chain.from_iterable(parts)])

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Fields of all its conditions, distinct, in order."""
        return tuple(sorted({condition.field for condition in self.conditions}))

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """The values that must hold in any case, by name, for templates: ``tenant`` -> the value
        that it must equal, or the list it must be in; ``since.gte`` -> the end of a range. What
        stands in ``or`` or ``not`` has no name."""
        values: dict[str, Any] = {}
        required = self.translated(
            _alone, lambda name, parts: [*chain.from_iterable(parts if name == "and" else ())]
        )
        for condition in required:
            plain = condition.operator in ("eq", "in")
            name = condition.field if plain else f"{condition.field}.{condition.operator}"
            values[name] = (
                list(condition.value) if isinstance(condition.value, tuple) else condition.value
            )
        return MappingProxyType(values)

    @cached_property
    def is_named(self) -> bool:
        """True if ``values`` says all of it: nothing stands in ``or`` or ``not``, and no two
        conditions have one name."""
        return len(self.values) == len(self.conditions)

    def translated(
        self, condition: Callable[[Condition], T], group: Callable[[str, list[T]], T]
    ) -> T:
        """Say it in the words of an engine: ``condition`` of each leaf, ``group`` of "and", "or"
        and "not" (of one part)."""
        return _translated(self.condition, condition, group)

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether a document with this metadata fits."""
        return self.translated(lambda c: c.fits(value_at(metadata, c.field)), _joined)


def parse_filter(given: object) -> Filter:
    """A filter as written.

    Raises:
        FilterError: it is none.
    """
    return Filter(_parsed(given), MappingProxyType(dict(given)))  # type: ignore[call-overload]


def fields_of(filters: Iterable[Filter | None]) -> tuple[str, ...]:
    """The fields that ``filters`` name, distinct, in order."""
    return tuple(
        sorted(
            {
                field
                for query_filter in filters
                if query_filter is not None
                for field in query_filter.fields
            }
        )
    )


def value_at(metadata: Mapping[str, Any], field: str) -> Any:
    """The value of a field, dots leading into mappings; :data:`MISSING` where there is none."""
    if field in metadata:
        return metadata[field]
    value: Any = metadata
    for part in field.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return MISSING
        value = value[part]
    return value


def _translated(
    node: Condition | Group,
    condition: Callable[[Condition], T],
    group: Callable[[str, list[T]], T],
) -> T:
    if isinstance(node, Condition):
        return condition(node)
    return group(node.operator, [_translated(part, condition, group) for part in node.parts])


def _joined(name: str, parts: list[bool]) -> bool:
    return not parts[0] if name == "not" else (all if name == "and" else any)(parts)


def _alone(condition: Condition) -> list[Condition]:
    return [condition]


def _parsed(given: object) -> Condition | Group:
    if not isinstance(given, Mapping) or not given:
        raise FilterError(
            f"{_shown(given)} is no filter: write a mapping, such as {{field: value}}"
        )
    parts: list[Condition | Group] = []
    for key, value in given.items():
        if key in ("and", "or"):
            if not isinstance(value, Sequence) or isinstance(value, str) or not value:
                raise FilterError(f"{key!r} takes a list of filters, not {_shown(value)}")
            parts.append(Group(key, tuple(_parsed(item) for item in value)))
        elif key == "not":
            parts.append(Group("not", (_parsed(value),)))
        elif isinstance(key, str):
            parts += _of_field(key, value)
        else:
            raise FilterError(f"the field {_shown(key)} is no text")
    return parts[0] if len(parts) == 1 else Group("and", tuple(parts))


def _of_field(field: str, given: object) -> Iterator[Condition]:
    if not isinstance(given, Mapping):
        yield Condition(field, "eq", _checked(field, given))
        return
    known = ("eq", "in", *RANGES)
    unknown = [key for key in given if key not in known]
    if unknown or not given:
        what = _shown(unknown[0]) if unknown else "nothing"
        raise FilterError(f"{field}: {what} is no comparison: {', '.join(known)}")
    for name, value in given.items():
        if name != "in":
            yield Condition(field, name, _checked(field, value))
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            yield Condition(field, "in", tuple(_checked(field, item) for item in value))
        else:
            raise FilterError(f"{field}: 'in' takes a list of values, not {_shown(value)}")


def _checked(field: str, value: object) -> Value:
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Sequence):
        raise FilterError(f"{field}: write {{in: [...]}} for one of several values")
    raise FilterError(f"{field}: {_shown(value)} is no text, number, true or false")


def _plain(condition: Condition) -> Any:
    if isinstance(condition.value, tuple):
        return ["is in", condition.field, sorted({json.dumps(item) for item in condition.value})]
    return [f"is {condition.operator}", condition.field, json.dumps(condition.value)]


def _plain_group(name: str, parts: list[Any]) -> Any:
    if name == "not":
        return ["not", *parts]
    # Groups of one, and groups of the same kind within each other, say nothing of their own.
    flat = [node for part in parts for node in (part[1:] if part[0] == name else [part])]
    parts = [part for at, part in enumerate(flat) if part not in flat[:at]]
    if len(parts) == 1:
        return parts[0]
    return [name, *sorted(parts, key=lambda part: json.dumps(part, sort_keys=True))]


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "none"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]} ..."
