"""What duets can see on this machine: equal sides, and sides with real extra work, played here."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Verdict
from retrieval_bench.stats.resampling import SEED
from retrieval_bench_duet.controller import DuetProtocol, duet
from retrieval_bench_duet.decision import FOUND, GATES, Trial, overall, slow_queries, thetas
from retrieval_bench_duet.result import WORDS, DuetResult, Word
from retrieval_bench_duet.sides import Place, Side

PROBE: Mapping[str, Any] = {"name": "probe", "target": "retrieval_bench_duet.probe:Probe"}
"""What is measured where no retriever is named."""

REPLAYS = 500
"""Duets that are put together from the launches that were measured."""

_FINEST, _LARGEST = 0.005, 0.5


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of duet.

    Attributes:
        name: of the kind.
        share: extra work of side b, a share of each call.
        slowest: only the slowest queries have it, as the gate of this name sees them.
    """

    name: str
    share: float = 0.0
    slowest: bool = False

    @property
    def equal(self) -> bool:
        """True if the two sides are the same."""
        return self.share == 0


KINDS = (
    Kind("equal sides"),
    Kind("+5 %", 0.05),
    Kind("+10 %", 0.10),
    Kind("+3 %", 0.03),
    Kind("slowest fifth +10 %", 0.10, slowest=True),
)
"""Played by turns: after each one with extra work comes one of equal sides."""


@dataclass(slots=True)
class Played(Documented):
    """All duets of one kind, and how they ended.

    Attributes:
        replayed_fail: share of FAIL among duets put together anew from its launches; None with too
            few launches.
    """

    KEYS = (
        "name=kind.name share=kind.share slowest=kind.slowest duets launches verdicts "
        "replayed_fail measured_s"
    )

    kind: Kind
    results: list[DuetResult] = field(default_factory=list)
    replayed_fail: float | None = None

    @property
    def duets(self) -> int:
        """How many there were."""
        return len(self.results)

    @property
    def launches(self) -> int:
        """How many all of them had."""
        return sum(result.launches for result in self.results)

    @property
    def verdicts(self) -> dict[Word, int]:
        """How many duets ended so, by the word."""
        return {word: self.count(word) for word in dict.fromkeys(WORDS.values())}

    @property
    def measured_s(self) -> list[float]:
        """Seconds of measuring of each duet."""
        return [result.measured_s for result in self.results]

    def count(self, word: str) -> int:
        """Return how many ended so."""
        return sum(result.word == word for result in self.results)

    def slowest(self) -> list[str]:
        """Ids of the slowest queries, as the first duet found them; none when it measured none."""
        for result in self.results[:1]:
            pairs = [launch.pairs(at) for at, launch in enumerate(result.launched)]
            if pairs:
                return [result.query_ids[number] for number in slow_queries(pairs).tolist()]
        return []

    @property
    def thetas(self) -> list[dict[str, float]]:
        """The thetas of each launch of a duet with figures, by gate that all of these have."""
        usable = [result for result in self.results if result.verdict is not Verdict.MISSING]
        judged = [
            {gate.gate for gate in result.gates if gate.ratio is not None} for result in usable
        ]
        common = sorted(set.intersection(*judged)) if judged else []
        ratios = []
        for result in usable:
            pairs = [launch.pairs(at) for at, launch in enumerate(result.launched)]
            columns = [thetas(name, pairs) for name in common]
            ratios += [dict(zip(common, row, strict=True)) for row in zip(*columns, strict=True)]
        return ratios


@dataclass(frozen=True, slots=True)
class Visible:
    """The smallest slow-down of usual queries, a share, that so many seconds of measuring find;
    null where they find none of up to 50 %."""

    seconds: float
    share: float | None


@dataclass(slots=True)
class SelfTest(Documented):
    """Duets that were played, and what follows.

    Attributes:
        retriever, dataset: what was measured, on what.
        played: each kind of duet, and how its duets ended.
        interrupted: Ctrl-C ended it.
        seconds: that it took.
        visible: the smallest slow-down that so much measuring finds.
        spread: of the log ratio of usual queries from launch to launch, equal sides; one standard
            deviation.
    """

    KEYS = "retriever dataset seconds false_alarms missed spread interrupted kinds=played visible"

    retriever: str
    dataset: str
    played: list[Played]
    seconds: float = 0.0
    visible: list[Visible] = field(default_factory=list)
    spread: float | None = None
    interrupted: bool = False

    @property
    def false_alarms(self) -> int:
        """Duets of equal sides that failed."""
        return sum(played.count("FAIL") for played in self.played if played.kind.equal)

    @property
    def beyond_limit(self) -> list[Played]:
        """Kinds in which all queries are slowed by the limit of p50 or more: none may pass."""
        limit = GATES["p50"].limit
        return [
            played
            for played in self.played
            if played.kind.share >= limit and not played.kind.slowest
        ]

    @property
    def missed(self) -> int:
        """Duets with extra work beyond the limit in each query that passed."""
        return sum(duet.count("PASS") for duet in self.beyond_limit)

    @property
    def unable(self) -> str:
        """The reason why duets cannot judge here, in a sentence; "" when they can."""
        if not any(played.count("PASS") for played in self.played if played.kind.equal):
            return "no duet of equal sides passed"
        slowed = [played for played in self.played if not played.kind.equal]
        if not any(item.count("FAIL") + item.count("PASS") for item in slowed):
            return "no duet with extra work was decided"
        return ""


def selftest(
    retriever: str | Mapping[str, Any] | None = None,
    dataset: str | Path = "science-mini",
    *,
    seconds: float = 120.0,
    k: int = 10,
    split: str = "test",
    protocol: DuetProtocol | None = None,
    kinds: Sequence[Kind] = KINDS,
    reporter: Reporter | None = None,
) -> SelfTest:
    """Play duets until the next one would take longer than ``seconds`` allow, two at least: equal
    sides, then extra work, by turns.

    Raises:
        ConfigError: the retriever cannot be built.
    """
    protocol = protocol or DuetProtocol()
    self_test = SelfTest("", str(dataset), [Played(kind) for kind in kinds])
    begin = time.monotonic()
    equal, *slower = self_test.played
    order = [item for other in slower for item in (equal, other)]
    number, longest = 0, 0.0
    while number < 2 or time.monotonic() - begin + longest < seconds:
        one, slow = order[number % len(order)], equal.slowest()
        if one.kind.slowest and not slow:
            one = equal  # the first duet measured nothing: which are slow is not known
        a, b = (extra_work(retriever, kind, slow) for kind in (Kind(""), one.kind))
        result = duet(
            a,
            b,
            dataset,
            split=split,
            k=k,
            # The slowest queries are known of the first duet: its queries are asked again.
            protocol=replace(protocol, seed=SEED + (0 if one.kind.slowest else number)),
            reporter=reporter,
        )
        number, longest = number + 1, max(longest, result.total_s)
        if result.interrupted:
            self_test.interrupted = True
            break
        one.results.append(result)
    self_test.seconds = time.monotonic() - begin
    self_test.retriever = _name(retriever)
    _conclude(self_test)
    return self_test


def extra_work(
    retriever: str | Mapping[str, Any] | None, kind: Kind, slowest: Sequence[str] = ()
) -> Side:
    """A side that does the extra work of ``kind``; of a kind without, the same wrapper.

    Args:
        slowest: ids of the slowest queries.
    """
    inner = dict(PROBE) if retriever is None else retriever
    params: dict[str, Any] = {"retriever": inner, "share": kind.share, "queries": None}
    if kind.slowest:
        params["queries"] = list(slowest)
    slowed = {"name": kind.name or "itself", "target": "retrieval_bench_duet.slowed:Slowed"}
    return Side({**slowed, "params": params}, Place.here())


def _name(retriever: str | Mapping[str, Any] | None) -> str:
    if isinstance(retriever, str):
        return retriever
    return str((retriever or PROBE).get("name", "retriever"))


def _conclude(self_test: SelfTest) -> None:
    """Draw the conclusions from all launches together."""
    rng = np.random.default_rng(SEED)
    for played in self_test.played:
        pool = played.thetas
        if len(pool) >= FEWEST:
            played.replayed_fail = fail_rate(pool, rng)
    equal = self_test.played[0]
    pool = equal.thetas
    if len(pool) < FEWEST or "p50" not in pool[0]:
        return
    self_test.spread = float(np.std([launch["p50"] for launch in pool], ddof=1))
    per_launch = sum(equal.measured_s) / equal.launches
    mean = {name: float(np.mean([launch[name] for launch in pool])) for name in pool[0]}
    pool = [{name: value - mean[name] for name, value in launch.items()} for launch in pool]
    for launches in (7, 11, 17):
        visible = Visible(per_launch * launches, _visible(pool, launches, rng))
        self_test.visible.append(visible)


FEWEST = 5
"""Launches from which duets are put together."""


def fail_rate(
    pool: Sequence[Mapping[str, float]],
    rng: np.random.Generator,
    *,
    shift: float = 0.0,
    launches: int | None = None,
    replays: int = REPLAYS,
) -> float:
    """The share of FAIL among duets whose launches are drawn from ``pool``.

    Args:
        pool: name of each gate -> log ratio, by launch.
        shift: added to all log ratios.
        launches: a duet that takes more is broken off.
    """
    fails = 0
    for _ in range(replays):
        trial: Trial[Mapping[str, float]] = Trial(
            {name: GATES[name].limit for name in pool[0]},
            lambda gate, drawn: [launch[gate] for launch in drawn],
        )
        n = 0
        while not trial.over and (launches is None or n < launches):
            drawn = pool[int(rng.integers(len(pool)))]
            trial.add({name: value + shift for name, value in drawn.items()})
            n += 1
        fails += WORDS[overall(trial.results())] == "FAIL"
    return fails / replays


def _visible(
    pool: Sequence[Mapping[str, float]], launches: int, rng: np.random.Generator
) -> float | None:
    """The smallest shift that is found in :data:`FOUND` of all duets of so many launches."""
    low, high = _FINEST, _LARGEST

    def rate(share: float) -> float:
        shift = math.log1p(share)
        return fail_rate(pool, rng, shift=shift, launches=launches, replays=100)

    if rate(high) < FOUND:
        return None
    while high - low > _FINEST / 2:
        middle = (low + high) / 2
        low, high = (low, middle) if rate(middle) >= FOUND else (middle, high)
    return high
