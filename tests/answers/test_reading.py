"""Readers: how they are named, what they may give, what becomes of failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError, PluginError
from retrieval_bench.core.types import Document, Query
from retrieval_bench_answers.answers import Answer, Span
from retrieval_bench_answers.contract import FunctionReader, Reader, read_all, reader_from

SEOUL = Document("서울", "서울은 수도이다. 🌊 Seoul")
PARIS = Document("paris", "Paris is a capital.")
QUESTION = Query("q", "which capital?")

OWN = """
from retrieval_bench_answers.answers import Answer
from retrieval_bench_answers.contract import Reader


class Own(Reader):
    def __init__(self, *, word="Paris"):
        if word == "break":
            raise ValueError("no such word")
        self.word = word

    def read(self, question, documents, n):
        return [Answer(self.word)]


class Other:
    pass


def function(question, documents, n):
    return "Paris"


async def later(question, documents, n):
    return "Paris"


def two(question, documents):
    return "Paris"


made = Own(word="made")
number = 3
"""


@pytest.fixture
def project(here: Path) -> Path:
    (here / "own.py").write_text(OWN, encoding="utf-8")
    (here / "answers.json").write_text('{"q": "Paris"}', encoding="utf-8")
    return here


def read(
    given: Any, documents: Sequence[Document] = (SEOUL, PARIS), n: int = 3
) -> tuple[Answer, ...]:
    """What is kept of ``given``, which a function returns."""
    reader = FunctionReader(lambda question, documents, n: given, "f")
    return read_all(reader, [QUESTION], [documents], n).answers["q"]


class TestNames:
    def test_a_file_is_saved_predictions(self, project: Path) -> None:
        assert reader_from("answers.json") == Path("answers.json")
        with pytest.raises(ConfigError, match="parameters for saved predictions: a"):
            reader_from("answers.json", {"a": 1})

    def test_a_class_takes_parameters_and_a_function_none(self, project: Path) -> None:
        def text(target: str, **params: Any) -> str:
            reader = reader_from(target, params)
            assert isinstance(reader, Reader)
            return reader.read(QUESTION, [PARIS], 1)[0].text

        assert text("own.py:Own") == "Paris"
        assert text("own.py:Own", word="x") == "x"
        assert text("own.py:made") == "made"
        assert text("own.py:function") == "Paris"
        with pytest.raises(ConfigError, match="did you mean word"):
            reader_from("own.py:Own", {"wort": 1})
        with pytest.raises(ConfigError, match="parameters for the function"):
            reader_from("own.py:function", {"word": 1})

    @pytest.mark.parametrize(
        ("target", "says"),
        [
            ("own.py:number", "is int"),
            ("own.py:Other", "gave Other"),
            ("own.py:later", "is async"),
            ("own.py:two", "cannot be called as function"),
            ("own.py:nothing", "no 'nothing'"),
            ("hugginface", "huggingface"),
            ("nowhere/answers.json", "is no file, no folder and no known name"),
        ],
    )
    def test_what_is_no_reader_is_told(self, project: Path, target: str, says: str) -> None:
        with pytest.raises((ConfigError, PluginError), match=says):
            reader_from(target)

    def test_a_class_that_cannot_be_built_says_why(self, project: Path) -> None:
        with pytest.raises(ConfigError, match="ValueError: no such word"):
            reader_from("own.py:Own", {"word": "break"})


class TestWhatAFunctionGives:
    def test_one_text_or_none(self) -> None:
        assert read("Paris") == (Answer("Paris"),)
        assert read(None) == read("") == read(" ") == read([]) == (Answer(""),)

    def test_a_list_of_texts_mappings_and_answers(self) -> None:
        given = [
            {"text": "Seoul", "document": "서울", "start": 12, "end": 17, "score": 2},
            "Paris",
            Answer("x", None, 0.5),
        ]
        assert read(given) == (
            Answer("Seoul", Span("서울", 12, 17), 2.0),
            Answer("Paris"),
            Answer("x", None, 0.5),
        )

    def test_the_only_document_need_not_be_named(self) -> None:
        given = [{"text": "Paris", "start": 0, "end": 5}]
        assert read(given, [PARIS]) == (Answer("Paris", Span("paris", 0, 5)),)
        with pytest.raises(ContractError, match="without its document"):
            read(given)

    def test_positions_count_characters(self) -> None:
        given = [{"text": "🌊", "document": "서울", "start": 10, "end": 11}]
        assert read(given)[0].span == Span("서울", 10, 11)

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            (3, "gave int"),
            ({"text": "x"}, "gave dict"),
            ([3], "gave the answer 3"),
            ([{"answer": "x"}], "gave the answer"),
            ([{"text": "x", "begin": 1}], "unknown keys: begin"),
            (["a", "b", "c", "d"], "4 answers"),
            ([{"text": "Paris", "document": "paris", "start": 1, "end": 6}], "where 'aris '"),
            ([{"text": "Paris", "document": "paris", "start": 0, "end": 99}], "19 characters"),
            ([{"text": "Paris", "document": "paris", "start": -5, "end": 0}], "at -5 to 0"),
            ([{"text": "Paris", "document": "rome", "start": 0, "end": 5}], "not among its"),
            ([{"text": "Paris", "document": "paris", "start": 0.0, "end": 5}], "start 0.0"),
            ([{"text": "Paris", "document": "paris", "start": 0}], "end None"),
            ([{"text": "x", "score": float("nan")}], "score nan"),
        ],
    )
    def test_what_cannot_be_meant_names_the_question(self, given: Any, says: str) -> None:
        with pytest.raises(ContractError, match=says) as caught:
            read(given)
        assert "question 'q'" in str(caught.value)


class Counting(Reader):
    def __init__(self) -> None:
        self.seen: list[tuple[str, tuple[str, ...], int]] = []

    def read(self, question: Query, documents: Sequence[Document], n: int) -> Sequence[Answer]:
        self.seen.append((question.id, tuple(d.id for d in documents), n))
        if question.id == "bad":
            raise RuntimeError("no idea")
        return []


def ticks(*values: int) -> Callable[[], int]:
    left: Iterator[int] = iter(values)
    return lambda: next(left)


def test_every_question_gets_its_own_documents_and_its_own_time() -> None:
    reader = Counting()
    queries = [Query(i, "?") for i in ("a", "bad", "c")]
    # The first call is made twice, and only the second of them counts.
    clock = ticks(0, 100, 100, 107, 200, 230, 300, 311)
    done = read_all(reader, queries, [[PARIS], [], [SEOUL, PARIS]], 2, clock=clock)
    assert reader.seen == [
        ("a", ("paris",), 2),
        ("a", ("paris",), 2),
        ("bad", (), 2),
        ("c", ("서울", "paris"), 2),
    ]
    assert done.wall_ns.tolist() == [7, 30, 11]
    assert done.status == ("ok", "RuntimeError: no idea", "ok")
    assert done.answers == {"a": (Answer(""),), "c": (Answer(""),)}


def test_progress_counts_questions() -> None:
    told: list[tuple[int, int]] = []
    queries = [Query("a", "?"), Query("c", "?")]
    read_all(Counting(), queries, [[], []], 1, progress=lambda *done: told.append(done))
    assert told == [(1, 2), (2, 2)]


def test_an_error_of_the_project_ends_the_reading_and_names_the_question() -> None:
    class Refusing(Reader):
        def read(self, question: Query, documents: Sequence[Document], n: int) -> list[Answer]:
            raise HarnessError("the key is missing", where="the service")

    with pytest.raises(HarnessError, match="question 'q'; the service"):
        read_all(Refusing(), [QUESTION], [[]], 1)


def test_an_empty_answer_has_no_span() -> None:
    class Wrong(Reader):
        def read(self, question: Query, documents: Sequence[Document], n: int) -> list[Answer]:
            return [Answer("", Span("paris", 0, 0))]

    with pytest.raises(ContractError, match="is empty and has a span"):
        read_all(Wrong(), [QUESTION], [[PARIS]], 1)


@pytest.mark.parametrize(
    "given",
    [None, ["one"], iter([Answer("Paris")]), [Answer("Paris", Span(["paris"], 0, 5))]],  # type: ignore[arg-type]
)
def test_what_is_no_list_of_answers_names_the_question(given: Any) -> None:
    class Wrong(Reader):
        def read(self, question: Query, documents: Sequence[Document], n: int) -> Any:
            return given

    with pytest.raises(ContractError, match="question 'q'"):
        read_all(Wrong(), [QUESTION], [[PARIS]], 1)


def test_scores_are_plain_numbers() -> None:
    class Own(Reader):
        def read(self, question: Query, documents: Sequence[Document], n: int) -> list[Answer]:
            return [Answer("Paris", None, np.float32(0.5))]  # type: ignore[arg-type]

    (answer,) = read_all(Own(), [QUESTION], [[PARIS]], 1).answers["q"]
    assert type(answer.score) is float
