"""One run as arrays: rankings, raw times, values per query, and the facts around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core import secrets
from retrieval_bench.core.config import flat
from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.core.types import LegTrace, Ranking, StepTrace
from retrieval_bench.measure.calls import NOT_RUN, OK, Timings
from retrieval_bench.metrics import parse_metrics
from retrieval_bench.metrics.judged import NONE
from retrieval_bench.runs.evaluation import Evaluation
from retrieval_bench.runs.stages import StageReport, stage_report
from retrieval_bench.runs.summary import Summary

UNKNOWN = -2
"""In the row of a query whose ranking without a part is not known."""


def equally_wide(*lists: NDArray[Any]) -> list[NDArray[Any]]:
    """Positions (queries, width) of hits, each padded to the width of the widest."""
    width = max(rows.shape[1] for rows in lists)
    return [
        np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=NONE) for rows in lists
    ]


@dataclass(frozen=True, slots=True)
class Rankings:
    """Rankings of all queries as arrays.

    Attributes:
        query_ids: one for each row.
        doc_ids: what positions in ``ranking`` and ``leg_lists`` stand for, distinct. Every id
            occurs in one of them; those of the rankings come first.
        ranking: int32 (queries, width), -1 behind the last hit; the width is the length of the
            longest ranking, at least 1.
        scores: float64 (queries, width), raw, NaN behind the last hit and where there is none.
        leg_ranks: per leg int32 (queries, width), 1-based, 0 = not returned by the leg.
        leg_scores: per leg float64 (queries, width), NaN = none.
        leg_lists: per leg int32 (queries, depth), positions in ``doc_ids`` of all that the leg
            returned to be fused, best first, -1 behind the last; each leg has a depth of its own,
            at least 1. A leg that did not tell its lists is missing here.
        leg_list_scores: per leg float64 (queries, depth), NaN = none.
        step_lists, step_list_scores: likewise of the steps of a pipeline that make lists, and of
            what stands inside of steps and legs.
        step_texts: per step that makes texts, those of each query.
        without: part that was left out -> int32 (queries, up to k), positions in ``doc_ids`` of the
            ranking without it, -1 behind the last; a row of -2 is not known.
        clusters: a label of each query: equal ones belong together, by the ``cluster_key`` of the
            dataset or, without one, because they are nearly the same question; empty where all are
            different.
    """

    query_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]
    ranking: NDArray[np.int32]
    scores: NDArray[np.float64]
    leg_ranks: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    leg_scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    leg_lists: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    leg_list_scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    step_lists: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    step_list_scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    step_texts: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    without: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    clusters: tuple[str, ...] = ()

    def row(self, at: int) -> Ranking:
        """The ranking of one query."""
        positions = self.ranking[at]
        n = int(np.count_nonzero(positions != NONE))
        scores = self.scores[at, :n]
        return Ranking(
            [self.doc_ids[i] for i in positions[:n]], None if np.isnan(scores).any() else scores
        )

    def kept(self, name: str) -> NDArray[np.int32] | None:
        """The lists of a leg or step, one row for each query: of several texts what they were fused
        to. None where it kept none."""
        leg_list = self.leg_lists.get(name)
        if leg_list is None:
            leg_list = self.step_lists.get(name)
        fused = self.step_lists.get(f"{name} (fused)")
        if leg_list is None or fused is None:
            return leg_list
        several = (fused != NONE).any(axis=1)  # of one text there is nothing to fuse
        leg_list, fused = equally_wide(leg_list, fused)
        return np.where(several[:, None], fused, leg_list)

    def with_parts(self, without: Mapping[str, Sequence[Ranking | None]]) -> Rankings:
        """The same with rankings ``without`` parts, as of :func:`pack_rankings`."""
        if not without:
            return self
        positions = {doc_id: at for at, doc_id in enumerate(self.doc_ids)}
        packed = {}
        for part, rankings in without.items():
            width = max((len(ranking) for ranking in rankings if ranking is not None), default=0)
            rows = np.full((len(self.query_ids), max(width, 1)), NONE, dtype=np.int32)
            for at, answer in enumerate(rankings):
                if answer is None:
                    rows[at] = UNKNOWN
                    continue
                rows[at, : len(answer)] = [
                    positions.setdefault(doc_id, len(positions)) for doc_id in answer.doc_ids
                ]
            packed[part] = rows
        return replace(self, doc_ids=tuple(positions), without=packed)

    @property
    def labels(self) -> Mapping[str, str]:
        """Query -> its label in ``clusters``; empty where there are none."""
        return dict(zip(self.query_ids, self.clusters, strict=True)) if self.clusters else {}


@dataclass(frozen=True, slots=True)
class Run:
    """One run, as measured or as read back.

    Attributes:
        summary: its account, what ``summary.json`` holds.
        manifest: the content of ``manifest.json``.
        rankings: of all queries, as arrays.
        status: of each row of ``rankings``: "ok", "not run", or why the query failed.
        timings: of every measured call, as arrays.
        evaluation: values per query and means.
        folder: None while it is not saved.
    """

    summary: Summary
    manifest: Mapping[str, Any]
    rankings: Rankings
    status: tuple[str, ...]
    timings: Timings
    evaluation: Evaluation
    folder: Path | None = None

    @property
    def clusters(self) -> Mapping[str, str]:
        """Query -> label of the cluster that it counts in; empty where each counts by itself."""
        return {} if self.summary.dataset.cluster_key is None else self.rankings.labels

    @property
    def parallel(self) -> bool | None:
        """True if a hybrid asks its legs at the same time; None for any other retriever."""
        facts = self.manifest.get("retriever", {}).get("facts", {})
        fact = facts.get("parallel")
        return fact if isinstance(fact, bool) else None

    @property
    def stages(self) -> StageReport:
        """The times of a call by stage; nothing is said of calls that were made only once."""
        stages = self.timings.stages if self.asked is None else {}
        return stage_report(self.timings.wall_ns, stages, parallel=self.parallel)

    @property
    def name(self) -> str:
        """Name of the retriever."""
        return self.summary.retriever

    @property
    def settings(self) -> dict[str, str]:
        """Parameters of the retriever by dotted path, without secrets."""
        given = settings_of(self.manifest.get("retriever", {}))
        return {name: str(secrets.redact(value)) for name, value in given.items()}

    @property
    def partial(self) -> bool:
        """True if there are queries that it did not ask."""
        return self.summary.status == "partial"

    @property
    def interrupted(self) -> bool:
        """True if it was meant to ask more."""
        until = self.summary.until_decided
        return self.partial and (until is None or until.interrupted)

    @property
    def asked(self) -> tuple[str, ...] | None:
        """The queries in the order asked, where their values decided how many were asked; None for
        any other run."""
        if self.summary.until_decided is None:
            return None
        return tuple(
            self.rankings.query_ids[at]
            for at in self.timings.query.tolist()
            if self.status[at] != NOT_RUN
        )

    @property
    def judged(self) -> bool:
        """True if its dataset had judgements; where it had none, the summary counts hits."""
        return self.summary.hits is None

    @property
    def answered(self) -> bool:
        """True if any query that counts was answered; where nothing is judged, any at all."""
        if not self.judged:
            return OK in self.status
        status = dict(zip(self.rankings.query_ids, self.status, strict=True))
        return any(status[query_id] == OK for query_id in self.evaluation.query_ids)


def settings_of(retriever: Mapping[str, Any]) -> dict[str, str]:
    """Parameters of the retriever that a manifest tells of, by dotted path; of a chunker, too."""
    cut = {"chunk": retriever["chunk"]} if retriever.get("chunk") else {}
    return dict(flat({**(retriever.get("params") or {}), **cut}))


def clusters_of(runs: Sequence[Run]) -> Mapping[str, str]:
    """Query -> label of its cluster, as the first run says that knows; empty where none does."""
    return next((run.clusters for run in runs if run.clusters), {})


def pack_rankings(
    query_ids: Sequence[str],
    rankings: Sequence[Ranking | None],
    k: int,
    without: Mapping[str, Sequence[Ranking | None]] | None = None,
    clusters: Sequence[str] = (),
) -> Rankings:
    """Rankings of up to ``k`` hits as arrays; a query without one gets an empty row.

    The arrays are as wide as the longest answer: a huge ``k`` costs nothing.

    Args:
        without: part -> rankings of all queries without it, None where that is not known.
        clusters: a label of each query, or none.

    Raises:
        ValueError: a answer of more than ``k`` hits.
    """
    longest = max((len(answer) for answer in rankings if answer is not None), default=0)
    if longest > k:
        raise ValueError(f"a answer of {longest} hits, k = {k}")
    positions: dict[str, int] = {}
    shape = (len(query_ids), max(longest, 1))
    ranking = np.full(shape, NONE, dtype=np.int32)
    scores = np.full(shape, np.nan)
    leg_ranks: dict[str, NDArray[np.int32]] = {}
    leg_scores: dict[str, NDArray[np.float64]] = {}
    for at, answer in enumerate(rankings):
        if answer is None:
            continue
        n = len(answer)
        ranking[at, :n] = [
            positions.setdefault(doc_id, len(positions)) for doc_id in answer.doc_ids
        ]
        if answer.scores is not None:
            scores[at, :n] = answer.scores
        for leg, trace in answer.legs.items():
            if leg not in leg_ranks:
                leg_ranks[leg] = np.zeros(shape, dtype=np.int32)
                leg_scores[leg] = np.full(shape, np.nan)
            leg_ranks[leg][at, :n] = trace.ranks
            leg_scores[leg][at, :n] = trace.scores
    told = [item for item in enumerate(rankings) if item[1] is not None]
    leg_lists, leg_list_scores = _packed_lists(
        len(rankings), [(at, part.legs) for at, part in told if part is not None], positions
    )
    step_lists, step_list_scores = _packed_lists(
        len(rankings), [(at, part.steps) for at, part in told if part is not None], positions
    )
    return Rankings(
        tuple(query_ids),
        tuple(positions),
        ranking,
        scores,
        leg_ranks,
        leg_scores,
        leg_lists,
        leg_list_scores,
        step_lists,
        step_list_scores,
        _texts(rankings),
        clusters=tuple(clusters),
    ).with_parts(without or {})


def _packed_lists(
    n: int,
    told: Sequence[tuple[int, Mapping[str, LegTrace] | Mapping[str, StepTrace]]],
    positions: dict[str, int],
) -> tuple[dict[str, NDArray[np.int32]], dict[str, NDArray[np.float64]]]:
    """Lists and their scores by name; ids that only they have come into ``positions``."""
    listed = [
        (at, name, trace.doc_ids, trace.doc_scores)
        for at, traces in told
        for name, trace in traces.items()
        if trace.doc_ids is not None
    ]
    depths: dict[str, int] = {}
    for _, name, doc_ids, _ in listed:
        depths[name] = max(depths.get(name, 1), len(doc_ids))
    shapes = {name: (n, depth) for name, depth in depths.items()}
    lists = {name: np.full(shape, NONE, dtype=np.int32) for name, shape in shapes.items()}
    scores = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
    for at, name, doc_ids, given in listed:
        size = len(doc_ids)
        lists[name][at, :size] = [positions.setdefault(doc, len(positions)) for doc in doc_ids]
        if given is not None:
            scores[name][at, :size] = given
    return lists, scores


def _texts(rankings: Sequence[Ranking | None]) -> dict[str, tuple[tuple[str, ...], ...]]:
    names = dict.fromkeys(
        name
        for ranking in rankings
        if ranking is not None
        for name, step in ranking.steps.items()
        if step.doc_ids is None
    )
    none = StepTrace()
    return {
        name: tuple(
            () if ranking is None else tuple(ranking.steps.get(name, none).texts)
            for ranking in rankings
        )
        for name in names
    }


def relative_folder(record: Any) -> str:
    """Return where the folder of a run, or of another record, lies, from here."""
    return "(not saved)" if record.folder is None else from_here(record.folder)


def from_here(path: str | Path) -> str:
    """Return an absolute path from the current folder where it lies in it; any other as it is."""
    whole, here = Path(path), Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else path)


def only_metrics(runs: Sequence[Run], names: Sequence[str]) -> list[Run]:
    """``runs`` by the metrics called ``names`` alone, in that order.

    Raises:
        ConfigError: a run does not have one of them.
    """
    wanted = tuple(dict.fromkeys(parse_metrics(names)))
    for run in runs:
        known = run.evaluation.metrics
        missing = [str(metric) for metric in wanted if metric not in known]
        if missing:
            raise ConfigError(
                f"metric {missing[0]!r} of a saved run that does not have it",
                where=str(run.folder or run.name),
                kind="unknown-name",
                accepted=near_names(missing[0], map(str, known)),
                fix="name some of these, or measure again with --retrievers",
            )
    return [replace(run, evaluation=run.evaluation.only(wanted)) for run in runs]
