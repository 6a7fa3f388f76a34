from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from retrieval_bench.core.notices import Code, Notice
from retrieval_bench_retrievers.encoders.prompts import FAMILIES, missing

NONE = {"query": "", "document": ""}
E5 = 'prompts: {query: "query: ", document: "passage: "}'
E5_CARD = (
    "---\nlicense: mit\n---\n\n## Usage\n\n"
    '# Each input text should start with "query: " or "passage: ", even for non-English texts.\n'
)


def of(name: str, folder: Path | None = None) -> Notice | None:
    return missing(name, folder, NONE, (), {})


def files(folder: Path, readme: str = "", config: dict[str, object] | None = None) -> Path:
    folder.mkdir()
    (folder / "README.md").write_text(readme, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config or {}), encoding="utf-8")
    return folder


def test_a_model_that_needs_prompts_is_told_with_the_line_to_add() -> None:
    notice = of("intfloat/multilingual-e5-small")
    assert notice == (
        "intfloat/multilingual-e5-small gets no prompt before queries and documents, which its "
        f"card asks for: dense rankings may be underrated. Add to its parameters: {E5}"
    )
    assert notice.code is Code.PROMPTS


@pytest.mark.parametrize(
    ("name", "code", "line"),
    [
        ("./E5-Base-v2", Code.PROMPTS, E5),
        ("models/multilingual_e5_small/", Code.PROMPTS, E5),
        ("C:\\models\\e5-large", Code.PROMPTS, E5),
        ("dragonkue/multilingual-e5-small-ko", Code.PROMPTS, E5),
        ("intfloat/e5-mistral-7b-instruct", Code.PROMPTS, 'prompts: {query: "Instruct: Given'),
        ("intfloat/multilingual-e5-large-instruct", Code.PROMPTS, 'prompts: {query: "Instruct: '),
        ("BAAI/bge-base-en-v1.5", Code.NOTE, 'prompts: {query: "Represent this sentence for'),
        ("BAAI/bge-large-zh-v1.5", Code.NOTE, "prompts: {query: "),
        ("Alibaba-NLP/gte-Qwen2-1.5B-instruct", Code.PROMPTS, 'prompts: {query: "Instruct: '),
        (
            "nomic-ai/nomic-embed-text-v1.5",
            Code.PROMPTS,
            'prompts: {query: "search_query: ", document: "search_document: "}',
        ),
        ("Snowflake/snowflake-arctic-embed-m", Code.PROMPTS, 'prompts: {query: "Represent this'),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", Code.PROMPTS, 'prompts: {query: "query: "}'),
        ("jinaai/jina-embeddings-v3", Code.PROMPTS, 'prompts: {query: "Represent the query for'),
        ("Qwen/Qwen3-Embedding-0.6B", Code.NOTE, 'prompts: {query: "Instruct: Given a web'),
        ("hkunlp/instructor-large", Code.PROMPTS, 'prompts: {query: "Represent the question'),
        ("mixedbread-ai/mxbai-embed-large-v1", Code.PROMPTS, 'prompts: {query: "Represent this'),
    ],
)
def test_families_are_known_by_the_last_part_of_a_name(name: str, code: Code, line: str) -> None:
    notice = of(name)
    assert notice is not None
    assert notice.code is code
    assert line in notice
    added = yaml.safe_load(notice.partition("Add to its parameters: ")[2])["prompts"]
    assert missing(name, None, NONE | added, (), {}) is None


@pytest.mark.parametrize(
    "name",
    [
        "all-MiniLM-L6-v2",
        "all-MiniLM-L6-v2-int8",
        "BAAI/bge-m3",
        "thenlper/gte-base",
        "Alibaba-NLP/gte-modernbert-base",
        "jinaai/jina-embeddings-v2-base-en",
        "sentence-transformers/multi-qa-mpnet-base-dot-v1",
        "intfloat/simlm-base",
        "e5/all-MiniLM-L6-v2",
        "me5h-encoder",
    ],
)
def test_models_that_ask_for_none_are_left_in_peace(name: str) -> None:
    assert of(name) is None


def test_a_prompt_that_is_set_is_never_told_and_one_that_is_not_is() -> None:
    name = "multilingual-e5-small"
    both = {"query": "query: ", "document": "passage: "}
    assert missing(name, None, both, (), {}) is None  # the model's own
    assert missing(name, None, NONE, ("query", "document"), {}) is None  # none, on purpose
    half = missing(name, None, {"query": "query: ", "document": ""}, ("query",), {})
    assert half is not None
    assert half.startswith(f"{name} gets no prompt before documents, which its card asks for")
    assert half.endswith(E5)


def test_a_renamed_folder_is_known_by_its_files(tmp_path: Path) -> None:
    by_config = files(tmp_path / "a", config={"_name_or_path": "intfloat/multilingual-e5-small"})
    by_index = files(tmp_path / "b", "---\nmodel-index:\n- name: e5-base\n---\n# Hi\n")
    by_heading = files(tmp_path / "c", "---\nlicense: mit\n---\n\n## Multilingual-E5-small\n\ntext")
    by_text = files(tmp_path / "d", E5_CARD)
    for folder in (by_config, by_index, by_heading, by_text):
        notice = of("./encoder", folder)
        assert notice is not None, folder
        assert notice.code is Code.PROMPTS
        assert notice.endswith(E5)
    hub = tmp_path / "models--intfloat--e5-small-v2" / "snapshots" / "0a1b"
    hub.parent.mkdir(parents=True)
    assert of("./encoder", files(hub)) is not None


def test_what_a_card_quotes_without_asking_is_a_note_and_what_it_denies_is_nothing(
    tmp_path: Path,
) -> None:
    example = "input_texts = ['query: how much', 'passage: As a general guideline']\n"
    note = of("./encoder", files(tmp_path / "a", example))
    assert note is not None
    assert note.code is Code.NOTE
    denied = 'Unlike E5, it does not need "query: " and "passage: " before its texts.\n'
    assert of("./encoder", files(tmp_path / "b", denied)) is None
    assert of("./encoder", files(tmp_path / "c", 'Each "query: " is a row.\n')) is None
    assert of("./encoder", files(tmp_path / "d", "---\n: [\n---\n")) is None


def test_a_model_that_was_made_from_one_with_prompts_is_a_note(tmp_path: Path) -> None:
    base = "intfloat/multilingual-e5-small"
    head = f"---\nbase_model: {base}\n---\n# SentenceTransformer based on {base}\n"
    notice = of("./mine", files(tmp_path / "mine", head, {"_name_or_path": base}))
    assert notice is not None
    assert notice.code is Code.NOTE
    assert f"the card of {base}, which it was made from, recommends" in notice


def test_prompts_in_the_models_config_under_another_name_are_a_note_with_their_text() -> None:
    own = {"s2p_query": "Instruct: find passages.\nQuery: ", "s2s_query": "other", "document": ""}
    notice = missing("stella", None, NONE, (), own)
    assert notice is not None
    assert notice.code is Code.NOTE
    assert notice.endswith('prompts: {query: "Instruct: find passages.\\nQuery: "}')
    assert missing("stella", None, NONE, (), {"STS": "same: ", "query": ""}) is None


def test_every_family_has_a_source() -> None:
    assert all(family.source for family in FAMILIES)
