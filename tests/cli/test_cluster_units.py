"""Every command that tests, or puts an interval beside a figure, takes clusters for the unit, or
says what it does instead (F10): a new one that prints such a figure stands in the table."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.cli.commands import all_commands
from tests.builders.files import save
from tests.builders.json_schemas import commands_with
from tests.cli.project import ONCE, Command

SIX = [0.358, 0.9959]
"""Five of six topics found: the interval of the mean, were each a query."""


class How(StrEnum):
    """Commands on clustered queries."""

    UNIT = "clusters are the unit of its tests and intervals"
    TOLD = "it makes none of clusters, and says so"
    CALLS = "its intervals are of calls: load and time differ, not the queries that were drawn"
    KEPT = "it shows what was measured before"
    ANSWERS = "its data are answers to questions, which have no cluster_key"


COMMANDS: Mapping[str, How] = {
    **dict.fromkeys(("bench", "compare", "explain", "tune", "doctor", "regress"), How.UNIT),
    **dict.fromkeys(("report", "label status", "score run"), How.UNIT),
    **dict.fromkeys(("label pool",), How.TOLD),
    **dict.fromkeys(("load", "duet", "lab selftest"), How.CALLS),
    **dict.fromkeys(("score reader", "score qa", "score outcomes"), How.ANSWERS),
    **dict.fromkeys(("data history", "lab submit"), How.KEPT),
}


def test_every_command_with_an_interval_or_a_p_says_what_it_does_with_clusters() -> None:
    """Those without a document of their own are asked, too."""
    printing = commands_with(r"ci\d*|p|interval|clusters|upper95|bound|ratio")
    typed = {name for name in all_commands() for of in printing if f"{of} ".startswith(f"{name} ")}
    assert COMMANDS.keys() == typed | ({*all_commands()} - commands_with(""))


@pytest.fixture
def keyed(many: Command) -> Command:
    """The 90 queries that are six topics, whose dataset says so."""
    save(Path("many/dataset.yaml"), "format: beir\ncluster_key: topic\n")
    return many


def ends(figure: Mapping[str, Any]) -> list[float]:
    return [round(end, 4) for end in figure["ci95"]]


def bench(run: Command) -> None:
    assert ends(run.json(f"bench traps.py:A {ONCE}")["metrics"]["nDCG@10"]) == SIX
    assert run("bench traps.py:A -v", *ONCE.split()) == 0
    assert "Tests and intervals are of 6 clusters (by topic)" in run.unwrapped


def compare(run: Command) -> None:
    document = run.json(f"compare traps.py:A traps.py:B {ONCE} --slices tags topic length")
    assert (document["comparisons"][0]["clusters"], document["comparisons"][0]["p"]) == (6, 0.5)
    of_words = next(one for one in document["slices"] if one["by"] == "length")
    assert {one["clusters"] for one in [of_words["whole"], *of_words["slices"]]} == {6}
    # Six clusters have no interval, as six queries have none, though they are 90.
    assert of_words["slices"][0]["systems"][0]["metrics"]["nDCG@10"]["ci95"] is None


def explain(run: Command) -> None:
    run(f"compare traps.py:A traps.py:B {ONCE}")
    document = run.json("explain A@latest B@latest")
    assert ends(document["systems"][0]) == SIX
    save(Path("both.yaml"), "target: hybrid\nparams: {legs: [traps.py:A, traps.py:B]}\n")
    ledger = run.json("explain both.yaml --dataset many --by stage")
    (a, *_) = ledger["parts"]
    assert (ledger["clusters"], a["p"], a["worth"]) == (6, 1.0, "undecided")


def tune(run: Command) -> None:
    document = run.json("tune bm25 --grid k1=1.2,2 --dataset many --folds 3")
    assert document["delta"]["clusters"] == 6
    assert document["default"]["ci95"][0] < 0.55  # all of six
    # No topic is on both sides of a fold.
    assert {row["n_held_out"] for row in document["choices"]} == {30}


def doctor(run: Command) -> None:
    document = run.json("doctor traps.py:A --dataset many")
    (figures,) = [one["figures"] for one in document["checks"] if "figures" in one]
    assert figures["judged"]["ci95"][0] < 0.5  # all of five


def regress(run: Command) -> None:
    save(Path("own.yaml"), "name: own\ntarget: traps.py:A\n")
    assert run("baseline own.yaml --dataset many --policy quality") == 0
    save(Path("own.yaml"), "name: own\ntarget: traps.py:B\n")
    run("regress own.yaml --dataset many --policy quality --format json")
    assert "6 clusters" in run.out or '"p":0.5' in run.out


def report(run: Command) -> None:
    run(f"compare traps.py:A traps.py:B {ONCE}")
    assert run("report @last --out page.html") == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "0.358" in page
    assert "Tests and intervals are of 6 clusters (by topic)" in " ".join(page.split())


def score(run: Command) -> None:
    rows = [f"{t}{at:02} Q0 d-{t} 1 1.0 x" for t in ("beta", "gamma", "zeta") for at in range(15)]
    rows += [f"{t}{at:02} Q0 d-{t} 1 1.0 x" for t in ("delta", "epsilon") for at in range(15)]
    save(Path("a.run"), "\n".join(rows) + "\n")
    document = run.json("score run a.run --dataset many --metrics nDCG@10")
    assert ends(document["metrics"]["nDCG@10"]) == SIX
    assert document["clusters"] == 6


def label(run: Command) -> None:
    assert run("label pool traps.py:A traps.py:B --dataset many") == 0
    (pair,) = run.json("label status", code=3)["population"]["pairs"]
    assert (pair["clusters"], pair["p"]) == (6, 0.5)


CHECKED: Mapping[str, Callable[[Command], None]] = {
    "bench": bench,
    "compare": compare,
    "explain": explain,
    "tune": tune,
    "doctor": doctor,
    "regress": regress,
    "report": report,
    "score run": score,
    "label status": label,
}


@pytest.mark.slow
@pytest.mark.parametrize("command", [name for name, how in COMMANDS.items() if how is How.UNIT])
def test_f10_six_topics_are_six_whatever_the_command(keyed: Command, command: str) -> None:
    CHECKED[command](keyed)


TESTS = frozenset(
    {"paired_tests", "mean_intervals", "mean_interval", "averaged", "bootstrap_means", "PairJudge"}
    | {"randomization_p", "mean_below_p"}
)
"""What makes intervals and p of queries."""

WITHOUT: Mapping[str, str] = {
    "retrieval_bench_explain/diff.py": "values alone, to see how much is judged",
    "retrieval_bench_load/engine/quality.py": How.CALLS,
    "retrieval_bench_answers/reader.py": How.ANSWERS,
    "retrieval_bench_score/scorecard.py": "no query at all, where ids are those of another dataset",
    "retrieval_bench_score/thresholds.py": "queries without an answer, told as held out",
}
"""Module -> why it takes queries for independent."""


def test_what_makes_intervals_of_queries_is_given_their_clusters() -> None:
    harness = Path(__file__).parents[2] / "harness"
    bare: dict[str, int] = {}
    for path in sorted(harness.glob("retrieval_bench*/**/*.py")):
        name = str(path.relative_to(harness))
        if name.startswith("retrieval_bench/stats/"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func).rpartition(".")[2]
            if called in TESTS and "clusters" not in {word.arg for word in node.keywords}:
                bare[name] = node.lineno
    assert bare.keys() == WITHOUT.keys(), bare
