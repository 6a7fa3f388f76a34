"""Judgements that were made elsewhere come in with whose they are, and go out in any format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset, load_dataset
from retrieval_bench_exchange.formats.squad import paragraph_id
from retrieval_bench_labels.exchange.exporting import export_labels
from retrieval_bench_labels.exchange.importing import import_labels, recognised
from retrieval_bench_labels.label import Kind, Label, Pair
from retrieval_bench_labels.pool import make_pool
from retrieval_bench_labels.store import Store
from tests.builders.outgoing import OF_DOCUMENTS

FRANCE, KOREA = "Paris is the capital of France.", "서울은 대한민국의 수도이다."
TEXTS = {
    "paris": "Paris is the capital of France. It lies on the Seine.",
    "서울": "서울은 대한민국의 수도이다. 한강이 흐른다.",
    "berlin": "Berlin is the capital of Germany.",
    "rome": "Rome is the capital of Italy.",
}
QUERIES = {"q1": "capital of France?", "q2": "대한민국의 수도는?"}


def data(texts: Mapping[str, str] = TEXTS) -> Dataset:
    documents = [Document(id_, text) for id_, text in texts.items()]
    return build_dataset("cities", documents, [Query(*one) for one in QUERIES.items()], None)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store.create(tmp_path / "labels.sqlite")
    lists = {"a": {"q1": ["paris", "rome"], "q2": ["서울"]}, "b": {"q1": ["berlin"], "q2": []}}
    make_pool(store, data(), lists)
    return store


FILES: Mapping[str, tuple[str, str]] = {
    "qrels": ("qrels.txt", "q1 0 paris 3\nq1 0 rome 0\nq2 0 서울 2\n"),
    "qrels (BEIR)": (
        "test.tsv",
        "query-id\tcorpus-id\tscore\nq1\tparis\t3\nq1\trome\t0\nq2\t서울\t2\n",
    ),
    "quepid": (
        "case.csv",
        f"query,docid,rating\n{QUERIES['q1']},paris,3\n{QUERIES['q1']},rome,0\n{QUERIES['q2']},서울,2\n",
    ),
    "quotes": (
        "rows.csv",
        f"question,answer,quote\n{QUERIES['q1']},Paris,{FRANCE}\n{QUERIES['q2']},서울,{KOREA}\n",
    ),
    "ragas": (
        "testset.jsonl",
        json.dumps(
            {
                "user_input": "capital of France?",
                "reference": "Paris",
                "reference_contexts": ["Paris is the capital of France."],
            }
        )
        + "\n",
    ),
    "langsmith": (
        "examples.jsonl",
        json.dumps(
            {
                "id": "x",
                "inputs": {"question": "capital of  France?"},
                "outputs": {"answer": "Paris", "contexts": ["It lies on the Seine."]},
            }
        )
        + "\n",
    ),
}


def written(folder: Path, kind: str) -> Path:
    name, text = FILES[kind]
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", FILES)
def test_every_format_is_recognised_and_read(store: Store, tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind)
    assert recognised(path) == kind.partition(" ")[0]
    found = import_labels(store, path, data(), who="anna")
    graded = {label.pair: label.grade for label in store.labels()}
    assert graded[Pair("q1", "paris")] in (1, 3)
    assert found.labels == len(graded)
    assert (found.no_query, found.no_document) == (0, 0)
    assert {(label.who, label.kind, label.source) for label in store.labels()} == {
        ("anna", Kind.PERSON, path.name)
    }


def test_what_is_there_is_not_added_again(store: Store, tmp_path: Path) -> None:
    path = written(tmp_path, "qrels")
    import_labels(store, path, data(), who="gpt", kind=Kind.MODEL)
    again = import_labels(store, path, data(), who="gpt", kind=Kind.MODEL)
    assert (again.labels, again.known) == (0, 3)


def test_what_the_dataset_does_not_have_is_left_out_and_what_is_outside_of_the_pool_kept(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 paris 1\nq1 0 gone 1\nq9 0 paris 1\n", encoding="utf-8")
    found = import_labels(store, path, data(), who="anna")
    assert (found.labels, found.no_query, found.no_document) == (1, 1, 1)
    assert found.examples == ("document 'gone'", "query 'q9'")
    path.write_text("q2 0 rome 0\n", encoding="utf-8")
    found = import_labels(store, path, data(), who="anna")
    assert (found.labels, found.outside) == (1, 1)
    assert len(store.labels()) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 0 paris 4\n", "1 grade out of range"),
        ("q1 0 paris -1\n", "0 to 3"),
        ("q9 0 paris 1\n", "no judgement of qrels.txt is on a query and a document"),
        ("q1 paris\n", "4 columns"),
    ],
)
def test_bad_files_change_nothing(store: Store, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        import_labels(store, path, data(), who="anna")
    assert store.labels() == []


def test_judgements_of_nobody_are_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--who"):
        import_labels(store, written(tmp_path, "qrels"), data())
    with pytest.raises(ConfigError, match="did you mean quepid"):
        import_labels(store, written(tmp_path, "qrels"), data(), who="a", kind_of_file="quepit")


def judge(store: Store, *grades: tuple[str, str, int]) -> None:
    digests = store.pool().digests()
    for query, doc, grade in grades:
        pair = Pair(query, doc)
        store.add(Label(pair, "anna", grade, digest=digests.get(pair, "")))


ALL = (("q1", "paris", 3), ("q1", "rome", 0), ("q1", "berlin", 1), ("q2", "서울", 2))


def test_ids_that_are_written_differently_are_told_first(store: Store, tmp_path: Path) -> None:
    """I1: of labels, too: what they judge is not in the dataset under that name."""
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 paris 3\nq1 0 atlantis 1\nq1 0 Rome 0\nQ2 0 서울 2\n", encoding="utf-8")
    found = import_labels(store, path, data(), who="anna")
    assert (found.labels, found.no_query, found.no_document) == (1, 1, 2)
    assert found.examples == (
        "query 'Q2' beside 'q2', which differ in upper and lower case",
        "document 'Rome' beside 'rome', which differ in upper and lower case",
        "document 'atlantis'",
    )


@pytest.mark.parametrize("to", OF_DOCUMENTS)
def test_what_is_exported_is_read_back_with_its_judges(store: Store, here: Path, to: str) -> None:
    one_each = tuple((q, d, 0 if d == "berlin" else grade) for q, d, grade in ALL)
    given = one_each if to == "squad" else ALL  # it holds one relevant document for a query
    judge(store, *given)
    settings = {"index": "cities"} if to == "rank_eval" else None
    made = export_labels(store, data(), to, here / "out", settings=settings)
    assert (made.unfinished, made.gone, made.drawn_from) == (0, 0, None)
    again = load_dataset(here / "out")
    assert again.judges == {"anna": "person"}
    grades = {
        (next(q.text for q in again.queries if q.id == query), doc): grade
        for query, of in again.qrels.items()
        for doc, grade in of.items()
    }
    lossless = to in ("beir", "trec", "quepid", "rank_eval", "plain")
    wanted = {(QUERIES[q], d): g for q, d, g in given}
    if lossless:
        assert grades == wanted
    else:
        names = {paragraph_id(text): id_ for id_, text in TEXTS.items()} if to == "squad" else {}
        relevant = {pair for pair, grade in wanted.items() if grade >= 1}
        assert {(query, names.get(doc, doc)) for query, doc in grades} == relevant
        assert set(grades.values()) == {1}


def test_queries_judged_in_part_stay_out_unless_wanted(store: Store, here: Path) -> None:
    judge(store, *ALL[1:])
    made = export_labels(store, data(), "beir", here / "out")
    assert made.unfinished == 1
    assert made.drawn_from == load_dataset(here / "out").drawn_from == 2
    partly = export_labels(store, data(), "beir", here / "partly", partly=True)
    assert partly.exported.n_judgements == 3


def test_a_document_that_vanished_is_left_out_and_its_judgement_stays(
    store: Store, here: Path
) -> None:
    judge(store, *ALL)
    fewer = data({id_: text for id_, text in TEXTS.items() if id_ != "rome"})
    made = export_labels(store, fewer, "beir", here / "out")
    assert made.gone == 1
    assert made.exported.n_judgements == 3
    assert len(store.labels()) == 4


def test_only_one_kind_can_be_written(store: Store, here: Path) -> None:
    judge(store, *ALL)
    store.add(Label(Pair("q1", "paris"), "gpt", 0, Kind.MODEL))
    with pytest.raises(DataError, match="no judgement to write"):
        export_labels(store, data(), "beir", here / "out", kinds=[Kind.MODEL])
    made = export_labels(store, data(), "beir", here / "out", kinds=[Kind.MODEL], partly=True)
    assert made.whose.sentence == "Judged by gpt (model, 1 judgement)."
