"""The way from records to what JSON has.

A record says once what JSON documents have of it, in ``KEYS``: the document, its JSON Schema
(:mod:`retrieval_bench_catalog.schemas`) and the guide are made from that and from its
annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any, Generic, NamedTuple, TypeVar

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""Of all schemas."""


class Documented:
    """A record that stands in JSON documents.

    ``KEYS`` names its keys in their order, separated by blanks; empty for all fields of a
    dataclass. ``key=place.inner`` is what stands at another place, ``key?`` is left out where it is
    None, or an empty text or list, ``key!`` stands only in whole documents (see :func:`abridged`),
    and ``*place`` spreads the keys of what stands there. ``+`` is where the keys of records stand
    that :meth:`added` makes of it.
    """

    __slots__ = ()
    KEYS = ""

    @staticmethod
    def added() -> Sequence[Callable[[Any], Documented]]:
        """Classes of records, each made of one of this class."""
        return ()

    def as_dict(self) -> dict[str, Any]:
        """Return the record for JSON, with numbers to the last digit."""
        return document(self, self.KEYS)

    def shortened(self) -> Documented:
        """Return the record with fewer entries, for documents that are not whole."""
        return self


_ABRIDGED: ContextVar[bool] = ContextVar("abridged", default=False)


@contextmanager
def abridged() -> Iterator[None]:
    """Leave out the keys that stand only in whole documents: what is saved is always whole."""
    token = _ABRIDGED.set(True)
    try:
        yield
    finally:
        _ABRIDGED.reset(token)


def is_abridged() -> bool:
    """Say whether such keys are left out now."""
    return _ABRIDGED.get()


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class OnDataset(Documented, Generic[R]):
    """A record of one of several datasets.

    Attributes:
        dataset: its name.
        record: what is known of it.
    """

    KEYS = "dataset *record"

    dataset: str
    record: R


class AsText:
    """A value of which documents have what ``str`` gives."""

    __slots__ = ()


MISSING = "may be missing"
"""The mark, in ``Annotated``, of a field of a model that is not always written."""

LEFT_OUT = "left out where it is None"
"""The mark of one that is missing in place of None."""

WHOLE = "stands only in whole documents"
"""The mark of one that :func:`abridged` leaves out."""

SPREAD = "its keys stand in its place"
"""The mark of a field that is a mapping whose keys stand beside the other fields."""


class Spelt(NamedTuple):
    """The mark of keys of a mapping that all match ``pattern``, so that others can stand beside
    them."""

    pattern: str


class Key(NamedTuple):
    """A key of a document.

    Attributes:
        name: in the document; empty where the keys of the value are spread.
        place: the attribute that has its value, and the one of that, and so on; empty where the
            keys of added records stand.
        optional: it is left out where its value is None, or an empty text or list.
        whole: it stands only in whole documents.
    """

    name: str
    place: tuple[str, ...]
    optional: bool
    whole: bool = False


@cache
def keys_of(names: str) -> tuple[Key, ...]:
    """The keys that ``names`` says; see :class:`Documented`."""
    return tuple(map(_key, names.split()))


def _key(text: str) -> Key:
    if text == "+":
        return Key("", (), optional=False)
    if text.startswith("*"):
        return Key("", tuple(text[1:].split(".")), optional=False)
    name, _, place = text.partition("=")
    bare = name.rstrip("?!")
    return Key(bare, tuple((place or bare).split(".")), "?" in name, whole="!" in name)


def keys_of_class(kind: type) -> tuple[Key, ...]:
    """Return the keys of a class that is documented, or of any dataclass."""
    named: str = getattr(kind, "KEYS", "")
    return keys_of(named or " ".join(field.name for field in fields(kind)))


def document(record: Any, names: str = "") -> dict[str, Any]:
    """Collect the attributes ``names`` of ``record``, as :class:`Documented` describes it. Numbers
    stay as they are, to the last digit.

    Tuples become lists, members of an enumeration their values, paths text, records in
    it what their own ``as_dict`` gives or else their fields.
    """
    made: dict[str, Any] = {}
    for key in keys_of(names) if names else keys_of_class(type(record)):
        if key.whole and is_abridged():
            continue
        if not key.place:
            for made_of in type(record).added():
                made |= made_of(record).as_dict()
            continue
        value = record
        for part in key.place:
            value = getattr(value, part)
        if not key.name:
            made.update(plain(value))
        elif not (key.optional and _lacking(value)):
            made[key.name] = plain(value)
    return made


def _lacking(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | tuple) and not value)


def plain(value: Any) -> Any:
    """``value`` of what JSON has: see :func:`document`."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, PurePath | AsText):
        return str(value)
    if hasattr(value, "as_dict"):
        return value.as_dict()
    return document(value) if is_dataclass(value) else value
