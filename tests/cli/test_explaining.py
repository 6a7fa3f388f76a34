"""``diff`` through the command line, on runs that it measured itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.runs.checksums import SUMS
from tests.cli.project import Command, make_project

pytestmark = pytest.mark.usefixtures("project", "hardly_warm")

HYBRID = """\
name: mixed
target: hybrid
params:
  legs: [{target: own.py:Overlap, name: words}, {target: own.py:Letters, name: letters}]
  depth: 3
"""

LETTERS = '''

class Letters(Overlap):
    """Counts shared letters, so that nearly everything is a hit."""

    def search(self, query, k):
        letters = set(query.text)
        scores = {i: len(letters & set("".join(t))) for i, t in self.texts.items()}
        hits = sorted(((i, s) for i, s in scores.items() if s), key=lambda h: (-h[1], h[0]))
        return [(i, float(s)) for i, s in hits[:k]]
'''


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one run of each of two retrievers, and of a hybrid of them."""
    folder = make_project(tmp_path_factory.mktemp("diff"))
    with (folder / "own.py").open("a", encoding="utf-8") as file:
        file.write(LETTERS)
    (folder / "letters.yaml").write_text(
        "name: letters\ntarget: own.py:Letters\n", encoding="utf-8"
    )
    (folder / "mixed.yaml").write_text(HYBRID, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        from retrieval_bench.cli import main

        for name in ("own", "letters", "mixed"):
            given = ["--retriever", f"{name}.yaml", "--dataset", "data", "--k", "2"]
            kept = ["--metrics", "RR@2", "R@2", "--out", name, "--profile", "smoke"]
            assert main(["bench", *given, *kept, "--no-pictures"]) == 0
    return folder


@pytest.fixture
def project(measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shutil.copytree(measured, tmp_path / "project")
    monkeypatch.chdir(folder)
    return Path(folder)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    capsys.readouterr()
    return Command(capsys)


def document(run: Command, *arguments: str) -> dict[str, Any]:
    assert run("explain", *arguments, "--format", "json", "--full") == 0
    assert run.err == ""
    found: dict[str, Any] = json.loads(run.out)
    return found


@pytest.mark.slow
def test_a_hybrid_against_its_legs(run: Command) -> None:
    assert run("explain mixed -v") == 0
    for told in ("mixed and its legs on data (test), k = 2", "leg words", "perfect fusion",
                 "won by leg words", "lost by fusion", "query q1: "):  # fmt: skip
        assert told in run.out
    assert run.err == ""


def test_two_runs_and_what_stands_in_json_for_all_queries(run: Command) -> None:
    found = document(run, "letters", "own", "--queries", "1")
    assert found["difference"] == "own - letters"
    assert [system["name"] for system in found["systems"]] == ["letters", "own"]
    assert set(found["values"]) == {"q1", "q2", "q3", "질문"}
    assert len(found["queries"]) == 1
    assert sum(g["n"] for g in found["partitions"][0]["groups"]) == 4
    means = {system["name"]: system["mean"] for system in found["systems"]}
    for name, mean in means.items():
        values = [entry["values"][name] for entry in found["values"].values()]
        assert mean == pytest.approx(sum(values) / 4)


@pytest.mark.slow
def test_the_last_two_that_were_measured_together(run: Command) -> None:
    assert run("compare own.yaml letters.yaml --dataset data --profile smoke") == 0
    found = document(run, "@last")
    assert [system["name"] for system in found["systems"]] == ["own", "letters"]


def test_a_document_of_a_query_has_its_ranks_and_what_fusion_did(run: Command) -> None:
    found = document(run, "mixed", "--query", "q2")
    (query,) = found["queries"]
    assert (query["id"], query["text"]) == ("q2", "whales")
    relevant = next(one for one in query["documents"] if one["grade"])
    assert (relevant["id"], relevant["title"]) == ("d2", "blue whales")
    assert relevant["ranks"]["leg words"] == 1
    assert relevant["fusion"] == {"mixed": "kept"}
    assert set(found["ceilings"][0]["metrics"]) == {"RR@2", "R@2"}


def test_no_text_leaves_texts_out(run: Command) -> None:
    found = document(run, "mixed", "--no-text", "--queries", "all")
    assert len(found["queries"]) == 4
    assert not any("text" in query for query in found["queries"])
    assert run("explain mixed --no-text -v") == 0
    assert "whales" not in run.out
    assert "d2" in run.out


def test_a_metric_that_the_runs_do_not_have_is_computed(run: Command) -> None:
    found = document(run, "mixed", "--metric", "nDCG@1")
    assert found["metric"] == "nDCG@1"
    assert list(found["ceilings"][0]["metrics"]) == ["nDCG@1", "RR@2", "R@2"]


def test_a_group_and_an_order_choose_the_queries(run: Command) -> None:
    everything = document(run, "letters", "mixed", "--queries", "all")
    by_group = {q: entry["groups"][0] for q, entry in everything["values"].items()}
    found = document(run, "letters", "mixed", "--group", "Won-by-MIXED")
    assert {q["id"] for q in found["queries"]} == {
        q for q, group in by_group.items() if group == "won by mixed"
    }
    up = document(run, "letters", "mixed", "--queries", "all", "--sort", "better")
    differences = [query["difference"] for query in up["queries"]]
    assert differences == sorted(differences, reverse=True)
    down = document(run, "letters", "mixed", "--queries", "all", "--sort", "worse")
    assert [q["difference"] for q in down["queries"]] == sorted(differences)


def test_no_query_is_shown_when_none_is_wanted(run: Command) -> None:
    assert run("explain mixed --queries 0") == 0
    assert "query q" not in run.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("own",), "a single run without lists of legs"),
        (("own", "letters", "mixed"), "3 runs"),
        (("nowhere",), "no summary.json in the folder"),
        (("mixed", "--group", "lost by"), "did you mean lost by fusion"),
        (("mixed", "--query", "q9"), "query 'q9'"),
        (("mixed", "--query", "q 1"), "such as q1"),
        (("mixed", "--metric", "nDCG@10"), "nDCG@10 of rankings of 2 hits"),
        (("mixed", "--metric", "MRRR"), "metric 'MRRR'"),
        (("mixed", "--metric", ""), "one metric, such as nDCG@10; this names none"),
        (("mixed", "--metric", "num_rel_ret"), "metrics of which more is better"),
        (("mixed", "--metric", "num_ret", "--by", "stage"), "metrics of which more is better"),
        (("mixed", "--query", "q1", "--sort", "worse"), "--sort with --query"),
        (("mixed", "--query", "q1", "--group", "tie"), "--group with --query"),
        (("mixed", "--queries", "some"), "neither a number nor `all`"),
        (("mixed", "--queries", "-1"), "-1"),
        (("mixed", "--dataset", "science-mini"), "is not the one of the runs"),
        (("mixed", "--dataset", "no-such-folder"), "no-such-folder"),
    ],
)
def test_what_cannot_be_done_is_told(run: Command, arguments: tuple[str, ...], says: str) -> None:
    assert says in run.refused("explain", *arguments)


def test_runs_on_two_datasets_are_refused(project: Path, run: Command) -> None:
    qrels = project / "data" / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text(encoding="utf-8") + "q2\td1\t1\n", encoding="utf-8")
    arguments = ["--retriever", "own.yaml", "--dataset", "data", "--k", "2", "--out", "later"]
    assert run("bench", *arguments, "--profile", "smoke", "--no-pictures", "--metrics", "RR@2") == 0
    assert "2 datasets" in run.refused("explain own later")


def test_a_dataset_that_moved_is_found_where_the_option_says(project: Path, run: Command) -> None:
    manifest = project / "mixed" / "manifest.json"
    moved = json.loads(manifest.read_text(encoding="utf-8"))
    moved["dataset"]["source"] = "gone"
    manifest.write_text(json.dumps(moved), encoding="utf-8")
    (project / "mixed" / SUMS).unlink()
    assert "--dataset" in run.refused("explain mixed")
    assert run("explain mixed --dataset data") == 0
