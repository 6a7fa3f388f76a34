"""The lines between the harness and a program: one JSON object for a query, one for its answer."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.calls.usage import FIELDS, usage_of
from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.installed.installation import require
from retrieval_bench.core.types import Document, Query, Usage
from retrieval_bench_retrievers.http import answer as http_answer
from retrieval_bench_retrievers.http.answer import (
    ORDERS,
    Path,
    Reading,
    compiled,
    outline,
    shown,
    walker,
)

DOCUMENTS = "documents"
"""Key of the line that ends a corpus, and of the line that says that it is indexed: how many."""

_ID, _ERROR = "id", "error"
_SERVER_MS: tuple[Path, float, str] = (walker(["server_ms"]), 1e6, "server_ms")


@dataclass(frozen=True, slots=True)
class Shape:
    """Where an answer has what is read of it.

    Attributes:
        reading: of ids and scores.
        bare: the same without scores, for answers whose hits have none; None = all must have one.
        text, source: inside of a hit; None = not read.
        usage: by kind; empty = as ``usage`` says it, if it is there.
        server: where the time is that the program says it took, nanoseconds in its unit, and the
            expression; None = in ``server_ms``, if it is there.
        echoes: whether the answer must repeat the id of its query; otherwise it may leave it out,
            or have one of its own.
    """

    reading: Reading
    bare: Reading | None
    text: Path | None
    source: Path | None
    usage: Mapping[str, Path]
    server: tuple[Path, float, str] | None
    echoes: bool

    def scored(self, answer: Any, k: int) -> Reading:
        """The reading for this answer."""
        if self.bare is None or self.reading.hits is None or self.reading.scores is None:
            return self.reading
        hits = self.reading.hits(answer)
        first = hits[:k] if isinstance(hits, list) else ()
        has = any(self.reading.scores(hit) is not None for hit in first)
        return self.reading if has else self.bare

    def used(self, answer: Any) -> Usage | None:
        """Usage, as the program says it; None where it does not say.

        Raises:
            ContractError: something else.
        """
        if self.usage:
            return usage_of({name: path(answer) for name, path in self.usage.items()})
        given = answer.get("usage") if isinstance(answer, dict) else None
        if given is None:
            return None
        if not isinstance(given, dict) or not set(given) <= set(FIELDS):
            raise ContractError(
                f"usage is {shown(json.dumps(given))}",
                accepted=f"a mapping with some of {', '.join(FIELDS)}",
                fix="correct it, or leave it out",
            )
        return usage_of(given)

    def server_ns(self, answer: Any) -> int | None:
        """Nanoseconds that the program says it took; None where it does not say.

        Raises:
            ContractError: something else.
        """
        if self.server is not None:
            return http_answer.server_ns(self.server, answer)
        if not isinstance(answer, dict) or answer.get("server_ms") is None:
            return None
        return http_answer.server_ns(_SERVER_MS, answer)


def shape_of(
    *,
    hits: Mapping[str, str],
    lists: Mapping[str, str],
    beside: Mapping[str, str],
    order: str,
    server: Any,
    usage: Any,
    where: str,
) -> Shape:
    """The shape that parameters say; what they leave out is as in ``{"id", "hits": [{"id",
    "score"?, "text"?, "source"?}], "usage"?, "server_ms"?}``. That takes no library.

    Args:
        hits: expressions for ``hits``, ``id`` and ``score``.
        lists: for ``ids`` and ``scores``, in place of those.
        beside: for ``text`` and ``source``.
        order: of the scores.
        server, usage: parameters ``server_time`` and ``usage``.
        where: the target, for messages.

    Raises:
        ConfigError: an expression that is none, or both ways at once.
        MissingDependencyError: there are expressions, and no JMESPath.
    """
    if lists or hits or beside or server is not None or usage is not None:
        require("jmespath", "http", where)
    bare = None
    if lists or order != ORDERS[0]:
        given = {**({} if lists else {"hits": "hits", "id": "id", "score": "score"}), **hits}
        reading = http_answer.reading(
            hits=given.get("hits"),
            hit_id=given.get("id"),
            score=given.get("score"),
            ids=lists.get("ids"),
            scores=lists.get("scores"),
            order=order,
            where=where,
        )
    else:
        names = {"hits": "hits", "id": "id", "score": "score", **hits}
        each, hit_id, score = (_path(hits, name, where) for name in names)
        reading = Reading(each, hit_id, score, False, names)
        bare = None if "score" in hits else Reading(each, hit_id, None, False, names)
    text, source = (
        None if lists and name not in beside else _path(beside, name, where)
        for name in ("text", "source")
    )
    return Shape(
        reading,
        bare,
        text,
        source,
        http_answer.usage_paths(usage, where),
        http_answer.server_time(server, where),
        echoes=not (hits or lists),
    )


def _path(given: Mapping[str, str], name: str, where: str) -> Path:
    return compiled(given[name], name, where) if name in given else walker([name])


def line_of(message: Any) -> bytes:
    """A message as a line. Halves of surrogate pairs, which JSON can bring and UTF-8 cannot, are
    replaced."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace") + b"\n"


def query_line(query: Query, k: int) -> bytes:
    """The question: id, text and k; and filter, messages and metadata where the query has some."""
    message: dict[str, Any] = {"id": query.id, "text": query.text, "k": k}
    if query.filter is not None:
        message["filter"] = dict(query.filter.source)
    if query.messages:
        message["messages"] = [{"role": m.role, "content": m.content} for m in query.messages]
    if query.metadata:
        message["metadata"] = dict(query.metadata)
    return line_of(message)


def document_lines(documents: Iterable[Document]) -> Iterator[bytes]:
    """A line for each document: id, title, text; and metadata where it has some."""
    for document in documents:
        message: dict[str, Any] = {
            "id": document.id,
            "title": document.title,
            "text": document.text,
        }
        if document.metadata:
            message["metadata"] = dict(document.metadata)
        yield line_of(message)


def parsed(line: bytes) -> Any:
    """The JSON of a line.

    Raises:
        ContractError: it is none, or no UTF-8.
    """
    try:
        return _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as problem:
        what = f"no UTF-8: byte {line[problem.start]:#04x} at place {problem.start + 1}"
    except (ValueError, RecursionError):
        what = "no JSON"
    begin = shown(line[:4000].decode("utf-8", "replace"))
    raise ContractError(
        f"the program answered what is {what}: {begin or 'an empty line'}",
        accepted='one line of JSON for each query, such as {"id": "q1", "hits": [{"id": "d7"}]}',
        fix="write the answer alone to stdout, and all else to stderr",
    )


def in_step(line: bytes, query: Query) -> bool:
    """Whether an answer, readable or not, says that it is one to ``query``; one that cannot be read
    and does not say it may be a line too many, with all answers behind it one too late."""
    try:
        answer = parsed(line)
    except ContractError:
        return False
    return isinstance(answer, dict) and answer.get(_ID) == query.id


def check_answer(answer: Any, query: Query, shape: Shape, asked: Container[str]) -> None:
    """Raise unless ``answer`` is one to ``query``.

    Args:
        answer: what came.
        query: what was asked.
        shape: of answers; only in the harness's own an ``id`` is certain to be that of a query.
        asked: ids of all queries so far.

    Raises:
        CallError, TransientError: it says that there was an error.
        ContractError: it is no object, or has another id.
    """
    if not isinstance(answer, dict):
        if not shape.echoes:
            return
        raise ContractError(
            f"the program answered {shown(json.dumps(answer))}, which is no object",
            accepted='{"id": ..., "hits": [...]}',
        )
    given = answer.get(_ID)
    if given != query.id and (shape.echoes or (isinstance(given, str) and given in asked)):
        raise ContractError(
            f"the program answered with the id {given!r:.200} where {query.id!r} was asked",
            accepted=f'the "id" of the query; the answer has {outline(answer)}',
            fix="repeat the id in the answer; where its hits stand elsewhere, say so by `hits` "
            "and `id`",
        )
    check_no_error(answer)


def check_no_error(answer: Any) -> None:
    """Raise :class:`CallError` or :class:`.TransientError` where it says that there was an error.

    Where a document was written, any other line acknowledges that.
    """
    if says := answer.get(_ERROR) if isinstance(answer, dict) else None:
        said = says if isinstance(says, str) else json.dumps(says, ensure_ascii=False)
        text = f"the program answered an error: {shown(said)}"
        raise TransientError(text, Kind.SERVER) if answer.get("retry") is True else CallError(text)


def check_distinct(ids: list[str]) -> None:
    """Raise :class:`ContractError` where one document is there twice."""
    if len(set(ids)) != len(ids):
        twice = next(doc_id for at, doc_id in enumerate(ids) if doc_id in ids[:at])
        raise ContractError(
            f"the answer has document {twice!r} twice",
            accepted="each document at most once",
            fix="leave it out where it comes again; parts of a document need an id each",
        )


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
