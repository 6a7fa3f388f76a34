"""N9: a dataset in two languages is told wherever it is measured or looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.files import beir
from tests.cli.project import Command

THINGS = {
    "harbour": "der Hafen",
    "market": "der Markt",
    "bridge": "die Brücke",
    "school": "die Uni",
}


@pytest.fixture
def town(project: Path) -> Path:
    """Two languages, half of the documents and queries each."""
    documents = {
        f"{name}-{language}": text
        for name, german in THINGS.items()
        for language, text in (
            ("en", f"The {name} of the old town was built for people that came with their ships."),
            ("de", f"Warum wurde {german} der alten Stadt für die Menschen gebaut, die kamen?"),
        )
    }
    judged = [(f"q-{name}", name, 1) for name in documents]
    queries = {f"q-{name}": text for name, text in documents.items()}
    return beir(project / "town", documents, queries, judged)


@pytest.mark.slow
def test_bench_compare_doctor_and_the_report_say_so(town: Path, run: Command) -> None:
    told = "50 % of the documents and 50 % of the queries look German, not English"
    for command in ("bench bm25", "doctor bm25", "compare bm25 'own.yaml'"):
        words = [] if command.startswith("doctor") else ["--rounds", "1", "--warm-up", "0"]
        assert run(f"{command} --dataset town", *words) == 0
        assert told in run.unwrapped, command
    assert run("report @last --out page.html") == 0
    assert told in Path("page.html").read_text("utf-8")
