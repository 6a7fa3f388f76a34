"""A retriever's answers as a submission to the Korean scientific-knowledge QA competition.

Conversations become queries (:mod:`.answers.standalone`), each is searched once, and what is below
a threshold on the top score counts as "no search is needed". A threshold is chosen on dev queries
and its effect told on all others (:mod:`.metrics.thresholds`); every figure of it is of queries
that it was not chosen on, or says that it is not. Of two conventions ``scienceqa`` is the
competition's own, over all queries; ``trec`` is over those that a document answers. Where there are
no judgements, the submission is written all the same and nothing is scored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, counted, first_few
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Dataset, Ranking
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.measure.calls import OK
from retrieval_bench_answers.jsonl import write_lines
from retrieval_bench_answers.standalone import LAST, Rewriter, standalone_queries
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.outcomes import Outcomes, figures
from retrieval_bench_score.scorecard import Truth, top_score
from retrieval_bench_score.thresholds import AbstentionReport, abstention_report, threshold_curve

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

    def __init__(self, truth: Truth, rankings: Mapping[str, Ranking], k: int) -> None:
        self.truth = truth
        self.found = rankings
        self._names = {
            _COMPETITION: [_MAP],
            "trec": [f"{name}@{k}" for name in ("AP", "nDCG", "RR", "R")],
        }
        self._values = self._scored(rankings)
        ap = self._values.get((_COMPETITION, "AP(norm=hits)@3"), {})
        self.known = truth.outcomes({q: rankings[q] for q in ap}, list(ap.values()))

    def _scored(self, rankings: Mapping[str, Ranking]) -> dict[tuple[str, str], dict[str, float]]:
        """Convention and metric -> query -> value."""
        values: dict[tuple[str, str], dict[str, float]] = {}
        lists = {query_id: ranking.doc_ids for query_id, ranking in rankings.items()}
        qrels = self.truth.judgements.qrels
        if not qrels and not self.truth.unanswerable:
            return values
        for name, metrics in self._names.items():
            scored = self.truth.score(lists, convention(name), metrics).evaluation
            for metric, column in zip(scored.metrics, scored.per_query.T.tolist(), strict=True):
                values[name, str(metric)] = dict(zip(scored.query_ids, column, strict=True))
        return values

    def scores(
        self, submitted: Mapping[str, Ranking], report: AbstentionReport | None
    ) -> tuple[Score, ...]:
        """Return the scores on the held-out queries, where a threshold was looked for, and on
        all."""
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
                        float(np.mean([value[q] for q in chosen]))
                        for value in (values, after[name, metric])
                    )
                    rows.append(Score(group, name, metric, len(chosen), before, now))
        return tuple(rows)

    def trec_mean(self, known: Outcomes, threshold: float) -> float | None:
        """AP@k of the answerable ones among ``known`` when lists below ``threshold`` are empty."""
        values = self._values["trec", self._names["trec"][0]]
        emptied = (known.top_score < threshold).tolist()
        kept = [
            0.0 if gone else values[query_id]
            for query_id, gone in zip(known.query_ids, emptied, strict=True)
            if query_id in values
        ]
        return float(np.mean(kept)) if kept else None


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
    every = last and not chosen
    if every:  # just above the highest of the queries that it was chosen on: others may be higher
        value = float("inf")
    after = figures(rest.under(value))
    abstention = after.abstention
    return Choice(
        None if every else value,
        chosen,
        None if dev is None else figures(dev.under(value)).scienceqa_map,
        abstention.true_empty + abstention.false_empty,
        abstention.false_empty,
        abstention.false_return,
        after.scienceqa_map or 0.0,
        judged.trec_mean(rest, value),
    )


AUTO = "auto"
NONE = "none"
GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Decision:
    """Rule for when nothing is returned.

    Attributes:
        kind: "auto" = chosen on dev queries, "given", or "none".
        threshold: lists whose top score is below it are emptied; None empties none.
        reason: why there is none, where one was looked for.
    """

    kind: str
    threshold: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of queries, each in one of the last five.

    Attributes:
        lines: of the file.
        returned: with documents.
        no_search: empty because a function said that no search is needed.
        below_threshold: empty because the top score is below the threshold.
        nothing_found: empty because the retriever found nothing.
        failed: empty because the retriever failed.
    """

    lines: int
    returned: int
    no_search: int
    below_threshold: int
    nothing_found: int
    failed: int


@dataclass(frozen=True, slots=True)
class Submission(Documented):
    """Submission, and its scores where there are judgements.

    Attributes:
        retriever, dataset, k: what was run, on what, and how many hits were asked for.
        counts: how many lines, and how many of these are empty, by reason.
        decision: on the threshold.
        warnings: what makes the figures less than they seem.
        records: the lines of the file, in the order of the queries.
        report: None without judgements, or where every query has an answer.
        choices: the decision table; empty where there is none.
        reported: which queries the decision table reports on.
        scores: empty without judgements.
        out: the file that the lines were written to; None where they were not.
    """

    KEYS = (
        "retriever dataset k counts decision reported choices scores abstention=report warnings out"
    )

    retriever: str
    dataset: str
    k: int
    records: tuple[Mapping[str, Any], ...]
    counts: Counts
    decision: Decision
    report: AbstentionReport | None
    choices: tuple[Choice, ...]
    reported: str
    scores: tuple[Score, ...]
    warnings: tuple[str, ...]
    out: str | None = None

    def write(self, path: Path) -> None:
        """Write the file.

        Raises:
            RecordError: it is there already, or cannot be written.
        """
        write_lines(path, self.records)


def read_threshold(text: str | None) -> str | float | None:
    """``auto``, ``none`` or a number; None stays None, which is ``auto`` where that is possible.

    Raises:
        ConfigError: something else.
    """
    if text is None or text in (AUTO, NONE):
        return text
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise ConfigError(
            f"threshold {text!r}",
            where="--threshold",
            accepted="auto, none, or a score such as 4.5",
            fix="correct it",
        )
    return value


def submit(
    experiment: Experiment,
    *,
    messages: str | Rewriter = LAST,
    threshold: str | float | None = None,
    dev_ids: Collection[str] | None = None,
    reporter: Reporter | None = None,
) -> Submission:
    """Search every query of the dataset once and make the submission.

    Args:
        experiment: one retriever, a dataset and the number of hits; see
            :func:`retrieval_bench.experiment.preparation.prepare`, with ``every_query``.
        messages: ``last``, ``joined``, or a function; see :mod:`.answers.standalone`.
        threshold: a top score below which nothing is returned; ``auto`` chooses one on dev queries;
            ``none`` returns whatever is found. None is ``auto`` where the dataset has what that
            takes, else ``none``.
        dev_ids: the queries to choose on; None draws half of each kind, seeded.

    Raises:
        ConfigError: ``auto`` where no threshold can be chosen, dev queries without ``auto``.
    """
    truth = Truth.of(experiment.dataset)
    _check(truth, threshold, dev_ids)
    made = standalone_queries(experiment.dataset.queries, messages)
    protocol = replace(experiment.protocol, rounds=1, max_calls=len(made.queries))
    returned = replace(experiment, queries=made.queries, protocol=protocol).search(reporter)
    rankings = {
        query.id: ranking or Ranking(())
        for query, ranking in zip(made.queries, returned.rankings, strict=True)
    }
    failed = {q.id for q, s in zip(made.queries, returned.status, strict=True) if s != OK}
    rankings |= {query_id: Ranking(()) for query_id in made.silent}
    judged = JudgedRankings(truth, rankings, experiment.k)
    decision, report = _decide(judged, threshold, dev_ids)
    submitted = {q: _under(ranking, decision.threshold) for q, ranking in rankings.items()}
    below = {q for q in rankings if len(rankings[q]) and not len(submitted[q])}
    given = decision.threshold if decision.kind == GIVEN else None
    choices, reported = decision_table(judged, given, report)
    texts = {query.id: query.text for query in made.queries}
    return Submission(
        returned.name,
        f"{experiment.dataset.name} ({experiment.dataset.split})",
        experiment.k,
        _records(experiment.dataset, texts, submitted),
        Counts(
            lines=len(rankings),
            returned=sum(len(ranking) > 0 for ranking in submitted.values()),
            no_search=len(made.silent),
            below_threshold=len(below),
            nothing_found=sum(not len(rankings[q]) for q in texts) - len(failed),
            failed=len(failed),
        ),
        decision,
        report,
        choices,
        reported,
        judged.scores(submitted, report),
        (*made.warnings, *returned.warnings, *_unjudged(judged, rankings), *_told(failed)),
    )


def _check(truth: Truth, threshold: str | float | None, dev_ids: Collection[str] | None) -> None:
    if dev_ids is not None and threshold not in (None, AUTO):
        raise ConfigError(
            f"queries to choose a threshold on, with --threshold {threshold}",
            where="--dev",
            accepted="--dev with --threshold auto",
            fix="leave one of them out",
        )
    lacking = _lacking(truth)
    if lacking and (threshold == AUTO or dev_ids is not None):
        raise ConfigError(
            f"a threshold to be chosen where {lacking}",
            where="--threshold auto" if dev_ids is None else "--dev",
            accepted="judgements, some of which are empty lists",
            fix="choose it on a dataset that has them, and give its value: --threshold 4.5",
        )


def _lacking(truth: Truth) -> str | None:
    if not any(truth.judgements.qrels.values()):
        return "no query has a judged document"
    return None if truth.no_answer else "no query is marked as unanswerable"


def _under(ranking: Ranking, threshold: float | None) -> Ranking:
    return Ranking(()) if threshold is not None and top_score(ranking) < threshold else ranking


def _decide(
    judged: JudgedRankings, threshold: str | float | None, dev_ids: Collection[str] | None
) -> tuple[Decision, AbstentionReport | None]:
    looked_for = threshold in (None, AUTO)
    reason = _lacking(judged.truth)
    if isinstance(threshold, float | int):
        _check_scores(judged.found)
        return Decision(GIVEN, float(threshold)), None
    if not looked_for or reason:
        return Decision(NONE, None, reason if looked_for else None), None
    report = abstention_report(judged.known, dev_ids=dev_ids)
    if report.threshold is None:
        if threshold == AUTO or dev_ids is not None:
            raise ConfigError(
                f"no threshold can be chosen: {report.reason}",
                where="--threshold auto",
                accepted="a retriever with scores, and queries of both kinds",
                fix="give a threshold, or --threshold none",
            )
        return Decision(NONE, None, report.reason), report
    value = report.threshold.threshold
    reason = "none is better than returning everything" if value is None else None
    return Decision(AUTO, value, reason), report


def _check_scores(rankings: Mapping[str, Ranking]) -> None:
    without = sum(len(ranking) > 0 and ranking.scores is None for ranking in rankings.values())
    if without:
        raise ConfigError(
            f"a threshold for {counted(without, 'ranking')} without scores",
            where="--threshold",
            accepted="a retriever that gives scores",
            fix="give --threshold none",
        )


def _records(
    data: Dataset, texts: Mapping[str, str], submitted: Mapping[str, Ranking]
) -> tuple[Mapping[str, Any], ...]:
    wanted = {doc_id for ranking in submitted.values() for doc_id in ranking.doc_ids}
    contents = {doc.id: doc.contents for doc in data.documents or () if doc.id in wanted}
    ids = [query.id for query in data.queries]
    as_numbers = all(_is_number(query_id) for query_id in ids)
    return tuple(
        {
            "eval_id": int(query_id) if as_numbers else query_id,
            "standalone_query": texts.get(query_id, ""),
            "topk": list(submitted[query_id].doc_ids),
            "answer": "",
            "references": [
                {
                    "score": None if submitted[query_id].scores is None else hit.score,
                    "content": contents.get(hit.doc_id),
                }
                for hit in submitted[query_id]
            ],
        }
        for query_id in ids
    )


def _is_number(query_id: str) -> bool:
    return query_id.isascii() and query_id.isdigit() and str(int(query_id)) == query_id


def _unjudged(judged: JudgedRankings, rankings: Mapping[str, Ranking]) -> list[str]:
    n = len(rankings) - len(judged.known)
    if not n or not len(judged.known):
        return []
    return [f"{counted(n, 'query')} without judgements: submitted, not scored"]


def _told(failed: Collection[str]) -> list[str]:
    if not failed:
        return []
    what = "submitted as empty lists because the search failed"
    return [f"{what}: {len(failed):,} ({first_few(sorted(failed))})"]
