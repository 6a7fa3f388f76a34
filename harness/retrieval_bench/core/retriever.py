"""The contract that every retriever fulfils.

A retriever is a class built from keyword parameters. The harness calls :meth:`Retriever.index`
once (unless it is external), then :meth:`Retriever.search` many times, one query at a time, and
times each call. What a subclass must promise is tested by
:class:`retrieval_bench.testing.RetrieverConformance`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import EMPTY, Document, Documents, Query, Ranking

RankingLike = Ranking | Sequence[tuple[str, float]]
"""What ``search`` may return: a :class:`.Ranking`, or (doc_id, score) pairs."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Promises of a retriever to the harness.

    Attributes:
        external: it already holds the corpus; ``index`` is never called.
        exact: two searches over the same content give the same ranking whatever the order of the
            corpus. Approximate indexes say False.
        has_scores: False when the order of the list is all there is.
        replays: answers are read from a saved run, so that its times are no latencies.
        filters: it applies the filter of a query before it ranks, or hands it to an engine that
            does.
        threads: several threads may search at once, and write meanwhile.
        score_tolerance: relative difference below which two scores are the same (encoders: 1e-5).
        deepens: more hits than :meth:`Retriever.use_k` told take no other index.
        writes: documents may be added and deleted while it answers.
    """

    external: bool = False
    exact: bool = True
    has_scores: bool = True
    replays: bool = False
    filters: bool = False
    threads: bool = False
    score_tolerance: float = 1e-9
    deepens: bool = True
    writes: bool = False


class Retriever(ABC):
    """Base class of all retrievers; adapters override ``index`` and ``search``.

    Attributes:
        accepts: what may stand under a parameter that has a grammar of its own, for messages and
            `data list`.
        progress: set by the harness while it indexes; an adapter whose indexing takes long calls
            it with (texts done, texts in all).
    """

    accepts: ClassVar[Mapping[str, str]] = EMPTY
    progress: Callable[[int, int], None] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of this instance, with its parameters."""
        return Capabilities()

    def prepare(self) -> None:
        """Load what does not depend on documents, such as a model; ``index``, which may follow or
        come without it, loads none of it twice. Called where a cold start is measured, to tell the
        seconds of the model from those of the index. Optional."""
        return

    def index(self, documents: Iterable[Document]) -> None:
        """Build the index over ``documents``, replacing whatever was indexed before.

        Never called when ``capabilities.external`` is true. ``documents`` may be walked more than
        once; its order must not change any ranking.
        """
        raise ContractError(
            f"{type(self).__name__} has no index() and does not declare itself external",
            accepted="a retriever that overrides index(documents), or capabilities.external = True",
            fix="add one of the two to the class",
        )

    def add(self, documents: Sequence[Document]) -> None:
        """Add ``documents`` to what is searched, and return when the engine has acknowledged them;
        one whose id is there already replaces that one. Asked of ``capabilities.writes`` alone."""
        raise ContractError(f"{type(self).__name__} declares writes and has no add()")

    def delete(self, ids: Sequence[str]) -> None:
        """Take documents out of what is searched, and return when the engine has acknowledged that;
        an id that is not there is no error. Asked of ``capabilities.writes`` alone."""
        raise ContractError(f"{type(self).__name__} declares writes and has no delete()")

    def collection(self) -> str:
        """Name of what an external retriever writes into, which a user types out before anything is
        written; empty = nothing is ever written."""
        return ""

    def use_language(self, language: str | None) -> None:
        """Told before ``index``: the dataset's ISO 639-1 language, None when not declared. A
        language in the retriever's own parameters wins. Optional."""
        return

    def use_k(self, k: int) -> None:
        """Told before ``index`` (and to external retrievers too): the number of hits that
        searches will ask for. Another number in ``search`` must work all the same. Optional."""
        return

    def use_filters(self, fields: Sequence[str]) -> None:
        """Told before ``index``: the metadata fields that filters of the queries name, none where
        no query has a filter. Optional."""
        return

    def use_corpus(self, documents: Documents | None, unit_of: Mapping[str, str]) -> None:
        """Told before the first search, for what replays answers made elsewhere: the corpus that
        they are judged on, None where there is none, and the units of its documents (document id ->
        unit id, empty where judgements are on documents). Optional.

        Raises:
            HarnessError: the answers do not fit.
        """
        return

    def units(self, unit_of: Mapping[str, str]) -> Mapping[str, str]:
        """Units of what it returns: those of documents, unless it returns parts of them. Optional.

        Args:
            unit_of: document id -> unit id, empty where judgements are on documents.
        """
        return unit_of

    @abstractmethod
    def search(self, query: Query, k: int) -> RankingLike:
        """Return at most ``k`` hits, best first: score descending, ties by document id ascending.

        Raises:
            ContractError: ``k`` is below 1, or nothing was indexed yet (see :func:`require_k` and
                :func:`require_index`).
        """

    def describe(self) -> Mapping[str, Any]:
        """Facts for the manifest that the parameters alone do not say: model hash, tokenizer,
        size of the vocabulary, the fusion constant and its base. Values are JSON types."""
        return {}

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """Facts worth knowing of the fit between this retriever and the texts, one line each, and
        no reason to worry: the share of texts that an encoder cuts off. Asked after searching."""
        return ()

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Warnings in plain words about the fit of this retriever to the indexed corpus and to
        ``queries``: an encoder that does not know the language, texts that are cut off."""
        return ()

    def server_pid(self) -> int | None:
        """Number of the process on this machine that answers, where it is another one: its memory
        and processor time are figures of the run. Asked before the first search. Optional."""
        return None

    def disk_bytes(self) -> int | None:
        """Bytes that the index takes on disk, None when it lives in memory only."""
        return None

    def index_identity(self) -> Mapping[str, Any] | None:
        """All but the documents that decides what :meth:`save` writes: parameters, files of a
        model, versions, in JSON types; None where an index is not to be kept. Asked after
        ``use_language`` and ``use_filters``. Optional."""
        return None

    def save(self, folder: Path) -> None:
        """Write the index to ``folder``. Optional."""
        raise NotImplementedError(f"{type(self).__name__} cannot save its index")

    def load(self, folder: Path) -> None:
        """Replace the index by the one in ``folder``. Optional."""
        raise NotImplementedError(f"{type(self).__name__} cannot load an index")

    def document_encoder(self) -> DocumentEncoder | None:
        """The encoder of the vectors that :meth:`index` finds where they were made before; None
        where there is none. Optional."""
        return None

    def search_space(self) -> Mapping[str, Sequence[Any]]:
        """Values worth trying: dotted path of a parameter -> values to try, the one that this
        instance has first. ``tune`` takes it where no grid is given. Optional."""
        return {}

    def named_legs(self) -> Mapping[str, Retriever]:
        """The retrievers that the parameter ``legs`` was built into, by name and in its order.
        ``tune`` asks each once and combines the answers anew for each setting, by building this
        class with ``legs`` that answer from memory, unless :meth:`shared` says more. Optional."""
        return {}

    def shared(self, memory: Answers) -> Mapping[str, Any]:
        """Objects that all settings of other parameters may share: dotted path of a parameter -> an
        object that stands for what it names and has its answers from ``memory``. ``tune`` builds
        this class with them for each setting, so that nobody is asked twice. Optional."""
        return {}

    def parts(self, k: int) -> Sequence[Part]:
        """Parts of this retriever that can be left out, and itself without each; these share its
        objects, and are not closed. Optional.

        Args:
            k: hits that searches ask for.
        """
        return ()

    def rungs(self) -> Sequence[Rung]:
        """The way from an exact retriever, the first one, to this one, with one thing after the
        other done in the way that saves time or memory: what ``explain --by loss`` measures. Models
        are loaded for it. Optional."""
        return ()

    def searching(self, changed: Mapping[str, Any]) -> Retriever | None:
        """This retriever over the same index, searched in another way: it shares everything with
        this one, and is not closed. None where that takes an index of its own; a parameter that is
        called ``exact`` is found without this method. Asked before ``index``, whether it can, and
        again after it. Optional.

        Args:
            changed: values of parameters by their dotted paths; ``exact: True`` is an exhaustive
                search of the same vectors.

        Raises:
            ConfigError: a value that makes no sense.
        """
        return None

    def over(self, memory: Answers, path: str = "") -> Retriever:
        """This retriever with answers from ``memory``: whoever is made of others puts these over
        it, under names that its rankings keep their lists by.

        Args:
            path: where it stands in a retriever that is made of it; empty = nowhere.
        """
        return memory.leaf(path, self)

    def close(self) -> None:
        """Release threads, connections and files. Called once, after the last search."""
        return


class DocumentEncoder(Protocol):
    """What makes vectors, so that other processes can make them, too.

    Attributes:
        dimension: numbers of a vector; known when the model is loaded.
        compared: so many first numbers are compared, by their inner product; None = all.
        normalized: they are scaled to length 1 before.
    """

    @property
    def dimension(self) -> int: ...
    @property
    def compared(self) -> int | None: ...
    @property
    def normalized(self) -> bool: ...

    def load(self) -> None:
        """Load the model, unless it is loaded."""

    def close(self) -> None:
        """Let go of the model."""

    def identity(self) -> Mapping[str, Any] | None:
        """All but texts and the processor that decides what :meth:`documents` gives, in JSON types;
        None where that is not known. Asked after :meth:`load`."""

    def documents(self, texts: Sequence[str]) -> Any:
        """One row (float32) for each text, decided by these texts alone, not by their order; equal
        texts have equal rows."""

    def query(self, text: str) -> Any:
        """The vector of a query, shape (dimension,)."""

    def keep(self, texts: Sequence[str], vectors: Any) -> None:
        """Put the vectors of distinct texts where :meth:`Retriever.index` finds them, before others
        that are there. Without a text it only says whether there is such a place.

        Raises:
            ConfigError: there is none, or it cannot be written.
        """


PartKind = Literal[
    "leg", "fusion", "rewriting", "expansion", "weighting", "reranker", "filter", "depth"
]


@dataclass(frozen=True, slots=True)
class Part:
    """One part, and the retriever without it.

    Attributes:
        name: distinct among the parts; a part inside of another has the other's name before it, as
            in ``retrieve/bm25``.
        kind: what it is.
        without: the retriever without it.
        instead: what stands in its place, in words; empty where nothing does.
        stages: whose time and usage go with it.
        beside: stages that run at the same time as ``stages``: with the part a call waits for the
            longest of all, without it for the longest of these.
        share: of the time of ``stages``, how much goes.
        timed: False where stages do not say what it takes.
        gets: what it works on: the name of a list that the ranking keeps; empty = none.
        gives: likewise what it makes.
    """

    name: str
    kind: PartKind
    without: Retriever
    instead: str = ""
    stages: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    share: float = 1.0
    timed: bool = True
    gets: str = ""
    gives: str = ""

    def inside(self, name: str, without: Retriever, stages: Mapping[str, str]) -> Part:
        """The same part of a retriever that holds this one under ``name``.

        Args:
            without: the whole without the part.
            stages: what the whole calls the stages of what it holds, where that is not the same.
        """
        return replace(
            self,
            name=f"{name}/{self.name}",
            without=without,
            stages=tuple(stages.get(stage, stage) for stage in self.stages),
            beside=tuple(stages.get(item, item) for item in self.beside),
            gets=f"{name}/{self.gets}" if self.gets else "",
            gives=f"{name}/{self.gives}" if self.gives else "",
        )


@dataclass(frozen=True, slots=True)
class Rung:
    """One step from an exact retriever to the one that is served.

    Attributes:
        name: ``exact`` of the first; distinct.
        what: it does here, in words.
        retriever: with this step and all before it; it shares models with the others, and is not
            indexed yet. None where nothing differs from the step before, or nobody can tell.
        known: False where it differs from an exact retriever in a way that cannot be told apart.
    """

    name: str
    what: str
    retriever: Retriever | None = None
    known: bool = True


class Answers(Protocol):
    """Source of answers in place of the retrievers and steps that a retriever is made of: see
    :class:`retrieval_bench.core.remembered.Memory`."""

    def leaf(self, path: str, retriever: Retriever) -> Retriever:
        """A retriever that is made of no others, with answers from here."""

    def answer(
        self,
        path: str,
        question: Hashable,
        kept: Callable[[str, Ranking], Any],
        ask: Callable[[], Any],
    ) -> Any:
        """The answer of what stands at ``path`` to ``question``."""

    def known(self, path: str, question: Hashable) -> Any:
        """The answer that was given before; None where there is none."""

    def kept(self, path: str, kept: Callable[[str, Ranking], Any]) -> Any:
        """Read what a measured ranking kept of ``path``; None where there is nothing."""

    def anew(self, path: str, ask: Callable[[], Any]) -> Any:
        """A new answer, if somebody may be asked."""


def require_k(k: object) -> None:
    """Raise :class:`ContractError` when ``k`` is not a whole number of at least 1."""
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise ContractError(
            f"k = {k!r}", accepted="a whole number of at least 1", fix="ask for one hit or more"
        )


def require_index(indexed: bool, retriever: Retriever) -> None:
    """Raise :class:`ContractError` when ``search`` came before ``index``."""
    if not indexed:
        raise ContractError(
            f"{type(retriever).__name__}.search was called before index",
            fix="call index(documents) first",
        )
