"""The way out: what is written is read back the same, and nothing is lost unsaid."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_bench import export_dataset
from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.core.types import Document, Message, Query
from retrieval_bench.data import build_dataset, load_dataset, read_qrels
from retrieval_bench.data.formats import formats
from retrieval_bench_exchange.export import targets
from tests.builders.files import save_all
from tests.builders.outgoing import (
    DOCUMENTS,
    GRADED,
    OF_DOCUMENTS,
    QRELS,
    QUERIES,
    ROWS,
    dataset,
    held_by,
    refused,
)


def known_by(to: str) -> Callable[[str], str]:
    """What a query is called after it was read back."""
    texts = {query.id: query.text for query in QUERIES}
    return texts.__getitem__ if to == "quepid" else str


@pytest.mark.parametrize("to", OF_DOCUMENTS)
def test_judgements_and_queries_come_back_the_same(tmp_path: Path, to: str) -> None:
    made = export_dataset(dataset(language="fr"), to, tmp_path / "out")
    back = load_dataset(tmp_path / "out")
    name = known_by(to)
    assert back.qrels == {name(query): grades for query, grades in held_by(to, QRELS).items()}
    assert [(query.id, query.text) for query in back.queries] == [
        (name(query.id), query.text) for query in QUERIES
    ]
    assert (back.name, back.language) == ("Manuel 안내", "fr")
    assert (made.n_queries, made.n_judgements) == (3, 4)
    assert {str(path.relative_to(tmp_path / "out")) for path in tmp_path.rglob("*.*")} == set(
        made.files
    )


@pytest.mark.parametrize("to", [*GRADED[:3], "scienceqa", *ROWS])
def test_documents_come_back_with_all_they_have(tmp_path: Path, to: str) -> None:
    qrels = {query: dict.fromkeys(of, 1) for query, of in QRELS.items()}
    data = dataset(qrels=QRELS if to in GRADED else qrels, split="dev")
    made = export_dataset(data, to, tmp_path / "out")
    back = load_dataset(tmp_path / "out", "dev")
    assert list(back.documents or ()) == DOCUMENTS
    assert (back.fingerprint == data.fingerprint) == (to != "scienceqa")  # it has conversations
    assert made.lost == ()


@pytest.mark.parametrize("to", ["quepid", "rank_eval"])
def test_files_of_judgements_are_read_as_such_too(tmp_path: Path, to: str) -> None:
    made = export_dataset(dataset(), to, tmp_path / "out")
    name = known_by(to)
    qrels = read_qrels(tmp_path / "out" / made.files[0])
    assert qrels == {name(query): grades for query, grades in QRELS.items()}


def test_trec_judgements_are_what_another_tool_reads(tmp_path: Path) -> None:
    export_dataset(dataset(), "trec", tmp_path / "out")
    with (tmp_path / "out" / "qrels.test.txt").open(encoding="utf-8") as file:
        assert pytrec_eval.parse_qrel(file) == QRELS


def test_units_and_metadata_come_back_from_beir(tmp_path: Path) -> None:
    documents = [
        Document("c1", "a", metadata={"page": "p1"}),
        Document("c2", "b", "", {"page": "p2"}),
    ]
    queries = [Query("q", "x", metadata={"tags": ["t"], "answers": ["y"]})]
    data = build_dataset("units", documents, queries, {"q": {"p1": 1}}, unit_key="page")
    made = export_dataset(data, "beir", tmp_path / "out")
    back = load_dataset(tmp_path / "out")
    assert back.fingerprint == data.fingerprint
    assert back.queries == tuple(queries)
    assert made.lost == ()


LOST = {
    "beir": ["the turns of 1 conversation before the last"],
    "trec": [
        "the flag of 1 unanswerable query",
        "metadata of queries (answers, tags)",
        "the turns of 1 conversation before the last",
    ],
    "quepid": [
        "the ids of queries",
        "the texts of 3 documents",
        "2 queries without a judgement in this split",
        "metadata of queries (answers, tags)",
        "the turns of 1 conversation before the last",
    ],
    "rank_eval": [
        "the texts of 3 documents",
        "2 queries without a judgement in this split",
        "metadata of queries (answers, tags)",
        "the turns of 1 conversation before the last",
    ],
    "plain": ["the turns of 1 conversation before the last"],
    "scienceqa": ["the grades above 1 of 2 judgements", "1 judgement with a grade below 1"],
    "quotes": [
        "1 query without a relevant document in this split",
        "the turns of 1 conversation before the last",
        "the grades above 1 of 2 judgements",
        "1 judgement with a grade below 1",
    ],
    "ragas": [
        "2 queries without a relevant document in this split",
        "metadata of queries (tags)",
        "the turns of 1 conversation before the last",
        "the grades above 1 of 2 judgements",
        "1 judgement with a grade below 1",
    ],
    "langsmith": [
        "1 query without a relevant document in this split",
        "the grades above 1 of 2 judgements",
        "1 judgement with a grade below 1",
    ],
    "squad": [
        "the ids of documents",
        "metadata of documents (metadata, page)",
        "1 query without a relevant document in this split",
        "the turns of 1 conversation before the last",
        "the grades above 1 of 2 judgements",
        "1 judgement with a grade below 1",
    ],
}


@pytest.mark.parametrize("to", OF_DOCUMENTS)
def test_what_a_format_has_no_place_for_is_told(tmp_path: Path, to: str) -> None:
    talk = (Message("user", "hi"), Message("user", "combien de jours ?"))
    queries = [
        replace(QUERIES[0], metadata={"tags": ["x"], "answers": ["25"]}, messages=talk),
        *QUERIES[1:],
        Query("q4", "hello", metadata={"answerable": False}),
        Query("q5", "of another split"),
    ]
    assert list(export_dataset(dataset(queries), to, tmp_path / "out").lost) == LOST[to]


def test_trec_refuses_what_its_tools_would_split_or_misread(tmp_path: Path) -> None:
    queries = [Query("q 1", "x"), Query("<q2", "two\nlines"), Query("q4", "a\tb")]
    qrels = {"q 1": {"congés": 1, "不\u3000在": 1}, "<q2": {"congés": 1}, "q4": {"congés": 1}}
    told = refused(tmp_path, "trec", dataset(queries, qrels))
    assert [fault.partition(";")[0] for fault in told] == [
        "queries: query 'q 1': its id holds a blank or begins with <, {, [ or #",
        "queries: query '<q2': its id holds a blank or begins with <, {, [ or #",
        "queries: query '<q2': text 'two\\nlines'",
        "queries: query 'q4': text 'a\\tb'",
        "judgements: document '不\\u3000在': its id holds a blank",
    ]
    back = export_dataset(dataset(queries, qrels), "beir", tmp_path / "beir")
    assert load_dataset(tmp_path / "beir").qrels == qrels
    assert back.lost == ()


def test_trec_topics_tell_of_white_space_at_their_ends(tmp_path: Path) -> None:
    data = dataset([Query("q1", " outer\n"), *QUERIES[1:]])
    made = export_dataset(data, "trec", tmp_path / "out")
    assert made.lost == ("white space at the ends of 1 query",)
    assert load_dataset(tmp_path / "out").queries[0].text == "outer"


def test_cells_that_spreadsheets_would_compute_are_guarded_as_quepid_does(tmp_path: Path) -> None:
    queries = [Query("a", "=1+1"), Query("b", " =1+1"), Query("c", " plain")]
    qrels = {"a": {"-x": 1}, "b": {"congés": 1}, "c": {"연차": 1}}
    data = build_dataset("cells", None, queries, qrels)
    export_dataset(data, "quepid", tmp_path / "out")
    table = (tmp_path / "out" / "test.csv").read_text(encoding="utf-8").splitlines()
    assert table[1:] == [" =1+1, -x,1", "  =1+1,congés,1", " plain,연차,1"]
    assert load_dataset(tmp_path / "out").qrels == {q.text: qrels[q.id] for q in queries}


def test_quepid_refuses_what_it_would_confuse_or_cut_off(tmp_path: Path) -> None:
    queries = [Query("a", "same"), Query("b", "same"), Query("c", "x" * 501), Query("d", "l1\nl2")]
    qrels = {"a": {"congés": 1}, "b": {"연차": 1}, "c": {"y" * 501: 1}, "d": {"congés": -1}}
    told = refused(tmp_path, "quepid", dataset(queries, qrels))
    assert [fault.partition(";")[0][:60] for fault in told] == [
        "queries: query 'b': text 'same' is also that of 'a'",
        "queries: query 'c': text '" + "x" * 34,
        "queries: query 'c': id '" + "y" * 36,
        "queries: query 'd': text is 'l1\\nl2'",
        "judgements: query 'd': document 'congés' has grade -1, which",
    ]
    assert "501 characters; accepted: at most 500" in told[1]


def test_a_body_of_rank_eval_has_the_index_fields_and_metric_that_are_set(tmp_path: Path) -> None:
    metric = {"precision": {"k": 5, "relevant_rating_threshold": 2}}
    chosen = {"index": "articles", "fields": ["body^2"], "metric": metric}
    export_dataset(dataset(), "rank_eval", tmp_path / "out", settings=chosen)
    body = json.loads((tmp_path / "out" / "test.json").read_text(encoding="utf-8"))
    assert body["metric"] == metric
    assert body["requests"][0] == {
        "id": "q1",
        "template_id": "search",
        "params": {"query_string": "combien de jours ?"},
        "ratings": [
            {"_index": "articles", "_id": "congés", "rating": 2},
            {"_index": "articles", "_id": "연차", "rating": 0},
        ],
    }
    (template,) = body["templates"]
    search = template["template"]["source"]["query"]["multi_match"]
    assert search == {"query": "{{query_string}}", "fields": ["body^2"]}


def test_settings_of_another_kind_are_refused_all_at_once(tmp_path: Path) -> None:
    wrong = {"index": 3, "fields": "body", "metric": {}}
    with pytest.raises(DataError) as caught:
        export_dataset(dataset(), "rank_eval", tmp_path / "out", settings=wrong)
    assert [fault.partition(";")[0] for fault in caught.value.faults] == [
        "settings: index is 3",
        "settings: fields is 'body'",
        "settings: metric is {}",
    ]


@pytest.mark.parametrize(
    ("to", "chosen", "message"),
    [
        ("quepit", {}, r"did you mean quepid or quotes\? all: beir, langsmith, plain, quepid"),
        ("halubench", {}, "is only read: its labels say whether an answer is faithful"),
        ("rank_eval", {"idx": "a"}, "no setting 'idx' of format rank_eval"),
        ("trec", {"index": "a"}, "leave --set out"),
    ],
)
def test_unknown_words_are_answered_with_the_known_ones(
    tmp_path: Path, to: str, chosen: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        export_dataset(dataset(), to, tmp_path / "out", settings=chosen)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    export_dataset(dataset(), "trec", tmp_path / "out")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match="nothing is written over it"):
        export_dataset(dataset(), "quepid", tmp_path / "out")
    with pytest.raises(ConfigError, match="nothing is written over it"):
        export_dataset(dataset(), "quepid", tmp_path / "out" / "topics.tsv")
    with pytest.raises(ConfigError, match="cannot write"):
        export_dataset(dataset(), "quepid", tmp_path / "out" / "topics.tsv" / "in")
    assert sorted(tmp_path.rglob("*")) == before


def test_metadata_that_is_no_json_leaves_nothing_behind(tmp_path: Path) -> None:
    documents = [Document("d", "x", metadata={"when": object()})]
    data = build_dataset("odd", documents, [Query("q", "x")], {"q": {"d": 1}})
    with pytest.raises(DataError, match="metadata that is no JSON"):
        export_dataset(data, "trec", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", [name for name in OF_DOCUMENTS if not targets()[name].unjudged])
def test_a_split_without_judgements_is_refused(tmp_path: Path, to: str) -> None:
    data = replace(dataset(), qrels={})
    (told,) = refused(tmp_path, to, data)
    assert "no judgements in this split" in told


def test_every_target_is_a_format_that_is_read() -> None:
    with_own = {name for name, item in formats().items() if item.write}
    assert set(targets()) == with_own | {"beir", "trec", "plain"}


@pytest.mark.parametrize("to", [name for name in OF_DOCUMENTS if name not in GRADED])
def test_judgements_of_which_none_is_relevant_are_refused(tmp_path: Path, to: str) -> None:
    (told,) = refused(tmp_path, to, dataset(qrels={"q1": {"연차": 0}}))
    assert told.startswith("judgements: no document is relevant in this split; accepted: at")


@pytest.mark.parametrize(
    "to", [name for name in OF_DOCUMENTS if name not in ("quepid", "rank_eval")]
)
def test_a_corpus_is_walked_and_never_held(tmp_path: Path, to: str) -> None:
    class Counting:
        alive = 0
        most = 0

        def __len__(self) -> int:
            return 500

        def __iter__(self) -> Iterator[Document]:
            for number in range(500):
                document = Tracked(f"d{number}", "x" * number)
                yield document
                del document

    corpus = Counting()

    class Tracked(Document):
        def __init__(self, id_: str, text: str) -> None:
            super().__init__(id_, text)
            corpus.alive += 1
            corpus.most = max(corpus.most, corpus.alive)

        def __del__(self) -> None:
            corpus.alive -= 1

    data = build_dataset("large", corpus, QUERIES[:1], {"q1": {"d7": 1}})
    export_dataset(data, to, tmp_path / "out")
    assert corpus.most < 10
    assert len(load_dataset(tmp_path / "out").documents or ()) == 500


WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=8,
).filter(str.strip)


ODD = st.one_of(
    WORDS,
    st.sampled_from(["[1]", '["a"]', "[{}]", "[{'a': 1}]", "<1-hop>", "<1-hop> x", "🙂 b", "null"]),
    st.sampled_from(["()", "{a}", "[b c]"]),
)
"""Texts and ids, also such as a reader could take for something else."""


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(
    judged=st.dictionaries(
        ODD, st.dictionaries(ODD, st.integers(0, 4), min_size=1, max_size=3), min_size=1,
        max_size=4,
    ),
    to=st.sampled_from(sorted(OF_DOCUMENTS)),
)  # fmt: skip
def test_any_text_comes_back_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, judged: dict[str, dict[str, int]], to: str
) -> None:
    folder = tmp_path_factory.mktemp("export") / "out"
    queries = [Query(id_, id_, metadata={"answers": [id_]}) for id_ in judged]
    documents = [Document(id_, id_) for id_ in {id_ for of in judged.values() for id_ in of}]
    data = build_dataset("any", documents, queries, judged)
    try:
        export_dataset(data, to, folder)
    except DataError:
        if not any(_reasons(to, judged)):
            raise
        return
    back = load_dataset(folder)
    wanted = held_by(to, judged, documents)
    assert back.qrels == wanted
    ends = str.strip if to == "trec" else str
    left_out = to not in (*GRADED, "scienceqa")
    kept = [text for text in judged if text in wanted or not left_out]
    order = sorted if to == "squad" else list  # its questions stand with their paragraphs
    assert order(query.text for query in back.queries) == order(map(ends, kept))
    if to in (*ROWS, "beir", "plain", "scienceqa"):
        assert [query.metadata["answers"] for query in back.queries] == [[text] for text in kept]


def _reasons(to: str, judged: Mapping[str, Mapping[str, int]]) -> Iterator[bool]:
    """What a format may refuse."""
    ids = [*judged, *(one for of in judged.values() for one in of)]
    relevant = [[one for one, grade in of.items() if grade >= 1] for of in judged.values()]
    if to == "trec":
        yield any(any(map(str.isspace, id_)) or id_[0] in "<{[" for id_ in ids)
    if to not in GRADED:
        yield not any(relevant)
    if to == "squad":
        yield any(len(of) > 1 for of in relevant)
    if to in ROWS:
        yield any(id_.lstrip().startswith("[{") for id_ in judged)
    if to == "ragas":
        yield any(id_.strip().startswith("[") for id_ in judged)


@pytest.mark.parametrize("to", ["trec", "quepid", "rank_eval"])
def test_clusters_that_a_format_cannot_hold_are_lost_and_said(tmp_path: Path, to: str) -> None:
    talks = [replace(query, metadata={**query.metadata, "talk": query.id}) for query in QUERIES]
    made = export_dataset(replace(dataset(talks), cluster_key="talk"), to, tmp_path / "out")
    assert "the clusters of queries (talk)" in made.lost
    assert load_dataset(tmp_path / "out", made.split).cluster_key is None


@pytest.mark.parametrize("to", ["trec", "quepid", "rank_eval"])
def test_truth_by_rule_is_refused_by_formats_of_judgements(tmp_path: Path, to: str) -> None:
    ruled = {"_id": "q1", "text": "leave", "metadata": {"expect": [{"any": ["leave"]}]}}
    folder = save_all(
        tmp_path / "ruled",
        {
            "queries.jsonl": json.dumps(ruled),
            "corpus.jsonl": '{"_id": "d", "text": "annual leave"}',
        },
    )
    (tmp_path / "there").mkdir()
    faults = refused(tmp_path / "there", to, load_dataset(folder))
    assert "no judgement of a document" in faults[0]


def test_an_id_that_would_begin_a_comment_is_refused(tmp_path: Path) -> None:
    assert (
        "#1" in refused(tmp_path, "trec", dataset([Query("#1", "leave")], {"#1": {"연차": 1}}))[0]
    )
