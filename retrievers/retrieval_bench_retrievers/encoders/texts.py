"""The texts of a corpus as encoders take them, in the order that ties are told apart by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.metadata import MetadataTable
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.encoders.encoder import readable


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
