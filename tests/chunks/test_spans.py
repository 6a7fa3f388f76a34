"""Spans as judgements: read, checked, found again, and told."""

from __future__ import annotations

import json
import random
import unicodedata
from pathlib import Path
from typing import Any, ClassVar

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset, dataset_fingerprint, load_dataset
from retrieval_bench_chunks.ranges import Place
from retrieval_bench_chunks.relocation import AMBIGUOUS, EXACT, FUZZY, LOST, NORMALISED, Finder
from retrieval_bench_chunks.spans import span_of
from tests.builders.files import save_all

TEXT = (
    "The committee met on Monday and agreed on the new rules for annual leave. Every employee has "
    "twenty-five days. The committee met on Tuesday, too. Every employee has twenty-five days. "
    "Nobody objected, and the chairwoman closed the session before noon."
)


def truth(*spans: Any, text: str = TEXT) -> Dataset:
    documents: Any = [Document("d", text), Document("e", "another one")]
    return build_dataset("made", documents, [Query("q", "?", metadata={"spans": spans})], None)


def places(data: Dataset) -> tuple[Place, ...]:
    spans: Any = data.qrels["q"]
    return tuple(spans.truth)


def test_a_range_is_taken_as_it_is() -> None:
    data = truth({"document": "d", "start": 4, "end": 13, "quote": "committee"})
    assert places(data) == (Place("d", 4, 13),)
    assert data.warnings == ()


def test_a_quote_is_looked_for_where_there_is_no_range_or_another_text() -> None:
    for start in ({}, {"start": 1, "end": 10}, {"start": 900, "end": 910}):
        data = truth({"document": "d", "quote": "annual leave", **start})
        at = TEXT.index("annual leave")
        assert places(data) == (Place("d", at, at + 12),)


def test_what_stood_around_a_quote_tells_one_place_from_another() -> None:
    quote = "Every employee has twenty-five days."
    second = TEXT.rindex(quote)
    span = span_of("d", TEXT, second, second + len(quote))
    longer = "A preface.\n\n" + TEXT
    assert places(truth(span, text=longer)) == (Place("d", second + 12, second + 12 + len(quote)),)


def test_the_edited_place_of_a_quote_is_not_another_one_where_it_stands_unchanged() -> None:
    quote, before = "Every employee has twenty-five days.", "The committee met on Monday. "
    text = f"{before}{quote} More.\n\nIn other years nothing changed. {quote} The end."
    span = span_of("d", text, len(before), len(before) + len(quote))
    edited = text.replace(quote, quote.replace("has", " has"), 1)
    data = truth(span, text=edited)
    assert places(data) == (Place("d", len(before), len(before) + len(quote) + 1),)
    assert "found again by their quote, but for white space" in data.warnings[0]
    only = truth({**span, "before": "x", "after": "y"}, text=f"New. {quote}")
    assert places(only) == (Place("d", 5, 5 + len(quote)),)


def test_a_range_that_is_stale_is_told() -> None:
    moved = {"document": "d", "start": 0, "end": 12, "quote": "annual leave"}
    assert "exactly, but not at their range" in truth(moved).warnings[0]
    assert truth({"document": "d", "quote": "annual leave"}).warnings == ()
    ranged = {key: span_of("d", TEXT, 4, 13)[key] for key in ("document", "start", "end", "hash")}
    assert truth(ranged).warnings == ()
    assert places(truth(ranged, text=f"{TEXT} More.")) == (Place("d", 4, 13),)
    assert "document has changed" in truth(ranged, text=f"{TEXT} More.").warnings[0]


def test_an_ambiguous_quote_is_left_out_and_told() -> None:
    quote = {"document": "d", "quote": "Every employee has twenty-five days."}
    data = truth(quote, {"document": "d", "quote": "annual leave"})
    assert len(places(data)) == 1
    assert (
        "nothing tells which place is meant: 1 (queries: query 'q', spans[0])" in data.warnings[0]
    )
    assert truth(quote).qrels == {}
    assert any("of which no span is found" in warning for warning in truth(quote).warnings)


def test_a_quote_is_found_in_another_form_and_told() -> None:
    data = truth({"document": "d", "quote": "ANNUAL\n LEAVE"})
    assert TEXT[slice(*places(data)[0][1:])] == "annual leave"
    assert data.warnings[0].startswith("spans found again by their quote, but for white space")
    edited = "Nobody objected, and the chairman closed this session before noon."
    data = truth({"document": "d", "quote": edited})
    assert TEXT[slice(*places(data)[0][1:])].startswith("Nobody objected")
    assert "differs in some characters" in data.warnings[0]


@pytest.mark.parametrize(
    ("span", "fault"),
    [
        ("x", "'x'"),
        ({"document": "d"}, "document: ID, quote: TEXT"),
        ({"document": "none", "quote": "x"}, "'none', which is not in the corpus"),
        ({"document": "d", "start": 5, "end": 5}, "characters 5 to 5"),
        ({"document": "d", "start": 5, "end": 900}, "characters 5 to 900 of 250, without a quote"),
        ({"document": "d", "quote": 3}, "document: ID, quote: TEXT"),
        ({"document": None, "quote": "x"}, "document: ID, quote: TEXT"),
    ],
)
def test_faults_are_told_with_their_place(span: Any, fault: str) -> None:
    with pytest.raises(DataError) as caught:
        truth(span)
    assert fault in caught.value.render()
    assert "spans[0]" in caught.value.render()


@pytest.mark.parametrize("spans", [5, "x", {"document": "d"}])
def test_what_is_no_list_of_spans_is_refused(spans: Any, tmp_path: Path) -> None:
    documents: Any = [Document("d", TEXT)]
    with pytest.raises(DataError, match="a list of"):
        build_dataset("made", documents, [Query("q", "?", metadata={"spans": spans})], None)
    good = {"id": "q", "text": "?", "spans": [{"document": "d", "quote": "committee"}]}
    lines = [json.dumps(of) for of in ({**good, "spans": spans}, good, {**good, "spans": spans})]
    documents = json.dumps({"id": "d", "text": "The committee met."})
    save_all(tmp_path, {"documents.jsonl": documents, "spans.jsonl": "\n".join(lines)})
    with pytest.raises(DataError) as caught:
        load_dataset(tmp_path)
    assert caught.value.render().count("a list of spans") >= 1


def test_a_question_without_a_span_may_have_one_in_a_later_row(tmp_path: Path) -> None:
    table = "id,text,document,start,end,quote\nq,A,,,,\nq,A,d,0,3,\n"
    save_all(tmp_path, {"documents.csv": "id,text\nd,abc\n", "spans.csv": table})
    assert places(load_dataset(tmp_path)) == (Place("d", 0, 3),)


def test_spans_beside_judgements_are_not_read_and_without_documents_refused() -> None:
    query = Query("q", "?", metadata={"spans": [{"document": "d", "quote": "committee"}]})
    documents: Any = [Document("d", TEXT)]
    judged = build_dataset("made", documents, [query], {"q": {"d": 1}})
    assert "spans are not read beside judgements" in judged.warnings[0]
    with pytest.raises(DataError, match="spans without documents"):
        build_dataset("made", None, [query], None)


def test_the_fingerprint_says_which_characters_answer() -> None:
    one, other = (truth({"document": "d", "start": 4, "end": end}) for end in (13, 14))
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint == dataset_fingerprint(one)


class TestFinder:
    texts: ClassVar = {
        "d": TEXT,
        "e": "엘리베이터는 삼 층에 있습니다. Café **bold** text `code`.",
        "f": TEXT[:73],
    }

    def found(self, text: str) -> tuple[str, list[str]]:
        sought = Finder(self.texts).anywhere(text)
        return sought.way, [self.texts[p.doc_id][p.start : p.end] for p in sought.places]

    def test_texts_that_stand_several_times_have_all_their_places(self) -> None:
        way, there = self.found("The committee met on Monday")
        assert way == AMBIGUOUS
        assert there == ["The committee met on Monday"] * 2

    def test_forms_of_letters_case_white_space_and_markup_do_not_matter(self) -> None:
        assert self.found("삼 층에") == (EXACT, ["삼 층에"])
        for text in (unicodedata.normalize("NFD", "삼 층에"), "삼층에"):
            assert self.found(text) == (NORMALISED, ["삼 층에"])
        assert self.found("CAFE bold text code") == (NORMALISED, ["Café **bold** text `code"])

    def test_a_text_is_found_with_the_marks_and_punctuation_at_its_ends(self) -> None:
        finder = Finder({"d": unicodedata.normalize("NFD", 'He said "no  way (in a café)." Then')})
        for quote in ('"No way (in a café)."', "no  way (in a café"):
            (place,) = finder.within("d", quote).places
            there = unicodedata.normalize("NFC", finder._texts["d"][place.start : place.end])
            assert there.casefold().replace("  ", " ") == quote.casefold().replace("  ", " ")

    def test_vowel_signs_are_letters(self) -> None:
        finder = Finder({"d": "हिन्दी में लिखा हुआ कि और का तथा की"})
        assert finder.within("d", "कू").way == LOST
        assert finder.within("d", "हुआ\nकि").way == NORMALISED

    def test_a_heading_in_front_and_changed_letters_are_found_nearly(self) -> None:
        body = TEXT[120:]
        way, there = self.found(f"Minutes\n\n{body}")
        assert (way == FUZZY and there == [body.strip().removesuffix(".")]) or there[0] in TEXT
        way, there = self.found(body.replace("a", "o", 2).replace("h", "", 2))
        assert way == FUZZY
        assert len(there) == 1

    def test_what_stands_nowhere_is_lost(self) -> None:
        for text in ("a text of its own that nobody wrote before", "!!!", "", "zz"):
            assert self.found(text) == (LOST, [])

    def test_a_text_of_hardly_a_letter_that_stands_everywhere_is_lost(self) -> None:
        for text in (" ", "a", "on"):
            assert self.found(text) == (LOST, [])

    @pytest.mark.parametrize("n", [7_000, 40_000])
    def test_a_long_text_is_found_nearly(self, n: int) -> None:
        chance = random.Random(5)
        words = ["".join(chance.choices("etaoinshrdlu", k=6)) for _ in range(2_000)]
        text = " ".join(chance.choices(words, k=12_000))
        for start in (20_000, len(text) - n):
            part = text[start : start + n]
            noisy = "".join("x" if chance.random() < 0.02 else letter for letter in part)
            sought = Finder({"d": text}).anywhere(noisy)
            assert sought.way == FUZZY
            assert abs(sought.places[0].start - start) < 20
            assert abs(sought.places[0].end - start - n) < 20


def test_files_of_spans_are_read_and_written(tmp_path: Path) -> None:
    line = {"id": "q1", "text": "Wann?", "spans": [{"document": "d", "start": 0, "end": 3}]}
    save_all(
        tmp_path / "lines",
        {
            "documents.jsonl": json.dumps({"id": "d", "text": "abc def"}),
            "spans.jsonl": json.dumps(line),
        },
    )
    table = "id,text,document,start,end,quote\nq1,Wann?,d,0,3,\nq1,Wann?,d,,,def\nq2,Wo?,d,4,,def\n"
    save_all(
        tmp_path / "table",
        {
            "pages/d": "abc\r\ndef",
            "dataset.yaml": "format: spans\nfiles: {documents: 'pages/*.txt', queries: spans.csv}",
            "spans.csv": table,
        },
    )
    (tmp_path / "table" / "pages" / "d").rename(tmp_path / "table" / "pages" / "d.txt")
    table = table.replace(",d,", ",d.txt,")
    (tmp_path / "table" / "spans.csv").write_text(table, encoding="utf-8")
    first, second = load_dataset(tmp_path / "lines"), load_dataset(tmp_path / "table")
    spans: Any = first.qrels["q1"]
    assert spans.truth == (Place("d", 0, 3),)
    spans = second.qrels
    assert spans["q1"].truth == (Place("d.txt", 0, 3), Place("d.txt", 5, 8))
    assert spans["q2"].truth == (Place("d.txt", 5, 8),)


def test_a_table_with_a_faulty_number_or_two_texts_is_refused(tmp_path: Path) -> None:
    save_all(
        tmp_path,
        {
            "documents.csv": "id,text\nd,abc\n",
            "spans.csv": "id,text,document,start,end,quote\nq,A,d,x,3,\nq,B,d,0,3,\n",
        },
    )
    with pytest.raises(DataError) as caught:
        load_dataset(tmp_path)
    assert "start is 'x'" in caught.value.render()
    assert "another text" in caught.value.render()


def test_layouts_of_others_are_read(tmp_path: Path) -> None:
    references = json.dumps([{"content": "def", "start_index": 4, "end_index": 7}])
    quoted = references.replace('"', '""')
    save_all(
        tmp_path / "chroma",
        {
            "corpora/a.md": "abc def",
            "corpora/b.md": "abc def",
            "questions.csv": "question,references,corpus_id\n"
            f'Which?,"{quoted}",a\nWhat?,"{quoted}",b\n',
        },
    )
    both = load_dataset(tmp_path / "chroma")
    one = load_dataset(tmp_path / "chroma", split="b")
    spans: Any = both.qrels
    assert {q: of.truth for q, of in spans.items()} == {
        "a-1": (Place("a", 4, 7),),
        "b-2": (Place("b", 4, 7),),
    }
    assert one.n_documents == 1
    assert list(one.qrels) == ["b-2"]
    tests = {
        "tests": [
            {"query": "?", "snippets": [{"file_path": "x/y.txt", "span": [0, 3], "answer": "abc"}]}
        ]
    }
    save_all(
        tmp_path / "legal", {"corpus/x/y.txt": "abc", "benchmarks/test.json": json.dumps(tests)}
    )
    spans = load_dataset(tmp_path / "legal").qrels
    assert spans["test-1"].truth == (Place("x/y.txt", 0, 3),)
    answers = [{"text": "def", "answer_start": 4}, {"text": "abc def", "answer_start": 0}]
    qas = [
        {"id": "q", "question": "?", "answers": answers},
        {"id": "n", "question": "?", "answers": [], "is_impossible": True},
    ]
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "abc def", "qas": qas}]}]}
    yaml = "format: squad_spans\nsplits: {test: dev.json}\n"
    save_all(tmp_path / "squad", {"dev.json": json.dumps(squad), "dataset.yaml": yaml})
    data = load_dataset(tmp_path / "squad")
    spans = data.qrels
    assert [(p.start, p.end) for p in spans["q"].truth] == [(4, 7)]
    assert [query.answerable for query in data.queries] == [True, False]
