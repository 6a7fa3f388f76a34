"""A whole duet: launches of both sides until the decision is there."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.comparison.pairs.call_pairs import Pairs
from retrieval_bench.core.errors import ConfigError, counted
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.core.types import Verdict
from retrieval_bench.measure.environment import environment
from retrieval_bench.measure.machine.kernel import cpus_of_one_node
from retrieval_bench.measure.machine.noise import NoiseRecorder
from retrieval_bench.stats.resampling import SEED
from retrieval_bench_duet.account import (
    about,
    failures,
    machine_warnings,
    median_calls,
    one_sided,
    share_of_the_cores,
    slower_on_average,
    stalled,
    surroundings,
)
from retrieval_bench_duet.decision import GATES, Trial, overall, thetas, visible
from retrieval_bench_duet.launch import (
    BrokenSideError,
    LostError,
    Measured,
    Share,
    SideProcess,
    leads,
    measure,
)
from retrieval_bench_duet.result import DuetDataset, DuetResult, GateResult
from retrieval_bench_duet.revisions import revisions
from retrieval_bench_duet.sides import Side
from retrieval_bench_launches.launch_merge import hash_seed

MOST_QUERIES = 220
"""More are not asked: a fixed random choice of them stands for all, so that a launch is short. The
95th percentile takes 200: some queries may fail."""

MOST_LOST = 3
"""So many launches may be lost until the duet gives up."""


@dataclass(frozen=True, slots=True)
class DuetProtocol:
    """Settings of a duet's measurement.

    Attributes:
        seconds: of measuring in a launch, both sides together; one round is made in any case.
        queries: at most so many, chosen by the seed.
        warm_up_s: longest warm-up of a launch.
        most_s: measure no longer than so many seconds in all; None = until it is decided.
        timeout_s: a call that takes longer loses its launch.
        threads: that numerical libraries may use during timed searches.
        limits: name of each gate -> largest acceptable slow-down, a share.
        all_judged: a gate that cannot be judged keeps the duet from passing.
    """

    seconds: float = 1.0
    queries: int = MOST_QUERIES
    warm_up_s: float = 0.5
    most_s: float | None = None
    timeout_s: float = 60.0
    threads: int = 1
    seed: int = SEED
    limits: Mapping[str, float] = field(
        default_factory=lambda: {name: gate.limit for name, gate in GATES.items()}
    )
    all_judged: bool = False

    def __post_init__(self) -> None:
        for name in ("seconds", "queries", "warm_up_s", "most_s", "timeout_s", "threads"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(
                    f"{name.removesuffix('_s').replace('_', '-')} = {value}",
                    where="the duet's protocol",
                    accepted="a number above 0, and a finite one",
                )
        for name, limit in self.limits.items():
            if name not in GATES or not limit > 0:
                raise ConfigError(
                    f"limit {name} = {limit}",
                    where="the duet's protocol",
                    accepted=f"a share above 0 for {', '.join(GATES)}",
                )


def duet(
    a: Side,
    b: Side,
    dataset: str | Path,
    *,
    split: str = "test",
    k: int = 10,
    protocol: DuetProtocol | None = None,
    reporter: Reporter | None = None,
) -> DuetResult:
    """Measure both sides, call by call in turn, until it is decided whether ``b`` is slower.

    Ctrl-C ends it early, and gives what was found so far as interrupted.

    Raises:
        ConfigError: a side that cannot be built.
    """
    protocol = protocol or DuetProtocol()
    spec = {"dataset": str(dataset), "split": split, "k": k, "threads": protocol.threads}
    stage = _Stage((a, b), spec, protocol, reporter or Silent())
    return stage.play()


class _RefusedError(Exception):
    """Reason why two sides can't be compared at all."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict


class _LostSideError(Exception):
    """A launch is lost because of one side: 0 is a, 1 is b."""

    def __init__(self, at: int, reason: object) -> None:
        super().__init__(str(reason))
        self.at = at


class _Stage:
    """Stage of a duet: starts the processes, and knows what was measured so far."""

    def __init__(
        self,
        sides: tuple[Side, Side],
        spec: Mapping[str, Any],
        protocol: DuetProtocol,
        reporter: Reporter,
    ) -> None:
        self.sides = sides
        self.spec = spec
        self.protocol = protocol
        self.reporter = reporter
        self.begin = time.monotonic()
        self.measured: list[Measured] = []
        self.pairs: list[Pairs] = []
        self.noise: list[Mapping[str, Any]] = []
        self.lost: list[str] = []
        self.lost_by = [0, 0]
        self.facts: list[Mapping[str, Any]] = [{}, {}]
        self.told_last = [False, False]  # whether a side said what it loaded while it searched
        self.chosen: list[int] | None = None
        self.answered: set[int] = set()  # by both sides, in every launch
        self.fewest = 0  # queries that were answered in a launch
        self.other_rankings: int | None = None
        self.notes: list[str] = []
        self.trial: Trial[Pairs] | None = None
        self.unjudged: list[GateResult] = []

    def play(self) -> DuetResult:
        """The whole of it."""
        try:
            while (self.trial is None or not self.trial.over) and not self._out_of_time():
                self._launch()
                if len(self.lost) > MOST_LOST:
                    raise _RefusedError(Verdict.MISSING, f"{len(self.lost)} launches were lost")
        except _RefusedError as refusal:
            return replace(self._result(), verdict=refusal.verdict, reason=str(refusal))
        except KeyboardInterrupt:
            return replace(self._result(), interrupted=True)
        return self._result()

    @property
    def asked(self) -> int:
        """The number of queries."""
        return len(self.chosen or ())

    def _out_of_time(self) -> bool:
        most = self.protocol.most_s
        return most is not None and sum(launch.seconds for launch in self.measured) >= most

    def _launch(self) -> None:
        """One more pair of processes; a launch that is lost leaves its reason only."""
        number = len(self.measured) + len(self.lost)
        with ExitStack() as stack, self.reporter.phase(self._phase(number)):
            try:
                both = self._started(stack, number)
                n_queries = self._ready(both)
                share = Share(
                    self.protocol.seconds,
                    self.protocol.warm_up_s,
                    self.chosen,
                    # By what was measured: a launch that is lost must not leave its half alone.
                    leads(self.asked, len(self.measured), self.protocol.seed),
                    _core(number),
                )
                rng = np.random.default_rng([self.protocol.seed, number])
                with NoiseRecorder() as noise:
                    launch = _measured(both, n_queries, share, rng)
            except _LostSideError as problem:
                self.lost.append(f"launch {number + 1}: {problem}")
                self.lost_by[problem.at] += 1
                return
            if not all(self.told_last):
                self._ask_besides(both)
        self.noise.append(noise.record)
        self._keep(launch)

    def _started(self, stack: ExitStack, number: int) -> list[SideProcess]:
        """Both processes; the one that is started first changes from launch to launch.

        Raises:
            ConfigError: one cannot be started, as in :meth:`_named`.
        """
        processes = {}
        for at in (0, 1) if number % 2 == 0 else (1, 0):
            with self._named(at):
                processes[at] = SideProcess(
                    self.sides[at],
                    self.spec,
                    hash_seed=hash_seed(number),
                    call_s=self.protocol.timeout_s,
                )
            stack.callback(processes[at].close)
        return [processes[0], processes[1]]

    def _ready(self, both: Sequence[SideProcess]) -> int:
        """Wait until both can search; the number of queries.

        Raises:
            ConfigError: one cannot be built, as in :meth:`_named`.
            _LostSideError: one ended.
            _RefusedError: the two cannot be compared.
        """
        for at in (0, 1):
            with self._named(at):
                self.facts[at] = {**self.facts[at], **both[at].ready()}
        return self._checked()

    @contextmanager
    def _named(self, at: int) -> Iterator[None]:
        """Attribute errors of a process to its side. One that could be built before is lost when it
        cannot be any more: what was measured stays."""
        try:
            yield
        except LostError as problem:
            raise _LostSideError(at, problem) from None
        except BrokenSideError as problem:
            if self.measured:
                what = f"{self.sides[at].name}: it cannot be built any more: {problem}"
                raise _LostSideError(at, what) from problem
            raise ConfigError(
                f"side {'ab'[at]} cannot be built: {problem}", where=self.sides[at].name
            ) from problem.__cause__

    def _ask_besides(self, both: Sequence[SideProcess]) -> None:
        """Ask for what is no part of the measurement, and cannot spoil it any more: whether both
        find the same, once, and what they say of themselves after their searches, until both did.

        Raises:
            _RefusedError: another code was measured than was asked for.
        """
        if not self.measured:
            with self._noted():
                digests = [np.array(process.digests(self.chosen or ())) for process in both]
                self.other_rankings = int((digests[0] != digests[1]).sum())
        for at in (0, 1):
            if not self.told_last[at]:
                with self._noted():
                    self.facts[at] = {**self.facts[at], **both[at].last()}
                    self.told_last[at] = True
        self._check_code()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Note what cannot be learnt; it costs no launch."""
        try:
            yield
        except LostError as problem:
            self.notes.append(f"not all is known of the two sides: {problem}")

    def _phase(self, number: int) -> Phase:
        if self.trial is not None and self.trial.signs:
            about = f"{number + 1} ({', '.join(self.trial.signs)})"
            return Phase(Step.CONFIRMING_LAUNCH, about)
        return Phase(Step.DUET_LAUNCH, str(number + 1))

    def _checked(self) -> int:
        """The number of queries.

        Raises:
            _RefusedError: the two cannot be compared.
        """
        a, b = self.facts
        for what in ("fingerprint", "queries"):
            if a[what] != b[what]:
                raise _RefusedError(
                    Verdict.NOT_COMPARABLE, f"the two sides see a dataset with other {what}"
                )
        self._check_code()
        n = len(a["queries"])
        if self.chosen is None:
            some = np.random.default_rng(self.protocol.seed).permutation(n)
            self.chosen = sorted(some[: self.protocol.queries].tolist())
            self.answered, self.fewest = set(self.chosen), len(self.chosen)
        return n

    def _check_code(self) -> None:
        if why := revisions.wrong_code(self.sides, self.facts):
            raise _RefusedError(Verdict.MISSING, why)

    def _keep(self, measured: Measured) -> None:
        self.measured.append(measured)
        pairs = measured.pairs(len(self.measured) - 1)
        self.pairs.append(pairs)
        here = set(pairs.query.tolist())
        self.answered &= here
        self.fewest = min(self.fewest, len(here))
        if self.trial is None:
            limits = {}
            for name, limit in self.protocol.limits.items():
                gate, answered = GATES[name], self._answered(name)
                if answered >= gate.queries:
                    limits[name] = limit
                else:
                    why = f"takes {counted(gate.queries, 'query')}, here {answered}"
                    if answered < self.asked:
                        why += f" of {self.asked} answered"
                    self.unjudged.append(
                        GateResult(name, Verdict.MISSING, limit, gate.delta, reason=why)
                    )
            if not limits:
                raise _RefusedError(Verdict.MISSING, "too few queries for every gate")
            self.trial = Trial(limits, thetas)
        elif any(self._answered(name) < GATES[name].queries for name in self.trial.limits):
            raise _RefusedError(Verdict.MISSING, "calls fail that did not fail before")
        self.trial.add(pairs)

    def _answered(self, gate: str) -> int:
        """Return how many queries a gate can go by."""
        return len(self.answered) if GATES[gate].same else self.fewest

    def _result(self) -> DuetResult:
        judged = () if self.trial is None else tuple(map(_foreseen, self.trial.results()))
        known = {gate.gate: gate for gate in (*judged, *self.unjudged)}
        gates = tuple(known[name] for name in self.protocol.limits if name in known)
        verdict, reason = overall(gates), ""
        if verdict is not Verdict.WORSE and (reason := self._objections()):
            verdict = Verdict.MISSING
        if self._out_of_time() and verdict is Verdict.UNDECIDED:
            reason = reason or f"not decided within {self.protocol.most_s:g} s of measuring"
        return DuetResult(
            a=about(self.sides[0], self.facts[0], self.facts[0]),
            b=about(self.sides[1], self.facts[1], self.facts[0]),
            dataset=DuetDataset(
                self.facts[0].get("dataset"),
                self.facts[0].get("fingerprint"),
                self.spec["split"],
                self.spec["k"],
            ),
            verdict=verdict,
            gates=gates,
            launches=len(self.measured),
            lost=tuple(self.lost),
            measured_s=sum(launch.seconds for launch in self.measured),
            total_s=time.monotonic() - self.begin,
            calls=self._calls(),
            failed=sum(pairs.failed for pairs in self.pairs),
            stalled=stalled(self.measured),
            queries=self.asked,
            other_rankings=self.other_rankings,
            median_ns=median_calls(self.measured),
            reason=reason,
            warnings=tuple(self._warnings(reason)),
            environment=environment(self.protocol.threads) | surroundings(self.facts[0]),
            others=share_of_the_cores(self.noise, "others"),
            stolen=share_of_the_cores(self.noise, "stolen"),
            one_core=sum(launch.core is not None for launch in self.measured),
            launched=tuple(self.measured),
            query_ids=tuple(self.facts[0].get("queries", ())),
        )

    def _calls(self) -> int:
        """Return the calls of each side."""
        return sum(launch.wall_ns.shape[1] for launch in self.measured)

    def _objections(self) -> str:
        """Return why this cannot pass, whatever the times say; "" when it can."""
        told = [one_sided(self.measured), slower_on_average(self.measured)]
        told += [
            f"side {'ab'[at]} never said what code its searches loaded"
            for at in (0, 1)
            if self.measured and not self.told_last[at]
        ]
        failed, too_many = failures(self.measured, self.asked)
        if too_many:
            told.append(failed)
        for at, other in ((0, 1), (1, 0)):
            if self.lost_by[at] and not self.lost_by[other]:
                n = counted(self.lost_by[at], "launch")
                told.append(f"side {'ab'[at]} was lost in {n}, the other one in none")
        if self.protocol.all_judged:
            told += [f"{gate.gate} {gate.reason}" for gate in self.unjudged]
        return "; ".join(filter(None, told))

    def _warnings(self, reason: str) -> list[str]:
        """Collect all else to know, beside ``reason``."""
        warnings = [one_sided(self.measured), failures(self.measured, self.asked)[0]]
        warnings = [*(text for text in warnings if text and text not in reason), *self.notes]
        warnings += [note for side in self.sides for note in side.place.notes]
        warnings += [f"lost: {launch}" for launch in self.lost]
        warnings += dict.fromkeys(
            text for facts in self.facts for text in facts.get("complaints", ())
        )
        warnings += machine_warnings(self.noise)
        all_queries = len(self.facts[0].get("queries", ()))
        if self.chosen is not None and len(self.chosen) < all_queries:
            warnings.append(
                f"{len(self.chosen)} of {all_queries:,} queries were asked, chosen by seed"
            )
        return warnings


def _core(number: int) -> int | None:
    """Return one core of those that there are, by turns; None where there is no choice, or no way
    to make it."""
    cores = sorted(cpus_of_one_node(Path("/")))
    return cores[number % len(cores)] if len(cores) > 1 else None


def _measured(
    both: Sequence[SideProcess], n_queries: int, share: Share, rng: np.random.Generator
) -> Measured:
    try:
        return measure(both, n_queries, share, rng)
    except LostError as problem:
        raise _LostSideError(int(problem.process is both[1]), problem) from None


def _foreseen(gate: GateResult) -> GateResult:
    if gate.spread is None:
        return gate
    return replace(gate, visible=visible(gate.spread, gate.beyond, gate.limit))
