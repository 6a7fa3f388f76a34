"""What retrievers share that encode the documents and hold every query against all of them, and the
texts as encoders take them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise
from time import perf_counter_ns
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.metadata import MetadataTable
from retrieval_bench.core.retriever import Retriever, require_index, require_k
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_retrievers.encoders.encoder import Encoder, readable

E = TypeVar("E", bound=Encoder)


class Texts(NamedTuple):
    """Documents in ascending order of their ids: ids, title and text as one text, metadata."""

    ids: list[str]
    texts: list[str]
    metadata: MetadataTable


def texts_by_id(documents: Iterable[Document], fields: Sequence[str]) -> Texts:
    """The texts of ``documents``, with these ``fields`` of their metadata.

    Raises:
        ContractError: two documents of one id.
    """
    metadata, unsorted = MetadataTable(fields), []
    for document in documents:
        metadata.add(document.metadata)
        unsorted.append((document.id, readable(document.contents)))
    order = sorted(range(len(unsorted)), key=unsorted.__getitem__)
    ids = [unsorted[at][0] for at in order]
    for one, other in pairwise(ids):
        if one == other:
            raise ContractError(
                f"document id {one!r} given twice",
                accepted="distinct ids",
                fix="correct the corpus; chunks of one document need an id each",
            )
    return Texts(ids, [unsorted[at][1] for at in order], metadata.reordered(order))


class Encoded(Retriever, Generic[E]):
    """Base of those retrievers. A blank query finds nothing, as does one whose filter nothing fits.

    Attributes:
        stage: name of the stage that searches, behind ``encode``.
    """

    stage: ClassVar[str]

    def __init__(self, encoder: E) -> None:
        self._encoder = encoder
        self._index: Any = None
        self._ids: list[str] = []
        self._fields: tuple[str, ...] = ()
        self._metadata = MetadataTable(())

    def use_filters(self, fields: Sequence[str]) -> None:
        """Keep these fields of the documents."""
        self._fields = tuple(fields)
        self._index = None

    def prepare(self) -> None:
        """Load the model."""
        self._encoder.load()

    def search(self, query: Query, k: int) -> Ranking:
        """The ``k`` best documents; stages ``encode`` and :attr:`stage`, and ``filter`` of a query
        that has one."""
        require_k(k)
        require_index(self._index is not None, self)
        begin = perf_counter_ns()
        allowed = None if query.filter is None else self._metadata.mask(query.filter)
        filtered = perf_counter_ns()
        if not self._ids or not query.text.strip() or (allowed is not None and not allowed.any()):
            return Ranking([], [])
        asked = self._encoded(query.text)
        encoded = perf_counter_ns()
        ids, scores = self._best(asked, k, allowed)
        stages = {"encode": encoded - filtered, self.stage: perf_counter_ns() - encoded}
        if allowed is not None:
            stages["filter"] = filtered - begin
        return Ranking(ids, scores, stages)

    def close(self) -> None:
        """Let go of the model and of what was made with it."""
        self._index = None
        self._encoder.close()

    def _read(self, documents: Iterable[Document]) -> list[str]:
        """The texts of the documents, by their ids in ascending order; the model is loaded."""
        self._index = None
        self.prepare()
        self._ids, texts, self._metadata = texts_by_id(documents, self._fields)
        return texts

    @abstractmethod
    def _encoded(self, text: str) -> Any:
        """Encode ``text`` as it is searched with."""

    @abstractmethod
    def _best(
        self, asked: Any, k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[list[str], NDArray[np.float64]]:
        """Ids and scores of the best ``k`` of the ``allowed`` documents (None = all, else some),
        best first, ties by id."""
