"""Systems compared by the labels of people and of a model: is the model fit, and both verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from retrieval_bench.comparison.claims import Claim, left_open, unless
from retrieval_bench.comparison.comparison import check_asked, pairs_of
from retrieval_bench.comparison.pairs.comparability import by_dataset
from retrieval_bench.comparison.pairs.voided import void
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, counted, distinct_names
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics.names import label_of
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench_judges.evidence import Labels, LeftOut, Systems, gather_evidence
from retrieval_bench_judges.fit import Fit, fit_of
from retrieval_bench_judges.verdicts import JudgedPair, judged_pairs
from retrieval_bench_labels.store import Store


@dataclass(frozen=True, slots=True)
class JudgedComparison(Documented):
    """Systems side by side, by the labels of people and of a model.

    Attributes:
        dataset: its name.
        systems: that are compared.
        metrics: the deciding one first.
        labels: the file.
        margin: the largest difference that does not matter.
        queries_people: queries that people judged to the end.
        queries_both: those of them that count with the model's labels.
        queries_model: queries that the model alone judged.
        queries_alike: queries on which all systems return the same: they differ by 0 without a
            label, and count so; the other figures are of changing queries alone.
        left_out: queries that count on neither side.
        judged_by: people's names -> how many judgements.
        strata: name -> its share of the queries, by which it counts; empty where all are one.
        fit: whether the judge is fit.
        pairs: each pair on each metric.
        why_people: why people alone decide everything; empty where the switch decides.
        warnings: what changes how verdicts must be read.
        void: (better, worse) -> the warning of a run for which that is not claimed; not in JSON.
    """

    KEYS = (
        "dataset systems metrics labels margin queries_people queries_both queries_model "
        "queries_alike left_out judged_by strata fit pairs why_people warnings"
    )

    dataset: str
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    labels: str
    margin: float
    queries_people: int
    queries_both: int
    queries_model: int
    queries_alike: int
    left_out: LeftOut
    judged_by: str
    strata: Mapping[str, float]
    fit: Fit
    pairs: tuple[JudgedPair, ...]
    why_people: str
    warnings: tuple[str, ...]
    void: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def why_nothing(self) -> str | None:
        """The reason why no pair can be compared; None where one can."""
        unjudged = {Verdict.NOT_COMPARABLE, Verdict.MISSING}
        if any(pair.people.verdict not in unjudged for pair in self.pairs):
            return None
        return "; ".join(dict.fromkeys(pair.people.reason for pair in self.pairs))

    @property
    def deciding(self) -> list[JudgedPair]:
        """The pairs of the deciding metric."""
        return [pair for pair in self.pairs if pair.people.metric == self.metrics[0]]


def compare_judged(
    runs: Sequence[Run],
    store: Store,
    *,
    judge: str | None = None,
    margin: float = MARGIN,
    baseline: str | None = None,
    strata: Mapping[str, str] | None = None,
) -> JudgedComparison:
    """Compare ``runs`` by the labels in ``store``; made once, with what people judged until now.

    Args:
        judge: name of the model; None = the only one whose labels are there.
        margin: up to this absolute difference two systems are as good as equal.
        baseline: compare all others with this system only; None = every pair.
        strata: query -> stratum, of each of which people judged some at random; None = all are one.

    Raises:
        ConfigError: fewer than two runs, of several datasets, or labels that say nothing of them.
    """
    if len(runs) < 2 or len(by_dataset(runs)) > 1:
        raise ConfigError(
            f"{counted(len(runs), 'run')} of {counted(len(by_dataset(runs)), 'dataset')}",
            where="--judged-by",
            accepted="two runs or more of the dataset whose pool was judged",
            fix="give those of one dataset at a time",
        )
    names = distinct_names([run.name for run in runs])
    check_asked(names, margin=margin, baseline=baseline, tests=())
    labels = Labels.of(store, judge, strata)
    evidence = gather_evidence(labels, Systems.of_runs(runs, names, labels.pool))
    pairs = judged_pairs(evidence, runs, margin=margin, pairs=pairs_of(names, baseline))
    return JudgedComparison(
        labels.pool.dataset,
        tuple(names),
        tuple(map(str, evidence.systems.metrics)),
        str(store.path),
        margin,
        len(evidence.query_ids),
        int(evidence.both.sum()),
        len(evidence.more_ids),
        len(evidence.asked) - len(evidence.changing),
        evidence.left_out,
        labels.whose.sentence,
        evidence.shares(every=True) if labels.strata else {},
        fit_of(store, labels, evidence),
        tuple(pairs),
        evidence.why_people,
        (*evidence.warnings, *_of_runs(runs, names)),
        {
            (names[i], names[j]): why
            for i, j in permutations(range(len(runs)), 2)
            if (why := void(Claim.QUALITY, runs[i], runs[j], (names[i], names[j])))
        },
    )


def _of_runs(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """The warnings of runs for which something is not claimed of them."""
    return [
        f"{name}: {text}"
        for run, name in zip(runs, names, strict=True)
        for text in run.summary.warnings
        if left_open("compare --judged-by", [text])
    ]


def sentence(made: JudgedComparison, pair: JudgedPair) -> str:
    """Say in words how a pair compares, and by whose labels; or why nothing is claimed."""
    delta = pair.both
    metric, whose = label_of(delta.metric), f"by {pair.decided_by}"
    if delta.verdict in (Verdict.NOT_COMPARABLE, Verdict.MISSING):
        return f"{delta.b} and {delta.a} cannot be compared: {delta.reason}."
    if delta.verdict in (Verdict.BETTER, Verdict.WORSE):
        better, worse = (delta.b, delta.a)[:: 1 if delta.verdict is Verdict.BETTER else -1]
        said = f"{better} is better than {worse} in {metric}, {whose}."
        return unless(made.void.get((better, worse), ""), said)
    if delta.verdict is Verdict.EQUIVALENT:
        return f"{delta.b} and {delta.a} are equivalent in {metric}, {whose}."
    return f"{delta.b} or {delta.a}: can't tell in {metric}, {whose}."
