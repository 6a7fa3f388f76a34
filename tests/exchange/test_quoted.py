"""Rows of questions with quoted sources: tables of one's own, Ragas and LangSmith."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset, Document, Message
from retrieval_bench.data import load_dataset
from retrieval_bench.data.passages import folded, holders
from tests.builders.files import json_lines, save_all
from tests.builders.refusals import dataset_faults

CORPUS = [
    {"_id": "holidays", "text": "Every employee has\n25 days of paid leave a year."},
    {"_id": "연차", "text": "연차 휴가는 입사 후 1년이 지나면 15일이 주어집니다."},
    {"_id": "报销", "text": "火车票在两周内报销。员工每年有25天带薪休假。"},
    {"_id": "congés", "text": "L\u2019employe\u0301 a droit à 25\u00a0jours de congés."},
]
ROWS = [
    {"question": "how many days", "answer": "25", "quote": "25 days of  paid leave"},
    {"question": "연차는 며칠", "answer": "15일", "quote": "1년이 지나면 15일"},
    {"question": "多久报销", "answer": "两周", "quote": "火车票在两周内报销"},
    {"question": "combien de jours", "answer": "25", "quote": "employ\u00e9 a droit à 25 jours"},
]
QUOTES = "format: quotes\nfiles: {documents: corpus.jsonl}\nsplits: {test: table}\n"


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return table.getvalue()


def write(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    name: str = "table.jsonl",
    *,
    described: str = QUOTES,
    corpus: Sequence[Mapping[str, Any]] = CORPUS,
) -> Path:
    kind = name.removesuffix(".gz").rpartition(".")[2]
    content: str | bytes = (
        json_lines(rows)
        if kind == "jsonl"
        else json.dumps(rows, indent=1)
        if kind == "json"
        else as_csv(rows).replace(",", "\t" if kind == "tsv" else ",")
    )
    if name.endswith(".gz"):
        content = gzip.compress(str(content).encode())
    files = {name: content, "dataset.yaml": described.replace("table", name)}
    return save_all(folder, {**files, "corpus.jsonl": json_lines(corpus)})


def without_corpus(described: str = QUOTES) -> str:
    return described.replace("files: {documents: corpus.jsonl}\n", "")


def texts_judged(data: Dataset) -> dict[str, list[str]]:
    """Question -> texts of its relevant documents."""
    texts = {document.id: document.text for document in data.documents or ()}
    asked = {query.id: query.text for query in data.queries}
    return {asked[id_]: [texts[one] for one in grades] for id_, grades in data.qrels.items()}


class TestPassages:
    def test_forms_and_white_space_do_not_matter_and_all_else_does(self) -> None:
        assert folded(" e\u0301\u3000\n x ") == "\u00e9 x"
        documents = [Document("a", "one  two\nthree four"), Document("b", "one two three")]
        sought = ["two three four", "two three", "one two three four", "wo thre", "Two three"]
        assert holders(documents, sought) == {
            "two three four": ["a"],
            "two three": ["a", "b"],
            "one two three four": ["a"],
            "wo thre": ["a", "b"],
            "Two three": [],
        }

    def test_whole_words_within_a_passage_are_found_where_its_ends_are_cut(self) -> None:
        documents = [Document("a", "xone two threex"), Document("b", "one twox three")]
        assert holders(documents, ["ne two thre"]) == {"ne two thre": ["a"]}


class TestQuotes:
    @pytest.mark.parametrize(
        "name", ["table.jsonl", "table.json", "table.csv", "table.tsv", "table.csv.gz"]
    )
    def test_a_quote_judges_the_document_that_holds_it_in_any_script(
        self, tmp_path: Path, name: str
    ) -> None:
        data = load_dataset(write(tmp_path, ROWS, name))
        assert [query.text for query in data.queries] == [row["question"] for row in ROWS]
        judged = [list(data.qrels[query.id]) for query in data.queries]
        assert judged == [["holidays"], ["연차"], ["报销"], ["congés"]]
        assert [q.metadata["answers"] for q in data.queries] == [["25"], ["15일"], ["两周"], ["25"]]
        assert data.warnings == ()

    @pytest.mark.slow
    @pytest.mark.needs("pyarrow")
    def test_parquet(self, tmp_path: Path) -> None:
        import pyarrow as arrow
        from pyarrow import parquet

        write(tmp_path, ROWS, described=QUOTES.replace("table", "table.parquet"))
        table = arrow.Table.from_pylist([{**row, "quote": [row["quote"]]} for row in ROWS])
        parquet.write_table(table, tmp_path / "table.parquet")
        (tmp_path / "dataset.yaml").write_text(QUOTES.replace("table", "table.parquet"))
        assert len(load_dataset(tmp_path).qrels) == 4

    def test_a_quote_in_several_documents_makes_all_of_them_relevant(self, tmp_path: Path) -> None:
        again = {"_id": "copy", "text": "As said: 25 days of paid leave."}
        data = load_dataset(write(tmp_path, ROWS[:1], corpus=[*CORPUS, again]))
        assert list(data.qrels.values()) == [{"holidays": 1, "copy": 1}]
        (warning,) = data.warnings
        assert warning.startswith("sources that several documents contain, all of them relevant: 1")
        assert "in 2)" in warning

    def test_quotes_that_are_nowhere_are_faults_all_at_once(self, tmp_path: Path) -> None:
        rows = [*ROWS, {**ROWS[0], "quote": "26 days"}, {**ROWS[1], "quote": "20일"}]
        told = dataset_faults(write(tmp_path, rows))
        assert [fault.partition(": ")[0] for fault in told] == ["table.jsonl:5", "table.jsonl:6"]
        assert "no document contains the source '26 days'" in told[0]
        assert "unfound: drop" in told[0]

    def test_quotes_that_are_nowhere_can_be_dropped(self, tmp_path: Path) -> None:
        rows = [ROWS[0], {**ROWS[0], "quote": "26 days"}, {**ROWS[1], "quote": "20일"}]
        described = QUOTES + "columns: {rows: {unfound: drop}}\n"
        data = load_dataset(write(tmp_path, rows, described=described))
        assert len(data.queries) == 2
        assert list(data.qrels.values()) == [{"holidays": 1}]
        (warning,) = data.warnings
        assert warning.startswith("sources that no document contains, dropped: 2 (")

    def test_a_faulty_corpus_is_told_alone(self, tmp_path: Path) -> None:
        rows = [*ROWS, {**ROWS[0], "quote": "nowhere"}]
        (fault,) = dataset_faults(write(tmp_path, rows, corpus=[*CORPUS, {"text": "x"}]))
        assert "corpus.jsonl:5: no '_id'" in fault

    def test_without_a_corpus_the_quotes_are_it_each_once(self, tmp_path: Path) -> None:
        rows = [*ROWS, {"question": "leave?", "answer": "yes", "quote": " 25 days of paid leave"}]
        data = load_dataset(write(tmp_path, rows, described=without_corpus()))
        assert data.n_documents == 4
        assert len(data.queries) == 5
        assert set(data.qrels[data.queries[0].id]) == set(data.qrels[data.queries[4].id])
        turned = write(tmp_path / "turned", rows[::-1], described=without_corpus())
        assert load_dataset(turned).fingerprint == data.fingerprint

    def test_rows_with_one_question_are_one_query(self, tmp_path: Path) -> None:
        rows = [ROWS[0], {"question": "how  many days", "answer": "15", "quote": "15일이"}]
        data = load_dataset(write(tmp_path, rows))
        (query,) = data.queries
        assert data.qrels == {query.id: {"holidays": 1, "연차": 1}}
        assert query.metadata["answers"] == ["25", "15"]

    def test_ids_tell_equal_questions_apart_and_hold_one_question(self, tmp_path: Path) -> None:
        rows: list[dict[str, Any]] = [
            {"id": 1, **ROWS[0]},
            {"id": "b", **ROWS[0], "quote": "15일이"},
        ]
        data = load_dataset(write(tmp_path / "a", rows))
        assert data.qrels == {"1": {"holidays": 1}, "b": {"연차": 1}}
        (fault,) = dataset_faults(write(tmp_path / "b", [rows[0], {**ROWS[1], "id": 1}]))
        assert "id '1' again with another question, first at" in fault

    def test_a_document_may_be_named_by_its_id(self, tmp_path: Path) -> None:
        rows = [{"question": "days?", "answer": "25", "doc_id": "holidays"}]
        assert list(load_dataset(write(tmp_path, rows)).qrels.values()) == [{"holidays": 1}]
        alone = load_dataset(write(tmp_path / "b", rows, described=without_corpus()))
        assert alone.documents is None
        assert list(alone.qrels.values()) == [{"holidays": 1}]

    @pytest.mark.parametrize(
        ("separator", "cell"),
        [('" "', "holidays  연차"), (";", "holidays;연차; "), ("','", "holidays , 연차")],
    )
    def test_a_cell_may_hold_ids_with_something_between(
        self, tmp_path: Path, separator: str, cell: str
    ) -> None:
        described = f"{QUOTES}columns: {{rows: {{documents: right, separator: {separator}}}}}\n"
        rows = [{"question": "days?", "right": cell}]
        data = load_dataset(write(tmp_path, rows, "table.csv", described=described))
        assert list(data.qrels.values()) == [{"holidays": 1, "연차": 1}]
        listed = write(tmp_path / "b", [{"question": "?", "right": ["연차"]}], described=described)
        assert list(load_dataset(listed).qrels.values()) == [{"연차": 1}]

    def test_an_id_beside_a_quote_is_its_id_without_a_corpus(self, tmp_path: Path) -> None:
        rows = [{**ROWS[0], "doc_id": "p1"}, {**ROWS[1], "doc_id": "p2"}]
        data = load_dataset(write(tmp_path / "a", rows, described=without_corpus()))
        assert [document.id for document in data.documents or ()] == ["p1", "p2"]
        rows[1]["doc_id"] = "p1"
        (fault,) = dataset_faults(write(tmp_path / "b", rows, described=without_corpus()))
        assert "document 'p1' has another text than at" in fault

    def test_columns_have_the_names_that_are_given(self, tmp_path: Path) -> None:
        rows = [{"frage": "days?", "beleg": "25 days", "antwort": "25", "team": "HR"}]
        described = QUOTES + (
            "columns: {rows: {question: frage, sources: beleg, answer: antwort},"
            " documents: {id: nummer}}\n"
        )
        corpus = [{"nummer": 7, "text": "25 days of leave"}]
        data = load_dataset(write(tmp_path, rows, "table.csv", described=described, corpus=corpus))
        (query,) = data.queries
        assert data.qrels == {query.id: {"7": 1}}
        assert query.metadata == {"team": "HR", "answers": ["25"]}

    def test_a_row_without_a_quote_judges_nothing_and_may_say_that_nothing_answers_it(
        self, tmp_path: Path
    ) -> None:
        rows = [
            {**ROWS[0], "answerable": ""},
            {"question": "hello", "answer": "", "quote": "", "answerable": "no"},
            {"question": "later", "answer": "", "quote": " ", "answerable": "yes"},
        ]
        data = load_dataset(write(tmp_path, rows, "table.csv"))
        assert [query.text for query in data.unanswerable] == ["hello"]
        assert [query.text for query in data.evaluated] == ["how many days"]
        told = f"1 ({tmp_path.absolute()}/table.csv:4 'later')"
        assert data.warnings == (f"rows without a source, which judge nothing: {told}",)

    def test_a_cell_may_hold_a_list_and_brackets_in_a_quote_are_text(self, tmp_path: Path) -> None:
        corpus = [{"_id": "a", "text": "[sic] 25 days"}, {"_id": "b", "text": "two weeks"}]
        cells = ['["25 days", "two weeks"]', " ['two weeks'] ", "[sic]", r"['\d', 'two weeks']"]
        corpus += [{"_id": "c", "text": r"\d"}]
        rows = [{"question": f"q{at}", "quote": cell} for at, cell in enumerate(cells)]
        data = load_dataset(write(tmp_path, rows, "table.csv", corpus=corpus))
        assert [list(data.qrels[query.id]) for query in data.queries] == [
            ["a", "b"],
            ["b"],
            ["a"],
            ["c", "b"],
        ]

    @pytest.mark.parametrize(
        ("given", "judged", "groups"),
        [
            ([["holidays", "연차"]], ["holidays", "연차"], 1),
            ([["holidays"], ["연차"]], ["holidays", "연차"], 0),
            (["holidays", ["연차", "报销"]], ["holidays", "연차", "报销"], 1),
            ("[['holidays', '연차']]", ["holidays", "연차"], 1),
        ],
    )
    def test_groups_of_documents_are_taken_apart_with_a_word(
        self, tmp_path: Path, given: object, judged: list[str], groups: int
    ) -> None:
        described = QUOTES + "columns: {rows: {documents: retrieval_gt}}\n"
        rows = [{"question": "q", "retrieval_gt": given}]
        data = load_dataset(write(tmp_path, rows, described=described))
        assert [list(grades) for grades in data.qrels.values()] == [judged]
        told = [text for text in data.warnings if text.startswith("rows with groups of documents")]
        assert len(told) == groups

    def test_all_faults_come_at_once(self, tmp_path: Path) -> None:
        rows: list[dict[str, Any]] = [
            {"answer": "x", "quote": "25 days"},
            {"question": "a", "answer": 12, "quote": "25 days"},
            {"question": "b", "quote": [3]},
            {"question": None, "quote": "25 days"},
            {"question": "c"},
            {"question": "d", "quote": ["25 days", "15일이"], "doc_id": ["x"]},
            {"question": [{"role": "assistant", "content": "x"}], "quote": "25 days"},
        ]
        told = dataset_faults(write(tmp_path, rows))
        assert [fault.split(": ", 1)[0] for fault in told] == [
            f"table.jsonl:{line}" for line in range(1, 8)
        ]
        for fault, part in zip(
            told,
            [
                "no question; found: 'answer', 'quote'; accepted: question",
                "answer holds 12; accepted: a text or a list of texts",
                "sources holds 3",
                "question is null",
                "no sources; found: 'question'; accepted: quote",
                "1 ids of documents and 2 sources; accepted: as many of both",
                "question is [{'role'",
            ],
            strict=True,
        ):
            assert part in fault

    def test_a_table_without_the_columns_says_so_once(self, tmp_path: Path) -> None:
        rows = [{"ask": "x", "say": "y"}] * 3
        told = dataset_faults(write(tmp_path, rows, "table.csv"))
        assert [fault.partition(";")[0] for fault in told[:2]] == [
            "table.csv:2: no question",
            "table.csv:2: no sources",
        ]
        assert len([fault for fault in told if "table.csv:3" in fault]) == 0

    def test_a_setting_that_is_not_known_is_refused(self, tmp_path: Path) -> None:
        described = QUOTES + "columns: {rows: {unfound: ignore}}\n"
        with pytest.raises(ConfigError, match=r"rows.unfound"):
            load_dataset(write(tmp_path, ROWS, described=described))


RAGAS = [
    {
        "user_input": "How long is leave, and how are fares paid?",
        "reference": "25 days; within two weeks",
        "reference_contexts": ["<1-hop>\n\n25 days of leave.", "<2-hop>\n\nFares in two weeks."],
        "retrieved_contexts": ["Pets."],
        "response": "I do not know",
        "synthesizer_name": "multi_hop",
    },
    {
        "user_input": "연차는 며칠?",
        "reference": "15일",
        "reference_contexts": ["15일이 주어진다."],
        "retrieved_contexts": [],
        "response": "",
        "synthesizer_name": "single_hop",
    },
]


class TestRagas:
    @pytest.mark.parametrize("name", ["test.jsonl", "test.json", "test.csv", "test.jsonl.gz"])
    def test_a_test_set_is_recognised_and_read(self, tmp_path: Path, name: str) -> None:
        folder = write(tmp_path, RAGAS, name)
        (folder / "dataset.yaml").unlink()
        (folder / "corpus.jsonl").unlink()
        data = load_dataset(folder)
        assert texts_judged(data) == {
            RAGAS[0]["user_input"]: ["25 days of leave.", "Fares in two weeks."],
            "연차는 며칠?": ["15일이 주어진다."],
        }
        assert data.queries[1].metadata["answers"] == ["15일"]
        assert data.queries[1].metadata["synthesizer_name"] == "single_hop"
        assert data.queries[0].metadata["response"] == "I do not know"

    def test_a_corpus_is_searched_for_the_contexts(self, tmp_path: Path) -> None:
        corpus = [{"_id": "a", "text": "We have 25 days of leave. Fares in two weeks."},
                  {"_id": "b", "text": "15일이 주어진다."}]  # fmt: skip
        described = QUOTES.replace("quotes", "ragas")
        data = load_dataset(write(tmp_path, RAGAS, described=described, corpus=corpus))
        assert list(data.qrels.values()) == [{"a": 1}, {"b": 1}]

    def test_ids_of_contexts_name_documents_of_the_corpus(self, tmp_path: Path) -> None:
        rows = [{"user_input": "x", "reference_contexts": ["?"], "reference_context_ids": ["报销"]}]
        described = QUOTES.replace("quotes", "ragas")
        data = load_dataset(write(tmp_path, rows, described=described))
        assert list(data.qrels.values()) == [{"报销": 1}]

    def test_a_conversation_asks_its_last_turn(self, tmp_path: Path) -> None:
        turns = [
            {"type": "human", "content": "휴가는?"},
            {"type": "ai", "content": "네?"},
            {"type": "human", "content": "며칠인가요?"},
        ]
        rows = [{"user_input": turns, "reference_contexts": ["15일이 주어진다."]}]
        described = without_corpus(QUOTES.replace("quotes", "ragas"))
        (query,) = load_dataset(write(tmp_path, rows, described=described)).queries
        assert query.text == "며칠인가요?"
        assert query.messages[:2] == (Message("user", "휴가는?"), Message("assistant", "네?"))

    def test_contexts_of_old_names_are_sources_only_in_a_test_set(self, tmp_path: Path) -> None:
        described = without_corpus(QUOTES.replace("quotes", "ragas"))
        made = {
            "question": "q?",
            "contexts": ["c."],
            "ground_truth": "g",
            "evolution_type": "simple",
        }
        data = load_dataset(write(tmp_path / "a", [made], described=described))
        assert texts_judged(data) == {"q?": ["c."]}
        assert data.queries[0].metadata["answers"] == ["g"]
        scored = {"question": "q?", "contexts": ["c."], "ground_truths": ["g", "h"], "answer": "a"}
        (fault,) = dataset_faults(write(tmp_path / "b", [scored], described=described))
        assert "no sources; found: 'question', 'contexts'" in fault
        said = described + "columns: {rows: {sources: contexts}}\n"
        data = load_dataset(write(tmp_path / "c", [scored], described=said))
        assert texts_judged(data) == {"q?": ["c."]}
        assert data.queries[0].metadata["answers"] == ["g", "h"]

    def test_a_file_of_other_columns_is_not_taken_for_one(self, tmp_path: Path) -> None:
        save_all(
            tmp_path, {"x.jsonl": '{"user_input": "a"}\n', "y.csv": "question,contexts\na,b\n"}
        )
        with pytest.raises(ConfigError, match="no layout of a dataset recognised"):
            load_dataset(tmp_path)


class TestLangSmith:
    DESCRIBED = without_corpus(QUOTES.replace("quotes", "langsmith"))

    def test_an_example_is_a_query_with_its_id(self, tmp_path: Path) -> None:
        rows = [
            {
                "id": "0c1d",
                "inputs": {"question": "며칠?"},
                "outputs": {"answer": "15일", "contexts": [{"page_content": "15일이다."}, "휴가"]},
                "metadata": {"tags": ["HR"]},
            }
        ]
        data = load_dataset(write(tmp_path, rows, described=self.DESCRIBED))
        (query,) = data.queries
        assert (query.id, query.text, query.tags) == ("0c1d", "며칠?", ("HR",))
        assert query.metadata["answers"] == ["15일"]
        assert texts_judged(data) == {"며칠?": ["15일이다.", "휴가"]}

    def test_keys_of_ones_own_are_named_by_dotted_paths(self, tmp_path: Path) -> None:
        rows = [{"inputs": {"chat": {"text": "days?"}}, "outputs": {"gold": "25"},
                 "metadata": {"source": "holidays"}}]  # fmt: skip
        described = QUOTES.replace("quotes", "langsmith") + (
            "columns: {rows: {question: inputs.chat.text, answer: outputs.gold,"
            " documents: metadata.source}}\n"
        )
        data = load_dataset(write(tmp_path, rows, described=described))
        assert list(data.qrels.values()) == [{"holidays": 1}]
        assert data.queries[0].metadata["answers"] == ["25"]

    @pytest.mark.parametrize(
        "row",
        [
            {"inputs": '{"question": "q"}', "outputs": "{'contexts': ['c'], 'answer': 'a'}"},
            {"inputs.question": "q", "outputs.answer": "a", "outputs.contexts": "['c']"},
        ],
    )
    def test_cells_may_hold_objects_or_columns_the_whole_path(
        self, tmp_path: Path, row: dict[str, str]
    ) -> None:
        data = load_dataset(write(tmp_path, [row], "table.csv", described=self.DESCRIBED))
        assert texts_judged(data) == {"q": ["c"]}
        assert data.queries[0].metadata["answers"] == ["a"]

    def test_a_chat_asks_its_last_turn(self, tmp_path: Path) -> None:
        turns = [{"role": "user", "content": "jours de congés ?"}]
        rows = [{"inputs": {"messages": turns}, "outputs": {"contexts": "25 jours."}}]
        data = load_dataset(write(tmp_path, rows, described=self.DESCRIBED))
        assert data.queries[0].text == "jours de congés ?"

    def test_what_is_not_there_is_named(self, tmp_path: Path) -> None:
        rows = [{"inputs": {"frage": "q"}, "outputs": {"answer": "a"}}]
        question, sources = dataset_faults(write(tmp_path, rows, described=self.DESCRIBED))[:2]
        assert "no question; found: 'inputs', 'outputs'; accepted: inputs.question or" in question
        assert "`columns: {rows: {sources: NAME}}` names it" in sources
