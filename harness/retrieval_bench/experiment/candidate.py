"""One retriever of an experiment: what is called of it, and what becomes of its mistakes."""

from __future__ import annotations

import math
import warnings as python_warnings
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrieval_bench.core.calls.failures import Retry
from retrieval_bench.core.calls.foreign import WorkingFolder, failing, foreign_code, message_of
from retrieval_bench.core.calls.usage import Price
from retrieval_bench.core.calls.waiting import waited_for
from retrieval_bench.core.errors import ContractError, HarnessError
from retrieval_bench.core.figures import visible
from retrieval_bench.core.notices import Notice
from retrieval_bench.core.retriever import Capabilities, Retriever
from retrieval_bench.core.types import Ranking
from retrieval_bench.data.saved_indexes import Indexed
from retrieval_bench.measure.calls import System, Timings
from retrieval_bench.measure.deadline import QueryTimeoutError, deadline


@dataclass(slots=True)
class Candidate:
    """One retriever of an experiment, and what its manifest says of where it came from."""

    name: str
    retriever: Retriever
    config: Mapping[str, Any]
    index: dict[str, Any] = field(default_factory=dict)
    indexed: Indexed = field(default_factory=Indexed)
    folder: WorkingFolder = field(default_factory=WorkingFolder)
    retry: Retry = field(default_factory=Retry)
    rate_limit: float | None = None
    server: int | None = None
    price: Price | None = None

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the retriever.

        Raises:
            ContractError: it does not say.
        """
        with foreign_code(self.failing("capabilities", fix="correct the retriever")):
            return self.retriever.capabilities

    def failing(self, what: str, **parts: str) -> Callable[[BaseException], HarnessError]:
        """Translate, for :func:`.foreign_code`, whatever leaves ``what`` of the retriever; see
        :func:`.foreign.failing`."""
        return failing(what, ContractError, f"retriever {self.name!r}", **parts)

    @property
    def failed_to_index(self) -> Callable[[BaseException], HarnessError]:
        """Of building or opening its index."""
        remedy = "correct the retriever or its parameters; --debug shows the traceback"
        return self.failing("indexing", fix=remedy)

    def system(
        self, known: Container[str] | None, name: str = "", retriever: Retriever | None = None
    ) -> System:
        """What is called of it.

        Args:
            known: ids of the corpus; an external one may have other documents.
            name, retriever: of one way to search it; its own where they are not given.
        """
        return System(
            name or self.name,
            retriever or self.retriever,
            None if self.capabilities.external else known,
            self.retry,
            self.rate_limit,
            self.server,
            self.price,
        )

    def described(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """``retriever`` of a manifest, with what it says of itself; an object does not say what it
        was built from, and has no hash."""
        return {"name": self.name, "hash": None, **self.config, "facts": dict(facts)}


@dataclass(frozen=True, slots=True)
class Searched:
    """Rankings that one retriever returned, with neither figures nor files.

    Attributes:
        name: of the retriever.
        rankings: one for each query, None where it failed.
        status: one for each query: "ok", or why it failed.
        timings: all measured calls.
        warnings: faults of the data, the fit of the retriever to it, what failed.
    """

    name: str
    rankings: tuple[Ranking | None, ...]
    status: tuple[str, ...]
    timings: Timings
    warnings: tuple[str, ...]


_CLOSING_S = 30.0


def ask(
    candidate: Candidate,
    question: str,
    told: list[str],
    otherwise: Any,
    *arguments: Any,
    limit_s: float = math.inf,
) -> Any:
    """Ask the retriever about itself. It is asked after the measurement, which a mistake in the
    answer must not cost: that becomes a sentence in ``told``."""

    def failed(problem: BaseException) -> ContractError:
        how = f"failed with {message_of(problem)}"
        if isinstance(problem, QueryTimeoutError):
            how = f"did not return within {limit_s:g} s"
        return ContractError(f"{question}() of {candidate.name} {how}")

    try:
        with candidate.folder.lent(), foreign_code(failed), deadline(limit_s) as timer:
            timer.arm()
            return _READ_AS.get(question, _unchanged)(
                getattr(candidate.retriever, question)(*arguments)
            )
    except HarnessError as problem:
        told.append(problem.given)
        return otherwise


def _unchanged(answer: Any) -> Any:
    return answer


def _sentences(answer: Any) -> list[str]:
    return [item if isinstance(item, Notice) else str(item) for item in answer]


_READ_AS: Mapping[str, Callable[[Any], Any]] = {
    "describe": dict,
    "health": _sentences,
    "health_facts": _sentences,
}


def close_all(candidates: Sequence[Candidate]) -> None:
    """Close every retriever, whatever the others do: one that does not come back must not keep the
    figures of all from being printed."""
    for candidate in candidates:
        messages: list[str] = []
        with waited_for(f"closing {candidate.name}"):
            ask(candidate, "close", messages, None, limit_s=_CLOSING_S)
        for message in messages:
            python_warnings.warn(visible(message), RuntimeWarning, stacklevel=2)


def unused_indexes(facts: Mapping[str, Any]) -> Iterator[str]:
    """What answers, and why, where a retriever or a leg of it has an index that it does not use:
    "flat: fewer than 1000 vectors need no graph"."""
    for one in with_legs(facts):
        index = one.get("index")
        used = str(index.get("used")) if isinstance(index, Mapping) else ""
        if used.startswith("flat"):
            yield used


def with_legs(facts: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What a retriever says of itself, and what its legs say."""
    yield facts
    for leg in facts.get("legs", {}).values():
        yield from with_legs(leg)
