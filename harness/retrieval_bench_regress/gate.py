"""The whole answer: quality and latency against a baseline, one verdict, and what to do now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NotRequired, TypedDict

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.types import Verdict
from retrieval_bench_duet.result import WORDS, Word
from retrieval_bench_regress.latency_gates import LatencyGate, LatencyResult
from retrieval_bench_regress.policy import Policy, Undecided
from retrieval_bench_regress.quality_gates import QualityGate, QualityResult

SCHEMA_VERSION = 1
"""Of the document of ``regress``; 1: first version."""

_WORST_FIRST = (
    Verdict.WORSE,
    Verdict.MISSING,
    Verdict.NOT_COMPARABLE,
    Verdict.UNRESOLVABLE,
    Verdict.UNDECIDED,
    Verdict.EQUIVALENT,
    Verdict.BETTER,
)


class RevisionFacts(TypedDict):
    """A revision of the code.

    Attributes:
        commit: its hash.
        dirty: whether files were new or changed.
    """

    commit: str
    dirty: bool


class SubjectDataset(TypedDict):
    """A dataset, with the number of queries that count in means."""

    name: str
    split: str
    fingerprint: str
    n_queries: int


class Subject(TypedDict):
    """Subject of a measurement.

    Attributes:
        retriever: its name.
        dataset: on which.
        k: hits asked for.
        machine: a fingerprint of what changes times.
        revision: of the code; null where git knows no commit.
    """

    retriever: str
    dataset: SubjectDataset
    k: int
    machine: str
    revision: RevisionFacts | None


class BaselineFacts(TypedDict):
    """A baseline that something was held against.

    Attributes:
        path: of the file.
        revision: of the code that it was made with; null where git knew no commit.
        config: hash of the retriever's target and parameters.
        date: when its times were measured; missing for quality.
    """

    path: str
    revision: RevisionFacts | None
    config: str | None
    date: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Regression(Documented):
    """Result of ``regress``.

    Attributes:
        subject: retriever, dataset and k; what was measured now.
        policy: the limits.
        baselines: "quality", "latency" -> path, revision and date of what it was held against;
            only those that could be read.
        quality, latency: None where the policy has no such limit.
        advice: what to do now, a sentence each.
        notes: what else is not as it was when the baseline was made.
        warnings: of the measurement.
        run: folder in which it is saved; None where nothing was measured but by a duet.
        texts: of the queries whose ranking changed, each under its id.
        not_kept: why the run or the duet is not in the history.
        schema_version: of the document.
    """

    KEYS = (
        "schema_version verdict=word exit_code=code *subject policy baselines quality latency "
        "run advice notes warnings"
    )

    schema_version: ClassVar[int] = SCHEMA_VERSION
    subject: Subject
    policy: Policy
    baselines: Mapping[str, BaselineFacts]
    quality: QualityResult | None
    latency: LatencyResult | None
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    run: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    not_kept: tuple[str, ...] = ()

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of every metric, and of latency as a whole: a gate that so few queries
        cannot be judged by is none."""
        verdicts = [gate.verdict for gate in self.quality.gates] if self.quality else []
        return [*verdicts, *([self.latency.verdict] if self.latency else [])]

    @property
    def gates(self) -> list[tuple[str, QualityGate | LatencyGate]]:
        """All gates by name, quality first."""
        return [
            *((gate.metric, gate) for gate in (self.quality.gates if self.quality else ())),
            *((gate.gate, gate) for gate in (self.latency.gates if self.latency else ())),
        ]

    @property
    def verdict(self) -> Verdict:
        """The worst of them; nothing measured is worse than undecided."""
        return worst(self.verdicts)

    @property
    def interrupted(self) -> bool:
        """The user stopped the duet before it showed anything: latency was not judged."""
        if self.latency is None or self.latency.duet is None:
            return False
        return self.latency.duet.interrupted and self.latency.verdict is not Verdict.WORSE

    @property
    def code(self) -> int:
        """0 fine, 1 a regression, 3 undecided, 4 not measured, 130 interrupted."""
        if not self.verdicts:
            return 4
        codes = {_code(verdict, self.policy.undecided) for verdict in self.verdicts}
        if 1 in codes:
            return 1
        return 130 if self.interrupted else max(codes)

    @property
    def word(self) -> Word:
        """The verdict as shown."""
        return WORDS[self.verdict]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of several; of none that nothing was measured."""
    return min(verdicts, key=_WORST_FIRST.index, default=Verdict.MISSING)


def _code(verdict: Verdict, undecided: Undecided) -> int:
    if verdict is Verdict.WORSE:
        return 1
    if verdict.open:
        return {Undecided.PASS: 0, Undecided.FAIL: 1, Undecided.INCONCLUSIVE: 3}[undecided]
    return 0 if verdict in (Verdict.EQUIVALENT, Verdict.BETTER) else 4
