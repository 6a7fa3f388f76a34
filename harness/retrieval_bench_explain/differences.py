"""``explain``: where runs differ, and the queries of it that are looked at one by one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.needs_judgements import require_judged
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.evaluation import Mean
from retrieval_bench.runs.run import Run
from retrieval_bench_explain.ceilings import Ceiling
from retrieval_bench_explain.diff import ExplainedQuery, Explanation, Order, QueryDetail, explain
from retrieval_bench_explain.partitions import QueryGroup


@dataclass(frozen=True, slots=True)
class DiffDataset:
    """A dataset.

    Attributes:
        name, split, fingerprint: of it.
    """

    name: str
    split: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class DiffSystem(Documented):
    """A run, or a leg of one, with its mean.

    Attributes:
        name: as shown.
        leg: its name as a leg; None where it is none.
        leg_of: runs that it is a leg of.
        mean: of the metric, over all evaluated queries.
    """

    KEYS = "name leg leg_of *mean"

    name: str
    leg: str | None
    leg_of: list[str]
    mean: Mean


@dataclass(frozen=True, slots=True)
class DiffCeilings(Documented):
    """Ceilings of fusion.

    Attributes:
        of: the hybrid; "both" for two runs without legs.
        metrics: by name, all that the runs have in common.
    """

    of: str
    metrics: dict[str, Ceiling]


@dataclass(frozen=True, slots=True)
class DiffPartition(Documented):
    """Queries in groups.

    Attributes:
        kind: ``outcome``, ``best leg`` or ``fusion``.
        of: the run.
        groups: each with its means.
    """

    kind: str
    of: str
    groups: list[QueryGroup]


@dataclass(frozen=True, slots=True)
class Differences(Documented):
    """Where two runs differ, or a hybrid and its legs.

    Attributes:
        explanation: of all queries: systems, means, groups; ceilings on demand.
        details: the queries that were chosen, in full.
        texts: whether these have the texts of queries and documents.
        named: whether these were named, one by one.
        whole: whether every metric has its ceilings.
    """

    KEYS = (
        "metric=explanation.metric k=explanation.k dataset difference systems ceilings partitions "
        "values! queries=details warnings=explanation.warnings"
    )

    explanation: Explanation
    details: Sequence[QueryDetail]
    texts: bool
    named: bool = False
    whole: bool = True

    def shortened(self) -> Differences:
        """Return the same without documents of queries that nobody named, and with the ceilings of
        its metric alone."""
        short = [replace(detail, documents=()) for detail in self.details]
        return replace(self, details=self.details if self.named else short, whole=False)

    @property
    def dataset(self) -> DiffDataset:
        """The dataset of the runs."""
        data = self.explanation.runs[0].summary.dataset
        return DiffDataset(data.name, data.split, data.fingerprint)

    @property
    def difference(self) -> str:
        """What is subtracted from what, in words."""
        return " - ".join(self.explanation.subtracted)

    @property
    def systems(self) -> list[DiffSystem]:
        """Runs and legs."""
        systems = self.explanation.systems
        return [
            DiffSystem(one.name, one.leg or None, [systems[run].name for run in one.of], mean)
            for one, mean in zip(systems, self.explanation.means, strict=True)
        ]

    @property
    def ceilings(self) -> list[DiffCeilings]:
        """Ceilings of each hybrid."""
        metrics = None if self.whole else [self.explanation.metric]
        return [
            DiffCeilings(of, {str(each.metric): each for each in ceilings})
            for of, ceilings in self.explanation.ceilings(metrics).items()
        ]

    @property
    def partitions(self) -> list[DiffPartition]:
        """Groups of queries."""
        metric = self.explanation.metric
        return [DiffPartition(p.kind, p.of, p.groups(metric)) for p in self.explanation.partitions]

    @property
    def values(self) -> dict[str, ExplainedQuery]:
        """Of every evaluated query."""
        ids = self.explanation.query_ids
        return {query_id: self.explanation.explained(at) for at, query_id in enumerate(ids)}


def differences(
    runs: Sequence[Run],
    dataset: Dataset,
    metric: Metric | None = None,
    *,
    queries: int | None,
    query_ids: Sequence[str] = (),
    group: str | None = None,
    order: Order = "largest",
    texts: bool = True,
) -> Differences:
    """Explain where two runs differ, or one run of a hybrid and its legs.

    Args:
        metric: None = the first of the runs.
        queries: so many are looked at; None = all.
        query_ids: look at these instead.
        group: look only at queries of this group, such as "lost by fusion".
        order: largest difference first, or where the second run is worse, or better.
        texts: False leaves out the texts of queries and documents.

    Raises:
        ConfigError: runs that cannot be held against each other, a group or a query there is not.
    """
    require_judged(
        dataset, "explain", instead="compare shows the queries on which two runs differ most"
    )
    explanation = explain(runs, dataset, metric)
    if query_ids:
        places = [_place(explanation, query_id) for query_id in query_ids]
    else:
        label = None if group is None else _label(explanation, group)
        places = explanation.order(order, label)[:queries]
    details = explanation.details(places, texts=texts)
    return Differences(explanation, details, texts, named=bool(query_ids))


def _label(explanation: Explanation, group: str) -> str:
    """The label of a group that may be spelled with hyphens."""
    labels = dict.fromkeys(label for part in explanation.partitions for label in part.labels)
    spelled = {label.replace(" ", "-").casefold(): label for label in labels}
    label = spelled.get(group.strip().replace(" ", "-").casefold())
    if label is None:
        raise ConfigError(
            f"group {group!r}",
            where="--group",
            kind="unknown-name",
            accepted=near_names(group, labels),
            fix="name one of the groups of the tables",
        )
    return label


def _place(explanation: Explanation, query_id: str) -> int:
    if query_id in explanation.query_ids:
        return explanation.query_ids.index(query_id)
    close = difflib.get_close_matches(query_id, explanation.query_ids, n=3)
    known = any(query.id == query_id for query in explanation.dataset.queries)
    raise ConfigError(
        f"query {query_id!r}" + (", which is not evaluated" if known else ""),
        where="--query",
        accepted="ids of evaluated queries" + (f", such as {', '.join(close)}" if close else ""),
        fix="leave --query out to see those that differ most",
    )
