"""The whole answer: exit codes, and a word on what to do in every state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from pydantic import ValidationError

from retrieval_bench.core.config import config_hash
from retrieval_bench.core.errors import ConfigError, DataError, RecordError
from retrieval_bench.core.types import Verdict
from retrieval_bench.measure.environment import git_revision
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.metrics import METRICS_VERSION, parse_metric
from retrieval_bench.reports.render import terminal
from retrieval_bench.runs.run import Run
from retrieval_bench_duet.result import DuetResult
from retrieval_bench_regress import files
from retrieval_bench_regress.baseline import (
    FAILED,
    Given,
    LatencyBaseline,
    QualityBaseline,
    latency_of,
    quality_of,
)
from retrieval_bench_regress.code import Code
from retrieval_bench_regress.files import Places
from retrieval_bench_regress.gate import Regression, Subject
from retrieval_bench_regress.latency_gates import LatencyResult, When
from retrieval_bench_regress.policy import Policy, Undecided
from retrieval_bench_regress.quality_gates import QualityGate, QualityResult
from retrieval_bench_regress.session import PROTOCOL, Held
from retrieval_bench_regress.storing import check_free, latency_changes, quality_changes, store
from retrieval_bench_regress.tables.regress import regress_tables
from tests.builders import some
from tests.builders.baselines import (
    COMMIT,
    DATASET,
    MACHINE,
    NDCG,
    RETRIEVER,
    SIDE,
    duet_result,
    latency,
    quality,
    today,
)
from tests.builders.git_project import GitProject
from tests.builders.runs import sample_run
from tests.builders.tables import folded

GIVEN = Given("mine.yaml", ["b=1"], {"commit": COMMIT, "dirty": False})
PASSES = {Verdict.BETTER, Verdict.EQUIVALENT}


def judged(
    of_quality: Verdict | None, of_latency: Verdict | None, undecided: Undecided
) -> Regression:
    gates = () if of_quality is None else (QualityGate("nDCG@10", of_quality, 0.01),)
    return Regression(
        cast("Subject", {}),
        Policy({}, {}, undecided),
        {},
        QualityResult(gates) if gates else None,
        None if of_latency is None else LatencyResult(of_latency, (), ""),
    )


@pytest.mark.parametrize("undecided", list(Undecided))
@pytest.mark.parametrize("pair", list(product([None, *Verdict], [None, *Verdict])))
def test_exit_codes(pair: tuple[Verdict | None, Verdict | None], undecided: Undecided) -> None:
    found, kinds = judged(*pair, undecided), {v for v in pair if v is not None}
    is_open = any(verdict.open for verdict in kinds)
    if Verdict.WORSE in kinds or (is_open and undecided is Undecided.FAIL):
        expected = 1
    elif not kinds or kinds & {Verdict.MISSING, Verdict.NOT_COMPARABLE}:
        expected = 4
    elif is_open:
        expected = 0 if undecided is Undecided.PASS else 3
    else:
        expected = 0
    assert found.code == expected
    assert (found.verdict in PASSES) <= (found.code == 0)
    assert not (found.code == 0 and {verdict for verdict in kinds - PASSES if not verdict.open})


class TestWhatIsThere:
    def test_the_baselines_that_are_there_are_used_and_without_any_it_says_what_to_do(
        self, tmp_path: Path
    ) -> None:
        held = today(tmp_path)
        for one in (held.quality(), held.latency()):
            assert one.usable is None
            assert one.remedy == "make one: MAKE"
        kept = quality({"nDCG@10": [1.0]}, metrics_version=METRICS_VERSION)
        files.write([(held.places.quality, kept), (held.places.latency, latency([1000]))])
        assert held.quality().usable == kept
        assert held.latency().usable == latency([1000])

    @pytest.mark.parametrize(
        ("changed", "told"),
        [
            ({"k": 9}, "the baseline has k 9, now it is 10"),
            ({"dataset": {**DATASET, "split": "dev"}}, "the times are of another dataset split"),
            ({"protocol": {"levels": []}}, "by a protocol that is not known here"),
            ({"protocol": {"levels": [50.0], "warmth": 3}}, "by a protocol that is not known"),
            ({"protocol": {"levels": [50.0], "rounds": 5e-324}}, "by a protocol that is not known"),
            (
                {"protocol": {"levels": [50.0], "warm_up_s": None}},
                "by a protocol that is not known",
            ),
        ],
    )
    def test_times_that_cannot_be_used(
        self, tmp_path: Path, changed: dict[str, Any], told: str
    ) -> None:
        held = today(tmp_path)
        files.write([(held.places.latency, latency([1000], **changed))])
        found = held.latency()
        assert found.usable is None
        assert told in found.why_not
        assert found.remedy == "make the baseline anew: MAKE --force"

    def test_a_broken_file_says_what_to_do(self, tmp_path: Path) -> None:
        held = today(tmp_path)
        held.places.quality.write_text("{", encoding="utf-8")
        found = held.quality()
        assert "unreadable baseline: not JSON" in found.why_not
        assert found.remedy == "take the file from git again, or make it anew: MAKE --force"

    @pytest.mark.slow
    def test_where_most_queries_fail_it_says_so_and_what_to_do(self, tmp_path: Path) -> None:
        """Not that the rankings are identical, and no more."""
        run = measured()
        failed = replace(run, status=("TimeoutError: late",) * len(run.status))
        some = replace(failed, status=("ok", *failed.status[1:]))
        held = today(tmp_path, Policy({NDCG: 0.01}, {}))
        kept = Held(quality_of(some, GIVEN))
        found = held.judged(
            some, kept, Held(None), duet=lambda _: lambda: duet_result(Verdict.WORSE),
            when=When.NEVER,
        )  # fmt: skip
        told = terminal.plain(regress_tables(found))
        assert found.code == 4
        assert "identical (40 evaluated queries, 39 of them failed then and now)" in folded(told)
        assert "nDCG@10: 39 of 40 judged queries failed" in told
        assert found.advice == ("See why queries fail, then make the baseline anew: MAKE --force",)

    @pytest.mark.parametrize("failing", [40, 39, 1, 0])
    def test_s3_to_accept_is_proposed_where_it_would_be_done(
        self, tmp_path: Path, failing: int
    ) -> None:
        """S3: --accept and --force refuse what most queries fail in."""
        run = measured()
        status = ("TimeoutError: late",) * failing + ("ok",) * (len(run.status) - failing)
        timings = replace(run.timings, failed=run.timings.query < failing)
        now = replace(run, status=status, timings=timings)
        held = today(tmp_path, Policy({NDCG: 0.01}, {"p50": 0.05}))
        of_quality, of_latency = Held(quality_of(run, GIVEN)), Held(some(latency_of(run, GIVEN)))
        found = held.judged(
            now, of_quality, of_latency, duet=lambda _: lambda: duet_result(Verdict.WORSE),
            when=When.NEVER,
        )  # fmt: skip
        advice = " ".join(found.advice)
        assert ("See why queries fail" in advice) is (failing > 0)
        assert ("--accept" in advice) is (failing == 1)
        assert "--force" not in advice

    @pytest.mark.parametrize(("times", "told"), [(17, "17.0 times"), (1.6, "1.6"), (1.4, "")])
    def test_s3_a_policy_of_quality_alone_notes_a_slow_down_of_the_same_machine(
        self, tmp_path: Path, times: float, told: str
    ) -> None:
        run = measured()
        before = some(latency_of(run, GIVEN))
        kept = {query: round(ns / times) for query, ns in before.queries.items()}
        held = today(tmp_path, Policy({NDCG: 0.01}, {}))
        slow = before.model_copy(update={"queries": kept})
        each: list[Held[LatencyBaseline]] = [Held(slow), Held(None), Held(before, "of another k")]
        for of_latency in each:
            found = held.judged(
                run, Held(quality_of(run, GIVEN)), of_latency,
                duet=lambda _: lambda: duet_result(Verdict.WORSE), when=When.NEVER,
            )  # fmt: skip
            slower = [note for note in found.notes if "latency baseline of this machine" in note]
            assert len(slower) == bool(told and of_latency.usable)
            assert told in "".join(slower) or not slower
            assert (found.code, found.latency) == (0, None)


class TestHowItIsMeasured:
    def test_it_is_measured_as_the_baseline_was_with_one_round_for_rankings_alone(
        self, tmp_path: Path
    ) -> None:
        held = today(tmp_path)
        protocol = Protocol(profile="baseline", min_calls=77, threads=2)
        held = held.with_protocol(latency([1], protocol=protocol.as_dict()), times=True)
        assert held.experiment.protocol == protocol
        held = today(tmp_path).with_protocol(None, times=False)
        assert held.experiment.protocol.rounds == 1
        # Slow queries of the baseline would fail within another time-out.
        protocol = Protocol(profile="baseline", min_calls=77, threads=2, timeout_s=240.0)
        held = today(tmp_path).with_protocol(latency([1], protocol=protocol.as_dict()), times=False)
        found = held.experiment.protocol
        assert (found.threads, found.timeout_s, found.rounds) == (2, 240.0, 1)
        assert found.profile == RANKINGS_ONLY

    def test_metrics_of_policy_and_baseline(self, tmp_path: Path) -> None:
        held = today(tmp_path, Policy({parse_metric("P@3"): 0.01}, {}))
        held = held.with_metrics(quality({"P@7": [1.0]}), ["R@2"])
        names = {str(metric) for metric in held.experiment.metrics}
        assert {"P@3", "P@7", "R@2", "nDCG@10"} <= names
        held = held.with_metrics(quality({"P@70": [1.0]}, k=100))
        assert parse_metric("P@70") not in held.experiment.metrics

    def test_names_that_mean_no_metric_here_are_left_out_and_told(self, tmp_path: Path) -> None:
        """Of another version, or of a plug-in that is not installed."""
        held = today(tmp_path, Policy({NDCG: 0.01}, {}))
        run = measured()
        kept = quality({"P@7": [1.0], "Novelty@3": [0.5]}, metrics_version=METRICS_VERSION)
        held = held.with_metrics(kept)
        assert "P@7" in {str(metric) for metric in held.experiment.metrics}
        found = held.judged(
            run, Held(kept), Held(None), duet=lambda _: lambda: duet_result(Verdict.WORSE),
            when=When.NEVER,
        )  # fmt: skip
        assert "metrics of the baseline that are not known here: Novelty@3" in found.notes
        with pytest.raises(ConfigError, match="Novelty"):
            held = held.with_metrics(kept, ["Novelty@3"])

    def test_short_calls_are_repeated_until_they_fill_some_seconds(self, tmp_path: Path) -> None:
        held = today(tmp_path)
        held = held.with_protocol(None, times=True)
        run = sample_run("mine", 0)
        means = {1.0: 4_096, 0.1214: 32_768, 0.1195: 32_768, 1e-9: 50_000, 20.0: None, None: None}
        for mean, calls in means.items():
            latency = run.summary.latency_ms.replace(mean=mean)
            run = replace(run, summary=run.summary.replace(latency_ms=latency))
            longer = held.longer(run)
            assert (longer and longer.min_calls) == calls
        assert held.experiment.protocol.min_calls == PROTOCOL["min_calls"]


def measured(shift: int = 0) -> Run:
    """A run with all that a baseline keeps."""
    run = sample_run("mine", shift)
    environment = {"machine": {"fingerprint": MACHINE, "mhz": float("nan")}, "packages": {}}
    facts = {"retriever": {"hash": "c0ffee"}, "environment": environment, "noise": {}}
    manifest = {**run.manifest, **facts, "protocol": Protocol().as_dict()}
    return replace(run, manifest=manifest)


class TestOfARun:
    def test_quality_has_all_queries_and_values(self) -> None:
        run = measured(1)
        found = quality_of(run, GIVEN)
        assert set(found.queries) == set(run.rankings.query_ids)
        assert len(found.queries["none"]) == 1
        values = found.values("nDCG@10", list(run.evaluation.query_ids))
        assert values.tolist() == run.evaluation.values(NDCG).tolist()
        assert found.metrics["nDCG@10"] == run.evaluation.mean(NDCG).mean

    def test_equal_rankings_have_equal_hashes_and_a_failed_query_none(self) -> None:
        one, same, other = (quality_of(measured(shift), GIVEN) for shift in (0, 4, 1))
        assert {q: row[0] for q, row in one.queries.items()} == {
            q: row[0] for q, row in same.queries.items()
        }
        assert all(one.ranking(q) != other.ranking(q) for q in one.evaluated)
        run = measured()
        status = ("TimeoutError: late", *run.status[1:])
        failed = replace(run, status=status)
        assert quality_of(failed, GIVEN).ranking(run.rankings.query_ids[0]) == FAILED

    def test_latency_has_the_median_of_every_query(self) -> None:
        run = measured()
        found = some(latency_of(run, GIVEN))
        timings = run.timings
        assert len(found.queries) == 40
        for query, median in found.queries.items():
            number = run.rankings.query_ids.index(query)
            expected = np.median(timings.wall_ns[timings.query == number])
            assert median == pytest.approx(expected, abs=0.5)
        assert found.call["p50"]["value"] == run.summary.latency_ms.levels["p50"].value

    def test_the_mean_is_that_of_all_answered_calls(self) -> None:
        """Every twentieth one pauses: the median of no query tells."""
        run = measured()
        wall, failed = run.timings.wall_ns, run.timings.failed
        wall[::20] += 80_000_000
        failed[1] = True
        found = some(latency_of(run, GIVEN))
        assert found.mean == pytest.approx(wall[~failed].mean() / 1e6)

    def test_a_failed_call_took_longer_than_any_other(self) -> None:
        run = measured()
        timings, query = run.timings, run.timings.query[0]
        own = np.flatnonzero(timings.query == query)
        fine = some(latency_of(run, GIVEN))
        timings.failed[own[0]] = True
        once = some(latency_of(run, GIVEN))
        timings.failed[own] = True
        always = some(latency_of(run, GIVEN))
        timings.failed[:] = True
        name = run.rankings.query_ids[query]
        assert len(own) > 2
        assert once.queries[name] >= fine.queries[name]
        assert name not in always.queries
        assert len(always.queries) == len(fine.queries) - 1
        assert latency_of(run, GIVEN) is None

    def test_a_replayed_run_has_no_times(self) -> None:
        run = measured()
        latency = run.summary.latency_ms.replace(mean=None)
        run = replace(run, summary=run.summary.replace(latency_ms=latency))
        assert latency_of(run, GIVEN) is None


class TestWhoseRevisionTheDuetMeasures:
    OF_QUALITY, OF_LATENCY = "a" * 40, "b" * 40

    def asked(
        self,
        folder: Path,
        when: When,
        times: LatencyBaseline,
        run: Run | None = None,
        played: DuetResult | None = None,
    ) -> tuple[list[Code], Regression]:
        held, codes = today(folder, Policy({}, {"p50": 0.05})), []
        kept = quality({"nDCG@10": [1.0]}, commit=self.OF_QUALITY, metrics_version=METRICS_VERSION)

        def duet(code: Code) -> Callable[[], DuetResult]:
            def play() -> DuetResult:
                codes.append(code)
                return played or duet_result(Verdict.EQUIVALENT)

            return play

        of_quality, of_latency = Held(kept), Held(times)
        return codes, held.judged(run, of_quality, of_latency, duet=duet, when=when)

    def times(self, run: Run, *, dirty: bool = False) -> LatencyBaseline:
        """Half as long as those of ``run``."""
        now = some(latency_of(run, GIVEN))
        queries = {query: ns // 2 for query, ns in now.queries.items()}
        protocol = Protocol(threads=3, timeout_s=240.0).as_dict()
        return latency([], commit=self.OF_LATENCY, dirty=dirty, queries=queries, protocol=protocol)

    @pytest.mark.parametrize(
        ("dirty", "outdated", "advice"),
        [
            (False, False, "Leave out --duet never."),
            (True, False, "Commit first, then make the baseline anew: MAKE --force"),
            (True, True, "Make the baseline anew, the stored times of p50 are far above"),
        ],
    )
    def test_a_duet_is_advised_only_where_it_can_be_made(
        self, tmp_path: Path, dirty: bool, outdated: bool, advice: str
    ) -> None:
        run = measured()
        times = self.times(run, dirty=dirty)
        if outdated:
            slower = {query: 4 * ns for query, ns in times.queries.items()}
            times = times.model_copy(update={"queries": slower})
        _, found = self.asked(tmp_path, When.NEVER, times, run)
        assert some(found.latency).verdict is Verdict.UNDECIDED
        assert found.advice[0].startswith(advice)

    def test_a_change_of_the_chunker_is_told(self, tmp_path: Path) -> None:
        run = measured()
        made = {"hash": "facade", "params": {"b": 1}, "chunk": {"by": "tokens", "size": 20}}
        run = replace(run, manifest={**run.manifest, "retriever": made})
        assert quality_of(run, GIVEN).retriever.params["chunk.size"] == "20"
        params = {"b": "1", "chunk.by": "tokens", "chunk.size": "40"}
        before = quality({"nDCG@10": [1.0]}, retriever={**RETRIEVER, "params": params})
        nothing: Held[LatencyBaseline] = Held(None)
        policy, play = Policy({}, {}), cast("Any", None)
        found = today(tmp_path, policy).judged(
            run, Held(before), nothing, duet=play, when=When.NEVER
        )
        assert "The settings of the retriever changed: chunk.size 40 -> 20." in found.notes

    @pytest.mark.parametrize("verdict", list(Verdict))
    def test_another_config_than_the_baselines_is_no_verdict(
        self, tmp_path: Path, verdict: Verdict
    ) -> None:
        """Of a file outside of the repository both sides have that of today."""
        run = measured()
        for told, config in (("c0ffee", verdict), ("facade", Verdict.MISSING)):
            played = duet_result(verdict, a=replace(SIDE, config={"hash": told}))
            _, found = self.asked(tmp_path, When.SUSPICION, self.times(run), run, played)
            assert some(found.latency).verdict is config
        assert "side a was built from another config" in some(found.latency).reason
        assert "make the baseline anew: MAKE --force" in some(found.latency).reason
        assert found.advice == ()

    def test_earlier_revisions_tell_the_config_and_no_hash(self, tmp_path: Path) -> None:
        run = measured()
        params = {"legs": ["bm25", {"target": "bm25"}], "depth": 3}
        legs = {"target": "hybrid", "params": params}
        for hash_, verdict in (
            (config_hash("hybrid", params), Verdict.EQUIVALENT),
            ("c0ffee", Verdict.MISSING),
        ):
            times = self.times(run)
            facts = times.retriever.model_copy(update={"hash": hash_})
            times = times.model_copy(update={"retriever": facts})
            played = duet_result(Verdict.EQUIVALENT, a=replace(SIDE, config=legs))
            _, found = self.asked(tmp_path, When.SUSPICION, times, run, played)
            assert some(found.latency).verdict is verdict

    @pytest.mark.parametrize("when", [When.SUSPICION, When.ALWAYS])
    def test_that_of_the_times(self, tmp_path: Path, when: When) -> None:
        run = measured()
        (code,), found = self.asked(tmp_path, when, self.times(run), run)
        assert code.commit == self.OF_LATENCY
        assert code.protocol == {"threads": 3, "timeout_s": 240.0}
        assert not any("side a" in note for note in found.notes)

    def test_without_a_commit_of_the_times_only_a_duet_in_any_case_takes_another_and_names_it(
        self, tmp_path: Path
    ) -> None:
        run = measured()
        codes, found = self.asked(tmp_path, When.SUSPICION, self.times(run, dirty=True), run)
        assert codes == []
        assert found.verdict is Verdict.MISSING
        assert "made of files that no commit holds" in some(found.latency).reason
        (code,), found = self.asked(tmp_path, When.ALWAYS, self.times(run, dirty=True))
        assert (code.commit, code.protocol) == (self.OF_QUALITY, {})
        (note,) = found.notes
        assert note.startswith("side a of the duet is aaaaaaaaaa, the commit of the quality")


def test_a_baseline_that_git_refuses_to_name_a_commit_of_shows_its_words(here: Path) -> None:
    held = today(here, revision=None)
    (told,) = held.notes(latency([1]))
    assert told.startswith("Outside of a git repository: regress can judge")
    GitProject(here).commit({"a.py": ""})
    (here / ".git" / "config").write_text("[", encoding="utf-8")
    (told,) = held.notes(latency([1]))
    assert told.startswith("Git refuses to read the repository (")
    assert "bad config" in told


class TestStoring:
    def places(self, folder: Path, machine: str = MACHINE) -> Places:
        return Places(folder, "mine", "tiny", machine)

    def test_it_is_refused_only_where_something_would_change(self, tmp_path: Path) -> None:
        one, other = quality({"RR": [1.0]}), quality({"RR": [0.5]}, ["other"])
        here, there = self.places(tmp_path), self.places(tmp_path, "another")
        check_free(here, force=False)
        assert store(here, one, latency([1]), force=False).kept == ()
        with pytest.raises(RecordError, match="has a baseline"):
            check_free(here, force=False)
        added = store(there, one, latency([1], fingerprint="another"), force=False)
        assert added.written == (str(there.latency),)
        with pytest.raises(RecordError, match="it would change"):
            store(self.places(tmp_path, "third"), other, latency([1]), force=False)
        with pytest.raises(RecordError, match="it would change"):
            store(here, one, latency([2]), force=False)
        assert here.read_latency() == latency([1])
        replaced = store(here, other, latency([2]), force=True)
        assert len(replaced.written) == 2
        assert here.read_quality() == other

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_a_value_that_is_no_number_is_told_with_metric_and_query(
        self, tmp_path: Path, value: float
    ) -> None:
        for lost, where in (([value, 1.0], "query 'q0000'"), ([value] * 2, "'q0000' and 1 other")):
            found = quality({"AP": [1.0, 1.0], "RR": lost})
            with pytest.raises(DataError, match="the value of RR is no number") as caught:
                store(self.places(tmp_path), found, None, force=False)
            assert where in caught.value.where
        assert list(tmp_path.iterdir()) == []

    def test_the_baseline_of_another_is_never_replaced(self, tmp_path: Path) -> None:
        """`mine-tiny` on `x` and `mine` on `tiny-x` share a file name."""
        at = self.places(tmp_path)
        kept: tuple[tuple[Path, Any], ...] = (
            (at.quality, quality({"RR": [1.0]})),
            (at.latency, latency([1])),
        )
        for path, own in kept:
            names = {
                "retriever": own.retriever.model_copy(update={"name": "mine-tiny"}),
                "dataset": own.dataset.model_copy(update={"name": "x"}),
            }
            files.write([(path, own.model_copy(update=names))])
            before = path.read_bytes()
            for force in (False, True):
                with pytest.raises(RecordError, match="baseline of 'mine-tiny' on 'x'") as said:
                    check_free(at, force=force)
                assert said.value.where == str(path)
                assert "--baselines" in said.value.fix
                with pytest.raises(RecordError, match="baseline of 'mine-tiny' on 'x'"):
                    store(at, quality({"RR": [0.0]}), latency([2]), force=force)
            assert path.read_bytes() == before
            path.unlink()

    def test_rounding_is_no_change(self, tmp_path: Path) -> None:
        store(self.places(tmp_path), quality({"RR": [0.3]}), None, force=False)
        again = store(
            self.places(tmp_path), quality({"RR": [0.1 + 0.2]}), latency([1]), force=False
        )
        assert again.kept == (str(self.places(tmp_path).quality),)

    def test_a_broken_file_is_not_overwritten_unasked(self, tmp_path: Path) -> None:
        at = self.places(tmp_path)
        at.quality.write_text("{", encoding="utf-8")
        with pytest.raises(RecordError, match="it would change"):
            store(at, quality({"RR": [1.0]}), None, force=False)
        store(at, quality({"RR": [1.0]}), None, force=True)
        assert at.read_quality() == quality({"RR": [1.0]})

    def test_changes_name_every_figure(self) -> None:
        rows = quality_changes(quality({"RR": [1.0]}), quality({"AP": [0.5], "RR": [0.5]}))
        assert [(row.figure, row.before, row.now) for row in rows] == [
            ("AP", None, 0.5),
            ("RR", 1.0, 0.5),
        ]
        times = latency_changes(None, latency([1]))
        assert [(row.figure, row.before, row.now) for row in times] == [("p50", None, 1.5)]


def test_a_folder_besides_makes_no_tree_dirty(tmp_path: Path) -> None:
    for name in ("code.py", "kept/a.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1", encoding="utf-8")
    GitProject(tmp_path).commit({})
    (tmp_path / "kept/a.json").write_text("2", encoding="utf-8")

    def dirty(besides: Path | None) -> bool:
        revision = some(git_revision(tmp_path, besides=besides))
        return bool(revision["dirty"])

    assert dirty(None)
    assert not dirty(Path("kept"))
    assert not dirty(tmp_path / "kept")
    assert dirty(tmp_path.parent)  # outside: nothing is left out
    (tmp_path / "code.py").write_text("2", encoding="utf-8")
    assert dirty(Path("kept"))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (["hash", "x", 1.0], "has a value that is no number"),
        (["hash", 10**400, 1.0], "has a value that is no number"),
        (["hash", True, 1.0], "has a value that is no number"),
        (["hash", [1.0], 1.0], "has a value that is no number"),
        (["hash", 1.0], "has no hash and 2 values"),
        ([], "has no hash and 2 values"),
        ([3, 1.0, 1.0], "has no hash and 2 values"),
    ],
)
def test_a_row_of_a_baseline_that_holds_something_else_is_refused(
    row: list[object], says: str
) -> None:
    facts: dict[str, Any] = {"name": "n", "hash": None, "given": "n", "overrides": [], "params": {}}
    data = {"name": "d", "split": "test", "fingerprint": "f", "n_documents": 1, "n_queries": 1}
    content = {"retriever": facts, "dataset": data, "k": 10, "revision": None}
    content |= {"convention": "trec", "metrics_version": 1, "metrics": {"AP": 1.0, "RR": 1.0}}
    QualityBaseline.model_validate(content | {"queries": {"q": ["hash", 1.0, 0.5]}})
    with pytest.raises(ValidationError, match=says):
        QualityBaseline.model_validate(content | {"queries": {"q": row}})


def test_a_ranking_is_another_one_where_its_hits_fill_other_slots() -> None:
    run = measured()
    query = run.rankings.query_ids[0]
    told = [
        quality_of(replace(run, manifest={**run.manifest, "slots": {query: {"x": ranks}}}), GIVEN)
        for ranks in ([1], [1], list[int]())
    ]
    first, same, other = (of.ranking(query) for of in told)
    assert first == same != other
    assert quality_of(run, GIVEN).ranking(query) != first
