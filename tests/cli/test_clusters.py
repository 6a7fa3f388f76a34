"""Queries in clusters, and one question under many ids, as a user meets them (F10)."""

from __future__ import annotations

from pathlib import Path

from tests.builders.files import save
from tests.cli.project import ONCE, Command


def test_f10_without_a_key_the_copies_are_told_with_the_verdict_that_they_change(
    many: Command,
) -> None:
    assert many(f"compare traps.py:A traps.py:B {ONCE}") == 0
    text = " ".join(many.out.split())
    assert "90 queries have 6 different texts, or nearly." in text
    assert "nDCG@10 says B against A: can't tell in place of worse." in text
    assert text.count("6 different texts") == 1
    assert "these queries can't tell which is better in nDCG@10." in text
    assert "Here queries of nearly the same text count as one question." in text
    assert "significantly better" not in text
    assert "p .500" in text
    assert many(f"bench traps.py:A {ONCE}") == 0
    text = " ".join(many.out.split())
    assert "the interval of nDCG@10 is [0.358, 0.996] in place of [0.740, 0.904]" in text


def test_f10_with_the_key_six_topics_decide(many: Command) -> None:
    save(Path("many/dataset.yaml"), "format: beir\ncluster_key: topic\n")
    document = many.json(f"compare traps.py:A traps.py:B {ONCE}")
    first = document["comparisons"][0]
    assert (first["n"], first["clusters"], first["p"]) == (90, 6, 0.5)
    assert first["verdict"] == "undecided"
    assert not any("different texts" in text for text in document["warnings"])
    # A saved run knows its clusters.
    again = many.json("compare A@latest B@latest")["comparisons"][0]
    assert (again["clusters"], again["p"], again["ci"]) == (6, 0.5, first["ci"])
    until = "compare traps.py:A traps.py:B --dataset many --no-pictures --until-decided"
    assert many(until) == 2
    assert "whose queries come in clusters" in many.err
    # The mean of these very queries is of no other cluster.
    assert many(f"{until} split") == 0


def test_f10_bets_on_copies_are_told_with_the_verdict_that_they_change(many: Command) -> None:
    until = "compare traps.py:A traps.py:B --dataset many --no-pictures --until-decided"
    assert many(until) == 0
    assert "queries have 6 different texts, or nearly." in many.unwrapped
    assert "nDCG@10 says B against A: can't tell in place of worse." in many.unwrapped
    assert many(f"{until} split") == 0
    assert "different texts" not in many.unwrapped


def test_a_key_that_no_query_has_is_refused_with_those_there_are(many: Command) -> None:
    save(Path("many/dataset.yaml"), "format: beir\ncluster_key: topik\n")
    assert many(f"bench traps.py:A {ONCE}") == 2
    assert "did you mean topic?" in many.err
    assert "indexing" not in many.err  # before anything is measured
