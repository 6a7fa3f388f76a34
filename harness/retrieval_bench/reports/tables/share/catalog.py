"""What can be named on the command line: retrievers, readers, datasets, metrics, and what fails to
load."""

from __future__ import annotations

from typing import Any

from retrieval_bench.core import plugins
from retrieval_bench.core.config import load_retriever_config, retriever_names
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.data import dataset_names
from retrieval_bench.metrics.conventions import CONVENTIONS
from retrieval_bench.metrics.definitions import DEFINITIONS
from retrieval_bench.reports.render.cells import Cell
from retrieval_bench.reports.render.table import Table


def entries() -> dict[str, list[dict[str, Any]]]:
    """Everything by kind; an entry with ``error`` exists but cannot be used, and says why."""
    targets = _plugins("retriever")
    broken = {entry["name"] for entry in targets if entry["error"]}
    return {
        "retrievers": [_retriever(name, broken) for name in retriever_names()],
        "targets": targets,
        "datasets": [{"name": name} for name in dataset_names()],
        "readers": _plugins("reader"),
        "metrics": [
            {
                "name": name,
                "cut": definition.cut,
                "params": list(definition.params),
                "what": " ".join((definition.compute.__doc__ or "").split("\n\n")[0].split()),
            }
            for name, definition in DEFINITIONS.items()
        ]
        + [{"name": e.name, "what": e.target} for e in plugins.listing("metric")],
        "conventions": [
            {"name": c.name, "source": c.source, "cut": c.cut} for c in CONVENTIONS.values()
        ],
    }


def catalog_tables(listing: dict[str, list[dict[str, Any]]]) -> list[Table]:
    """The same as tables."""
    readers = "--reader; also module:function, a model's folder or name, a file of answers"
    return [
        Table(
            "Retrievers (--retriever)",
            ("name", "target", "description"),
            [(e["name"], e["target"], e["description"]) for e in listing["retrievers"]],
            words=(0, 1, 2),
        ),
        _targets("Targets (`target:` in a YAML file)", listing["targets"]),
        _targets(f"Readers ({readers})", listing["readers"]),
        Table("Datasets (--dataset)", ("name",), [(e["name"],) for e in listing["datasets"]]),
        Table(
            "Metrics (--metrics)",
            ("name", "what"),
            [(_written(e), e["what"]) for e in listing["metrics"]],
            words=(0, 1),
        ),
        Table(
            "Conventions (--convention)",
            ("name", "cut", "where it comes from"),
            [(e["name"], Cell(e["cut"] or "any"), e["source"]) for e in listing["conventions"]],
            words=(0, 1, 2),
        ),
    ]


def _targets(title: str, listing: list[dict[str, Any]]) -> Table:
    rows = [
        (e["name"], e["target"], e["source"], (e["error"] or "").split("\n")[0]) for e in listing
    ]
    return Table(title, ("name", "class", "from", "problem"), rows, words=(0, 1, 2, 3))


def _written(metric: dict[str, Any]) -> str:
    """A metric's name with its parameters and cut-off, those that may be left out in brackets."""
    params = f"({', '.join(metric['params'])})" if metric.get("params") else ""
    cut = {"required": "@k", "optional": "[@k]"}.get(metric.get("cut", ""), "")
    return f"{metric['name']}{params and '['}{params}{params and ']'}{cut}"


def _plugins(kind: plugins.Kind) -> list[dict[str, Any]]:
    return [
        {"name": e.name, "target": e.target, "source": e.source, "error": e.error}
        for e in plugins.listing(kind)
    ]


def _retriever(name: str, broken: set[str]) -> dict[str, Any]:
    try:
        config = load_retriever_config(name)
    except HarnessError as problem:
        return {"name": name, "target": "", "description": f"unusable: {problem.given}"}
    trouble = " (does not load, see Targets)" if config.target in broken else ""
    return {"name": name, "target": config.target, "description": config.description + trouble}
