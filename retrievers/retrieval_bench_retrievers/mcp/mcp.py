"""A search tool of an MCP server as a retriever, over stdio or HTTP: what an agent calls, asked as
an agent asks it."""

from __future__ import annotations

import json
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.calls.usage import usage_of
from retrieval_bench.core.errors import ConfigError, ContractError, counted
from retrieval_bench.core.figures import three_digits
from retrieval_bench.core.installed.installation import require
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.retriever import Capabilities, Retriever, require_k
from retrieval_bench.core.types import Query, Ranking, Usage
from retrieval_bench.data.texts import tokens as tokens_of
from retrieval_bench_retrievers.functions.search_counts import SearchCounts
from retrieval_bench_retrievers.functions.user_code import declared_index
from retrieval_bench_retrievers.http.answer import (
    one_of,
    order_of_ties,
    server_ns,
    shown,
    usage_paths,
)
from retrieval_bench_retrievers.http.answer import server_time as server_path
from retrieval_bench_retrievers.http.http import MISSING, encoder_of
from retrieval_bench_retrievers.http.templates import FILTER, GONE, Template, checked_names, filled
from retrieval_bench_retrievers.http.write_messages import WriteMessages, WritesMessages
from retrieval_bench_retrievers.mcp.checks import check_one_place
from retrieval_bench_retrievers.mcp.http import StreamableHTTP
from retrieval_bench_retrievers.mcp.messages import PROTOCOLS, WHERE
from retrieval_bench_retrievers.mcp.reading import Hits, Reader, described, read_by_agent, texts_of
from retrieval_bench_retrievers.mcp.session import Session
from retrieval_bench_retrievers.mcp.stdio import Stdio
from retrieval_bench_retrievers.mcp.tool import (
    check_arguments,
    definition,
    header_paths,
    header_value,
    header_values,
    tool_named,
)
from retrieval_bench_retrievers.programs.launch import check_numbers

_LONG_S = 600.0
_LOOK = 10
"""Searches up to which somebody only takes a look, and is shown one answer."""

_NAMED, _BEGIN = 4, 80


class MCP(WritesMessages, Retriever):
    """Calls one tool of an MCP server for each query.

    Args:
        command: program and arguments of a server on stdio; it is started once.
        url: of a server on Streamable HTTP, in place of ``command``.
        cwd, env: folder and variables of the program.
        headers: of HTTP; texts by name.
        tool: name of the tool.
        arguments: of the tool, with ``{text}``, ``{k}``, ``{filter.NAME}``, ``{filter}`` and
            ``{embedding}``.
        hits: JMESPath to the list of hits in the result, or with ``pattern`` to texts.
        id, score, text, source: JMESPath inside of a hit.
        pattern: regular expression whose every match in the text of the answer is a hit, with the
            groups ``id``, ``score``, ``text``, ``source``; ``text: between`` takes what stands
            between two matches.
        empty: regular expression of texts that say that there are no hits.
        order: ``descending``; ``ascending`` for distances, of which the lowest is the best.
        repeated: of hits of one id, ``apart`` makes each a hit of its own, later ones named
            ``ID#2``; with ``first`` the first alone counts; ``auto`` is ``apart`` where hits have
            texts.
        usage: ``{tokens_in, tokens_out, calls, money}``: JMESPath to what the server used up.
        server_time: JMESPath to the milliseconds that the server says it took, or ``{s: path}``.
        tokens: how those of question, answer and definition are counted: ``o200k_base`` (extra
            ``tokens``), ``estimate``, ``none``; ``auto`` counts where that is installed.
        missing: where the query has no value for a placeholder of its filter: ``error``, or
            ``drop`` the key or item that holds it.
        encoder: parameters of the encoder that makes ``{embedding}``.
        protocol: ``auto`` asks the server which version it speaks; or ``2026-07-28``,
            ``2025-11-25``.
        timeout_s: seconds in which the server is to answer a call.
        startup_s: seconds in which it is to answer for the first time.
        write: ``{into: COLLECTION, add: {tool: NAME, arguments: {...}}, delete: {...}}`` with
            ``{document.id}`` and ``{document.text}``: tools that add and delete a document.
        max_answer_mb: an answer is cut off above so many megabytes.
        ca: file of certificates to check the server's with.
        verify: false takes any certificate.
        external: ``{index, version, count}`` declares the fingerprint of what it searches.

    Raises:
        ConfigError: parameters that do not fit.
        MissingDependencyError: the extra ``http`` is not installed.
    """

    at = WHERE
    example = "{into: NAME, add: {tool: ..., arguments: {...}}, delete: {...}}"

    def __init__(
        self,
        *,
        command: list[str] | None = None,
        url: Any = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        headers: dict[str, Any] | None = None,
        tool: str | None = None,
        arguments: dict[str, Any] | None = None,
        hits: str | None = None,
        id: str | None = None,  # noqa: A002 - the name that it has in a config
        score: str | None = None,
        text: str | None = None,
        source: str | None = None,
        pattern: str | None = None,
        empty: str | None = None,
        order: str = "descending",
        repeated: str = "auto",
        usage: dict[str, str] | None = None,
        server_time: str | dict[str, str] | None = None,
        tokens: str = "auto",
        missing: str = "error",
        encoder: dict[str, Any] | None = None,
        protocol: str = "auto",
        timeout_s: float | None = None,
        startup_s: float = 30.0,
        max_answer_mb: float = 16.0,
        ca: str | None = None,
        verify: bool = True,
        external: bool | dict[str, Any] = True,
        write: dict[str, Any] | None = None,
    ) -> None:
        require("jmespath", "http", WHERE)
        self._declared = declared_index(external)
        one_of(protocol, "protocol", PROTOCOLS, WHERE)
        one_of(tokens, "tokens", tokens_of.WAYS, WHERE)
        wait = _LONG_S if timeout_s is None else timeout_s
        check_numbers(WHERE, timeout_s=wait, startup_s=startup_s, max_answer_mb=max_answer_mb)
        check_one_place(
            {"command": command, "cwd": cwd, "env": env},
            {"url": url, "headers": headers, "ca": ca, "verify": None if verify else verify},
        )
        with _of_mcp():
            inside = {"id": id, "score": score, "text": text, "source": source}
            self._reader = Reader(hits, inside, pattern, empty, order=order, repeated=repeated)
            self._server_time = server_path(server_time)
            self._usage = usage_paths(usage)
            self._arguments = Template(arguments or {}, f"{WHERE}, arguments")
            self._names = self._arguments.names
            if arguments is not None:
                checked_names(self._names, encoder, where=WHERE, places="arguments")
            self._encoder = None if encoder is None else encoder_of(encoder, WHERE)
            most = int(max_answer_mb * 1_000_000)
            self._at: Stdio | StreamableHTTP
            if command is not None:
                self._at = Stdio(command, cwd=cwd, env=env or {}, max_bytes=most)
            else:
                self._at = StreamableHTTP(
                    url, headers=headers or {}, ca=ca, verify=verify, timeout_s=wait, max_bytes=most
                )
        if write is not None:
            self._writes = WriteMessages(
                write,
                where=f"{WHERE}, write",
                example=self.example,
                beside=json.dumps([url, command], default=str),
                encoder=self._encoder,
            )
        self._to_write = [] if write is None else [write["add"], write["delete"]]
        self._session = Session(self._at, protocol=protocol, startup_s=startup_s, timeout_s=wait)
        self._counter = tokens_of.counter(tokens, WHERE)
        self._tool_name, self._given = tool, arguments
        self._drop = one_of(missing, "missing", MISSING, WHERE) == "drop"
        self._tool: Mapping[str, Any] = {}
        self._tools: list[str] = []
        self._by_name: Mapping[str, Mapping[str, Any]] = {}
        self._header_paths: dict[str, Mapping[tuple[str, ...], str]] = {}
        self._definition = 0.0
        self._answers, self._answer_tokens = 0, 0.0
        self._look: list[str] = []
        self._read_answers = self._repeating = 0
        self._repeated: str | None = None
        self._counts = SearchCounts(
            "is its index filled, and is it this one?",
            'does "{k}" stand where the tool takes the number of hits, and does it give so many?',
        )

    @property
    def capabilities(self) -> Capabilities:
        """External; it has scores where it was told how to read them, and applies filters where the
        arguments have a place for them."""
        return Capabilities(
            external=True,
            has_scores=self._reader.has_scores,
            filters=any(name.partition(".")[0] == FILTER for name in self._names),
            score_tolerance=1e-5 if self._encoder is not None else 1e-9,
            writes=self._writes is not None,
        )

    def prepare(self) -> None:
        """Start or reach the server, find out what it speaks, and look for the tool.

        Raises:
            ConfigError: there is no server, no such tool, or the tool does not take the arguments.
        """
        if self._encoder is not None:
            self._encoder.load()
        if self._tool:
            return
        self._session.open()
        try:
            tools = self._session.tools()
        except CallError as problem:
            raise ConfigError(
                f"the server does not list its tools: {self._at.clean(str(problem))}",
                where=WHERE,
                accepted="a server that answers tools/list",
                fix="start it by hand and read what it says",
            ) from None
        tool = tool_named(self._tool_name, tools)
        check_arguments(tool, self._given)
        for part in self._to_write:
            check_arguments(tool_named(part.get("tool"), tools), part.get("arguments"))
        self._by_name = {str(offered.get("name")): offered for offered in tools}
        if self._session.modern and isinstance(self._at, StreamableHTTP):
            self._header_paths[str(tool["name"])] = header_paths(tool)
        self._tools = [str(offered.get("name")) for offered in tools]
        self._tool = tool
        self._at.ready()
        if self._counter is not None:
            self._definition = round(self._counter[1](definition(tool)))

    def use_k(self, k: int) -> None:
        """Start or reach the server now: the first search is timed."""
        self.prepare()

    def server_pid(self) -> int | None:
        """Number of the program's process, where it is one."""
        return self._at.pid

    def search(self, query: Query, k: int) -> Ranking:
        """The hits in the tool's result, in its order; those beyond ``k`` are cut off.

        Stages: ``encode``; ``start``, where the server had to be started again; ``request``, from
        sending to the last byte of the answer, of which ``server`` is what the server says it took
        itself; ``wrapper``, what the adapter adds. Tokens are counted after the call.

        Raises:
            TransientError, CallError: the server did not answer as it should.
            ContractError: ``k`` below 1, a filter that the arguments have no place for, or a first
                answer that the expressions do not fit.
            ConfigError: the server was never reached.
        """
        start = perf_counter_ns()
        require_k(k)
        self.prepare()
        stages: dict[str, int] = {}
        arguments = self._filled(query, int(k), stages)
        begin = perf_counter_ns()
        try:
            if self._session.open():
                stages["start"] = perf_counter_ns() - begin
            begin = perf_counter_ns()
            result = self._called(self._tool, arguments)
            stages["request"] = perf_counter_ns() - begin
            hits, own = self._read(query, result, k, stages)
        except CallError as problem:
            problem.args = (self._at.clean(str(problem)), *problem.args[1:])
            raise
        usage: dict[str, Callable[[], Usage]] = {} if own is None else {"server": lambda: own}
        if self._counter is not None:
            usage |= self._tokens(arguments, result)
        self._counts.add(query, k, hits.given)
        self._read_answers += 1
        if hits.repeated is not None:
            self._repeating += 1
            self._repeated = self._repeated or hits.repeated
        ranking = Ranking(
            hits.ids,
            hits.scores,
            stages,
            order=order_of_ties(hits.scores),
            usage=_LazyUsage(usage),
            texts=hits.texts,
            sources=hits.sources,
        )
        spent = sum(stages.get(name, 0) for name in ("encode", "start", "request"))
        stages["wrapper"] = perf_counter_ns() - start - spent
        return ranking

    def _send(self, messages: Iterator[Any]) -> None:
        self.prepare()
        for message in messages:
            self._session.open()
            self._called(self._by_name[message["tool"]], message.get("arguments", {}))

    def _called(self, tool: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        result = self._session.call(tool["name"], arguments, self._headers(tool, arguments))
        if result.get("isError"):
            said = shown(_text(result)) or "without a word"
            raise CallError(self._at.clean(f"the tool answered an error: {said}"))
        return result

    def describe(self) -> Mapping[str, Any]:
        """Where the server is, what it says of itself, which version it speaks, the tool, and how
        tokens were counted. No value of a header."""
        facts: dict[str, Any] = {
            **self._at.describe(),
            "protocol": self._session.version,
            "server": {
                name: str(self._session.server[name])
                for name in ("name", "version")
                if self._session.server.get(name)
            },
            "tool": self._tool.get("name"),
            "tools": self._tools,
            "external": self._declared,
        }
        if self._session.lost:
            facts["sessions_lost"] = self._session.lost
        if self._counter is not None:
            facts["tokens"] = {"counted_as": self._counter[0], "definition": self._definition}
        return facts | ({} if self._encoder is None else {"encoder": self._encoder.describe()})

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """Says which server answered, and what an answer takes of an agent's context."""
        return [] if not self._tool else [self._who(), *self._sizes()]

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Says when every search so far got fewer hits than asked for, and what the server did that
        costs time. Whoever only takes a look is shown an answer, and what was read of it."""
        warnings: list[str] = [*self._counts.warnings(), *self._at.warnings()]
        if self._session.lost:
            lost = counted(self._session.lost, "session")
            warnings.append(f"the server forgot {lost}, each of which was begun again in a call")
        looks = self._look if self._counts.searches <= _LOOK else []
        notes = [*self.health_facts(queries), *looks] if looks else []
        return [*(Notice(note, Code.NOTE) for note in [*notes, *self._told_repeated()]), *warnings]

    def close(self) -> None:
        """End the program or the session."""
        self._session.close()

    def _filled(self, query: Query, k: int, stages: dict[str, int]) -> Mapping[str, Any]:
        """The arguments of the tool for a query."""
        values = filled(query, k, self._names, where=WHERE, drop=self._drop, kept=frozenset())
        if self._encoder is not None:
            begin = perf_counter_ns()
            values["embedding"] = self._encoder.encode_query(query.text)[0].tolist()
            stages["encode"] = perf_counter_ns() - begin
        arguments = self._arguments.render(values)
        return {} if arguments is GONE else arguments

    def _headers(self, tool: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, str]:
        if not (self._session.modern and isinstance(self._at, StreamableHTTP)):
            return {}
        name = str(tool["name"])
        if name not in self._header_paths:
            self._header_paths[name] = header_paths(tool)
        named = {"Mcp-Name": header_value(name)}
        return named | dict(header_values(self._header_paths[name], arguments))

    def _read(
        self, query: Query, result: Mapping[str, Any], k: int, stages: dict[str, int]
    ) -> tuple[Hits, Usage | None]:
        """The hits, and what the server says that it used; an answer that cannot be read is a fault
        of the config as long as none was, and one of the answer from then on."""
        own = None
        try:
            hits = self._reader.read(result, k)
            if self._server_time is not None or self._usage:
                seen = self._reader.seen(result)
                if self._server_time is not None:
                    stages["server"] = server_ns(self._server_time, seen)
                own = usage_of({name: path(seen) for name, path in self._usage.items()})
        except ContractError as problem:
            if self._counts.searches:
                begins = (
                    f"; its text begins: {shown(text)[:_BEGIN]}" if (text := _text(result)) else ""
                )
                raise CallError(f"{problem.given} ({problem.where}){begins}") from None
            accepted, fix = self._at.clean(problem.accepted), self._at.clean(problem.fix)
            raise ContractError(
                problem.given, where=problem.where, accepted=accepted, fix=fix
            ) from None
        if not self._look:
            self._look = [self._at.clean(text) for text in _shown(query, result, hits)]
        return hits, own

    def _tokens(
        self, arguments: Mapping[str, Any], result: Mapping[str, Any]
    ) -> dict[str, Callable[[], Usage]]:
        assert self._counter is not None
        count = self._counter[1]

        def answer() -> Usage:
            tokens = round(count(read_by_agent(result)))
            self._answers += 1
            self._answer_tokens += tokens
            return Usage(tokens_in=tokens)

        def question() -> Usage:
            written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
            return Usage(tokens_out=round(count(written)))

        return {
            "definition": lambda: Usage(tokens_in=self._definition),
            "question": question,
            "answer": answer,
        }

    def _who(self) -> str:
        server = self._session.server
        name = " ".join(str(server[key]) for key in ("name", "version") if server.get(key))
        others = [name for name in self._tools if name != self._tool.get("name")]
        more = [*others[:_NAMED], f"{len(others) - _NAMED} more"][: len(others)]
        beside = f" (it also offers {', '.join(more)})" if others else ""
        return (
            f"{name or 'A server without a name'} answers over {self._at.over}, MCP "
            f"{self._session.version}, by its tool {self._tool.get('name')}{beside}"
        )

    def _told_repeated(self) -> list[str]:
        """Say what became of hits of one id."""
        if self._repeated is None:
            return []
        share = f"in {self._repeating:,} of {counted(self._read_answers, 'answer')}"
        has = f"{share} several hits have one id, such as {self._repeated!r}"
        if self._reader.apart:
            name = f"{self._repeated}#2"
            return [
                f"{has}: later ones are {name!r}, ...; with `repeated: first` they do not count"
            ]
        return [f"{has}: the first alone counts; with `repeated: apart` each is a hit of its own"]

    def _sizes(self) -> list[str]:
        if self._counter is None or not self._answers:
            return []
        how, sign = self._counter[0], "~" if self._counter[0] == tokens_of.ESTIMATE else ""
        about = "by an estimate; the extra `tokens` counts them" if sign else f"as {how}"
        answer = three_digits(self._answer_tokens / self._answers)
        defined = three_digits(self._definition)
        read = f"{sign}{answer} tokens for an answer and {sign}{defined} for the tool's definition"
        return [f"An agent reads {read}, {about}"]


class _LazyUsage(UserDict[str, Any]):
    """Usage by stage that is counted when somebody looks, which is after the call was timed."""

    def __getitem__(self, stage: str) -> Usage:
        if not isinstance(self.data[stage], Usage):
            self.data[stage] = self.data[stage]()
        used: Usage = self.data[stage]
        return used


def _shown(query: Query, result: Mapping[str, Any], hits: Hits) -> list[str]:
    """Show an answer, and what was read of it."""
    text = _text(result)
    said = shown(text) if text else f"an answer that {described(result)}"
    read = []
    for at, doc_id in enumerate(hits.ids[:3]):
        parts = [doc_id]
        if hits.scores is not None:
            parts.append(f"score {hits.scores[at]:g}")
        for name, values in (("source", hits.sources), ("text", hits.texts)):
            if values is not None:
                value = values[at]
                parts.append(f"no {name}" if value is None else f"{name} {shown(value)[:60]!r}")
        read.append(f"{parts[0]} ({', '.join(parts[1:])})" if parts[1:] else parts[0])
    more = len(hits.ids) - len(read)
    beyond = f" and {more} more" if more > 0 else ""
    of_it = f"{counted(len(hits.ids), 'hit')}: {', '.join(read)}{beyond}" if read else "no hits"
    return [f"One answer, to {shown(query.text)!r}: {said}", f"Read of it: {of_it}"]


def _text(result: Mapping[str, Any]) -> str:
    return " ".join(texts_of(result))


@contextmanager
def _of_mcp() -> Iterator[None]:
    """Let messages of what is shared with ``target: http`` name this target."""
    try:
        yield
    except ConfigError as problem:
        raise ConfigError(
            problem.given,
            where=problem.where.replace("target http", WHERE),
            accepted=problem.accepted,
            fix=problem.fix,
        ) from None
