"""What people hand to the steps of a pipeline, and what it gives: measured from end to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from retrieval_bench import bench
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset, Document, Query, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.run import Run
from retrieval_bench_retrievers.pipeline.pipeline import Pipeline
from tests.builders.scripted import Scripted
from tests.lazily import Lazily

pytestmark = pytest.mark.slow

ONCE = Protocol(rounds=1, warm_up_s=0)
DOCUMENTS = [Document(i, f"text of {i}") for i in "abc"]
QUERIES = [Query("1", "red apples"), Query("2", "blue sea"), Query("3", "green")]
llama: Any = Lazily("llama_index.core", needs=("llama_index.core.postprocessor.types",))


def data() -> Dataset:
    return build_dataset("tiny", DOCUMENTS, QUERIES, {q.id: {"c": 1} for q in QUERIES})


def pipeline(*steps: Mapping[str, Any]) -> Pipeline:
    inner = Scripted({"a": 3.0, "b": 2.0, "c": 1.0}, capabilities=Capabilities())
    before = [step for step in steps if "rewrite" in step]
    after = [step for step in steps if "rewrite" not in step]
    return Pipeline(steps=[*before, {"retrieve": inner}, *after])


def measured(*steps: Mapping[str, Any]) -> Run:
    return bench(pipeline(*steps), data(), k=3, protocol=ONCE).run


def refused(*steps: Mapping[str, Any]) -> str:
    with pytest.raises(ContractError) as caught:
        measured(*steps)
    return str(caught.value)


def warning(run: Run, code: Code) -> str:
    (found,) = [one for one in run.summary.warnings if isinstance(one, Notice) and one.code == code]
    return found


def ranked(run: Run) -> list[list[str]]:
    return [
        [run.rankings.doc_ids[at] for at in row if at >= 0] for row in run.rankings.ranking.tolist()
    ]


def on(text: str, bad: Any, good: Callable[[int], Any]) -> Callable[..., Any]:
    """A function that gives ``bad`` for one text."""

    def function(asked: str, documents: Sequence[Document]) -> Any:
        return bad if asked == text else good(len(documents))

    return function


# --- rerankers


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ([1.0, 2.0], "gave 2 scores for 3 documents"),
        ([], "gave 0 scores for 3 documents"),
        (np.ones((3, 2)), "gave 6 scores of the shape (3, 2) for 3 documents"),
        ([1.0, float("nan"), 0.0], "gave the score nan to document 'b'"),
        ([float("inf"), 0.0, float("nan")], "gave the score inf to document 'a' and 1 more that"),
    ],
)
def test_scores_that_are_none_fail_the_query_and_are_named(bad: Any, told: str) -> None:
    run = measured({"rerank": on("blue sea", bad, range)})
    assert run.status[0] == run.status[2] == "ok"
    assert told in run.status[1]
    assert "in step 'rerank' of the pipeline" in run.status[1]
    assert run.summary.n_failed == 1
    assert told in warning(run, Code.FAILED)
    assert ranked(run) == [["c", "b", "a"], [], ["c", "b", "a"]]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("best", "gave str"),
        (["good", "bad", "worse"], "gave a list with str"),
        (None, "gave None"),
        ({"a": 1}, "gave dict"),
        (3.5, "gave float"),
    ],
)
def test_what_is_no_list_of_numbers_ends_the_measurement(bad: Any, told: str) -> None:
    text = refused({"rerank": on("blue sea", bad, range), "name": "mine"})
    assert told in text
    assert "query '2'" in text
    assert "step 'mine'" in text
    assert "one number for each document" in text


@pytest.mark.parametrize(
    "given", [np.array([1, 2, 3]), (1, 2, 3), iter([1, 2, 3]), ["1", "2", "3"], [False, 0.5, True]]
)
def test_numbers_come_in_any_shape_that_python_has_for_them(given: Any) -> None:
    assert ranked(measured({"rerank": on("blue sea", given, range)}))[1] == ["c", "b", "a"]


def test_what_a_reranker_raises_fails_the_query_with_the_step() -> None:
    def moody(text: str, documents: Sequence[Document]) -> list[int]:
        if text == "green":
            raise RuntimeError("not today")
        return list(range(len(documents)))

    run = measured({"rerank": moody})
    assert run.status[2] == "RuntimeError: not today; in step 'rerank' of the pipeline"


def test_a_reranker_may_be_async_and_take_parameters() -> None:
    async def later(text: str, documents: Sequence[Document], sign: int) -> list[int]:
        await asyncio.sleep(0)
        return [sign * at for at in range(len(documents))]

    assert ranked(measured({"rerank": later, "params": {"sign": 1}}))[0] == ["c", "b", "a"]
    assert ranked(measured({"rerank": later, "params": {"sign": -1}}))[0] == ["a", "b", "c"]


class Weighted:
    """A class that makes a reranker."""

    def __init__(self, sign: int = 1) -> None:
        self.sign = sign

    def __call__(self, text: str, documents: Sequence[Document]) -> list[int]:
        return [self.sign * at for at in range(len(documents))]


def weighted(sign: int = 1) -> Weighted:
    """A function that makes one."""
    return Weighted(sign)


@pytest.mark.parametrize("given", [Weighted, weighted, f"{__name__}:Weighted"])
def test_classes_and_factories_make_rerankers_of_their_params(given: Any) -> None:
    assert ranked(measured({"rerank": given}))[0] == ["c", "b", "a"]
    assert ranked(measured({"rerank": given, "params": {"sign": -1}}))[0] == ["a", "b", "c"]


def test_what_a_factory_raises_or_makes_is_told() -> None:
    def broken() -> Any:
        raise OSError("no model")

    with pytest.raises(ConfigError, match="OSError: no model"):
        pipeline({"rerank": broken})
    with pytest.raises(ConfigError, match="made NoneType") as caught:
        pipeline({"rerank": lambda: None})
    assert "end it with `return`" in str(caught.value)
    with pytest.raises(ConfigError, match="which takes no parameters here: sign"):
        pipeline({"rerank": compressor(lambda found: found), "params": {"sign": 1}})


# --- filters


def test_flags_are_true_or_false_for_each_document() -> None:
    good: Callable[[int], Any] = lambda n: [True] * n  # noqa: E731
    run = measured({"filter": on("blue sea", [True], good)})
    assert "gave 1 answers for 3 documents" in run.status[1]
    assert ranked(measured({"filter": on("green", np.array([1, 0, 1]) > 0, good)}))[2] == ["a", "c"]
    assert "gave float" in refused({"filter": on("blue sea", [True, 0.4, False], good)})
    assert "gave NoneType" in refused({"filter": on("blue sea", [True, None, False], good)})
    assert "gave str" in refused({"filter": on("blue sea", "yes", good)})


# --- compressors of LangChain


def compressor(change: Callable[[list[Any]], Any]) -> Any:
    from langchain_core.documents import BaseDocumentCompressor

    class Changing(BaseDocumentCompressor):
        def compress_documents(
            self, documents: Sequence[Any], query: str, callbacks: Any = None
        ) -> Any:
            return change(list(documents)) if query == "blue sea" else list(documents)[::-1]

    return Changing()


def test_the_order_of_a_compressor_counts_and_it_gives_no_scores() -> None:
    run = measured({"rerank": compressor(lambda found: found)})
    assert ranked(run) == [["c", "b", "a"], ["a", "b", "c"], ["c", "b", "a"]]
    assert np.isnan(run.rankings.scores).all()
    assert run.summary.tie_rule == "order of the list"


def test_documents_that_a_compressor_drops_are_gone_and_counted() -> None:
    run = measured({"rerank": compressor(lambda found: found[2:])})
    assert ranked(run)[1] == ["c"]
    assert "rerank left out 2 documents in 1 of 3 calls" in run.summary.health
    assert run.summary.n_failed == 0


def test_documents_that_a_compressor_repeats_count_once_and_are_warned_of() -> None:
    run = measured({"rerank": compressor(lambda found: [found[1], *found, found[1]])})
    assert ranked(run)[1] == ["b", "a", "c"]
    told = "rerank: it repeated 2 documents in 3 calls; the first place counts"
    assert warning(run, Code.RETRIEVER) == told


def test_documents_that_a_compressor_invents_fail_the_query() -> None:
    from langchain_core.documents import Document as LangChainDocument

    own = [LangChainDocument("own", id="z"), LangChainDocument("own", id="y")]
    run = measured({"rerank": compressor(lambda found: [*own, *found])})
    assert "gave document 'z', which it did not get, and 1 more" in run.status[1]
    assert run.summary.n_failed == 1


def test_ids_of_a_compressor_s_documents_may_stand_in_their_metadata() -> None:
    from langchain_core.documents import Document as LangChainDocument

    def copied(found: list[Any]) -> list[Any]:
        return [LangChainDocument("summary", metadata=one.metadata) for one in found[::-1]]

    assert ranked(measured({"rerank": compressor(copied)}))[1] == ["c", "b", "a"]


@pytest.mark.parametrize("bad", [None, 3, ["a", "b"], [object()]])
def test_what_a_compressor_gives_must_be_documents(bad: Any) -> None:
    assert "gave documents without an id" in refused({"rerank": compressor(lambda found: bad)})


# --- postprocessors of LlamaIndex


class Postprocessing:
    """Has the method of LlamaIndex's postprocessors."""

    def __init__(self, change: Callable[[list[Any]], Any]) -> None:
        self.change = change
        self.scores: list[Any] = []

    def postprocess_nodes(self, nodes: list[Any], query_str: str) -> Any:
        self.scores = [node.score for node in nodes]
        return self.change(nodes) if query_str == "blue sea" else nodes[::-1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.needs("llama_index")
class TestLlamaIndex:
    def test_its_order_counts_and_it_sees_the_scores(self) -> None:
        made = Postprocessing(lambda nodes: nodes)
        assert ranked(measured({"rerank": made})) == [
            ["c", "b", "a"],
            ["a", "b", "c"],
            ["c", "b", "a"],
        ]
        assert made.scores == [3.0, 2.0, 1.0]

    def test_dropped_and_repeated_nodes_are_counted(self) -> None:
        run = measured({"rerank": Postprocessing(lambda nodes: [nodes[1], nodes[0], nodes[1]])})
        assert ranked(run)[1] == ["b", "a"]
        assert "rerank left out 1 document in 1 of 3 calls" in run.summary.health
        assert "it repeated 1 document" in warning(run, Code.RETRIEVER)

    def test_invented_nodes_fail_the_query(self) -> None:
        def own(nodes: list[Any]) -> list[Any]:
            node = llama.schema.TextNode(id_="z", text="own")
            return [llama.schema.NodeWithScore(node=node, score=1.0)]

        run = measured({"rerank": Postprocessing(own)})
        assert "gave document 'z', which it did not get" in run.status[1]

    @pytest.mark.parametrize("bad", [None, 3, ["a"]])
    def test_what_it_gives_must_be_nodes(self, bad: Any) -> None:
        told = refused({"rerank": Postprocessing(lambda nodes: bad)})
        assert "gave what is no list of nodes" in told

    def test_a_postprocessor_of_the_library_is_a_step(self) -> None:
        class Kept(llama.postprocessor.types.BaseNodePostprocessor):  # type: ignore[misc]
            def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> Any:
                return [node for node in nodes if node.node.node_id != "a"]

        assert ranked(measured({"rerank": Kept()}))[0] == ["b", "c"]


# --- rewriters


def heard(rewriter: Any, **about: Any) -> tuple[Run, list[str]]:
    whole = pipeline({"rewrite": rewriter, **about})
    inner = whole.retriever
    assert isinstance(inner, Scripted)
    run = bench(whole, data(), k=3, protocol=ONCE).run
    return run, sorted(inner.heard)


@pytest.mark.parametrize("nothing", [None, "", "  ", [], [None], [" ", ""]])
def test_where_a_rewriter_gives_nothing_the_own_text_is_searched_for(nothing: Any) -> None:
    run, texts = heard(lambda text: nothing if text == "green" else text.upper())
    assert texts == ["BLUE SEA", "RED APPLES", "green"]
    told = "rewrite: it gave nothing in 1 of 3 calls; the text was searched for as it is"
    assert warning(run, Code.RETRIEVER) == told


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (3, "gave int"),
        ({"text": "x"}, "gave dict"),
        ({"x"}, "gave set"),
        ([1], "gave int"),
        (b"x", "gave int"),
        (["x", ["y"]], "gave list"),
    ],
)
def test_what_is_no_text_ends_the_measurement(bad: Any, told: str) -> None:
    text = refused({"rewrite": lambda text: bad})
    assert told in text
    assert "a text, a list of texts, or a message of a language model" in text


def test_a_function_that_returns_a_runnable_is_told_apart() -> None:
    from langchain_core.runnables import RunnableLambda

    made = RunnableLambda(lambda text: text.upper())
    assert "name the Runnable itself" in refused({"rewrite": lambda text="a": made})
    assert heard(made)[1] == heard(lambda: made)[1] == ["BLUE SEA", "GREEN", "RED APPLES"]


def test_a_rewriter_may_be_async_or_a_message_of_a_model() -> None:
    from langchain_core.messages import AIMessage

    async def later(text: str, suffix: str) -> str:
        await asyncio.sleep(0)
        return text + suffix

    expected = ["blue sea!", "green!", "red apples!"]
    assert heard(later, params={"suffix": "!"})[1] == expected
    assert heard(lambda text: AIMessage(f"{text}!"))[1] == expected
    assert heard(lambda text: [AIMessage([{"type": "text", "text": f"{text}!"}])])[1] == expected


def test_a_model_of_langchain_is_a_rewriter() -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    run, texts = heard(FakeListChatModel(responses=["pears"]), keep=True)
    assert texts == sorted(["pears"] * 3 + [query.text for query in QUERIES])
    assert run.rankings.step_texts["rewrite"][0] == ("red apples", "pears")


async def _in_a_loop(whole: Pipeline) -> list[str]:
    return list(whole.search(QUERIES[0], 3).doc_ids)


def test_async_functions_work_where_a_loop_runs_already() -> None:
    async def later(text: str, documents: Sequence[Document]) -> list[int]:
        await asyncio.sleep(0)
        return list(range(len(documents)))

    whole = pipeline({"rerank": later})
    whole.index(DOCUMENTS)
    assert asyncio.run(_in_a_loop(whole)) == ["c", "b", "a"]
    whole.close()


def test_texts_and_sources_stay_with_their_hits_through_all_steps() -> None:
    class WithTexts(Scripted):
        def search(self, query: Query, k: int) -> Ranking:
            ids = list("cab")[:k]
            return Ranking(ids, [3.0, 2.0, 1.0][:k], texts=[f"of {i}" for i in ids], sources=ids)

    steps: list[Mapping[str, Any]] = [
        {"rewrite": lambda text: [text, f"{text} again"]},
        {"retrieve": WithTexts({}, capabilities=Capabilities())},
        {"rerank": lambda text, documents: [ord(d.id) for d in documents]},
        {"filter": lambda text, documents: [d.id != "b" for d in documents]},
    ]
    made = Pipeline(steps=steps)
    made.index(DOCUMENTS)
    ranking = made.search(QUERIES[0], 3)
    assert (ranking.doc_ids, ranking.texts, ranking.sources) == (
        ["c", "a"],
        ["of c", "of a"],
        ["c", "a"],
    )
