"""Is the judge fit? What a model's labels say beside people's, before any verdict rests on them.

Agreement is of documents, with the base rate and with what a judge would reach that always says the
same; sensitivity and specificity are of relevant and not. None of them tells whether a verdict can
be turned round: that is what rho, the correlation of the differences of queries, and the two alarms
are for. Intervals resample whole queries, since judgements of one query are alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.stats.intervals import interval
from retrieval_bench.stats.resampling import RESAMPLES, SEED
from retrieval_bench_judges.alarms import Alarm, alarms
from retrieval_bench_judges.evidence import PROMPTED, Evidence, Labels, Systems, gather_evidence
from retrieval_bench_judges.verdicts import finite, powered
from retrieval_bench_labels.agreement import Agreement, cohen_kappa
from retrieval_bench_labels.decide.completeness import RELEVANT
from retrieval_bench_labels.decide.status import LabelStatus
from retrieval_bench_labels.label import Kind
from retrieval_bench_labels.store import Store

Ends = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of documents.

    Attributes:
        share: None of no document.
        ci95: percentile bootstrap over queries; None with fewer than two.
        n: documents.
    """

    share: float | None
    ci95: Ends
    n: int


@dataclass(frozen=True, slots=True)
class Stratum:
    """Agreement on queries of one stratum.

    Attributes:
        name: of it; without strata, where the queries came from.
        queries: that people and model judged.
        kappa: Cohen's, of relevant and not.
        fails: whether its interval holds 0: nothing shows agreement beyond chance; False where too
            few queries give none.
    """

    name: str
    queries: int
    kappa: Agreement
    fails: bool


@dataclass(frozen=True, slots=True)
class Followed:
    """How far a judge's differences of two systems follow people's, in the deciding metric.

    Attributes:
        systems: the two of them.
        rho: correlation of the differences of queries; None where either has no spread.
        worth: queries judged by people that give as small an error as both; None without rho.
    """

    systems: tuple[str, str]
    rho: float | None
    worth: float | None


@dataclass(frozen=True, slots=True)
class Fit(Documented):
    """A judge beside people.

    Attributes:
        judge: its name.
        queries, documents: that both judged.
        base_rate: share of these documents that people call relevant.
        agreement: share on which both say the same, of relevant and not.
        constant: what an answer that is always the same reaches.
        kappa: Cohen's, of relevant and not.
        sensitivity: of what people call relevant, the share that the judge does.
        specificity: of what they do not, the share that it does not.
        repeated: documents that the judge was asked about twice (``label judge --again``).
        consistent: share of these that had the same grade each time; None without any.
        tokens, cost: per answer, where whoever was asked reported them; else None.
        model: that was asked, as the record has it; empty where the labels came in a file.
        strata: where there are several.
        differences: how far it follows people's, of each pair that is compared.
        alarms: two faults that turn verdicts round.
    """

    KEYS = (
        "judge queries documents base_rate agreement constant kappa sensitivity specificity "
        "repeated consistent tokens cost model strata differences alarms"
    )

    judge: str
    queries: int
    documents: int
    base_rate: float | None
    agreement: float | None
    constant: float | None
    kappa: Agreement
    sensitivity: Rate
    specificity: Rate
    repeated: int
    consistent: float | None
    tokens: float | None
    cost: float | None
    model: str
    strata: tuple[Stratum, ...]
    differences: tuple[Followed, ...]
    alarms: tuple[Alarm, ...]


def fit_of(store: Store, labels: Labels, evidence: Evidence | None = None) -> Fit:
    """Hold the labels of a model against those of people, wherever both graded a document.

    Args:
        evidence: of the systems that are compared; None = of one system, where there is no
            difference to follow.
    """
    counted = _counted(labels, {*evidence.query_ids} if evidence else {*labels.begun})
    graded = [pair for of in counted.values() for pair in of]
    n = len(graded)
    relevant = sum(first for first, _ in graded)
    same = sum(first == second for first, second in graded)
    facts = (store.fact(PROMPTED) or {}).get(labels.judge, {})
    repeated = facts.get("again", 0)
    answered = facts.get("answered", facts.get("labels", 0) + repeated)
    return Fit(
        labels.judge,
        len(counted),
        n,
        relevant / n if n else None,
        same / n if n else None,
        max(relevant, n - relevant) / n if n else None,
        cohen_kappa(counted, 2),
        _rate([[(p, m) for p, m in of if p] for of in counted.values()], says=1),
        _rate([[(p, m) for p, m in of if not p] for of in counted.values()], says=0),
        repeated,
        facts["same"] / repeated if repeated else None,
        facts["tokens"] / answered if answered and facts.get("tokens") else None,
        facts["cost"] / answered if answered and facts.get("cost") else None,
        str(facts.get("model", "")),
        _strata(labels, counted),
        tuple(_followed(evidence)) if evidence else (),
        tuple(alarms(evidence)) if evidence and evidence.both.any() else (),
    )


def fits_of(store: Store) -> list[Fit]:
    """Tell the fit of each model, by what people judged of the pool until now."""
    labels = [label for label in store.labels() if label.grade is not None]
    fits = []
    for who in dict.fromkeys(label.who for label in labels if label.kind is Kind.MODEL):
        own = Labels.of(store, who)
        several = len(own.pool.systems) > 1
        evidence = gather_evidence(own, Systems.of_pool(own.pool)) if several else None
        finished = evidence is not None and evidence.query_ids
        fits.append(fit_of(store, own, evidence if finished else None))
    return fits


def _followed(evidence: Evidence) -> Iterator[Followed]:
    names, places = evidence.systems.names, evidence.covered
    pairs = list(combinations(range(len(places)), 2))
    power = powered(evidence, places, pairs)
    for (i, j), rho, worth in zip(pairs, power.rho[:, 0], power.worth[:, 0], strict=True):
        known = (finite(float(rho)), finite(float(worth)))
        yield Followed((names[places[i]], names[places[j]]), *known)


@dataclass(frozen=True, slots=True)
class FitOfJudges(Documented):
    """The keys that ``label status`` gains where models judged.

    Attributes:
        fit: of each model that judged.
    """

    KEYS = "fit?"

    status: LabelStatus

    @property
    def fit(self) -> list[Fit]:
        """Work it out of the file of labels."""
        return fits_of(Store(Path(self.status.file)))


def _counted(labels: Labels, queries: set[str]) -> dict[str, list[tuple[int, int]]]:
    """Query -> (1 where people call it relevant, 1 where the model does) of what both graded; of
    ``queries`` alone, since a dataset's judgements of others are mostly of what is relevant."""
    counted, queries = dict[str, list[tuple[int, int]]](), queries - labels.prompted
    for pair, grade in labels.people.items():
        if pair in labels.model and pair.query_id in queries:
            both = (int(grade >= RELEVANT), int(labels.model[pair] >= RELEVANT))
            counted.setdefault(pair.query_id, []).append(both)
    return counted


def _rate(groups: Sequence[Sequence[tuple[int, int]]], says: int) -> Rate:
    """Share of documents of which the model says so."""
    table = np.array([[sum(m == says for _, m in of), len(of)] for of in groups if of], dtype=float)
    if not len(table):
        return Rate(None, None, 0)
    hits, whole = table.sum(axis=0)
    if len(table) < 2:
        return Rate(hits / whole, None, int(whole))
    rng = np.random.default_rng(SEED)
    drawn = rng.multinomial(len(table), np.full(len(table), 1 / len(table)), RESAMPLES) @ table
    low, high = interval((drawn[:, 0] / drawn[:, 1])[:, None])[0]
    return Rate(float(hits / whole), (float(low), float(high)), int(whole))


def _strata(
    labels: Labels, counted: Mapping[str, Sequence[tuple[int, int]]]
) -> tuple[Stratum, ...]:
    origins = labels.strata or {query.id: query.origin for query in labels.pool.queries}
    names = sorted({origins.get(query, "") for query in counted})
    made = []
    for name in names if len(names) > 1 else ():
        of = {query: pairs for query, pairs in counted.items() if origins.get(query, "") == name}
        kappa = cohen_kappa(of, 2)
        fails = kappa.ci95 is not None and kappa.ci95[0] <= 0
        made.append(Stratum(name or "not told", len(of), kappa, fails))
    return tuple(made)
