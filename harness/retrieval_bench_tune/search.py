"""What every setting finds: one value for each setting and query.

Nothing is timed. Where a retriever combines the answers of others, its legs, these are asked once,
and every setting combines what they answered, with the retriever's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.capabilities import service
from retrieval_bench.core.calls.foreign import folder_kept, foreign_code, innermost, message_of
from retrieval_bench.core.config import RetrieverConfig, inline_config, placed
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError, counted
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.remembered import Memory, Remembered
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import EMPTY, Dataset, Qrels, Query, Ranking, kind_of_truth
from retrieval_bench.core.units.self_hits import as_judged
from retrieval_bench.data.id_spaces import known_ids
from retrieval_bench.data.saved_indexes import documents_to_index
from retrieval_bench.experiment.building import built
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.measure.threads import search_threads
from retrieval_bench.metrics import Judgements, Metric, judge
from retrieval_bench.runs.run import pack_rankings
from retrieval_bench_tune.grid import Grid, Setting

_FAULTS_SHOWN = 10


class Tunable:
    """A retriever's config, and what settings make of it.

    Raises:
        HarnessError: the retriever cannot be built.
    """

    def __init__(self, config: RetrieverConfig) -> None:
        self.config = config
        with folder_kept():
            self.base = built(config)
        self._legs: list[Remembered] = []
        self._shared: Mapping[str, Any] = {}

    @property
    def shares(self) -> bool:
        """True if all settings combine the same answers of the same legs and steps."""
        return bool(self._shared)

    def remember(self, parameters: Mapping[str, Any]) -> None:
        """Let legs and steps answer from memory, unless one of ``parameters`` is their own, or
        says how documents are cut."""
        with _told(self.config.name):
            self._legs = [Remembered(*leg) for leg in self.base.named_legs().items()]
            shared = dict(self.base.shared(Memory()))
        if self._legs and "legs" not in shared:
            shared["legs"] = self._legs
        own = [
            path
            for path in parameters
            for at in (*shared, "chunk")
            if f"{path}.".startswith(f"{at}.")
        ]
        if own:
            self._legs, shared = [], {}
        self._shared = shared

    def search_space(self) -> Mapping[str, Sequence[Any]]:
        """Ask the retriever itself which values are worth trying."""
        with _told(self.config.name):
            return dict(self.base.search_space())

    def leg_names(self) -> tuple[str, ...]:
        """Return the leg names of a hybrid; empty for any other retriever."""
        with _told(self.config.name):
            return tuple(self.base.named_legs())

    def current(self, path: str) -> Any:
        """The value of a parameter as the config says it, or the retriever.

        Raises:
            KeyError: neither does.
        """
        space = self.search_space()
        if path in space:
            return space[path][0]
        node: Any = {**self.config.params, "chunk": self.config.chunk or {}}
        for part in path.split("."):
            if isinstance(node, list) and part.isdecimal() and int(part) < len(node):
                node = node[int(part)]
            elif isinstance(node, dict):
                node = node[part]
            else:
                raise KeyError(path)
        return node

    def config_of(self, setting: Setting) -> RetrieverConfig:
        """The config with the values of ``setting``."""
        if not setting.overrides:
            return self.config
        own = self.config
        given = {"name": own.name, "target": own.target, "params": own.params, "chunk": own.chunk}
        changed = inline_config(given, setting.overrides)
        return own.model_copy(update={"params": changed.params, "chunk": changed.chunk})

    def build(self, setting: Setting, *, sharing: bool = True) -> Retriever:
        """A retriever of its own for ``setting``; with shared legs it is ready to search once these
        are indexed.

        Args:
            sharing: False: legs of its own, too.

        Raises:
            HarnessError: there can be no retriever with these values.
        """
        config = self.config_of(setting)
        if sharing and self._shared:
            config = config.model_copy(update={"params": placed(config.params, self._shared)})
        with folder_kept():  # a path in it starts where the user stands, each time
            return built(config)

    def check(self, grid: Grid, k: int) -> None:
        """Build every setting once; shared legs learn how deep they will be asked.

        Raises:
            ConfigError: all settings that cannot be built, each fault once.
        """
        refused: dict[str, list[Setting]] = {}
        first: dict[str, HarnessError] = {}
        for setting in grid.settings:
            try:
                retriever = self.build(setting)
            except HarnessError as problem:
                refused.setdefault(problem.given, []).append(setting)
                first.setdefault(problem.given, problem)
                continue
            with _told(f"{self.config.name} with {setting}"):
                if self._shared:
                    retriever.use_k(k)
                retriever.close()
        if refused:
            raise _cannot_be_built(refused, first, len(grid.settings))

    def ask_legs(self, queries: Sequence[Query], task: Any) -> None:
        """Ask every leg for every query, so that settings find the answers in memory."""
        for at, query in enumerate(queries):
            task(at, len(queries))
            for leg in self._legs:
                with _told(f"leg {leg.name!r}, query {query.id!r}"):
                    leg.remember(query)

    def close(self) -> None:
        """Close the retriever that was built from the config, legs included."""
        with _told(self.config.name):
            self.base.close()


def values_of(
    tunable: Tunable,
    grid: Grid,
    data: Dataset,
    queries: Sequence[Query],
    qrels: Qrels,
    *,
    k: int,
    metric: Metric,
    reporter: Reporter,
    asked: Callable[[Sequence[Ranking]], None] = lambda _: None,
) -> NDArray[np.float64]:
    """The value of every setting on every query, float64 (settings, queries).

    Args:
        data: where the documents are from; the queries may be of several splits.
        qrels: judgements of all ``queries``.
        asked: is shown the answers of the first setting, the default, before the others are tried.

    Raises:
        HarnessError: a setting that fails: it has no value to be judged by.
    """
    known = None
    if not tunable.base.capabilities.external and data.documents is not None:
        known = known_ids(data.documents, data.unit_of, EMPTY)
    values = np.empty((len(grid.settings), len(queries)))
    ids, judgements = [query.id for query in queries], Judgements(qrels)
    kind = kind_of_truth(qrels)
    with ExitStack() as stack:
        if tunable.shares:
            _index(tunable.base, data, tunable.config.name, reporter)
            stack.enter_context(search_threads(Protocol().threads))
            with reporter.phase(Phase(Step.ASKING_LEGS)) as task:
                tunable.ask_legs(queries, task)
        with reporter.phase(
            Phase(Step.TRYING_SETTINGS, counted(len(grid.settings), "setting"))
        ) as task:
            for row, setting in enumerate(grid.settings):
                task(row, len(grid.settings))
                rankings = _rankings(tunable, setting, data, queries, k=k, known=known)
                if row == 0:
                    asked(rankings)
                packed = pack_rankings(ids, rankings, k)
                if kind:  # what came decides, as in a run
                    seen = service(f"decide by {kind}")(qrels, ids, rankings, range(len(ids)), k)
                    judgements = Judgements(seen.qrels)
                values[row] = metric.compute(judge(packed.ranking, packed.doc_ids, ids, judgements))
    return values


def _rankings(
    tunable: Tunable,
    setting: Setting,
    data: Dataset,
    queries: Sequence[Query],
    *,
    k: int,
    known: Container[str] | None,
) -> list[Ranking]:
    """The first ``k`` of every query, as a run has them."""
    with ready(tunable, setting, data, k, sharing=True) as retriever, ExitStack() as stack:
        if not tunable.shares:
            stack.enter_context(search_threads(Protocol().threads))
        has_scores = retriever.capabilities.has_scores
        rankings = []
        for query in queries:
            with _told(f"{tunable.config.name} with {setting}, query {query.id!r}"):
                raw = retriever.search(query, k)
                if isinstance(raw, Ranking):  # where legs had it is not asked here
                    raw = raw.first(k)
                rankings.append(checked_ranking(raw, k, known, has_scores=has_scores))
    return rankings


@contextmanager
def ready(
    tunable: Tunable, setting: Setting, data: Dataset, k: int, *, sharing: bool = False
) -> Iterator[Retriever]:
    """A retriever of its own for ``setting``, indexed; closed at the end.

    Raises:
        HarnessError: it cannot be built or indexed.
    """
    name = f"{tunable.config.name} with {setting}"
    retriever = as_judged(tunable.build(setting, sharing=sharing), data)
    try:
        with _told(name):
            retriever.use_k(k)
        _index(retriever, data, name)  # those that share are indexed, or take a moment
        yield retriever
    finally:
        with _told(name):
            retriever.close()


def _index(
    retriever: Retriever, data: Dataset, name: str, reporter: Reporter | None = None
) -> None:
    with _told(name):
        documents = documents_to_index(retriever, data)
        if documents is None:
            return
        with (reporter or Silent()).phase(Phase(Step.INDEXING, name)) as task:
            retriever.progress = task
            retriever.index(documents)


@contextmanager
def _told(where: str) -> Iterator[None]:
    """Add its place to what fails inside; nothing that a retriever does ends the process."""

    def unanswered(problem: BaseException) -> ContractError:
        return ContractError(
            message_of(problem),
            where=", ".join(filter(None, [where, innermost(problem)])),
            accepted="an answer to every query: a setting that fails cannot be judged",
            fix="correct the retriever or the grid; --debug shows the traceback",
        )

    try:
        with folder_kept(), foreign_code(unanswered):
            yield
    except HarnessError as problem:
        if where not in problem.where:
            problem.where = "; ".join(part for part in (where, problem.where) if part)
            problem.args = (problem.render(),)
        raise


def _cannot_be_built(
    refused: Mapping[str, Sequence[Setting]], first: Mapping[str, HarnessError], n: int
) -> ConfigError:
    lines = []
    for given, settings in list(refused.items())[:_FAULTS_SHOWN]:
        accepted = first[given].accepted
        message = f"{given}\n    in {len(settings):,} of {n:,} settings, such as {settings[0]}"
        lines.append(message + (f"\n    accepted: {accepted}" if accepted else ""))
    if len(refused) > _FAULTS_SHOWN:
        lines.append(f"and {len(refused) - _FAULTS_SHOWN:,} more kinds of fault")
    return ConfigError(
        "settings that the retriever does not take\n  - " + "\n  - ".join(lines),
        where="--grid",
        accepted="values that go together in every combination; whole mappings where they do not, "
        "such as 'fusion=[{method: rrf, k: 60}, {method: convex, weights: [1, 2]}]'",
        fix="correct the grid",
    )
