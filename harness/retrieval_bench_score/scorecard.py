"""Runs made elsewhere, and what they are judged by, brought together: the work of ``evaluate``.

A run comes from a file, a run folder or dictionaries, the truth from a file of judgements or from a
dataset. The score card holds the means under one convention and, where there are queries that no
document answers, how the run deals with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.core.notices import Code, Notice, says
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import DROP, EMPTY, KEEP, Dataset, Documents, Qrels, Ranking
from retrieval_bench.data import given_dataset, id_spaces, load_dataset
from retrieval_bench.data.needs_judgements import judged_by, require_judged
from retrieval_bench.data.qrels import read_qrels
from retrieval_bench.data.self_queries import (
    check_rule,
    left_out,
    own_id_warnings,
    self_hit_warnings,
)
from retrieval_bench.experiment.filtered import filtered, leaks
from retrieval_bench.experiment.warnings import empty_lists, origins
from retrieval_bench.metrics import JudgedRun, Judgements, judge_lists, parse_metric
from retrieval_bench.metrics.measures import DEFAULT_CONVENTION
from retrieval_bench.metrics.tied import FROM_ELSEWHERE, FROM_RETRIEVER
from retrieval_bench.runs.dataset import clusters_in
from retrieval_bench.runs.evaluation import averaged
from retrieval_bench_score.conventions import TIES, Convention, convention
from retrieval_bench_score.joining import (
    RunGiven,
    ids_apart,
    qrels_of,
    run_of,
    without_selves,
    without_selves_in,
)
from retrieval_bench_score.outcomes import Outcomes, outcomes
from retrieval_bench_score.runs.as_units import in_units
from retrieval_bench_score.runs.imported import RUN_FOLDER, RunFile
from retrieval_bench_score.scoring import Answers, Scored, score, values_of
from retrieval_bench_score.thresholds import AbstentionReport, abstention_report

ABSTENTION = "AP@3"
"""What a threshold is weighed by, read as the convention of the competition does."""

_COMPETITION = "scienceqa"


@dataclass(frozen=True, slots=True)
class Truth:
    """Judgements that a run is scored by.

    Attributes:
        name: of the file or dataset, for people.
        known: queries that exist, judged or not; empty where only judgements are known.
        unanswerable: those that say that no document answers them; in addition to those whose set
            of judgements is empty.
        documents: the corpus, where there is one.
        unit_of: document id -> the unit that judgements are on; empty where they are on documents.
        self_hits: whether hits with the id of their query count, or are left out.
        dataset: all that is known besides; None where only judgements are.
    """

    name: str
    judgements: Judgements
    known: Collection[str] = ()
    unanswerable: Collection[str] = ()
    documents: Documents | None = None
    unit_of: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    self_hits: str = KEEP
    dataset: Dataset | None = None

    @classmethod
    def of(
        cls,
        source: str | Path | Qrels | Dataset,
        split: str = "test",
        *,
        self_hits: str | None = None,
    ) -> Truth:
        """Judgements from a file (TREC, BEIR, JSON) or a dictionary; from a dataset or its folder
        also its queries, with ``split`` the judgements of a folder.

        Args:
            self_hits: as of :func:`.load_dataset`.
        """
        if isinstance(source, Dataset) or is_folder(source):
            source = given_dataset(source, split, self_hits=self_hits)
        else:
            check_rule(self_hits)
            rule = self_hits or KEEP
            if isinstance(source, str | Path):
                return cls(str(source), Judgements(read_qrels(source)), self_hits=rule)
            return cls("judgements", Judgements(qrels_of(source)), self_hits=rule)
        judges = judged_by(source.judges)
        return cls(
            f"{source.name} ({', '.join([source.split, *[judges] * bool(judges)])})",
            Judgements(source.qrels),
            tuple(query.id for query in source.queries),
            tuple(query.id for query in source.unanswerable),
            source.documents,
            source.unit_of,
            source.self_hits,
            source,
        )

    @classmethod
    def needed(
        cls,
        source: str | Path | Qrels | Dataset,
        split: str = "test",
        *,
        self_hits: str | None = None,
    ) -> Truth:
        """Load the truth as :meth:`of`, and check that it judges something.

        Raises:
            DataError: a dataset where nothing is judged.
        """
        if isinstance(source, str | Path) and is_folder(source):
            source = load_dataset(source, split)
        if isinstance(source, Dataset):
            require_judged(source, "a score")
        return cls.of(source, split, self_hits=self_hits)

    def score(
        self, lists: Mapping[str, Sequence[str]], rules: Convention, metrics: Sequence[str]
    ) -> Scored:
        """Score lists of documents, best first, under a convention.

        Raises:
            ConfigError, DataError: as :func:`score_file`.
        """
        known, unanswerable = self.known, self.unanswerable
        answers, asked = Answers(lists=lists), rules.parse(metrics)
        return score(answers, self.judgements, rules, asked, known=known, unanswerable=unanswerable)

    def outcomes(self, rankings: Mapping[str, Ranking], ap: ArrayLike) -> Outcomes:
        """What each ranking is where a query may have no answer; ``ap`` as of :func:`.outcomes`."""
        no_answer, of = self.no_answer, rankings.values()
        lengths, top = [len(ranking) for ranking in of], [top_score(ranking) for ranking in of]
        return outcomes(list(rankings), [q not in no_answer for q in rankings], lengths, top, ap)

    @property
    def ids(self) -> Collection[str]:
        """Ids of all that a run could return: units, documents, or what is judged of them."""
        return id_spaces.known_ids(self.documents, self.unit_of, self.judgements.qrels)

    @property
    def origins(self) -> list[str]:
        """Notes on where the judgements come from."""
        return [] if self.dataset is None else origins(self.dataset)

    def matches(self, query_ids: Collection[str]) -> int:
        """Return how many of ``query_ids`` are judged, or known to have no answer."""
        known = {*self.judgements.qrels, *self.unanswerable}
        return sum(query_id in known for query_id in query_ids)

    @property
    def no_answer(self) -> frozenset[str]:
        """All queries that no document answers."""
        empty = (q for q, grades in self.judgements.qrels.items() if not grades)
        return frozenset(empty) | frozenset(self.unanswerable)


def is_folder(source: object) -> TypeGuard[str | Path]:
    """Return whether judgements are named by a folder, which is a dataset."""
    return isinstance(source, str | Path) and user_path(source).is_dir()


@dataclass(frozen=True, slots=True)
class ScoreCard(Documented):
    """One run, scored.

    Attributes:
        run: its name.
        truth: what it was scored against, in words.
        scored: means, counts and warnings.
        matched: queries of the run that are judged, or known to have no answer; without any, the
            figures say nothing of the run.
        abstention: None where every query has an answer.
    """

    KEYS = "run judgements=truth *scored abstention?"

    run: str
    truth: str
    scored: Scored
    matched: int
    abstention: AbstentionReport | None

    @property
    def why_nothing(self) -> str:
        """The reason why nothing could be judged; empty where something was."""
        if not self.matched:
            return "the judgements know no query of the run"
        if says(self.scored.warnings, Code.UNKNOWN_IDS):
            return "no id that the run returns is in the corpus"
        judged = self.scored.counts.evaluated or self.abstention is not None
        return "" if judged else "no query counts"

    def with_queries(self) -> ScoreDetails:
        """The same with the values of every query."""
        return ScoreDetails(self, self.scored.by_query())


@dataclass(frozen=True, slots=True)
class ScoreDetails(Documented):
    """Document of ``score run --format json``.

    Attributes:
        card: one run, scored.
        per_query: the values of every evaluated query, by metric; None where they were not asked
            for.
    """

    KEYS = "run=card.run judgements=card.truth *card.scored per_query? abstention?=card.abstention"

    card: ScoreCard
    per_query: Mapping[str, Mapping[str, float]] | None = None


def score_file(
    run: RunFile,
    truth: Truth,
    metrics: Sequence[str] = (),
    rules: Convention | None = None,
    *,
    dev_ids: Collection[str] | None = None,
) -> ScoreCard:
    """Score a run that was read from a file or folder.

    Args:
        metrics: names as anybody writes them; empty = what the convention shows.
        rules: None = trec.
        dev_ids: the queries to choose an abstention threshold on; None draws half of them, seeded.

    Raises:
        ConfigError: a metric that the convention does not define.
        DataError: repeated documents or queries without relevant ones, where it forbids them.
    """
    rules = convention(DEFAULT_CONVENTION) if rules is None else rules
    run, own = left_of(in_units(run, truth.unit_of), truth)
    ordered = run.ordered(rules.ties)
    tie_rule = None
    if run.format == RUN_FOLDER:
        tie_rule = "as saved"
    elif all(ranking.scores is None for ranking in ordered.values()):
        tie_rule = "order of the list"
    lists = {query_id: ranking.doc_ids for query_id, ranking in ordered.items()}
    ordered_by = None
    if rules.ties == "trec" or run.format == RUN_FOLDER:
        unscored = {q: np.full(len(of), np.nan) for q, of in ordered.items() if of.scores is None}
        scored_by = {q: of.scores for q, of in ordered.items() if of.scores is not None}
        ordered_by = {**unscored, **scored_by} if scored_by else None
    answers = Answers(lists=lists, tie_rule=tie_rule, ordered_by=ordered_by)
    depth = max(map(len, lists.values()), default=1)
    scored = _scored(answers, truth, metrics, rules, depth)
    apart = id_warnings(lists, truth, scored.run)
    told = [*truth.origins, *own, *data_warnings(truth, lists)]
    told += _tie_warnings(scored, FROM_RETRIEVER if run.format == RUN_FOLDER else FROM_ELSEWHERE)
    scored = replace(scored, warnings=(*apart, *told, *run.warnings, *scored.warnings))
    abstention = _abstention(
        lambda: run.ordered(convention(_COMPETITION).ties),
        *(truth, rules, dev_ids),
        complete=run.format == RUN_FOLDER,
    )
    return _card(str(run.path), truth.name, scored, truth.matches(lists), abstention)


def score_mapping(
    run: Mapping[str, Mapping[str, float]] | Mapping[str, Sequence[str]],
    truth: Truth,
    metrics: Sequence[str] = (),
    rules: Convention | None = None,
    *,
    dev_ids: Collection[str] | None = None,
) -> ScoreCard:
    """Score a run given as dictionaries: query id -> document id -> score, or query id -> document
    ids, best first.

    Raises:
        ConfigError, DataError: as :func:`score_file`; also a score that is not finite, and a run
            that has both forms.
    """
    rules = convention(DEFAULT_CONVENTION) if rules is None else rules
    given, told = run_of(run, truth.unit_of), list[str]()
    if truth.self_hits == DROP:
        given, own = without_selves_in(given)
        told = left_out(own, truth.judgements.qrels)
    answers = _answers(given)
    depth = max(map(len, given.values()), default=1)
    scored = _scored(answers, truth, metrics, rules, depth)
    lists = answers.under("list").lists or {}
    apart = id_warnings(lists, truth, scored.run)
    told += [*truth.origins, *data_warnings(truth, lists)]
    told += _tie_warnings(scored, FROM_ELSEWHERE)
    scored = replace(scored, warnings=(*apart, *told, *scored.warnings))
    abstention = _abstention(
        lambda: {q: Ranking(of, _scores_along(of, given[q])) for q, of in lists.items()},
        *(truth, rules, dev_ids),
    )
    return _card("run", truth.name, scored, truth.matches(given), abstention)


def _card(
    run: str, truth: str, scored: Scored, matched: int, abstention: AbstentionReport | None
) -> ScoreCard:
    """A run, scored; without figures where its ids are others: each would be a confident 0."""
    card = ScoreCard(run, truth, scored, matched, abstention)
    foreign = says(scored.warnings, Code.UNKNOWN_IDS)
    if not foreign and (matched or not scored.counts.unknown_queries):
        return card
    of = scored.evaluation
    nothing = averaged((), of.metrics, of.per_query[:0])
    return replace(card, scored=replace(scored, evaluation=nothing))


def left_of(run: RunFile, truth: Truth) -> tuple[RunFile, list[str]]:
    """``run`` as ``truth`` counts hits on the query itself, and what it says of that."""
    if truth.self_hits != DROP:
        return run, []
    run, own = without_selves(run)
    return run, left_out(own, truth.judgements.qrels)


def data_warnings(truth: Truth, lists: Mapping[str, Sequence[str]]) -> list[str]:
    """List the warnings of a measured run with these lists: empty lists, queries that find
    themselves, and hits outside of filters.

    Args:
        lists: query id -> document ids, best first.
    """
    data, qrels = truth.dataset, truth.judgements.qrels
    counting = [q for q in qrels if q not in truth.no_answer]
    answered = (q for q in counting if any(grade > 0 for grade in qrels[q].values()))
    told = empty_lists([lists[q] for q in answered if q in lists])
    if data is None:
        kept = truth.self_hits != DROP
        return [*told, *own_id_warnings(qrels, lists, counting)] if kept else told
    if truth.self_hits != DROP:
        told += self_hit_warnings(data.selves, lists, counting)
    if data.filtering is not None:
        rankings = [Ranking(lists[q.id]) if q.id in lists else None for q in data.queries]
        told += leaks(filtered(data, data.queries, rankings, Capabilities(filters=True)))
    return told


def id_warnings(
    lists: Mapping[str, Sequence[str]], truth: Truth, run: JudgedRun | None = None
) -> list[str]:
    """Warn where the ids of a run, or its queries, are others than those of ``truth``.

    Args:
        lists: query id -> document ids, best first.
        run: the same, joined with the judgements, where that is at hand.
    """
    asked, known = {*truth.judgements.qrels, *truth.unanswerable}, set(truth.known)
    if not truth.matches(lists):
        other = id_spaces.apart(lists, asked | known)
        text = "" if other is None else other.sentence(id_spaces.QUERIES, "known")
        return [Notice(text, Code.FOREIGN_IDS)] * bool(text)
    told = list[str]()
    unknown = [q for q in lists if q not in asked and q not in known]
    if pairs := id_spaces.misspelt(unknown, [q for q in asked if q not in lists]):
        effect = "these queries have no hits"
        told += [id_spaces.misspelt_notice(pairs, id_spaces.QUERIES, "the judged ones", effect)]
    run = run or judge_lists(lists, list(truth.judgements.qrels), truth.judgements)
    other = ids_apart(lists, run, lambda: truth.ids)
    if other is not None:
        return [*told, other.notice(corpus=truth.documents is not None)]
    judged = id_spaces.known_ids(None, EMPTY, truth.judgements.qrels)
    corpus = None if truth.documents is None else truth.ids
    remedy = "Score it against the dataset that it was made on."
    return [*told, *id_spaces.unmet(lists.values(), judged, corpus, remedy)]


def _tie_warnings(scored: Scored, instead: str) -> list[str]:
    effect = scored.evaluation.ties
    return [] if effect is None else [effect.notice(instead)]


def _answers(run: RunGiven) -> Answers:
    if any(isinstance(of, Mapping) for of in run.values()):
        return Answers(scores=cast("Mapping[str, Mapping[str, float]]", run))
    return Answers(lists=cast("Mapping[str, Sequence[str]]", run), tie_rule=TIES["list"])


def _scores_along(
    doc_ids: Sequence[str], given: Mapping[str, float] | Sequence[str]
) -> list[float] | None:
    return [given[doc_id] for doc_id in doc_ids] if isinstance(given, Mapping) else None


def _scored(
    answers: Answers, truth: Truth, metrics: Sequence[str], rules: Convention, depth: int
) -> Scored:
    data = truth.dataset
    return score(
        answers,
        truth.judgements,
        rules,
        rules.parse(metrics) if metrics else rules.default_metrics(max(1, depth)),
        known=truth.known,
        unanswerable=truth.unanswerable,
        n_documents=0 if truth.documents is None or truth.unit_of else len(truth.documents),
        clusters=EMPTY if data is None else clusters_in(data, data.evaluated),
    )


def _abstention(
    in_order: Callable[[], Mapping[str, Ranking]],
    truth: Truth,
    rules: Convention,
    dev_ids: Collection[str] | None,
    *,
    complete: bool = False,
) -> AbstentionReport | None:
    """None where every query has an answer.

    Queries that the run does not have count as empty lists, unless the convention leaves them out:
    text formats cannot hold an empty list.

    Args:
        in_order: gives the rankings as the convention of the competition orders them; asked only
            where there are such queries.
        complete: the run has every query that was answered, if with nothing: one that it does not
            have failed, and says nothing of abstention.
    """
    if not truth.no_answer:
        if dev_ids is None:
            return None
        raise ConfigError(
            "queries to choose an abstention threshold on",
            where="--dev",
            accepted="with judgements or a dataset that have queries which no document answers",
            fix="leave --dev out: here every query has an answer",
        )
    ordered = in_order()
    queries = list(dict.fromkeys([*truth.judgements.qrels, *truth.unanswerable]))
    if complete or rules.missing == "left out":
        queries = [query_id for query_id in queries if query_id in ordered]
    competition = convention(_COMPETITION)
    _, values = values_of(
        Answers(lists={q: ranking.doc_ids for q, ranking in ordered.items()}),
        truth.judgements,
        competition,
        [competition.read(parse_metric(ABSTENTION))],
        queries,
    )
    rankings = {query_id: ordered.get(query_id, Ranking(())) for query_id in queries}
    return abstention_report(truth.outcomes(rankings, values[:, 0]), dev_ids=dev_ids)


def top_score(ranking: Ranking) -> float:
    """The score of the first hit; NaN where there is none."""
    if ranking.scores is None or not len(ranking):
        return float("nan")
    return float(np.asarray(ranking.scores)[0])
