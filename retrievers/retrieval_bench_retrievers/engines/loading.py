"""``data load`` into an engine by its URI."""

from __future__ import annotations

from typing import ClassVar

from retrieval_bench.core.installed.installation import require
from retrieval_bench.data.stores import Load, Loaded
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.engines.engine_store import EngineStore
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql import params
from retrieval_bench_retrievers.sql.filling import Plan


class LoadedByURI:
    """What a collection is filled through.

    Attributes:
        store: the engine's.
    """

    store: ClassVar[type[EngineStore]]

    @classmethod
    def require_packages(cls, address: Address | None, where: str) -> None:
        """Raise :class:`MissingDependencyError` where one that an address needs is not there."""
        for package in cls.store.packages(address):
            require(package, cls.store.extra, where)

    @classmethod
    def load_into(cls, load: Load) -> Loaded:
        """``data load``: see :meth:`.EngineStore.fill`."""
        address = Address.parse(load.into, cls.store.schemes, "--into")
        cls.require_packages(address, "--into")
        store = cls.store.at(address, params.check_table(load.table))
        encoder = None if load.encoder is None else Encoder(load.encoder)
        language = params.configuration("auto", load.language)
        settings = params.LoadSettings.model_validate({"index": load.index})
        store.plan = Plan(encoder, language, load.fields, settings)
        try:
            store.open()
            if encoder is not None:
                encoder.load()
            filled = store.fill(load.documents, load.progress)
        finally:
            store.close()
            if encoder is not None:
                encoder.close()
        n, sent, model = filled.sent + filled.there, filled.sent, load.encoder
        name, where = f"{store.kind} {store.version}", (address.shown, load.table)
        content = filled.content
        return Loaded(name, *where, n, sent, n - sent, content, language, model, load.index)
