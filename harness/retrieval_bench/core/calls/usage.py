"""Amounts that an answer used up: tokens, calls of a model or service, money.

A retriever says it in :attr:`.Ranking.usage`. Code that returns something else, such as a function
that rewrites queries with a language model, calls :func:`report_usage`, or returns the model's own
message, whose metadata are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Usage

FIELDS = ("tokens_in", "tokens_out", "calls", "money")
"""What is counted, in the order of arrays and tables."""

_MILLION = 1_000_000
_IN = ("tokens_in", "input_tokens", "prompt_tokens", "prompt_eval_count")
_OUT = ("tokens_out", "output_tokens", "completion_tokens", "eval_count")
"""What models and services call their tokens."""


class Price(BaseModel):
    """``price`` of a retriever or of a step: what it takes of money, where it does not say itself.

    Attributes:
        tokens_in, tokens_out: for a million tokens.
        calls: for one call.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens_in: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    tokens_out: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    calls: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

    def of(self, usage: Usage) -> Usage:
        """``usage`` with its money, unless it has some."""
        if usage.money is not None:
            return usage
        tokens = usage.tokens_in * self.tokens_in + usage.tokens_out * self.tokens_out
        money = tokens / _MILLION + usage.calls * self.calls
        return Usage(usage.tokens_in, usage.tokens_out, usage.calls, money)


_open: ContextVar[list[Usage] | None] = ContextVar("usage that is being collected", default=None)


def report_usage(
    *,
    tokens_in: float = 0,
    tokens_out: float = 0,
    calls: float = 0,
    money: float | None = None,
) -> None:
    """Say what was used up for the query that is being answered; several reports add up.

    To be called inside of ``search``, or of a function that a step of a pipeline calls. Elsewhere
    it does nothing.

    Args:
        tokens_in: that a model read.
        tokens_out: that a model wrote.
        calls: of models or services that are paid for.
        money: in the currency of whoever pays; None = by the ``price`` of the config, if any.

    Raises:
        ContractError: a number below 0, or none.
    """
    report(Usage(tokens_in, tokens_out, calls, money))


def report(usage: Usage | None) -> None:
    """Likewise of what is a :class:`Usage` already; None says nothing.

    Raises:
        ContractError: a number in it is below 0, or is none.
    """
    collector = _open.get()
    if collector is not None and usage is not None:
        collector.append(checked(usage))


@contextmanager
def collected() -> Iterator[Callable[[], Usage | None]]:
    """Collect what :func:`report_usage` is told inside; gives a function for the total so far, None
    where that is nothing. An outer collection does not see it."""
    usages: list[Usage] = []
    token = _open.set(usages)
    try:
        yield lambda: total(usages)
    finally:
        _open.reset(token)


def total(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum of those that are there; None where none is."""
    whole: Usage | None = None
    for usage in usages:
        if usage is not None:
            whole = usage if whole is None else whole + usage
    return whole


def checked(usage: Usage) -> Usage:
    """``usage``, in numbers that can be added and written down, whatever type they came in.

    Raises:
        ContractError: a number in it is below 0, or is none.
    """
    own: dict[str, Any] = {}
    for name in FIELDS:
        value: Any = getattr(usage, name)
        if value is None and name == "money":
            continue
        own[name] = value if isinstance(value, int | float) else _plain(value)
        if isinstance(value, bool) or not _is_number(value) or value < 0:
            raise ContractError(
                f"usage with {name} = {value!r}",
                accepted="numbers of 0 or more; money may be None, which is not known",
                fix="report what a call used up, not what is left",
            )
    return Usage(**own)


def usage_of(given: Any) -> Usage | None:
    """The usage in ``given``; None where there is none.

    Args:
        given: a :class:`Usage`; a mapping with its fields, or with tokens as models and services
            call them; or an answer that has such metadata, as messages of LangChain do.

    Raises:
        ContractError: a number in it is below 0, or is none.
    """
    if isinstance(given, Usage):
        return checked(given)
    if isinstance(given, Mapping):
        return _of_mapping(given)
    for name in ("usage_metadata", "usage"):
        held = getattr(given, name, None)
        if isinstance(held, Usage):
            return checked(held)
        if held is not None and not isinstance(held, Mapping):  # of OpenAI's client
            held = getattr(held, "__dict__", {})
        usage = _of_mapping(held) if held else None
        if usage is not None:
            return usage
    metadata = getattr(given, "response_metadata", None)
    if isinstance(metadata, Mapping):
        held = metadata.get("token_usage") or metadata.get("usage") or metadata
        return _of_mapping(held) if isinstance(held, Mapping) else None
    return None


def _of_mapping(given: Mapping[Any, Any]) -> Usage | None:
    """A model's metadata are of one call, unless they say so themselves."""
    counts = {
        "tokens_in": _first(given, _IN),
        "tokens_out": _first(given, _OUT),
        "calls": given.get("calls"),
        "money": given.get("money"),
    }
    if all(value is None for value in counts.values()):
        return None
    if counts["calls"] is None:
        counts["calls"] = 1
    return checked(Usage(**{name: value for name, value in counts.items() if value is not None}))


def _first(given: Mapping[Any, Any], names: Iterable[str]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except (TypeError, OverflowError):
        return False


def _plain(value: Any) -> Any:
    """A number of numpy or a Decimal as a float."""
    return float(value) if _is_number(value) else value
