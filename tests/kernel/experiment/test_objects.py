"""Objects of Python as retrievers: which adapter they go through, and what is refused."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from retrieval_bench import bench, compare
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Document, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.objects import adapted
from retrieval_bench.measure.protocol import Protocol
from tests.builders.processes import python
from tests.builders.reference import TermOverlap
from tests.lazily import Lazily

ONCE = Protocol(rounds=1, warm_up_s=0)
DOCUMENTS = [Document("a", "red apples"), Document("b", "blue sea"), Document("c", "green red")]
llama: Any = Lazily("llama_index.core", needs=("llama_index.core.retrievers",))
haystack: Any = Lazily(
    "haystack",
    needs=(
        "haystack.components.retrievers.in_memory",
        "haystack.document_stores.in_memory",
    ),
)


def tiny() -> Any:
    queries = [Query("1", "red"), Query("2", "blue sea")]
    return build_dataset("tiny", DOCUMENTS, queries, {"1": {"a": 1}, "2": {"b": 1}})


def first(text: str, k: int) -> list[str]:
    return ["a", "b"][:k]


async def later(text: str, k: int) -> list[dict[str, Any]]:
    return [{"id": "b", "score": 2}, {"id": "a", "score": 1}][:k]


class Service:
    def __call__(self, text: str, k: int) -> list[tuple[str, float]]:
        return [("a", 1.0)]


class Command:
    """Has LangChain's method, and nothing to do with it."""

    def invoke(self, context: object) -> None:
        return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "name"), [(first, "first"), (later, "later"), (Service(), "Service")]
)
def test_functions_and_callable_objects_are_called(given: Any, name: str) -> None:
    candidate = adapted(given)
    assert candidate is not None
    assert (candidate.name, candidate.config) == (name, {"target": "callable"})
    run = bench(given, tiny(), k=2, protocol=ONCE).run
    assert run.name == name


def test_a_method_of_a_library_does_not_make_an_object_of_it() -> None:
    assert adapted(Command()) is None
    with pytest.raises(ConfigError, match="a Command as retriever") as caught:
        bench(Command(), tiny())
    assert "LlamaIndex, Haystack or PyTerrier" in caught.value.accepted


@pytest.mark.slow
def test_functions_import_no_library() -> None:
    code = (
        "import sys\n"
        "from retrieval_bench.experiment.objects import adapted\n"
        "class Own:\n"
        "    def __call__(self, text, k): return []\n"
        "    def invoke(self, text): return []\n"
        "    def run(self, text): return []\n"
        "    def retrieve(self, text): return []\n"
        "assert adapted(Own()).config == {'target': 'callable'}\n"
        "theirs = ('langchain', 'llama_index', 'haystack', 'pyterrier')\n"
        "sys.exit(any(name.partition('.')[0].startswith(theirs) for name in sys.modules))"
    )
    python(code)


def test_a_transformer_of_pyterrier_goes_through_its_adapter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = type("Fixed", (), {"__module__": "pyterrier.fixed", "transform": lambda self, frame: 0})
    monkeypatch.setitem(sys.modules, "pyterrier.fixed", sys)
    candidate = adapted(kind())
    assert candidate is not None
    assert candidate.config == {"target": "pyterrier.fixed:Fixed"}
    assert type(candidate.retriever).__name__ == "PyTerrierRetriever"


@pytest.mark.slow
@pytest.mark.needs("haystack", "llama_index")
@pytest.mark.filterwarnings("ignore")
def test_objects_of_every_library_are_compared_as_they_are() -> None:
    from retrieval_bench_retrievers.libraries.langchain import as_langchain

    inner = TermOverlap()
    inner.index(DOCUMENTS)
    nodes = [llama.schema.TextNode(id_=d.id, text=d.text) for d in DOCUMENTS]

    class Listed(llama.retrievers.BaseRetriever):  # type: ignore[misc]
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            return [llama.schema.NodeWithScore(node=node, score=1.0) for node in nodes]

    store = haystack.document_stores.in_memory.InMemoryDocumentStore()
    store.write_documents([haystack.Document(id=d.id, content=d.text) for d in DOCUMENTS])
    bm25 = haystack.components.retrievers.in_memory.InMemoryBM25Retriever(store)
    pipeline = haystack.Pipeline()
    pipeline.add_component(
        "bm25", haystack.components.retrievers.in_memory.InMemoryBM25Retriever(store)
    )
    systems = [TermOverlap(), first, as_langchain(inner, 3, DOCUMENTS), Listed(), bm25, pipeline]
    result = compare(systems, tiny(), k=2, protocol=ONCE)
    names = ["TermOverlap", "first", "HarnessRetriever", "Listed", "InMemoryBM25Retriever"]
    assert [run.name for run in result.runs] == [*names, "Pipeline"]
    for run in result.runs:
        assert run.summary.metrics["R@2"].mean == 1.0


@pytest.mark.slow
@pytest.mark.needs("haystack", "llama_index")
@pytest.mark.filterwarnings("ignore")
def test_what_a_library_has_beside_retrievers_is_refused_with_the_way_to_one() -> None:
    index = llama.VectorStoreIndex([], embed_model=llama.MockEmbedding(embed_dim=3))
    store = haystack.document_stores.in_memory.InMemoryDocumentStore()
    for wrong, fix in ((index, ".as_retriever("), (store, "InMemoryBM25Retriever(store)")):
        with pytest.raises(ConfigError) as caught:
            bench(wrong, tiny())
        assert fix in caught.value.fix
