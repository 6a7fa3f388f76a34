"""The JSON documents as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.reports.render.table import Table


@dataclass(frozen=True, slots=True)
class NamedDocument(Documented):
    """A document that ``--format json`` prints.

    Attributes:
        name: of its schema.
        command: that prints it.
        version: its ``schema_version``.
    """

    name: str
    command: str
    version: int


def schema_tables(documents: Sequence[NamedDocument]) -> list[Table]:
    """Show the documents that can be named, and the command that prints each."""
    return [
        Table(
            "JSON documents",
            ("name", "printed by", "schema_version"),
            [
                (document.name, f"{document.command} --format json", str(document.version))
                for document in documents
            ],
            words=(0, 1),
            notes=["`retrieval-bench data schema NAME` prints the schema of one."],
        )
    ]
