"""What can be named on the command line: retrievers, readers, datasets, metrics, and what fails to
load."""

from __future__ import annotations

from typing import Any

from retrieval_bench.core import plugins
from retrieval_bench.core.config import load_retriever_config, retriever_names
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.data import dataset_names
from retrieval_bench.metrics.conventions import CONVENTIONS
from retrieval_bench.metrics.names import DEFINITIONS
from retrieval_bench.reports.render.table import Table


def entries() -> dict[str, list[dict[str, Any]]]:
    """Everything by kind; an entry with ``error`` exists but cannot be used, and says why."""
    targets = plugins.listing("retriever")
    broken = {entry.name for entry in targets if entry.error}
    return {
        "retrievers": [_retriever(name, broken) for name in retriever_names()],
        "targets": [
            {"name": e.name, "target": e.target, "source": e.source, "error": e.error}
            for e in targets
        ],
        "datasets": [{"name": name} for name in dataset_names()],
        "readers": [
            {"name": e.name, "target": e.target, "source": e.source, "error": e.error}
            for e in plugins.listing("reader")
        ],
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


def catalog_tables(found: dict[str, list[dict[str, Any]]]) -> list[Table]:
    """The same as tables."""
    return [
        Table(
            "Retrievers (--retriever)",
            ("name", "target", "description"),
            [(e["name"], e["target"], e["description"]) for e in found["retrievers"]],
            words=(0, 1, 2),
        ),
        Table(
            "Targets (`target:` in a YAML file)",
            ("name", "class", "from", "problem"),
            [
                (e["name"], e["target"], e["source"], (e["error"] or "").split("\n")[0])
                for e in found["targets"]
            ],
            words=(0, 1, 2, 3),
        ),
        Table(
            "Readers (--reader; also module:function, a model's folder or name, a file of answers)",
            ("name", "class", "from", "problem"),
            [
                (e["name"], e["target"], e["source"], (e["error"] or "").split("\n")[0])
                for e in found["readers"]
            ],
            words=(0, 1, 2, 3),
        ),
        Table("Datasets (--dataset)", ("name",), [(e["name"],) for e in found["datasets"]]),
        Table(
            "Metrics (--metrics)",
            ("name", "what"),
            [(_written(e), e["what"]) for e in found["metrics"]],
            words=(0, 1),
        ),
        Table(
            "Conventions (--convention)",
            ("name", "cut", "where it comes from"),
            [(e["name"], str(e["cut"] or "any"), e["source"]) for e in found["conventions"]],
            words=(0, 1, 2),
        ),
    ]


def _written(metric: dict[str, Any]) -> str:
    """A metric's name with its parameters and cut-off, those that may be left out in brackets."""
    params = f"({', '.join(metric['params'])})" if metric.get("params") else ""
    cut = {"required": "@k", "optional": "[@k]"}.get(metric.get("cut", ""), "")
    return f"{metric['name']}{params and '['}{params}{params and ']'}{cut}"


def _retriever(name: str, broken: set[str]) -> dict[str, Any]:
    try:
        config = load_retriever_config(name)
    except HarnessError as problem:
        return {"name": name, "target": "", "description": f"unusable: {problem.given}"}
    trouble = " (does not load, see Targets)" if config.target in broken else ""
    return {"name": name, "target": config.target, "description": config.description + trouble}
