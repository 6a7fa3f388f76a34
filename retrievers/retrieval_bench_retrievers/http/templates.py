"""Requests with places for a query: ``{text}``, ``{k}``, ``{embedding}``, ``{filter}`` and
``{filter.NAME}``; where a document is written, ``{document.id}`` and ``{document.text}``.

The list is closed. Every other brace stays as it is, so that the query languages of engines pass
through untouched, and ``{{text}}`` writes ``{text}``. Only values are looked at: never the keys of
mappings, and never what came from the environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.filters import Filter
from retrieval_bench.core.secrets import Filled
from retrieval_bench.core.types import Query
from retrieval_bench_retrievers.encoders.encoder import readable

FILTER = "filter"
"""The placeholder of a whole filter, and what those of its values begin with."""

_NAMES = rf"text|k|embedding|document\.(?:id|text)|{FILTER}(?:\.[^{{}}\s]+)?"
_PLACEHOLDER = re.compile(rf"\{{(\{{)?({_NAMES})\}}(?(1)\}})")
_UNQUOTED = re.compile(_NAMES)

GONE: Any = object()
"""What is left of a template whose placeholder has no value."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for the value of this name."""

    name: str


Parts = tuple[str | Slot, ...]


class Template:
    """A value of a config, of any JSON type, with its placeholders found.

    A text that is one placeholder and nothing else becomes the value itself: a number stays a
    number, a vector a list. In a longer text a value is written out: texts as they are, all others
    as JSON.

    Args:
        raw: what stands in the config.
        where: for messages.
        literal: nothing in it is a placeholder.

    Attributes:
        names: of the placeholders in it.

    Raises:
        ConfigError: a placeholder without quotes, which YAML reads as a mapping.
    """

    def __init__(self, raw: Any, where: str, *, literal: bool = False) -> None:
        self._root = raw if literal else _found(raw, where)
        self.names = frozenset(_names(self._root))

    def render(self, values: Mapping[str, Any]) -> Any:
        """The value with ``values`` in it, by name of their placeholder.

        A key or an item whose placeholder has no value is left out, and so is a mapping or a list
        that is empty because of it, and an item of a list of which only constants remain. GONE
        where nothing remains.
        """
        return self._root if not self.names else _rendered(self._root, values)


class UrlTemplate:
    """A URL whose values are percent-encoded; arguments as :class:`Template`."""

    def __init__(self, raw: str, *, literal: bool = False) -> None:
        parts = (str(raw),) if literal else _parts(raw)
        path, *query = _split(parts, "?", most=1)
        self._path = path
        self._query = _split(query[0], "&") if query else []
        self.names = frozenset(_names(Text(parts)))
        self.in_path = frozenset(_names(Text(path)))
        """Those that stand before the query, and so cannot be left out."""

    def render(self, values: Mapping[str, Any]) -> str:
        """The URL; a parameter of its query whose placeholder has no value is left out."""
        url = _joined(self._path, values, _encoded)
        arguments = [_joined(item, values, _encoded) for item in self._query]
        kept = [argument for argument in arguments if argument is not GONE]
        return f"{url}?{'&'.join(kept)}" if kept else str(url)


@dataclass(frozen=True, slots=True)
class Text:
    """A text with at least one placeholder."""

    parts: Parts


def unplaced(asked: Filter, names: frozenset[str]) -> list[str]:
    """Conditions of a filter that no placeholder in ``names`` carries, as a config would name them.

    What is not carried would be dropped without a word, and the answer be that of another query.
    """
    if FILTER in names:
        return []
    left = [name for name in asked.values if f"{FILTER}.{name}" not in names]
    return left or ([] if asked.is_named else ["one in `or`, `not` or twice on a field"])


def values_of(asked: Filter | None) -> dict[str, Any]:
    """The values of the placeholders of a filter, none for no filter."""
    if asked is None:
        return {}
    named = {f"{FILTER}.{name}": value for name, value in asked.values.items()}
    return {FILTER: dict(asked.source), **named}


def filled(
    query: Query, k: int, names: frozenset[str], *, where: str, drop: bool, kept: frozenset[str]
) -> dict[str, Any]:
    """The values of a query for the placeholders ``names`` (but ``embedding``), by name; those that
    it has no value for are not there.

    Args:
        drop: what holds a placeholder without a value is left out.
        kept: placeholders that stand where nothing can be left out.

    Raises:
        ContractError: a condition of its filter has no placeholder, or a placeholder no value.
    """
    values = {"text": readable(query.text), "k": k, **values_of(query.filter)}
    if query.filter is not None and (left := unplaced(query.filter, names)):
        raise ContractError(
            f"the filter of query {query.id!r} has {', '.join(left)}, for which the request "
            "has no place",
            where=where,
            accepted=", ".join(f"{{{name}}}" for name in sorted(names)),
            fix='add a placeholder for it, or "{filter}" for the filter as it is written',
        )
    absent = {name for name in names - {"embedding"} if name not in values}
    if without := absent & kept if drop else absent:
        raise ContractError(
            f"query {query.id!r} has no value for "
            + ", ".join(f"{{{name}}}" for name in sorted(without)),
            where=where,
            accepted="a filter with these fields for every query",
            fix="take the placeholder out of the path"
            if drop
            else "say `missing: drop` to leave out what holds it",
        )
    return values


def checked_names(
    names: frozenset[str], encoder: Any, *, where: str, places: str, otherwise: str = ""
) -> None:
    """Refuse a request that holds nothing of the query, or half of an embedding.

    Args:
        places: where placeholders may stand, for messages.
        otherwise: another way out, for a message.

    Raises:
        ConfigError: either.
    """
    if written := sorted(name for name in names if name.startswith("document.")):
        raise ConfigError(
            f"{{{written[0]}}} in {places}",
            where=where,
            accepted="{text}, {k}, {embedding} and {filter}: a search has no document",
            fix=f"put it under `write`, or write {{{{{written[0]}}}}} for the braces as they are",
        )
    if not {"text", "embedding"} & names:
        raise ConfigError(
            "nothing of the query is in the request",
            where=where,
            accepted=f"{{text}} or {{embedding}} in {places}",
            fix=f'write "{{text}}" where the text of the query belongs{otherwise}',
        )
    if ("embedding" in names) != (encoder is not None):
        given = "encoder" if encoder is not None else "{embedding}"
        other = "{embedding}" if encoder is not None else "encoder"
        raise ConfigError(
            f"{given} without {other}",
            where=where,
            accepted="both or neither",
            fix=f'for example encoder: {{model: all-MiniLM-L6-v2}} and "{{embedding}}" in {places}',
        )


def _found(raw: Any, where: str) -> Any:
    if isinstance(raw, str):
        parts = _parts(raw)
        if any(isinstance(part, Slot) for part in parts):
            return Text(parts)
        return "".join(str(part) for part in parts)
    if isinstance(raw, Mapping):
        for key, value in raw.items():
            if value is None and len(raw) == 1 and _UNQUOTED.fullmatch(str(key)):
                raise ConfigError(
                    f"{{{key}}} without quotes, which YAML reads as a mapping",
                    where=where,
                    accepted=f'"{{{key}}}"',
                    fix="put it into quotes",
                )
        return {key: _found(value, f"{where}.{key}") for key, value in raw.items()}
    if isinstance(raw, list | tuple):
        return [_found(value, f"{where}.{at}") for at, value in enumerate(raw)]
    return raw


def _parts(raw: str) -> Parts:
    """A text as literal pieces and slots; what came from the environment is literal."""
    parts: list[str | Slot] = []
    end = 0
    for start, stop in raw.spans if isinstance(raw, Filled) else ():
        parts += [*_pieces(raw[end:start]), raw[start:stop]]
        end = stop
    parts += _pieces(raw[end:])
    return tuple(part for part in parts if part != "")


def _pieces(text: str) -> Iterator[str | Slot]:
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        yield text[end : match.start()]
        yield f"{{{match[2]}}}" if match[1] else Slot(match[2])
        end = match.end()
    yield text[end:]


def _names(node: Any) -> Iterator[str]:
    if isinstance(node, Text):
        yield from (part.name for part in node.parts if isinstance(part, Slot))
    elif isinstance(node, Mapping | list):
        for value in node.values() if isinstance(node, Mapping) else node:
            yield from _names(value)


def _split(parts: Sequence[str | Slot], separator: str, most: int = -1) -> list[Parts]:
    """``parts`` cut at ``separator`` in the literal pieces, at most ``most`` times."""
    groups: list[list[str | Slot]] = [[]]
    for part in parts:
        left = most - len(groups) + 1 if most >= 0 else -1
        pieces = [part] if isinstance(part, Slot) else part.split(separator, left)
        groups[-1].append(pieces[0])
        groups += [[piece] for piece in pieces[1:]]
    return [tuple(group) for group in groups]


def _rendered(node: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(node, Text):
        if len(node.parts) == 1 and isinstance(node.parts[0], Slot):
            return values.get(node.parts[0].name, GONE)
        return _joined(node.parts, values, _plain)
    if isinstance(node, Mapping):
        filled = {key: _rendered(value, values) for key, value in node.items()}
        kept = {key: value for key, value in filled.items() if value is not GONE}
        return kept if kept or not filled else GONE
    if isinstance(node, list):
        items = [GONE if _emptied(item, values) else _rendered(item, values) for item in node]
        left = [value for value in items if value is not GONE]
        return left if left or not items else GONE
    return node


def _emptied(item: Any, values: Mapping[str, Any]) -> bool:
    """Return whether an item lost its values and only constants are left: a condition without its
    value, such as ``{key: tenant, match: {value: "{filter.tenant}"}}``."""
    names = set(_names(item)) if isinstance(item, Mapping) else set()
    return bool(names) and names.isdisjoint(values)


def _joined(parts: Parts, values: Mapping[str, Any], write: Callable[[Any], str]) -> Any:
    if any(isinstance(part, Slot) and part.name not in values for part in parts):
        return GONE
    return "".join(write(values[p.name]) if isinstance(p, Slot) else p for p in parts)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _encoded(value: Any) -> str:
    return quote(_plain(value), safe="")
