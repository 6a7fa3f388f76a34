"""The reader that runs a Hugging Face model: spans from logits, windows, empty answers."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, ModelError
from retrieval_bench.core.types import Document, Query
from retrieval_bench_answers.answers import Answer
from retrieval_bench_answers.contract import Reader, read_all, reader_from
from retrieval_bench_retrievers import qa_reader
from retrieval_bench_retrievers.dense.dense import Dense
from retrieval_bench_retrievers.encoders import model_files
from retrieval_bench_retrievers.qa_reader import HuggingFaceReader, _spans, _Window
from tests.builders.tiny_encoder import one_thread
from tests.builders.tiny_reader import build_tiny_reader

pytestmark = [pytest.mark.dense, pytest.mark.slow]

LEAVE = Document("leave", "Every employee has 25 days of paid leave a year.", "not read")
SEOUL = Document("seoul", "Seoul is the capital. 서울은 수도이다.")
QUESTION = Query("q", "how many days of leave?")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with one_thread():
        yield build_tiny_reader(tmp_path_factory.mktemp("reader") / "tiny")


@pytest.fixture
def scripted(model: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., HuggingFaceReader]:
    """The reader over given logits: token -> (first, last); 0 for all others."""

    def make(scores: dict[str, tuple[float, float]], **params: Any) -> HuggingFaceReader:
        reader = HuggingFaceReader(str(model), **params)

        def logits(encoded: Any) -> Any:
            words = [
                reader._tokenizer.convert_ids_to_tokens(row)
                for row in encoded["input_ids"].tolist()
            ]
            both = np.array([[scores.get(word, (0.0, 0.0)) for word in row] for row in words])
            return both[..., 0].astype(np.float32), both[..., 1].astype(np.float32)

        monkeypatch.setattr(reader, "_logits", logits)
        return reader

    return make


def test_the_answers_are_the_best_spans_by_the_model_s_own_logits(model: Path) -> None:
    import torch
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForQuestionAnswering.from_pretrained(model).eval()
    encoded = tokenizer(QUESTION.text, LEAVE.text, return_tensors="pt", return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        made = network(**encoded)
    first, last = made.start_logits[0].tolist(), made.end_logits[0].tolist()
    inside = [i for i, kind in enumerate(encoded.sequence_ids(0)) if kind == 1]
    spans = {
        (offsets[i][0], offsets[j][1]): first[i] + last[j]
        for i in inside
        for j in inside
        if 0 <= j - i < 30
    }
    expected = sorted(spans.items(), key=lambda one: -one[1])[:5]
    found = HuggingFaceReader(str(model), no_answer=False).read(QUESTION, [LEAVE], 5)
    assert [(a.span.start, a.span.end) for a in found if a.span] == [span for span, _ in expected]
    assert [a.score for a in found] == pytest.approx([score for _, score in expected], abs=1e-5)


def test_a_span_is_the_text_of_its_document(scripted: Callable[..., HuggingFaceReader]) -> None:
    reader = scripted({"##5": (0, 0), "2": (9, 0), "days": (0, 9), "seoul": (5, 5)})
    first, second, *_ = reader.read(QUESTION, [SEOUL, LEAVE], 3)
    assert first.text == "25 days"
    assert first.span == ("leave", 19, 26)
    assert first.score == 18.0
    assert (second.text, second.span) == ("Seoul", ("seoul", 0, 5))


def test_the_question_is_never_an_answer(scripted: Callable[..., HuggingFaceReader]) -> None:
    reader = scripted({"how": (99, 99), "many": (99, 99), "[SEP]": (99, 99), "days": (1, 1)})
    (answer,) = reader.read(QUESTION, [LEAVE], 1)
    assert answer.text == "days"


def test_a_long_document_is_read_to_its_end(scripted: Callable[..., HuggingFaceReader]) -> None:
    text = "the river " * 60 + "blue whale " + "the river " * 60
    reader = scripted({"blue": (5, 0), "whale": (0, 5)})
    found = reader.read(QUESTION, [Document("long", text)], 3)
    assert found[0].text == "blue whale"
    assert found[0].span == ("long", 600, 610)
    # The windows that share it give it once.
    assert len({answer.span for answer in found}) == 3


def test_the_empty_answer_has_the_score_of_the_window_that_is_least_sure_of_it(
    scripted: Callable[..., HuggingFaceReader],
) -> None:
    reader = scripted({"[CLS]": (3, 3), "days": (2, 2)})
    first, second = reader.read(QUESTION, [LEAVE], 2)
    assert first == Answer("", None, 6.0)
    assert second.text == "days"
    boosted = scripted({"[CLS]": (3, 3), "days": (4, 4)}, no_answer_boost=3.0)
    assert boosted.read(QUESTION, [LEAVE], 1)[0] == Answer("", None, 9.0)
    never = scripted({"[CLS]": (9, 9), "days": (2, 2)}, no_answer=False)
    assert [answer.text == "" for answer in never.read(QUESTION, [LEAVE], 2)] == [False, False]


def test_the_least_sure_window_counts(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = HuggingFaceReader(str(model))

    def logits(encoded: Any) -> Any:
        n, length = encoded["input_ids"].shape
        scores = np.zeros((n, length), dtype=np.float32)
        scores[:, 0] = np.arange(n) + 2  # each window is surer than the one before
        return scores, scores

    monkeypatch.setattr(reader, "_logits", logits)
    found = reader.read(QUESTION, [LEAVE, SEOUL], 1)
    assert found[0] == Answer("", None, 4.0)


def test_nothing_to_read_is_an_empty_answer(model: Path) -> None:
    reader = HuggingFaceReader(str(model))
    assert reader.read(QUESTION, [], 3) == [Answer("")]
    assert reader.read(QUESTION, [Document("a", ""), Document("b", " \n")], 3) == [Answer("")]


def test_an_empty_document_does_not_shift_the_others(
    scripted: Callable[..., HuggingFaceReader],
) -> None:
    reader = scripted({"days": (5, 5)})
    (answer,) = reader.read(QUESTION, [Document("empty", ""), LEAVE], 1)
    assert answer.span == ("leave", 22, 26)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("how many " * 500, LEAVE.text),
        ("서울은 어디?", SEOUL.text),
        ("🌊?", "🌊 water 🐋 whale"),
        ("what", "a\ud800b water"),
        ("?", "x"),
        ("", "water"),
    ],
)
def test_any_text_can_be_read(model: Path, question: str, text: str) -> None:
    reader = HuggingFaceReader(str(model))
    done = read_all(reader, [Query("q", question)], [[Document("d", text)]], 3)
    assert done.status == ("ok",)


def test_two_readings_are_the_same_and_so_are_batches(model: Path) -> None:
    documents = [LEAVE, SEOUL, Document("long", "the river is blue " * 40)]
    one = HuggingFaceReader(str(model), batch_size=1).read(QUESTION, documents, 5)
    for reader in (HuggingFaceReader(str(model)), HuggingFaceReader(str(model))):
        found = reader.read(QUESTION, documents, 5)
        assert [a.span for a in found] == [a.span for a in one]
        assert [a.score for a in found] == pytest.approx([a.score for a in one], abs=1e-4)


def test_blanks_that_a_tokenizer_counts_in_are_not_part_of_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = HuggingFaceReader(str(build_tiny_reader(tmp_path / "blanks", blanks=True)))
    found = reader.read(QUESTION, [Document("d", "the capital is seoul")], 9)
    texts = [answer.text for answer in found if answer.text]
    assert texts == [text.strip() for text in texts]
    assert any(" " not in text for text in texts[1:])


class TestSpans:
    def window(self, firsts: list[float], lasts: list[float], inside: list[bool]) -> _Window:
        n = len(firsts)
        offsets = np.array([[2 * i, 2 * i + 1] for i in range(n)], dtype=np.int64)
        return _Window(
            np.array(firsts, dtype=np.float32),
            np.array(lasts, dtype=np.float32),
            offsets,
            np.array(inside),
        )

    def test_the_end_is_not_before_the_start(self) -> None:
        window = self.window([0, 0, 5], [5, 0, 0], [True] * 3)
        found = _spans(window, "a b c", 3, 9)
        assert len(found) == 6
        assert (4, 1, 10.0) not in found
        assert max(score for *_, score in found) == 5.0

    def test_a_span_has_no_more_tokens_than_allowed(self) -> None:
        window = self.window([5, 0, 0], [0, 0, 5], [True] * 3)
        assert (0, 5, 10.0) in _spans(window, "a b c", 3, 9)
        assert (0, 5, 10.0) not in _spans(window, "a b c", 2, 9)

    def test_only_the_best_are_kept_ties_by_place(self) -> None:
        window = self.window([1, 1, 1], [1, 1, 1], [True] * 3)
        assert _spans(window, "a b c", 1, 2) == [(0, 1, 2.0), (2, 3, 2.0)]

    def test_a_window_without_any_of_the_document(self) -> None:
        assert _spans(self.window([1, 1], [1, 1], [False, False]), "a b", 3, 5) == []


class TestLoading:
    def test_a_folder_is_a_reader(self, model: Path) -> None:
        reader = reader_from(str(model), {"max_answer_tokens": 2})
        assert isinstance(reader, Reader)
        facts = reader.describe()
        assert facts["architecture"] == "BertForQuestionAnswering"
        assert facts["max_answer_tokens"] == 2
        assert facts["max_length"] == 64  # not 384: the model reads no more
        assert len(facts["model_sha256"]) == 64
        reader.close()

    def test_a_model_without_a_head_is_refused(self, tmp_path: Path) -> None:
        folder = build_tiny_reader(tmp_path / "headless", head=False)
        with pytest.raises(ModelError, match=r"qa_outputs.* the weights are random"):
            HuggingFaceReader(str(folder))

    def test_an_empty_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="cannot be used for questions"):
            HuggingFaceReader(str(tmp_path))

    @pytest.mark.parametrize(
        "load", [HuggingFaceReader, lambda folder: Dense(model=folder).prepare()]
    )
    def test_code_that_comes_with_a_model_is_not_run_and_not_asked_about(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Callable[[str], object]
    ) -> None:
        (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'was run')!r}, 'w')\n")
        names = ("AutoConfig", "AutoModel", "AutoModelForQuestionAnswering")
        own = {"model_type": "own", "auto_map": {name: f"own.{name}" for name in names}}
        (tmp_path / "config.json").write_text(json.dumps(own), encoding="utf-8")
        monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 10))
        with pytest.raises(ModelError):
            load(str(tmp_path))
        assert not (tmp_path / "was run").exists()
        assert sys.stdin.read() == "y\n" * 10

    @pytest.mark.parametrize(
        ("params", "says"),
        [
            ({"batch_size": 0}, "batch_size = 0"),
            ({"max_answer_tokens": 1.5}, "max_answer_tokens = 1.5"),
            ({"stride": -1}, "stride = -1"),
            ({"threads": True}, "threads = True"),
            ({"device": "abacus"}, "device 'abacus'"),
        ],
    )
    def test_parameters_that_make_no_sense(
        self, model: Path, params: dict[str, Any], says: str
    ) -> None:
        with pytest.raises(ConfigError, match=says):
            HuggingFaceReader(str(model), **params)


def test_where_no_hub_can_be_asked_the_error_is_that_of_the_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(name: str, **parts: Any) -> None:
        raise ModelError(f"model {name!r} is not on this machine", **parts)

    def not_here(name: str, *, local: bool) -> None:
        refused(name)

    monkeypatch.setattr(model_files, "require_hub", refused)
    monkeypatch.setattr(qa_reader, "_open", not_here)
    with pytest.raises(ModelError, match="not on this machine") as caught:
        qa_reader._load("some/reader")
    assert caught.value.where == "reader huggingface"
    assert "trained for questions" in caught.value.fix
