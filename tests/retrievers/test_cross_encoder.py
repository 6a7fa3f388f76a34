"""Cross-encoders of sentence-transformers as rerankers, with a tiny model of random weights."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, ModelError
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.pipeline.pipeline import Pipeline
from retrieval_bench_retrievers.rerank.cross_encoder import CrossEncoderReranker
from retrieval_bench_retrievers.rerank.named import reranker_of
from retrieval_bench_retrievers.rerank.reranking import Reranked
from tests.builders import some
from tests.builders.tiny_cross_encoder import build_tiny_cross_encoder
from tests.builders.tiny_encoder import one_thread

pytestmark = [pytest.mark.dense, pytest.mark.slow]

TEXT = "light of the moon"
DOCUMENTS = [
    Document("a", "the sun and the stars"),
    Document("b", "water in the river", title="Ice"),
    Document("c", ""),
    Document("d", " ".join(["snow on the stone"] * 12)),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.mktemp("cross")
    with one_thread():
        build_tiny_cross_encoder(base / "tiny")
        build_tiny_cross_encoder(base / "two", labels=2)
        build_tiny_cross_encoder(base / "headless", head=False)
        yield base


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refused)


def scores(found: Reranked) -> dict[str, float]:
    given = some(found.scores).tolist()
    return {DOCUMENTS[at].id: s for at, s in zip(found.positions, given, strict=True)}


def test_a_folder_is_a_reranker_that_needs_no_network(folders: Path) -> None:
    made = reranker_of(str(folders / "tiny"), {"batch_size": 2})
    assert isinstance(made, CrossEncoderReranker)
    assert made.pointwise
    found = made.rerank(TEXT, DOCUMENTS, None)
    assert sorted(found.positions) == [0, 1, 2, 3]
    assert (np.diff(some(found.scores)) <= 0).all()
    assert len(set(scores(found).values())) == 4
    made.close()


def test_the_numbers_are_those_of_the_library_for_title_and_text(folders: Path) -> None:
    from sentence_transformers import CrossEncoder

    own = CrossEncoder(str(folders / "tiny"), device="cpu")
    pairs = [(TEXT, document.contents) for document in DOCUMENTS]
    expected = own.predict(pairs, show_progress_bar=False)
    made = CrossEncoderReranker(str(folders / "tiny"), device="cpu")
    found = scores(made.rerank(TEXT, DOCUMENTS, None))
    assert [found[d.id] for d in DOCUMENTS] == pytest.approx(expected.tolist(), rel=1e-5)


def test_it_gives_the_same_each_time_whatever_stands_beside_a_document(folders: Path) -> None:
    made = CrossEncoderReranker(str(folders / "tiny"), device="cpu")
    first, again = (made.rerank(TEXT, DOCUMENTS, None) for _ in range(2))
    assert first.positions == again.positions
    assert (some(first.scores) == some(again.scores)).all()
    alone = some(made.rerank(TEXT, DOCUMENTS[:1], None).scores)[0]
    assert alone == pytest.approx(scores(first)["a"], rel=1e-5)
    other = CrossEncoderReranker(str(folders / "tiny"), device="cpu").rerank(TEXT, DOCUMENTS, None)
    assert scores(other) == scores(first)


def test_documents_are_read_up_to_max_length(folders: Path) -> None:
    start = " ".join(["snow on the stone"] * 5)
    both = [Document("d", f"{start} sun"), Document("e", f"{start} ice water in the river of ice")]
    short = CrossEncoderReranker(str(folders / "tiny"), device="cpu", max_length=16)
    cut = some(short.rerank(TEXT, both, None).scores)
    assert cut[0] == cut[1]
    assert short.describe()["max_length"] == 16
    whole = CrossEncoderReranker(str(folders / "tiny"), device="cpu")
    read = some(whole.rerank(TEXT, both, None).scores)
    assert read[0] != read[1]


def test_it_describes_the_model_by_its_hash(folders: Path) -> None:
    made = CrossEncoderReranker(str(folders / "tiny"), device="cpu", batch_size=7)
    before = made.describe()
    made.prepare()
    facts = made.describe()
    assert len(facts["model_sha256"]) >= 16
    assert before["model_sha256"] == facts["model_sha256"]
    other = CrossEncoderReranker(str(folders / "two")).describe()
    assert other["model_sha256"] != facts["model_sha256"]
    assert (facts["device"], facts["batch_size"]) == ("cpu", 7)
    assert set(facts["versions"]) == {"sentence-transformers", "transformers", "torch"}


@pytest.mark.filterwarnings("ignore")
def test_an_encoder_without_a_head_is_refused(folders: Path) -> None:
    with pytest.raises(ModelError, match="is a BertModel, which gives a pair of texts no score"):
        CrossEncoderReranker(str(folders / "headless")).prepare()


def test_a_model_of_two_labels_is_refused(folders: Path) -> None:
    with pytest.raises(ModelError, match="gives 2 numbers for a pair"):
        CrossEncoderReranker(str(folders / "two")).prepare()


def test_a_folder_that_is_none_or_holds_no_model_is_refused_at_once(here: Path) -> None:
    (here / "empty").mkdir()
    with pytest.raises(ModelError, match="no model in the folder 'empty'"):
        CrossEncoderReranker("empty")
    for name in ("./nowhere", str(here / "nowhere"), "~/nowhere", "a/b/c"):
        with pytest.raises(ModelError, match="no folder"):
            CrossEncoderReranker(name)


def test_files_that_are_no_model_are_told_with_the_folder(here: Path) -> None:
    (here / "broken").mkdir()
    (here / "broken" / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        CrossEncoderReranker("broken").prepare()
    assert str(here / "broken") in str(caught.value)


@pytest.mark.parametrize("given", [{"batch_size": 0}, {"max_length": 1.5}, {"batch_size": True}])
def test_parameters_that_make_no_sense_are_refused(folders: Path, given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(given))):
        CrossEncoderReranker(str(folders / "tiny"), **given)


def test_it_is_a_step_of_a_pipeline_loaded_before_the_first_search(folders: Path) -> None:
    step = {"rerank": str(folders / "tiny"), "params": {"device": "cpu"}, "top": 2}
    pipeline = Pipeline(steps=[{"retrieve": "bm25"}, step])
    pipeline.index(DOCUMENTS)
    assert pipeline.describe()["steps"]["rerank"]["device"] == "cpu"
    found = pipeline.search(Query("q", "the river and the sun"), 3)
    own = CrossEncoderReranker(str(folders / "tiny"), device="cpu")
    listed = [d for d in DOCUMENTS if d.id in some(found.steps["retrieve"].doc_ids)]
    best = own.rerank("the river and the sun", listed, None).positions[:2]
    assert list(found.doc_ids) == [listed[at].id for at in best]
    pipeline.close()
