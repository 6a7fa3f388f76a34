from __future__ import annotations

import pickle

from retrieval_bench.core import secrets
from retrieval_bench.core.notices import (
    Code,
    Notice,
    coded,
    from_document,
    loudest_first,
    to_document,
    with_text,
)

BUSY = Notice("the machine is busy", Code.BUSY)


def test_a_warning_is_a_text_with_a_code() -> None:
    assert BUSY == "the machine is busy"
    assert coded([BUSY, "a fault"], Code.DATA)[1].code is Code.DATA
    assert coded([BUSY], Code.DATA)[0].code is Code.BUSY
    again = pickle.loads(pickle.dumps(BUSY))
    assert (again, again.code) == (BUSY, Code.BUSY)


def test_the_loudest_are_first_then_what_changes_little_and_notes_are_last() -> None:
    codes = [Code.NOTE, Code.DEEP, Code.BUSY, Code.PROMPTS, Code.OTHER]
    texts = [Notice(code.value, code) for code in codes]
    ordered = loudest_first(texts)
    assert ordered == ["prompts-missing", "busy-machine", "other", "deeper-than-corpus", "note"]
    deep = Notice("k is more than the documents", Code.DEEP)
    assert loudest_first([deep, BUSY, "plain"]) == [BUSY, "plain", deep]


def test_in_json_it_is_an_object_and_reads_back() -> None:
    document = to_document({"runs": [{"warnings": [BUSY, "plain"], "health": ["fine"]}]})
    entries = [
        {"code": "busy-machine", "text": "the machine is busy"},
        {"code": "other", "text": "plain"},
    ]
    assert document == {"runs": [{"warnings": entries, "health": ["fine"]}]}
    back = from_document(entries)
    assert [(text, getattr(text, "code", None)) for text in back] == [
        ("the machine is busy", Code.BUSY),
        ("plain", Code.OTHER),
    ]


def test_warnings_of_an_older_version_have_no_code_and_of_a_newer_one_another() -> None:
    assert from_document(["old"]) == ["old"]
    (newer,) = from_document([{"code": "not-thought-of-yet", "text": "new"}])
    assert isinstance(newer, Notice)
    assert (newer, newer.code) == ("new", Code.OTHER)


def test_the_code_outlives_other_words_and_redaction() -> None:
    assert getattr(with_text(BUSY, "leg: busy"), "code", None) is Code.BUSY
    assert with_text("plain", "other words") == "other words"
    (redacted,) = secrets.redact([BUSY])
    assert redacted.code is Code.BUSY
