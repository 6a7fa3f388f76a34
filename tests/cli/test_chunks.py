"""Chunks and spans as a user sees them: measured, compared, explained, exported and looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrieval_bench.data import load_dataset
from tests.builders.files import save_all
from tests.cli.project import Command

LEAVE = "Annual leave is 25 days. Sick leave is paid. " + "Ask the office for more. " * 30
TRAVEL = "Train tickets are paid in full. " + "The form is in the office. " * 30 + "Rail is best."
SPANS = [
    {"id": "q1", "text": "annual leave days", "spans": [{"document": "leave", "quote": "25 days"}]},
    {
        "id": "q2",
        "text": "rail train tickets",
        "spans": [
            {"document": "travel", "quote": "Train tickets are paid in full."},
            {"document": "travel", "quote": "Rail is best."},
        ],
    },
]
QUICK = "--dataset pages --k 5 --no-pictures --rounds 1 --warm-up 0"


@pytest.fixture(autouse=True)
def project(here: Path) -> Path:
    documents = [{"id": "leave", "text": LEAVE}, {"id": "travel", "text": TRAVEL}]
    files = {
        "pages/documents.jsonl": "\n".join(map(json.dumps, documents)),
        "pages/spans.jsonl": "\n".join(map(json.dumps, SPANS)),
        "cut.yaml": "target: bm25\nchunk: {by: sentences, size: 40}\n",
    }
    return save_all(here, files)


def test_bench_prints_recall_precision_and_iou_at_a_budget(run: Command) -> None:
    assert run(f"bench cut.yaml {QUICK}") == 0
    assert "cut on pages: SpanR(tokens=1000) 1.000" in run.out
    assert "SpanP(tokens=1000)" in run.out
    assert "SpanIoU(tokens=1000)" in run.out
    assert "no ranking can be that long" not in run.unwrapped
    facts = run.json(f"bench cut.yaml {QUICK}")["spans"]
    assert facts["filled"] == {"500": 0, "1000": 0, "2000": 0}
    assert 0 < facts["tokens_to_90"] <= facts["tokens_delivered"]


def test_compare_and_the_report_draw_recall_over_tokens(run: Command, here: Path) -> None:
    shown = QUICK.replace("--no-pictures ", "")
    assert run(f"compare bm25+sentences-40 bm25+characters-20 {shown}") == 0
    drawn = [*(here / "results" / "runs").glob("*/pictures/recall-over-tokens.svg")]
    assert len(drawn) == 2
    assert "bm25+characters-20" in drawn[0].read_text(encoding="utf-8")
    assert run("report @last --out page.html") == 0
    assert "Recall of spans over tokens" in (here / "page.html").read_text(encoding="utf-8")
    curve = run.json(f"bench cut.yaml {QUICK}")["spans"]["curve"]
    assert list(curve.values()) == sorted(curve.values())
    assert curve["4000"] == 1


def test_compare_and_explain_show_what_another_chunker_does(run: Command) -> None:
    assert run(f"compare bm25+sentences-40 bm25+characters-20 bm25 {QUICK}") == 0
    assert "bm25+characters-20" in run.out
    assert run("explain @last --spans --token-price 2") == 0
    assert "3 spans of 2 queries in 3 runs" in run.unwrapped
    assert "cut in 2" in run.unwrapped
    assert "money" in run.unwrapped
    document = run.json("explain @last --spans")
    sentences, windows, whole = document["runs"]
    assert sentences["counts"] == {"whole": 3, "cut": 0, "part": 0, "gone": 0}
    assert windows["counts"]["whole"] < 3
    assert whole["counts"]["whole"] == 3
    assert whole["best_precision"] is None
    assert 0 < sentences["best_precision"] < windows["best_precision"] < 1
    assert {fate["fate"] for span in document["spans"] for fate in span["fates"]} > {"whole"}


def test_what_explain_cannot_say_of_spans_is_refused(run: Command) -> None:
    assert run(f"bench cut.yaml {QUICK}") == 0
    assert "--token-price without --by stage or --spans" in run.refused(
        "explain @last --token-price 2"
    )
    for price in ("nan", "-1", "inf", "abc"):
        refused = run.refused(f"explain @last --spans --token-price={price}")
        assert f"{price} is no amount of money: 0 or more" in refused
    assert run("bench bm25 --no-pictures --rounds 1 --warm-up 0") == 0
    assert "a dataset whose truth is by spans" in run.refused("explain @last --spans")


def test_a_chunker_that_is_none_is_refused_with_those_that_there_are(run: Command) -> None:
    told = run.refused(f"bench bm25+words-40 {QUICK}")
    assert "characters, sentences, paragraphs, recursive, markdown" in told
    assert "at most half of the size" in run.refused(f"bench bm25+tokens-40-30 {QUICK}")


def test_spans_are_exported_with_what_stands_around_them(run: Command, here: Path) -> None:
    assert run("data export pages --to spans --out out") == 0
    again, before = load_dataset(here / "out"), load_dataset(here / "pages")
    assert again.qrels["q2"].truth == before.qrels["q2"].truth  # type: ignore[attr-defined]
    line = json.loads((here / "out" / "spans.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert line["spans"][0]["before"] == "Annual leave is "
    assert len(line["spans"][0]["after"]) == 32
    assert len(line["spans"][0]["hash"]) == 16


def test_doctor_looks_at_spans_and_report_verifies_them(run: Command) -> None:
    assert run("doctor --retriever cut.yaml --dataset pages --k 5") in (0, 3)
    assert "3 spans of 2 queries" in run.unwrapped
    assert run(f"compare cut.yaml bm25 {QUICK}") == 0
    assert run("report @last --out page.html") == 0
    assert run("report --verify page.html") == 0
    assert run("explain @last --query q2") == 0
    assert "travel#" in run.unwrapped


def test_the_ledger_prices_a_chunker(run: Command) -> None:
    tokens = run.json(f"bench cut.yaml {QUICK}")["spans"]["tokens_delivered"]
    assert run("explain @last --by stage --token-price 2") == 0
    assert "sentences-40" in run.out
    assert "Not asked: sentences-40: what it buys is what `compare` says" in run.unwrapped
    assert "next:" not in run.out
    (part,) = run.json("explain @last --by stage --token-price 2")["parts"]
    assert (part["kind"], part["worth"]) == ("chunker", "unknown")
    assert part["cost"]["usage"] == {"tokens_delivered": tokens}
    assert part["cost"]["money_per_1000_queries"] == pytest.approx(2 * tokens * 1_000 / 1e6)
    assert run("bench bm25 --no-pictures --rounds 1 --warm-up 0") == 0
    assert "truth is by spans" in run.refused("explain @last --by stage --token-price 2")
