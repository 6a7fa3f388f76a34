"""The statement of the ``sql`` retriever: its placeholders, what each call puts into them, and the
ranking that its rows are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from retrieval_bench.core.errors import ConfigError, ContractError, check_known
from retrieval_bench.core.filters import Filter
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench_retrievers.encoders.encoder import readable

WHERE = "retriever sql"
FILTER = "filter."
_PLAIN = ("text", "k", "embedding", "language")
ACCEPTED = "%(text)s, %(k)s, %(embedding)s, %(language)s and %(filter.NAME)s; %% for a percent sign"
_PERCENT = re.compile(r"%(?:\(([^)]*)\)([a-zA-Z])?|(%)|(.?))", re.DOTALL)
_COMMENTS_AND_END = re.compile(r"[;\s]+\Z")


class Statement:
    """One query of SQL with named placeholders, checked.

    Args:
        template: as in the config.
        missing: what becomes of a filter value that a query lacks: "error", or "null" for NULL.

    Attributes:
        text: the statement, without a semicolon at its end.
        names: all its placeholders.
        filters: the NAMEs of its ``%(filter.NAME)s``.

    Raises:
        ConfigError: no text, or a placeholder that is not known.
    """

    def __init__(self, template: Any, missing: Any = "error") -> None:
        if not isinstance(template, str) or not template.strip():
            raise ConfigError(
                f"statement = {template!r}",
                where=WHERE,
                accepted="one SELECT whose first column is the id, the second the score",
            )
        if missing not in ("error", "null"):
            raise ConfigError(
                f"missing = {missing!r}",
                where=WHERE,
                accepted="error, or null: bind NULL where a query has no such filter value",
            )
        self.text = _COMMENTS_AND_END.sub("", template)
        self.names = frozenset(placeholders(self.text))
        self.filters = frozenset(n.removeprefix(FILTER) for n in self.names if n.startswith(FILTER))
        self._nulls = missing == "null"
        self._applied: dict[str, None] = {}

    @property
    def embeds(self) -> bool:
        """True where it takes the vector of the query."""
        return "embedding" in self.names

    @property
    def speaks(self) -> bool:
        """True where it takes the name of a text search configuration."""
        return "language" in self.names

    def bound(self, query: Query, k: int, vector: Any, language: str) -> dict[str, Any]:
        """Placeholder -> value for one call.

        Args:
            vector: shape (dimension,), None where the statement takes none.

        Raises:
            ContractError: the query has a filter that the statement does not apply in full, or
                lacks a value and ``missing`` is "error".
        """
        values: dict[str, Any] = {"text": plain_text(query.text), "k": k}
        values |= {"embedding": vector, "language": language}
        if self.filters:
            given: Mapping[str, Any] = {}
            if query.filter is not None:
                self._require_applied(query.filter, query)
                given = query.filter.values
            for name in self.filters:
                if name not in given and not self._nulls:
                    raise ContractError(
                        f"the query has no filter value {name!r}, which the statement takes",
                        where=f"{WHERE}, query {query.id!r}",
                        fix="say `missing: null` and let the statement take NULL: "
                        f"(%(filter.{name})s::text IS NULL OR ...)",
                    )
                values[FILTER + name] = given.get(name)
        return values

    def sample(self, vector: Any, language: str) -> dict[str, Any]:
        """Values for a trial in which nothing is searched; filter values are NULL."""
        values = {"text": "text", "k": 1, "embedding": vector, "language": language}
        return values | {FILTER + name: None for name in self.filters}

    def _require_applied(self, wanted: Filter, query: Query) -> None:
        """A filter that is applied in part would give answers that nobody may see."""
        if wanted.canonical in self._applied:
            return
        without_name = wanted.translated(lambda _: [], _without_name)
        if without_name:
            raise ContractError(
                f"the filter of the query has {without_name[0]!r}, which no placeholder stands for",
                where=f"{WHERE}, query {query.id!r}",
                accepted="conditions that must all hold",
                fix="write that condition into the statement itself",
            )
        if not wanted.is_named:
            raise ContractError(
                "the filter of the query sets one field twice, and a placeholder has one value",
                where=f"{WHERE}, query {query.id!r}",
                accepted="conditions with a name each",
                fix="write one of them into the statement itself",
            )
        left = sorted(set(wanted.values) - self.filters)
        if left:
            raise ContractError(
                f"the filter of the query sets {', '.join(left)}, which the statement leaves out",
                where=f"{WHERE}, query {query.id!r}",
                accepted=", ".join(f"%({FILTER}{name})s" for name in sorted(self.filters)),
                fix=f"add a condition with %({FILTER}{left[0]})s to the statement",
            )
        self._applied[wanted.canonical] = None


def plain_text(text: str) -> str:
    """``text`` as PostgreSQL can hold it: no NUL, no halves of surrogate pairs."""
    return readable(text).replace("\x00", " ")


def placeholders(text: str, accepted: Sequence[str] = _PLAIN) -> Iterator[str]:
    """Names in order of appearance, each checked.

    Args:
        accepted: names, beside ``filter.NAME``.

    Raises:
        ConfigError: one that is not known, or is not written as one.
    """
    for match in _PERCENT.finditer(text):
        name, kind, doubled, _ = match.groups()
        if doubled:
            continue
        if name is None:
            raise ConfigError(
                f"the statement holds {match[0]!r}",
                where=WHERE,
                accepted=ACCEPTED,
                fix="double a percent sign that is meant: %%",
            )
        if kind not in ("s", "b", "t"):
            raise ConfigError(
                f"the statement holds %({name}) without an s behind it",
                where=WHERE,
                accepted=ACCEPTED,
                fix=f"write %({name})s",
            )
        if not name.startswith(FILTER) or len(name) == len(FILTER):
            fix = "correct its name; a value of the query's filter is %(filter.NAME)s"
            what, where = f"unknown placeholder %({name})s", f"{WHERE}, statement"
            check_known(name, [*accepted, "filter.NAME"], what, where=where, fix=fix)
        yield name


def _without_name(name: str, parts: list[list[str]]) -> list[str]:
    """The groups whose conditions need not all hold."""
    return [name] * (name != "and") + [*chain.from_iterable(parts)]


def ranking_of(
    rows: Sequence[Sequence[Any]], query: Query, stages: Mapping[str, int], sign: float | None
) -> Ranking:
    """The first column as ids, the second as scores; ties by id.

    Args:
        rows: best first.
        sign: 1, -1 for distances, None where there are no scores.

    Raises:
        ContractError: NULL as an id, a score that is no finite number or that rises.
    """
    ids: list[str] = []
    for rank, row in enumerate(rows, start=1):
        if row[0] is None:
            raise _no_ranking(f"NULL as the id at rank {rank}", query, "a text")
        ids.append(str(row[0]))
    if sign is None:
        return Ranking(ids, None, stages)
    pairs: list[tuple[float, str]] = []
    for rank, (doc_id, row) in enumerate(zip(ids, rows, strict=True), start=1):
        try:
            score = sign * float(row[1])
        except (TypeError, ValueError):
            score = math.nan
        if not math.isfinite(score):
            given = f"the score {row[1]!r} at rank {rank}"
            raise _no_ranking(given, query, "a finite number")
        if pairs and score > -pairs[-1][0]:
            fix = "add ORDER BY; for distances say `order: ascending`"
            raise _no_ranking(f"a score that rises at rank {rank}", query, "best first", fix)
        pairs.append((-score, doc_id))
    pairs.sort()
    return Ranking([doc_id for _, doc_id in pairs], [-score for score, _ in pairs], stages)


def _no_ranking(what: str, query: Query, accepted: str, fix: str = "") -> ContractError:
    return ContractError(
        f"the statement returned {what}",
        where=f"{WHERE}, query {query.id!r}",
        accepted=f"{accepted}; the first column is the id, the second the score",
        fix=fix or "correct the statement",
    )
