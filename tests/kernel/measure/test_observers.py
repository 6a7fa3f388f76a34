"""What else runs inside of a measured call is told where it is at work, and only there."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core import globals as langchain
from langchain_core.documents import Document as LangChainDocument
from langchain_core.retrievers import BaseRetriever
from langchain_core.tracers.context import collect_runs

from retrieval_bench import bench
from retrieval_bench.core.notices import Code, Notice, about_times
from retrieval_bench.measure.machine import observers
from retrieval_bench.measure.protocol import Protocol
from tests.builders.files import json_lines, save_all

OBSERVERS = observers.OBSERVERS
LANGSMITH: Any = sys.modules["langsmith.utils"]  # which langchain-core brings and has loaded
RUN_HELPERS: Any = sys.modules["langsmith.run_helpers"]
QUICK = Protocol(rounds=1, warm_up_s=0.0)


class Finds(BaseRetriever):
    """Finds d1."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[LangChainDocument]:
        return [LangChainDocument(page_content="red apples", id="d1")]


@pytest.fixture(autouse=True)
def unwatched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing watches this test, whatever watches all tests."""
    trace, profile = sys.gettrace(), sys.getprofile()
    sys.settrace(None)
    sys.setprofile(None)
    rest = [one for one in observers.OBSERVERS if not one.at_work]
    monkeypatch.setattr(observers, "OBSERVERS", tuple(rest))
    yield
    sys.settrace(trace)
    sys.setprofile(profile)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    save_all(
        tmp_path,
        {
            "corpus.jsonl": json_lines([{"_id": "d1", "text": "red apples"}]),
            "queries.jsonl": json_lines({"_id": f"q{i}", "text": "apples"} for i in range(3)),
            "qrels/test.tsv": "query-id\tcorpus-id\tscore\n"
            + "".join(f"q{i}\td1\t1\n" for i in range(3)),
        },
    )
    return tmp_path


def names() -> list[str]:
    return [one.name for one in observers.seen()]


def load(monkeypatch: pytest.MonkeyPatch, name: str, **state: Any) -> SimpleNamespace:
    """A library that is not installed here, in a state that its documentation describes."""
    module = SimpleNamespace(**state)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def test_nothing_is_seen_where_nothing_is_at_work() -> None:
    assert names() == []


@pytest.mark.parametrize(
    ("on", "off", "name"),
    [
        (
            lambda: sys.settrace(lambda *_: None),
            lambda: sys.settrace(None),
            "A trace function of Python",
        ),
        (
            lambda: sys.setprofile(lambda *_: None),
            lambda: sys.setprofile(None),
            "A profile function of Python",
        ),
        (tracemalloc.start, tracemalloc.stop, "Python's record of memory (tracemalloc)"),
        (
            lambda: langchain.set_debug(value=True),
            lambda: langchain.set_debug(value=False),
            "LangChain's debugging output",
        ),
        (
            lambda: langchain.set_verbose(value=True),
            lambda: langchain.set_verbose(value=False),
            "LangChain's verbose output",
        ),
        (
            lambda: langchain.set_llm_cache(SimpleNamespace()),  # type: ignore[arg-type]
            lambda: langchain.set_llm_cache(None),
            "LangChain's cache of model answers",
        ),
    ],
)
def test_what_is_switched_on_is_seen_until_it_is_switched_off(
    on: Callable[[], None], off: Callable[[], None], name: str
) -> None:
    on()
    try:
        seen = names()
    finally:
        off()
    assert seen == [name]
    assert names() == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12")
def test_a_tool_of_monitoring_is_seen() -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool = next(at for at in range(6) if monitoring.get_tool(at) is None)
    monitoring.use_tool_id(tool, "test")
    (one,) = [one for one in OBSERVERS if one.name == "A tool of sys.monitoring"]
    seen = one.at_work
    monitoring.free_tool_id(tool)
    assert seen


def test_a_handler_of_langchain_is_seen_within_its_block() -> None:
    with collect_runs():
        assert names() == ["A callback handler of LangChain"]
    assert names() == []


class TestLangSmith:
    @pytest.fixture(autouse=True)
    def fresh(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        for name in ("TRACING", "TRACING_V2"):
            for prefix in ("LANGSMITH", "LANGCHAIN"):
                monkeypatch.delenv(f"{prefix}_{name}", raising=False)
        LANGSMITH.get_env_var.cache_clear()
        yield
        LANGSMITH.get_env_var.cache_clear()

    @pytest.mark.parametrize("variable", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"])
    def test_the_variable_switches_it_on(
        self, monkeypatch: pytest.MonkeyPatch, variable: str
    ) -> None:
        monkeypatch.setenv(variable, "true")
        assert names() == ["Tracing by LangSmith"]
        with RUN_HELPERS.tracing_context(enabled=False):
            assert names() == []

    @pytest.mark.slow
    def test_the_variable_alone_is_nothing_where_the_library_is_not_used(
        self, monkeypatch: pytest.MonkeyPatch, data: Path
    ) -> None:
        monkeypatch.setenv("LANGSMITH_TRACING", "true")
        monkeypatch.delitem(sys.modules, "langsmith.run_helpers")
        run = bench("bm25", data, protocol=QUICK).run
        assert "observers" not in run.manifest["environment"]
        assert not [one for one in run.summary.warnings if "LangSmith" in one]


@pytest.mark.parametrize(
    ("module", "state", "off", "name"),
    [
        (
            "llama_index.core",
            {"global_handler": object()},
            {"global_handler": None},
            "LlamaIndex's global handler",
        ),
        (
            "llama_index.core.settings",
            {"Settings": SimpleNamespace(_callback_manager=SimpleNamespace(handlers=[1]))},
            {"Settings": SimpleNamespace(_callback_manager=None)},
            "A callback handler of LlamaIndex",
        ),
        (
            "haystack.tracing",
            {"is_tracing_enabled": lambda: True},
            {"is_tracing_enabled": lambda: False},
            "Tracing of Haystack",
        ),
        (
            "sentry_sdk",
            {"is_initialized": lambda: True},
            {"is_initialized": lambda: False},
            "Sentry",
        ),
    ],
)
def test_other_libraries_are_asked_themselves(
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    state: dict[str, Any],
    off: dict[str, Any],
    name: str,
) -> None:
    load(monkeypatch, module, **state)
    assert names() == [name]
    load(monkeypatch, module, **off)
    assert names() == []
    load(monkeypatch, module)  # another version, which has nothing of the kind
    assert names() == []


def test_llamaindex_has_handlers_that_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    null_event, null_span = type("NullEventHandler", (), {})(), type("NullSpanHandler", (), {})()
    root = SimpleNamespace(event_handlers=[null_event], span_handlers=[null_span])
    load(monkeypatch, "llama_index.core.instrumentation", root_dispatcher=root)
    assert names() == []
    root.span_handlers.append(object())
    assert names() == ["Instrumentation of LlamaIndex"]


def test_opentelemetry_needs_a_provider_with_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    class Proxy:
        pass

    class NoOp:
        pass

    kinds = {"ProxyTracerProvider": Proxy, "NoOpTracerProvider": NoOp}
    trace = load(monkeypatch, "opentelemetry.trace", _TRACER_PROVIDER=None, **kinds)
    bare = SimpleNamespace(_active_span_processor=SimpleNamespace(_span_processors=()))
    for idle in (None, Proxy(), NoOp(), bare):
        trace._TRACER_PROVIDER = idle
        assert names() == []
    bare._active_span_processor._span_processors = (object(),)
    for exporting in (bare, SimpleNamespace()):
        trace._TRACER_PROVIDER = exporting
        assert names() == ["OpenTelemetry"]
    trace._TRACER_PROVIDER = SimpleNamespace(_disabled=True)
    assert names() == []


def test_datadog_needs_something_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    patches = load(monkeypatch, "ddtrace._monkey", _PATCHED_MODULES=set())
    library = load(monkeypatch, "ddtrace", tracer=SimpleNamespace(enabled=True))
    assert names() == []
    patches._PATCHED_MODULES.add("httpx")
    assert names() == ["Tracing by Datadog"]
    library.tracer.enabled = False
    assert names() == []


def test_a_run_says_it_and_keeps_it(data: Path) -> None:
    with collect_runs():
        run = bench(Finds(), data, protocol=QUICK).run
    assert run.manifest["environment"]["observers"] == ["A callback handler of LangChain"]
    told = [one for one in run.summary.warnings if getattr(one, "code", "") is Code.OBSERVERS]
    (warning,) = told
    assert isinstance(warning, Notice)
    assert about_times(warning)
    assert "collect_runs" in warning
    after = bench(Finds(), data, protocol=QUICK).run
    assert "observers" not in after.manifest["environment"]


@pytest.mark.needs("retrieval_bench_doctor")
def test_doctor_says_it(data: Path) -> None:
    from retrieval_bench_doctor.doctor import doctor

    sys.setprofile(lambda *_: None)
    found = doctor("bm25", data)
    sys.setprofile(None)
    (check,) = [one for one in found.checks if one.subject == "machine"]
    assert "A profile function of Python" in " ".join(check.warnings)
