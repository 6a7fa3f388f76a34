"""Hits out of the result of a tool: JSON in it or in its texts, links, or a pattern over its text.

The expressions see the result as the server gave it (``content``, ``structuredContent``) and, under
``json``, what its text parts hold as JSON: the value of the only part, or a list of those of all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench_retrievers.http.answer import (
    ORDERS,
    Path,
    Reading,
    compiled,
    one_of,
    outline,
    shown,
)
from retrieval_bench_retrievers.http.suggested import suggested_hits
from retrieval_bench_retrievers.mcp.messages import WHERE

REPEATED = ("auto", "apart", "first")
"""What becomes of several hits of one id: each is one of its own, or the first alone counts; of
itself the former where hits have texts."""

BETWEEN = "between"
"""As ``text``: the part between two matches of the pattern."""

_HEADING = re.compile(r"^(#{1,6}) ", re.MULTILINE)
_SCORED = re.compile(
    r"^(?P<head>#{1,6} |[-*] |)(?P<id>\S.*?)(?P<before>"
    r"(?:\s*[:,–—-]\s*|\s+|\s*[(\[]\s*)(?:score|similarity|relevance|match)\s*[:=]?\s*"
    r"|\s*[(\[](?=[\d.]+%)|\s+[–—-]\s+(?=[\d.]+%)|:\s+(?=[\d.]+%)"
    r"|\s*[(\[](?=\d*\.\d+[)\]]))(?P<score>\d*\.?\d+)(?P<after>\s*%?\s*[)\]]?)\s*$",
    re.MULTILINE | re.IGNORECASE,
)
"""A line with an id and its score: ``### a.md (score 1)``, ``a.md: 87%``."""

_GROUPS = ("id", "score", "text", "source")
_SELF = "@"


@dataclass(frozen=True, slots=True)
class Hits:
    """Hits that were read of an answer.

    Attributes:
        ids: distinct, the best first, at most k.
        scores: one each, higher is better; None where none are read.
        texts, sources: one each; None where none are read.
        given: hits in the answer.
        repeated: the first id that several hits have; None = each has its own.
    """

    ids: list[str]
    scores: list[float] | None
    texts: list[str | None] | None
    sources: list[str | None] | None
    given: int
    repeated: str | None = None


class Reader:
    """Reads answers as the parameters of the retriever say.

    Args:
        hits: JMESPath to the list of hits, or with ``pattern`` to the texts that it reads.
        written: JMESPath inside of a hit, of ``id``, ``score``, ``text`` and ``source``; with
            ``pattern`` its groups say it, and ``text`` may be :data:`BETWEEN`.
        pattern: regular expression whose every match is a hit; lines begin and end at ``^``, ``$``.
        empty: regular expression of texts that say that there are no hits.
        order: of the scores.
        repeated: one of :data:`REPEATED`.

    Attributes:
        apart: whether each of several hits of one id is a hit of its own.
        has_scores: whether hits have one.
        given: whether there is a way to read hits at all.

    Raises:
        ConfigError: parameters that do not fit.
    """

    def __init__(
        self,
        hits: str | None,
        written: Mapping[str, str | None],
        pattern: str | None = None,
        empty: str | None = None,
        *,
        order: str = ORDERS[0],
        repeated: str = "auto",
    ) -> None:
        hit_id = written["id"]
        one_of(order, "order", ORDERS, WHERE)
        one_of(repeated, "repeated", REPEATED, WHERE)
        self.given = hits is not None or pattern is not None
        self._pattern = None if pattern is None else _regular(pattern, "pattern")
        self._empty = None if empty is None else _regular(empty, "empty")
        if self._empty is not None and self._empty.search(""):
            raise ConfigError(
                f"empty = {empty!r} matches any text",
                where=WHERE,
                accepted="a pattern of texts that say that there are no hits",
                fix="write what they begin with",
            )
        self._between = self._pattern is not None and written["text"] == BETWEEN
        if self._pattern is not None:
            written = self._groups_of(self._pattern, written)
        elif (hits is None) != (hit_id is None):
            raise ConfigError(
                f"{'hits' if hit_id is None else 'id'} without {'id' if hits else 'hits'}",
                where=WHERE,
                accepted="hits and id, or pattern",
                fix="for example hits: structuredContent.result, id: id",
            )
        self._hits = None if hits is None else compiled(hits, "hits")
        self._parses = hit_id != _SELF
        self._names = {"hits": hits or "content[].text", **written}
        self._json = re.search(r"\bjson\b", hits or "") is not None
        self._of_parts = re.search(r"\bcontent\b", hits or "") is not None
        paths = {name: compiled(value, name) for name, value in written.items() if value}
        self._id: Path = paths.get("id", _nothing)
        self._text, self._source = paths.get("text"), paths.get("source")
        if self._between:
            self._text = compiled("text", "text")
        names = {name: str(value) for name, value in self._names.items() if value}
        self._reading = Reading(_as_is, self._id, paths.get("score"), order == ORDERS[1], names)
        self.has_scores = "score" in paths
        self.apart = repeated == "apart" or (repeated == "auto" and self._text is not None)

    def _groups_of(
        self, pattern: re.Pattern[str], written: Mapping[str, str | None]
    ) -> dict[str, str | None]:
        """The groups of the pattern take the place of expressions."""
        beside = [name for name, value in written.items() if value is not None]
        if self._between:
            beside.remove("text")
        groups = set(pattern.groupindex)
        faults = [f"{name} beside pattern" for name in beside]
        faults += [f"the group {name!r}" for name in sorted(groups - set(_GROUPS))]
        faults += [] if "id" in groups else ["no group id"]
        faults += (
            ["a group text beside text: between"] if self._between and "text" in groups else []
        )
        if faults:
            raise ConfigError(
                f"pattern: {'; '.join(faults)}",
                where=WHERE,
                accepted=f"groups {', '.join(_GROUPS)}, of which id must be there; text: between "
                "takes what stands between two matches",
                fix=r"for example pattern: '^## \[(?P<id>[^\]]+)\]'",
            )
        return {name: name if name in groups else None for name in _GROUPS}

    def seen(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result as the expressions see it."""
        if not self._json:
            return result
        return {**result, "json": json_of(result)}

    def read(self, result: Mapping[str, Any], k: int) -> Hits:
        """The hits of a result.

        Raises:
            ContractError: the expressions or the pattern do not fit it.
        """
        answer = self.seen(result)
        if not self.given:
            raise ContractError(
                "nothing says where the hits are",
                where=f"{WHERE}, hits and pattern",
                accepted=f"hits and id, or pattern; the answer {described(answer)}",
                fix=suggested(answer),
            )
        try:
            hits = self._matched(answer) if self._pattern is not None else self._listed(answer)
        except ContractError:
            if self._empty is None or not any(map(self._empty.search, texts_of(result))):
                raise
            hits = []
        if not hits:
            return Hits([], [] if self.has_scores else None, None, None, 0)
        first: dict[Any, int] = {}
        twice: str | None = None
        for at, hit in enumerate(hits):
            given = self._id(hit)
            known = first.setdefault(given if isinstance(given, str | int | float) else at, at)
            if twice is None and known != at:
                twice = str(given)
        kept = hits[:k] if self.apart else [hits[at] for at in list(first.values())[:k]]
        ids, scores, _ = self._reading.read(kept, len(kept))
        texts = sources = None
        if self._text is not None:
            texts = [_as_text(self._text(hit)) for hit in kept]
        if self._source is not None:
            sources = [_as_text(self._source(hit)) for hit in kept]
        if len(set(ids)) < len(ids):
            sources = sources or list(ids)
            ids = _numbered(ids)
        return Hits(ids, scores, texts, sources, len(hits), twice)

    def _listed(self, answer: Mapping[str, Any]) -> list[Any]:
        """The hits that the expression ``hits`` finds; texts among them hold JSON."""
        assert self._hits is not None
        hits = self._hits(answer)
        if self._parses and (
            isinstance(hits, str) or (isinstance(hits, Mapping) and self._names["hits"] == "json")
        ):
            hits = [hits]  # of hits in a text part each, the only one
        if not isinstance(hits, list):
            raise self._misfit("nothing" if hits is None else "no list", answer)
        if not hits and self._of_parts and json_of(answer) is None and texts_of(answer):
            raise self._misfit("nothing but a text", answer)
        if not self._parses or not any(isinstance(hit, str) for hit in hits):
            return hits
        parsed: list[Any] = []
        for hit in hits:
            try:
                inside = json.loads(hit) if isinstance(hit, str) else hit
            except (ValueError, RecursionError):
                raise self._misfit(f"a text that is no JSON ({shown(hit)})", answer) from None
            parsed += inside if isinstance(inside, list) else [inside]
        return parsed

    def _matched(self, answer: Mapping[str, Any]) -> list[Any]:
        """A hit for each match of the pattern."""
        assert self._pattern is not None
        texts = texts_of(answer) if self._hits is None else self._hits(answer)
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise self._misfit("no text", answer)
        if self._hits is None and not texts and answer.get("content") != []:
            raise self._misfit("no text", answer)
        hits = [hit for text in texts for hit in self._matches(text)]
        if not hits and any(text.strip() for text in texts):
            text = next(text for text in texts if text.strip())
            raise ContractError(
                "the pattern reads nothing in the answer",
                where=f"pattern: {self._pattern.pattern}",
                accepted=f"a pattern that matches each hit; the answer begins: {shown(text)}",
                fix="correct `pattern`; if this means that there are no hits, write empty: "
                f"{_beginning(text)}",
            )
        return hits

    def _matches(self, text: str) -> Iterator[dict[str, Any]]:
        assert self._pattern is not None
        before: dict[str, Any] | None = None
        start = end = 0
        for match in self._pattern.finditer(text):
            hit: dict[str, Any] = match.groupdict()
            if not self._between:
                yield hit
                continue
            line = text.rfind("\n", 0, match.start()) + 1  # a heading, which the text is to have
            begin = line if line >= end else match.start()
            if before is not None:
                yield before | {"text": text[start:begin].strip()}
            before, start, end = hit, begin, match.end()
        if before is not None:
            yield before | {"text": text[start:].strip()}

    def _misfit(self, what: str, answer: Mapping[str, Any]) -> ContractError:
        return ContractError(
            f"hits found {what} in the answer",
            where=f"hits: {self._names['hits']}",
            accepted="a JMESPath to a list, or with `pattern` to texts; the answer "
            f"{described(answer)}",
            fix="correct `hits`; where a text says that there are no hits, give `empty` a pattern "
            "that matches it",
        )


def texts_of(result: Mapping[str, Any]) -> list[str]:
    """The texts that an agent reads: those of text parts and of resources that are embedded."""
    texts: list[str] = []
    content = result.get("content")
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, Mapping):
            continue
        holder = part.get("resource") if part.get("type") == "resource" else part
        text = holder.get("text") if isinstance(holder, Mapping) else None
        if isinstance(text, str):
            texts.append(text)
    return texts


def read_by_agent(result: Mapping[str, Any]) -> str:
    """Join what an agent's model reads of a result: its texts and links, or its structured content
    where it has neither."""
    content = result.get("content")
    parts = content if isinstance(content, list) else []
    links = [
        json.dumps(part, ensure_ascii=False, separators=(",", ":"))
        for part in parts
        if isinstance(part, Mapping) and part.get("type") == "resource_link"
    ]
    if texts := [*texts_of(result), *links]:
        return "\n".join(texts)
    structured = result.get("structuredContent")
    return "" if structured is None else json.dumps(structured, ensure_ascii=False)


def json_of(result: Mapping[str, Any]) -> Any:
    """The JSON in the text parts; None where other parts are there alone, or one holds none."""
    try:
        values = [json.loads(text) for text in texts_of(result)]
    except (ValueError, RecursionError):
        return None
    if not values and result.get("content") != []:
        return None
    return values[0] if len(values) == 1 else values


def described(answer: Mapping[str, Any]) -> str:
    """Describe an answer for a message: its keys, and the beginning of its text."""
    told = answer if "json" in answer else {**answer, "json": json_of(answer)}
    told = {name: value for name, value in told.items() if name != "_meta" and value is not None}
    texts = texts_of(answer)
    begins = f"; its text begins: {shown(texts[0])}" if texts else ""
    return f"has {outline(told)}{begins}"


def suggested(answer: Mapping[str, Any]) -> str:
    """Lines that would read the hits of an answer, as far as it can be told."""
    seen = {"structuredContent": answer.get("structuredContent"), "json": json_of(answer)}
    if (lines := suggested_hits(seen)) is not None:
        return lines
    content = answer.get("content")
    parts = content if isinstance(content, list) else []
    if any(isinstance(part, Mapping) and part.get("type") == "resource_link" for part in parts):
        return "for example hits: \"content[?type=='resource_link']\", id: uri"
    scored = next(filter(None, map(_SCORED.search, texts_of(answer))), None)
    if scored is not None:
        head, before, after = (_escaped(scored[name]) for name in ("head", "before", "after"))
        pattern = f"^{head}(?P<id>.+?){before}(?P<score>[\\d.]+){after}$".replace("'", "''")
        return f"for example pattern: '{pattern}'" + (", with text: between" if head else "")
    heading = next(filter(None, map(_HEADING.search, texts_of(answer))), None)
    if heading is not None:
        return f"for example pattern: '^{heading[1]} (?P<id>.+)$', with text: between"
    return "for example pattern: '^(?P<id>.+)$', where each line is a hit"


def _regular(written: str, param: str) -> re.Pattern[str]:
    try:
        return re.compile(written, re.MULTILINE)
    except re.error as problem:
        raise ConfigError(
            f"{param} = {written!r} is no regular expression: {problem}",
            where=WHERE,
            accepted="one as Python reads it",
            fix=f"correct `{param}`",
        ) from None


def _as_is(given: Any) -> Any:
    return given


def _nothing(_given: Any) -> None:
    return None


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def _numbered(ids: Sequence[str]) -> list[str]:
    """The ids, of which those that come again have a number behind them: ``a``, ``a#2``."""
    taken, seen, made = set(ids), set[str](), []
    for doc_id in ids:
        others = (f"{doc_id}#{at}" for at in count(2))
        name = next(n for n in others if n not in taken) if doc_id in seen else doc_id
        seen.add(doc_id)
        taken.add(name)
        made.append(name)
    return made


def _escaped(text: str) -> str:
    return re.escape(text).replace("\\ ", " ").replace("\\#", "#").replace("\\-", "-")


def _beginning(text: str) -> str:
    """A pattern of how a text begins, as it stands in a config: two words, for what follows may be
    the question."""
    words = _escaped(" ".join(text.split()[:2])).rstrip(".:,").removesuffix("\\")
    return "'^" + words.replace("'", "''") + "'"
