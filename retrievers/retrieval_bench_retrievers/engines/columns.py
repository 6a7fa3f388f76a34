"""The fields that filters name as columns, for engines that filter by columns: of each field its
texts, numbers and truth values, and their ends, which ranges are held against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.filters import MISSING, Condition, value_at
from retrieval_bench_retrievers.sql.filling import Row

KINDS = ("t", "n", "b")
"""Columns of texts, numbers, and truth values as texts; the first two have a ``low`` and a
``high``."""
ENDS = {"gt": ("high", ">"), "gte": ("high", ">="), "lt": ("low", "<"), "lte": ("low", "<=")}
"""A list has a value beyond a bound where its highest, or its lowest, is."""

_LARGEST = 1 << 53
"""From here on not every whole number is a double."""


def cells(row: Row, fields: Sequence[str]) -> dict[str, Any]:
    """Column -> value of one document; ends of nothing are None."""
    found: dict[str, Any] = {}
    for at, field in enumerate(fields):
        value = value_at(row.metadata, field)
        values = value if isinstance(value, list) else [] if value is MISSING else [value]
        for kind in KINDS:
            some = [literal(one)[1] for one in values if kind == literal(one)[0]]
            found[f"f{at}{kind}"] = some
            if kind != "b":
                found[f"f{at}{kind}low"] = min(some, default=None)
                found[f"f{at}{kind}high"] = max(some, default=None)
    return found


def literal(value: Any) -> tuple[str, Any]:
    """The kind of a value, empty for what no filter fits, and how it stands in its column."""
    if isinstance(value, bool):
        return "b", str(value)
    if isinstance(value, int | float):
        return "n", float(value)
    return ("t", value) if isinstance(value, str) else ("", None)


def column_of(one: Condition, fields: Sequence[str], kind: str) -> str:
    """The beginning of the names of a field's columns.

    Raises:
        ContractError: the collection was filled without it.
    """
    if one.field not in fields:
        named = ", ".join(fields) or "(none)"
        raise unfit(
            kind, one, f"fields that the dataset's filters named when it was filled: {named}"
        )
    return f"f{fields.index(one.field)}"


def group(operator: str, parts: Sequence[str]) -> str:
    """Conditions that are never NULL, joined by "and" or "or", or one turned round by "not"."""
    return f"(not {parts[0]})" if operator == "not" else f"({f' {operator} '.join(parts)})"


def sql_group(operator: str, parts: Sequence[str]) -> str:
    """Conditions of SQL joined by "and" or "or", or one turned round by "not"; NULL is false."""
    if operator == "not":
        return f"NOT COALESCE({parts[0]}, false)"
    return "(" + f" {operator.upper()} ".join(parts) + ")"


def unfit(kind: str, one: Condition, accepted: str) -> ContractError:
    """For a condition that an engine has no words for: nothing is left out of a filter."""
    return ContractError(
        f"{kind} has no filter for {one.field} {one.operator} {one.value!r}",
        accepted=accepted,
        fix="write the filter with other conditions, or measure another engine",
    )


def require_exact(kind: str, condition: Condition) -> None:
    """Refuse equality of numbers so large that an engine, which holds doubles, finds their
    neighbours, too."""
    numbers = [value for value in condition.values if isinstance(value, int | float)]
    if condition.operator in ("eq", "in") and any(abs(value) >= _LARGEST for value in numbers):
        raise unfit(kind, condition, "numbers below 2^53; ids that are larger as texts")


def by_kind(condition: Condition, kind_of_engine: str) -> dict[str, list[Any]]:
    """The values of a condition that is no range, by kind."""
    require_exact(kind_of_engine, condition)
    values: dict[str, list[Any]] = {}
    for value in condition.values:
        kind, plain = literal(value)
        values.setdefault(kind, []).append(plain)
    return values
