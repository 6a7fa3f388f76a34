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

    def kept(shown: Documented) -> None:
        put(shown)
        if request.path.stem != "test_console":  # it shows what it makes up
            version = {"schema_version": SCHEMA_VERSION}
            document = json.loads(to_json(version | to_document(shown.as_dict())))
            wrong.extend(faults(document, name_of(shown)))

    monkeypatch.setattr(console, "put_document", kept)
    yield
    assert not wrong
