"""Questions where there are none: known items, and samples of a log."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError, DataError, PluginError
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset, load_dataset
from retrieval_bench_labels.exchange.questions import copied, from_log, known_items

N = 30


def data() -> Dataset:
    documents = [Document(f"d{at}", f"word{at} and some other text", "") for at in range(N)]
    return build_dataset("mine", documents, [Query("q", "?")], None)


def function(here: Path, body: str) -> str:
    (here / "mine.py").write_text(f"def ask(document):\n    {body}\n", encoding="utf-8")
    return "mine.py:ask"


def test_each_question_is_judged_by_its_document_and_says_what_it_is(here: Path) -> None:
    ask = function(here, "return f'what is {document.text.split()[0]}?'")
    made = known_items(ask, data(), "out", n=8, seed=3)
    again = load_dataset("out")
    assert (made.questions, made.origin, len(again.evaluated)) == (8, "known-item", 8)
    for query in again.queries:
        (doc,) = again.qrels[query.id]
        assert query.text == f"what is word{doc[1:]}?"
        assert query.metadata["origin"] == "known-item"
        assert query.metadata["copied"] == pytest.approx(1 / 3, abs=1e-3)
    assert again.known_items is not None
    assert again.known_items[1] == pytest.approx(1 / 3, abs=1e-3)
    assert again.n_documents == N


def test_the_sample_is_that_of_the_seed(here: Path) -> None:
    ask = function(here, "return document.id")
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        known_items(ask, data(), name, n=5, seed=seed)
    texts = [[query.text for query in load_dataset(name).queries] for name in "abc"]
    assert texts[0] == texts[1] != texts[2]


def test_none_and_repeated_questions_are_passed_over(here: Path) -> None:
    ask = function(here, "return None if int(document.id[1:]) % 2 else 'same ' + document.id[:2]")
    made = known_items(ask, data(), "out", n=50)
    assert made.questions < 8
    assert made.questions + made.passed == N


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("return None", ConfigError, "gave no question for any of 30 documents"),
        ("return 3", PluginError, "gave int"),
        ("raise ValueError('no')", PluginError, "failed with ValueError"),
    ],
)
def test_a_function_that_gives_something_else_is_told(
    here: Path, body: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        known_items(function(here, body), data(), "out")
    assert not Path("out").exists()


def test_copied_words_count_in_any_script() -> None:
    document = Document("d", "서울은 대한민국의 수도이다", "Capitals")
    assert copied("대한민국", document) == 1.0
    assert copied("capitals OF", document) == 0.5
    assert copied("首都", document) == 0.0
    assert copied("?", document) == 0.0


LOG = "text,count\n" + "".join(f"query {at},{1 + 600 // (at + 1)}\n" for at in range(60))


def test_a_log_is_sampled_in_three_strata_of_equal_traffic(here: Path) -> None:
    Path("log.csv").write_text(LOG, encoding="utf-8")
    made = from_log(Path("log.csv"), data(), "out", n=15)
    again = load_dataset("out")
    assert made.strata is not None
    total = sum(query.metadata["weight"] for query in again.queries)
    assert total == pytest.approx(sum(1 + 600 // (at + 1) for at in range(60)))
    assert sum(taken for _, taken in made.strata.values()) == 15
    taken = {name: n for name, (_, n) in made.strata.items()}
    assert Counter(query.tags[0] for query in again.queries) == taken
    assert max(taken.values()) <= 7
    assert not again.judged


def test_equal_texts_of_a_log_are_one(here: Path) -> None:
    Path("log.csv").write_text("query\n한국 \n한국\nseoul\n", encoding="utf-8")
    from_log(Path("log.csv"), data(), "out", n=5)
    assert sorted((q.text, q.metadata["count"]) for q in load_dataset("out").queries) == [
        ("seoul", 1),
        ("한국", 2),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text,count\na,zero\n", "count is 'zero'"),
        ("words\na\n", "no text"),
        ("text\n", "no queries"),
    ],
)
def test_a_log_with_faults_is_told(here: Path, text: str, message: str) -> None:
    Path("log.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        from_log(Path("log.csv"), data(), "out")
    with pytest.raises(ConfigError, match="--n 0"):
        from_log(Path("log.csv"), data(), "out", n=0)
