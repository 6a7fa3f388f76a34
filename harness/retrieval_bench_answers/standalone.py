"""The way from a conversation to the one text that is searched.

The rule is a setting: the last turn of the user, all turns joined, or a function of the user's own
that rewrites them, such as a call of a language model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrieval_bench.core import plugins, secrets
from retrieval_bench.core.calls.foreign import folder_kept, foreign_code, message_of
from retrieval_bench.core.errors import (
    ConfigError,
    ContractError,
    HarnessError,
    counted,
    first_few,
    near_names,
)
from retrieval_bench.core.types import Query

LAST = "last"
JOINED = "joined"

_ACCEPTED = "last, joined, or module:function called with [{'role': ..., 'content': ...}, ...]"

Rewriter = Callable[[list[dict[str, str]]], Any]


@dataclass(frozen=True, slots=True)
class Standalone:
    """Queries as they are searched.

    Attributes:
        queries: those with something to search for, in the order given; only ``text`` is changed.
        silent: ids of those that a function called unanswerable.
        warnings: in plain words.
    """

    queries: tuple[Query, ...]
    silent: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def load_rule(rule: str) -> str | Rewriter:
    """``last``, ``joined``, or the function that ``module:function`` names.

    Raises:
        ConfigError: another word, or what is named is no function.
        PluginError: it cannot be imported.
    """
    if rule in (LAST, JOINED):
        return rule
    if ":" not in rule:
        raise ConfigError(
            f"messages {rule!r}",
            where="--messages",
            kind="unknown-name",
            accepted=f"{near_names(rule, (LAST, JOINED))}, or module:function",
            fix="correct the word",
        )
    with folder_kept():
        function = plugins.load(rule)
    if not callable(function) or inspect.iscoroutinefunction(function):
        what = "an async function" if callable(function) else type(function).__name__
        raise ConfigError(f"{rule} is {what}", where="--messages", accepted=_ACCEPTED)
    named: Rewriter = function
    return named


def standalone_queries(queries: Sequence[Query], rule: str | Rewriter) -> Standalone:
    """``queries`` with the text that ``rule`` makes of their conversations.

    ``last``: the text as it is, which is the last turn of the user. ``joined``: all turns, one a
    line. A function gets the turns as dictionaries and gives the text to search for; None or a
    blank text says that no search is needed. Where it raises, the last turn is searched, and a
    warning counts and names those queries. A query without a conversation is one turn.

    Raises:
        ContractError: the function returned something else, or raised for every query, or says
            that none needs a search.
    """
    if rule == LAST:
        return Standalone(tuple(queries))
    if rule == JOINED:
        return Standalone(tuple(replace(query, text=_joined(query)) for query in queries))
    if isinstance(rule, str):
        raise ConfigError(f"messages {rule!r}", accepted=_ACCEPTED)
    return _rewritten(queries, rule)


def _joined(query: Query) -> str:
    return "\n".join(turn["content"] for turn in _turns(query) if turn["content"].strip())


def _turns(query: Query) -> list[dict[str, str]]:
    if not query.messages:
        return [{"role": "user", "content": query.text}]
    return [{"role": turn.role, "content": turn.content} for turn in query.messages]


def _rewritten(queries: Sequence[Query], function: Rewriter) -> Standalone:
    kept: list[Query] = []
    silent: list[str] = []
    failed: dict[str, str] = {}
    for query in queries:
        try:
            with folder_kept(), foreign_code(lambda problem: ContractError(message_of(problem))):
                text = function(_turns(query))
        except HarnessError as problem:
            failed[query.id] = problem.given
            text = query.text
        if text is not None and not isinstance(text, str):
            raise ContractError(
                f"the function of --messages gave {type(text).__name__} for query {query.id!r}",
                accepted="the text to search for, or None where no search is needed",
                fix="return a text",
            )
        if text is None or not text.strip():
            silent.append(query.id)
        else:
            kept.append(replace(query, text=text))
    if failed and len(failed) == len(queries):
        raise ContractError(
            f"the function of --messages failed on every query, first on {next(iter(failed))!r}: "
            + secrets.redact(next(iter(failed.values()))),
            accepted="a function of a list of {'role', 'content'}",
            fix="correct the function",
        )
    if not kept:
        raise ContractError(
            f"the function of --messages gave no text for any of {counted(len(queries), 'query')}",
            accepted="the text to search for, at least for one",
            fix="correct the function",
        )
    return Standalone(tuple(kept), tuple(silent), _failures(failed))


def _failures(failed: dict[str, str]) -> tuple[str, ...]:
    if not failed:
        return ()
    shown = first_few([f"{query_id} ({why})" for query_id, why in failed.items()])
    message = (
        f"the function of --messages failed on {counted(len(failed), 'query')}, "
        f"whose last turn was searched: {shown}"
    )
    return (secrets.redact(message),)
