"""Public collections of known size, found through the environment variable BENCH_DATA."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from retrieval_bench.data import dataset_fingerprint, load_dataset
from tests.builders import some

pytestmark = pytest.mark.realdata


@pytest.fixture
def data() -> Path:
    folder = os.environ.get("BENCH_DATA")
    if not folder:
        pytest.skip("BENCH_DATA is not set: it names the folder with the real data")
    return Path(folder).absolute()


class Counts(NamedTuple):
    documents: int
    queries: int
    evaluated: int
    unanswerable: int
    judgements: int


@pytest.mark.parametrize(
    ("name", "split", "expected"),
    [
        ("scifact", "test", Counts(5183, 1109, 300, 0, 339)),
        ("scifact", "train", Counts(5183, 1109, 809, 0, 919)),
        ("squad2-dev", "test", Counts(1204, 11873, 5928, 5945, 5928)),
        ("halubench-mala299", "test", Counts(1139, 299, 276, 0, 276)),
        ("time", "test", Counts(423, 83, 83, 0, 324)),
        ("autorag-ko", "test", Counts(720, 114, 114, 0, 114)),
        ("piaf-v1.0", "test", Counts(761, 3835, 3835, 0, 3835)),
    ],
)
def test_beir_folders_have_their_published_counts(
    data: Path, name: str, split: str, expected: Counts
) -> None:
    dataset = load_dataset(data / "beir" / name, split)
    assert dataset.n_documents == sum(1 for _ in some(dataset.documents)) == expected.documents
    assert len(dataset.queries) == expected.queries
    assert len(dataset.evaluated) == expected.evaluated
    assert len(dataset.unanswerable) == expected.unanswerable
    assert sum(map(len, dataset.qrels.values())) == expected.judgements
    assert dataset.warnings == ()
    assert dataset_fingerprint(dataset) == dataset.fingerprint


def test_squad_through_a_yaml_file_agrees_with_its_beir_folder(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_DATA", str(data))
    (tmp_path / "dataset.yaml").write_text(
        "format: squad\nlanguage: en\nsplits: {dev: '${BENCH_DATA}/reader/squad2-dev/dev.json'}\n"
    )
    squad = load_dataset(tmp_path, "dev")
    beir = load_dataset(data / "beir" / "squad2-dev")
    assert squad.n_documents == 1204
    assert {q.id: q.text for q in squad.evaluated} == {q.id: q.text for q in beir.evaluated}
    assert {q.id for q in squad.unanswerable} == {q.id for q in beir.unanswerable}
    texts = {document.id: document.text for document in some(squad.documents)}
    expected = {document.id: document.text for document in some(beir.documents)}
    for query_id, grades in squad.qrels.items():
        assert [texts[d] for d in grades] == [expected[d] for d in beir.qrels[query_id]]
