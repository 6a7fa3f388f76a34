"""Each format: what becomes of its files, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.types import Dataset, Document, Message
from retrieval_bench.data import load_dataset
from retrieval_bench.data.build import UNJUDGED
from tests.builders import some
from tests.builders.files import save
from tests.builders.refusals import dataset_faults

BEIR = {
    "corpus.jsonl": (
        '{"_id": "d1", "title": "Eau", "text": "L\'eau bout.", "metadata": {"la": "fr"}, "n": 1}\n'
        '{"_id": 2, "title": null, "text": "물은 끓는다."}\n'
    ),
    "queries.jsonl": (
        '{"_id": "q1", "text": "eau 💧", "metadata": {"tags": ["x"]}}\n{"_id": 7, "text": "물"}\n'
        '{"_id": "q3", "text": "hi", "metadata": {"is_impossible": true}}\n'
    ),
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\n7\t2\t1\n",
    "qrels/dev.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
}
SCIENCE = {
    "documents.jsonl": '{"docid": "a-1", "src": "ko_mmlu", "content": "물은 끓는다."}\n',
    "eval.jsonl": (
        '{"eval_id": 78, "msg": [{"role": "user", "content": "물은?"}]}\n'
        '{"eval_id": 2, "msg": [{"role": "user", "content": "물"}, {"role": "assistant",'
        ' "content": "네"}, {"role": "user", "content": "언제 끓어?"}]}\n'
        '{"eval_id": 3, "msg": [{"role": "user", "content": "안녕"}]}\n'
    ),
    "ground_truth.json": '{"78": ["a-1"], "3": [], "2": ["a-1"]}',
}
TREC_TOPICS = """<top>
<num> Number: 301
<title> Organized &amp; Crime

<desc> Description:
Identify organizations.
<narr> Narrative:
Any.
</top>
<TOP><NUM>302</NUM><TITLE>Poliomyelitis</TITLE></TOP>
"""
TREC_DOCUMENTS = """<DOC>
<DOCNO> FT-1 </DOCNO>
<HEADLINE>Crime &amp; Co</HEADLINE>
<DATE>1994</DATE>
<TEXT>
First <i>part</i>, 1 < 2.
</TEXT>
<TEXT>Second.</TEXT>
</DOC>
<DOC><DOCNO>FT-2</DOCNO>All of it.</DOC><DOC><DOCNO>FT-3</DOCNO><TEXT><TI>In</TI>x</TEXT></DOC>
"""
TREC_QRELS = "301 0 FT-1 1\n302 0 FT-2 0\n"
WHAT = {"id": "1", "question": "What?", "answers": [{"text": "Stripes"}]}
WHO = {"id": 2, "question": "Who?", "answers": [], "is_impossible": True}
SO = {"id": "3", "question": "So?", "answers": [], "is_impossible": False}
STRIPES, SPOTS = {"context": "Stripes.", "qas": [WHO]}, {"context": "Spots.", "qas": [SO]}
SQUAD: dict[str, Any] = {
    "data": [
        {"title": "Zebras", "paragraphs": [{"context": "Stripes.", "qas": [WHAT]}]},
        {"title": "Animals", "paragraphs": [STRIPES, SPOTS]},
    ]
}


def write(folder: Path, files: dict[str, str], *, zipped: bool = False) -> Path:
    for name, content in files.items():
        path = folder / (name + ".gz" if zipped and not name.endswith(".yaml") else name)
        save(path, gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return folder


def documents_of(dataset: Dataset) -> list[Document]:
    return list(some(dataset.documents))


@pytest.mark.parametrize("zipped", [False, True])
def test_beir(tmp_path: Path, zipped: bool) -> None:
    dataset = load_dataset(write(tmp_path / "water", BEIR, zipped=zipped))
    assert documents_of(dataset) == [
        Document("d1", "L'eau bout.", "Eau", {"n": 1, "la": "fr"}),
        Document("2", "물은 끓는다."),
    ]
    assert dataset.name == "water"
    assert [query.id for query in dataset.queries] == ["q1", "7", "q3"]
    assert dataset.queries[0].text == "eau 💧"
    assert dataset.queries[0].tags == ("x",)
    assert dataset.qrels == {"q1": {"d1": 2}, "7": {"2": 1}}
    assert [query.id for query in dataset.unanswerable] == ["q3"]
    assert dataset.warnings == ()


def test_a_beir_split_has_its_own_judgements_and_fingerprint(tmp_path: Path) -> None:
    folder = write(tmp_path, BEIR)
    dev, test = load_dataset(folder, "dev"), load_dataset(folder)
    assert [query.id for query in dev.evaluated] == ["q1"]
    assert len(dev.queries) == 3
    assert dev.fingerprint != test.fingerprint


def test_beir_without_a_corpus(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, {k: v for k, v in BEIR.items() if "corpus" not in k}))
    assert dataset.documents is None
    assert len(dataset.evaluated) == 2


def test_beir_faults_in_all_files_come_at_once(tmp_path: Path) -> None:
    files = {
        "corpus.jsonl": BEIR["corpus.jsonl"] + '{"_id": "d1", "text": "x"}\n{"text": 1}\n',
        "queries.jsonl": BEIR["queries.jsonl"] + '{"_id": "q9", "text": " "}\n{"_id": "q8"}\n',
        "qrels/test.tsv": BEIR["qrels/test.tsv"] + "q0\td1\t1\nq1\td1\t1\nq3\td1\t1\nq1\tdx\t1\n",
    }
    told = dataset_faults(write(tmp_path, files))
    root = tmp_path.absolute()
    first = f"{root}/qrels/test.tsv:2; accepted: one grade for a pair"
    flag = "accepted: grade 0, or a query without the flag"
    assert told == (
        f"corpus.jsonl:3: document id 'd1' again, first at {root}/corpus.jsonl:1",
        "corpus.jsonl:4: no '_id'; found: 'text'",
        "corpus.jsonl:4: text is 1; accepted: text",
        "queries.jsonl:5: no 'text'; found: '_id'",
        f"qrels/test.tsv:5: query 'q1', document 'd1' has grade 1 here and 2 at {first}",
        f"qrels/test.tsv:6: query 'q3' is flagged unanswerable, but 'd1' is relevant; {flag}",
    )


def test_null_in_the_place_of_a_text_is_an_empty_one(tmp_path: Path) -> None:
    corpus = BEIR["corpus.jsonl"] + '{"_id": "d3", "title": "A title", "text": null}\n'
    dataset = load_dataset(write(tmp_path / "a", {**BEIR, "corpus.jsonl": corpus}))
    (titled,) = [one for one in dataset.documents or () if one.id == "d3"]
    assert (titled.contents.strip(), titled.text) == ("A title", "")
    queries = BEIR["queries.jsonl"] + '{"_id": "q9", "text": null}\n'
    (told,) = load_dataset(write(tmp_path / "b", {**BEIR, "queries.jsonl": queries})).warnings
    assert told.startswith("queries with an empty text, left out: 1 (")


def test_warnings_name_counts_and_places(tmp_path: Path) -> None:
    files = {
        **BEIR,
        "corpus.jsonl": BEIR["corpus.jsonl"] + '{"_id": "d3", "text": ""}\n',
        "qrels/test.tsv": BEIR["qrels/test.tsv"] + "q1\td1\t2\nq1\tdx\t1\n",
    }
    root = write(tmp_path, files).absolute()
    missing = "judgements on documents that are not in the corpus"
    assert load_dataset(tmp_path).warnings == (
        f"documents with an empty text: 1 ({root}/corpus.jsonl:3 'd3')",
        f"judgements given twice: 1 ({root}/qrels/test.tsv:4 'q1' 'd1')",
        f"{missing}: 1 ({root}/qrels/test.tsv:5 'dx')",
    )


def test_empty_files_are_faults(tmp_path: Path) -> None:
    told = dataset_faults(write(tmp_path, dict.fromkeys(BEIR, "\n")))
    assert [text.split(";")[0] for text in told] == [
        "corpus.jsonl: no documents",
        "queries.jsonl: no queries",
        "qrels/test.tsv: no judgements in this split",
    ]


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("truth", ["object", "lines", "named lines"])
@pytest.mark.needs("retrieval_bench_answers")
def test_the_competition(tmp_path: Path, truth: str, zipped: bool) -> None:
    files = dict(SCIENCE)
    if truth != "object":
        pairs = json.loads(files.pop("ground_truth.json")).items()
        rows = [{k: v} if truth == "lines" else {"eval_id": int(k), "docids": v} for k, v in pairs]
        files["ground_truth.jsonl"] = "\n".join(map(json.dumps, rows))
    dataset = load_dataset(write(tmp_path, files, zipped=zipped))
    assert documents_of(dataset) == [Document("a-1", "물은 끓는다.", "", {"src": "ko_mmlu"})]
    assert [query.text for query in dataset.queries] == ["물은?", "언제 끓어?", "안녕"]
    assert dataset.queries[1].messages == (
        Message("user", "물"),
        Message("assistant", "네"),
        Message("user", "언제 끓어?"),
    )
    assert dataset.qrels == {"78": {"a-1": 1}, "2": {"a-1": 1}}
    assert [query.id for query in dataset.unanswerable] == ["3"]
    assert dataset.queries[2].metadata == {"answerable": False}


@pytest.mark.needs("retrieval_bench_answers")
def test_a_competition_in_progress_has_no_judgements(tmp_path: Path) -> None:
    files = {name: text for name, text in SCIENCE.items() if "truth" not in name}
    dataset = load_dataset(write(tmp_path, files))
    assert dataset.qrels == {}
    assert not dataset.judged
    assert dataset.warnings == (UNJUDGED,)


@pytest.mark.needs("retrieval_bench_answers")
def test_faults_of_the_competition(tmp_path: Path) -> None:
    files = {
        **SCIENCE,
        "eval.jsonl": SCIENCE["eval.jsonl"]
        + '{"eval_id": 4, "msg": "물"}\n{"eval_id": 5, "msg": []}\n'
        + '{"eval_id": 6, "msg": [{"role": "user"}]}\n'
        + '{"eval_id": 7, "msg": [{"role": "system", "content": "x"}]}\n{"msg": []}\n',
        "ground_truth.json": '{"78": ["a-1"], "99": [], "98": ["a-1"], "3": "a-1", "2": [null]}',
    }
    an_id = "text or a whole number, not blank, without tabs and line breaks"
    accepted = '; accepted: [{"role": "user", "content": "..."}, ...]'
    told = dataset_faults(write(tmp_path, files))
    assert told == (
        "ground_truth.json: eval_id '3': 'a-1'; accepted: a list of docids, empty for no search",
        f"ground_truth.json: eval_id '2': docid is None; accepted: {an_id}",
        "eval.jsonl:4: msg is '물'" + accepted,
        "eval.jsonl:5: msg is []" + accepted,
        "eval.jsonl:6: msg holds {'role': 'user'}" + accepted,
        'eval.jsonl:7: msg has no turn of the user; accepted: {"role": "user", ...} in it',
        "eval.jsonl:8: no 'eval_id'; found: 'msg'",
        "eval.jsonl:8: msg is []" + accepted,
    )


@pytest.mark.needs("retrieval_bench_answers")
def test_a_ground_truth_that_names_a_question_twice_is_a_fault(tmp_path: Path) -> None:
    files = {**SCIENCE, "ground_truth.json": '{"78": ["a-1"], "78": []}'}
    assert "key '78' given twice" in dataset_faults(write(tmp_path / "a", files))[0]
    del files["ground_truth.json"]
    files["ground_truth.jsonl"] = '{"78": ["a-1"]}\n{"eval_id": 78, "docids": []}\n'
    told = dataset_faults(write(tmp_path / "b", files))
    assert told[0].startswith("ground_truth.jsonl:2: eval_id '78' again, first at ")


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.needs("retrieval_bench_exchange")
def test_squad_paragraphs_become_documents_once(tmp_path: Path, zipped: bool) -> None:
    folder = write(tmp_path, {"dev-v2.0.json": json.dumps(SQUAD)}, zipped=zipped)
    dataset = load_dataset(folder, "dev-v2.0")
    documents = documents_of(dataset)
    assert [(document.title, document.text) for document in documents] == [
        ("Animals", "Stripes."),
        ("Animals", "Spots."),
    ]
    assert [query.id for query in dataset.queries] == ["1", "2", "3"]
    assert [query.id for query in dataset.unanswerable] == ["2"]
    assert dataset.qrels == {"1": {documents[0].id: 1}, "3": {documents[1].id: 1}}
    assert dataset.queries[0].metadata == {
        "title": "Zebras",
        "document": documents[0].id,
        "answers": [{"text": "Stripes"}],
    }


@pytest.mark.needs("retrieval_bench_exchange")
def test_squad_ids_and_fingerprint_do_not_depend_on_the_order(tmp_path: Path) -> None:
    turned = {"data": SQUAD["data"][::-1]}
    one = load_dataset(write(tmp_path / "a", {"dev.json": json.dumps(SQUAD)}), "dev")
    other = load_dataset(write(tmp_path / "b", {"dev.json": json.dumps(turned)}), "dev")
    assert documents_of(one) == documents_of(other)
    assert one.fingerprint == other.fingerprint


@pytest.mark.needs("retrieval_bench_exchange")
def test_faults_of_squad_name_the_place_in_the_value(tmp_path: Path) -> None:
    broken = {
        "data": [
            {"title": 5, "paragraphs": [{"qas": []}, {"context": "a", "qas": [{"id": "1"}, 3]}]},
            {"paragraphs": None},
        ]
    }
    told = dataset_faults(write(tmp_path, {"dev.json": json.dumps(broken)}), "dev")
    assert told[:5] == (
        "dev.json: data[0]: title is 5; accepted: text",
        "dev.json: data[0].paragraphs[0]: no 'context'; found: 'qas'",
        "dev.json: data[0].paragraphs[1].qas[0]: no 'question'; found: 'id'",
        "dev.json: data[0].paragraphs[1].qas[1]: 3; accepted: an object",
        "dev.json: data[1].paragraphs: None; accepted: a list of objects",
    )


@pytest.mark.needs("retrieval_bench_exchange")
def test_broken_squad_json_is_told_once(tmp_path: Path) -> None:
    text = json.dumps(SQUAD, indent=1)[:-3]
    (told,) = dataset_faults(write(tmp_path, {"dev.json": text}), "dev")
    assert "no JSON" in told


TREC_YAML = """
format: trec
files: {documents: docs, queries: topics}
splits: {test: qrels}
"""


def trec(folder: Path, topics: str, documents: str, extra: str = "") -> Path:
    files = {"topics": topics, "docs": documents, "qrels": TREC_QRELS}
    return write(folder, {**files, "dataset.yaml": TREC_YAML + extra})


def test_trec_text(tmp_path: Path) -> None:
    dataset = load_dataset(trec(tmp_path, TREC_TOPICS, TREC_DOCUMENTS))
    assert [(query.id, query.text) for query in dataset.queries] == [
        ("301", "Organized & Crime"),
        ("302", "Poliomyelitis"),
    ]
    assert dataset.queries[0].metadata == {"desc": "Identify organizations.", "narr": "Any."}
    documents = documents_of(dataset)
    assert [document.id for document in documents] == ["FT-1", "FT-2", "FT-3"]
    assert documents[0].title == "Crime & Co"
    assert documents[0].text.split() == ["First", "part", ",", "1", "<", "2.", "Second."]
    assert documents[1].text == "All of it."
    assert (documents[2].title, documents[2].text) == ("In", "x")
    assert dataset.qrels == {"301": {"FT-1": 1}, "302": {"FT-2": 0}}


def test_another_field_of_a_topic_may_be_the_query(tmp_path: Path) -> None:
    folder = trec(tmp_path, TREC_TOPICS, TREC_DOCUMENTS, "columns: {queries: {text: desc}}")
    assert dataset_faults(folder)[0] == "topics:10: no <desc> in this topic; found: <num>, <title>"


@pytest.mark.parametrize(
    "keys", [("id", "contents"), ("_id", "text"), ("docno", "body"), ("docid", "text")]
)
def test_trec_topics_as_tsv_and_documents_as_json_lines(
    tmp_path: Path, keys: tuple[str, str]
) -> None:
    lines = [json.dumps({keys[0]: f"FT-{n}", keys[1]: f"text {n}", "x": n}) for n in (1, 2)]
    dataset = load_dataset(trec(tmp_path, "301\tcrime\r\n302\tpolio\n", "\n".join(lines)))
    assert [query.text for query in dataset.queries] == ["crime", "polio"]
    assert documents_of(dataset)[1] == Document("FT-2", "text 2", "", {"x": 2})


def test_faults_of_trec_text(tmp_path: Path) -> None:
    topics = "<top>\n<num>1\n<title>a\n<title>b</top>\n<top>\n<num>2\nno end"
    documents = "before\n<DOC>\n<DOCNO>1</DOCNO>\n<DOC>\nx\n</DOC>\n</DOC>\n"
    assert dataset_faults(trec(tmp_path, topics, "<x>" + documents)) == (
        "docs:1: '<x>before' outside of <DOC>; accepted: <DOC>...</DOC>",
        "docs:4: <DOC> within the <DOC> of line 2",
        "docs:4: 0 <DOCNO> in this document; accepted: <DOCNO>id</DOCNO>, once",
        "docs:7: </DOC> without <DOC>",
        "topics:1: two <title> in one topic; accepted: each field once",
        "topics:5: <top> without </top>",
    )


def test_faults_of_trec_topics_as_tsv(tmp_path: Path) -> None:
    told = dataset_faults(trec(tmp_path, "301\ta\tb\n302 polio\n", TREC_DOCUMENTS))
    accepted = "; accepted: id<TAB>text, or TREC text that begins with <top>"
    assert told == (
        r"topics:1: more than one tab in '301\ta\tb'" + accepted,
        "topics:2: no tab in '302 polio'" + accepted,
    )


PLAIN_YAML = """
format: plain
language: ko
files: {documents: passages.csv, queries: questions.tsv}
splits:
  test: judged.jsonl
  dev: {judgements: dev.csv, queries: dev.tsv, documents: null}
columns:
  documents: {id: pid, text: body, title: heading}
  queries: {id: qid, text: question, answerable: has_answer}
  judgements: {query: qid, document: pid, grade: null}
"""
PLAIN = {
    "dataset.yaml": PLAIN_YAML,
    "passages.csv": 'pid,heading,body,year\n1,물,"끓는다,\n100도",1990\n2,,x,\n',
    "questions.tsv": "qid\tquestion\thas_answer\tkind\n"
    'q1\t"물\tyes\ta\nq2\t안녕\tno\tb\nq3\tx\t\tc\n',
    "judged.jsonl": '{"qid": "q1", "pid": 1}\n{"qid": "q3", "pid": "2"}\n',
    "dev.csv": "qid,pid\ne1,1\n",
    "dev.tsv": "qid\tquestion\thas_answer\ne1\tx\t1\n",
}


def test_plain_files_may_be_json_lists(tmp_path: Path) -> None:
    files = {
        "dataset.yaml": "format: plain\nfiles: {documents: d.json, queries: q.json}\n"
        "splits: {test: j.json}\n",
        "d.json": json.dumps([{"id": 1, "text": "물"}], indent=1),
        "q.json": json.dumps([{"id": "q", "text": "eau"}, 7, {"id": "r"}]),
        "j.json": '[{"query_id": "q", "doc_id": 1, "grade": 2}]',
    }
    told = dataset_faults(write(tmp_path, files))
    assert [fault.split("; ")[0] for fault in told] == ["q.json: [1]: 7", "q.json: [2]: no 'text'"]
    dataset = load_dataset(write(tmp_path, {"q.json": '[{"id": "q", "text": "eau"}]'}))
    assert dataset.qrels == {"q": {"1": 2}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("j.txt", '[{"query_id": "q", "doc_id": 1, "grade": 2}]'),
        ("j", '[\n {"query_id": "q", "doc_id": "1", "grade": 2}\n]\n'),
        ("judged", '{"query_id": "q", "doc_id": 1, "grade": 2}\n'),
        ("j.txt", "q 0 1 2\n"),
        ("j.txt", "# by anna\n q 0 1   2.0\n"),
        ("j.tsv", "q\t0\t1\t2\n"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\tby\nq\t1\t2\tanna\n"),
        ("j.tsv", "query_id\tdoc_id\tgrade\nq\t1\t2\n"),
    ],
)
def test_plain_judgements_are_known_by_their_first_line(
    tmp_path: Path, name: str, text: str
) -> None:
    parts = {"d.csv": "id,text\n1,eau\n", "q.csv": "id,text\nq,eau\n", name: text}
    said = f"format: plain\nfiles: {{documents: d.csv, queries: q.csv}}\nsplits: {{test: {name}}}\n"
    assert load_dataset(write(tmp_path, {**parts, "dataset.yaml": said})).qrels == {"q": {"1": 2}}


def test_plain_judgements_whose_columns_are_named_or_that_are_no_text_of_trec_are_records(
    tmp_path: Path,
) -> None:
    said = (
        "format: plain\nfiles: {documents: d.csv, queries: q.csv}\nsplits: {test: j.txt}\n"
        "columns: {judgements: {grade: null}}\n"
    )
    parts = {"d.csv": "id,text\n1,eau\n", "q.csv": "id,text\nq,eau\n", "j.txt": "q 0 1 2\n"}
    (told,) = dataset_faults(write(tmp_path, {**parts, "dataset.yaml": said}))
    assert "no format known for the ending '.txt'" in told
    table = {"j.txt": "query_id,doc_id,grade\nq,1,2\n", "dataset.yaml": said.partition("col")[0]}
    (told,) = dataset_faults(write(tmp_path, table))
    assert "no format known for the ending '.txt'" in told


def test_plain_files_with_named_columns(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, PLAIN))
    assert documents_of(dataset) == [
        Document("1", "끓는다,\n100도", "물", {"year": "1990"}),
        Document("2", "x", "", {"year": ""}),
    ]
    assert [query.text for query in dataset.queries] == ['"물', "안녕", "x"]
    assert dataset.queries[0].metadata == {"kind": "a", "answerable": True}
    assert dataset.queries[2].metadata == {"kind": "c"}
    assert [query.id for query in dataset.unanswerable] == ["q2"]
    assert dataset.qrels == {"q1": {"1": 1}, "q3": {"2": 1}}
    assert dataset.language == "ko"


def test_a_split_may_have_files_of_its_own(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, PLAIN), "dev")
    assert dataset.documents is None
    assert [query.id for query in dataset.queries] == ["e1"]
    assert dataset.qrels == {"e1": {"1": 1}}


def test_a_table_without_a_header_leads_to_the_format_that_reads_it(tmp_path: Path) -> None:
    told = dataset_faults(
        write(tmp_path, {**PLAIN, "questions.tsv": "q1\twhere is it\nq2\twhen\n"})
    )
    assert "`format: marco` reads tables without a header" in told[0]


def test_faults_of_tables(tmp_path: Path) -> None:
    twice = "with 'text' twice; accepted: columns pid, body, heading"
    files = {
        **PLAIN,
        "passages.csv": "pid,text,text\n1,a,b\n",
        "questions.tsv": "qid\tquestion\thas_answer\nq1\tx\nq2\tx\tmaybe\n",
        "judged.jsonl": '{"qid": "q2"}\n',
    }
    assert dataset_faults(write(tmp_path, files)) == (
        f"passages.csv:1: header is 'pid text text', without 'body', 'heading', {twice}",
        "questions.tsv:2: 2 columns in 'q1 x'; accepted: 3, as in the header",
        "questions.tsv:3: has_answer is 'maybe'; accepted: true or false",
        "judged.jsonl:1: no 'pid'; found: 'qid'",
    )


def test_an_unknown_ending_is_a_fault(tmp_path: Path) -> None:
    described = PLAIN_YAML.replace("passages.csv", "passages.xlsx")
    files = {**PLAIN, "dataset.yaml": described, "passages.xlsx": "PK"}
    (told,) = dataset_faults(write(tmp_path, files))
    assert told.startswith("passages.xlsx: no format known for the ending '.xlsx'; ")
    assert told.endswith("accepted: .jsonl, .ndjson, .json, .csv, .tsv, each also packed")


@pytest.mark.parametrize("files", [BEIR, SCIENCE, PLAIN])
@pytest.mark.needs("retrieval_bench_answers")
def test_a_missing_file_is_told_whatever_the_format(tmp_path: Path, files: dict[str, str]) -> None:
    folder = write(tmp_path, files)
    name = next(name for name in files if name.startswith(("queries", "eval", "questions")))
    if "dataset.yaml" not in files:
        layout = {"queries": "beir", "eval": "scienceqa"}[name.split(".")[0]]
        judged = "ground_truth.json" if layout == "scienceqa" else "qrels/test.tsv"
        described = f"format: {layout}\nfiles: {{queries: {name}}}\nsplits: {{test: {judged}}}"
        save(folder / "dataset.yaml", described)
    (folder / name).unlink()
    assert f"{name}: no such file" in dataset_faults(folder)


def test_every_error_is_one_of_the_harness(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="dataset 'x', split 'test', has 1 fault"):
        load_dataset(write(tmp_path / "x", {**BEIR, "qrels/test.tsv": "q1\td1\n"}))
