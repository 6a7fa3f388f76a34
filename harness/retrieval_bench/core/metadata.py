"""Fields of the metadata of many documents as columns, so that a filter is answered for all of them
at once."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ContractError, near_names
from retrieval_bench.core.filters import MISSING, RANGES, Condition, Filter, value_at

_MOST_REMEMBERED = 256
"""Conditions whose answer for every distinct value is kept."""

_EXACT = 2**53
"""Whole numbers that a float holds without loss."""

_MOST_CHARACTERS = 50_000_000
"""Of texts in one array, each as long as the longest; they take four bytes each."""


class MetadataTable:
    """The values of some fields, document by document.

    Args:
        fields: those that can be filtered by.

    Attributes:
        fields: the same, distinct.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        self.fields = tuple(dict.fromkeys(fields))
        self._numbers: dict[str, dict[Any, int]] = {field: {} for field in self.fields}
        self._values: dict[str, list[Any]] = {field: [] for field in self.fields}
        self._codes = {field: array("i") for field in self.fields}
        self._fitting: dict[Any, NDArray[np.bool_]] = {}
        self._columns: dict[str, _Column] = {}
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def add(self, metadata: Mapping[str, Any]) -> None:
        """One more document."""
        for field in self.fields:
            value = value_at(metadata, field)
            key = _key(value)
            numbers = self._numbers[field]
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(numbers)
                self._values[field].append(value)
            self._codes[field].append(number)
        self._n += 1

    def reordered(self, order: Sequence[int]) -> MetadataTable:
        """The same documents in another order: place i holds the one added as ``order[i]``."""
        other = MetadataTable(self.fields)
        other._numbers, other._values, other._n = self._numbers, self._values, self._n
        other._codes = {
            field: array("i", np.frombuffer(codes, dtype=np.intc)[order].tobytes())
            for field, codes in self._codes.items()
            if self._n
        } or other._codes
        return other

    def mask(self, given: Filter) -> NDArray[np.bool_]:
        """Return which documents fit, bool (documents,).

        Raises:
            ContractError: it names a field that is not here.
        """
        for field in given.fields:
            if field not in self._codes:
                raise ContractError(
                    f"a filter on the field {field!r}, which was not announced",
                    kind="unknown-name",
                    accepted=near_names(field, self.fields) if self.fields else "no filter",
                    fix="call use_filters([fields]) before index(documents)",
                )
        return given.translated(self._of_documents, _joined)

    def columns(self) -> dict[str, tuple[list[Any], NDArray[np.intc]]]:
        """Return for each field its distinct values, and for each document the number of its
        value."""
        return {
            field: (self._values[field], np.array(self._codes[field], dtype=np.intc))
            for field in self.fields
        }

    @classmethod
    def of(cls, n: int, columns: Mapping[str, tuple[list[Any], NDArray[np.intc]]]) -> MetadataTable:
        """The table of ``n`` documents that has these :meth:`columns`."""
        table = cls(columns)
        table._n = n
        for field, (values, numbers) in columns.items():
            table._values[field] = values
            table._numbers[field] = {_key(value): at for at, value in enumerate(values)}
            table._codes[field] = array("i", numbers.tobytes())
        return table

    @property
    def known(self) -> set[str]:
        """The fields that a document has."""
        return {
            field
            for field, values in self._values.items()
            if any(value is not MISSING for value in values)
        }

    def written(self, condition: Condition) -> tuple[set[str], set[str]]:
        """Return, as texts, what a condition asks for and no document has, and what documents have;
        nothing of ranges."""
        if condition.operator not in ("eq", "in"):
            return set(), set()
        values = self._values[condition.field]
        lists = [value if isinstance(value, list | tuple | set) else [value] for value in values]
        known = {item for of in lists for item in of if isinstance(item, str | int | float)}
        each = [Condition(condition.field, "eq", value) for value in condition.values]
        asked = {str(equal.value) for equal in each if not self._of_values(equal).any()}
        return asked, set(map(str, known))

    def _of_documents(self, condition: Condition) -> NDArray[np.bool_]:
        if not self._n:
            return np.zeros(0, dtype=np.bool_)
        return self._of_values(condition)[np.frombuffer(self._codes[condition.field], np.intc)]

    def _of_values(self, condition: Condition) -> NDArray[np.bool_]:
        """Return which of the distinct values of its field fit."""
        key = (condition.field, condition.operator, _key(condition.value))
        fitting = self._fitting.get(key)
        values = self._values[condition.field]
        if fitting is None or len(fitting) < len(values):
            column = self._columns.get(condition.field)
            if column is None or len(column) < len(values):
                column = self._columns[condition.field] = _Column(values)
            fitting = column.fitting(condition)
            if len(self._fitting) >= _MOST_REMEMBERED:
                self._fitting.clear()
            self._fitting[key] = fitting
        return fitting


class _Column:
    """Distinct values of a field as arrays by their kind, so that a million dates are compared at
    once."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values
        numbers, texts, rest = [], [], []
        for at, value in enumerate(values):
            if isinstance(value, str) and not value.endswith("\0"):  # which numpy would cut off
                texts.append(at)
            elif type(value) in (int, float) and abs(value) <= _EXACT:
                numbers.append(at)
            else:
                rest.append(at)
        longest = max((len(values[at]) for at in texts), default=0)
        if longest * len(texts) > _MOST_CHARACTERS:
            texts, rest = [], [*texts, *rest]
        self._arrays = (
            (np.array(numbers, np.intp), np.array([values[at] for at in numbers], np.float64)),
            (np.array(texts, np.intp), np.array([values[at] for at in texts], np.str_)),
        )
        self._rest = rest

    def __len__(self) -> int:
        return len(self._values)

    def fitting(self, condition: Condition) -> NDArray[np.bool_]:
        """Return which of them a condition allows."""
        mask = np.zeros(len(self), dtype=np.bool_)
        for at in self._rest:
            mask[at] = condition.fits(self._values[at])
        compare: Callable[[Any, Any], Any] = RANGES.get(condition.operator, operator.eq)
        for value in condition.values:
            if isinstance(value, bool):
                continue  # what is true or false is among the rest
            places, array = self._arrays[isinstance(value, str)]
            if isinstance(value, str) and value.endswith("\0"):
                mask[places] |= [condition.fits(self._values[at]) for at in places.tolist()]
            else:
                mask[places] |= compare(array, value)
        return mask


class Filtering:
    """Documents of a dataset that its filters allow.

    Args:
        table: metadata of all documents.
        ids: of these, in the same order.
        unit_of: document id -> unit id, where hits are units; a unit fits if one of its documents
            does.

    Attributes:
        table: the same.
    """

    def __init__(
        self, table: MetadataTable, ids: Sequence[str], unit_of: Mapping[str, str]
    ) -> None:
        self.table = table
        self._rows: dict[str, list[int]] = {}
        for row, doc_id in enumerate(ids):
            self._rows.setdefault(unit_of.get(doc_id, doc_id), []).append(row)
        self._masks: dict[Filter, NDArray[np.bool_]] = {}

    def share(self, given: Filter) -> float:
        """Return the share of all documents that fits."""
        mask = self._mask(given)
        return float(mask.mean()) if len(mask) else 0.0

    def count(self, given: Filter) -> int:
        """Return how many documents, or units, fit."""
        mask = self._mask(given)
        return sum(any(mask[row] for row in rows) for rows in self._rows.values())

    def fits(self, given: Filter, doc_ids: Iterable[str]) -> list[bool]:
        """For each of ``doc_ids`` whether it fits; one that is not in the corpus does not."""
        mask = self._mask(given)
        return [any(mask[row] for row in self._rows.get(doc_id, ())) for doc_id in doc_ids]

    def _mask(self, given: Filter) -> NDArray[np.bool_]:
        """Remembered for the last filter alone: those of a corpus of millions are large."""
        mask = self._masks.get(given)
        if mask is None:
            mask = self.table.mask(given)
            self._masks = {given: mask}
        return mask


def _joined(name: str, parts: list[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    if name == "not":
        return ~parts[0]
    joined = np.logical_and if name == "and" else np.logical_or
    return np.asarray(joined.reduce(parts), dtype=np.bool_)


def _key(value: Any) -> Any:
    """Tells values apart that compare equal: 1, 1.0 and True; lists by what they hold."""
    if isinstance(value, list | tuple | set | frozenset):
        return ("list", *map(_key, value))
    try:
        hash(value)
    except TypeError:
        return (type(value), repr(value))
    return (type(value), value)
