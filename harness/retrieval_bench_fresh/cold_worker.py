"""One cold start, in a process of its own; :mod:`retrieval_bench_fresh.cold` starts it.

It says when a step begins and when it ends, so that the parent knows where a process hangs or dies.
The garbage collector runs as it does for a user. What this needs itself is imported between the
steps, for importing is measured.
"""

from __future__ import annotations

import time

STARTED_NS = time.perf_counter_ns()
"""When the interpreter had started: nothing of this project but its name was imported."""

import builtins  # noqa: E402 - the reading above comes before everything else
from collections.abc import Callable, Iterator, Mapping, Sequence  # noqa: E402
from contextlib import contextmanager, suppress  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

import retrieval_bench  # noqa: E402, F401 - its name, which is in no step
from retrieval_bench_launches.channel import Say, channel  # noqa: E402

if TYPE_CHECKING:
    from retrieval_bench.core.config import RetrieverConfig
    from retrieval_bench.core.retriever import Retriever
    from retrieval_bench.core.types import Dataset, Query


class Steps:
    """Times one step after the other, and how much of each went into importing modules."""

    def __init__(self, say: Say, clock: Callable[[], int]) -> None:
        self.say = say
        self.clock = clock
        self.current = ""
        self.ns: dict[str, int] = {}
        self.imports_ns: dict[str, int] = {}
        self._importing = False
        self._imports_ns = 0

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """One step."""
        self.begin(name)
        self._imports_ns = 0
        with self._imports_watched():
            start = self.clock()
            yield
            self.ns[name] = self.clock() - start
        if self._imports_ns:
            self.imports_ns[name] = self._imports_ns

    def begin(self, name: str) -> None:
        """A step, or what is done between two of them."""
        self.current = name
        self.say({"begins": name})

    @contextmanager
    def _imports_watched(self) -> Iterator[None]:
        """While this lasts, the outermost import statements of this thread are timed: many
        libraries are imported only where they are first needed."""
        import threading

        original, own_thread = builtins.__import__, threading.get_ident()

        def watched(*arguments: Any, **named: Any) -> Any:
            if self._importing or threading.get_ident() != own_thread:
                return original(*arguments, **named)
            self._importing = True
            start = self.clock()
            try:
                return original(*arguments, **named)
            finally:
                self._imports_ns += self.clock() - start
                self._importing = False

        builtins.__import__ = watched
        try:
            yield
        finally:
            builtins.__import__ = original


def measure(spec: Mapping[str, Any], steps: Steps) -> None:
    """Every step from importing to steady searches; ``done`` is told before the retriever is
    closed, so that closing can cost nothing that was measured.

    Raises:
        HarnessError: of the config, the data or the retriever; and whatever a retriever raises.
    """
    with steps.timed("import"):
        config, built = _imported(spec)
    steps.imports_ns.clear()  # all of it
    from retrieval_bench.core import secrets
    from retrieval_bench.core.units.self_hits import as_judged
    from retrieval_bench.measure.environment import peak_rss_bytes

    secrets.redact_tracebacks()
    memory = {"after import": peak_rss_bytes()}
    with steps.timed("build"):
        retriever = built(config)
    try:
        if _overrides(retriever, "prepare"):
            with steps.timed("model load"):
                retriever.prepare()
            memory["after model load"] = peak_rss_bytes()
        steps.begin("reading the dataset")
        from retrieval_bench.data import load_dataset

        data = load_dataset(
            spec["dataset"], spec["split"], language=spec["language"], self_hits=spec["self_hits"]
        )
        names = ("name", "split", "fingerprint", "n_documents")
        facts = {name: getattr(data, name) for name in names} | {"n_queries": len(data.asked)}
        steps.say({"about": {"retriever": config.name, "dataset": facts}})
        searched = as_judged(retriever, data)  # as in a measured run
        searched.use_k(spec["k"])
        done: dict[str, Any] = {"peak_rss_bytes": memory, "steps_ns": steps.ns}
        done["imports_ns"] = steps.imports_ns
        done["index"], done["disk_bytes"] = _index(retriever, data, spec, steps)
        memory["after index"] = peak_rss_bytes()
        if done["index"] != "saved":
            done |= _searches(searched, data.asked, spec, steps)
            memory["after queries"] = peak_rss_bytes()
            steps.begin("health_facts")
            told = retriever.health_facts(data.asked)
            done["facts"] = secrets.redact([str(fact) for fact in told])
        steps.say({"done": done})
        steps.begin("close")
    finally:
        retriever.close()


def _imported(
    spec: Mapping[str, Any],
) -> tuple[RetrieverConfig, Callable[[RetrieverConfig], Retriever]]:
    """The config, with the module of its class imported, and what builds it."""
    from retrieval_bench.core import plugins, secrets
    from retrieval_bench.core.config import inline_config, load_retriever_config
    from retrieval_bench.experiment.building import built
    from retrieval_bench.measure.threads import prepare_environment

    prepare_environment(spec["threads"])
    (given,) = spec["retrievers"]
    find = inline_config if isinstance(given, Mapping) else load_retriever_config
    config = find(given, spec["overrides"])
    where = str(config.source or f"retriever {config.name!r}")
    base = config.source.parent if config.source else None
    plugins.resolve("retriever", secrets.expand(config.target, where), base=base)
    return config, built


def _index(
    retriever: Retriever, data: Dataset, spec: Mapping[str, Any], steps: Steps
) -> tuple[str, int | None]:
    """Get an index, and say how: ``external``, ``loaded``, ``built``, or ``saved`` where it was
    built to be loaded by the processes that follow; and the bytes of its files, where known."""
    from retrieval_bench.data.saved_indexes import documents_to_index

    unread, how, kept = documents_to_index(retriever, data), "built", None
    if unread is None:
        how = "external"
    elif spec["load_from"] is not None:
        how, folder = "loaded", Path(spec["load_from"])
        with steps.timed("index load"):
            retriever.load(folder)
        kept = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    else:
        with steps.timed("documents"):
            documents = list(unread)
        with steps.timed("index build"):
            retriever.index(documents)
        can = spec["save_to"] and _overrides(retriever, "save") and _overrides(retriever, "load")
        if can:
            steps.begin("saving the index")
            with suppress(NotImplementedError):  # it depends on the parameters
                retriever.save(Path(spec["save_to"]))
                how = "saved"
    steps.begin("disk_bytes")
    told = retriever.disk_bytes()
    return how, kept if told is None else told


def _overrides(retriever: Retriever, method: str) -> bool:
    """Return whether its class does something of its own where the contract's default does
    nothing."""
    from retrieval_bench.core.retriever import Retriever as Base
    from retrieval_bench.core.units.wrapped import Wrapped

    passed_on = getattr(Wrapped, method)
    while isinstance(retriever, Wrapped) and getattr(type(retriever), method) is passed_on:
        retriever = retriever.inner
    return getattr(type(retriever), method) is not getattr(Base, method)


def _searches(
    retriever: Retriever, queries: Sequence[Query], spec: Mapping[str, Any], steps: Steps
) -> dict[str, Any]:
    """First and second query, then all of them in seeded rounds until their times are steady and
    the first one came again."""
    from retrieval_bench.core.ranking import checked_ranking
    from retrieval_bench.measure.steady import SteadyState
    from retrieval_bench.measure.threads import search_threads

    k, search, clock = spec["k"], retriever.search, steps.clock
    order = _seeded(len(queries), spec["seed"])
    first, second = next(order), next(order)
    with search_threads(spec["threads"]) as warnings:
        state, failed = SteadyState(), 0
        repeats: list[int] = []
        begin = clock()
        for name, at in (("first query", first), ("second query", second)):
            try:
                with steps.timed(name):
                    raw = search(queries[at], k)
                checked_ranking(raw, k, has_scores=retriever.capabilities.has_scores)
            except Exception as problem:
                problem.add_note(f"query {queries[at].id!r}")
                raise
            state.add(at, steps.ns[name])
        steps.begin("queries until steady")
        calls, seconds = state.calls, (clock() - begin) / 1e9
        while not (state.steady and repeats) and clock() - begin < spec["steady_s"] * 1e9:
            at = next(order)
            start = clock()
            try:
                search(queries[at], k)
            except KeyboardInterrupt:
                raise
            except BaseException:  # a measured run tells which and why
                failed += 1
                continue
            elapsed = clock() - start
            state.add(at, elapsed)
            if state.steady_after in (None, state.calls):
                calls, seconds = state.calls, (clock() - begin) / 1e9
            if at == first:
                repeats.append(elapsed)
    return {
        "calls": calls,
        "steady": state.steady,
        "seconds": seconds,
        "failed": failed,
        "repeats_ns": repeats,
        "warnings": warnings,
    }


def _seeded(n: int, seed: int) -> Iterator[int]:
    """Rounds of all queries without end, each in a fresh order, the same in every process."""
    import numpy as np

    rng = np.random.default_rng(seed)
    while True:
        yield from rng.permutation(n).tolist()


def main(spec: Mapping[str, Any]) -> int:
    """Measure and answer; gives the exit code."""
    import faulthandler

    say = channel()
    say({"started_ns": STARTED_NS})
    # Shows where it hangs; the parent would only see that it does.
    faulthandler.dump_traceback_later(spec["timeout_s"], exit=True, file=2)
    steps = Steps(say, time.perf_counter_ns)
    try:
        measure(spec, steps)
    except BaseException as problem:  # also SystemExit, which a library may raise
        from retrieval_bench.core.calls.foreign import failing, foreign_code
        from retrieval_bench.core.errors import HarnessError
        from retrieval_bench_launches.child import described

        where = "; ".join(getattr(problem, "__notes__", ()))
        fix = "correct the retriever or its parameters; --debug shows the traceback"
        try:
            with foreign_code(failing(steps.current, where=where, fix=fix)):
                raise
        except HarnessError as error:
            say({"error": described(error)})
        return 1
    return 0
