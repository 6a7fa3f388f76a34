"""What can be named on the command line: retrievers, readers, datasets, metrics, and what fails to
load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NotRequired, TypedDict

from retrieval_bench.capabilities import offered
from retrieval_bench.core import plugins
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.config import load_retriever_config, retriever_names
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.data import dataset_names
from retrieval_bench.metrics.definitions import DEFINITIONS
from retrieval_bench.metrics.names import of_slots
from retrieval_bench.reports.render.cells import COUNT, Cell
from retrieval_bench.reports.render.table import Table, next_step


@dataclass(frozen=True, slots=True)
class RetrieverEntry:
    """A config of a retriever: its name, its class and what it is."""

    name: str
    target: str
    description: str


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A dataset, by its name."""

    name: str


class MetricEntry(TypedDict):
    """A metric.

    Attributes:
        name: without cut-off and parameters.
        cut: whether a cut-off is "required", "optional", "refused" or a "recall"; missing for one
            of a plug-in.
        params: names of its parameters; missing likewise.
        what: it measures, in a sentence, or where its code is; only with ``--full``.
    """

    name: str
    cut: NotRequired[str]
    params: NotRequired[list[str]]
    what: NotRequired[str]


@dataclass(frozen=True, slots=True)
class ConventionEntry:
    """A convention, where it comes from, and the cut-off that it prescribes."""

    name: str
    source: str
    cut: int | None


@dataclass(frozen=True, slots=True)
class Catalog(Documented):
    """Names that can be given.

    Attributes:
        retrievers: configs that come with the package, or lie here.
        targets: classes that configs name; one that does not load says why.
        datasets: that come with the package, or lie here.
        readers: likewise.
        metrics: ours, and those of plug-ins.
        conventions: whose definitions can be asked for.
    """

    KEYS = "retrievers? targets? datasets? readers? metrics? conventions?"

    retrievers: list[RetrieverEntry]
    targets: list[plugins.PluginEntry]
    datasets: list[DatasetEntry]
    readers: list[plugins.PluginEntry]
    metrics: list[MetricEntry]
    conventions: list[ConventionEntry]

    def shortened(self) -> Catalog:
        """Return the same without what each metric measures."""
        metrics = [entry.copy() for entry in self.metrics]
        for entry in metrics:
            entry.pop("what", None)
        return replace(self, metrics=metrics)

    def of(self, kind: str) -> Catalog:
        """Return the entries of one kind alone."""
        return replace(self, **{name: [] for name in KINDS if name != kind})


KINDS = tuple(field.name for field in fields(Catalog))
"""Kinds of what can be named."""


def entries() -> Catalog:
    """Everything by kind; an entry with ``error`` exists but cannot be used, and says why."""
    targets = plugins.listing("retriever")
    broken = {entry.name for entry in targets if entry.error}
    return Catalog(
        retrievers=[_retriever(name, broken) for name in retriever_names()],
        targets=targets,
        datasets=[*map(DatasetEntry, dataset_names())],
        readers=plugins.listing("reader"),
        metrics=_metrics(),
        conventions=[
            ConventionEntry(rules.name, rules.source, rules.cut)
            for rules in (offered("name conventions") or {}).values()
        ],
    )


def _metrics() -> list[MetricEntry]:
    metric_entries: list[MetricEntry] = [
        {
            "name": name,
            "cut": definition.cut,
            "params": list(definition.params),
            "what": " ".join((definition.compute.__doc__ or "").split("\n\n")[0].split()),
        }
        for name, definition in {**DEFINITIONS, **of_slots()}.items()
    ]
    metric_entries += [{"name": e.name, "what": e.target} for e in plugins.listing("metric")]
    return metric_entries


def catalog_brief(listing: Catalog) -> list[Table]:
    """Each kind with its entries by name."""
    rows = []
    for kind in KINDS:
        named = getattr(listing, kind)
        names = [each["name"] if kind == "metrics" else each.name for each in named]
        rows.append((kind, COUNT(len(names)), ", ".join(names)))
    more = next_step(
        "more:  retrieval-bench data list KIND, or a name of a retriever or target; -v"
    )
    return [Table("What can be named", ("kind", "", "names"), rows, words=(0, 2), notes=[more])]


def catalog_tables(listing: Catalog) -> list[Table]:
    """The same as tables, of kinds that have entries."""
    return [table for table in _tables(listing) if table.rows]


def _tables(listing: Catalog) -> list[Table]:
    readers = "--reader; also module:function, a model's folder or name, a file of answers"
    return [
        Table(
            "Retrievers (--retriever)",
            ("name", "target", "description"),
            [(e.name, e.target, e.description) for e in listing.retrievers],
            words=(0, 1, 2),
        ),
        _targets("Targets (`target:` in a YAML file)", listing.targets),
        _targets(f"Readers ({readers})", listing.readers),
        Table("Datasets (--dataset)", ("name",), [(e.name,) for e in listing.datasets]),
        Table(
            "Metrics (--metrics)",
            ("name", "what"),
            [(_written(e), e["what"]) for e in listing.metrics],
            words=(0, 1),
        ),
        Table(
            "Conventions (--convention)",
            ("name", "cut", "where it comes from"),
            [(e.name, Cell(e.cut or "any"), e.source) for e in listing.conventions],
            words=(0, 1, 2),
        ),
    ]


def _targets(title: str, listing: list[plugins.PluginEntry]) -> Table:
    rows = [(e.name, e.target, e.source, (e.error or "").split("\n")[0]) for e in listing]
    return Table(title, ("name", "class", "from", "problem"), rows, words=(0, 1, 2, 3))


def _written(metric: MetricEntry) -> str:
    """A metric's name with its parameters and cut-off, those that may be left out in brackets."""
    params = f"({', '.join(metric['params'])})" if metric.get("params") else ""
    cut = {"required": "@k", "optional": "[@k]"}.get(metric.get("cut", ""), "")
    return f"{metric['name']}{params and '['}{params}{params and ']'}{cut}"


def _retriever(name: str, broken: set[str]) -> RetrieverEntry:
    try:
        config = load_retriever_config(name)
    except HarnessError as problem:
        return RetrieverEntry(name, "", f"unusable: {problem.given}")
    trouble = " (does not load, see Targets)" if config.target in broken else ""
    return RetrieverEntry(name, config.target, config.description + trouble)


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


@dataclass(frozen=True, slots=True)
class NamedFile(Documented):
    """A file that people write.

    Attributes:
        name: of its schema.
        what: it is.
    """

    name: str
    what: str


def schema_tables(documents: Sequence[NamedDocument], files: Sequence[NamedFile]) -> list[Table]:
    """Show the documents and files that can be named, and the command that prints each."""
    return [
        Table(
            "JSON documents, printed with --format json",
            ("name", "printed by", "schema_version"),
            [(each.name, each.command, str(each.version)) for each in documents],
            words=(0, 1),
        ),
        Table(
            "Files that you write",
            ("name", "YAML of"),
            [(file.name, file.what) for file in files],
            words=(0, 1),
            notes=["`retrieval-bench data schema NAME` prints the schema of one, --full whole."],
        ),
    ]
