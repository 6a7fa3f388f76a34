"""Retrievers that are asked no more than it takes to tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import bench, compare, report
from retrieval_bench.api.results import ComparisonResult
from retrieval_bench.comparison.comparison import Comparison, compare_runs
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset, Document, Query, Verdict
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.until import asking_once
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.reports.render import terminal
from retrieval_bench.reports.tables.brief import comparison_brief
from retrieval_bench.reports.tables.understand.comparison import comparison_tables
from retrieval_bench.runs.records import read_runs
from retrieval_bench.runs.run import Run
from retrieval_bench_modes.asking import prepare_until_decided
from retrieval_bench_modes.until_decided import Asked, UntilDecided
from retrieval_bench_pages.methods import methods
from tests.builders import some
from tests.builders.scripted import Scripted

pytestmark = pytest.mark.usefixtures("here")

N = 120


def asked_of(group: DatasetComparison) -> Asked:
    assert isinstance(group, UntilDecided)
    return group.asked


def data(n: int = N) -> Dataset:
    """Query i is answered by document i; every tenth query besides by none."""
    documents = [Document(f"d{i}", f"text {i}") for i in range(n)]
    queries = [Query(f"q{i}", f"text {i}") for i in range(n)]
    never = [Query(f"no{i}", "?", metadata={"answerable": False}) for i in range(n // 10)]
    judged = {f"q{i}": {f"d{i}": 1} for i in range(n)}
    return build_dataset("small", documents, [*queries, *never], judged, split="test", language="")


class Knowing(Scripted):
    """Finds the document of those queries for which ``finds`` is true; others raise, if it says."""

    def __init__(self, name: str, finds: Callable[[int], bool], fails: Sequence[int] = ()) -> None:
        super().__init__(self.answer)
        self.name, self.finds, self.fails = name, finds, fails
        self.queries: list[str] = []

    def answer(self, query: Query) -> list[str]:
        self.queries.append(query.id)
        number = int(query.id[1:])
        if number in self.fails:
            raise RuntimeError("cannot")
        return [f"d{number}"] if self.finds(number) else ["d0" if number else "d1"]


def never(i: int) -> bool:
    return False


def always(i: int) -> bool:
    return True


def until(
    *systems: Knowing, target: str = "split", dataset: Dataset | None = None, **options: Any
) -> Comparison:
    result = compare(systems, dataset or data(), until_decided=target, **options)
    assert isinstance(result, ComparisonResult)
    return result.comparison


def first(comparison: Comparison) -> Delta:
    return comparison.deltas[0]


def test_it_stops_when_the_pair_is_decided_and_says_what_that_saved() -> None:
    bad, good = Knowing("bad", never), Knowing("good", always)
    comparison = until(bad, good)
    (group,) = comparison.groups
    asked = asked_of(group)
    assert asked.asked < N / 4
    assert len(bad.queries) == len(good.queries) == asked.asked  # no warm-up, no second round
    assert bad.queries == good.queries != sorted(bad.queries, key=lambda q: int(q[1:]))
    assert asked.sentence == (
        f"Decided after {asked.asked} of 120 queries: {240 - 2 * asked.asked} of 240 calls saved."
    )
    delta = first(comparison)
    assert (delta.verdict, delta.anytime, delta.p) == (Verdict.BETTER, True, None)
    low, high = some(delta.ci)
    assert 0 < low < 1 == some(delta.difference) == high
    assert delta.as_dict()["interval"] == "anytime-valid, betting"
    assert group.latency == ()


def test_the_decision_comes_with_the_query_that_brings_it() -> None:
    """One query fewer would leave it open."""
    runs = until(Knowing("bad", never), Knowing("good", always)).runs
    n = some(runs[0].asked)

    def without_last(run: Run) -> Run:
        status = list(run.status)
        status[run.rankings.query_ids.index(n[-1])] = "not run"
        kept = [at for at, q in enumerate(run.evaluation.query_ids) if q != n[-1]]
        evaluation = replace(
            run.evaluation,
            query_ids=tuple(run.evaluation.query_ids[at] for at in kept),
            per_query=run.evaluation.per_query[kept],
        )
        return replace(run, status=tuple(status), evaluation=evaluation)

    assert first(compare_runs(runs)).verdict is Verdict.BETTER
    assert first(compare_runs([without_last(run) for run in runs])).verdict is Verdict.UNDECIDED


def test_equal_systems_are_decided_by_the_margin_and_at_the_end_by_the_mean_of_the_split() -> None:
    comparison = until(Knowing("a", always), Knowing("b", always), margin=0.1)
    assert first(comparison).verdict is Verdict.EQUIVALENT
    assert asked_of(comparison.groups[0]).asked < N
    low, high = some(first(comparison).ci)
    assert -0.1 < low < 0 < high < 0.1
    comparison = until(Knowing("a", lambda i: i % 2 == 0), Knowing("b", lambda i: i % 2 == 1))
    (group,), delta = comparison.groups, first(comparison)
    assert delta.ci == (0.0, 0.0)
    assert delta.verdict is Verdict.EQUIVALENT
    assert not any(run.partial for run in group.runs) or asked_of(group).asked < N


@pytest.mark.slow
def test_when_the_queries_run_out_the_interval_of_the_population_stands() -> None:
    comparison = until(
        Knowing("a", lambda i: i % 2 == 0), Knowing("b", lambda i: i % 2 == 1), target="population"
    )
    (group,), delta = comparison.groups, first(comparison)
    assert delta.verdict is Verdict.UNDECIDED
    low, high = some(delta.ci)
    assert low < -0.1 < 0.1 < high
    assert asked_of(group).sentence == "Not decided, though all 120 queries were asked."
    assert not any(run.partial for run in group.runs)
    assert "can't tell" in comparison.recommendations[0].reasons[0]


@pytest.mark.slow
def test_every_pair_has_to_be_decided_or_those_with_the_baseline() -> None:
    def systems() -> list[Knowing]:
        return [
            Knowing("bad", never),
            Knowing("good", always),
            Knowing("nearly", lambda i: i % 15 != 7),
        ]

    every = until(*systems())
    beside_bad = until(*systems(), baseline="bad")
    assert asked_of(beside_bad.groups[0]).asked < asked_of(every.groups[0]).asked
    assert {delta.verdict for delta in beside_bad.deltas} == {Verdict.BETTER}
    assert all(not one.verdict.open for one in every.groups[0].of(every.metrics[0]))


def test_no_verdict_rests_on_failures() -> None:
    comparison = until(Knowing("a", always), Knowing("b", always, fails=range(0, N, 3)))
    delta = first(comparison)
    assert delta.verdict is Verdict.UNDECIDED
    assert delta.rests_on_failures
    assert some(delta.answered).failed_b == 40
    assert asked_of(comparison.groups[0]).asked == N
    text = terminal.plain(comparison_tables(comparison))
    assert "with the queries that failed on either side as ties" in " ".join(text.split())


@pytest.mark.slow
def test_saved_runs_say_the_same_and_are_not_compared_with_others(here: Path) -> None:
    comparison = until(Knowing("bad", never), Knowing("good", always), save=True)
    runs = read_runs([some(run.folder) for run in comparison.runs])
    assert [run.partial for run in runs] == [True, True]
    assert not any(run.interrupted for run in runs)
    assert [run.evaluation.means[0].ci95 for run in runs] == [None, None]
    again = compare_runs(runs)
    assert again.as_dict()["comparisons"] == comparison.as_dict()["comparisons"]
    assert again.as_dict()["until_decided"] == comparison.as_dict()["until_decided"]

    full = bench(Knowing("full", always), data(), protocol=asking_once(Protocol())).run
    beside = compare_runs([*runs, full])
    of_full = [delta for delta in beside.deltas if "full" in (delta.a, delta.b)]
    assert {delta.verdict for delta in of_full} == {Verdict.NOT_COMPARABLE}
    assert {delta.reason for delta in of_full} == {"different queries were finished"}
    assert first(beside) == first(again)

    # Also where all were asked: the same figures may have ended it earlier.
    whole = until(Knowing("a", always), Knowing("b", always), target="population").runs[0]
    (delta, *_) = compare_runs([whole, full]).deltas
    assert delta.reason == "only one of them was measured until decided"


@pytest.mark.slow
def test_runs_of_other_orders_and_full_runs_beside_them_are_refused() -> None:
    def whole(seed: int) -> Run:
        protocol = Protocol(seed=seed)
        systems = Knowing("a", always), Knowing("b", always)
        return until(*systems, target="population", protocol=protocol).runs[0]

    (delta, *_) = compare_runs([whole(1), whole(2)]).deltas
    assert delta.reason == "the queries were asked in different orders"
    full = [
        bench(Knowing(name, always), data(), protocol=asking_once(Protocol())).run
        for name in ("c", "d")
    ]
    deltas = compare_runs([whole(1), *full]).deltas
    assert "beside runs that were measured until decided" in {delta.reason for delta in deltas}
    assert {delta.verdict for delta in deltas} == {Verdict.NOT_COMPARABLE}


def test_no_time_is_shown_and_the_interval_is_named_everywhere() -> None:
    comparison = until(Knowing("bad", never), Knowing("good", always))
    for run in comparison.runs:
        assert run.summary.latency_ms.levels["p50"].value is None
        assert run.summary.stages_ms == {}
        assert run.manifest["protocol"]["profile"] == RANKINGS_ONLY
        assert not [w for w in run.summary.warnings if "settled" in w or "warm-up" in w]
    brief = " ".join(terminal.plain(comparison_brief(comparison)).split())
    assert "anytime-valid intervals by betting, of the mean of all queries of this split" in brief
    assert " ms" not in brief
    assert "significant" not in brief
    assert "is better than bad's 0.000 (anytime-valid interval)" in brief
    whole = " ".join(terminal.plain(comparison_tables(comparison)).split())
    assert "There is no p." in whole
    assert "Times are not judged: each query was asked once, without warm-up." in whole
    assert "with 95 % intervals" not in whole
    paragraph, sources = methods(comparison)
    assert "betting confidence sequences" in paragraph
    assert "waudbysmith2024" in sources
    assert "randomisation" not in paragraph


@pytest.mark.slow
def test_the_report_says_what_was_saved_and_of_what_the_interval_is(here: Path) -> None:
    comparison = until(Knowing("bad", never), Knowing("good", always), save=True)
    report([some(run.folder) for run in comparison.runs], out=here / "page.html")
    page = (here / "page.html").read_text(encoding="utf-8")
    assert asked_of(comparison.groups[0]).sentence in page
    assert "was interrupted" not in page
    assert "paired randomisation" not in page
    assert "anytime-valid intervals by betting, of the mean of all queries of this split" in page


def test_stages_of_calls_that_were_made_once_are_not_shown() -> None:
    systems = [Knowing("a", never), Knowing("b", always)]
    for system in systems:
        system.stages = {"encode": 5}
    for run in until(*systems).runs:
        assert "encode" in run.timings.stages  # what was measured is kept
        assert not run.stages.stages


def test_a_metric_without_a_known_range_decides_nothing() -> None:
    systems = Knowing("a", always), Knowing("b", never)
    with pytest.raises(ConfigError, match=r"GMAP with --until-decided"):
        until(*systems, metrics=["GMAP"])
    comparison = until(*systems, metrics=["nDCG@10", "GMAP"])
    assert [delta.verdict for delta in comparison.deltas] == [Verdict.WORSE, Verdict.MISSING]
    assert "no known range" in comparison.deltas[1].reason


@pytest.mark.parametrize("interrupted", [7, 8])
def test_an_interruption_keeps_the_queries_that_both_were_asked(interrupted: int) -> None:
    """Also when it comes between the two calls of a query."""
    calls = 0

    class Stopped(Knowing):
        def answer(self, query: Query) -> list[str]:
            nonlocal calls
            calls += 1
            if calls > interrupted:
                raise KeyboardInterrupt
            return super().answer(query)

    a, b = Stopped("a", lambda i: i % 2 == 0), Stopped("b", lambda i: i % 2 == 1)
    comparison = until(a, b)
    assert [run.interrupted for run in comparison.runs] == [True, True]
    delta = first(comparison)
    assert (delta.n, delta.verdict) == (interrupted // 2, Verdict.UNDECIDED)
    text = asked_of(comparison.groups[0]).sentence
    assert text == f"Not decided: it ended after {interrupted // 2} of 120 queries."


def test_what_says_nothing_here_is_refused() -> None:
    systems = Knowing("a", always), Knowing("b", never)
    with pytest.raises(ConfigError, match="target 'all'"):
        until(*systems, target="all")
    with pytest.raises(ConfigError, match="with tests"):
        until(*systems, tests=["t"])
    runs = until(*systems).runs
    with pytest.raises(ConfigError, match="with saved runs"):
        compare(list(runs), until_decided="split")


def test_of_a_protocol_only_what_a_call_may_take_counts() -> None:
    given = Protocol(min_calls=5_000, launches=3, timeout_s=3.0, threads=2, seed=9)
    protocol = asking_once(given)
    assert (protocol.timeout_s, protocol.threads, protocol.seed) == (3.0, 2, 9)
    assert (protocol.rounds, protocol.launches) == (1, 0)


def test_a_dry_run_says_how_many_calls_there_are_at_most() -> None:
    (experiment,) = prepare_until_decided(
        "split",
        [Knowing("a", always), Knowing("b", never)],
        [data()],
        lambda _: None,
        save=False,
    )
    assert isinstance(experiment, Experiment)
    plan = experiment.dry_run()
    assert (plan.queries, plan.calls_at_least, plan.calls_at_most) == (N, 2, 2 * N)
