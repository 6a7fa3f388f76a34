"""LlamaIndex: any retriever (``BaseRetriever``) can be measured, sync or async.

The user names a factory; what happens to it is shared with other libraries (:mod:`.factories`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from retrieval_bench_retrievers.libraries.factories import FactoryRetriever, Options
from retrieval_bench_retrievers.libraries.library import needed

if TYPE_CHECKING:
    from retrieval_bench_retrievers.libraries.library import Library


class LlamaIndexRetriever(FactoryRetriever):
    """Measures a LlamaIndex retriever, sync or async, that a factory builds.

    The factory is called as ``factory(documents, k, **params)`` with a ``TextNode`` for each
    document in ascending id order (``id_``: the document's id; text: title and text; metadata: the
    document's own, ``doc_id`` and ``title``, none of which is embedded), or with an external index
    as ``factory(k, **params)``. It may be async. When it is called, and what becomes of chunks:
    :class:`.FactoryRetriever`. A plain ``VectorIndexRetriever`` is not built again, only asked for
    more.

    Filters belong to a LlamaIndex retriever, not to its call. With ``filter`` the factory therefore
    returns a function that makes the retriever over the index from the translated filters, or from
    None.

    Args:
        factory: ``module:function``, ``file.py:function`` or a function; also a retriever itself,
            which is external and decides on its own how many hits it gives.
        id_key: the metadata key that holds the document id; by default the node's ``ref_doc_id``,
            and without one its ``node_id``.
        scores: False leaves the nodes' scores out. A list has scores where every node has one and
            they never rise.
        filter: ``module:function`` that makes of a query's :class:`.Filter` what the engine wants,
            such as ``MetadataFilters``.
        external, use_async, min_k, deepen, exact: as of :class:`.Options`.
        **params: handed on to the factory.

    Raises:
        PluginError: ``factory`` does not resolve.
        ConfigError: the factory does not take these parameters.
    """

    library = "llamaindex"
    distribution = "llama-index-core"
    returns = "a LlamaIndex retriever (BaseRetriever)"
    hand_on = "as in index.as_retriever(similarity_top_k=k), whose default is 2"
    methods = ("retrieve", "aretrieve")

    def __init__(
        self,
        factory: Any,
        *,
        id_key: str | None = None,
        scores: bool = True,
        external: bool | Mapping[str, Any] = False,
        use_async: bool | None = None,
        min_k: int = 1,
        deepen: bool = True,
        exact: bool = True,
        filter: Any = None,
        **params: Any,
    ) -> None:
        options = Options(
            id_key=id_key,
            external=external,
            use_async=use_async,
            min_k=min_k,
            deepen=deepen,
            exact=exact,
            filter=filter,
            has_scores=scores,
        )
        super().__init__(factory, options, params)

    def _bridge(self) -> Library:
        with needed("LlamaIndex", "llama_index", "llama-index-core", self._name):
            from retrieval_bench_retrievers.libraries.llamaindex_bridge import LlamaIndex

        filtered = self._filter is not None
        return LlamaIndex(self._name, self._options.id_key, self._options.has_scores, filtered)
