"""Lists that a cell holds: read exactly as they were meant, or refused with the cause."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.data import load_dataset
from retrieval_bench.data.files.literals import (
    LONGEST_CELL,
    LiteralError,
    listed,
    literal,
    looks_listed,
)
from tests.builders.files import save, save_all

RAGAS = "user_input,reference_contexts,reference\n"


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('["a", "b"]', ["a", "b"]),
        (" ['it''s', 'b'] ".replace("''", "’"), ["it’s", "b"]),
        (r"['\d', 'x']", [r"\d", "x"]),
        ("['a',\n 'b',]", ["a", "b"]),
        ('[{"role": "user"}]', [{"role": "user"}]),
        ("[{'role': None, 'n': -1.5e3}]", [{"role": None, "n": -1500.0}]),
        ("[['d2', 'd3'], ['d4']]", [["d2", "d3"], ["d4"]]),
        ("[]", []),
        ("[sic]", None),
        ("[1] the first, [2] the second", None),
        ("see ['a' 'b']", None),
        ("", None),
        (7, None),
    ],
)
def test_lists_of_json_and_of_python_are_read_and_texts_in_brackets_stay_texts(
    text: object, items: list[object] | None
) -> None:
    assert listed(text) == items


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("['a' 'b']", "without commas, as numpy prints it"),
        ("['a'\n 'b']", "without commas, as numpy prints it"),
        ("""['a' "it's"]""", "without commas, as numpy prints it"),
        ("['a', 'b' 'c']", "without commas, as numpy prints it"),
        ('["a" "b"]', "without commas, as numpy prints it"),
        ("[['a' 'b']\n ['c' 'd']]", "without commas, as numpy prints it"),
        ("[{'a': 1}\n {'a': 2}]", "without commas, as numpy prints it"),
        ("[1 2 3]", "without commas, as numpy prints it"),
        ("['a' 'b' ... 'y' 'z']", "was shortened"),
        ("['a', 'b', ..., 'z']", "was shortened"),
        ("['one two' ...]", "was shortened"),
        ("['one two', …]", "was shortened"),
        ("[1 2 ...]", "was shortened"),
        ("[array(['a', 'b'], dtype=object)]", "the names of its types"),
        ("array(['a', 'b'], dtype=object)", "the names of its types"),
        ("[np.str_('a'), np.str_('b')]", "the names of its types"),
        ("['a', nan]", "neither JSON nor as Python prints it"),
        ("[007, 012]", "neither JSON nor as Python prints it"),
        ("[1_000, 2]", "the number 1_000, which only Python writes so"),
        ("[0x10, 2]", "the number 0x10, which only Python writes so"),
        ("[b'a', b'b']", "JSON has no word for"),
        ("[{'a': 1, 'a': 2}]", "a key that stands twice"),
        ('[{"a": 1, "a": 2}]', "a key that stands twice"),
        ("['" + "a" * (LONGEST_CELL - 2), "cut off after 32,767 characters"),
    ],
)
def test_what_would_become_another_list_is_refused_with_its_cause(text: str, cause: str) -> None:
    with pytest.raises(LiteralError, match=cause):
        listed(text)
    assert looks_listed(text)


def test_an_object_whose_texts_would_be_joined_is_refused_too() -> None:
    assert literal("{'contexts': ['a', 'b']}") == {"contexts": ["a", "b"]}
    assert literal("no object at all") is None
    with pytest.raises(LiteralError, match="without commas"):
        literal("{'contexts': ['a' 'b']}")


@pytest.mark.needs("retrieval_bench_exchange")
def test_passages_that_lost_their_commas_never_become_one_document(tmp_path: Path) -> None:
    rows = (
        """when is it paid back,"['Tickets are paid back soon.' 'Keep the receipt.']",soon\n"""
        """how many days,"['There are 25 days.']",25\n"""
    )
    with pytest.raises(DataError) as caught:
        load_dataset(save(tmp_path / "test.csv", RAGAS + rows).parent)
    (fault,) = caught.value.faults
    assert fault.startswith(f"{tmp_path}/test.csv:2: sources is \"['Tickets are paid back soon.'")
    assert "a list without commas, as numpy prints it: Python would join its texts" in fault
    assert 'accepted: a list as JSON has it, such as ["a", "b"]' in fault


@pytest.mark.needs("retrieval_bench_exchange")
def test_an_empty_list_in_a_cell_is_no_source_named_by_its_brackets(tmp_path: Path) -> None:
    rows = """how many days,"['There are 25 days.']",25\nhello,[],\n"""
    data = load_dataset(save(tmp_path / "test.csv", RAGAS + rows).parent)
    assert [document.text for document in data.documents or ()] == ["There are 25 days."]
    assert any(text.startswith("rows without a source") for text in data.warnings)


@pytest.mark.needs("retrieval_bench_exchange")
def test_turns_and_nested_objects_that_lost_their_commas_are_faults(tmp_path: Path) -> None:
    turns = """\"[{'role': 'user', 'content': 'a'}\n {'role': 'user', 'content': 'b'}]\""""
    chat = save_all(tmp_path / "chat", {"test.csv": f"{RAGAS}{turns},\"['There.']\",25\n"})
    smith = save_all(
        tmp_path / "smith",
        {
            "dataset.yaml": "format: langsmith\nsplits: {test: test.csv}\n",
            "test.csv": """inputs,outputs\n{'question': 'q'},"{'contexts': ['a' 'b']}"\n""",
        },
    )
    for folder, words in ((chat, "question is"), (smith, "a cell holds a list without commas")):
        with pytest.raises(DataError, match=words):
            load_dataset(folder)


@pytest.mark.parametrize(
    ("cells", "lost"),
    [
        (["['There are 25 days.']", "[Tickets are paid back, Keep the receipt]"], [3]),
        (["[Tickets are paid back, Keep it]", "[There are 25 days.]"], [2, 3]),
        (["['There are 25 days.']", '{"Keep it",There}'], [3]),
        (["('Keep it', 'There')", "('There',)"], [2, 3]),
        (["['There are 25 days.']", "Keep the receipt."], []),
        (["There are 25 days.", "[deleted]"], []),
        (["There are 25 days.", "(see above)"], []),
    ],
)
@pytest.mark.needs("retrieval_bench_exchange")
def test_a_text_in_brackets_is_a_lost_list_beside_lists_or_where_all_are_so(
    cells: list[str], lost: list[int], tmp_path: Path
) -> None:
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerows([f"question {at}", cell, "answer"] for at, cell in enumerate(cells))
    folder = save(tmp_path / "test.csv", RAGAS + text.getvalue()).parent
    if not lost:
        assert len(list(load_dataset(folder).documents or ())) == len(cells)
        return
    with pytest.raises(DataError) as caught:
        load_dataset(folder)
    places = [fault.split(": sources is ")[0] for fault in caught.value.faults]
    assert places == [f"{tmp_path}/test.csv:{line}" for line in lost]


@pytest.mark.needs("retrieval_bench_exchange")
def test_ids_of_documents_that_lost_their_quotes_are_told_too(tmp_path: Path) -> None:
    header = "user_input,reference_context_ids,reference\n"
    save(tmp_path / "corpus.jsonl", '{"_id": "d1", "text": "a"}\n{"_id": "d2", "text": "b"}\n')
    save(tmp_path / "dataset.yaml", "format: ragas\nfiles: {documents: corpus.jsonl}\n")
    save(tmp_path / "test.csv", header + """one,"['d1']",a\ntwo,"[d1, d2]",b\n""")
    with pytest.raises(DataError, match="a list without quotes"):
        load_dataset(tmp_path)
