"""What any test of the command line prints as JSON is as the schema of its document says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrieval_bench.capabilities import SCHEMA_VERSION
from retrieval_bench.cli import console
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.notices import to_document
from retrieval_bench.runs.records import to_json
from tests.builders.files import save
from tests.builders.json_schemas import faults, name_of
from tests.cli.project import Command, make_project


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def project(here: Path) -> Path:
    return make_project(here)


@pytest.fixture(autouse=True)
def _no_pauses(no_pauses: None) -> None:
    """Of commands that run in this process."""


@pytest.fixture(autouse=True)
def _documents_are_as_their_schema_says(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    put, wrong = console.put_document, []

    def kept(shown: Documented, *, full: bool = True) -> None:
        put(shown, full=full)
        if request.path.stem != "test_console":  # it shows what it makes up
            version = {"schema_version": SCHEMA_VERSION}
            document = json.loads(to_json(version | to_document(shown.as_dict())))
            wrong.extend(faults(document, name_of(shown)))

    monkeypatch.setattr(console, "put_document", kept)
    yield
    assert not wrong


TOPICS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")

TRAPS = """
from retrieval_bench import Ranking, Retriever


class A(Retriever):
    misses = ("alpha",)

    def index(self, documents):
        list(documents)

    def search(self, query, k):
        return Ranking([] if query.text in self.misses else [f"d-{query.text}"], None)


class B(A):
    misses = ("alpha", "beta", "gamma")
"""


@pytest.fixture
def many(project: Path, run: Command) -> Command:
    """A command beside 90 queries that are six texts, each under 15 ids."""
    del project
    rows = [{"_id": f"d-{topic}", "text": topic} for topic in TOPICS]
    queries = [
        {"_id": f"{topic}{at:02}", "text": topic, "metadata": {"topic": topic}}
        for topic in TOPICS
        for at in range(15)
    ]
    for name, of in (("corpus", rows), ("queries", queries)):
        save(Path("many") / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in of))
    judged = [f"{one['_id']}\td-{one['text']}\t1" for one in queries]
    save(Path("many/qrels/test.tsv"), "\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n")
    save(Path("traps.py"), TRAPS)
    return run
