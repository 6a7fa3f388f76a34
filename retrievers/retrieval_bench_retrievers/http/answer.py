"""Ids and scores out of the JSON that a service answers, as JMESPath expressions say."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.calls.usage import FIELDS
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.ranking import can_be_written
from retrieval_bench_retrievers.http.suggested import suggested_hits

Path = Callable[[Any], Any]
"""Reads one value out of parsed JSON; None where nothing is there."""

WHERE = "target http"
ORDERS = ("descending", "ascending")
NANOSECONDS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}

_SHOWN = 200
"""Characters of an answer that a message shows."""

_LONGEST_TIME = 9e9
"""In any unit. So many seconds as whole nanoseconds are still an int64."""

_ORDER_RANKS = "the order of the list then is the ranking"

_PLAIN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DEPTH, _PLACES, _KEYS = 4, 8, 10
"""How much of an answer's outline is shown: levels, places, and keys of each place."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Reading of answers: the hits one by one, or ids and scores side by side.

    Attributes:
        hits: from the answer to a list of hits; None = ``ids`` and ``scores`` are lists.
        ids: inside of a hit, or from the answer.
        scores: the same; None = the service gives none.
        ascending: scores are distances, the best hit has the lowest.
        names: expressions as written, for messages: parameter -> expression.
    """

    hits: Path | None
    ids: Path
    scores: Path | None
    ascending: bool
    names: Mapping[str, str]

    def read(self, answer: Any, k: int) -> tuple[list[str], list[float] | None, int]:
        """Ids, scores (higher is better, None where there are none), and how many hits there were;
        those beyond ``k`` are left out.

        Raises:
            ContractError: an expression that does not fit this answer, an id or a score that is
                none, or scores that are not in order.
            CallError: there are no hits, and the answer says that there was an error.
        """
        if self.hits is not None:
            given = self._list(self.hits, "hits", answer)
            hits = given[:k]
            named = [self.ids(hit) for hit in hits]
            numbers = None if self.scores is None else [self.scores(hit) for hit in hits]
        else:
            given = self._list(self.ids, "ids", answer)
            named = given[:k]
            numbers = None
            if self.scores is not None:
                numbers = self._list(self.scores, "scores", answer)
                if len(numbers) != len(given):
                    raise ContractError(
                        f"{len(given)} ids and {len(numbers)} scores in the answer",
                        where=f"ids: {self.names['ids']}, scores: {self.names['scores']}",
                        accepted="one score for each id",
                        fix="correct the two expressions",
                    )
                numbers = numbers[:k]
        ids = [self._id(hit, rank, answer) for rank, hit in enumerate(named, start=1)]
        return ids, None if numbers is None else self._in_order(numbers, answer), len(given)

    def beside(self, path: Path, param: str, answer: Any, k: int) -> list[str | None] | None:
        """Texts that the first ``k`` hits came with, such as where they are from; None where none
        has one.

        Args:
            path: inside of a hit, or from the answer where the ids are.
            param: what the user calls it.

        Raises:
            ContractError: there is something else.
        """
        if self.hits is None:
            given = self._list(path, param, answer)[:k]
        else:
            given = [path(hit) for hit in self._list(self.hits, "hits", answer)[:k]]
        for rank, value in enumerate(given, start=1):
            if value is not None and not isinstance(value, str):
                raise self._unfit(param, _kind(value), rank, answer, "a text")
        return given if any(value is not None for value in given) else None

    def _list(self, path: Path, param: str, answer: Any) -> list[Any]:
        hits = path(answer)
        if isinstance(hits, list):
            return hits
        if isinstance(answer, Mapping) and (says := answer.get("error") or answer.get("errors")):
            raise CallError(f"the service answered an error: {shown(json.dumps(says))}")
        what = "nothing" if hits is None else f"{_kind(hits)}, no list,"
        raise ContractError(
            f"{param} found {what} in the answer",
            where=f"{param}: {self.names.get(param, param)}",
            accepted=f"a JMESPath to a list; the answer has {outline(answer)}",
            fix=f"correct `{param}`",
        )

    def _id(self, value: Any, rank: int, answer: Any) -> str:
        if isinstance(value, str) and can_be_written(value):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        # A number with a point has lost what tells 1.10 from 1.1.
        kind = f"the number {value!r}" if isinstance(value, float) else _kind(value)
        kind = f"the text {value!r}" if isinstance(value, str) else kind
        place = "id" if self.hits else "ids"
        accepted = "a text on one line, not empty, or a whole number"
        raise self._unfit(place, kind, rank, answer, accepted)

    def _in_order(self, numbers: Sequence[Any], answer: Any) -> list[float]:
        scores: list[float] = []
        for rank, number in enumerate(numbers, start=1):
            fit = isinstance(number, int | float | str) and not isinstance(number, bool)
            try:
                score = float(number) if fit else math.nan
            except (ValueError, OverflowError):
                score = math.nan
            if not math.isfinite(score):
                param = "score" if self.hits else "scores"
                raise self._unfit(param, _kind(number), rank, answer, "a finite number")
            scores.append(-score if self.ascending else score)
        for rank in range(1, len(scores)):
            if scores[rank] > scores[rank - 1]:
                raise self._unsorted(numbers, rank)
        return scores

    def _unsorted(self, numbers: Sequence[Any], at: int) -> ContractError:
        way = "falls" if self.ascending else "rises"
        other = ORDERS[not self.ascending]
        return ContractError(
            f"the score {way} from {numbers[at - 1]} to {numbers[at]} at rank {at + 1}",
            where=f"order: {ORDERS[self.ascending]}",
            accepted="hits in the order of their scores, the best first",
            fix=f"say `order: {other}`"
            + (" if these are distances" if other == "ascending" else "")
            + f", or leave the score out: {_ORDER_RANKS}",
        )

    def _unfit(self, param: str, kind: str, rank: int, answer: Any, accepted: str) -> ContractError:
        return ContractError(
            f"{param} found {kind} at rank {rank}",
            where=f"{param}: {self.names.get(param, param)}",
            accepted=f"{accepted}; the answer has {outline(answer)}",
            fix=f"correct `{param}`"
            + (f", or leave it out: {_ORDER_RANKS}" if param.startswith("score") else ""),
        )


def reading(
    *,
    hits: str | None,
    hit_id: str | None,
    score: str | None,
    ids: str | None,
    scores: str | None,
    order: str,
    where: str = WHERE,
) -> Reading:
    """A :class:`Reading` from the parameters of the retriever; ``where`` is what it is.

    Without any of them the first answer is shown, with the lines that would read it.

    Raises:
        ConfigError: the two ways mixed or half, or an expression that is no JMESPath.
    """
    given = {"hits": hits, "id": hit_id, "score": score, "ids": ids, "scores": scores}
    names = {name: value for name, value in given.items() if value is not None}
    if not names:

        def untold(answer: Any) -> NoReturn:
            raise ContractError(
                "nothing says where the hits are",
                where=f"{where}, hits and id",
                accepted=f"hits and id, or ids; the answer has {outline(answer)}",
                fix=suggested_hits(answer) or "for example hits: hits.hits, id: _id, score: _score",
            )

        return Reading(None, untold, None, ascending=False, names={})
    in_hits = set(names) in ({"hits", "id"}, {"hits", "id", "score"})
    if not in_hits and set(names) not in ({"ids"}, {"ids", "scores"}):
        raise ConfigError(
            f"how to read an answer: {', '.join(names)}",
            where=where,
            accepted="hits and id, with or without score; or ids, with or without scores",
            fix="for example hits: hits.hits, id: _id, score: _score",
        )
    one_of(order, "order", ORDERS, where)
    paths = {name: compiled(value, name, where) for name, value in names.items()}
    return Reading(
        paths.get("hits"),
        paths["id" if in_hits else "ids"],
        paths.get("score" if in_hits else "scores"),
        order == "ascending",
        names,
    )


def one_of(given: str, name: str, accepted: Sequence[str], where: str = WHERE) -> str:
    """``given``, a parameter that takes one of these words.

    Raises:
        ConfigError: it is another one.
    """
    if given not in accepted:
        raise ConfigError(f"{name} = {given!r}", where=where, accepted=" or ".join(accepted))
    return given


def server_time(given: Any, where: str = WHERE) -> tuple[Path, float, str] | None:
    """From the parameter ``server_time``: where the answer has it, nanoseconds in its unit, and the
    expression.

    Raises:
        ConfigError: neither an expression nor ``{unit: expression}``.
    """
    if given is None:
        return None
    by_unit = given if isinstance(given, Mapping) else {"ms": given}
    unit, expression = next(iter(by_unit.items()), ("", ""))
    if len(by_unit) != 1 or unit not in NANOSECONDS or not isinstance(expression, str):
        raise ConfigError(
            f"server_time = {given!r}",
            where=where,
            accepted="a JMESPath to milliseconds, or {UNIT: JMESPath} with one of "
            + ", ".join(NANOSECONDS),
            fix="for example server_time: took, or server_time: {s: time}",
        )
    return compiled(expression, "server_time", where), NANOSECONDS[unit], expression


def server_ns(how: tuple[Path, float, str], answer: Any) -> int:
    """Nanoseconds that the service says it took.

    Raises:
        ContractError: there is no such number in the answer.
    """
    path, unit, expression = how
    time = path(answer)
    fit = isinstance(time, int | float) and not isinstance(time, bool)
    if not fit or not 0 <= time < _LONGEST_TIME:
        raise ContractError(
            f"server_time found {_kind(time)} in the answer",
            where=f"server_time: {expression}",
            accepted=f"a number; the answer has {outline(answer)}",
            fix="correct `server_time`, or leave it out",
        )
    return round(float(time) * unit)


def usage_paths(given: Any, where: str = WHERE) -> dict[str, Path]:
    """From the parameter ``usage``: where the answer has each kind of it.

    Raises:
        ConfigError: no mapping of kinds to expressions.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not given or not set(given) <= set(FIELDS):
        raise ConfigError(
            f"usage = {given!r}",
            where=where,
            accepted=f"a mapping with some of {', '.join(FIELDS)} to JMESPath",
            fix="for example usage: {tokens_in: usage.prompt_tokens}",
        )
    return {name: compiled(path, f"usage.{name}", where) for name, path in given.items()}


def compiled(expression: Any, param: str, where: str = WHERE) -> Path:
    """A JMESPath as a function; plain names with dots, the usual case, cost next to nothing.

    Raises:
        ConfigError: it is none.
    """
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        parsed = jmespath.compile(expression)
    except (JMESPathError, TypeError, ValueError) as problem:
        raise ConfigError(
            f"{param} = {expression!r} is no JMESPath: {str(problem).partition(chr(10))[0]}",
            where=where,
            accepted="a JMESPath, such as hits.hits or result.points[].payload",
            fix=f"correct `{param}`",
        ) from None
    if _PLAIN.fullmatch(expression):
        return walker(expression.split("."))

    def search(content: Any) -> Any:
        try:
            return parsed.search(content)
        except JMESPathError as problem:  # a function that was given what it does not take
            raise ContractError(
                f"{param} cannot be applied to the answer: {problem}",
                where=f"{param}: {expression}",
                fix=f"correct `{param}`",
            ) from None

    return search


def outline(answer: Any) -> str:
    """The keys of an answer, level by level, without its values: ``took, hits; hits.hits[]: _id``.

    Of a list the first item stands for all.
    """
    places = list(_places(answer, "", 0))[:_PLACES]
    if not places:
        return f"no keys, it is {_kind(answer)}"
    lines = [
        (f"{place}: " if place else "") + ", ".join([*keys[:_KEYS], *["..."] * (len(keys) > _KEYS)])
        for place, keys in places
    ]
    return "; ".join(lines)


def shown(text: str) -> str:
    """The beginning of an answer, on one line."""
    line = "".join(item if item.isprintable() else " " for item in " ".join(text.split()))
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."


def walker(steps: Sequence[str]) -> Path:
    """Reads what stands under these keys, one in the other."""

    def walk(content: Any) -> Any:
        for step in steps:
            if not isinstance(content, dict):
                return None
            content = content.get(step)
        return content

    return walk


def _places(node: Any, place: str, depth: int) -> Iterator[tuple[str, list[str]]]:
    while isinstance(node, list) and node:
        node, place = node[0], f"{place}[]"
    if not isinstance(node, Mapping) or depth == _DEPTH:
        return
    if node:
        yield place, [str(key) for key in node]
    for key, value in node.items():
        yield from _places(value, f"{place}.{key}" if place else str(key), depth + 1)


def _kind(value: object) -> str:
    kinds = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false"}
    return "nothing" if value is None else kinds.get(type(value), "a number")


def order_of_ties(scores: Sequence[float] | None) -> range | None:
    """:attr:`.Ranking.order` where scores tie: the answer's own order stays. None = none do."""
    ties = scores is not None and any(a == b for a, b in pairwise(scores))
    return range(len(scores or ())) if ties else None
