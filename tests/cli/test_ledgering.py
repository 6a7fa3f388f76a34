"""``explain --by stage``, and what ``bench``, ``compare`` and ``report`` say of parts and money."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders.files import save, save_all
from tests.cli.project import Command

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("project")]

STEPS = """

def same(text):
    return text


def shouted(text):
    return text.upper()


def longer(text):
    from retrieval_bench import report_usage

    report_usage(tokens_in=1000, tokens_out=500)
    return [text, text + " rain"]


def in_order(text, documents):
    return [-at for at, _ in enumerate(documents)]


def turned(text, documents):
    return list(range(len(documents)))
"""

PIPE = """\
name: pipe
target: pipeline
params:
  steps:
    - {rewrite: own.py:longer, price: {tokens_in: 1, tokens_out: 2}}
    - {retrieve: {target: own.py:Overlap}, depth: 2}
    - {rerank: own.py:in_order}
"""

SHOUTED = PIPE.replace("name: pipe", "name: shouted").replace("longer", "shouted")

TURNED = """\
name: turned
target: pipeline
params:
  steps:
    - {retrieve: {target: own.py:Overlap}, depth: 6}
    - {rerank: own.py:turned}
"""


@pytest.fixture
def project(project: Path) -> Path:
    with (project / "own.py").open("a", encoding="utf-8") as file:
        file.write(STEPS)
    return save_all(project, {"pipe.yaml": PIPE, "shouted.yaml": SHOUTED, "turned.yaml": TURNED})


SMOKE = ("--dataset", "data", "--k", "2")


def parts_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in document["parts"]}


def test_a_retriever_is_measured_and_asked_without_its_parts(run: Command, project: Path) -> None:
    parts = parts_of(run.json("explain pipe.yaml --by stage --rounds 1", *SMOKE))
    assert list(parts) == ["rewrite", "rerank"]
    assert {one["worth"] for one in parts.values()} <= {"undecided", "dead", "helps", "harmful"}
    assert parts["rewrite"]["cost"]["usage"]["tokens_in"] == 1000
    assert parts["rewrite"]["cost"]["money_per_1000_queries"] == pytest.approx(2.0)
    (folder,) = (project / "results" / "runs").glob("*-pipe-*")
    assert (folder / "pictures" / "parts.svg").is_file()


def test_a_saved_run_says_what_its_lists_hold_and_how_to_ask_for_the_rest(run: Command) -> None:
    assert run("bench shouted.yaml --profile smoke --no-pictures", *SMOKE) == 0
    assert run("explain @last --by stage") == 0
    assert re.search(r"^  rewrite .* not asked", run.out, re.MULTILINE)
    assert "retrieval-bench explain shouted.yaml --by stage --dataset" in run.out


def test_bench_says_in_a_line_which_part_should_go(run: Command) -> None:
    given = ["bench", "pipe.yaml", *SMOKE, "--profile", "smoke", "--no-pictures"]
    assert run(*given, "--metrics", "R@2") == 0
    assert "!  Dead: rerank." in run.out
    assert "It runs after the cut at 2: it cannot change" in " ".join(run.out.split())
    used = "cost 2 for 1,000 queries; a query takes 1,000 tokens in, 500 tokens out"
    assert used in run.unwrapped
    document = run.json(*given)
    assert [one["name"] for one in document["ledger"]["parts"]] == ["rewrite", "rerank"]
    assert document["usage"]["money_per_1000_queries"] == pytest.approx(2.0)
    assert document["usage"]["stages"]["step:rewrite"]["tokens_out"] == 500


def test_max_cost_ends_in_time_and_keeps_what_was_finished(run: Command) -> None:
    given = ["bench", "pipe.yaml", *SMOKE, "--no-pictures", "--max-cost", "0.03"]
    document = run.json(*given)
    assert document["usage"]["spent"]["money"] <= 0.03
    assert any("--max-cost" in one["text"] for one in document["warnings"])
    assert document["status"] == "complete"


def test_what_asking_without_parts_might_cost_is_kept_to(run: Command, project: Path) -> None:
    given = ["explain", "shouted.yaml", "--by", "stage", *SMOKE, "--rounds", "1"]
    save(project / "shouted.yaml", SHOUTED.replace("own.py:in_order", "own.py:paid"))
    with (project / "own.py").open("a", encoding="utf-8") as file:
        file.write(
            "\n\ndef paid(text, documents):\n"
            "    from retrieval_bench import report_usage\n"
            "    report_usage(money=0.01)\n"
            "    return in_order(text, documents)\n"
        )
    for most, known in (("100", True), ("0.1", False)):
        parts = parts_of(run.json(*given, "--max-cost", most))
        assert (parts["rewrite"]["worth"] != "unknown") == known


def test_compare_and_the_report_show_money_parts_and_paths(run: Command, project: Path) -> None:
    given = ["compare", "pipe.yaml", "turned.yaml", *SMOKE, "--rounds", "10", "--warm-up", "0"]
    assert run(*given, "--no-pictures") == 0
    assert "money / 1,000" in run.out
    assert run("report @last --out page.html") == 0
    page = (project / "page.html").read_text("utf-8")
    assert "What each part buys" in page
    assert "Small rings and solid lines: a pipeline after each of its steps." in page


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("explain @last --k 5 --margin 0.1", "--k, --margin without --by stage"),
        ("explain pipe.yaml own.yaml --by stage", "2 names with --by stage"),
        ("explain own.yaml --by stage --rounds 1", "own does not say what it is made of"),
        ("bench own.yaml --max-cost 1", "20 answers of own say nothing of money"),
    ],
)
def test_what_cannot_be_asked_is_refused(run: Command, words: str, says: str) -> None:
    assert says in run.refused(words, *(() if "@last" in words else SMOKE))


def test_explain_shows_what_steps_did_to_each_document(run: Command) -> None:
    given = ["bench", "turned.yaml", *SMOKE, "--profile", "smoke", "--no-pictures"]
    assert run(*given) == 0
    assert run("explain @last --queries 1 -v") == 0
    assert run.out.startswith("What follows retrieve loses ")
    assert "perfect reranking" in run.out
    assert re.search(r"document +reranking +grade +turned +retrieve", run.out)


def test_explain_shows_the_texts_that_were_searched_for(run: Command) -> None:
    assert run("bench pipe.yaml --profile smoke --no-pictures", *SMOKE) == 0
    assert run("explain @last --queries 1 -v") == 0
    assert re.search(r"rewrite: .+ \| .+ rain", run.out)
