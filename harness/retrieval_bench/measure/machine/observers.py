"""What else runs inside of a measured call because a library or the environment switched it on:
tracing, callbacks, profilers, coverage.

No library is imported to find out. Each is asked after the calls, and only if it is loaded, whether
it is at work: an environment variable alone does nothing.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from retrieval_bench.core.notices import Code, Notice


@dataclass(frozen=True, slots=True)
class Observer:
    """Something that may be at work inside of a call.

    Attributes:
        name: as a sentence begins with it.
        module: which has to be loaded; it is what ``active`` is given.
        active: whether it is at work.
        off: how to switch it off, as an imperative.
    """

    name: str
    module: str
    active: Callable[[Any], Any]
    off: str

    @property
    def at_work(self) -> bool:
        """Whether the observer is active; False for a version of a library that is unknown here."""
        module = sys.modules.get(self.module)
        try:
            return module is not None and bool(self.active(module))
        except Exception:
            return False

    @property
    def warning(self) -> Notice:
        """Say that it was, and what to do."""
        return Notice(
            f"{self.name} was active during the measured calls, and what it does in them is in "
            f"their times. {self.off}.",
            Code.OBSERVERS,
        )


def seen() -> list[Observer]:
    """Return the :data:`OBSERVERS` that are at work in this thread now."""
    return [observer for observer in OBSERVERS if observer.at_work]


def _hooked(context: Any) -> bool:
    """Return whether LangChain hands each call to a handler that a ``with`` block set."""
    handlers = [context.tracing_v2_callback_var, *(hook[0] for hook in context._configure_hooks)]
    return any(item.get() is not None for item in handlers)


def _dispatched(instrumentation: Any) -> bool:
    """Return whether LlamaIndex hands events or spans to somebody."""
    root = instrumentation.root_dispatcher
    handlers = (*root.event_handlers, *root.span_handlers)
    return not all(type(handler).__name__.startswith("Null") for handler in handlers)


def _exporting(trace: Any) -> bool:
    """Return whether OpenTelemetry hands spans to somebody: a provider without processors does
    not."""
    provider = trace._TRACER_PROVIDER
    idle = (type(None), trace.ProxyTracerProvider, trace.NoOpTracerProvider)
    if isinstance(provider, idle) or getattr(provider, "_disabled", False):  # OTEL_SDK_DISABLED
        return False
    processors = getattr(provider, "_active_span_processor", None)
    return bool(getattr(processors, "_span_processors", True))


def _tools(_monitoring: Any) -> bool:
    """Return whether a tool is registered with ``sys.monitoring``, which Python 3.12 brought."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(map(monitoring.get_tool, range(6)))


_PYTHON = "Run without coverage, debugger and profiler"

OBSERVERS: Sequence[Observer] = (
    Observer(
        "Tracing by LangSmith",
        "langsmith.run_helpers",  # loaded by the first call of a traced object
        lambda _helpers: sys.modules["langsmith.utils"].tracing_is_enabled(),
        "Set LANGSMITH_TRACING=false, and LANGCHAIN_TRACING_V2=false",
    ),
    Observer(
        "A callback handler of LangChain",
        "langchain_core.tracers.context",
        _hooked,
        "Measure outside of tracing_v2_enabled, collect_runs and their like",
    ),
    Observer(
        "LangChain's debugging output",
        "langchain_core.globals",
        lambda settings: settings.get_debug(),
        "Call set_debug(False)",
    ),
    Observer(
        "LangChain's verbose output",
        "langchain_core.globals",
        lambda settings: settings.get_verbose(),
        "Call set_verbose(False)",
    ),
    Observer(
        "LangChain's cache of model answers",
        "langchain_core.globals",
        lambda settings: settings.get_llm_cache() is not None,
        "Call set_llm_cache(None)",
    ),
    Observer(
        "LlamaIndex's global handler",
        "llama_index.core",
        lambda core: core.global_handler is not None,
        "Set llama_index.core.global_handler = None",
    ),
    Observer(
        "A callback handler of LlamaIndex",
        "llama_index.core.settings",
        lambda settings: settings.Settings._callback_manager.handlers,
        "Set Settings.callback_manager = None",
    ),
    Observer(
        "Instrumentation of LlamaIndex",
        "llama_index.core.instrumentation",
        _dispatched,
        "Add no event handler and no span handler to its dispatcher",
    ),
    Observer(
        "Tracing of Haystack",
        "haystack.tracing",
        lambda tracing: tracing.is_tracing_enabled(),
        "Set HAYSTACK_AUTO_TRACE_ENABLED=false, or call haystack.tracing.disable_tracing()",
    ),
    Observer(
        "OpenTelemetry",
        "opentelemetry.trace",
        _exporting,
        "Run without opentelemetry-instrument, or set OTEL_SDK_DISABLED=true",
    ),
    Observer(
        "Tracing by Datadog",
        "ddtrace._monkey",
        lambda patches: patches._PATCHED_MODULES and sys.modules["ddtrace"].tracer.enabled,
        "Run without ddtrace-run, or set DD_TRACE_ENABLED=false",
    ),
    Observer(
        "Sentry",
        "sentry_sdk",
        lambda sentry: sentry.is_initialized(),
        "Call no sentry_sdk.init",
    ),
    Observer("A trace function of Python", "sys", lambda _sys: sys.gettrace(), _PYTHON),
    Observer("A profile function of Python", "sys", lambda _sys: sys.getprofile(), _PYTHON),
    Observer("A tool of sys.monitoring", "sys", _tools, _PYTHON),
    Observer(
        "Python's record of memory (tracemalloc)",
        "sys",
        lambda _sys: tracemalloc.is_tracing(),
        "Run without PYTHONTRACEMALLOC and tracemalloc.start",
    ),
    Observer(
        "Python's development mode",
        "sys",
        lambda _sys: sys.flags.dev_mode,
        "Run without PYTHONDEVMODE and -X dev",
    ),
)
"""The active states are the libraries' own, some of which have no public name."""
