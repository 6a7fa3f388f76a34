"""What users hand to an adapter: functions of their own, checked before anything runs, and what
they declare about an index that the harness did not build."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.core.types import EMPTY

_FINGERPRINT = ("index", "version", "count")


def name_of(function: Any) -> str:
    """``module:function`` for messages and the manifest; the type's name for other objects."""
    name = getattr(function, "__qualname__", None)
    return f"{function.__module__}:{name}" if name else type(function).__qualname__


def check_call(
    function: Callable[..., Any],
    name: str,
    handed: Sequence[str],
    params: Mapping[str, Any] = EMPTY,
    reserved: Collection[str] = (),
) -> None:
    """Raise unless ``function(*handed, **params)`` fits its signature.

    Args:
        function: what the user named.
        name: what they called it.
        handed: names of what the adapter hands over by position.
        params: what the user adds by keyword.
        reserved: parameters of the adapter, which ``function`` cannot have because they would
            never reach it.

    Raises:
        ConfigError: it cannot be called like that; names what it takes.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built in C: it does not say what it takes
        return
    own = list(signature.parameters.values())
    clash = [parameter.name for parameter in own if parameter.name in reserved]
    if clash:
        raise ConfigError(
            f"{name} has a parameter {clash[0]!r}, which would never reach it",
            where=f"{name}{signature}",
            accepted=f"names other than the adapter's own: {', '.join(sorted(reserved))}",
            fix="rename the parameter of the function",
        )
    try:
        signature.bind(*handed, **params)
    except TypeError as problem:
        by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        takes = [p.name for i, p in enumerate(own) if p.kind in by_name and i >= len(handed)]
        unknown = [key for key in params if key not in takes]
        call = ", ".join([*handed, *(["**params"] if params else [])])
        raise ConfigError(
            f"{name} cannot be called as function({call}): {problem}",
            where=f"{name}{signature}",
            kind="unknown-name",
            accepted=near_names(unknown[0], {*takes, *reserved})
            if unknown
            else f"a function of ({call})",
            fix=_remedy(unknown, handed),
        ) from None


def declared_index(external: Any) -> dict[str, Any]:
    """The fingerprint in the parameter ``external``: name, version and size of the index.

    Args:
        external: True (nothing is declared), or a mapping with some of the keys ``index``,
            ``version`` (text) and ``count`` (number of documents).

    Raises:
        ConfigError: neither of the two, an unknown key, or a count that is no number.
    """
    if external is True:
        return {}
    faults = []
    if not isinstance(external, Mapping) or not external:
        faults.append(f"a value of type {type(external).__name__}")
    else:
        faults += [f"unknown key {key!r}" for key in external if key not in _FINGERPRINT]
        count = external.get("count", 0)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            faults.append("a count that is no whole number")
    if faults:
        raise ConfigError(
            f"parameter 'external': {'; '.join(faults)}",
            accepted="true, or a mapping with some of the keys " + ", ".join(_FINGERPRINT),
            fix="for example external: {index: articles, version: 2024-05, count: 5183}",
        )
    # YAML reads a version such as 2024-05-01 as a date; a manifest holds text and numbers.
    return {key: value if isinstance(value, int) else str(value) for key, value in external.items()}


def filter_function(given: Any) -> Callable[[Any], Any] | None:
    """The function that makes an engine's filter of a :class:`.Filter`; None where none is given.

    Raises:
        PluginError: the name does not resolve.
        ConfigError: it is no function of one argument.
    """
    if given is None:
        return None
    name = given if isinstance(given, str) else name_of(given)
    translate = plugins.load(given) if isinstance(given, str) else given
    if not callable(translate):
        raise ConfigError(
            f"filter: {name} is {type(translate).__name__}, not a function",
            accepted="a function that gets the Filter of a query and returns the engine's own",
        )
    check_call(translate, name, ("filter",))
    function: Callable[[Any], Any] = translate
    return function


def _remedy(unknown: Sequence[str], handed: Sequence[str]) -> str:
    given_twice = [key for key in unknown if key in handed]
    if given_twice:
        return f"leave {', '.join(given_twice)} out: the harness hands that over itself"
    if unknown:
        return f"correct {', '.join(unknown)} under `params:`"
    if "documents" in handed:
        return "change the function; if its index exists already, say `external: true`"
    return "change the function, or give its other parameters defaults"
