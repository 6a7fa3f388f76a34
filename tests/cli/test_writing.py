"""``bench --writes``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.reports.render import terminal
from retrieval_bench_writes.measured import Plan, freshness
from retrieval_bench_writes.tables.writes import writes_tables
from tests.builders.frozen import HERE
from tests.builders.service import service
from tests.builders.writable_store import Store
from tests.cli.project import Command

OWN = "bench writable.py:Writable --dataset data --writes 500 --write-count 30"


@pytest.fixture(autouse=True)
def project(project: Path) -> Path:
    (project / "writable.py").write_bytes((HERE / "files" / "writable.py").read_bytes())
    document = '{put: "{document.id}", text: "{document.text}", in: notes}'
    write = f'{{into: notes, add: {document}, delete: {{drop: "{{document.id}}", in: notes}}}}'
    params = f"{{command: [cat], documents: none, write: {write}}}"
    (project / "others.yaml").write_text(f"name: others\ntarget: command\nparams: {params}\n")
    return project


def test_the_answer_is_one_sentence_and_nothing_is_saved(run: Command, project: Path) -> None:
    assert run(OWN) == 0
    answer = run.unwrapped
    assert answer.startswith("Writable on data: visible within ")
    assert "no zombie in 30 deletions, at most 9.5 % (one-sided 95 %)" in answer
    assert "no stale version in 30 updates" in answer
    assert "30 writes, p95 needs 200: 170 more writes" in answer
    assert not (project / "results").exists()


def test_zombies_are_counted_and_never_go_within_the_limit(run: Command) -> None:
    fresh = run.json(f"{OWN} --write-limit 0.05 --set zombies=true")
    deleted = fresh["deleted"]
    assert (deleted["n"], deleted["outdated"]["count"], deleted["never"]["count"]) == (30, 30, 30)
    assert fresh["replaced"]["never"]["count"] == fresh["visible"]["never"]["count"] == 0
    assert fresh["visible"]["percentiles"][0]["at_least_s"] == 0
    assert fresh["visible"]["percentiles"][1]["reason"]


def test_a_collection_that_was_there_is_written_into_once_its_name_is_typed(run: Command) -> None:
    external = f"{OWN} --set external=true"
    told = run.refused(external)
    assert "no --writes-into for the collection 'notes'" in told
    assert "--writes-into notes" in told
    assert "--writes-into note for" in run.refused(f"{external} --writes-into note")
    assert run(f"{external} --writes-into notes") == 0
    assert "Writes went into notes" in run.unwrapped


def test_a_service_over_http_is_written_to_and_left_as_it_was(run: Command, project: Path) -> None:
    with service(store := Store()) as served:
        (project / "notes.yaml").write_text(
            f"""
name: notes
target: http
params:
  url: {served.url}/search
  body: {{text: "{{text}}", k: "{{k}}"}}
  hits: hits
  id: id
  write:
    into: notes
    add:
      method: PUT
      url: "{served.url}/notes/{{document.id}}"
      body: {{text: "{{document.text}}"}}
    delete: {{url: "{served.url}/notes/{{document.id}}"}}
""",
            encoding="utf-8",
        )
        line = "bench notes.yaml --dataset data --writes 500 --write-count 10 --writes-into notes"
        fresh = run.json(line)
        writes = [request.method for request in served.requests if request.method != "POST"]
    assert fresh["collection"] == "notes"
    assert [fresh[kind]["n"] for kind in ("visible", "replaced", "deleted")] == [10, 10, 10]
    assert fresh["deleted"]["outdated"]["count"] == 0
    assert writes.count("PUT") == 20
    assert not store.documents


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("bm25 --writes 5", "'bm25', which declares no writes"),
        ("bm25 --write-count 5", "--write-count without --writes"),
        ("writable.py:Writable --writes 0", "--writes 0"),
        ("writable.py:Writable --writes 5 --write-count 0", "--write-count 0"),
        ("writable.py:Writable --writes 5 --write-limit 0", "--write-limit 0"),
        ("writable.py:Writable --writes 5 --writes-into notes", "indexes the corpus itself"),
        ("writable.py:Writable --writes 5 --write-blocks -1", "--write-blocks -1"),
        ("writable.py:Writable --writes 5 --write-kills 2", "whose server this program did not"),
        (
            "others.yaml --writes 5 --write-kills 2 --writes-into notes",
            "over the collection 'notes'",
        ),
        ("writable.py:Writable --writes 5 --rounds 2", "--rounds with --writes"),
        ("writable.py:Writable --writes 5 --cold 2", "--cold with --writes"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    run: Command, words: str, told: str
) -> None:
    assert told in (said := run.refused(f"bench {words} --dataset data"))
    name, value = told.split()[:2]
    assert value not in {"0", "-1"} or f"such as {name} " in said


def test_a_retriever_that_cannot_be_written_to_is_told(run: Command, project: Path) -> None:
    source = (project / "writable.py").read_text("utf-8")
    (project / "broken.py").write_text(
        source.replace("self.held |= {document.id", "self.gone |= {document.id"), "utf-8"
    )
    told = run.refused("bench broken.py:Writable --dataset data --writes 5")
    assert "writing failed with AttributeError" in told
    assert "broken.py:" in told


@pytest.mark.slow
def test_a_record_is_repeated_and_judged_by(run: Command, project: Path) -> None:
    line = "bench writable.py:Writable --dataset data --writes 500 --write-count 200"
    assert run(f"{line} --write-limit 1 --writes-record fresh.json") == 0
    assert (project / "fresh.svg").read_text("utf-8").startswith("<svg")
    again = "regress writable.py:Writable --dataset data --writes fresh.json"
    judged = run.json(f"{again} --set zombies=true", code=1)["latency"]
    assert {gate["gate"]: gate["verdict"] for gate in judged["gates"]}["zombies"] == "FAIL"
    assert "200 zombies in 200 deletions now, 0 in 200 then" in judged["reason"]
    assert "the record would replace a folder" in run.refused(f"{line} --writes-record data")
    (project / "mine.yaml").write_text("limits: {zombies: 100%}\nundecided: pass\n", "utf-8")
    mine = run.json(f"{again} --set zombies=true --policy mine.yaml")
    assert [gate["gate"] for gate in mine["latency"]["gates"]] == ["zombies"]
    assert "The settings of the retriever are not those of the record." in mine["notes"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"machine": "feedfacecafe"}, "the record is of machine feedfacecafe"),
        ({"fingerprint": "feed"}, "the times are of another dataset fingerprint"),
        ({"split": "dev"}, "the times are of another dataset split"),
    ],
)
def test_a_record_of_other_data_or_another_machine_judges_nothing(
    run: Command, project: Path, changed: dict[str, str], told: str
) -> None:
    assert run(f"{OWN} --writes-record fresh.json") == 0
    record = json.loads((project / "fresh.json").read_text("utf-8"))
    (project / "fresh.json").write_text(json.dumps({**record, **changed}), "utf-8")
    again = "regress writable.py:Writable --dataset data --writes fresh.json"
    document = run.json(again, code=4)
    assert told in document["latency"]["reason"]
    assert {gate["verdict"] for gate in document["latency"]["gates"]} == {"NOT MEASURED"}
    (advice,) = document["advice"]
    assert advice.startswith("Make a record here: retrieval-bench bench writable.py:Writable")
    assert advice.endswith("--writes 500 --write-count 30 --writes-record fresh.json")


def test_a_record_is_repeated_as_it_was_made_and_only_a_whole_one(
    run: Command, project: Path
) -> None:
    assert run(f"{OWN} --k 7 --write-limit 5 --writes-record fresh.json") == 0
    again = "regress writable.py:Writable --dataset data --writes fresh.json"
    reason = run.json(again, code=4)["latency"]["reason"]  # the policy has a limit for nDCG@10
    assert "p95 needs 200" in reason
    assert "--k with --writes" in run.refused(f"{again} --k 7")
    record = json.loads((project / "fresh.json").read_text("utf-8"))
    anew = "--k 7 --writes 500 --write-count 30 --write-limit 5 --writes-record fresh.json"
    (project / "fresh.json").write_text(json.dumps({**record, "machine": "feed"}), "utf-8")
    assert run.json(again, code=4)["advice"][0].endswith(anew)
    (project / "fresh.json").write_text(json.dumps({**record, "status": "partial"}), "utf-8")
    told = run.refused(again)
    assert "a record that was stopped before its end" in told
    assert anew in " ".join(told.split())


def test_a_policy_without_limits_on_writes_cannot_judge_them(run: Command, project: Path) -> None:
    assert run(f"{OWN} --writes-record fresh.json") == 0
    again = "regress writable.py:Writable --dataset data"
    told = run.refused(f"{again} --writes fresh.json --policy quality")
    assert "limits on visible_p95 and zombies" in told
    (project / "mine.yaml").write_text("limits: {zombies: 1%}\n", "utf-8")
    assert "limits on quality or latency" in run.refused(f"{again} --policy mine.yaml")


def test_searches_while_writing_are_told_in_a_table_of_their_own(project: Path) -> None:
    experiment = prepare(["writable.py:Writable"], project / "data", save=False)
    fresh = freshness(experiment, Plan(500, 5, blocks=2, block_s=0.2))
    assert fresh.while_writing is not None
    assert (fresh.status, fresh.while_writing.pairs) == ("complete", 2)
    assert fresh.while_writing.writes > 10
    assert [answer.metric for answer in fresh.while_writing.answers] == ["nDCG@10", "R@10"]
    text = terminal.plain(writes_tables(fresh))
    assert "While writing" in text
    assert "2 pairs of blocks of 200 ms in turn" in text
