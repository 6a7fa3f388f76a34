"""Queries that are documents of the corpus, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import retrieval_bench as rb
from retrieval_bench.core.errors import DataError
from tests.builders.debates import IDS, debates, point, self_run
from tests.cli.project import Command

QUICK = ("--dataset", "ds", "--profile", "smoke", "--warm-up", "0", "--no-pictures")
HYBRID = """
name: both
target: hybrid
params:
  legs: [{name: words, target: bm25}, {name: bigrams, target: bm25, params: {k1: 0.5}}]
  depth: 10
"""


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    debates(here / "ds")
    self_run(here / "self.run")
    return Command(capsys)


def test_bench_warns_and_names_what_makes_it_the_published_figure(run: Command) -> None:
    assert run("bench bm25", *QUICK) == 0
    assert "nDCG@10 0.631" in run.out
    assert "6 of 6 queries found themselves" in run.unwrapped
    assert "BEIR leaves such hits out (ignore_identical_ids)" in run.unwrapped
    assert (
        "`self_hits: drop` in dataset.yaml, or `--self-hits drop`, does the same" in run.unwrapped
    )


def test_with_drop_the_value_is_that_of_the_published_protocol(run: Command) -> None:
    document = run.json("bench bm25 --self-hits drop", *QUICK)
    assert document["metrics"]["nDCG@10"]["mean"] == 1.0
    assert document["dataset"]["self_hits"] == "drop"
    assert document["n_self_hits"] == 6
    assert not [one for one in document["warnings"] if one["code"] == "self-hits"]


def test_k_hits_are_left_where_there_are_so_many(run: Command) -> None:
    assert run("bench bm25 --self-hits drop --k 1", *QUICK) == 0
    assert "6 hits with the id of their query left out" in run.unwrapped
    assert "asked for one hit more" in run.unwrapped
    (trec,) = Path("results/runs").glob("*/run.trec")
    rows = [line.split() for line in trec.read_text().splitlines()]
    assert [row[:3:2] for row in rows] == [[f"t{at}-pro", f"t{at}-con"] for at in range(6)]


@pytest.mark.slow
def test_a_setting_of_the_dataset_holds_in_every_launch_and_start(run: Command) -> None:
    Path("ds/dataset.yaml").write_text("format: beir\nself_hits: drop\n")
    assert run("bench bm25 --launches 1 --cold 1", *QUICK) == 0
    assert "nDCG@10 1.000" in run.out
    assert run("bench bm25 --self-hits keep", *QUICK) == 0
    assert "nDCG@10 0.631" in run.out
    assert run("bench bm25 --self-hits keep --launches 1", *QUICK) == 0
    assert "nDCG@10 0.631" in run.out


@pytest.mark.slow
def test_legs_and_parts_are_judged_alike(run: Command) -> None:
    Path("both.yaml").write_text(HYBRID)
    document = run.json("bench both.yaml --self-hits drop", *QUICK)
    assert document["metrics"]["nDCG@10"]["mean"] == 1.0
    assert document["best_leg"]["difference"] == 0.0  # a leg that kept itself would be worse
    assert {part["name"] for part in document["parts"]} >= {"words", "bigrams"}
    assert all(part["known"] for part in document["parts"])
    assert run("explain @last --format json") == 0
    assert run("explain @last --by stage") == 0


@pytest.mark.slow
def test_runs_with_and_without_are_not_compared(run: Command) -> None:
    for rule in ("keep", "drop"):
        assert run(f"bench bm25 --self-hits {rule} --out {rule}", *QUICK) == 0
    assert run("compare keep drop") == 4
    assert "hits on the query itself: self_hits keep and drop" in run.unwrapped + run.err
    assert "--self-hits beside saved runs" in run.refused("compare keep drop --self-hits drop")
    assert run("explain drop keep") == 2  # neither has the dataset of the other
    Path("other.yaml").write_text("name: other\ntarget: bm25\nparams: {k1: 0.5}\n")
    assert run("bench other.yaml --self-hits drop --out other", *QUICK) == 0
    assert run("compare drop other --slices length") == 0  # the dataset is found again


@pytest.mark.slow
def test_compare_says_it_once(run: Command) -> None:
    Path("other.yaml").write_text("name: other\ntarget: bm25\nparams: {k1: 0.5}\n")
    assert run("compare bm25 other.yaml", *QUICK) == 0
    assert run.unwrapped.count("6 of 6 queries found themselves") == 1
    assert run("compare bm25 other.yaml --self-hits drop", *QUICK) == 0
    assert "found themselves" not in run.unwrapped
    assert run.unwrapped.count("6 hits with the id of their query left out") == 1


def test_a_run_file_is_scored_by_either_protocol(run: Command) -> None:
    score = "score run self.run --metrics nDCG@10"
    assert run(f"{score} --dataset ds") == 0
    assert "nDCG@10 is 0.6309" in run.out
    assert "6 of 6 queries found themselves" in run.unwrapped
    for truth in (("--dataset", "ds"), ("--qrels", "ds/qrels/test.tsv")):
        assert run(score, *truth, "--self-hits", "drop") == 0
        assert "nDCG@10 is 1.0000" in run.out
        assert "6 hits with the id of their query left out" in run.unwrapped
    Path("ds/dataset.yaml").write_text("format: beir\nself_hits: drop\n")
    assert run(f"{score} --dataset ds") == 0
    assert "nDCG@10 is 1.0000" in run.out
    assert run("bench trec_run --set path=self.run", *QUICK) == 0
    assert "nDCG@10 1.000" in run.out


def test_judgements_alone_do_not_hide_it(run: Command) -> None:
    Path("judged.txt").write_text("".join(f"t{at}-pro 0 t{at}-con 1\n" for at in range(6)))
    assert run("score run self.run --qrels judged.txt") == 0
    assert "6 of 6 queries found a document of their own id, such as 't0-pro'" in run.unwrapped
    assert run("score run self.run --qrels judged.txt --self-hits drop") == 0
    assert "nDCG@10 is 1.0000" in run.out
    assert "of their own id" not in run.unwrapped


def test_an_own_id_that_is_judged_relevant_or_rare_is_no_such_hit(run: Command) -> None:
    known = "".join(f"t{at}-pro 0 t{at}-pro 1\n" for at in range(6))
    rare = "".join(f"x{at} 0 y 1\n" for at in range(10)) + "t0-pro 0 t0-con 1\n"
    for judged in (known, rare):
        Path("judged.txt").write_text(judged)
        assert run("score run self.run --qrels judged.txt") == 0
        assert "of their own id" not in run.unwrapped


def test_an_audit_goes_by_the_same_rule(run: Command) -> None:
    assert run("score audit self.run --dataset ds --format json") == 0
    assert "6 of 6 queries found themselves" in run.out
    dropped = ("--dataset", "ds", "--self-hits", "drop", "--format", "json")
    assert run("score audit self.run", *dropped) == 0
    means = {row["means"]["self"] for row in json.loads(run.out)["rows"]}
    assert means - {None} == {1.0}


def test_python_takes_it_for_scores_and_lists() -> None:
    qrels = {"a": {"b": 1}, "b": {"c": 1}}
    scores = {"a": {"a": 9.0, "b": 5.0}, "b": {"b": 9.0, "c": 5.0}}
    lists = {query: list(of) for query, of in scores.items()}
    for given in (scores, lists):
        kept = rb.evaluate(given, qrels, metrics=["RR"])
        dropped = rb.evaluate(given, qrels, metrics=["RR"], self_hits="drop")
        assert kept.means == {"RR": 0.5}
        assert dropped.means == {"RR": 1.0}
    numbers: Any = {1: {1: 9.0, 2: 5.0}}
    judged: Any = {1: {2: 1}}
    found = rb.evaluate(numbers, judged, metrics=["RR"], self_hits="drop")
    assert found.means == {"RR": 1.0}
    with pytest.raises(DataError, match="judged relevant"):
        rb.evaluate(scores, {"a": {"a": 1}, "b": {"b": 1}}, metrics=["RR"], self_hits="drop")


def test_equal_ids_by_accident_are_refused_before_anything_runs(run: Command) -> None:
    debates(Path("accident"), text=lambda at: f"{point(at).split()[3][::-1]} qqq {at}")
    quick = ("--dataset", "accident", "--profile", "smoke", "--warm-up", "0")
    assert run("bench bm25", *quick, "--self-hits", "drop") == 2
    assert "6 of the 6 queries with a document of the same id are not that document" in run.err
    assert run("bench bm25", *quick) == 0
    assert "found themselves" not in run.unwrapped


def test_doctor_gives_the_advice_that_keeps_the_task(run: Command) -> None:
    assert run("doctor bm25 --dataset ds") == 0
    assert "6 of 6 queries are documents of the corpus" in run.unwrapped
    assert "`self_hits: drop` in dataset.yaml" in run.unwrapped
    assert "take them out of the corpus" not in run.unwrapped
    assert run("doctor bm25 --dataset ds --self-hits drop") == 0
    assert "are documents of the corpus" not in run.unwrapped
    assert "stand word for word in a document that is not judged relevant" not in run.unwrapped
    assert "next: retrieval-bench bench bm25 --dataset ds --self-hits drop" in run.unwrapped


def test_doctor_finds_short_ones_and_copies_under_other_ids(run: Command) -> None:
    debates(Path("short"), text=lambda at: f"{at} point")
    for line, at in zip(IDS, range(6), strict=True):
        corpus = Path("short/corpus.jsonl")
        text = corpus.read_text("utf-8").replace(json.dumps(point(at)), json.dumps(f"{at} point"))
        corpus.write_text(text, encoding="utf-8")
        assert line in text
    assert run("doctor bm25 --dataset short") == 0
    assert "6 of 6 queries are documents of the corpus" in run.unwrapped
    debates(Path("copies"), query_id=lambda at: f"q{at}")
    assert run("doctor bm25 --dataset copies") == 0
    assert "6 of 6 queries have the very text of a document" in run.unwrapped


@pytest.mark.slow
def test_tuning_and_labels_keep_to_it(run: Command) -> None:
    tune = "tune bm25 --grid 'k1=[0.9,1.5]' --folds 2 --dataset ds"
    assert run(f"{tune} --self-hits drop --format json") in (0, 3)
    assert '"mean":1.0' in run.out
    pool = "label pool bm25 self.run --dataset ds --depth 1"
    assert (
        run.json(f"{pool} --self-hits drop --labels a.labels")["progress"]["pairs"] == 6
    )  # each the counter-point alone


def test_what_is_exported_says_it_again(run: Command) -> None:
    Path("ds/dataset.yaml").write_text("format: beir\nself_hits: drop\n")
    assert run("data export ds --to trec --out out") == 0
    assert "self_hits: drop" in Path("out/dataset.yaml").read_text("utf-8")
