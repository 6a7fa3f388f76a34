"""``tune`` through the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from retrieval_bench_tune.search import Tunable
from tests.cli.project import Command

pytestmark = pytest.mark.usefixtures("project", "hardly_warm")

OWN = ("tune", "--retriever", "own.py:Overlap", "--dataset", "data")
QUICK = ("--folds", "2", "--repeats", "2")


@pytest.mark.slow
def test_the_answer_stands_first_and_then_settings_and_parameters(
    project: Path, run: Command
) -> None:
    assert run("tune --retriever bm25 --dataset data", *QUICK) == 0
    assert run.err == "retrieval-bench: trying 49 settings ...\n"
    assert "Best of" not in run.out
    for part in ("tuning queries", "held out", "optimism gap", "naive", "Recommended:"):
        assert part in run.out, part
    assert "2 tuning queries: with fewer than 50 luck decides" in run.out
    assert not list(project.glob("results/**/*"))
    assert run("tune --retriever bm25 --dataset data -v", *QUICK) == 0
    titles = [line for line in run.out.splitlines() if re.match(r"bm25 on data|Best of|By ", line)]
    assert [title.split()[0] for title in titles] == ["bm25", "Best", "By", "By"]


def test_json_is_one_document_with_every_choice(run: Command) -> None:
    document = run.json(*OWN, "--grid", "boost=[1, -1]", *QUICK)
    assert [s["values"] for s in document["settings"]] == [{}, {"boost": 1}, {"boost": -1}]
    assert document["method"] == "cross-validation"
    assert len(document["choices"]) == 4
    assert [q["id"] for q in document["queries"]] == ["q1", "q2", "q3", "질문"]
    assert document["metric"] == "nDCG@10"


def test_a_dev_split_is_chosen_on(project: Path, run: Command) -> None:
    qrels = project / "data" / "qrels"
    lines = (qrels / "test.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (qrels / "train.tsv").write_text("".join(lines[:3]), encoding="utf-8")
    (qrels / "test.tsv").write_text(lines[0] + "".join(lines[3:]), encoding="utf-8")
    document = run.json(*OWN, "--grid", "boost=1,2", "--dev-split", "train")
    assert document["method"] == "dev split"
    assert (document["n_tuning"], document["n_held_out"]) == (1, 3)
    assert document["folds"] is None
    assert run(*OWN, "--grid", "boost=1,2", "--dev-split", "train") == 0
    assert "chosen on 1 query (train); held out: 3 others (test)." in run.unwrapped


@pytest.mark.parametrize("option", ["--folds", "--repeats"])
def test_a_dev_split_and_folds_exclude_each_other(option: str, run: Command) -> None:
    assert run(*OWN, "--grid", "boost=1", "--dev-split", "train", option, "3") == 2
    assert "--dev-split with --folds or --repeats" in run.err


def test_a_parameter_that_does_not_exist_is_told_with_those_that_do(run: Command) -> None:
    assert run("tune --retriever bm25 --dataset data --grid 'kk=[1,2]'") == 2
    assert "unknown key 'kk'" in run.err
    assert "k1" in run.err


@pytest.mark.slow
def test_a_grid_that_is_too_large_is_sampled_on_request(run: Command) -> None:
    values = ",".join(map(str, range(2001)))
    assert "--sample 200" in run.refused(*OWN, "--grid", f"boost=[{values}]", *QUICK)
    sampled = ("--sample", "3", "--seed", "5", *QUICK, "--format", "json")
    assert run(*OWN, "--grid", f"boost=[{values}]", *sampled) == 0
    first = json.loads(run.out)
    assert len(first["settings"]) == 4
    assert first["sampled"] is True
    assert run(*OWN, "--grid", f"boost=[{values}]", *sampled) == 0
    assert json.loads(run.out) == first


def test_set_is_for_what_stays_the_same(run: Command) -> None:
    grid = ("--grid", "b=[0,1]", "--set", "k1=2.5", *QUICK, "--format", "json")
    assert run("tune --retriever bm25 --dataset data", *grid) == 0
    assert json.loads(run.out)["recommended"]["params"]["k1"] == 2.5


def test_what_cannot_be_written_after_the_search_was_shown_before(
    project: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = Tunable.close

    def taken_meanwhile(self: Tunable) -> None:
        close(self)
        (project / "tuned.yaml").touch()

    monkeypatch.setattr(Tunable, "close", taken_meanwhile)
    assert run(*OWN, "--grid", "boost=1,2", *QUICK, "--out", "tuned.yaml") == 2
    assert "Recommended:" in run.out
    assert "cannot write tuned.yaml" in run.err
