"""A retriever, written to and asked on this machine's clock."""

from __future__ import annotations

import secrets as tokens
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace
from typing import Any

from retrieval_bench.core.calls.failures import Kind as FailureKind
from retrieval_bench.core.calls.failures import TransientError
from retrieval_bench.core.calls.foreign import foreign_code
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, by_rule
from retrieval_bench.experiment.candidate import Candidate
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.measure.deadline import Deadline, QueryTimeoutError, deadline
from retrieval_bench.measure.environment import machine
from retrieval_bench.stats.resampling import SEED
from retrieval_bench_writes.blocks import BLOCK_S, Block, Blocks
from retrieval_bench_writes.executors import Beside, InTurn
from retrieval_bench_writes.freshness import Freshness, legs_of, polling_of, shown_of, warnings_of
from retrieval_bench_writes.journal import Journal, journal_of, left_before
from retrieval_bench_writes.kills import Killing, is_ours
from retrieval_bench_writes.probes import endless, probes
from retrieval_bench_writes.study import Kind, Seen, Study, Wire
from retrieval_bench_writes.while_writing import WhileWriting

WRITES = 400
"""Documents that are added, replaced and deleted: twice what a p95 takes."""

LIMIT_S = 60.0
"""Seconds after which a write counts as never shown."""

_WRITERS = 8
"""Writes that are under way at once, at most."""

_SOURCES = 5_000
"""Texts that probes are made of, at most."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured.

    Attributes:
        rate: writes a second, at Poisson times.
        writes: documents that are added, then replaced, then deleted.
        limit_s: seconds after which a write counts as never shown.
        into: the collection of an external retriever, which is written to only if this is its name.
        blocks, block_s: pairs of a quiet and a writing block of searches, and seconds of each.
        kills: how often the server is killed.
        seed: of times and texts.
    """

    rate: float
    writes: int = WRITES
    limit_s: float = LIMIT_S
    into: str | None = None
    blocks: int = 0
    block_s: float = BLOCK_S
    kills: int = 0
    seed: int = SEED


def freshness(experiment: Experiment, plan: Plan, *, reporter: Reporter | None = None) -> Freshness:
    """Write to the first retriever of ``experiment``, and measure when that is found.

    Raises:
        ConfigError: a number that makes no sense, or a collection that nobody named.
        HarnessError: the retriever cannot be written to, or breaks its contract.
        KeyboardInterrupt: the user stopped it before anything was written.
    """
    import numpy as np

    candidate = experiment.candidates[0]
    try:
        _check(plan)
        collection = _allowed(candidate, plan.into)
    except BaseException:
        experiment.close()
        raise
    can = candidate.capabilities
    rng, token = np.random.default_rng(plan.seed), tokens.token_hex(4)
    sources = [text for text in _texts(experiment) if text.strip()]
    reporter = reporter or Silent()
    failed = candidate.failing("writing", fix="correct the retriever; --debug shows the traceback")
    path = journal_of(collection, str(candidate.config), token) if collection else None
    seen = Seen(Journal(path))
    blocks: list[tuple[Block, Block]] = []
    kills = None
    with (
        closing(seen.left),
        experiment.ready(reporter),
        deadline(experiment.protocol.timeout_s) as timer,
        foreign_code(failed),
        _kept_if_stopped(seen),
        Beside(_WRITERS) as pool,
    ):
        writer = _limited(candidate.retriever, timer)
        if plan.kills:
            _require_ours(candidate, collection)
        how: dict[str, Any] = {
            "writer": writer,
            "rate": plan.rate,
            "k": experiment.k,
            "limit_s": plan.limit_s,
            "clock": time.perf_counter,
            "sleep": time.sleep,
            "rng": rng,
            "seen": seen,
            "has_scores": can.has_scores,
            "beside": pool if can.threads else InTurn(),
            "timeout_s": timer.seconds,
        }
        try:
            for file, left in left_before(path) if path is not None else ():
                for name, text in left.items():
                    seen.left[name] = text
                Wire(**how).clean(settled=True)
                file.unlink(missing_ok=True)
            with reporter.phase(Phase(Step.WRITING, candidate.name)) as task:
                probed = probes(plan.writes, sources, token, rng)
                Study(**how, probes=probed, progress=task).run()
            if plan.blocks:
                copied = _judged_documents(experiment, rng) or [
                    probe.document(0) for probe in probed
                ]
                with reporter.phase(Phase(Step.SEARCHING, candidate.name)) as task:
                    Blocks(
                        **how,
                        queries=experiment.queries,
                        sources=copied,
                        token=token,
                        n=plan.blocks,
                        seconds=plan.block_s,
                        pairs=blocks,
                        progress=task,
                    ).run()
            if plan.kills:
                made, pid = endless(sources, f"{token}k", rng), candidate.retriever.server_pid
                with reporter.phase(Phase(Step.WRITING, f"{candidate.name}, killed")) as task:
                    kills = Killing(**how, probes=made, pid=pid, progress=task).run(plan.kills)
        finally:
            Wire(**how).clean()
    polling = polling_of(seen, can.threads)
    done = seen.complete and len(blocks) == plan.blocks and (kills is not None) == bool(plan.kills)
    data = experiment.dataset
    judged = None if by_rule(data.qrels) or data.unit_of else data.qrels
    how_read = (plan.block_s, experiment.queries, judged, experiment.k)
    return Freshness(
        retriever=candidate.name,
        config=candidate.config.get("hash"),
        dataset=data.name,
        split=data.split,
        fingerprint=data.fingerprint,
        machine=str(machine()["fingerprint"]),
        k=experiment.k,
        collection=collection,
        rate=plan.rate,
        count=plan.writes,
        limit_s=plan.limit_s,
        seed=plan.seed,
        status="complete" if done else "partial",
        visible=shown_of(seen, Kind.ADD),
        replaced=shown_of(seen, Kind.REPLACE),
        deleted=shown_of(seen, Kind.DELETE),
        legs=legs_of(seen),
        while_writing=WhileWriting.of(blocks, *how_read) if blocks else None,
        kills=kills,
        polling=polling,
        warnings=warnings_of(seen, polling),
    )


def _judged_documents(experiment: Experiment, rng: Any) -> list[Document]:
    """Documents that are relevant to a query that is asked, in an order that is drawn: copies of
    them are what a query must find once they are written. Empty where nobody has them here."""
    qrels = experiment.dataset.qrels
    if by_rule(qrels) or experiment.dataset.unit_of:
        return []
    asked = (qrels.get(query.id, {}) for query in experiment.queries)
    wanted = {name for truth in asked for name, grade in truth.items() if grade > 0}
    there = [item for item in experiment.dataset.documents or () if item.id in wanted]
    return [there[at] for at in rng.permutation(len(there))]


def _require_ours(candidate: Candidate, collection: str) -> None:
    """Refuse to kill what this program did not start, or what serves a collection of others."""
    if collection:
        raise ConfigError(
            f"--write-kills over the collection {collection!r}, which this program did not make",
            where=f"retriever {candidate.name!r}",
            accepted="a program that is handed the documents, over an index of its own",
            fix="leave --write-kills out",
        )
    pid = candidate.retriever.server_pid()
    if pid is None or not is_ours(pid):
        raise ConfigError(
            f"--write-kills with {candidate.name!r}, whose server this program did not start",
            where=f"retriever {candidate.name!r}",
            accepted="`target: command`, or `mcp` with a command: a process of this program's own",
            fix="leave --write-kills out",
        )


def _limited(retriever: Retriever, timer: Deadline) -> Any:
    """The retriever with calls that end at a time-out, as failed ones; the timer interrupts the
    main thread alone."""

    def within(call: Callable[..., Any]) -> Callable[..., Any]:
        def limited(*given: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                began = time.perf_counter_ns()
                call(*given)
                if timer.exceeded(time.perf_counter_ns() - began):
                    raise TransientError(timer.complaint, FailureKind.TIMEOUT)
                return None  # only writes are made in other threads
            try:
                timer.arm()
                try:
                    return call(*given)
                finally:
                    timer.disarm()
            except QueryTimeoutError:
                raise TransientError(timer.complaint, FailureKind.TIMEOUT) from None

        return limited

    calls = (retriever.add, retriever.delete, retriever.search)
    return SimpleNamespace(**{call.__name__: within(call) for call in calls})


@contextmanager
def _kept_if_stopped(seen: Seen) -> Iterator[None]:
    """Ctrl-C ends the study; what was seen is kept, where there is something."""
    try:
        yield
    except KeyboardInterrupt:
        if not any(write.polls for write in seen.writes):
            raise


def _texts(experiment: Experiment) -> Iterator[str]:
    """Texts of the collection, or the queries of one that nobody has here."""
    documents = islice(experiment.dataset.documents or (), _SOURCES)
    yield from (document.contents for document in documents)
    yield from (query.text for query in experiment.queries[: _SOURCES // 10])


def _check(plan: Plan) -> None:
    for name, value, fits, accepted, such in (
        ("--writes", plan.rate, 0 < plan.rate < 1e6, "writes a second, above 0", 20),
        ("--write-count", plan.writes, plan.writes >= 1, "a number of documents, at least 1", 400),
        ("--write-limit", plan.limit_s, 0 < plan.limit_s < 1e6, "seconds, above 0", 60),
        ("--write-blocks", plan.blocks, plan.blocks >= 0, "pairs of blocks, or 0", 10),
        ("--write-kills", plan.kills, plan.kills >= 0, "a number of kills, or 0", 30),
    ):
        if not fits:
            raise ConfigError(f"{name} {value:g}", accepted=accepted, fix=f"such as {name} {such}")


def _allowed(candidate: Candidate, into: str | None) -> str:
    """The collection that may be written into; empty where the harness makes it.

    Raises:
        ConfigError: it cannot be written to, or nobody named the collection, which we did not make.
    """
    can, where = candidate.capabilities, f"retriever {candidate.name!r}"
    if not can.writes:
        raise ConfigError(
            f"--writes with {candidate.name!r}, which declares no writes",
            where=where,
            accepted="a retriever with add(), delete() and Capabilities(writes=True); an engine by "
            "its URI; or `write` in the config of http, command, mcp or sql",
            fix="add them, or leave --writes out",
        )
    with foreign_code(candidate.failing("collection()")):
        name = candidate.retriever.collection()
    if not can.external and not name:  # of a hybrid, some legs may be external
        if into is not None:
            raise ConfigError(
                f"--writes-into {into} with a retriever that indexes the corpus itself",
                where=where,
                accepted="--writes-into for a collection that was there before",
                fix="leave it out",
            )
        return ""
    if not name:
        raise ConfigError(
            f"{candidate.name!r} does not say which collection it writes into",
            where=where,
            accepted="a name from collection(), or `into` under `write`",
            fix="name the collection there",
        )
    if into != name:
        given = "no --writes-into" if into is None else f"--writes-into {into}"
        raise ConfigError(
            f"{given} for the collection {name!r}, which this program did not make",
            where=where,
            accepted="its name, typed out: documents are added to it, replaced and deleted",
            fix=f"if that may be: --writes-into {name}",
        )
    return name
