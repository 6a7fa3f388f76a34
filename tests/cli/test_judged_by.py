"""``compare --judged-by`` in a user's folder: people's labels of some queries, a model's of all."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from retrieval_bench.data import load_dataset
from retrieval_bench_labels.label import Kind, Pair
from tests.builders.judged import label_all, only_store, truth_of
from tests.cli.project import Command

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hardly_warm")]

ONCE = ("--rounds", "1", "--warm-up", "0", "--no-pictures", "--metrics", "nDCG@5", "R@5")
WORDS = "name: words\ntarget: bm25\nparams: {tokenizer: {name: ngram, n: 2}, k1: 3.0, b: 0.0}\n"
LONG = "name: long\ntarget: bm25\nparams: {k1: 2.5, b: 1.0}\n"
STORE = "results/labels/science-mini.sqlite"


@pytest.fixture
def pooled(run: Command, project: Path) -> Command:
    """A pool of two systems, runs of three, and nothing judged."""
    for name, text in (("words", WORDS), ("long", LONG)):
        (project / f"{name}.yaml").write_text(text, encoding="utf-8")
    systems = ("bm25", "words.yaml", "long.yaml", "--k", "5")
    assert run("compare", *systems, *ONCE) == 0
    assert run("label pool bm25@latest words@latest --depth 5") == 0
    return run


def judged(people: int, *, kappa: float = 0.9, model: bool = True) -> None:
    """The first ``people`` queries that change anything by anna, all by a model."""
    true, rng = truth_of(load_dataset("science-mini").qrels), random.Random(0)
    store = only_store()
    first = [query.id for query in store.pool().queries if query.weight > 0][:people]
    label_all(store, "anna", Kind.PERSON, lambda q, d: true(Pair(q, d)) if q in first else None)
    if model:

        def grade(query: str, doc: str) -> int:
            right = true(Pair(query, doc))
            return right if rng.random() < kappa else int(rng.random() < 0.2)

        label_all(store, "gpt", Kind.MODEL, grade)


def test_both_verdicts_stand_beside_each_other_and_the_fit_before_them(pooled: Command) -> None:
    judged(40)
    assert pooled("compare bm25@latest words@latest --judged-by", STORE) == 0
    fit, verdict = pooled.out.index("Is gpt fit to judge?"), pooled.out.index("people alone")
    assert fit < verdict
    for words in (
        "base rate",
        "an answer that is always the same",
        "Cohen's kappa",
        "rho",
        "worth",
    ):
        assert words in pooled.out
    assert "Judged by anna (person" in pooled.unwrapped
    made = pooled.json("compare bm25@latest words@latest --judged-by", STORE)
    (deciding, other) = made["pairs"]
    assert [deciding["both"]["metric"], other["both"]["metric"]] == ["nDCG@5", "R@5"]
    assert deciding["decided_by"] == "people and model"
    assert deciding["rho"] > 0.6
    assert deciding["worth"] > made["queries_people"]
    narrow, wide = (deciding[of]["ci"] for of in ("both", "people"))
    assert narrow[1] - narrow[0] < wide[1] - wide[0]
    assert made["queries_both"] == made["queries_people"] >= 40
    assert made["fit"]["kappa"]["value"] > 0.6


def test_a_third_system_whose_hits_nobody_judged_is_not_comparable_and_the_others_are(
    pooled: Command,
) -> None:
    judged(40)
    made = pooled.json("compare bm25@latest words@latest long@latest --judged-by", STORE)
    words = {(p["both"]["a"], p["both"]["b"]): p["both"]["verdict"] for p in made["pairs"]}
    assert words["bm25", "long"] == words["words", "long"] == "not comparable"
    assert words["bm25", "words"] != "not comparable"


def test_where_hard_queries_came_first_people_alone_decide(pooled: Command) -> None:
    assert pooled("label pool bm25@latest words@latest --depth 5 --for split") == 0
    judged(40)
    made = pooled.json("compare bm25@latest words@latest --judged-by", STORE)
    assert "--for split" in made["why_people"]
    assert {pair["decided_by"] for pair in made["pairs"]} == {"people"}
    assert [p["both"]["ci"] for p in made["pairs"]] == [p["people"]["ci"] for p in made["pairs"]]


def test_what_says_nothing_beside_labels_is_refused_and_leaks_are_looked_for(
    pooled: Command,
) -> None:
    judged(10)
    two = ("compare bm25@latest words@latest --judged-by", STORE)
    assert "--fuse with --judged-by" in pooled.refused(*two, "--fuse")
    assert "--until-decided" in pooled.refused(*two, "--until-decided", "split")
    anew = ("compare bm25 words.yaml --k 5 --no-leaks --judged-by", STORE, *ONCE)
    assert pooled(*anew) == 4
    assert "--no-leaks shows nothing of bm25" in pooled.err


def test_without_labels_of_a_model_it_says_how_to_get_some(pooled: Command) -> None:
    judged(10, model=False)
    told = pooled.refused("compare bm25@latest words@latest --judged-by", STORE)
    assert "labels of no model" in told
    assert "label judge" in told


def test_a_model_alone_decides_nothing_in_the_status(pooled: Command) -> None:
    judged(0)
    status = pooled.json("label status", code=3)
    assert list(status["whose"]) == ["science-mini"]
    assert status["models"] == {"gpt": status["completeness"]["pairs"]}
    assert status["completeness"]["finished"] < status["completeness"]["queries"]
    assert status["fit"][0]["differences"] == status["fit"][0]["alarms"] == []
    assert pooled("label status") == 3
    assert "Labels of models count in no verdict here: gpt" in pooled.unwrapped


def test_status_shows_the_fit_and_no_verdict_that_a_model_had_a_part_in(pooled: Command) -> None:
    judged(0)
    judged(30, model=False)
    pooled("label status --format json")
    status = json.loads(pooled.out)
    assert list(status["whose"]) == ["anna", "science-mini"]
    assert not status["population"]["complete"]
    (fit,) = status["fit"]
    assert (fit["judge"], fit["queries"]) == ("gpt", 30)
    assert {alarm["kind"] for alarm in fit["alarms"]} == {"circular", "lexical"}
    (pair,) = fit["differences"]
    assert pair["systems"] == ["bm25", "words"]
    assert pair["rho"] > 0.5
    assert pooled("label status") == 3
    for words in ("Is gpt fit to judge?", "words against bm25: rho", "No alarm"):
        assert words in pooled.out


def test_a_judge_is_asked_for_what_is_left_and_its_record_is_in_the_fit(pooled: Command) -> None:
    judged(30, model=False)
    own = "def grade(query, document):\n    return {'grade': len(query) % 2, 'cost': 0.5}\n"
    Path("judge.py").write_text(own, encoding="utf-8")
    assert pooled("label judge judge.py:grade --who mine --max-cost 10") == 3
    assert "mine judged 20 documents" in pooled.out
    made = pooled.json("label judge judge.py:grade --who mine --workers 2")
    assert (made["left"], made["asked"]) == (0, made["calls"] - 20)
    again = pooled.json("compare bm25@latest words@latest --judged-by", STORE)
    assert again["fit"]["cost"] == 0.5
    assert again["fit"]["queries"] == again["queries_both"]


def test_labels_of_a_judge_come_from_a_file_as_well(pooled: Command) -> None:
    judged(10, model=False)
    pool = only_store().pool()
    lines = [f"{pair.query_id} 0 {pair.doc_id} 1\n" for pair in pool.pairs]
    Path("graded.txt").write_text("".join(lines), encoding="utf-8")
    (first, *_) = pool.queries
    assert pooled("label judge graded.txt --who gpt --prompted", first.id) == 0
    assert f"{len(lines):,} judgements of gpt (model) added" in pooled.out
    assert only_store().fact("judges")["gpt"]["prompted"] == [first.id]
    assert "--max-cost" in pooled.refused("label judge graded.txt --who gpt --max-cost 1")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("label judge judge.py:grade --who mine --workers 0", "--workers 0"),
        ("label judge judge.py:grade --who anna", "name of a person"),
        ("label judge nothing.yaml --who mine", "nothing.yaml"),
        ("label judge judge.py:grade --who mine --prompted q-none", "not in the pool"),
    ],
)
def test_what_cannot_be_asked_is_refused(pooled: Command, words: str, told: str) -> None:
    judged(2, model=False)
    Path("judge.py").write_text("def grade(query, document):\n    return 1\n", encoding="utf-8")
    assert told in pooled.refused(words)
