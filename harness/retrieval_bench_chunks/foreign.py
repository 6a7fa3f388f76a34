"""Chunkers of others: a function of one's own, and splitters of LangChain and LlamaIndex.

What they give is held against the document: a range must lie in it, and a text that does not stand
where it is said to is looked for, as a hit of a service is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import version
from inspect import getfile
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.core import plugins
from retrieval_bench.core.calls.foreign import failing, folder_kept, foreign_code
from retrieval_bench.core.errors import ConfigError, ContractError, MissingDependencyError
from retrieval_bench.core.types import Document
from retrieval_bench_chunks.cutting import Range
from retrieval_bench_chunks.relocation import AMBIGUOUS, LOST, Finder

Piece = tuple[str, int | None]
"""A chunk's text, and where it says that it begins."""

_LIBRARIES: Mapping[str, tuple[str, str]] = {
    "langchain": ("langchain_text_splitters", "langchain-text-splitters"),
    "llamaindex": ("llama_index.core.node_parser", "llama-index-core"),
}
"""What stands before the colon -> the module with its splitters, and the package."""


class ForeignChunker:
    """Code that is not ours, which gives ranges or texts.

    Args:
        split: a text -> what it is cut into: (start, end), a text, or a text and where it begins.
        by: its name, for messages.
    """

    def __init__(self, split: Callable[[str], Iterable[Any]], by: str) -> None:
        self._split = split
        self._by = by

    def texts_of(self, document: Document) -> tuple[list[Range], dict[int, str], int]:
        """Ranges; the text of each chunk that has another one than its range; and the number of
        chunks that stand nowhere.

        Raises:
            ContractError: it failed, or gave something else.
        """
        text, where = document.text, f"document {document.id!r}"
        with folder_kept(), foreign_code(failing(f"chunk by {self._by}", ContractError, where)):
            given = list(self._split(text)) if text.strip() else []
        kept: dict[Range, str] = {}
        finder, before, lost = Finder({document.id: text}), (-1, 0), 0
        for item in given:
            place, own = self._placed(item, text, finder, document.id, before)
            if place is None:
                lost += bool(own.strip())
            elif place not in kept:
                kept[place] = own
                before = place
        ranges = list(kept)
        texts = {at: own for at, (s, e) in enumerate(ranges) if (own := kept[s, e]) != text[s:e]}
        return ranges, texts, lost

    def _placed(
        self, item: Any, text: str, finder: Finder, doc_id: str, before: Range
    ) -> tuple[Range | None, str]:
        """Find where a chunk stands, None where it stands nowhere, and its text; of several places
        the next one that begins and ends behind the chunk before."""
        if isinstance(item, str):
            item = (item, None)
        if not isinstance(item, tuple) or len(item) != 2:
            raise self._refused(item, doc_id)
        first, second = (int(part) if isinstance(part, np.integer) else part for part in item)
        if type(first) is int and type(second) is int:
            if not 0 <= first <= second <= len(text):
                raise self._refused(item, doc_id)
            return ((first, second) if text[first:second].strip() else None), text[first:second]
        if not isinstance(first, str):
            raise self._refused(item, doc_id)
        if not first.strip():
            return None, first
        if type(second) is int and text[second : second + len(first)] == first:
            return (second, second + len(first)), first
        at = text.find(first, max(before[0] + 1, before[1] + 1 - len(first)))
        if at >= 0:
            return (at, at + len(first)), first
        sought = finder.within(doc_id, first)
        if sought.way == LOST:
            return None, first
        places = [p for p in sought.places if p.start > before[0]] or sought.places
        place = places[0] if sought.way == AMBIGUOUS else sought.places[0]
        return (place.start, place.end), first

    def _refused(self, item: Any, doc_id: str) -> ContractError:
        return ContractError(
            f"chunk by {self._by} gave {item!r:.80} for document {doc_id!r}",
            accepted="(start, end) within the text, or the text of a chunk",
            fix="correct the function",
        )


def foreign_chunker(
    by: str,
    size: int | None,
    overlap: int,
    params: Mapping[str, Any],
    *,
    where: str,
    base: Path | None,
) -> tuple[ForeignChunker, dict[str, Any]]:
    """The chunker that a name with a colon stands for, and its version.

    Raises:
        ConfigError: it cannot be built, or takes no size.
        MissingDependencyError: its library is not installed.
        PluginError: there is no such function.
    """
    library, _, name = by.partition(":")
    if library in _LIBRARIES:
        sizes = {} if size is None else {"chunk_size": size}
        sizes |= {"chunk_overlap": overlap} if overlap or sizes else {}
        splitter, package = _splitter(library, name, sizes, params, where)
        split = _of_langchain(splitter) if library == "langchain" else _of_llamaindex(splitter)
        return ForeignChunker(split, by), {"version": package}
    with folder_kept():
        function = plugins.load(by, base=base)
    if size is not None or overlap or not callable(function):
        raise ConfigError(
            f"chunk by {by} with a size" if callable(function) else f"{by}, which is no function",
            where=f"{where}, chunk",
            accepted="{by: module:function, params: {...}}, called as function(text, **params)",
            fix="put what it takes under params",
        )
    made_by = getattr(function, "__version__", None) or _code_of(function)
    return ForeignChunker(lambda text: function(text, **params), by), {"version": made_by}


def _code_of(function: Callable[..., Any]) -> str | None:
    """A hash of the file of a function; None where it has none."""
    try:
        code = Path(getfile(function)).read_bytes()
    except (TypeError, OSError):
        return None
    return hashlib.sha256(code).hexdigest()[:16]


def _splitter(
    library: str, name: str, sizes: Mapping[str, int], params: Mapping[str, Any], where: str
) -> tuple[Any, str]:
    module, package = _LIBRARIES[library]
    try:
        kind = getattr(import_module(module), name)
    except ImportError:
        raise MissingDependencyError(
            f"the package {package} is not installed",
            where=f"{where}, chunk by {library}:{name}",
            accepted=package,
            fix=f"pip install {package}",
        ) from None
    except AttributeError:
        raise ConfigError(
            f"no {name!r} in {module}", where=f"{where}, chunk", fix="correct the name"
        ) from None
    begins = {"add_start_index": True} if library == "langchain" else {}
    with foreign_code(failing(f"building {name}", ConfigError, f"{where}, chunk")):
        return kind(**begins, **sizes, **params), f"{package} {version(package)}"


def _of_langchain(splitter: Any) -> Callable[[str], Iterable[Piece]]:
    def split(text: str) -> Iterable[Piece]:
        for document in splitter.create_documents([text]):
            yield document.page_content, document.metadata.get("start_index")

    return split


def _of_llamaindex(splitter: Any) -> Callable[[str], Iterable[Piece]]:
    def split(text: str) -> Iterable[Piece]:
        from llama_index.core import Document as LlamaDocument

        for node in splitter.get_nodes_from_documents([LlamaDocument(text=text)]):
            yield node.text, node.start_char_idx

    return split
