"""Datasets of the package ir_datasets: its own classes over local files, never the network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from retrieval_bench import bench
from retrieval_bench.cli import main
from retrieval_bench.core.errors import ConfigError, DataError, MissingDependencyError
from retrieval_bench.core.installed.installation import how_to_add
from retrieval_bench.data import load_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.reports.render.table import text_of
from retrieval_bench_exchange.formats import irds
from retrieval_bench_exchange.tables.export import fetch_tables
from tests.builders import some
from tests.builders.own_irds import DUA, NOWHERE, own_irds


class Titled(NamedTuple):
    doc_id: str
    title: str | None
    text: Any
    year: int

    def default_text(self) -> str:
        return f"{self.title} {self.text}"


class Parts(NamedTuple):
    doc_id: str
    title: str
    headline: str
    body: str

    def default_text(self) -> str:
        return f"{self.title} {self.headline} {self.body}"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with own_irds(tmp_path, monkeypatch) as ir_datasets:
        yield ir_datasets


def test_documents_queries_and_judgements_become_a_dataset(package: Any) -> None:
    data = load_dataset("ir_datasets:rb-own/test")
    assert (data.name, data.split, data.language) == ("rb-own/test", "test", "en")
    assert [(d.id, d.title, d.text) for d in some(data.documents)][1] == ("d2", "", "바다는 깊다.")
    assert len(some(data.documents)) == 3
    assert [query.text for query in data.evaluated] == [
        "how deep is the sea?",
        "바다는 얼마나 깊은가?",
    ]
    # a judgement for each subtopic: the best grade counts
    assert data.qrels == {"q1": {"d1": 1}, "q2": {"d2": 2, "d3": -1}}


@pytest.mark.slow
def test_it_can_be_measured_by_its_name(package: Any, tmp_path: Path) -> None:
    result = bench(
        "bm25", "ir_datasets:rb-own", k=3, protocol=Protocol(rounds=1), out=tmp_path / "run"
    )
    assert result.summary["dataset"]["name"] == "rb-own/test"
    assert result.summary["metrics"]["RR@3"]["mean"] == 1.0


def test_splits_are_parts_of_the_name(package: Any) -> None:
    assert list(load_dataset("ir_datasets:rb-own", "train").qrels) == ["q2"]
    assert load_dataset("ir_datasets:rb-own/train").split == "train"
    with pytest.raises(ConfigError, match="ir_datasets:rb-own with --split train"):
        load_dataset("ir_datasets:rb-own/test", "train")
    with pytest.raises(
        ConfigError, match="as rb-own/bought, rb-own/far, rb-own/test, rb-own/train"
    ):
        load_dataset("ir_datasets:rb-own", "dev")


def test_an_unknown_name_is_answered_with_close_ones(package: Any) -> None:
    with pytest.raises(ConfigError, match="did you mean ir_datasets:beir/scifact") as caught:
        load_dataset("ir_datasets:beir/scifct")
    assert "https://ir-datasets.com" in str(caught.value)


def test_fields_become_title_text_and_metadata_and_missing_values_nothing() -> None:
    document = irds._document(Titled("d", None, float("nan"), 1999))
    assert (document.title, document.text, document.metadata) == ("", "", {"year": 1999})
    document = irds._document(Titled("d", "T", "text", 1999))
    assert (document.title, document.text) == ("T", "text")
    # without a field `text` the default text holds the title already
    document = irds._document(Parts("d", "T", "H", "B"))
    assert (document.title, document.text) == ("", "T H B")


def test_nothing_is_downloaded_unasked(
    package: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never(self: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(package.util.download.RequestsDownload, "stream", never)
    with pytest.raises(ConfigError) as caught:
        load_dataset("ir_datasets:rb-own/far")
    told = str(caught.value)
    assert "not on this machine: 1.2 MB to fetch from " + NOWHERE in told
    assert f"licence: {DUA}" in told
    assert "retrieval-bench data fetch ir_datasets:rb-own/far --download" in told
    # what is in the package's folder already is used
    (tmp_path / "home" / "corpus.tsv").write_bytes((tmp_path / "corpus.tsv").read_bytes())
    assert len(load_dataset("ir_datasets:rb-own/far").documents or ()) == 3


def test_a_host_that_cannot_be_reached_is_told_whole(package: Any) -> None:
    with pytest.raises(DataError) as caught:
        irds.load_irds("ir_datasets:rb-own/far", "test", download=True)
    told = str(caught.value)
    assert "ir_datasets:rb-own/far cannot be fetched: NewConnectionError" in told
    assert f"where: {NOWHERE}" in told
    assert "--dataset path/to/folder" in told
    # what guards the network is taken away again
    assert package.util.Download.path.__name__ == "path"


@pytest.mark.parametrize("download", [False, True])
def test_a_file_that_nobody_may_hand_on_is_told_with_its_place(
    package: Any, tmp_path: Path, download: bool
) -> None:
    with pytest.raises(DataError) as caught:
        irds.load_irds("ir_datasets:rb-own/bought", "test", download=download)
    told = str(caught.value)
    assert f"a file that nobody may hand on: {tmp_path / 'home' / 'bought.tsv'}" in told
    assert "get it as https://ir-datasets.com/rb-own.html#rb-own/bought says" in told


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ir_datasets", None)
    with pytest.raises(MissingDependencyError, match="pip install ir_datasets") as caught:
        load_dataset("ir_datasets:beir/scifact/test")
    assert how_to_add("ir-datasets") in caught.value.fix


class TestFetch:
    def test_without_the_option_it_shows_and_fetches_nothing(
        self, package: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["data", "fetch", "--dataset", "ir_datasets:rb-own/far"]) == 2
        captured = capsys.readouterr()
        for shown in ("1.2 MB", NOWHERE, DUA, "https://ir-datasets.com/rb-own.html#rb-own/far"):
            assert shown in captured.out
        assert "nothing was fetched: add --download" in captured.err

    def test_what_is_here_already_is_checked(
        self, package: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        name = "ir_datasets:rb-own/test"
        assert main(["data", "fetch", "--dataset", name, "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["fingerprint"] == load_dataset(name).fingerprint
        assert (document["fetched"], document["missing"]) == (False, [])

    def test_size_and_licence_come_before_the_download(
        self, package: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        arguments = ["data", "fetch", "--dataset", "ir_datasets:rb-own/far", "--download"]
        assert main(arguments) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"fetching 1.2 MB from {NOWHERE}; licence: {DUA}")
        assert "cannot be fetched" in told
        served = package.util.download.LocalDownload(
            Path(package.util.home_path()).parent / "corpus.tsv"
        )
        monkeypatch.setattr(
            package.util.download.RequestsDownload, "stream", lambda self: served.stream()
        )
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert "It was fetched: use it with --dataset ir_datasets:rb-own/far." in out
        assert len(load_dataset("ir_datasets:rb-own/far").documents or ()) == 3

    def test_a_file_that_nobody_may_hand_on_is_not_to_be_fetched(
        self, package: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        place = Path(package.util.home_path()) / "bought.tsv"
        arguments = ["data", "fetch", "--dataset", "ir_datasets:rb-own/bought"]
        assert main([*arguments, "--format", "json"]) == 2
        captured = capsys.readouterr()
        document = json.loads(captured.out)
        assert (document["missing"], document["by_hand"]) == ([], [str(place)])
        assert (document["fetched"], document["fingerprint"]) == (False, None)
        assert "--download" not in captured.err
        assert main(arguments) == 2
        assert "to put in place" in capsys.readouterr().out
        # asked to fetch it all the same, it does not send the user in a circle
        assert main([*arguments, "--download"]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert f"nobody may hand on: {place}" in told
        assert "--download" not in told
        place.write_bytes((Path(package.util.home_path()).parent / "corpus.tsv").read_bytes())
        assert main(arguments) == 0

    def test_another_dataset_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["data", "fetch", "--dataset", "science-mini"]) == 2
        assert "accepted: ir_datasets:NAME" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "told"), [("beir/arguana", 1), ("beir/scifact/test", 0)])
def test_fetch_says_whose_queries_are_documents(name: str, told: int) -> None:
    facts = irds.Facts(name, "test", 3, 2, 2, (), (), 0, "", "page", "folder")
    (table,) = fetch_tables(facts, None, fetched=False)
    assert sum("--self-hits drop" in text_of(note) for note in table.notes) == told
