"""A program in any language as a retriever: started once and asked line by line, a JSON object in
and one out."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from retrieval_bench.core import secrets
from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.calls.usage import report
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError, counted
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.retriever import Capabilities, Retriever, require_index, require_k
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_retrievers.functions.search_counts import SearchCounts, declared_size
from retrieval_bench_retrievers.functions.user_code import declared_index
from retrieval_bench_retrievers.http.answer import one_of, order_of_ties, shown
from retrieval_bench_retrievers.http.write_messages import WriteMessages, WritesMessages
from retrieval_bench_retrievers.programs.child import Child
from retrieval_bench_retrievers.programs.launch import check_numbers, launch
from retrieval_bench_retrievers.programs.lines import (
    DOCUMENTS,
    check_answer,
    check_distinct,
    check_no_error,
    document_lines,
    in_step,
    line_of,
    parsed,
    query_line,
    shape_of,
)

WHERE = "target command"
VARIABLE = "RETRIEVAL_BENCH_DOCUMENTS"
"""Holds the path of the corpus for a program that reads it from a file."""

_WAYS = ("none", "stdin", "file")
_BATCH = 256
"""Documents that are written at once."""


class Command(WritesMessages, Retriever):
    """Asks a program over its stdin and stdout; :mod:`.lines` has the lines.

    Args:
        command: the program and its arguments, as a list or as a text; no shell reads it.
        cwd: the folder that it runs in, which begins at the config; otherwise the current one.
        env: variables that are added to the environment.
        ready: a text in a line that the program writes, to stdout or stderr, once it can be asked.
        startup_s: seconds until it can be asked, with the documents that it is handed.
        timeout_s: seconds until it has answered; the deadline of the harness ends a call in any
            case.
        documents: ``none``, it holds its own index; ``stdin``, it is handed a line for each
            document; ``file``, the same lines in a file, whose path is in the variable
            RETRIEVAL_BENCH_DOCUMENTS.
        hits: JMESPath to the list of hits, for answers of another shape.
        id: JMESPath to the document's id inside of a hit.
        score: the same for its score.
        ids: JMESPath to a list of ids, in place of ``hits`` and ``id``.
        scores: the same for scores.
        text: JMESPath to the text of a hit, inside of it.
        source: the same to where it is from.
        order: ``descending``; ``ascending`` for distances, of which the lowest is the best.
        server_time: JMESPath to the milliseconds that the program says it took, or ``{s: path}``.
        usage: ``{tokens_in, tokens_out, calls, money}``: JMESPath to what the call used up.
        external: ``{index, version, count}`` declares the fingerprint of what it searches.
        write: ``{into: COLLECTION, add: {...}, delete: {...}}``: the JSON of the lines by which
            documents are added and deleted, with ``{document.id}`` and ``{document.text}``; a line
            without ``error`` acknowledges. Without ``into`` where it is handed the documents.
        max_answer_mb: an answer that is longer is cut off while it is read.

    Raises:
        ConfigError: parameters that do not fit.
    """

    at = WHERE
    example = '{into: NAME, add: {put: "{document.id}", ...}, delete: {drop: "{document.id}"}}'

    def __init__(
        self,
        *,
        command: str | Sequence[str | int | float],
        cwd: str | None = None,
        env: dict[str, str | int | float] | None = None,
        ready: str | None = None,
        startup_s: float = 30.0,
        timeout_s: float = 60.0,
        documents: str = "none",
        hits: str | None = None,
        id: str | None = None,  # noqa: A002 - the name that it has in a config
        score: str | None = None,
        ids: str | None = None,
        scores: str | None = None,
        text: str | None = None,
        source: str | None = None,
        order: str = "descending",
        server_time: str | dict[str, str] | None = None,
        usage: dict[str, str] | None = None,
        external: bool | dict[str, Any] | None = None,
        write: dict[str, Any] | None = None,
        max_answer_mb: float = 16.0,
    ) -> None:
        check_numbers(WHERE, startup_s=startup_s, timeout_s=timeout_s, max_answer_mb=max_answer_mb)
        one_of(documents, "documents", _WAYS, WHERE)
        if documents != "none" and external:
            raise ConfigError(
                f"external beside documents: {documents}",
                where=WHERE,
                accepted="one of them: who is handed the documents holds no other index",
                fix="leave one of the two out",
            )
        self._launch = launch(command, cwd, env, WHERE)
        self._declared = declared_index(True if external is None else external)
        self._ways, self._ready = documents, ready
        self._startup_s, self._timeout_s = startup_s, timeout_s
        self._shape = shape_of(
            hits=_given(hits=hits, id=id, score=score),
            lists=_given(ids=ids, scores=scores),
            beside=_given(text=text, source=source),
            order=order,
            server=server_time,
            usage=usage,
            where=WHERE,
        )
        if write is not None:
            self._writes = WriteMessages(
                write,
                where=f"{WHERE}, write",
                example=self.example,
                beside=shlex.join(self._launch.command),
                ours=documents != "none",
            )
        self._documents: Iterable[Document] | None = None
        self._file: Path | None = None
        self._restarts = self._n = 0
        self._handed = True
        self._asked: set[str] = set()
        self._reached = self._understood = False
        self._child = Child(
            self._launch.command,
            where=f"{WHERE}, command",
            cwd=self._launch.cwd,
            env=self._launch.env,
            max_bytes=int(max_answer_mb * 1_000_000),
        )
        self._counts = SearchCounts(
            "does the program hold an index, and is it this one?",
            "fewer on purpose, or the program may not heed `k`",
        )

    @property
    def capabilities(self) -> Capabilities:
        """External, unless it is handed the documents; filters are handed on with the query."""
        return Capabilities(
            external=self._ways == "none",
            has_scores=self._shape.bare is not None or self._shape.reading.scores is not None,
            filters=True,
            writes=self._writes is not None,
        )

    def prepare(self) -> None:
        """Start the program if it holds its own index."""
        if self._ways == "none":
            self._start()

    def use_k(self, k: int) -> None:
        """Start the program now if it holds its own index: the first search is timed."""
        self.prepare()

    def index(self, documents: Iterable[Document]) -> None:
        """Start the program anew, hand it the documents, and wait until it says that it has them.

        Raises:
            ConfigError: it does not start, ends or is not ready in time.
            ContractError: it says that it has another number of documents, or something else.
        """
        self.close()
        self._documents = documents
        self._counts.reset()
        self._start()

    def search(self, query: Query, k: int) -> Ranking:
        """The hits of the program's answer, in its order; those beyond ``k`` are cut off.

        Stages: ``start``, where it had to be started; ``request``, from writing to the end of the
        answer, of which ``server`` is what the program says it took itself; ``wrapper``, what the
        adapter adds.

        Raises:
            TransientError, CallError: the program ended, was too slow, or did not answer as it
                should.
            ContractError: ``k`` below 1, no index, or an answer that cannot be read where none
                could be before.
            ConfigError: it does not start, or ended before it answered anything.
        """
        start = perf_counter_ns()
        require_k(k)
        require_index(self._ways == "none" or self._documents is not None, self)
        stages: dict[str, int] = {}
        if self._child.pid is None:
            self._start_in_call()
            stages["start"] = perf_counter_ns() - start
        line = query_line(query, int(k))
        begin = perf_counter_ns()
        content = self._exchange(line)
        stages["request"] = elapsed = perf_counter_ns() - begin
        try:
            ranking = self._read(content, query, k, stages)
        except (ContractError, CallError) as problem:
            ends = isinstance(problem, ContractError) and not self._understood
            if not in_step(content, query):  # the answer to this query may be still to come
                self._child.kill() if ends else self._start_again()
            if not isinstance(problem, ContractError):
                raise
            if ends:  # every answer will be like this one
                raise self._with_stderr(problem) from None
            raise CallError(problem.line) from None
        self._understood = True
        stages["wrapper"] = perf_counter_ns() - start - elapsed - stages.get("start", 0)
        return ranking

    def collection(self) -> str:
        """``into`` of ``write``; empty where it is handed the documents."""
        return super().collection() if self._ways == "none" else ""

    def _send(self, messages: Iterator[Any]) -> None:
        require_index(self._ways == "none" or self._documents is not None, self)
        for message in messages:
            if self._child.pid is None:
                self._start_in_call()
            content = self._exchange(line_of(message))
            try:
                check_no_error(parsed(content))
            except ContractError as problem:  # the answer may be still to come
                self._start_again()
                raise CallError(problem.line) from None

    def server_pid(self) -> int | None:
        """Number of the program's process."""
        return self._child.pid

    def describe(self) -> Mapping[str, Any]:
        """How it was started and how often, and what was declared about its index. No value of a
        variable."""
        return {
            "command": secrets.redact(self._launch.command),
            "cwd": str(self._launch.cwd or Path.cwd()),
            "env_names": sorted(self._launch.env),
            "program_files": self._child.files,
            "documents": self._ways,
            "starts": self._child.starts,
            "external": self._declared,
        }

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Says how often the program had to be started again, and when every search so far got
        fewer hits than asked for."""
        warnings = self._counts.warnings()
        if self._restarts:
            times = "once" if self._restarts == 1 else f"{self._restarts:,} times"
            warnings.append(
                Notice(
                    f"the program was started again {times}: it ended, was too slow or broke the "
                    "rule of one line for one; the calls before count as failed",
                    Code.FAILED_CALLS,
                )
            )
        return warnings

    def close(self) -> None:
        """End the program and all that it started."""
        self._child.close()
        self._documents = None
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            self._file = None

    def _start(self) -> None:
        """Start the program, unless it runs, and wait until it can be asked.

        Raises:
            ConfigError: it does not start, or not in time.
            ContractError: it does not say that it has the documents.
        """
        if self._child.pid is not None:
            return
        try:
            if self._ways == "file" and self._documents is not None:
                self._write(self._documents)
            self._child.start()
            if self._ready is not None:
                self._child.wait_ready(self._ready, self._startup_s)
            if self._documents is not None:
                self._hand_over(self._documents)
        except CallError as problem:
            self._child.kill()
            raise self._not_started(problem) from None
        except BaseException:
            self._child.kill()
            raise

    def _write(self, documents: Iterable[Document]) -> None:
        """Write the file of the documents, once, and say where it is."""
        if self._file is None:
            handle, name = tempfile.mkstemp(prefix="retrieval-bench-", suffix=".jsonl")
            self._file, self._n = Path(name), 0
            with os.fdopen(handle, "wb") as file:
                for line in document_lines(documents):
                    self._n += file.write(line) > 0
            self._child.env[VARIABLE] = name

    def _hand_over(self, documents: Iterable[Document]) -> None:
        """Hand the documents over, and have the program say how many it has."""
        if self._ways == "stdin":
            lines, self._n, self._handed = document_lines(documents), 0, False
            total = len(documents) if isinstance(documents, Sized) else 0
            while batch := list(islice(lines, _BATCH)):
                self._n += len(batch)
                self._child.send(b"".join(batch), idle_s=self._startup_s)
                if self.progress is not None and total:
                    self.progress(self._n, total)
            self._child.send(line_of({DOCUMENTS: self._n}), idle_s=self._startup_s)
            self._handed = True
        answer = parsed(self._child.next_line(time.monotonic() + self._startup_s))
        if not isinstance(answer, dict) or answer.get(DOCUMENTS) != self._n:
            raise ContractError(
                f"the program answered {shown(json.dumps(answer, ensure_ascii=False))} to "
                f"{counted(self._n, 'document')}",
                where=WHERE,
                accepted=f'{{"documents": {self._n}}}, once it can be asked',
                fix="write the number of documents that it has indexed, and nothing before",
            )
        self._reached = True

    def _start_in_call(self) -> None:
        """Start it within a search: for the first, or after it could not be started again."""
        try:
            self._start()
        except HarnessError as problem:
            if not self._reached:
                raise
            raise TransientError(problem.line, Kind.CONNECTION) from None

    def _start_again(self) -> None:
        """Start it again within the call that failed, so that no call that is answered waits for
        it; where it does not start, the next call says so."""
        self._child.kill()
        self._restarts += 1
        with suppress(HarnessError):
            self._start()

    def _exchange(self, line: bytes) -> bytes:
        """The line that answers ``line``; where there is none, the program is started again."""
        seconds = self._timeout_s if self._reached else max(self._timeout_s, self._startup_s)
        try:
            content = self._child.exchange(line, time.monotonic() + seconds)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as problem:  # also the deadline of the harness
            if isinstance(problem, CallError) and not self._reached:
                if problem.kind is Kind.CONNECTION:
                    raise self._not_started(problem) from None
                if not isinstance(problem, TransientError):
                    fix = "write it to stderr; before the first query, `ready` waits for a text"
                    broken = ContractError(str(problem), where=WHERE, fix=fix)
                    raise self._with_stderr(broken) from None
            self._start_again()
            raise
        self._reached = True
        return content

    def _read(self, content: bytes, query: Query, k: int, stages: dict[str, int]) -> Ranking:
        answer, shape = parsed(content), self._shape
        self._asked.add(query.id)
        check_answer(answer, query, shape, self._asked)
        reading = shape.scored(answer, k)
        ids, scores, given = reading.read(answer, k)
        check_distinct(ids)
        texts, sources = (
            path and reading.beside(path, name, answer, k)
            for name, path in (("text", shape.text), ("source", shape.source))
        )
        if (server := shape.server_ns(answer)) is not None:
            stages["server"] = server
        report(shape.used(answer))
        self._counts.add(query, k, given, size=declared_size(self._declared))
        order = order_of_ties(scores)
        return Ranking(ids, scores, stages, order=order, texts=texts, sources=sources)

    def _not_started(self, problem: CallError) -> HarnessError:
        says = str(problem).removesuffix(self._child.ended_words())
        accepted = "a program that runs until its input ends, and answers each line with one"
        if self._documents is not None:
            n = str(self._n) if self._handed else "N"
            accepted += f', the line behind its documents with {{"documents": {n}}}'
        fix = 'run it by hand: type a line such as {"id": "q1", "text": "...", "k": 3}'
        if problem.kind is Kind.TIMEOUT:
            fix = f"raise `startup_s` ({self._startup_s:g}) if it takes longer, or {fix}"
            if not self._handed:
                says += f" for {self._startup_s:g} s, after {self._n:,} documents or less"
        where = f"{WHERE}, command: {secrets.redact(shlex.join(self._launch.command))}"
        return self._with_stderr(ConfigError(says, where=where, accepted=accepted, fix=fix))

    def _with_stderr(self, problem: HarnessError) -> HarnessError:
        """The same with the last lines that the program wrote to stderr."""
        if tail := self._child.tail():
            lines = "\n    ".join(tail)
            problem.given += f"\n  its stderr ends:\n    {lines}"
            problem.args = (problem.render(),)
        return problem


def _given(**params: str | None) -> dict[str, str]:
    return {name: value for name, value in params.items() if value is not None}
