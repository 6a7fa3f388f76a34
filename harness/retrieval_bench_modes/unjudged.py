"""Runs on a dataset where nothing is judged: how alike they answer, and their times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from retrieval_bench.comparison.group import DatasetComparison, Recommendation, Systems
from retrieval_bench.comparison.pairs.holm import Pair
from retrieval_bench.comparison.pairs.speed import latencies
from retrieval_bench.comparison.pairs.verdicts import Rules
from retrieval_bench.comparison.phrases import faster_text, named
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Dataset
from retrieval_bench.reports.frames import mean_row
from retrieval_bench.runs.dataset import titles_of
from retrieval_bench.stats.intervals import SHARE, methods
from retrieval_bench_modes.likeness import PERSISTENCE, Differing, Likeness, PairLikeness, likeness


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged(DatasetComparison):
    """Overlap and RBO of each pair in place of differences, and ratios of times.

    Attributes:
        likeness: how alike the systems answer.
    """

    likeness: Likeness

    @property
    def extent(self) -> str:
        """The number of queries that were asked."""
        n = max(len(run.rankings.query_ids) for run in self.runs)
        return f"{counted(n, 'query')}, none judged"

    def recommended(self, margin: float, baseline: str | None = None) -> Recommendation:
        """No system, but how alike they answer and which is faster."""
        del margin, baseline
        sentence = "Nothing is judged yet, so nobody can tell which system is better."
        known = [pair for pair in self.likeness.pairs if pair.n]
        k, n = self.likeness.k, max(len(run.rankings.query_ids) for run in self.runs)
        reasons = []
        if known:
            least, most = (pick(known, key=lambda pair: pair.rbo.mean) for pick in (min, max))
            if len(known) == 1:
                reasons.append(f"{named([least.a, least.b])} {_alike(least, k, n)}.")
            else:
                both = (
                    f"{named([pair.a, pair.b])} {which} (they {_alike(pair, k, n)})"
                    for pair, which in ((least, "differ most"), (most, "are most alike"))
                )
                reasons.append(f"Of {counted(len(known), 'pair')}, {' and '.join(both)}.")
        elif self.likeness.pairs:
            reasons.append("No query was answered by two systems.")
        return Recommendation(self.dataset, None, sentence, (*reasons, *_faster(self)))

    @property
    def method(self) -> Mapping[str, str]:
        """Measures of likeness, and their intervals."""
        return {
            "likeness": f"overlap@{self.likeness.k}; RBO, p = {PERSISTENCE}, extrapolated",
            "intervals of means": f"95 %, {methods([SHARE])}",
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """Two for each pair, of the columns of means: overlap and RBO."""
        for pair in self.likeness.pairs:
            for name, mean in ((f"overlap@{self.likeness.k}", pair.overlap), ("RBO", pair.rbo)):
                value = mean.mean if pair.n else None
                row = mean_row((self.dataset, pair.b, name), value, mean.ci95, pair.n)
                yield row | {"against": pair.a}

    def with_texts(self, source: Dataset | str) -> Self:
        """Return a copy with the texts of the queries that differ most, and the titles of what the
        systems find first."""
        if isinstance(source, str):
            likeness = replace(self.likeness, without_texts=source.rstrip("."))
        else:
            likeness = told_by(self.likeness, source)
        return replace(self, likeness=likeness)

    def rewritten(self, sentence: Callable[[str], str], *, with_texts: bool) -> Self:
        """Return a copy with or without these texts, and why there are none in other words."""
        likeness = self.likeness
        if with_texts:
            return replace(
                self, likeness=replace(likeness, without_texts=sentence(likeness.without_texts))
            )
        return replace(self, likeness=likeness.silent())


def compare_unjudged(
    systems: Systems, pairs: Sequence[Pair], rules: Rules, warnings: Sequence[str]
) -> Unjudged:
    """Return how alike every pair answers, and its times."""
    del rules
    return Unjudged(
        *systems,
        (),
        latencies(systems.runs, systems.names, pairs),
        warnings=tuple(warnings),
        likeness=likeness(systems.names, systems.runs, pairs),
    )


def _alike(pair: PairLikeness, k: int, n: int) -> str:
    """Say how alike a pair is, without its subject, where ``n`` queries were asked."""
    of = f" on the {pair.n:,} of {counted(n, 'query')} that can be compared" * (pair.n < n)
    if pair.same == pair.n:
        return f"answer the same{of}" if of or n == 1 else f"answer all {n:,} queries the same"
    # 1 only where nothing is missing
    overlap, rbo = (
        1.0 if one.mean > 1 - 1e-9 else min(round(one.mean, 2), 0.99)
        for one in (pair.overlap, pair.rbo)
    )
    return f"share {100 * overlap:.0f} % of their top {k}, RBO {rbo:.2f}{of}"


def _faster(group: DatasetComparison) -> list[str]:
    """Return how much faster the fastest system is than the slowest, where that is shown."""
    pairs = [
        (speed_up.times, name, other)
        for name in group.names
        for other in group.names
        if name != other
        and group.is_faster(name, other)
        and (speed_up := group.speed_up(name, other)) is not None
    ]
    if not pairs:
        return []
    _, faster, other = max(pairs)
    return [f"{faster} is {faster_text(group.speed_up(faster, other))} than {other}."]


def told_by(likeness: Likeness, dataset: Dataset) -> Likeness:
    """``likeness`` with the texts of ``dataset``."""
    texts = {query.id: query.text for query in dataset.queries}
    wanted = {
        doc for differing in likeness.differing for ids in differing.first.values() for doc in ids
    }
    titles = titles_of(dataset, wanted)

    def told(differing: Differing) -> Differing:
        own = {doc for ids in differing.first.values() for doc in ids}
        here = {doc: titles[doc] for doc in sorted(own) if doc in titles}
        return replace(differing, text=texts.get(differing.query_id, ""), titles=here)

    return replace(likeness, differing=tuple(map(told, likeness.differing)), without_texts="")
