"""Words of case files: what teams call a question, its id, and what must come or must not."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "query", "input", "q", "prompt", "text", "user_input"),
    "id": ("id", "qid", "query_id", "question_id", "case_id", "test_id", "name"),
    "ids": (
        *("relevant", "relevant_ids", "relevant_docs", "relevant_documents"),
        *("expected_id", "expected_ids", "expected_doc_ids", "expected_docs"),
        *("ids", "doc_id", "doc_ids", "document_ids", "gold", "gold_ids", "gold_docs"),
    ),
    "phrases": (
        *("must_contain", "must_include", "should_contain", "contains", "contains_all"),
        *("phrase", "phrases", "expected_phrases", "expected_text", "expected_texts"),
        *("keywords", "expected_keywords"),
    ),
    "one of several phrases": ("contains_any", "must_contain_any", "any_of", "one_of"),
    "sources": (
        *("source", "sources", "expected_source", "expected_sources"),
        *("file", "files", "expected_file", "expected_files"),
        *("path", "paths", "expected_path", "expected_paths"),
        *("url", "urls", "expected_url", "expected_urls"),
    ),
    "forbidden phrases": (
        *("forbidden", "forbidden_phrases", "forbidden_text", "excluded"),
        *("must_not", "must_not_contain", "must_not_include", "not_contains"),
    ),
    "forbidden sources": (
        *("forbidden_source", "forbidden_sources", "forbidden_file", "forbidden_files"),
        *("forbidden_path", "forbidden_paths", "forbidden_url", "forbidden_urls"),
    ),
    "forbidden ids": ("forbidden_id", "forbidden_ids", "forbidden_docs", "must_not_ids"),
    "within": ("within", "max_rank", "top"),
}
"""Kind -> its words; in a file a kind has the first of them that is there, phrases, sources and ids
all of them."""

LISTS = ("cases", "questions", "queries", "tests", "examples", "items", "data", "golden")
"""Keys of a file that is one object: its only one of these holds the list of cases."""
