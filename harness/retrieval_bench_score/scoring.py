"""A run made elsewhere, scored under a convention.

Here, and only here, a convention's rules on queries and lists are applied: which queries count,
what a query without relevant documents is worth, what a repeated document or a missing query means.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, DataError, counted, first_few
from retrieval_bench.core.types import EMPTY
from retrieval_bench.metrics import METRICS_VERSION, JudgedRun, Judgements, Metric, judge_lists
from retrieval_bench.metrics.tied import tie_effect
from retrieval_bench.metrics.ties import TiedHits, ties_of
from retrieval_bench.runs.evaluation import Evaluation, averaged
from retrieval_bench.stats.clusters import Clusters, number_of
from retrieval_bench.stats.recall import Recall, check_tail
from retrieval_bench_score.conventions import CONVENTIONS, Convention, Ties
from retrieval_bench_score.scored import finite_scores, judge_scores

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of queries.

    Attributes:
        evaluated: those in every mean.
        missing: those that count, or would, and that the run does not have: the convention says
            whether they are among the evaluated.
        unanswerable: those whose judged set is empty, or that say so.
        unjudged_queries: known ones without a judgement; not scored.
        unknown_queries: those of the run that neither judgements nor dataset know; not scored.
    """

    evaluated: int
    missing: int
    unanswerable: int
    unjudged_queries: int
    unknown_queries: int


@dataclass(frozen=True, slots=True)
class Scored(Documented):
    """One run under one convention.

    Attributes:
        convention: whose definitions.
        evaluation: values and means, over the queries that count.
        run: what they were computed on.
        tie_rule: the order of equal scores, in words.
        counts: how many queries count, and how many do not.
        warnings: what a reader of the figures should know, in plain words.
        clusters: of the queries; None where these are independent.
        tail: a recall of one query: how many reach it is told of each recall; None = not asked.
        metrics_version: raised by every change that moves a value.
    """

    KEYS = (
        "convention=convention.name tie_rule metrics_version interval=evaluation.interval "
        "metrics=evaluation.by_metric ties?=evaluation.ties counts clusters?=n_clusters "
        "tails? warnings"
    )

    metrics_version: ClassVar[int] = METRICS_VERSION
    convention: Convention
    evaluation: Evaluation
    run: JudgedRun = field(repr=False)
    tie_rule: str
    counts: Counts
    warnings: tuple[str, ...] = ()
    clusters: Clusters | None = None
    tail: float | None = None

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where queries are independent."""
        return number_of(self.clusters)

    @property
    def tails(self) -> Mapping[str, Recall] | None:
        """Recalls by name: their means, and the shares of queries that reach ``tail``; None where
        these were not asked for."""
        if self.tail is None:
            return None
        return {
            str(metric): Recall.of(values.tolist(), self.tail, self.clusters)
            for metric, values in zip(
                self.evaluation.metrics, self.evaluation.per_query.T, strict=True
            )
            if metric.name == "R"
        }

    def with_tail(self, tail: float) -> Scored:
        """Look for the tail of each recall, too.

        Raises:
            ConfigError: no recall of a query, or no metric is one.
        """
        check_tail(tail)
        with_tail = replace(self, tail=tail)
        if not with_tail.tails:
            raise ConfigError(
                f"--tail {tail:g} with {', '.join(map(str, self.evaluation.metrics))}",
                accepted="--tail with a recall",
                fix="add one, such as --metrics R@100",
            )
        return with_tail

    def by_query(self) -> dict[str, dict[str, float]]:
        """The values of every evaluated query, by metric."""
        names = [str(metric) for metric in self.evaluation.metrics]
        rows = zip(self.evaluation.query_ids, self.evaluation.per_query.tolist(), strict=True)
        return {query_id: dict(zip(names, row, strict=True)) for query_id, row in rows}


@dataclass(frozen=True, slots=True)
class Answers:
    """A run as it comes; lists or scores, not both.

    Attributes:
        lists: query id -> document ids, best first, already in the order that counts.
        scores: query id -> document id -> score, in no order; ordered as trec_eval does.
        tie_rule: how the lists were ordered, in words, where it is not as the convention has it.
        ordered_by: query id -> scores that the hits of its list were ordered by, where equal ones
            are ties; None where there are none, or none that counts.
    """

    lists: Mapping[str, Sequence[str]] | None = None
    scores: Mapping[str, Mapping[str, float]] | None = None
    tie_rule: str | None = None
    ordered_by: Mapping[str, Sequence[float] | NDArray[np.float64]] | None = None

    @property
    def query_ids(self) -> Collection[str]:
        """The queries that the run has."""
        return (self.lists if self.lists is not None else self.scores or {}).keys()

    def under(self, ties: Ties) -> Answers:
        """Read the answers as a convention with this rule for ties: where it takes lists as they
        are, scores become lists, equal ones in the order given.

        Raises:
            DataError: a score that is no finite number.
        """
        if self.scores is None or ties == "trec":
            return self
        finite_scores(list(self.scores), list(self.scores.values()))
        lists = {q: sorted(of, key=of.__getitem__, reverse=True) for q, of in self.scores.items()}
        return Answers(lists=lists, tie_rule=self.tie_rule)

    def read_by(self, convention: Convention) -> Answers:
        """Read the answers as ``convention`` does: its rule for ties, and for repeated documents of
        a list.

        Raises:
            DataError: a score that is no finite number.
        """
        answers = self.under(convention.ties)
        if convention.duplicates != "first" or answers.lists is None:
            return answers
        first = {query_id: _first_places(ids) for query_id, ids in answers.lists.items()}
        lists = {query_id: list(places) for query_id, places in first.items()}
        by = answers.ordered_by
        if by is not None:
            by = {q: np.asarray(of)[list(first[q].values())] for q, of in by.items()}
        return replace(answers, lists=lists, ordered_by=by)

    def ties(self, query_ids: Sequence[str], lengths: NDArray[np.int64]) -> TiedHits | None:
        """The ties of its lists of these queries, of ``lengths`` hits; equal are scores that the
        rule which ordered them cannot tell apart."""
        if self.ordered_by is None:
            return None
        parts = [self.ordered_by[q] for q in query_ids if q in self.ordered_by]
        scores = np.concatenate([np.zeros(0), *parts])
        if self.tie_rule is None:
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32)
        return ties_of(scores, lengths)


def score(
    answers: Answers,
    judgements: Judgements,
    convention: Convention,
    metrics: Sequence[Metric],
    *,
    known: Collection[str] = (),
    unanswerable: Collection[str] = (),
    n_documents: int = 0,
    clusters: Mapping[str, str] = EMPTY,
) -> Scored:
    """Score a run under ``convention``.

    Args:
        judgements: a query with an empty set of judgements is unanswerable.
        metrics: explicit ones, from :meth:`Convention.parse`.
        known: further queries that exist, though nothing judges them.
        unanswerable: queries that say that no document answers them.
        n_documents: of the corpus; 0 = not known.
        clusters: query -> label of its cluster.

    Raises:
        DataError: a document twice in one ranking, or a query without relevant documents, where the
            convention does not define what that means.
    """
    if not metrics:
        raise ConfigError("no metric", accepted="one or more", fix="name some, such as nDCG@10")
    answers = answers.read_by(convention)
    queries = _Queries(answers, judgements, convention, known, sorted(unanswerable))
    run, values = values_of(answers, judgements, convention, metrics, queries.counting)
    counts = queries.counts()
    warnings = _warnings(convention, counts, queries, run)
    tie_rule = answers.tie_rule or convention.tie_rule
    evaluation = averaged(queries.counting, metrics, values, clusters=clusters)
    of = Clusters.of_queries(clusters, queries.counting)
    effect = tie_effect(run, metrics, unknown=_cut_through(run, n_documents))
    evaluation = replace(evaluation, ties=effect)
    return Scored(convention, evaluation, run, tie_rule, counts, warnings, of)


def _cut_through(run: JudgedRun, n_documents: int) -> list[int]:
    """Queries whose list may have been cut through a tie: the longest ones that end in one."""
    longest = int(run.lengths.max(initial=0))
    if run.ties is None or longest in (0, n_documents):
        return []
    rows = np.flatnonzero(run.lengths == longest)
    first, last = run.ties.ranks(rows, run.lengths[rows])
    return [int(row) for row in rows[last > first]]


def values_of(
    answers: Answers,
    judgements: Judgements,
    convention: Convention,
    metrics: Sequence[Metric],
    query_ids: Sequence[str],
) -> tuple[JudgedRun, NDArray[np.float64]]:
    """The joined run of ``query_ids``, and values (queries, metrics) under ``convention``.

    Raises:
        DataError: as :func:`score`.
    """
    answers = answers.read_by(convention)
    _check_repetitions(answers, convention, query_ids)
    if answers.scores is not None:
        run = judge_scores(answers.scores, query_ids, judgements)
    else:
        run = judge_lists(answers.lists or {}, query_ids, judgements)
        run = replace(run, ties=answers.ties(query_ids, run.lengths))
    values = np.column_stack([metric.compute(run) for metric in metrics])
    return run, _without_relevant(values, run, convention, query_ids)


class _Queries:
    """Queries, and which of them count."""

    def __init__(
        self,
        answers: Answers,
        judgements: Judgements,
        convention: Convention,
        known: Collection[str],
        unanswerable: Collection[str],
    ) -> None:
        qrels, in_run = judgements.qrels, answers.query_ids
        self._empty = {q for q, grades in qrels.items() if not grades} | set(unanswerable)
        self._scored = dict.fromkeys([*qrels, *unanswerable])
        self._everyone = {*self._scored, *known}
        self.unknown = [q for q in in_run if q not in self._everyone]
        wanted = [
            q for q in self._scored if q not in self._empty or convention.unanswerable == "counted"
        ]
        self.missing = [q for q in wanted if q not in in_run]
        self.counting = wanted
        if convention.missing == "left out":
            self.counting = [q for q in wanted if q in in_run]
        self.unheard = sum(q in self._empty for q in self.missing)
        self.contradicting = sum(
            any(grade > 0 for grade in qrels.get(q, {}).values()) for q in unanswerable
        )

    def counts(self) -> Counts:
        return Counts(
            evaluated=len(self.counting),
            missing=len(self.missing),
            unanswerable=len(self._empty),
            unjudged_queries=len(self._everyone) - len(self._scored),
            unknown_queries=len(self.unknown),
        )


def counting_queries(
    answers: Answers,
    judgements: Judgements,
    convention: Convention,
    unanswerable: Collection[str] = (),
) -> list[str]:
    """The queries in every mean under ``convention``."""
    return _Queries(answers, judgements, convention, (), unanswerable).counting


def _check_repetitions(answers: Answers, convention: Convention, query_ids: Sequence[str]) -> None:
    if convention.duplicates != "error" or answers.lists is None:
        return
    lists = answers.lists
    faulty = [q for q in query_ids if len(set(lists.get(q, ()))) != len(lists.get(q, ()))]
    if not faulty:
        return
    faults = [f"query {q!r}: document {_first_repeated(lists[q])!r}" for q in faulty[:_NAMED]]
    if len(faulty) > _NAMED:
        faults.append(f"... and {counted(len(faulty) - _NAMED, 'query')} more")
    patient = ", ".join(c.name for c in CONVENTIONS.values() if c.duplicates == "counted again")
    raise DataError(
        f"a document stands more than once in the ranking of {counted(len(faulty), 'query')}",
        where="the run",
        accepted=f"each document once per query, under the convention {convention.name}",
        fix='keep the best hit of each (`--repeats first`; in Python repeats="first"), or choose '
        f"a convention that counts them again: {patient}",
        faults=faults,
    )


def _first_places(doc_ids: Sequence[str]) -> dict[str, int]:
    """Return where each document of a list stands first, in the order of the list."""
    places: dict[str, int] = {}
    for place, doc_id in enumerate(doc_ids):
        places.setdefault(doc_id, place)
    return places


def _first_repeated(doc_ids: Sequence[str]) -> str:
    places = _first_places(doc_ids)
    return next((doc_id for at, doc_id in enumerate(doc_ids) if places[doc_id] != at), "")


def _without_relevant(
    values: NDArray[np.float64], run: JudgedRun, convention: Convention, query_ids: Sequence[str]
) -> NDArray[np.float64]:
    """``values`` with those of queries without a relevant document as the convention has them."""
    without = run.n_relevant() == 0
    if convention.without_relevant == "zero" or not without.any():
        return values
    if convention.without_relevant == "one if nothing returned":
        nothing = (run.lengths == 0).astype(np.float64)
        return np.where(without[:, None], nothing[:, None], values)
    faulty = [query_ids[at] for at in np.flatnonzero(without).tolist()]
    raise DataError(
        f"{counted(len(faulty), 'query')} without a relevant document, such as {faulty[0]!r}",
        where="the judgements",
        accepted=f"a relevant document for each query: {convention.name} does not define the rest",
        fix="leave these queries out of the judgements, or choose another convention",
    )


def _warnings(
    convention: Convention, counts: Counts, queries: _Queries, run: JudgedRun
) -> tuple[str, ...]:
    warnings = []
    unknown = queries.unknown
    if queries.contradicting:
        both = counted(queries.contradicting, "query")
        warnings.append(
            f"{both} said to have no answer, but judged to have one: taken as without an answer"
        )
    if queries.unheard and convention.missing == "left out":
        unheard = counted(queries.unheard, "query")
        warnings.append(
            f"{unheard} without an answer not in the run: a text format cannot hold an empty list, "
            "JSON and submission lines can"
        )
    if counts.missing:
        effect = {
            "zero": "no hits, that is the value of an empty list",
            "left out": "in no mean, as "
            + (f"{convention.name} has it" if _by_rule(convention) else "asked for"),
        }[convention.missing]
        message = f"{counted(counts.missing, 'query')} to score not in the run: {effect}"
        warnings.append(f"{message} ({first_few(queries.missing)})")
    if run.judged.repeated.any():
        n = len(np.unique(run.judged.row[run.judged.repeated]))
        warnings.append(
            f"{counted(n, 'query')} with a judged document more than once, counted again: a value "
            "may be above 1"
        )
    if unknown:
        message = f"{counted(len(unknown), 'query')} of the run unknown, not scored"
        warnings.append(f"{message}: {first_few(unknown)}")
    has_judgements = run.count(run.ideal.row) > 0
    without = int(np.count_nonzero((run.n_relevant() == 0) & has_judgements))
    if without:
        warnings.append(f"{counted(without, 'query')} judged without a relevant document")
    if not counts.evaluated:
        warnings.append("no query counts: nothing of the run is judged")
    return tuple(warnings)


def _by_rule(convention: Convention) -> bool:
    """Return whether the convention itself says what a missing query counts."""
    return CONVENTIONS[convention.name].missing == convention.missing
