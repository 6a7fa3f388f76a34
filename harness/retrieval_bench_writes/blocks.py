"""What writing does to searches: quiet blocks and writing ones in turn, judged as a duet is.

Both blocks of a pair ask the same queries in the same order, one call after the other; in the
writing one documents are added and deleted beside them, or between them where the retriever takes
one call at a time, at Poisson times. What is added are copies
of judged documents, where there are some: their grades are the truth from the acknowledgement on,
until that of their deletion. A writing block ends when nothing of it is found any more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from retrieval_bench.comparison.pairs.call_pairs import Pairs
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Document, Query, Ranking, Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.evaluation import evaluate
from retrieval_bench.runs.run import pack_rankings
from retrieval_bench.stats.percentiles import medians
from retrieval_bench_duet.decision import ALPHA, GATES, Judged, at_last, thetas
from retrieval_bench_duet.result import GateResult
from retrieval_bench_writes.executors import InTurn
from retrieval_bench_writes.probes import PREFIX
from retrieval_bench_writes.study import Wire

BLOCK_S = 5.0

_LIVE = 0.25
"""Of the documents that are added in a block, as many are there at once."""

_NANO = 1e9
_JUDGED = ("p50", "p95")

Qrels = Mapping[str, Mapping[str, int]]


@dataclass(slots=True)
class Block:
    """Searches of a block, in their order.

    Attributes:
        writing: documents were written meanwhile.
        query: number of each.
        ns: that it took.
        answers: what came; None where the call failed.
        there: of each, the copies that were acknowledged when it was due, and not deleted before
            it was answered: their ids -> those of the documents that they are copies of.
        writes, gone: acknowledged ones; what was deleted.
        settled_s: from the last acknowledgement to the last answer that held what was deleted; 0
            where none did, infinite where one did at the limit, None where nothing was written.
    """

    writing: bool
    query: list[int] = field(default_factory=list)
    ns: list[float] = field(default_factory=list)
    answers: list[Ranking | None] = field(default_factory=list)
    there: list[Mapping[str, str]] = field(default_factory=list)
    writes: int = 0
    gone: list[Document] = field(default_factory=list)
    settled_s: float | None = None

    @property
    def log_ns(self) -> tuple[Any, Any]:
        """The queries that were answered, and the median of the logarithms of their times."""
        fine = np.array([answer is not None for answer in self.answers], dtype=bool)
        query = np.array(self.query, dtype=np.int32)[fine]
        logs = np.log(np.maximum(np.array(self.ns, dtype=float)[fine], 1.0))
        return np.unique(query), medians(logs, query)


@dataclass(slots=True, kw_only=True)
class Blocks(Wire):
    """Measures blocks in pairs.

    Args:
        queries: of the dataset.
        sources: documents that are copied.
        token: of this measurement, in the ids of the copies.
        n, seconds: pairs of blocks, and of each block.
    """

    queries: Sequence[Query]
    sources: Sequence[Document]
    token: str
    n: int
    seconds: float
    pairs: list[tuple[Block, Block]] = field(default_factory=list)
    made: int = 0

    def run(self) -> list[tuple[Block, Block]]:
        """Measure all pairs, quiet block first in every other one; gives (quiet, writing)."""
        for at in range(self.n):
            order = self.rng.permutation(len(self.queries)).tolist()
            both = {}
            for writing in (False, True) if at % 2 == 0 else (True, False):
                both[writing] = self._block(order, writing)
            self.pairs.append((both[False], both[True]))
            self.progress(at + 1, self.n)
        return self.pairs

    def _block(self, order: Sequence[int], writing: bool) -> Block:
        block, live, there = Block(writing), list[Document](), dict[str, str]()
        most = max(1, round(_LIVE * min(self.rate * self.seconds, len(self.sources))))
        ends = self.clock() + self.seconds
        due = self.clock() + self._gap() if writing else math.inf

        def write_until() -> None:
            nonlocal due
            while due < ends:
                self.sleep(max(0.0, due - self.clock()))
                due += self._gap()
                if self.clock() < ends:
                    self._write(block, live, there, most)

        in_turn = isinstance(self.beside, InTurn)
        writes = None if in_turn or not writing else self.beside.submit(write_until)
        try:
            while (now := self.clock()) < ends:
                if in_turn and now >= due:
                    due += self._gap()
                    self._write(block, live, there, most)
                    continue
                before = there.copy()
                self._ask(block, order[len(block.query) % len(order)])
                block.there.append({one: of for one, of in before.items() if one in there})
        except BaseException:
            ends = -math.inf
            raise
        finally:
            if writes is not None:
                self._joined(writes)  # nothing is written behind the cleaning
        while live:
            self._write(block, live, there, 0)
        if block.writes:
            block.settled_s = self._settle(block.gone)
        return block

    def _joined(self, writes: Future[None]) -> None:
        done, _ = wait([writes], self.timeout_s)
        if not done:
            raise HarnessError(
                f"a write beside searches did not return within {self.timeout_s:g} s",
                fix="see why the retriever does not answer, or raise the time-out",
            )
        writes.result()

    def _gap(self) -> float:
        return float(self.rng.exponential(1 / self.rate))

    def _ask(self, block: Block, number: int) -> None:
        query, answer = self.queries[number], None
        begin = self.clock()
        try:
            raw = self.writer.search(query, self.k)
            took = self.clock() - begin
            answer = checked_ranking(raw, self.k, has_scores=self.has_scores)
        except Exception as problem:
            took = self.clock() - begin
            self.seen.failed(problem)
        block.query.append(number)
        block.ns.append(_NANO * took)
        block.answers.append(answer)

    def _write(self, block: Block, live: list[Document], there: dict[str, str], most: int) -> None:
        """Add a copy, or delete the oldest where there are ``most``."""
        try:
            if len(live) < most:
                source = self.sources[self.made % len(self.sources)]
                copied = replace(source, id=f"{PREFIX}-{self.token}-b{self.made:06}")
                self.made += 1
                self.keep(copied)
                self.writer.add([copied])
                live.append(copied)
                there[copied.id] = source.id
            else:
                copied = live.pop(0)
                there.pop(copied.id)
                self.writer.delete([copied.id])
                block.gone.append(copied)
        except Exception as problem:
            self.seen.failed(problem)  # it is cleaned away at the end
        else:
            block.writes += 1

    def _settle(self, gone: Sequence[Document]) -> float:
        """Ask for what was deleted, the first first, until no answer holds it; gives when the last
        answer that still held some of it was received, 0 where none did. The last may not even be
        there yet when it is asked for at once."""
        start, held_s = self.clock(), 0.0
        for copied in gone:

            def is_gone(copied: Document = copied) -> bool:
                nonlocal held_s
                held = copied.id in self.asked("settling", copied.contents).doc_ids
                held_s = self.clock() - start if held else held_s
                return not held

            if math.isinf(self.until(is_gone)):
                return math.inf
            self.seen.left.pop(copied.id)
        return held_s


def judged(pairs: Sequence[tuple[Block, Block]]) -> tuple[GateResult, ...]:
    """Whether searches take longer while documents are written, as a duet decides it, for which a
    pair of blocks is a launch: Student's t, one-sided 99 %. It is looked at once, when all pairs
    are there, so that nothing has to be confirmed. The 95th percentile takes 200 queries."""
    launches = [launch for pair in pairs if len((launch := _paired(*pair)).query)]
    fewest = min((len(launch.query) for launch in launches), default=0)
    names = [name for name in _JUDGED if fewest >= GATES[name].queries and len(launches) > 1]
    return tuple(_result(name, launches) for name in names)


def _result(name: str, launches: Sequence[Pairs]) -> GateResult:
    gate = GATES[name]
    of = Judged.of(thetas(name, launches), gate.delta, gate.limit)
    verdict = Verdict.WORSE if of.p_worse < ALPHA else at_last(of, gate, ALPHA)
    facts: dict[str, Any] = {"ratio": math.exp(of.mean), "interval": of.interval}
    spread, n = of.error * math.sqrt(len(launches)), len(launches)
    return GateResult(name, verdict, gate.limit, gate.delta, **facts, spread=spread, launches=n)


def _paired(quiet: Block, writing: Block) -> Pairs:
    (of_a, log_a), (of_b, log_b) = quiet.log_ns, writing.log_ns
    queries, at_a, at_b = np.intersect1d(of_a, of_b, return_indices=True)
    zeros = np.zeros(len(queries), dtype=np.int32)
    return Pairs(log_a[at_a], log_b[at_b], zeros, zeros, zeros, queries.astype(np.int32))


def scores(
    pair: tuple[Block, Block],
    queries: Sequence[Query],
    qrels: Qrels,
    metrics: Sequence[Metric],
    k: int,
) -> Any:
    """The mean of the answers to each query by each metric: shape (2, queries, metrics), of what an
    engine that shows every write at once would have answered, and of what was answered. NaN where
    it was not asked in both blocks, or nothing is judged; a call that failed counts as 0.

    Truth is what was there, and copies that were acknowledged when the query was due. That engine
    gives the answer of the quiet block with each copy behind its source, for copies take places of
    others, and enlarge the truth, also where nothing lags.
    """
    quiet, writing = pair
    before = dict(zip(quiet.query, quiet.answers, strict=True))
    asked, rankings = list[int](), list[Ranking]()
    truths = dict[str, Mapping[str, int]]()
    for number, answer, there in zip(writing.query, writing.answers, writing.there, strict=True):
        truth = qrels.get(queries[number].id)
        if truth is None or not queries[number].answerable or number not in before:
            continue
        copies = {copy: truth[of] for copy, of in there.items() if of in truth}
        ids = [] if (old := before[number]) is None else old.doc_ids
        at_once = [
            name for of in ids for name in (of, *(copy for copy in there if there[copy] == of))
        ]
        for listed in (at_once, [] if answer is None else answer.doc_ids):
            truths[str(len(truths))] = {**truth, **copies}
            rankings.append(Ranking([*listed][:k], None))
        asked.append(number)
    means = np.full((2, len(queries), len(metrics)), np.nan)
    if asked:
        ids = list(truths)
        packed = pack_rankings(ids, rankings, k)
        scored = evaluate(packed.ranking, packed.doc_ids, ids, truths, metrics, intervals=False)
        for number in set(asked):
            rows = scored.per_query.reshape(len(asked), 2, -1)[np.array(asked) == number]
            means[:, number] = rows.mean(axis=0)
    return means
