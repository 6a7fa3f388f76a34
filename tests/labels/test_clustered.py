"""Questions of a pool that are not independent: they are told, counted as clusters, and never bet
on (F10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.core.types import Dataset, Document, Query, Verdict
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.until import Target
from retrieval_bench.stats.randomization import randomization_p
from retrieval_bench_labels.decide.population import (
    Population,
    by_question,
    of_population,
    sentence,
)
from retrieval_bench_labels.decide.status import Status
from retrieval_bench_labels.decide.status import status as state
from retrieval_bench_labels.label import Pool
from retrieval_bench_labels.pool import make_pool
from retrieval_bench_labels.store import Store
from retrieval_bench_labels.tables.labelling import status_tables
from tests.builders import some
from tests.builders.pools import judged, mixed, pool_of, two


def in_clusters(n: int, of: int, target: Target = Target.POPULATION) -> Pool:
    """``n`` queries in clusters of ``of``, on all of which b is better."""
    pool = pool_of(two(n), target=target)
    clusters = {query.id: f"={int(query.id[1:]) // of}" for query in pool.queries}
    return replace(pool, cluster_key="topic", clusters=clusters)


def told(pool: Pool, first: int) -> Population:
    return some(of_population(pool, judged(pool, first)))


def test_f10_clusters_are_not_bet_on_before_all_is_judged() -> None:
    pool = in_clusters(40, 5)
    assert told(replace(pool, cluster_key=None), 20).done  # independent ones would be decided
    # Copies without a key that would be decided count as one question, too.
    as_one, without, _ = by_question(replace(pool, cluster_key=None), judged(pool, 20))
    assert (as_one.cluster_key, some(without).done) == ("text", False)
    found = told(pool, 20)
    (pair,) = found.pairs
    assert (pair.delta.verdict, pair.delta.ci, pair.delta.p) == (Verdict.UNDECIDED, None, None)
    assert (found.done, found.drawn, found.labels_left) == (False, 20, 60)
    assert sentence(pool, found, pair).startswith(
        "a or b: can't tell yet which is better on questions like these. 60 labels are left"
    )


@pytest.mark.parametrize(
    ("n", "of", "verdict"),
    [(40, 5, Verdict.BETTER), (30, 5, Verdict.BETTER), (25, 5, Verdict.UNRESOLVABLE)],
)
def test_f10_all_judged_the_clusters_are_the_unit(n: int, of: int, verdict: Verdict | None) -> None:
    pool = in_clusters(n, of)
    delta = told(pool, n).pairs[0].delta
    sums = np.full((n // of, 1), of * (1 - 1 / np.log2(3)))
    assert (delta.n, delta.clusters) == (n, n // of)
    assert delta.p == pytest.approx(float(randomization_p(sums)[0]))
    assert delta.verdict is verdict


def test_f10_so_few_clusters_can_show_nothing() -> None:
    pool = in_clusters(40, 10)
    found = told(pool, 40)
    (pair,) = found.pairs
    assert (pair.delta.verdict, pair.beyond) == (Verdict.UNRESOLVABLE, 2)
    assert sentence(pool, found, pair).endswith(
        "So few clusters can show nothing: it takes at least 2 further ones."
    )


def test_f10_the_mean_of_these_very_questions_needs_no_independence() -> None:
    pool = in_clusters(40, 5, Target.SPLIT)
    assert of_population(pool, judged(pool, 39)) is None
    assert told(pool, 40).pairs[0].delta.clusters == 8


def dataset(texts: Sequence[str], key: str | None = None) -> Dataset:
    queries = [
        Query(f"q{at:02}", text, metadata={"talk": text[:1]}) for at, text in enumerate(texts)
    ]
    documents = [Document(f"{side}q{at:02}", "text") for at in range(len(texts)) for side in "gxy"]
    qrels = {query.id: {f"g{query.id}": 1, f"x{query.id}": 0} for query in queries}
    return replace(build_dataset("small", documents, queries, qrels), cluster_key=key)


def status(folder: Path, data: Dataset, lists: Mapping[str, Mapping[str, Sequence[str]]]) -> Status:
    store = Store.create(folder / "labels.sqlite")
    make_pool(store, data, lists)
    assert store.pool().clusters.keys() <= {query.id for query in data.queries}
    return state(store)


def words(status: Status) -> str:
    (table,) = status_tables(status, "f", verbose=False)
    return " ".join(map(str, [table.title, *table.lead, *table.notes]))


SIX = [f"{word} {end}" for word in ("ab", "cd", "ef", "gh", "ij", "kl") for end in ["where"] * 5]


def test_f10_the_key_of_a_dataset_is_that_of_its_pool(tmp_path: Path) -> None:
    found = status(tmp_path, dataset(SIX, "talk"), mixed(30, 25))
    (pair,) = some(found.population).pairs
    assert (found.pool.cluster_key, found.pool.n_clusters, pair.delta.clusters) == ("talk", 6, 6)
    assert not found.warnings
    assert "paired randomisation test of 6 clusters (by talk)" in words(found)


def test_f10_one_question_under_many_ids_is_told_with_the_verdict_that_it_changes(
    tmp_path: Path,
) -> None:
    found = status(tmp_path, dataset(SIX), mixed(30, 25))
    (told_,) = found.warnings
    assert "30 queries have 6 different texts, or nearly." in told_
    assert "nDCG@10 says b against a: can't tell in place of better." in told_
    # The answer counts what the warning counts.
    assert (some(found.population).pairs[0].delta.clusters, found.done) == (6, False)
    assert words(found).startswith("a or b: can't tell which is better on questions like these.")
    assert "6 clusters (by text)" in words(found)
    assert told_ in words(found)


def test_copies_that_change_no_verdict_stay_queries(tmp_path: Path) -> None:
    texts = [f"{chr(97 + at)}{at} where" for at in range(25)] * 2
    found = status(tmp_path, dataset(texts), mixed(50, 50))
    assert "no verdict is another" in found.warnings[0]
    assert some(found.population).pairs[0].delta.clusters is None


@pytest.mark.parametrize(
    "texts",
    [
        [f"what is the number of the {at}th house in town" for at in range(30)],
        [f"{chr(97 + at)}" for at in range(26)] + ["aa", "bb", "cc", "dd"],
    ],
    ids=["numbers", "letters"],
)
def test_questions_that_differ_are_told_of_by_nothing(tmp_path: Path, texts: list[str]) -> None:
    assert status(tmp_path, dataset(texts), mixed(30, 25)).warnings == []


def test_f10_before_all_is_judged_copies_are_told(tmp_path: Path) -> None:
    data = replace(dataset(SIX), qrels={"q00": {"gq00": 1}})
    (told_,) = status(tmp_path, data, mixed(30, 25)).warnings
    assert "nothing is said of questions like these until all is judged" in told_
