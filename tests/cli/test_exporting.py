"""``data export`` in a user's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrieval_bench.cli.commands import parsed
from retrieval_bench.data import load_dataset
from retrieval_bench_exchange.export import targets
from tests.cli.project import Command

pytestmark = pytest.mark.usefixtures("project")


def test_it_says_what_was_written_how_to_read_it_and_what_is_lost(run: Command) -> None:
    assert run("data export data --to quepid --out out") == 0
    shown = " ".join(run.out.split())
    assert "as quepid: " in shown
    assert "out/test.csv out/dataset.yaml" in shown
    assert "It can be read back: --dataset out --split test." in shown
    assert "Not written, since quepid has no place for it: the ids of queries; the texts" in shown
    assert run.err == ""
    assert load_dataset("out").qrels


def test_the_document_has_it_all(run: Command) -> None:
    words = ("--to", "rank_eval", "--out", "o/x", "--set", "index=articles", "metric.dcg.k=5")
    document = run.json("data export data", *words)
    assert document["files"] == ["test.json", "dataset.yaml"]
    assert document["format"] == "rank_eval"
    assert document["n_judgements"] == sum(map(len, load_dataset("data").qrels.values()))
    body = json.loads(Path("o/x/test.json").read_text(encoding="utf-8"))
    assert body["metric"] == {"dcg": {"k": 5}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere", "--to", "trec"), "dataset 'nowhere' is neither a known name nor a folder"),
        (("data", "--to", "quepit"), "did you mean quepid or quotes?"),
        (("data", "--to", "trec", "--split", "x"), "has no split 'x'"),
        (("data", "--to", "trec", "--set", "index=a"), "no setting 'index' of format trec"),
        (("data", "--to", "trec", "--set", "index"), "accepted: key=value"),
    ],
)
def test_bad_input_has_one_clear_message(
    run: Command, words: tuple[str, ...], message: str
) -> None:
    assert message in run.refused("data export", *words, "--out", "out")
    assert not Path("out").exists()


def test_a_folder_that_holds_something_is_left_alone(run: Command) -> None:
    assert "nothing is written over it" in run.refused("data export data --to beir --out data")


def test_the_help_names_every_target(run: Command) -> None:
    assert run("data export --help") == 0
    assert all(name in run.out for name in targets())


def test_it_is_a_part_of_data_alone() -> None:
    with pytest.raises(SystemExit):
        parsed(["export", "data"])
