"""N3: what is named as a retriever and is none of ours leads to the lines that make it one."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.errors import ConfigError, PluginError
from retrieval_bench.experiment.objects import adapted
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


class Needs(BaseRetriever):
    documents: list
    k: int
    flavour: str

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents[: self.k]


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


@pytest.mark.parametrize(
    ("name", "made", "lines"),
    [
        (
            "mine.py:Chain",
            "add to mine.py:\n      def make_chain(k):\n          return Chain()",
            'target: langchain\n      params: {factory: "mine.py:make_chain", external: true}',
        ),
        (
            "mine.py:Needs",
            "return Needs(documents=documents, k=k, flavour=...)",
            'target: langchain\n      params: {factory: "mine.py:make_needs"}',
        ),
        pytest.param(
            "haystack.components.retrievers.in_memory:InMemoryBM25Retriever",
            "          return InMemoryBM25Retriever(document_store=...)",
            'target: haystack\n      params: {factory: "made.py:make_inmemorybm25retriever"}',
            marks=pytest.mark.needs("haystack"),
        ),
        pytest.param(
            "llama_index.core.retrievers:VectorIndexRetriever",
            "return VectorIndexRetriever(index=...)",
            'target: llamaindex\n      params: {factory: "made.py:make_vectorindexretriever"}',
            marks=pytest.mark.needs("llama_index"),
        ),
    ],
)
def test_a_class_of_a_library_leads_to_what_makes_an_object_of_it(
    here: Path, name: str, made: str, lines: str
) -> None:
    """N3."""
    save(here / "mine.py", MINE)
    with pytest.raises(PluginError, match=r"is a class of \w+ retrievers, not") as caught:
        load_retriever_config(name).build()
    assert made in caught.value.fix
    assert lines in caught.value.fix


def test_the_lines_of_a_class_work_as_they_are(here: Path) -> None:
    save(here / "mine.py", MINE)
    with pytest.raises(PluginError) as caught:
        load_retriever_config("mine.py:Chain").build()
    code, yaml = caught.value.fix.split(
        "    and name a YAML file in place of it, with these lines:\n"
    )
    save(here / "again.py", f"{MINE}\n\n{code.partition(chr(10))[2].replace('      ', '', 1)}")
    save(here / "pasted.yaml", yaml.replace("      ", "").replace("mine.py", "again.py"))
    assert load_retriever_config("pasted.yaml").build().capabilities.external


def test_a_class_given_in_python_is_asked_for_an_object() -> None:
    class Own:
        def search(self, query: str, k: int) -> list[str]:
            return []

    with pytest.raises(ConfigError, match=r"hand over an object of it, Own\(\.\.\.\)"):
        adapted(Own)


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
