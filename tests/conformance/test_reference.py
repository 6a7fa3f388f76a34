"""The suite as its users run it, over honest retrievers of each kind; none of them may fail."""

from __future__ import annotations

from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query
from retrieval_bench.testing import RetrieverConformance, sample_documents
from tests.builders.reference import ListOnly, Service, TermOverlap


class TestReference(RetrieverConformance):
    target = "tests.builders.reference:TermOverlap"


class TestReferenceWithItsOwnMake(RetrieverConformance):
    def make(self) -> Retriever:
        return TermOverlap()


class TestWritable(RetrieverConformance):
    target = "tests.builders.reference:Writable"


class TestListOnly(RetrieverConformance):
    def make(self) -> Retriever:
        return ListOnly()


class TestService(RetrieverConformance):
    def make(self) -> Retriever:
        return Service()


class TestServiceOfAKnownCorpus(RetrieverConformance):
    def make(self) -> Retriever:
        return Service()

    def documents(self) -> list[Document]:
        return sample_documents()


def test_reference_ranks_by_shared_words_and_then_by_id() -> None:
    retriever = TermOverlap()
    retriever.index(
        [Document("b", "red fox"), Document("a", "Red dog"), Document("c", "red fox den")]
    )
    hits = retriever.search(Query("1", "a RED fox"), 2)
    assert list(hits) == [("b", 2.0), ("c", 2.0)]
