"""What judgements say of a submission: its decision table, and its scores under two conventions.

``scienceqa`` is the competition's own, over all queries; ``trec`` is over those that a document
answers. Every figure of a threshold that was chosen is of queries that it was not chosen on, or
says that it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.types import Ranking
from retrieval_bench.metrics.abstention import Outcomes, figures, outcomes
from retrieval_bench.metrics.conventions import convention
from retrieval_bench.metrics.thresholds import AbstentionReport, threshold_curve
from retrieval_bench.scoring.scorecard import Truth
from retrieval_bench.scoring.scoring import Answers, score

CHOICES = 10
"""Thresholds in the decision table, about."""

HELD_OUT = "held-out queries"
ALL = "judged queries"

_COMPETITION = "scienceqa"
_MAP = "AP@3"


@dataclass(frozen=True, slots=True)
class Choice:
    """One row of the decision table.

    Attributes:
        threshold: None where every list is emptied.
        chosen: whether the submission has it.
        dev_map: MAP (scienceqa) on the dev queries; None where no threshold was looked for.
        empty, false_empty, false_return: lists of the reported queries that are empty; of these,
            those that should not be; those that should be empty and are not.
        map: MAP (scienceqa) of the reported queries.
        trec: AP@k of the answerable ones of them under the convention ``trec``.
    """

    threshold: float | None
    chosen: bool
    dev_map: float | None
    empty: int
    false_empty: int
    false_return: int
    map: float
    trec: float | None


@dataclass(frozen=True, slots=True)
class Score:
    """The mean of one metric over some queries, of the lists as found and as submitted."""

    queries: str
    convention: str
    metric: str
    n: int
    as_found: float
    submitted: float


class JudgedRankings:
    """Rankings and what judges them; ``known`` holds the judged queries, in the order of ids."""

    def __init__(self, truth: Truth, found: Mapping[str, Ranking], k: int) -> None:
        self.truth = truth
        self.found = found
        self._names = {
            _COMPETITION: [_MAP],
            "trec": [f"{name}@{k}" for name in ("AP", "nDCG", "RR", "R")],
        }
        self.trec = self._names["trec"][0]
        self._values = self._scored(found)
        self.known = self._outcomes()

    def _outcomes(self) -> Outcomes:
        ap = self._values.get((_COMPETITION, "AP(norm=hits)@3"), {})
        ids = list(ap)
        rankings = [self.found[query_id] for query_id in ids]
        no_answer = self.truth.no_answer
        return outcomes(
            ids,
            [query_id not in no_answer for query_id in ids],
            [len(ranking) for ranking in rankings],
            [top_score(ranking) for ranking in rankings],
            list(ap.values()),
        )

    def _scored(self, rankings: Mapping[str, Ranking]) -> dict[tuple[str, str], dict[str, float]]:
        """Convention and metric -> query -> value."""
        values: dict[tuple[str, str], dict[str, float]] = {}
        lists = {query_id: ranking.doc_ids for query_id, ranking in rankings.items()}
        qrels = self.truth.judgements.qrels
        if not qrels and not self.truth.unanswerable:
            return values
        for name, metrics in self._names.items():
            rules = convention(name)
            parsed = rules.parse(metrics)
            scored = score(
                Answers(lists=lists),
                self.truth.judgements,
                rules,
                parsed,
                known=self.truth.known,
                unanswerable=self.truth.unanswerable,
            ).evaluation
            for metric, column in zip(parsed, scored.per_query.T.tolist(), strict=True):
                values[name, str(metric)] = dict(zip(scored.query_ids, column, strict=True))
        return values

    def scores(
        self, submitted: Mapping[str, Ranking], report: AbstentionReport | None
    ) -> tuple[Score, ...]:
        """On the held-out queries, where a threshold was looked for, and on all."""
        after = self._scored(submitted)
        groups = {ALL: set(self.known.query_ids)}
        if report is not None and report.threshold is not None:
            groups = {HELD_OUT: groups[ALL] - set(report.threshold.dev_ids), **groups}
        rows = []
        for group, ids in groups.items():
            for (name, metric), values in self._values.items():
                chosen = [query_id for query_id in values if query_id in ids]
                if chosen:
                    before, now = (
                        float(np.mean([one[q] for q in chosen]))
                        for one in (values, after[name, metric])
                    )
                    rows.append(Score(group, name, metric, len(chosen), before, now))
        return tuple(rows)

    def trec_mean(self, known: Outcomes, threshold: float | None) -> float | None:
        """AP@k of the answerable ones among ``known`` when lists below ``threshold`` are empty."""
        values = self._values["trec", self.trec]
        kept: list[float] = []
        emptied: NDArray[np.bool_] = np.zeros(len(known), dtype=bool)
        if threshold is not None:
            emptied = known.top_score < threshold
        for query_id, gone in zip(known.query_ids, emptied.tolist(), strict=True):
            if query_id in values:
                kept.append(0.0 if gone else values[query_id])
        return float(np.mean(kept)) if kept else None


def top_score(ranking: Ranking) -> float:
    """The score of the first hit; NaN where there is none."""
    if ranking.scores is None or not len(ranking):
        return float("nan")
    return float(ranking.scores[0])


def decision_table(
    judged: JudgedRankings, given: float | None, report: AbstentionReport | None
) -> tuple[tuple[Choice, ...], str]:
    """Rows, and which queries they report on.

    Args:
        given: a threshold that nothing was chosen for.
        report: with a threshold that was looked for on dev queries; the rows are then of the
            others.
    """
    known = judged.known
    if report is not None and report.threshold is not None:
        dev_ids = frozenset(report.threshold.dev_ids)
        in_dev = np.fromiter((q in dev_ids for q in known.query_ids), dtype=bool, count=len(known))
        dev, rest = known.only(in_dev), known.only(~in_dev)
        curve, chosen = report.threshold.curve, report.threshold.chosen
        points = curve.thinned(CHOICES, chosen).tolist()
        rows = [(float(curve.threshold[i]), i == chosen, i == len(curve) - 1) for i in points]
        return tuple(_choice(judged, (dev, rest), *row) for row in rows), HELD_OUT
    if given is None or not len(known):
        return (), ALL
    curve = threshold_curve(known)
    rows = [(given, True, False)]
    for i in curve.thinned(CHOICES, 0).tolist() if len(curve) else ():
        value, last = float(curve.threshold[i]), i == len(curve) - 1
        if value != given:
            rows.append((value, False, last))
    return tuple(_choice(judged, (None, known), *row) for row in sorted(rows)), ALL


def _choice(
    judged: JudgedRankings,
    parts: tuple[Outcomes | None, Outcomes],
    value: float,
    chosen: bool,
    last: bool,
) -> Choice:
    dev, rest = parts
    if last:  # just above the highest of the queries that it was chosen on: others may be higher
        value = float("inf")
    after = figures(rest.under(value))
    found = after.abstention
    return Choice(
        None if last else value,
        chosen,
        None if dev is None else figures(dev.under(value)).scienceqa_map,
        found.true_empty + found.false_empty,
        found.false_empty,
        found.false_return,
        after.scienceqa_map or 0.0,
        judged.trec_mean(rest, value),
    )
