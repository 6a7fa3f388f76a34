"""From records to what JSON has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def document(record: Any, names: str = "") -> dict[str, Any]:
    """The attributes of ``record`` that ``names`` says, in this order; all fields of a dataclass
    without. Numbers stay as they are, to the last digit.

    Tuples become lists, members of an enumeration their values, records in it what their own
    ``as_dict`` gives or else their fields.
    """
    listed = names.split() or [field.name for field in fields(record)]
    return {name: plain(getattr(record, name)) for name in listed}


def plain(value: Any) -> Any:
    """``value`` of what JSON has: see :func:`document`."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if hasattr(value, "as_dict"):
        return value.as_dict()
    return document(value) if is_dataclass(value) else value
