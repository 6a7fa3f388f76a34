"""Answers add readers, shared tasks and published figures to ``score`` and ``lab``."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_answers"

CAPABILITY = Capability(
    rank=130,
    stands_on=("retrieval_bench_exchange", "retrieval_bench_score"),
    commands={
        "score reader": Command(
            f"{_PACKAGE}.commands.reader:run_reader",
            "score the answers that a reader extracted",
            (
                "--gold dev.json --predictions answers.json",
                "--gold dev.json --predictions answers.jsonl --per-question",
                "--gold dev.json --predictions answers.json --denominator retrieved --run my.run",
            ),
        ),
        "score qa": Command(
            f"{_PACKAGE}.commands.qa:run_qa",
            "a retriever and a reader, end to end",
            (
                "bm25 --dataset my/folder",
                "bm25 --dataset my/folder --reader my.py:read",
                "hybrid --dataset my/folder --reader models/reader",
            ),
        ),
        "score outcomes": Command(
            f"{_PACKAGE}.commands.outcomes:run_outcomes",
            "rates of labelled answers, and which of them differ",
            ("answers.jsonl", "answers.jsonl --by source", "answers.jsonl --format json"),
        ),
        "lab reproduce": Command(
            f"{_PACKAGE}.commands.reproduce:run_reproduce",
            "published figures, measured anew beside the published",
            ("", "--paper scifact", "--format markdown"),
        ),
        "lab submit": Command(
            f"{_PACKAGE}.commands.qa:run_submit",
            "a file for the leaderboard of a shared task",
            ("bm25", "bm25 --dev ids.txt", "hybrid --out submission.csv"),
        ),
    },
    documents={
        "reader": Document("score reader", f"{_PACKAGE}.reader_scores:ReaderDetails"),
        "qa": Document("score qa", f"{_PACKAGE}.question_answering:QuestionAnswering"),
        "outcomes": Document("score outcomes", f"{_PACKAGE}.outcomes:Outcomes"),
        "submit": Document("lab submit", f"{_PACKAGE}.submission:Submission"),
        "reproduce": Document("lab reproduce", f"{_PACKAGE}.reproduction.check:Papers"),
    },
    formats={
        "scienceqa": f"{_PACKAGE}.formats.scienceqa:FORMAT",
        "halubench": f"{_PACKAGE}.formats.halubench:FORMAT",
    },
    names={"reader": f"{_PACKAGE}.api:reader"},
)
