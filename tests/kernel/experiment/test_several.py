"""The same retrievers on several datasets."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError, HarnessError, RecordError
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.several import prepare_several, run_each
from retrieval_bench.measure.protocol import Protocol
from tests.builders.reference import TermOverlap

ONCE = Protocol(rounds=1, warm_up_s=0)


class Closing(TermOverlap):
    closed = 0

    def close(self) -> None:
        Closing.closed += 1


def data(name: str) -> Dataset:
    documents = [Document("d", "red apples"), Document("e", "blue whales")]
    return build_dataset(
        name, documents, [Query("q", "whales")], {"q": {"e": 1}}, split="test", language="en"
    )


def prepared(*names: str) -> list[Experiment]:
    Closing.closed = 0
    return prepare_several(
        [Closing()], [data(name) for name in names], lambda _: None, protocol=ONCE, save=False
    )


def test_the_faults_of_all_datasets_come_at_once() -> None:
    with pytest.raises(HarnessError) as caught:
        prepare_several(["bm52"], ["nowhere", "elsewhere"], lambda _: None)
    assert all(name in str(caught.value) for name in ("nowhere", "elsewhere", "bm52"))


def test_what_is_refused_closes_what_was_built() -> None:
    def refuse(experiment: Experiment) -> None:
        if experiment.dataset.name == "two":
            raise ConfigError("not that one")

    Closing.closed = 0
    with pytest.raises(ConfigError, match="not that one"):
        prepare_several([Closing()], [data("one"), data("two")], refuse, save=False)
    assert Closing.closed == 2


def test_what_was_measured_before_comes_with_what_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = run_each(prepared("one", "two", "three"))
    assert next(made)[0].summary.dataset.name == "one"
    runs = tmp_path / "results" / "runs"
    runs.rename(tmp_path / "kept")
    runs.write_text("", encoding="utf-8")
    with pytest.raises(RecordError) as caught:
        next(made)
    assert [run.summary.dataset.name for run in caught.value.runs] == ["one", "two"]
    assert Closing.closed == 3


def test_who_stops_listening_closes_the_others() -> None:
    made = run_each(prepared("one", "two"), save=False)
    next(made)
    made.close()
    assert Closing.closed == 2
