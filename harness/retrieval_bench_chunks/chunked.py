"""Chunkers in front of retrievers: what is indexed is chunks, each of which knows its range."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from retrieval_bench.core.config import validate
from retrieval_bench.core.errors import ConfigError, counted
from retrieval_bench.core.retriever import Capabilities, DocumentEncoder, RankingLike, Retriever
from retrieval_bench.core.types import Document, Documents, Query
from retrieval_bench.core.units.wrapped import Wrapped
from retrieval_bench_chunks.counting import Counter
from retrieval_bench_chunks.cutting import BY_LEVELS, Chunker, Levels, TokenWindows, Windows
from retrieval_bench_chunks.foreign import ForeignChunker, foreign_chunker
from retrieval_bench_chunks.ranges import DocumentOf

VERSION = 4
"""Version of the chunkers here: another one cuts otherwise, and its runs and indexes are others."""

BUILT_IN = ("tokens", "characters", *BY_LEVELS)
_ACCEPTED = f"{', '.join(BUILT_IN)}; langchain:CLASS, llamaindex:CLASS, or module:function"
AnyChunker = Chunker | ForeignChunker
_KEPT = 4
"""Corpora whose cuts are kept, so that several retrievers share them."""


class ChunkConfig(BaseModel):
    """What ``chunk`` of a retriever's config says.

    Attributes:
        by: name of the chunker.
        size: of a chunk, in tokens where ``by`` is tokens, else in characters.
        overlap: what neighbours share at most, in the same.
        params: of a chunker of another library.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    by: str
    size: Annotated[int, Field(ge=1)] | None = None
    overlap: Annotated[int, Field(ge=0)] = 0
    params: dict[str, Any] = {}


class Cut:
    """A corpus that is cut into chunks as it is walked: ranges, held as numbers.

    Attributes:
        chunker: cuts texts.
        chunks: of the documents that are cut so far.
        texts: of chunks whose own text is not that of their range: (document, chunk) -> text.
        lost: chunks that do not stand in their document, and are left out.
    """

    def __init__(self, chunker: AnyChunker) -> None:
        self.chunker = chunker
        self.chunks = self.lost = 0
        self.texts: dict[tuple[int, int], str] = {}
        self._bounds: list[array[int]] = []

    @property
    def documents(self) -> int:
        """The number of documents that are cut so far."""
        return len(self._bounds)

    def of(self, n: int, document: Document) -> array[int]:
        """Starts and ends of the chunks of a document, by turns.

        Args:
            n: its place in the corpus, at most the number of those that are cut.
        """
        if n == len(self._bounds):
            ranges: Sequence[tuple[int, int]]
            if isinstance(self.chunker, ForeignChunker):
                ranges, texts, lost = self.chunker.texts_of(document)
                self.lost += lost
                self.texts |= {(n, at): text for at, text in texts.items()}
            else:
                ranges = self.chunker.cut(document.text)
            if document.title.strip() and not document.text.strip():
                ranges = [(0, 0)]  # a title alone is a chunk: it stands in each one
            self.chunks += len(ranges)
            self._bounds.append(array("q", chain.from_iterable(ranges)))
        return self._bounds[n]


class Chunks(Documents):
    """The chunks of a corpus as documents, sliced anew on each walk; titles and metadata are those
    of their documents.

    Raises:
        ConfigError: at the end of a walk, where there is no chunk at all.
    """

    def __init__(self, documents: Iterable[Document], cut: Cut) -> None:
        self._documents = documents
        self._cut = cut

    def __len__(self) -> int:
        for n, document in enumerate(self._documents):
            self._cut.of(n, document)
        return self._cut.chunks

    def __iter__(self) -> Iterator[Document]:
        own = self._cut.texts
        for n, document in enumerate(self._documents):
            bounds = iter(self._cut.of(n, document))
            doc_id, text = document.id, document.text
            title, more = document.title, document.metadata
            for at, (start, end) in enumerate(zip(bounds, bounds, strict=True)):
                chunk = own.get((n, at)) if own else None
                yield Document(f"{doc_id}#{start}-{end}", chunk or text[start:end], title, more)
        if not self._cut.chunks:
            raise ConfigError(
                "no chunk: no document has a text",
                where="chunk",
                accepted="documents with texts",
                fix="look at the texts of the documents, or leave `chunk` out",
            )


_cuts: OrderedDict[tuple[str, str], Cut] = OrderedDict()


class Chunked(Wrapped):
    """A retriever that indexes chunks of documents, and returns their ranges.

    Args:
        inner: the retriever to wrap; closed together with this one.
        chunker: cuts texts.
        said: what the config says of it, with its version.
    """

    def __init__(self, inner: Retriever, chunker: AnyChunker, said: Mapping[str, Any]) -> None:
        super().__init__(inner)
        self.chunker = chunker
        self.said = said
        self._cut: Cut | None = None

    def around(self, inner: Retriever) -> Chunked:
        """The same around another retriever."""
        other = Chunked(inner, self.chunker, self.said)
        other._cut = self._cut
        return other

    @property
    def capabilities(self) -> Capabilities:
        """Those of the inner retriever, which takes no writes: documents would come in uncut."""
        return replace(self.inner.capabilities, writes=False)

    def units(self, unit_of: Mapping[str, str]) -> Mapping[str, str]:
        """Documents of the chunks, or units of these."""
        return DocumentOf(unit_of)

    def index(self, documents: Iterable[Document]) -> None:
        """Cut the documents, and index the chunks; cuts are made once for all retrievers that have
        the same chunker over the same files.

        Raises:
            ConfigError: there is no chunk at all.
        """
        self._cut = _shared(documents, self.chunker, self.said)
        super().index(Chunks(documents, self._cut))

    def search(self, query: Query, k: int) -> RankingLike:
        """Return at most ``k`` chunks."""
        return self.inner.search(query, k)

    def describe(self) -> Mapping[str, Any]:
        """The facts of the inner retriever, and the chunker."""
        n = {} if self._cut is None else {"chunks": self._cut.chunks, "lost": self._cut.lost}
        return {**self.inner.describe(), "chunk": {**self.said, **n}}

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Warnings of the inner retriever, and of chunks that stand nowhere."""
        warnings = list(self.inner.health(queries))
        if self._cut is not None and self._cut.lost:
            warnings.append(
                f"{counted(self._cut.lost, 'chunk')} of {self.said['by']} that stand nowhere in "
                "their documents, not even nearly, are not indexed."
            )
        return warnings

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """Facts of the inner retriever, and how many chunks there are."""
        facts = list(self.inner.health_facts(queries))
        if self._cut is not None:
            of = counted(self._cut.documents, "document")
            facts.append(f"{counted(self._cut.chunks, 'chunk')} of {of}, by {self.said['by']}")
        return facts

    def index_identity(self) -> Mapping[str, Any] | None:
        """The identity of the inner retriever, over chunks; None where the chunker has none."""
        inner = self.inner.index_identity()
        unknown = inner is None or self.said.get("version") is None
        return None if unknown else {"chunk": dict(self.said), "inner": inner}

    def document_encoder(self) -> DocumentEncoder | None:
        """None: vectors that are made before are of documents."""
        return None


def _shared(documents: Iterable[Document], chunker: AnyChunker, said: Mapping[str, Any]) -> Cut:
    known = getattr(documents, "fingerprint", None)
    if not isinstance(known, str):
        return Cut(chunker)
    # The fingerprint says nothing of the order, by which ranges are kept: files of the same texts
    # in another order are other documents.
    key = (f"{known} {getattr(documents, 'checked', '')}", repr(sorted(said.items())))
    if key not in _cuts:
        _cuts[key] = Cut(chunker)
        while len(_cuts) > _KEPT:
            _cuts.popitem(last=False)
    return _cuts[key]


def in_front(
    retriever: Retriever, given: Mapping[str, Any], where: str, base: Path | None
) -> Chunked:
    """A retriever with a chunker in front of it.

    Args:
        given: ``{by, size, overlap}``.
        where: the config, for messages.
        base: folder that files are named from.

    Raises:
        ConfigError: an unknown key or chunker, a size that makes no sense, or a retriever that
            indexes nothing.
    """
    config = validate(ChunkConfig, given, where=f"{where}, chunk")
    if retriever.capabilities.external:
        raise ConfigError(
            "`chunk` in front of a retriever that holds its corpus already",
            where=where,
            accepted="a retriever that indexes documents",
            fix="leave `chunk` out: hits of a service that chunks for itself are found again by "
            "the texts that they come with",
        )
    chunker, more = _chunker(config, where, base)
    said = {"by": config.by, "size": config.size, "overlap": config.overlap, **more}
    return Chunked(retriever, chunker, said | ({"params": config.params} if config.params else {}))


def built_in(config: ChunkConfig, counted: str = "auto") -> Chunker:
    """The chunker of this package that a checked config names.

    Args:
        counted: the way that tokens are counted.

    Raises:
        KeyError: it names none.
    """
    size = config.size or 1
    if config.by == "tokens":
        return TokenWindows(size, config.overlap, Counter(counted))
    if config.by == "characters":
        return Windows(size, config.overlap)
    return Levels(size, config.overlap, BY_LEVELS[config.by])


def _chunker(
    config: ChunkConfig, where: str, base: Path | None
) -> tuple[AnyChunker, dict[str, Any]]:
    by, size, overlap = config.by, config.size, config.overlap
    if by not in BUILT_IN and ":" not in by:
        raise ConfigError(f"chunk by {by!r}", where=where, accepted=_ACCEPTED, fix="name one")
    if size is not None and overlap > size // 2:
        raise ConfigError(
            f"an overlap of {overlap:,} for chunks of {size:,}",
            where=f"{where}, chunk",
            accepted="at most half of the size: more would deliver all of a text twice and more",
            fix=f"set overlap to {size // 2:,} or less",
        )
    if ":" in by:
        return foreign_chunker(by, size, overlap, config.params, where=where, base=base)
    if size is None or config.params:
        raise ConfigError(
            f"chunk by {by} " + ("without a size" if size is None else "with params"),
            where=f"{where}, chunk",
            accepted="{by, size, overlap}, such as {by: tokens, size: 400, overlap: 40}",
            fix="add the size" if size is None else "leave params out",
        )
    counted_as = {"counted": Counter().name} if by == "tokens" else {}
    return built_in(config), {"version": VERSION, **counted_as}
