"""Haystack: any component or pipeline that takes a query and gives documents can be measured.

The user names a factory; what happens to it is shared with other libraries (:mod:`.factories`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from retrieval_bench_retrievers.libraries.factories import FactoryRetriever, Options
from retrieval_bench_retrievers.libraries.library import needed

if TYPE_CHECKING:
    from retrieval_bench_retrievers.libraries.library import Library


class HaystackRetriever(FactoryRetriever):
    """Measures a Haystack component or pipeline, sync or async, that a factory builds.

    The factory is called as ``factory(documents, k, **params)`` with a Haystack ``Document`` for
    each document in ascending id order (``id``: the document's; content: title and text; meta: the
    document's own, ``doc_id`` and ``title``), or with an external index as ``factory(k,
    **params)``. It may be async. When it is called, and what becomes of chunks:
    :class:`.FactoryRetriever`.

    A component is asked as ``run(query=..., top_k=...)``; one whose ``run`` has no ``top_k`` gives
    what it was built for. In a pipeline the text goes to every open input named ``query`` or
    ``text``, and each part keeps the ``top_k`` that the factory gave it. The documents are those of
    the one output of that name.

    Args:
        factory: ``module:function``, ``file.py:function`` or a function; also a component or
            pipeline itself, which is external.
        id_key: the key of ``meta`` that holds the document id; by default ``Document.id`` is it.
        scores: False leaves the documents' scores out. A list has scores where every document has
            one and they never rise.
        output: of a pipeline, the name of the component whose documents are the answer.
        filter: ``module:function`` that makes of a query's :class:`.Filter` a filter of Haystack's;
            ``run`` gets it as ``filters``.
        external, use_async, min_k, deepen, exact: as of :class:`.Options`.
        **params: handed on to the factory.

    Raises:
        PluginError: ``factory`` does not resolve.
        ConfigError: the factory does not take these parameters.
    """

    library = "haystack"
    distribution = "haystack-ai"
    returns = "a Haystack component whose run() takes a query and gives documents, or a Pipeline"
    hand_on = "as in top_k=k"
    methods = ("run", "run_async")

    def __init__(
        self,
        factory: Any,
        *,
        id_key: str | None = None,
        scores: bool = True,
        output: str | None = None,
        external: bool | Mapping[str, Any] = False,
        use_async: bool | None = None,
        min_k: int = 1,
        deepen: bool = True,
        exact: bool = True,
        filter: Any = None,
        **params: Any,
    ) -> None:
        self._output = output
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
        with needed("Haystack", "haystack", "haystack-ai", self._name):
            from retrieval_bench_retrievers.libraries.haystack_bridge import Haystack

        options = self._options
        return Haystack(self._name, options.id_key, options.has_scores, self._output)
