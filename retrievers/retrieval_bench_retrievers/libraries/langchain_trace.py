"""What a Runnable of LangChain did in a call: its steps by run name, and what its models used up.

The steps are the runs directly below the first one, as callbacks tell them.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from retrieval_bench.core.calls.usage import total, usage_of
from retrieval_bench.core.types import Usage


@dataclass(slots=True)
class Step:
    """One step of a chain.

    Attributes:
        name: of its run; without one LangChain takes the name of its class.
        begin, end: nanoseconds; ``end`` is 0 while it runs.
        gave: its output.
    """

    name: str
    begin: int
    end: int = 0
    gave: Any = None
    usage: Usage | None = None


class Trace(BaseCallbackHandler):
    """Listens to one call.

    Attributes:
        steps: in the order begun.
        usage: of all models of the call, None where none told.
    """

    run_inline = True  # in the thread that makes the call, also of an async one

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.usage: Usage | None = None
        self._parents: dict[UUID, UUID | None] = {}
        self._of: dict[UUID, Step] = {}

    def on_chain_start(self, *given: Any, run_id: UUID, **about: Any) -> None:
        """A Runnable, a retriever or a model begins."""
        parent = about.get("parent_run_id")
        self._parents[run_id] = parent
        if parent is not None and self._parents.get(parent, parent) is None:
            name = about.get("name") or (given[0] or {}).get("name") or "step"
            step = self._of[run_id] = Step(str(name), perf_counter_ns())
            self.steps.append(step)

    on_retriever_start = on_chat_model_start = on_llm_start = on_chain_start

    def on_chain_end(self, *given: Any, run_id: UUID, **about: Any) -> None:
        """A Runnable or a retriever ends."""
        step = self._of.get(run_id)
        if step is not None:
            step.end, step.gave = perf_counter_ns(), given[0]

    on_retriever_end = on_chain_end

    def on_llm_end(self, response: Any, *, run_id: UUID, **about: Any) -> None:
        """A model ends: what it used up stands in its messages, else in its answer."""
        generations = [item for row in response.generations for item in row]
        used = total(usage_of(getattr(generation, "message", None)) for generation in generations)
        if used is None and response.llm_output:
            used = usage_of(response.llm_output.get("token_usage") or {})
        self.usage = total([self.usage, used])
        step = self._step(run_id)
        if step is not None:
            step.usage = total([step.usage, used])
        self.on_chain_end(generations[0].text if generations else None, run_id=run_id)

    def _step(self, run_id: UUID | None) -> Step | None:
        """The step that a run is a part of."""
        while run_id is not None and run_id not in self._of:
            run_id = self._parents.get(run_id)
        return None if run_id is None else self._of[run_id]
