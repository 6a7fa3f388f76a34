"""Is b slower than a under load? Blocks of both at the same rate, in turn, until it is decided.

Each pair of blocks asks both sides the same queries at the same times after the start; which side
is first is drawn. The pair gives one figure, the log ratio of both medians of latency, and duets'
own rules decide on it as on that of a launch: a sign is no verdict until new pairs show it again.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench.core.notices import with_text
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Verdict
from retrieval_bench.measure.environment import environment
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.stats.percentiles import needs, quantiles
from retrieval_bench_duet.account import about
from retrieval_bench_duet.controller import MOST_LOST, DuetProtocol
from retrieval_bench_duet.decision import ALPHA, GATES, Judged, Trial, visible
from retrieval_bench_duet.duet import Request
from retrieval_bench_duet.result import (
    BlockFacts,
    DuetDataset,
    DuetResult,
    GateResult,
    SideFacts,
    check_place,
    write_duet,
)
from retrieval_bench_duet.sides import Side
from retrieval_bench_launches.launches import LaunchSpec
from retrieval_bench_load.engine.generator import Level, LevelCalls
from retrieval_bench_load.engine.levels import LevelResult, State, Times, judged
from retrieval_bench_load.engine.load import checked, generator_of
from retrieval_bench_load.engine.making import Subject
from retrieval_bench_load.engine.schedule import Pace
from retrieval_bench_load.refusals import REFUSALS, Share, p_no_larger, told

BLOCK_S = 10.0
"""Of a block, at least: a queue forgets in a fraction of that, so that blocks are independent."""

_WARM_UP_S = 1.0
_MEDIAN = "p50"
_SURE, _FEWEST_PAIRS = 0.001, 5
"""p at which what is looked at once, at the end, fails; of p95 after so many pairs."""


@dataclass(slots=True)
class Blocks:
    """Pairs of blocks, judged as they come.

    Attributes:
        block: makes the calls of a block of side 0 or 1, with a seed.
        in_process: of each side: the retriever runs in the generator's processes.
        limit: largest acceptable slow-down of the median, a share.
        more: whether there is time for another pair.
        latency: milliseconds of all calls of each side.
        levels: what its blocks were, as levels of a load.
    """

    block: Callable[[int, int], LevelCalls]
    in_process: tuple[bool, bool]
    limit: float
    seed: int
    more: Callable[[], bool] = lambda: True
    medians: list[tuple[float, float]] = field(default_factory=list)
    latency: tuple[list[NDArray[np.float64]], ...] = field(default_factory=lambda: ([], []))
    levels: tuple[list[LevelResult], ...] = field(default_factory=lambda: ([], []))
    answers: tuple[dict[int, set[Any]], ...] = field(default_factory=lambda: ({}, {}))
    lost: list[str] = field(default_factory=list)
    interrupted: bool = False

    def play(self) -> Trial[float]:
        """Pair after pair until it is decided, or there is no more time."""
        trial: Trial[float] = Trial({_MEDIAN: self.limit}, lambda _, ratios: list(ratios))
        number = 0
        try:
            while not trial.over and len(self.lost) <= MOST_LOST and self.more():
                number += 1
                if (pair := self._pair(number)) is not None:
                    self.medians.append(pair)
                    trial.add(math.log(pair[1] / pair[0]))
        except KeyboardInterrupt:
            self.interrupted = True
        return trial

    def _pair(self, number: int) -> tuple[float, float] | None:
        """The medians of both sides; None where the generator itself was too slow."""
        order = np.random.default_rng([self.seed, number]).permutation(2).tolist()
        made = {side: self.block(side, self.seed + 100 * number) for side in order}
        times: list[NDArray[np.float64]] = []
        results: list[LevelResult] = []
        for side in (0, 1):
            measured = made[side]
            result = judged(measured, in_process=self.in_process[side], percentiles=(50.0,))
            results.append(result)
            if result.state is State.NOT_MEASURED or not result.calls:
                reasons = "; ".join(result.reasons) or "no call was due"
                self.lost.append(f"pair {number}, side {'ab'[side]}: {reasons}")
                return None
            times.append(Times.of(measured).latency)
        if results[0].state is State.OVERLOADED:  # what both wait for is the length of the block
            self.lost.append(f"pair {number}: side a can't keep up with this rate")
            return None
        timeout_ms = 1e3 * made[0].level.timeout_s
        for side, ms in enumerate(times):
            self.latency[side].append(ms)
            self.levels[side].append(results[side])
            for query, ids in made[side].answers.values():
                self.answers[side].setdefault(query, set()).add(ids)
        a, b = (min(float(np.median(ms)), timeout_ms) for ms in times)
        return a, b

    def facts(self, rate: float, seconds: float) -> BlockFacts:
        """Collect the facts on the pairs."""
        whole = [np.concatenate([*of, np.empty(0)]) for of in self.latency]
        enough = len(whole[0]) >= needs(99.0).printed
        tails = [float(quantiles(ms, 0.99, observed=True)) for ms in whole if enough]
        p99 = (tails[0], tails[1]) if enough and all(map(math.isfinite, tails)) else None
        unanswered, refused = (
            (sum(counts[0]), sum(counts[1]))
            for counts in (
                [[level.failed for level in of] for of in self.levels],
                [[sum(level.refused.values()) for level in of] for of in self.levels],
            )
        )
        return BlockFacts(rate, seconds, tuple(self.medians), p99, unanswered, refused)

    def refusals(self) -> GateResult:
        """Say whether side b refuses more of its calls, or leaves more of them unanswered."""
        then, now = map(Share.joined, self.levels)
        worse = p_no_larger(now, then) < _SURE
        verdict = Verdict.WORSE if worse else Verdict.EQUIVALENT
        pairs, reason = len(self.levels[0]), told(now, then, "on side b", "on side a")
        return GateResult(REFUSALS, verdict, 0.0, 0.0, launches=pairs, reason=reason)

    def p95(self) -> GateResult | None:
        """Say whether p95 of side b is shown to be above that of side a, or to be within the limit;
        None where neither is shown."""
        gate, most = GATES["p95"], max(GATES["p95"].limit, self.limit)
        both = zip(*self.latency, strict=True)
        ratios = [
            math.log(b / a)
            for a, b in (tuple(float(quantiles(ms, 0.95)) for ms in pair) for pair in both)
            if 0 < a < math.inf and 0 < b < math.inf
        ]
        fewest = min((len(ms) for of in self.latency for ms in of), default=0)
        if len(ratios) < max(_FEWEST_PAIRS, len(self.medians)) or fewest < needs(95.0).printed:
            return None
        judged = Judged.of(ratios, gate.delta, most)
        if judged.p_worse >= _SURE and judged.p_beyond_limit >= ALPHA:
            return None
        verdict = Verdict.WORSE if judged.p_worse < _SURE else Verdict.EQUIVALENT
        ratio, n = math.exp(judged.mean), len(ratios)
        return GateResult("p95", verdict, most, gate.delta, ratio, judged.interval, launches=n)

    @property
    def calls(self) -> int:
        """The calls of each side."""
        return sum(map(len, self.latency[0]))

    @property
    def other_rankings(self) -> int | None:
        """Queries that the two sides have no answer to in common; None where none was asked."""
        a, b = self.answers
        return (
            None
            if not (a and b)
            else sum(a[query].isdisjoint(b[query]) for query in a.keys() & b.keys())
        )


def duet_under_load(
    request: Request,
    dataset: str | Path,
    rate: float,
    *,
    split: str = "test",
    k: int = 10,
    protocol: DuetProtocol | None = None,
    out: Path | None = None,
    reporter: Reporter | None = None,
) -> DuetResult:
    """Measure both sides under the same load, block by block in turn, and save what came of it.

    Args:
        protocol: ``seconds`` is that of a block.

    Raises:
        HarnessError: what was given cannot be used.
        RecordError: it cannot be saved; ``runs`` holds the result.
    """
    protocol = protocol or DuetProtocol(BLOCK_S, limits={_MEDIAN: GATES[_MEDIAN].limit})
    _check(request, rate, protocol)
    check_place(out)
    sides, begin = request.sides(reporter), time.monotonic()
    timeout_s = min(protocol.timeout_s, 10.0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="duet-")))
        subjects = []
        for side in sides:
            spec = _spec(side, dataset, split, k, protocol.threads)
            experiment = checked(spec)
            generator, _ = stack.enter_context(generator_of(spec, folder, None))
            ready = Subject.ready(experiment, generator, reporter, longest_s=timeout_s)
            subjects.append(ready)
        level = Level(Pace(rate), 0, protocol.seconds, _WARM_UP_S, timeout_s)
        ends = math.inf if protocol.most_s is None else time.monotonic() + protocol.most_s
        took = 2 * (protocol.seconds + _WARM_UP_S)
        blocks = Blocks(
            lambda side, seed: subjects[side].make(replace(level, seed=seed))[0],
            (not subjects[0].generator.external, not subjects[1].generator.external),
            protocol.limits[_MEDIAN],
            protocol.seed,
            lambda: time.monotonic() + took < ends,
        )
        trial = blocks.play()
        warnings = [
            with_text(text, f"side {'ab'[side]}: {text}")
            for side, subject in enumerate(subjects)
            for text in subject.warnings()
        ]
    facts = []
    for side, subject in zip(sides, subjects, strict=True):
        (candidate,) = subject.experiment.candidates
        facts.append(about(side, {"name": candidate.name, "config": candidate.config}, {}))
    data = subjects[0].experiment.dataset
    result = replace(
        _result(blocks, trial, facts, blocks.facts(rate, protocol.seconds)),
        dataset=DuetDataset(data.name, data.fingerprint, split, k),
        total_s=time.monotonic() - begin,
        queries=len(subjects[0].experiment.queries),
        environment=environment(protocol.threads),
    )
    result = replace(result, warnings=(*warnings, *result.warnings))
    try:
        return replace(result, folder=write_duet(result, out)) if blocks.medians else result
    except RecordError as problem:
        problem.runs = [result]
        raise


def _check(request: Request, rate: float, protocol: DuetProtocol) -> None:
    wrong, fix = "", "leave it out"
    if request.rev_a is not None or request.rev_b is not None:
        wrong = "--rate with a revision"
    elif [*protocol.limits] != [_MEDIAN]:
        wrong = f"--rate with limits on {', '.join(protocol.limits)}"
    elif not 0 < rate < math.inf:
        wrong, fix = f"--rate {rate:g}", "give a number above 0"
    elif protocol.seconds < BLOCK_S:
        wrong, fix = f"--seconds {protocol.seconds:g} with --rate", f"give {BLOCK_S:g} or more"
    if wrong:
        accepted = "two retrievers, or one with --set-a or --set-b; a limit on p50; blocks of 10 s"
        raise ConfigError(wrong, accepted=accepted, fix=fix)


def _spec(side: Side, dataset: str | Path, split: str, k: int, threads: int) -> Mapping[str, Any]:
    protocol = Protocol(threads=threads)
    return LaunchSpec([side.retriever], dataset, split, k, (), side.overrides, protocol).message(0)


def _result(
    blocks: Blocks, trial: Trial[float], facts: Sequence[SideFacts], of: BlockFacts
) -> DuetResult:
    (gate,) = trial.results()
    if gate.spread is not None:
        gate = replace(gate, visible=visible(gate.spread, gate.beyond, gate.limit))
    gates = [gate, *([p95] if (p95 := blocks.p95()) else []), blocks.refusals()]
    failed = any(item.verdict is Verdict.WORSE for item in gates)
    verdict, reason = Verdict.WORSE if failed else gate.verdict, ""
    if len(blocks.lost) > MOST_LOST:
        reason = f"{len(blocks.lost)} pairs were lost"
    elif not trial.over and not blocks.interrupted:
        reason = "not decided within the time that was given (--most)"
    return DuetResult(
        a=facts[0],
        b=facts[1],
        dataset=DuetDataset(None, None, "", 0),
        verdict=verdict,
        gates=tuple(gates) if blocks.medians else (gate,),
        launches=len(blocks.medians),
        lost=tuple(blocks.lost),
        measured_s=2 * of.seconds * len(blocks.medians),
        calls=blocks.calls,
        failed=sum(of.unanswered),
        other_rankings=blocks.other_rankings,
        interrupted=blocks.interrupted,
        reason=reason,
        warnings=tuple(f"lost: {item}" for item in blocks.lost),
        blocks=of,
    )
