"""What can be named on the command line: retrievers, datasets, metrics, and what fails to load."""

from __future__ import annotations

from typing import Any

from harness import plugins
from harness.config import load_retriever_config, retriever_names
from harness.data import dataset_names
from harness.errors import HarnessError
from harness.metrics.names import DEFINITIONS
from harness.report.tables import Table


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
    }


def catalog_tables(found: dict[str, list[dict[str, Any]]]) -> list[Table]:
    """The same as tables."""
    return [
        Table(
            "Retrievers (--retriever)",
            ("name", "target", "description"),
            [(e["name"], e["target"], e["description"]) for e in found["retrievers"]],
        ),
        Table(
            "Targets (`target:` in a YAML file)",
            ("name", "class", "from", "problem"),
            [
                (e["name"], e["target"], e["source"], (e["error"] or "").split("\n")[0])
                for e in found["targets"]
            ],
        ),
        Table("Datasets (--dataset)", ("name",), [(e["name"],) for e in found["datasets"]]),
        Table(
            "Metrics (--metrics)",
            ("name", "what"),
            [(e["name"], e["what"]) for e in found["metrics"]],
        ),
    ]


def _retriever(name: str, broken: set[str]) -> dict[str, Any]:
    try:
        config = load_retriever_config(name)
    except HarnessError as problem:
        return {"name": name, "target": "", "description": f"unusable: {problem.given}"}
    trouble = " (does not load, see Targets)" if config.target in broken else ""
    return {"name": name, "target": config.target, "description": config.description + trouble}
