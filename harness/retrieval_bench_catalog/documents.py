"""The JSON documents: what each command prints with ``--format json``.

:data:`DOCUMENTS` names them, and the type of each. What :func:`schema_of` gives is made from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrieval_bench.capabilities import Document, capabilities, named
from retrieval_bench.cli.commands import all_commands
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import check_known
from retrieval_bench_catalog.schemas import schema
from retrieval_bench_catalog.tables.catalog import NamedDocument, NamedFile


@dataclass(frozen=True, slots=True)
class Listing(Documented):
    """All documents, and files that people write.

    Attributes:
        documents: each with its name, and what prints it.
        files: that you write in YAML.
    """

    documents: Sequence[NamedDocument]
    files: Sequence[NamedFile]


def _kernel(command: str, types: str, versioned: str = "") -> Document:
    """A document of the kernel, whose modules are named from there."""
    full = [f"retrieval_bench.{name}" for name in types.split()]
    return Document(command, " ".join(full), versioned and f"retrieval_bench.{versioned}")


_ALL: Mapping[str, Document] = {
    "bench": _kernel("bench", "reports.finish:Finished", "runs.records:SCHEMA_VERSION"),
    "plan": _kernel(
        "bench --dry-run", "experiment.planned_run:PlannedRun experiment.planned_run:Plans"
    ),
    "compare": _kernel("compare", "comparison.compared:Compared"),
    "error": _kernel("COMMAND", "cli.problem:Error"),
    **{name: entry for added in capabilities() for name, entry in added.documents.items()},
}


def _place(document: Document) -> int:
    """The place of its command in the help; last where it is no single one."""
    words, commands = document.command.split(), list(all_commands())
    known = [" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in commands]
    return commands.index(known[0]) if known else len(commands)


FILES: Mapping[str, tuple[str, str]] = {
    **{name: entry for added in capabilities() for name, entry in added.files.items()},
}
"""Every file that people write by its name: where its schema is made, and what it is."""

DOCUMENTS: Mapping[str, Document] = dict(sorted(_ALL.items(), key=lambda item: _place(item[1])))
"""Every JSON document by its name, in the order of the commands that print them."""


def listing() -> Listing:
    """All documents, by name."""
    named_documents = [
        NamedDocument(name, entry.command, entry.version) for name, entry in DOCUMENTS.items()
    ]
    return Listing(named_documents, [NamedFile(name, what) for name, (_, what) in FILES.items()])


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of a document, or of a file that people write.

    Raises:
        ConfigError: there is nothing of this name.
    """
    fix = "name one; without a name all are listed"
    where = "retrieval-bench data schema"
    check_known(name, {**DOCUMENTS, **FILES}, f"JSON document {name!r}", where=where, fix=fix)
    if name in FILES:
        made: dict[str, Any] = named(FILES[name][0])()
        return made
    entry = DOCUMENTS[name]
    return schema(entry.kinds, f"retrieval-bench {entry.command} --format json", entry.version)
