from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench import bench, load_dataset
from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.data import found_at
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import parse_metrics
from retrieval_bench.runs.dataset import dataset_of
from retrieval_bench.runs.records import read_run
from retrieval_bench.runs.run import Run, only_metrics
from tests.builders import some
from tests.builders.files import save_all
from tests.builders.page_sample import make_dataset, make_runs

BEIR = {
    "corpus.jsonl": '{"_id": "1", "text": "Seoul is a city"}\n{"_id": "2", "text": "도시 이름"}\n',
    "queries.jsonl": '{"_id": "q", "text": "city"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\t1\t1\n",
}


def folder(root: Path, **changes: str) -> Path:
    files = {name: changes.get(name.partition(".")[0], text) for name, text in BEIR.items()}
    return save_all(root, files)


def measured(data: object, out: Path) -> Run:
    kept = bench("bm25", data, protocol=Protocol(rounds=1, warm_up_s=0), out=out)  # type: ignore[arg-type]
    return read_run(some(kept.folder))


@pytest.mark.slow
def test_a_run_finds_its_dataset_again_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    run = measured("data", tmp_path / "run")
    monkeypatch.chdir(os.sep)
    found = dataset_of([run])
    assert [query.text for query in found.queries] == ["city"]
    assert found.fingerprint == run.summary.dataset.fingerprint


def test_names_stay_names_and_objects_have_no_place(tmp_path: Path) -> None:
    assert found_at("science-mini") == "science-mini"
    assert found_at("my_module:function") == "my_module:function"
    assert (
        measured(load_dataset("science-mini"), tmp_path / "run").manifest["dataset"]["source"]
        is None
    )


def test_a_dataset_that_changed_or_moved_is_refused(tmp_path: Path) -> None:
    data = folder(tmp_path / "data")
    run = measured(str(data), tmp_path / "run")
    moved = Path(shutil.move(data, tmp_path / "moved"))
    with pytest.raises(ConfigError, match="not found again") as missing:
        dataset_of([run])
    assert "--dataset" in str(missing.value)
    assert dataset_of([run], moved).fingerprint == run.summary.dataset.fingerprint
    other = folder(tmp_path / "other", queries='{"_id": "q", "text": "another"}\n')
    with pytest.raises(DataError, match="not the one of the runs"):
        dataset_of([run], other)


@pytest.mark.slow
def test_runs_on_different_datasets_have_no_common_one(tmp_path: Path) -> None:
    one = measured(str(folder(tmp_path / "a")), tmp_path / "1")
    two = measured("science-mini", tmp_path / "2")
    with pytest.raises(ConfigError, match="2 datasets or splits"):
        dataset_of([one, two])


def test_chosen_metrics_take_their_values_along() -> None:
    [run] = make_runs(make_dataset(), ["one"])
    [chosen] = only_metrics([run], ["RR@10", "nDCG@10", "RR@10"])
    names = parse_metrics(["RR@10", "nDCG@10"])
    assert chosen.evaluation.metrics == names
    for metric in names:
        np.testing.assert_array_equal(
            chosen.evaluation.values(metric), run.evaluation.values(metric)
        )
        assert chosen.evaluation.mean(metric) == run.evaluation.mean(metric)
