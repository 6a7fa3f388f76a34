"""LangChain in both directions: any retriever or Runnable that returns documents can be measured,
and any retriever of the harness can be used in a chain.

The user names a factory; what happens to it is shared with other libraries (:mod:`.factories`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from retrieval_bench.core.retriever import Retriever, require_k
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.libraries.factories import FactoryRetriever, Options

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever

    from retrieval_bench_retrievers.libraries.library import Library


class LangChainRetriever(FactoryRetriever):
    """Measures a LangChain retriever, sync or async, that a factory builds.

    The factory is called as ``factory(documents, k, **params)`` with LangChain documents in
    ascending id order (page content: title and text; metadata: the document's own, ``doc_id`` and
    ``title``), or with an external index as ``factory(k, **params)``. It may be async. When it is
    called, and what becomes of chunks: :class:`.FactoryRetriever`. A plain similarity search over a
    vector store is not built again, only asked for more.

    Args:
        factory: ``module:function``, ``file.py:function`` or a function; also a LangChain retriever
            or Runnable itself, which is external and decides on its own how many hits it gives.
        id_key: the metadata key that holds the document id; by default ``Document.id`` is it.
        score_key: a metadata key with scores that never rise; by default there are no scores.
        pass_query: the Runnable gets the whole :class:`.Query`, not its text.
        filter: ``module:function`` that makes of a query's :class:`.Filter` what the engine wants;
            ``invoke`` gets it as the keyword ``filter``, or as that of the vector store (``expr``).
        external, use_async, min_k, deepen, exact: as of :class:`.Options`.
        **params: handed on to the factory.

    Raises:
        PluginError: ``factory`` does not resolve.
        ConfigError: the factory does not take these parameters.
    """

    library = "langchain"
    distribution = "langchain-core"
    returns = (
        "a LangChain retriever (BaseRetriever), or any Runnable that takes the query's text and "
        "returns a list of documents"
    )
    hand_on = "as in as_retriever(search_kwargs={'k': k}), whose default is 4"
    methods = ("invoke",)

    def __init__(
        self,
        factory: Any,
        *,
        id_key: str | None = None,
        score_key: str | None = None,
        external: bool | Mapping[str, Any] = False,
        use_async: bool | None = None,
        pass_query: bool = False,
        min_k: int = 1,
        deepen: bool = True,
        exact: bool = True,
        filter: Any = None,
        **params: Any,
    ) -> None:
        self._score_key = score_key
        options = Options(
            id_key=id_key,
            external=external,
            use_async=use_async,
            min_k=min_k,
            deepen=deepen,
            exact=exact,
            filter=filter,
            has_scores=score_key is not None,
            pass_query=pass_query,
        )
        super().__init__(factory, options, params)

    def _bridge(self) -> Library:
        from retrieval_bench_retrievers.libraries.langchain_bridge import LangChain

        return LangChain(self._name, self._options.id_key, self._score_key)


def as_langchain(
    retriever: Retriever, k: int, documents: Iterable[Document] | None = None
) -> BaseRetriever:
    """A LangChain retriever over ``retriever``, for use in a chain.

    Args:
        retriever: ready to search: indexed, or external.
        k: hits per query.
        documents: where page content and metadata come from. Without them the page content is the
            id.

    Returns:
        A ``BaseRetriever`` whose documents carry the id, title and text as page content, and in the
        metadata the document's own, ``doc_id``, ``title`` and, where there are scores, ``score``.
        In an ``EnsembleRetriever`` use ``id_key="doc_id"``: without it, documents of equal text
        count as one.
    """
    require_k(k)
    from retrieval_bench_retrievers.libraries.langchain_bridge import HarnessRetriever

    by_id = {} if documents is None else {document.id: document for document in documents}
    return HarnessRetriever(retriever=retriever, k=k, documents=by_id)
