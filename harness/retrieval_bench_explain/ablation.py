"""What a measured retriever answers without each of its parts.

The lists that the measurement kept answer for whoever is asked again, so that most parts can be
left out without a call. Rewriting changes what is asked: without it the retriever must be asked,
which is done where it is wanted, untimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import Any

from retrieval_bench.core.as_json.document import document
from retrieval_bench.core.calls.failures import Retry
from retrieval_bench.core.calls.foreign import message_of
from retrieval_bench.core.calls.usage import Price, total
from retrieval_bench.core.errors import HarnessError, counted, distinct_names
from retrieval_bench.core.progress import Phase, Reporter, Step, Task
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.remembered import Memory, NotKeptError, Remembered
from retrieval_bench.core.retriever import Capabilities, Part, Retriever
from retrieval_bench.core.types import Query, Ranking, Usage
from retrieval_bench.core.units.wrapped import Wrapped
from retrieval_bench.experiment.accounting import WithoutParts
from retrieval_bench.experiment.candidate import Candidate
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.measure.budget import Budget
from retrieval_bench.measure.calls import Measurement, System
from retrieval_bench.measure.deadline import deadline
from retrieval_bench.measure.protocol import Plan
from retrieval_bench.measure.recorder import Recorder

Rankings = Sequence[Ranking | None]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One part that was left out.

    Attributes:
        part: which.
        rankings: of all queries without it; None for a query that is not known. None as a whole
            where somebody has to be asked who may not be.
        asked: calls that were made for it.
        why: it is not known though somebody was asked; empty where nobody was, or it is.
        spent: what these calls used up.
    """

    part: Part
    rankings: Rankings | None
    asked: int = 0
    why: str = ""
    spent: Usage | None = None

    def as_dict(self) -> dict[str, Any]:
        """An entry of ``parts`` in a summary."""
        names = "name kind instead stages beside share timed gets gives"
        known = self.rankings is not None
        return document(self.part, names) | {"known": known} | document(self, "asked why")


@dataclass(frozen=True, slots=True)
class Ablation:
    """All parts of a retriever, each left out in turn.

    Attributes:
        parts: empty for a retriever that is made of nothing.
        warnings: what keeps figures from being what they seem.
        spent: by whoever was asked.
    """

    parts: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()
    spent: Usage | None = None


def without_parts(
    experiment: Experiment, measurements: Sequence[Measurement], reporter: Reporter
) -> list[WithoutParts]:
    """Leave out the parts of all retrievers of ``experiment``, which are still open; those of one
    that was interrupted are not known."""
    budget = _budget_after(experiment.protocol.max_cost, measurements)
    return [
        WithoutParts()
        if measurement.interrupted
        else _of_one(experiment, candidate, measurement, budget, reporter)
        for candidate, measurement in zip(experiment.candidates, measurements, strict=True)
    ]


def _of_one(
    experiment: Experiment,
    candidate: Candidate,
    measurement: Measurement,
    budget: Budget,
    reporter: Reporter,
) -> WithoutParts:
    """What the queries that count get."""
    queries, retriever = experiment.queries, candidate.retriever
    if not can_be_left_out(retriever, queries):
        return WithoutParts()
    rankings = [
        ranking if query.answerable else None
        for query, ranking in zip(queries, measurement.rankings, strict=True)
    ]
    timeout = experiment.protocol.timeout_s
    caller = Caller(candidate.retry, candidate.rate_limit, candidate.price, timeout, budget)
    with reporter.phase(Phase(Step.LEAVING_OUT, candidate.name)) as task:
        ablation = left_out(
            retriever,
            queries,
            experiment.k,
            rankings,
            caller=caller if experiment.ablate else None,
            task=task,
        )
    return WithoutParts(
        {of.part.name: of.rankings for of in ablation.parts if of.rankings is not None},
        [part.as_dict() for part in ablation.parts],
        ablation.warnings,
        ablation.spent,
    )


def can_be_left_out(retriever: Retriever, queries: Sequence[Query]) -> bool:
    """Return whether it is made of parts, or gets filters."""
    try:
        filtered = any(query.filter for query in queries) and retriever.capabilities.filters
        return filtered or _is_made_of_parts(retriever.over(Memory(asks=False)))
    except Exception:  # told by whoever leaves them out
        return True


@dataclass(frozen=True, slots=True)
class Caller:
    """Caller that asks without a part: as it was measured, once, untimed.

    Attributes:
        retry, rate_limit, price: of the config.
        timeout_s: after which a call has failed; None = never.
        budget: what it may spend.
    """

    retry: Retry
    rate_limit: float | None
    price: Price | None
    timeout_s: float | None
    budget: Budget


def _budget_after(limit: float | None, measured: Sequence[Measurement]) -> Budget:
    """Return the money that the measurement of several systems left, the mean call standing for the
    dearest."""
    budget = Budget(limit)
    for measurement in measured:
        money = (measurement.spent and measurement.spent.money) or 0.0
        budget.spent += money
        budget.dearest = max(budget.dearest, money / max(1, len(measurement.timings.wall_ns)))
    return budget


def left_out(
    retriever: Retriever,
    queries: Sequence[Query],
    k: int,
    rankings: Rankings,
    *,
    caller: Caller | None = None,
    task: Task | None = None,
) -> Ablation:
    """Leave out each part in turn. Whatever happens meanwhile, Ctrl-C included, costs parts and not
    what was measured.

    Args:
        retriever: as it was measured, still open.
        rankings: what it answered to ``queries``; None where it failed, or does not count.
        caller: asks what its lists do not hold; None = nobody does.
        task: is told how far it is.
    """
    try:
        return _left_out(retriever, queries, k, rankings, caller=caller, task=task)
    except KeyboardInterrupt:
        return Ablation(warnings=("interrupted before parts were left out",))
    except Exception as problem:
        return Ablation(warnings=(f"no part could be left out: {message_of(problem)}",))


def _left_out(
    retriever: Retriever,
    queries: Sequence[Query],
    k: int,
    rankings: Rankings,
    *,
    caller: Caller | None,
    task: Task | None,
) -> Ablation:
    memory = Memory(asks=False)
    whole = retriever.over(memory)
    known, differing = _once_more(whole, memory, queries, k, rankings)
    parts = list(whole.parts(k))
    if any(query.filter for query in queries) and retriever.capabilities.filters:
        parts.append(Part("filters", "filter", Unfiltered(whole), timed=False))
    names = distinct_names([part.name for part in parts])
    parts = [replace(part, name=name) for part, name in zip(parts, names, strict=True)]
    left_outs: list[LeftOut] = []
    warnings = []
    try:
        for at, part in enumerate(parts):
            if task is not None:
                task(at, len(parts))
            wanted = known
            if isinstance(part.without, Unfiltered):  # of the others it says nothing
                wanted = [kept and bool(q.filter) for kept, q in zip(known, queries, strict=True)]
            left_out = _without(part, queries, k, wanted)
            if left_out.rankings is None and caller is not None:
                left_out = _asked(part, queries, k, wanted, memory=memory, caller=caller)
            left_outs.append(left_out)
    except KeyboardInterrupt:
        warnings.append("interrupted while parts were left out: those that are missing are unknown")
        left_outs += [LeftOut(part, None, why="interrupted") for part in parts[len(left_outs) :]]
    warnings += [f"{item.part.name}: {item.why}" for item in left_outs if item.why == _TOO_DEAR]
    if differing:
        warnings.append(
            f"parts were not left out for {counted(differing, 'query')}: the lists that were kept "
            "come to another ranking"
        )
    return Ablation(tuple(left_outs), tuple(warnings), total(item.spent for item in left_outs))


_TOO_DEAR = "it was not asked to the end without it: --max-cost"


def _is_made_of_parts(whole: Retriever) -> bool:
    while isinstance(whole, Wrapped):
        whole = whole.inner
    return not isinstance(whole, Remembered)


def _once_more(
    whole: Retriever, memory: Memory, queries: Sequence[Query], k: int, rankings: Rankings
) -> tuple[list[bool], int]:
    """Fill ``memory`` with what was kept; for each query whether that comes to its ranking, and how
    many do not."""
    known, differing = [], 0
    for query, ranking in zip(queries, rankings, strict=True):
        same = False
        if ranking is not None:
            memory.open(ranking)
            try:
                again = _search(whole, query, k)
                same = list(again.doc_ids) == list(ranking.doc_ids)
                differing += not same
            except NotKeptError:
                same = True  # what is missing may be missing in few parts
        known.append(same)
    memory.open(None)
    return known, differing


def _without(part: Part, queries: Sequence[Query], k: int, wanted: Sequence[bool]) -> LeftOut:
    """Answer from memory alone."""
    rankings = []
    for query, is_wanted in zip(queries, wanted, strict=True):
        try:
            rankings.append(_search(part.without, query, k) if is_wanted else None)
        except NotKeptError:
            return LeftOut(part, None)
        except Exception:  # counted: it has no ranking
            rankings.append(None)
    return LeftOut(part, rankings)


def _asked(
    part: Part,
    queries: Sequence[Query],
    k: int,
    wanted: Sequence[bool],
    *,
    memory: Memory,
    caller: Caller,
) -> LeftOut:
    """Ask with the help of whoever was measured."""
    before = memory.asked
    system = System(part.name, part.without, None, caller.retry, caller.rate_limit)
    system.price = caller.price
    calls = Plan(len(queries), rounds=1, warm_up=0)
    recorder = Recorder(system, queries, k, calls, at_once=True, budget=caller.budget)
    memory.asks, why = True, ""
    try:
        with deadline(caller.timeout_s) as timer:
            for at, is_wanted in enumerate(wanted):
                if is_wanted and caller.budget.empty:
                    why = _TOO_DEAR
                    break
                if is_wanted:
                    recorder.call(at, 0, at, timer, perf_counter_ns)
    except HarnessError as problem:
        why = problem.given
    finally:
        memory.asks = False
    unknown = [item for item in recorder.status if item.startswith(NotKeptError.__name__)]
    if why or unknown:
        return LeftOut(part, None, memory.asked - before, why, recorder.spent)
    return LeftOut(part, recorder.rankings, memory.asked - before, "", recorder.spent)


def _search(retriever: Retriever, query: Query, k: int) -> Ranking:
    raw = retriever.search(query, k)
    return checked_ranking(raw, k, has_scores=retriever.capabilities.has_scores)


class Unfiltered(Retriever):
    """A retriever that is asked without the filters of the queries."""

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the retriever."""
        return self._inner.capabilities

    def search(self, query: Query, k: int) -> Any:
        """The answer to the query without its filter."""
        return self._inner.search(replace(query, filter=None), k)
