"""N3: what is named as a retriever and is none of ours leads to the lines that make it one."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.errors import ConfigError, PluginError
from tests.builders.files import save

MINE = """
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from retrieval_bench import Retriever


class Chain(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return []


class Mine(Retriever):
    def __init__(self, *, size):
        self.size = size


class Plain:
    def search(self, query, k):
        return []


chain = Chain()


def build(documents, k):
    return Chain()


def there(k):
    return Chain()


def none():
    return Chain()


def lazily(documents, k):
    from llama_index.core import VectorStoreIndex
    return VectorStoreIndex.from_documents(documents)


def hay(documents, k):
    import haystack
    return haystack.Pipeline()


def hidden(documents, k):
    return helper(documents)


def search(query, k):
    return []


def number():
    return 3


def make(size):
    return Mine(size=size)
"""


@pytest.mark.parametrize(
    ("name", "what", "lines"),
    [
        ("build", "that returns a LangChain retriever", ("langchain", '{factory: "NAME"}')),
        ("there", "that returns a Lang", ("langchain", '{factory: "NAME", external: true}')),
        ("none", "let it take the parameter k", ("langchain", '{factory: "NAME", external: true}')),
        ("chain", "is a LangChain retriever", ("langchain", '{factory: "NAME"}')),
        ("lazily", "a LlamaIndex retriever", ("llamaindex", '{factory: "NAME"}')),
        ("hay", "that returns a Haystack retriever", ("haystack", '{factory: "NAME"}')),
        ("hidden", "or another target of langchain, lla", ("langchain", '{factory: "NAME"}')),
        ("search", "of (query, k), which searches", ("callable", '{function: "NAME"}')),
    ],
)
def test_the_lines_to_paste_are_those_of_its_library(
    here: Path, name: str, what: str, lines: tuple[str, str]
) -> None:
    save(here / "mine.py", MINE)
    with pytest.raises(PluginError) as caught:
        load_retriever_config(f"mine.py:{name}").build()
    target, params = lines[0], lines[1].replace("NAME", f"mine.py:{name}")
    assert what in str(caught.value)
    assert f"target: {target}\n      params: {params}" in caught.value.fix


def test_the_lines_work_as_they_are(here: Path) -> None:
    save(here / "mine.py", MINE)
    for name in ("build", "there", "chain", "search"):
        with pytest.raises(PluginError) as caught:
            load_retriever_config(f"mine.py:{name}").build()
        save(here / "pasted.yaml", caught.value.fix.partition("lines:\n")[2].replace("      ", ""))
        load_retriever_config("pasted.yaml").build()


def test_what_is_no_retriever_of_any_kind_is_told_as_that(here: Path) -> None:
    save(here / "mine.py", MINE)
    for name, told in (
        ("Plain", "a class, Plain, and no retriever"),
        ("number", "that returns int"),
    ):
        with pytest.raises(PluginError, match=told):
            load_retriever_config(f"mine.py:{name}").build()


def test_a_function_that_makes_a_retriever_of_ours_is_told_its_own_parameters(here: Path) -> None:
    save(here / "mine.py", MINE)
    with pytest.raises(ConfigError, match="'size' is missing"):
        load_retriever_config("mine.py:make").build()
