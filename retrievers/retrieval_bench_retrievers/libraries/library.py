"""What a retrieval library does in its own way, and the adapter over it needs to know.

The bridges implement both classes for one library each, and are the modules that import it.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Container, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from retrieval_bench.core.errors import ContractError, MissingDependencyError
from retrieval_bench.core.types import EMPTY, Document, Ranking
from retrieval_bench_retrievers.libraries.kept_chain import Inside


class Call(NamedTuple):
    """An object of a library, and what its method gets, by place and by name."""

    made: Any
    given: tuple[Any, ...] = ()
    named: Mapping[str, Any] = EMPTY


class Engine(ABC):
    """Engine that a factory made, ready to be asked.

    Attributes:
        made: the library's object.
        takes_k: each call says how many hits it wants, so that one engine serves every number.
        methods: of what is called, the one that answers and the one that is awaited.
    """

    takes_k: bool = False
    methods: ClassVar[tuple[str, str]]

    def __init__(self, made: Any) -> None:
        self.made = made

    @abstractmethod
    def call(self, asked: Any, k: int, filters: Any) -> Call:
        """Return the function to call, and its arguments.

        Args:
            asked: the query's text.
            k: hits wanted, for an engine that takes k.
            filters: as the library wants them, None = no filter.
        """

    def ask(self, asked: Any, k: int, filters: Any) -> Any:
        """The library's answer; what it raises is passed through; arguments as of :meth:`call`."""
        made, given, named = self.call(asked, k, filters)
        return getattr(made, self.methods[0])(*given, **named)

    def ask_async(self, asked: Any, k: int, filters: Any) -> Coroutine[Any, Any, Any]:
        """The same, awaited."""
        made, given, named = self.call(asked, k, filters)
        answer: Coroutine[Any, Any, Any] = getattr(made, self.methods[1])(*given, **named)
        return answer

    def only_async(self, problem: Exception) -> bool:
        """Return whether ``problem``, raised by :meth:`ask`, says that only :meth:`ask_async`
        works."""
        return isinstance(problem, NotImplementedError)

    def inside(self, library: Library) -> Inside | None:
        """Look inside the last call, for a chain that tells its steps."""
        return None

    def deeper(self, k: int) -> Engine | None:
        """An engine over the same index for ``k`` hits; None where only the factory makes one."""
        return self if self.takes_k else None


class Library(ABC):
    """One library: its documents, which of its objects can be asked, and how what these return
    becomes a ranking, by the ids of the documents, never their texts.

    Args:
        name: of the factory, for messages.
        id_key: the metadata key that holds the document id; None = the library's own field.

    Attributes:
        hit_type: the library's type of a hit.
        text_name: its attribute that is the text.
        accepted: what an answer should be.
        own_place: where the id stands without ``id_key``.
        no_id_advice: what to do about a missing id.
        unknown_id_advice: what to do about an id that is not in the corpus.
    """

    hit_type: type
    text_name: str
    accepted: str
    own_place: str
    no_id_advice: str
    unknown_id_advice: str

    def __init__(self, name: str, id_key: str | None) -> None:
        self.name = name
        self.id_key = id_key
        self._known_ids: Container[str] | None = None

    def begin(self, known_ids: Container[str]) -> None:
        """Forget what was seen: answers are now of a corpus with these ids. Without it nothing is
        known of the corpus."""
        self._known_ids = known_ids

    @abstractmethod
    def document(self, document: Document) -> Any:
        """``document`` as the library has it, a new object on each call."""

    @abstractmethod
    def is_engine(self, made: Any) -> bool:
        """Return whether ``made`` is an object that can be asked."""

    @abstractmethod
    def advice(self, made: Any) -> str:
        """Advise what to do about ``made``, which cannot be asked."""

    @abstractmethod
    def engine(self, made: Any, *, filtered: bool) -> Engine:
        """``made``, ready to be asked.

        Args:
            made: what :meth:`is_engine` accepts.
            filtered: it will get filters.

        Raises:
            ContractError: it cannot take the filters, or does not say where its input goes.
        """

    def read(self, found: Any, stages: Mapping[str, int] = EMPTY) -> Ranking:
        """All of ``found`` in its order, with ``stages``; an id may stand in it more than once.
        Where nothing is known of the corpus, hits keep the text and the source that they came with.

        Raises:
            ContractError: no list of hits, one without an id or with an id that is not in the
                corpus, or scores that are not as promised.
        """
        hits = self.hits(found)
        if not isinstance(hits, list | tuple):
            raise self._no_hits(hits)
        ids: list[str] = []
        known = self._known_ids
        for hit in hits:
            if not isinstance(hit, self.hit_type):
                raise self._no_hits(hit, "a list with ")
            doc_id = self.id_of(hit)
            if type(doc_id) is not str or not doc_id:
                doc_id = self._as_text(doc_id, hit)
            if known is not None and doc_id not in known:
                raise self._unknown(doc_id, hit)
            ids.append(doc_id)
        ranking = Ranking(ids, self.scores(hits), stages)
        if known is not None or not hits:
            return ranking
        texts = [getattr(hit, self.text_name) or None for hit in hits]
        sources = [_source(self.metadata(hit)) for hit in hits]
        return replace(ranking, texts=texts, sources=sources if any(sources) else None)

    def hits(self, found: Any) -> Any:
        """The list of hits in an answer; anything else is told as what came."""
        return found

    @abstractmethod
    def id_of(self, hit: Any) -> Any:
        """The document id of one hit, of any type."""

    @abstractmethod
    def scores(self, hits: Sequence[Any]) -> list[float] | None:
        """Scores of all ``hits``, never rising; None where there are none."""

    def metadata(self, hit: Any) -> Mapping[str, Any]:
        """The metadata of one hit."""
        metadata: Mapping[str, Any] = hit.metadata
        return metadata

    def keys(self, hit: Any) -> str:
        """The metadata keys of ``hit``, for messages."""
        return ", ".join(map(str, self.metadata(hit))) or "none"

    def facts(self) -> list[str]:
        """List the facts seen while reading, one line each."""
        return []

    def _place(self) -> str:
        return self.own_place if self.id_key is None else f"metadata key {self.id_key!r}"

    def _as_text(self, doc_id: Any, hit: Any) -> str:
        if type(doc_id) is not bool and isinstance(doc_id, Integral | UUID):
            return str(doc_id)
        none = doc_id is None or doc_id == ""
        kind = "without an id" if none else f"whose id is a {type(doc_id).__name__}"
        raise ContractError(
            f"{self.name} returned a document {kind} ({doc_id!r})",
            where=self._place(),
            accepted=f"text, a whole number or a UUID; metadata keys there: {self.keys(hit)}",
            fix=self.no_id_advice,
        )

    def _unknown(self, doc_id: str, hit: Any) -> ContractError:
        return ContractError(
            f"{self.name} returned the id {doc_id!r}, which is not in the corpus"
            + (": an engine without ids makes new ones on every build" * is_made_up(doc_id)),
            where=self._place(),
            accepted="ids of the documents that the factory got; metadata keys there: "
            + self.keys(hit),
            fix=self.unknown_id_advice,
        )

    def _no_hits(self, answer: Any, prefix: str = "") -> ContractError:
        if inspect.iscoroutine(answer):
            answer.close()
        return ContractError(
            f"{self.name} answered a query with {prefix}{described(answer)}",
            accepted=self.accepted,
            fix=self.answer_advice(answer),
        )

    def answer_advice(self, answer: Any) -> str:
        """Advise what to do about an answer that is no list of hits."""
        return "return the documents themselves"


class OwnScores(Library):
    """A library whose hits may have a score each.

    They are the attribute ``score`` of hits. A list has scores where every hit has one and they
    never rise; of any other list the order is all there is, which is what these libraries promise.
    """

    def __init__(self, name: str, id_key: str | None, *, scores: bool) -> None:
        super().__init__(name, id_key)
        self._wanted = scores
        self._lists = self._rising = 0

    def begin(self, known_ids: Container[str]) -> None:
        """See :meth:`Library.begin`."""
        super().begin(known_ids)
        self._lists = self._rising = 0

    def scores(self, hits: Sequence[Any]) -> list[float] | None:
        """Read the scores as the class says; None where they are not wanted."""
        if not self._wanted:
            return None
        self._lists += 1
        scores: list[float] = []
        for hit in hits:
            if hit.score is None:
                return None
            score = float(hit.score)
            if scores and score > scores[-1]:
                self._rising += 1
                return None
            scores.append(score)
        return scores

    def facts(self) -> list[str]:
        """Says how many lists had rising scores."""
        if not self._rising:
            return []
        message = f"{self._rising:,} of {self._lists:,} lists of {self.name} have scores that rise"
        return [f"{message}: their order counts, not their scores"]


def _source(metadata: Mapping[str, Any]) -> str | None:
    given = (metadata.get(name) for name in ("source", "file_path", "url"))
    return next((text for text in given if isinstance(text, str) and text), None)


def metadata_for(document: Document) -> dict[str, Any]:
    """The metadata that a library gets with ``document``: also its id as ``doc_id``, where
    splitters keep it, and its title. The document's own win over both."""
    title = {"title": document.title} if document.title else {}
    return {"doc_id": document.id, **title, **document.metadata}


@contextmanager
def needed(what: str, module: str, package: str, where: str, accepted: str = "") -> Iterator[None]:
    """Import a library inside; without it, raise what says how to install it.

    Raises:
        MissingDependencyError: there is no ``module``.
    """
    try:
        yield
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] != module:
            raise
        raise MissingDependencyError(
            f"{what} is not installed", where=where, accepted=accepted, fix=f"pip install {package}"
        ) from None


def cannot_filter(name: str, what: str, accepted: str, fix: str) -> ContractError:
    """The error for an engine that would ignore a filter."""
    return ContractError(
        f"{name} gave {what}, which takes no filter", where="filter", accepted=accepted, fix=fix
    )


def described(value: Any) -> str:
    """The type of ``value`` for a message, with the keys of a mapping."""
    if isinstance(value, Mapping):
        return f"{type(value).__name__} (keys {', '.join(map(str, value)) or 'none'})"
    return "None" if value is None else type(value).__name__


def is_made_up(doc_id: str) -> bool:
    """Return whether an id looks like one that an engine made itself."""
    from uuid import UUID

    try:
        UUID(doc_id)
    except ValueError:
        return False
    return True
