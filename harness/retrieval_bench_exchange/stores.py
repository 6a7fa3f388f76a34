"""Stores that ``data load`` fills: which adapter answers to which kind of address.

A new store is one line in :data:`STORES`: the scheme of its addresses, and a function that takes a
:class:`.Load` and gives a :class:`.Loaded`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retrieval_bench.core import plugins, secrets
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, DataError, near_names
from retrieval_bench.core.filters import fields_of
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.stores import Load, Loaded

STORES: dict[str, str] = {
    "postgresql": "retrieval_bench_retrievers.engines.postgres:Postgres.load_into",
    "postgres": "retrieval_bench_retrievers.engines.postgres:Postgres.load_into",
    "lancedb": "retrieval_bench_retrievers.engines.lance:LanceDB.load_into",
    "milvus": "retrieval_bench_retrievers.engines.milvus:Milvus.load_into",
    "milvus+https": "retrieval_bench_retrievers.engines.milvus:Milvus.load_into",
    "qdrant": "retrieval_bench_retrievers.engines.qdrant:Qdrant.load_into",
    "qdrant+https": "retrieval_bench_retrievers.engines.qdrant:Qdrant.load_into",
    "seekdb": "retrieval_bench_retrievers.engines.seekdb:Seekdb.load_into",
    "mysql": "retrieval_bench_retrievers.engines.seekdb:Seekdb.load_into",
}
"""Scheme of an address -> ``module:function``."""


@dataclass(frozen=True, slots=True)
class LoadedDataset(Documented):
    """A dataset in a store.

    Attributes:
        dataset: its name.
        loaded: what the store holds now.
    """

    KEYS = "dataset *loaded"

    dataset: str
    loaded: Loaded


def load_documents(
    dataset: Dataset,
    into: str,
    *,
    table: str = "documents",
    encoder: str | None = None,
    index: str = "exact",
    progress: Callable[[int, int], None] | None = None,
) -> Loaded:
    """Put the documents of ``dataset`` where ``into`` says; a load that was interrupted goes on.

    Args:
        into: address, by whose scheme the store is known; ``${NAME}`` is filled in.

    Raises:
        ConfigError: no such store, or what the store says of address and table.
        DataError: the dataset has no documents.
    """
    address = str(secrets.expand(into, "--into"))
    scheme, colon, _ = address.partition("://")
    if not colon or scheme not in STORES:
        known = [f"{name}://" for name in sorted(STORES)]
        # Not repeated: what is no address may be a password.
        raise ConfigError(
            f"--into: no store has addresses that begin with {scheme + '://' if colon else 'this'}",
            kind="unknown-name",
            accepted=near_names(f"{scheme}://", known),
            fix="write for example --into postgresql://USER@HOST/DATABASE",
        )
    if dataset.documents is None:
        raise DataError(
            f"dataset {dataset.name} has no documents to load", accepted="a dataset with a corpus"
        )
    fields = fields_of(query.filter for query in dataset.queries)
    load = Load(
        dataset.documents, dataset.language, address, table, encoder, index, progress, fields
    )
    loaded: Loaded = plugins.load(STORES[scheme])(load)
    return loaded
