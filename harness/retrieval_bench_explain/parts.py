"""Records of a run's parts: the ledger of a retriever, and its best leg, as documents have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.metrics import Metric
from retrieval_bench.reports.finish import Finished
from retrieval_bench.runs.run import Run

CHUNKER = "chunker"
"""The kind of what cuts documents, which no list of a run can be without."""


class Worth(StrEnum):
    """What is said of a part."""

    HELPS = "helps"
    HARMFUL = "harmful"
    DEAD = "dead"
    UNDECIDED = "undecided"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cost(Documented):
    """What a part takes, as the difference of all calls with and without it.

    Attributes:
        p50_ms, p95_ms: of the calls with it minus those without it, computed from stages; None
            where that is not known.
        share: what goes of total time.
        usage: of a query, by field; ``tokens_delivered`` of a chunker, those of its hits, which a
            reader gets; None where nothing is known.
        money_per_1000_queries: None likewise.
    """

    p50_ms: float | None = None
    p95_ms: float | None = None
    share: float | None = None
    usage: Mapping[str, float | None] | None = None
    money_per_1000_queries: float | None = None


@dataclass(frozen=True, slots=True)
class Row(Documented):
    """One part.

    Attributes:
        name: of it.
        kind: leg, fusion, rewriting, expansion, weighting, reranker, filter, depth or chunker.
        instead: what stands in its place without it; empty where nothing does.
        worth: what is said of it.
        why: the reason, in words; empty where the figures say it.
        n: queries.
        gain: mean with it minus mean without it; None where it is not known.
        ci: interval of the gain; it excludes 0 exactly where the part helps or is
            harmful, and holds by itself.
        level: of ``ci`` and ``bound``, one for all parts: what Holm leaves to them, 95 % or more.
        bound: Gaffke's interval at the same level; where few queries carry the gain.
        p: of the randomisation test, after Holm; None without a test.
        p_below: that the gain is below the margin, one-sided, after Holm.
        without: the mean without it.
        changed: queries whose ranking it changes.
        helped, hurt: queries whose value it raises, and lowers.
        queries_needed: further queries that would show a gain of this size with 80 % power, or,
            of a part that changes no value, that it is dead; None where nothing is undecided, or
            none would.
        cost: what it takes.
    """

    name: str
    kind: str
    instead: str
    worth: Worth
    why: str = ""
    n: int = 0
    gain: float | None = None
    ci: tuple[float, float] | None = None
    level: float | None = None
    bound: tuple[float, float] | None = None
    p: float | None = None
    p_below: float | None = None
    without: float | None = None
    changed: int | None = None
    helped: int | None = None
    hurt: int | None = None
    queries_needed: int | None = None
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, slots=True)
class Ledger(Documented):
    """All parts of one retriever.

    Attributes:
        run: that was measured.
        metric: of the gains.
        margin: a gain below it is none.
        n: queries that were answered.
        mean: of the metric over them.
        rows: in the order of a call.
        failed: queries that were not, and count nowhere here.
        clusters: that the answered ones are; None where queries are independent.
    """

    KEYS = (
        "retriever=run.name dataset=run.summary.dataset.name run_id=run.summary.run_id metric "
        "k=run.summary.k margin n clusters? failed mean=known_mean parts=rows"
    )

    run: Run
    metric: Metric
    margin: float
    n: int
    mean: float
    rows: tuple[Row, ...]
    failed: int = 0
    clusters: int | None = None

    @property
    def dead(self) -> tuple[Row, ...]:
        """Parts that are shown to be worth less than the margin."""
        return tuple(row for row in self.rows if row.worth is Worth.DEAD)

    @property
    def harmful(self) -> tuple[Row, ...]:
        """Parts that are shown to harm."""
        return tuple(row for row in self.rows if row.worth is Worth.HARMFUL)

    @property
    def known_mean(self) -> float | None:
        """The mean with all parts; None of no query."""
        return self.mean if self.n else None


@dataclass(frozen=True, slots=True)
class Parts(Documented):
    """Findings on the parts of a run.

    Attributes:
        leg: of a hybrid, its best leg beside it; None for any other retriever.
        ledger: of a retriever that is made of parts, what they buy.
    """

    leg: Delta | None = None
    ledger: Ledger | None = None


@dataclass(frozen=True, slots=True)
class PartsOfRun(Documented):
    """Keys beside those of a measured run.

    Attributes:
        finished: the run.
    """

    KEYS = "best_leg=parts.leg ledger?=parts.ledger"

    finished: Finished

    @property
    def parts(self) -> Parts:
        """Parts of the run; of one that is not told of any, none."""
        own = (of for of in self.finished.findings.records if isinstance(of, Parts))
        return next(own, Parts())
