"""Files of cases as teams have them: what becomes of their words, and what is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import export_dataset
from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Dataset, by_rule
from retrieval_bench.data import load_dataset
from retrieval_bench_rules.formats.cases import understood
from retrieval_bench_rules.formats.words import WORDS
from tests.builders.files import save_all


def loaded(here: Path, name: str, text: str, more: str = "", format_: str = "cases") -> Dataset:
    config = f"format: {format_}\nfiles: {{queries: {name}}}\n{more}"
    return load_dataset(save_all(here / "data", {"dataset.yaml": config, name: text}))


def slots(data: Dataset) -> dict[str, list[str]]:
    return {query_id: list(of.slots) for query_id, of in by_rule(data.qrels).items()}


WANTED = {
    "leave": ['any "25 days"', 'source "leave.md"', 'not any "DEPRECATED"'],
    "q2": ['any "15일"'],
}
ROWS: list[dict[str, Any]] = [
    {
        "id": "leave",
        "question": "days of leave?",
        "must_contain": ["25 days"],
        "files": ["leave.md"],
        "must_not": ["DEPRECATED"],
        "owner": "anna",
    },
    {"question": "연차는 며칠입니까?", "must_contain": "15일"},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("golden.json", json.dumps(ROWS)),
        ("golden.json", json.dumps({"version": 2, "cases": ROWS})),
        ("golden.json", json.dumps({"tests": ROWS}, indent=1)),
        ("golden.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS)),
        ("golden.yaml", json.dumps(ROWS)),  # which YAML reads, too
        ("golden.yml", "questions:\n" + "".join(f"- {json.dumps(row)}\n" for row in ROWS)),
        (
            "golden.csv",
            (
                "id,question,must_contain,files,must_not,owner\n"
                'leave,days of leave?,"[""25 days""]",leave.md,DEPRECATED,anna\n'
                ",연차는 며칠입니까?,15일,,,\n"
            ),
        ),
    ],
)
def test_one_file_in_any_format_says_the_same(here: Path, name: str, text: str) -> None:
    data = loaded(here, name, text)
    assert slots(data) == WANTED
    assert [query.text for query in data.queries] == ["days of leave?", "연차는 며칠입니까?"]
    assert data.queries[0].metadata["owner"] == "anna"
    assert data.documents is None


def test_ids_become_judgements_and_have_all_metrics(here: Path) -> None:
    text = "- {q: one, relevant: [a, 7]}\n- {q: two, relevant: {b: 2, c: 0}}\n"
    data = loaded(here, "golden.yaml", text)
    assert dict(data.qrels) == {"q1": {"a": 1, "7": 1}, "q2": {"b": 2, "c": 0}}
    assert not by_rule(data.qrels)
    assert understood(str(here / "data")) == (
        "golden.yaml: 2 cases; question from 'q', ids from 'relevant'.",
    )


def test_ids_beside_rules_are_refused_with_the_line_that_takes_them(here: Path) -> None:
    text = "- {q: one, relevant: [a]}\n- {q: two, must_contain: b}\n"
    with pytest.raises(DataError) as caught:
        loaded(here, "golden.yaml", text)
    assert "ids (relevant) in 1 case beside rules (must_contain) in 1" in str(caught.value)
    assert "`format: case_rules`" in str(caught.value)
    data = loaded(here / "again", "golden.yaml", text, format_="case_rules")
    assert slots(data) == {"q1": ['id "a"'], "q2": ['any "b"']}


def test_words_of_ones_own_are_named_as_columns(here: Path) -> None:
    more = 'columns: {rows: {question: ask, id: nr, sources: headings, separator: ";"}}\n'
    data = loaded(here, "golden.csv", "nr,ask,headings\n12,leave?,Urlaub; Anspruch\n", more)
    assert slots(data) == {"12": ['any "Urlaub"', 'any "Anspruch"']}


def test_a_column_that_is_named_is_read_as_nothing_else(here: Path) -> None:
    more = "columns: {rows: {question: question, sources: gold}}\n"
    data = loaded(
        here, "golden.yaml", "- {question: a, gold: [Urlaub], ids: x}\n", more, "case_rules"
    )
    assert slots(data) == {"q1": ['any "Urlaub"', 'id "x"']}


def test_a_limit_is_of_all_slots_and_that_of_an_entry_wins(here: Path) -> None:
    text = (
        "- {q: a, top: 3, expect: [{any: [x]}, y]}\n"
        "- {q: b, within: 5, must_contain: [{any: [x], within: 1}, y]}\n"
    )
    assert list(slots(loaded(here, "golden.yaml", text)).values()) == [
        ['any "x" within 3', 'any "y" within 3'],
        ['any "x" within 1', 'any "y" within 5'],
    ]


def test_a_number_alone_is_a_phrase_with_a_limit_too(here: Path) -> None:
    data = loaded(here, "golden.json", json.dumps([{"q": "a", "within": 2, "expect": [3.5]}]))
    assert slots(data) == {"q1": ['any "3.5" within 2']}


def test_an_id_that_is_made_is_no_other_cases(here: Path) -> None:
    rows = [{"id": "q2", "q": "a"}, {"q": "b"}, {"q": "c"}, {"id": "q3", "q": "d"}, {"q": "e"}]
    data = loaded(here, "golden.json", json.dumps([{**row, "file": "x"} for row in rows]))
    assert [query.id for query in data.queries] == ["q2", "q4", "q5", "q3", "q6"]


def test_a_limit_beside_ids_alone_is_told_to_say_nothing(here: Path) -> None:
    data = loaded(here, "golden.yaml", "- {q: a, relevant: [d1], within: 3}\n")
    assert any("ranks that say nothing beside ids" in text for text in data.warnings)
    assert data.queries[0].metadata == {"within": 3}
    assert "within from" not in understood(str(here / "data"))[0]
    data = loaded(here / "b", "golden.yaml", "- {q: a, ids: d1, within: 3}\n", format_="case_rules")
    assert slots(data) == {"q1": ['id "d1" within 3']}


def test_phrases_of_yaml_are_what_is_written(here: Path) -> None:
    text = (
        "- q: a\n  id: 007\n  must_contain: [1.10, 12:30, 010, 1_000, 25, 2024-01-05]\n"
        "  within: 3\n  weight: .nan\n  answerable: yes\n"
        "  filter: {price: {lt: 1.50}}\n"
    )
    config = "format: cases\nfiles: {queries: g.yaml, documents: d.jsonl}\n"
    documents = '{"id": "d", "text": "x", "price": 1}\n'
    files = {"dataset.yaml": config, "g.yaml": text, "d.jsonl": documents}
    data = load_dataset(save_all(here / "data", files))
    written = ("1.10", "12:30", "010", "1_000", "25", "2024-01-05")
    assert slots(data) == {"007": [f'any "{phrase}" within 3' for phrase in written]}
    assert data.queries[0].metadata["weight"] == ".nan"
    assert "1.5" in str(data.queries[0].filter)
    assert "'1.5" not in str(data.queries[0].filter)


def test_a_list_stands_in_a_cell_and_nowhere_else(here: Path) -> None:
    data = loaded(here / "a", "golden.yaml", "- {q: a, must_not: '[1]', expect: '[alpha]'}\n")
    assert slots(data) == {"q1": ['any "[alpha]"', 'not any "[1]"']}
    text = 'q,must_contain\na,[1]\nb,"[""x"", ""y""]"\n'
    data = loaded(here / "b", "golden.csv", text)
    assert slots(data) == {"q1": ['any "[1]"'], "q2": ['any "x"', 'any "y"']}
    data = loaded(here / "c", "golden.csv", 'q,ids\na,"[12, 15]"\n')
    assert dict(data.qrels) == {"q1": {"12": 1, "15": 1}}
    with pytest.raises(DataError) as caught:
        loaded(here / "d", "golden.csv", "q,expect\na,[alpha]\n")
    assert "line 2, expect: '[alpha]' is no JSON" in str(caught.value)
    assert str(caught.value).count("is no JSON") == 1


def test_words_of_a_kind_that_was_read_are_metadata(here: Path) -> None:
    row = {"question": "a", "text": "expected", "prompt": "be brief", "gold": "", "file": "x.md"}
    data = loaded(here, "golden.json", json.dumps([row]))
    assert data.queries[0].text == "a"
    assert {"text": "expected", "prompt": "be brief"}.items() <= data.queries[0].metadata.items()
    assert "gold" not in data.queries[0].metadata
    said = understood(str(here / "data"))
    assert "Kept as metadata, and not as truth: 'text', 'prompt'." in said


def test_expect_and_forbid_stand_beside_other_words(here: Path) -> None:
    row = {
        "q": "leave?",
        "must_contain": [{"any": ["25", "twenty-five"], "words": True}],
        "expect": [{"source": "a/*", "within": 1}],
        "top": 5,
        "forbidden_ids": "draft-1",
    }
    (labels,) = slots(loaded(here, "golden.json", json.dumps([row]))).values()
    assert labels == [
        'any "25" or "twenty-five" as words within 5',
        'source "a/*" within 1',
        'not id "draft-1"',
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {ask: x}\n", "no question; found: 'ask'; accepted: one of question, query, input"),
        ("- {q: [x], must_contain: a}\n", "q is ['x']; accepted: a text"),
        ("- x\n", "'x'; accepted: an object with a question and its truth"),
        ("3\n", "3; accepted: a list of cases"),
        ("other: []\n", "an object with other; accepted: a list, or one under cases"),
        ("- {q: x\n", "no YAML"),
        ("[]\n", "no cases"),
        ("- {q: x, must_have: a}\n", "no case says what is to be found; other words: 'must_have'"),
        ("- {q: x, id: [1]}\n", "id is [1]; accepted: a text or a whole number"),
        ("- {q: x, relevant: [[a]]}\n", "id ['a']; accepted: a text or a number"),
        ("- {q: x, relevant: {a: high}}\n", "grade is 'high'"),
        ("- {q: x, must_contain: ['']}\n", "any is ''; accepted: a text that is not blank"),
        ("- {q: x, must_contain: [a], within: soon}\n", "within is 'soon'"),
        ("- {q: x, id: a: b}\n", "golden.yaml:1: no YAML"),
        ("- {q: x, expect: [{any: a}, true]}\n", "True; accepted: a phrase, or an object"),
        ("- {id: a, q: x, must_contain: a}\n- {id: a, q: y, must_contain: b}\n", "'a' again"),
    ],
)
def test_faults_say_where_and_what_is_accepted(here: Path, text: str, says: str) -> None:
    with pytest.raises(DataError) as caught:
        loaded(here, "golden.yaml", text)
    assert says in str(caught.value)
    assert "golden.yaml" in str(caught.value)


@pytest.mark.parametrize("name", ["golden.json", "golden.jsonl"])
def test_json_without_a_meaning_is_refused(here: Path, name: str) -> None:
    with pytest.raises(DataError, match="NaN"):
        loaded(here, name, '{"q": "a", "must_contain": "x", "weight": NaN}\n')


def test_a_file_of_a_usual_name_needs_no_settings(here: Path) -> None:
    files = {"golden.jsonl": '{"q": "x", "must_contain": "a"}\n'}
    data = load_dataset(save_all(here / "plain", files))
    assert slots(data) == {"q1": ['any "a"']}
    assert data.documents is None
    assert understood(str(here / "plain"))[0].startswith("golden.jsonl: 1 case;")
    files["documents.jsonl"] = '{"id": "d", "text": "an a"}\n'
    assert load_dataset(save_all(here / "with", files)).n_documents == 1


def test_a_packed_file_is_read(here: Path) -> None:
    files = {"cases.yaml.gz": gzip.compress(b"- {q: x, must_contain: a}\n")}
    assert slots(load_dataset(save_all(here / "data", files))) == {"q1": ['any "a"']}


def test_a_case_without_truth_is_told_unless_nothing_answers_it(here: Path) -> None:
    text = "- {q: a, must_contain: x}\n- {q: b}\n- {q: c, answerable: false}\n"
    data = loaded(here, "golden.yaml", text)
    assert [query.id for query in data.asked] == ["q1", "q3"]
    assert "1 case without any truth: not run." in understood(str(here / "data"))


def test_an_export_is_read_back(here: Path) -> None:
    data = loaded(here, "golden.yaml", "- {q: a, must_contain: x, must_not: y}\n")
    export_dataset(data, "plain", here / "out")
    again = load_dataset(here / "out")
    assert slots(again) == slots(data)
    assert again.fingerprint == data.fingerprint


def test_no_word_has_two_meanings() -> None:
    words = [word for of in WORDS.values() for word in of]
    assert len(words) == len(set(words))


GOLDEN: Mapping[str, tuple[str, str, str, list[list[str]]]] = {
    # what teams have -> file, its content, what dataset.yaml adds, slots of each case
    "phrases": (
        "golden.yaml",
        "- question: How long is the notice period?\n  must_contain: [three months, in writing]\n",
        "",
        [['any "three months"', 'any "in writing"']],
    ),
    "sources": (
        "golden.json",
        '[{"query": "vpn on linux", "expected_sources": ["docs/it/vpn*.md"]}]',
        "",
        [['source "docs/it/vpn*.md"']],
    ),
    "urls in a table": (
        "golden.csv",
        (
            "question,expected_url,forbidden_url\n"
            "refunds,https://shop.example/refund,https://shop.example/2019/*\n"
        ),
        "",
        [['source "https://shop.example/refund"', 'not source "https://shop.example/2019/*"']],
    ),
    "forbidden releases": (
        "golden.jsonl",
        '{"input": "install", "any_of": ["pip install", "uv add"], "must_not_contain": ["v1."]}\n',
        "",
        [['any "pip install" or "uv add"', 'not any "v1."']],
    ),
    "chapters": (
        "golden.yaml",
        "- {frage: Kündigungsfrist, kapitel: [4.2 Kündigung]}\n",
        "columns: {rows: {question: frage, sources: kapitel}}\n",
        [['any "4.2 Kündigung"']],
    ),
    "limits on a rank": (
        "golden.yaml",
        "- {q: order status, file: orders.ts, max_rank: 3}\n",
        "",
        [['source "orders.ts" within 3']],
    ),
    "Korean": (
        "golden.yaml",
        "tests:\n- {q: 육아휴직은 몇 개월입니까, must_include: [12개월, 육아휴직], top: 5}\n",
        "",
        [['any "12개월" within 5', 'any "육아휴직" within 5']],
    ),
    "Chinese": (
        "golden.json",
        '{"questions": [{"question": "年假有几天？", "keywords": ["十五天"], "excluded": "草案"}]}',
        "",
        [['any "十五天"', 'not any "草案"']],
    ),
    "French, several in a cell": (
        "golden.csv",
        "id;question;keywords\nc1;Combien de congés ?;25 jours | congés payés\n",
        'columns: {rows: {separator: "|"}}\n',
        [['any "25 jours"', 'any "congés payés"']],
    ),
    "files of code": (
        "golden.jsonl",
        '{"prompt": "where is auth", "files": ["src/auth/*.ts", "src/session.ts"]}\n',
        "",
        [['source "src/auth/*.ts"', 'source "src/session.ts"']],
    ),
    "rules of ours": (
        "golden.yaml",
        (
            "- q: leave\n  expect: [{all: [leave, days], source: hr/*}, {matches: '[0-9]+ days'}]\n"
            "  forbid: [{source: drafts/*}]\n"
        ),
        "",
        [
            [
                'all "leave" and "days" source "hr/*"',
                'matches "[0-9]+ days"',
                'not source "drafts/*"',
            ]
        ],
    ),
    "ids and phrases": (
        "golden.yaml",
        "- {q: a, gold_ids: [faq-12]}\n- {q: b, must_contain: [refund]}\n",
        "format: case_rules\n",
        [['id "faq-12"'], ['any "refund"']],
    ),
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_golden_files_as_teams_have_them_take_a_few_lines(here: Path, kind: str) -> None:
    name, text, more, wanted = GOLDEN[kind]
    config = "" if "format:" in more else "format: cases\n"
    config += f"files: {{queries: {name}}}\n{more}"
    assert config.count("\n") <= 25
    data = load_dataset(save_all(here / "data", {"dataset.yaml": config, name: text}))
    assert list(slots(data).values()) == wanted


@pytest.mark.parametrize(
    "relevant",
    [
        [{"doc_id": "a", "grade": 2}, {"id": 7}],
        [{"_id": "a", "relevance": 2}, {"id": 7, "score": 1}],
        [{"a": 2}, {"7": 1}],
        {"a": 2, "7": 1},
    ],
)
def test_judgements_are_read_as_records_too(here: Path, relevant: Any) -> None:
    data = loaded(here, "golden.json", json.dumps([{"q": "one", "relevant": relevant}]))
    assert dict(data.qrels) == {"q1": {"a": 2, "7": 1}}


@pytest.mark.parametrize("word", ["relevant_ids", "must_contain"])
@pytest.mark.parametrize("cell", ["\"['d1', 'd2']\"", '"[d1, d2]"'])
def test_a_list_that_is_no_json_is_no_single_text(here: Path, word: str, cell: str) -> None:
    with pytest.raises(DataError, match="a list as JSON"):
        loaded(here, "golden.csv", f"question,{word}\nhow many,{cell}\n")


def test_a_phrase_in_brackets_is_a_text(here: Path) -> None:
    data = loaded(here, "golden.csv", "question,must_contain\nhow many,[DEPRECATED]\n")
    assert slots(data) == {"q1": ['any "[DEPRECATED]"']}
