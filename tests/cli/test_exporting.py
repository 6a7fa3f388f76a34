"""``data export`` in a user's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrieval_bench.cli.commands import parsed
from retrieval_bench.data import load_dataset
from retrieval_bench_exchange.export import targets
from tests.builders.service import Reply, service
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--to otlp --out x", "write --into http://localhost:4318"),
        ("--to trec --into x", "accepted: --out FOLDER"),
        ("--to otlp", "one of the arguments --out --into is required"),
    ],
)
def test_a_tracker_has_an_address_and_a_file_a_place(
    run: Command, words: str, message: str
) -> None:
    assert message in " ".join(run.refused(f"data export data {words}").split())


@pytest.mark.slow
@pytest.mark.needs("opentelemetry")
def test_a_run_is_sent_and_its_id_there_told(run: Command) -> None:
    assert run("bench bm25 --dataset data --rounds 1") == 0
    with service(lambda _request: Reply(b"")) as receiver:
        sent = run.json("data export @last", "--to", "otlp", "--into", receiver.url)
        assert run(f"data export @last --to otlp --into {receiver.url}") == 0
    assert (sent["format"], sent["into"]) == ("otlp", receiver.url)
    assert sent["id"] in " ".join(run.out.split())
