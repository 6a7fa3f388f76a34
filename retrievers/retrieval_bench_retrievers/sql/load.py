"""``data load`` into PostgreSQL: the documents of a dataset in a table that ``sql`` can search."""

from __future__ import annotations

from retrieval_bench.core.installed.installation import require
from retrieval_bench.data.stores import Load, Loaded
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.sql.connection import Address, connect, server_facts
from retrieval_bench_retrievers.sql.params import LoadSettings, check_table, configuration
from retrieval_bench_retrievers.sql.table import Table


def load_into(load: Load) -> Loaded:
    """Fill the table of ``load``, or go on where an interrupted load stopped.

    Raises:
        ConfigError: no server, a table that holds something else, no pgvector.
        ContractError: a document that PostgreSQL cannot hold.
        MissingDependencyError: without the extra ``sql``.
    """
    for package in ("psycopg", "psycopg-pool", "pgvector"):
        require(package, "sql", "--into")
    address = Address.parse(load.into)
    name = check_table(load.table)
    settings = LoadSettings.model_validate({"index": load.index})
    language = configuration("auto", load.language)
    encoder = None if load.encoder is None else Encoder(load.encoder)
    try:
        with connect(address) as connection:
            if encoder is not None:
                encoder.load()
            table = Table(connection, name, settings, language, encoder)
            filled = table.fill(load.documents, len(load.documents), load.progress)
            server = str(server_facts(connection)["server"])
    finally:
        if encoder is not None:
            encoder.close()
    return Loaded(
        store=server,
        into=address.shown,
        table=load.table,
        n_documents=filled.sent + filled.there,
        n_loaded=filled.sent,
        n_there=filled.there,
        content=filled.content,
        language=language,
        encoder=load.encoder,
        index=load.index,
    )
