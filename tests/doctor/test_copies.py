"""Queries copied from documents, and documents that are the same and judged differently."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from retrieval_bench.core.scripts import tokens
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench_doctor import copies as module
from retrieval_bench_doctor.copies import Copies, Place, Twin, Twins, look_into

ENGLISH = "The old lighthouse keeper counted nine ships before the storm came in."


def data(
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    unit_of: Mapping[str, str] | None = None,
) -> Dataset:
    return Dataset(
        "own",
        [Document(key, text) for key, text in documents.items()],
        tuple(Query(key, text) for key, text in queries.items()),
        qrels,
        "test",
        None,
        "",
        unit_of=unit_of or {},
    )


def copies(documents: Mapping[str, str], query: str, qrels: Mapping[str, int]) -> Copies:
    looked = look_into(data(documents, {"q": query}, {"q": qrels}))
    assert looked is not None
    return looked[0]


def twins(documents: Mapping[str, str], qrels: Mapping[str, Mapping[str, int]]) -> Twins:
    looked = look_into(data(documents, dict.fromkeys(qrels, "anything"), qrels))
    assert looked is not None
    return looked[1]


def unjudged(
    documents: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    unit_of: Mapping[str, str] | None = None,
) -> Twins:
    looked = look_into(data(documents, dict.fromkeys(qrels, "anything"), qrels, unit_of))
    assert looked is not None
    return looked[2]


class TestTokens:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Red,  apples!\nand (pears)", ["red", "apples", "and", "pears"]),
            ("ＦＵＬＬ Width", ["full", "width"]),
            ("Straße", ["strasse"]),
            ("東京タワー is 333 m", [*"東京タワー", "is", "333", "m"]),
            ("사과 배", [*"사과배"]),
            ("हिन्दी में", ["हिन्दी", "में"]),
            ("Привет, мир", ["привет", "мир"]),
            ("...", []),
            ("", []),
        ],
    )
    def test_words_and_single_characters(self, text: str, expected: list[str]) -> None:
        assert tokens(text) == expected


COPIES = {
    "English": ("the lighthouse keeper counted nine ships", "counted nine ships"),
    "German": ("Wie lange dürfen Äpfel im Keller über Winter liegen?", "Äpfel im Keller"),
    "Russian": ("почему осенью листья деревьев становятся красными", "листья деревьев"),
    "Hindi": ("पतझड़ में पत्तों का रंग लाल क्यों हो जाता है", "पत्तों का रंग"),
    "Arabic": ("لماذا تتحول أوراق الأشجار إلى اللون الأحمر في الخريف", "أوراق الأشجار"),
    "Japanese": ("なぜ秋になると木の葉は赤くなるのですか", "木の葉"),
    "Chinese": ("为什么秋天树叶会变成红色而不是蓝色呢", "树叶"),
    "Korean": ("가을이 되면 나뭇잎이 왜 빨갛게 변하는가", "나뭇잎이"),
    "Thai": ("ทำไมใบไม้ถึงเปลี่ยนเป็นสีแดงในฤดูใบไม้ร่วง", "ใบไม้"),
}


class TestCopies:
    @pytest.mark.parametrize("language", COPIES)
    def test_a_query_within_a_document_is_found_in_any_script(self, language: str) -> None:
        query, phrase = COPIES[language]
        documents = {"d1": f"{phrase}. {query.upper()} {phrase}.", "d2": f"{phrase}, {phrase}."}
        found = copies(documents, query, {"d1": 1, "d2": 0})
        assert (found.checked, found.relevant, found.elsewhere) == (1, 1, 0)
        assert found.in_relevant == Place("q", "d1")
        assert found.in_other is None

    def test_case_punctuation_and_white_space_do_not_count(self) -> None:
        found = copies({"d": ENGLISH}, "Lighthouse  keeper: COUNTED nine\nships?", {"d": 1})
        assert found.relevant == 1

    def test_a_copy_elsewhere_is_told_apart(self) -> None:
        documents = {"d1": "Something else.", "d2": ENGLISH}
        found = copies(documents, "lighthouse keeper counted nine ships", {"d1": 1})
        assert (found.relevant, found.elsewhere) == (0, 1)
        assert found.in_other == Place("q", "d2")

    def test_a_query_may_stand_in_both(self) -> None:
        found = copies({"a": ENGLISH, "b": ENGLISH}, ENGLISH, {"a": 1})
        assert (found.relevant, found.elsewhere) == (1, 1)

    @pytest.mark.parametrize(
        "query", ["nine ships", "a of to in it", "赤くなる", "lighthouse keepers counted ships"]
    )
    def test_a_short_query_is_a_phrase_and_not_looked_for(self, query: str) -> None:
        found = copies({"d": f"{query} {query}"}, query, {"d": 1})
        assert (found.checked, found.relevant) == (0, 0)

    def test_the_end_of_a_query_counts(self) -> None:
        found = copies({"d": ENGLISH}, "old lighthouse keeper counted nine boats", {"d": 1})
        assert (found.checked, found.relevant) == (1, 0)

    def test_no_copy_runs_over_the_border_of_two_documents(self) -> None:
        documents = {"a": "the old lighthouse keeper", "b": "counted nine ships before"}
        query = "the old lighthouse keeper counted nine ships before"
        assert copies(documents, query, {"a": 1, "b": 1}) == Copies(1, 0, 0, 2)

    def test_a_title_is_a_part_of_a_document(self) -> None:
        text = Document("d", "Nothing.", "Old lighthouse keepers and their many ships")
        one = Query("q", "old lighthouse keepers and their many ships")
        own = Dataset("own", [text], (one,), {"q": {"d": 1}}, "test", None, "")
        looked = look_into(own)
        assert looked is not None
        assert looked[0].relevant == 1

    def test_a_chunk_stands_for_the_unit_that_is_judged(self) -> None:
        own = data({"c1": ENGLISH}, {"q": ENGLISH}, {"q": {"d1": 1}}, {"c1": "d1"})
        looked = look_into(own)
        assert looked is not None
        assert (looked[0].relevant, looked[0].elsewhere) == (1, 0)

    def test_of_a_large_corpus_the_judged_documents_are_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "READ", 2)
        documents = {"a": "One.", "b": "Two.", "c": ENGLISH, "d": ENGLISH}
        found = copies(documents, ENGLISH, {"d": 1})
        assert (found.documents, found.relevant, found.elsewhere) == (3, 1, 0)

    def test_without_a_corpus_nothing_is_known(self) -> None:
        own = Dataset("own", None, (Query("q", "x"),), {"q": {"d": 1}}, "test", None, "")
        assert look_into(own) is None


LONG = " ".join(f"word{i}" for i in range(120))


class TestTwins:
    def test_the_same_text_with_another_grade(self) -> None:
        found = twins({"a": "Red apples.", "b": "red  APPLES"}, {"q": {"a": 1, "b": 0}})
        assert (found.pairs, found.queries, found.documents) == (1, 1, 2)
        assert found.example is not None
        assert (found.example.relevant, found.example.other) == ("a", "b")

    def test_texts_that_differ_in_a_word_or_a_sign_are_different(self) -> None:
        for other in (f"{LONG} end", LONG.replace("word30", "word30+")):
            assert twins({"a": LONG, "b": other}, {"q": {"a": 1, "b": 0}}).pairs == 0

    @pytest.mark.parametrize("grades", [(1, 1), (1, 2), (0, 0), (0, -1)])
    def test_grades_on_one_side_are_no_conflict(self, grades: tuple[int, int]) -> None:
        qrels = {"q": dict(zip("ab", grades, strict=True))}
        assert twins({"a": LONG, "b": LONG}, qrels).pairs == 0

    def test_pairs_are_of_one_query(self) -> None:
        found = twins({"a": LONG, "b": LONG}, {"q1": {"a": 1}, "q2": {"b": 0}})
        assert found.pairs == 0

    def test_texts_without_a_word_are_not_compared(self) -> None:
        assert twins({"a": "...", "b": "!!!"}, {"q": {"a": 1, "b": 0}}).pairs == 0


class TestUnjudgedCopies:
    SAME: Mapping[str, str] = dict(zip("abcd", ["Red a.", "red  A", "RED a", "Red"], strict=True))

    def test_each_copy_of_each_relevant_document_is_counted(self) -> None:
        qrels = {"q1": {"a": 1, "d": 0}, "q2": {"c": 2, "a": 1}, "q3": {"d": 1}}
        found = unjudged(self.SAME, qrels)
        assert (found.pairs, found.queries, found.documents) == (4, 2, 4)
        assert found.example == Twin("q1", "a", "b")

    @pytest.mark.parametrize(
        "grades",
        [{"a": 1, "b": 0, "c": 1}, {"a": 0}, {"d": 1}, {"gone": 1}],
    )
    def test_of_what_is_judged_or_not_relevant_none_is_missed(self, grades: dict[str, int]) -> None:
        assert unjudged(self.SAME, {"q": grades}).pairs == 0

    def test_a_grade_below_0_is_no_judgement(self) -> None:
        assert unjudged(self.SAME, {"q": {"a": 1, "b": -1, "c": 0}}).example.other == "b"  # type: ignore[union-attr]

    def test_texts_without_a_word_and_units_of_several_documents_are_none(self) -> None:
        assert unjudged({"a": "...", "b": "!!!"}, {"q": {"a": 1}}).pairs == 0
        units = {"a": "u", "b": "v", "c": "w", "d": "x"}
        assert unjudged(self.SAME, {"q": {"u": 1}}, units).pairs == 0
