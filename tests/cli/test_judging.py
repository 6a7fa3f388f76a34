"""The command ``label start``: a page, or a file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from retrieval_bench_labels.commands import start as judging
from retrieval_bench_labels.store import Store
from tests.builders.labels import make_pool, make_store, said
from tests.builders.marks import also
from tests.cli.project import Command

FILE = Path("results") / "labels" / "sample.sqlite"


@pytest.fixture
def store(here: Path) -> Store:
    return make_store(FILE)


@pytest.mark.usefixtures("store")
class TestTheFile:
    def test_it_is_written_for_whoever_opens_it(self, run: Command) -> None:
        assert run("label start --offline out/all.html") == 0
        assert run.out.startswith("out/all.html holds the page for whoever opens it.")
        assert "label import FILE" in run.out
        assert '"who": ""' in Path("out/all.html").read_text(encoding="utf-8")

    def test_it_is_written_for_somebody(self, run: Command) -> None:
        assert run.json("label start --offline ben.html --who ben")["who"] == "ben"
        assert '"who": "ben"' in Path("ben.html").read_text(encoding="utf-8")

    def test_a_folder_is_not_replaced(self, run: Command) -> None:
        assert "would replace a folder" in run.refused("label start --offline results")


@pytest.mark.usefixtures("here")
class TestWhatIsRefused:
    def test_there_is_no_file_of_labels(self, run: Command) -> None:
        assert "do: make one: retrieval-bench label pool @last" in run.refused("label start")

    def test_there_is_no_pool_in_it(self, run: Command) -> None:
        Store.create(Path("empty.sqlite"))
        told = run.refused("label start --labels empty.sqlite")
        assert "no pool in the file of labels" in told

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            *((("--who", who), "name") for who in ("", "a\nb", "x" * 81)),
            *(((f"--port={port}",), f"port {port} cannot be used") for port in ("-1", "65536")),
        ],
    )
    @pytest.mark.usefixtures("store")
    def test_an_option_that_cannot_be(
        self, run: Command, words: tuple[str, ...], says: str
    ) -> None:
        assert says in run.refused("label start", *words)


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command in a process of its own, and the lines that it begins with."""
    command = (sys.executable, "-m", "retrieval_bench", "label", "start", *words)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, [process.stdout.readline()]
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> str:
    """The rest of what it prints."""
    assert process.stdout is not None
    rest = process.stdout.read()
    process.wait(20)
    return rest


@pytest.mark.slow
@pytest.mark.usefixtures("store")
class TestThePage:
    @pytest.mark.parametrize("end", [signal.SIGINT, *also(signal.SIGTERM)])
    def test_it_ends_and_says_how_far_it_is(self, store: Store, end: signal.Signals) -> None:
        with started("--no-browser") as (process, (first,)):
            assert first.startswith("Judge here: http://127.0.0.1:")
            with urllib.request.urlopen(first.split()[-1]) as reply:
                assert b"Judge documents" in reply.read()
            store.add(said(make_pool(), "q0", "d0-0", "anna", 1))
            process.send_signal(end)
            rest = ended(process)
        assert process.returncode == 0
        assert "Every answer is kept. 0 of 3 questions and 1 of 9 documents are judged" in rest
        assert rest.endswith("next:  retrieval-bench label status\n")

    def test_the_url_is_all_that_is_printed_where_that_is_wanted(self) -> None:
        with started("--no-browser", "--quiet") as (process, (url,)):
            process.send_signal(signal.SIGINT)
            rest = ended(process)
        assert url.startswith("http://127.0.0.1:")
        assert rest == ""

    def test_it_is_a_document_for_scripts(self) -> None:
        with started("--no-browser", "--format", "json") as (process, (first,)):
            process.send_signal(signal.SIGINT)
            rest = ended(process)
        found = json.loads(first + rest)
        assert found["url"].startswith(f"http://127.0.0.1:{found['port']}/")


class TestTheBrowser:
    @pytest.mark.parametrize(
        ("terminal", "variables", "wanted"),
        [
            (True, {"DISPLAY": ":0"}, True),
            (True, {"WAYLAND_DISPLAY": "x"}, True),
            (True, {}, False),
            (False, {"DISPLAY": ":0"}, False),
            (True, {"DISPLAY": ":0", "SSH_CONNECTION": "x"}, False),
        ],
    )
    def test_it_is_opened_where_somebody_sees_it(
        self,
        monkeypatch: pytest.MonkeyPatch,
        terminal: bool,
        variables: dict[str, str],
        wanted: bool,
    ) -> None:
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.platform", "linux")
        monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
        assert judging._has_display() is wanted
