"""State of a labelling: how much is judged, by whom, how far they agree, and what it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from retrieval_bench.capabilities import keys_added_to
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.experiment.until import Target
from retrieval_bench_labels.agreement import Agreement, cohen_kappa
from retrieval_bench_labels.decide.completeness import Completeness, completeness
from retrieval_bench_labels.decide.deciding import Decision, decide
from retrieval_bench_labels.decide.population import Population, by_question
from retrieval_bench_labels.grades import Settled, Whose, by_people, settled
from retrieval_bench_labels.label import GRADES, Kind, Label, Pair, Pool
from retrieval_bench_labels.queue import Progress, progress
from retrieval_bench_labels.store import Store


@dataclass(frozen=True, slots=True)
class Agreed:
    """Agreement of two judges.

    Attributes:
        judges: their names.
        kappa: Cohen's, of the grades as they are.
        weighted: the same with quadratic weights.
    """

    judges: tuple[str, str]
    kappa: Agreement
    weighted: Agreement


@dataclass(frozen=True, slots=True)
class ShownPool(Documented):
    """A pool without its queries and documents.

    Attributes:
        pool: all of it.
    """

    KEYS = (
        "dataset=pool.dataset split=pool.split fingerprint=pool.fingerprint depth=pool.depth "
        "metric=pool.metric margin=pool.margin target=pool.target systems=pool.systems "
        "generation=pool.generation cluster_key?=pool.cluster_key"
    )

    pool: Pool


@dataclass(frozen=True, slots=True)
class Status(Documented):
    """State of a labelling.

    Attributes:
        pool: what is judged.
        progress: how far it is.
        completeness: of the pool.
        whose: judgements the figures rest on; a model's never.
        models: name -> documents of the pool that it judged, which count in no verdict.
        agreements: of each two who judged something in common.
        outdated: labels of texts that have changed, which no longer count.
        population: what is shown of questions like those of the pool; None where they were drawn
            with unequal chances, and are not all judged.
        decision: what is shown of these very questions.
        warnings: of questions that are nearly the same.
    """

    KEYS = (
        "pool=shown_pool progress completeness whose models agreements outdated population "
        "decision done"
    )

    pool: Pool
    progress: Progress
    completeness: Completeness
    whose: Whose
    models: Mapping[str, int]
    agreements: tuple[Agreed, ...]
    outdated: int
    population: Population | None
    decision: Decision
    warnings: Sequence[str] = ()

    @property
    def done(self) -> bool:
        """True if every pair has a verdict, of what is said first."""
        return self.decision.done if self.population is None else self.population.done

    @property
    def shown_pool(self) -> ShownPool:
        """The pool that is judged, without its queries and documents."""
        return ShownPool(self.pool)


@dataclass(frozen=True, slots=True)
class Pooled(Documented):
    """A pool that was made.

    Attributes:
        status: where its labelling stands.
        file: of the labels.
        warnings: of the data and the systems.
    """

    KEYS = "*status file warnings"

    status: Status
    file: str
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class LabelStatus(Documented):
    """State of a labelling.

    Attributes:
        status: all of it.
        file: of the labels.
    """

    KEYS = "*status file warnings=status.warnings +"

    status: Status
    file: str

    @staticmethod
    def added() -> Sequence[Any]:
        """Records of packages, made of a status, whose keys stand in its document."""
        return keys_added_to("labels")


def status(store: Store) -> Status:
    """Return where the labelling in ``store`` stands.

    Raises:
        ConfigError: there is no pool in it.
    """
    pool = store.pool()
    labels = store.labels()
    grades = settled(by_people(labels))
    inside = set(pool.pairs)
    counting: Mapping[Pair, Settled] = {p: g for p, g in grades.items() if p in inside}
    counted, population, warnings = by_question(pool, grades)
    return Status(
        counted,
        progress(pool, store),
        completeness(pool, grades),
        Whose.of(counting.values()),
        Counter(x.who for x in labels if x.kind is Kind.MODEL and x.pair in inside),
        tuple(_agreements(labels)),
        len(store.outdated()),
        population,
        decide(pool, grades, futures=pool.target is Target.SPLIT),
        warnings,
    )


def _agreements(labels: Sequence[Label]) -> list[Agreed]:
    of_judges: dict[str, dict[Pair, int]] = {}
    for label in labels:
        if label.grade is not None and label.grade in GRADES:
            of_judges.setdefault(label.who, {})[label.pair] = label.grade
    agreements = []
    for (first, a), (second, b) in combinations(of_judges.items(), 2):
        pairs: dict[str, list[tuple[int, int]]] = {}
        for pair in a:
            if pair in b:
                pairs.setdefault(pair.query_id, []).append((a[pair], b[pair]))
        if pairs:
            kappa = cohen_kappa(pairs, len(GRADES))
            weighted = cohen_kappa(pairs, len(GRADES), weighted=True)
            agreements.append(Agreed((first, second), kappa, weighted))
    return agreements
