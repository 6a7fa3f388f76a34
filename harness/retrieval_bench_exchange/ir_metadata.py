"""How a run was made, as the header that ir_metadata puts into a TREC run.

The header is YAML in comment lines, in six parts; what a run does not know (who made it, and why)
comes from its author. Tools that do not take comments in runs, trec_eval before 10, need the file
without it.

Source: Breuer, Keller & Schaer, SIGIR 2022, ir_metadata: An Extensible Metadata Schema for IR
Experiments; names as its site and repro_eval 0.5 have them.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from retrieval_bench.core.errors import ConfigError, RecordError, check_known
from retrieval_bench.data.formats.trec_runs import write_run
from retrieval_bench.runs.run import Run

START, END = "# ir_metadata.start", "# ir_metadata.end"
PARTS = ("tag", "actor", "platform", "research goal", "implementation", "data", "method")


def ir_metadata(run: Run, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The parts of the schema that ``run`` knows, with what its author gives beside or in place of
    them, level by level.

    Raises:
        ConfigError: ``given`` has a part that the schema does not have.
    """
    given = given or {}
    for name in given:
        fix = "name one of the parts of ir_metadata"
        check_known(name, PARTS, f"part {name!r} of the metadata", fix=fix)
    facts = _known(run)
    parts = {name: _merged(facts.get(name), given.get(name)) for name in PARTS}
    return {name: part for name, part in parts.items() if part not in (None, {}, [])}


def header(metadata: Mapping[str, Any]) -> str:
    """``metadata`` as the comment lines before the first line of a run."""
    text = yaml.safe_dump(dict(metadata), sort_keys=False, allow_unicode=True, width=4096)
    return "\n".join([START, *(f"# {line}".rstrip() for line in text.splitlines()), END, ""])


def write_annotated(path: Path, run: Run, given: Mapping[str, Any] | None = None) -> None:
    """Write the rankings of ``run`` as a new TREC file that begins with its header.

    Raises:
        ConfigError: the file is there already, or ``given`` has a part that the schema has not.
        DataError: an id that cannot stand in a TREC run.
        RecordError: the file cannot be written.
    """
    rankings = run.rankings
    rows = {query_id: rankings.row(at) for at, query_id in enumerate(rankings.query_ids)}
    text = io.StringIO()
    text.write(header(ir_metadata(run, given)))
    write_run(text, rows, run.name)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text.getvalue())
    except FileExistsError:
        raise ConfigError(
            "a file that exists already", where=str(path), accepted="a new file", fix="rename it"
        ) from None
    except OSError as problem:
        raise RecordError(f"cannot write: {problem.strerror}", where=str(path)) from None


def _known(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    surroundings = manifest.get("environment", {})
    machine, packages = surroundings.get("machine", {}), surroundings.get("packages", {})
    memory, commit = machine.get("memory_gib"), (surroundings.get("git") or {}).get("commit")
    python = str(machine.get("python", "")).partition(" ")[2]
    dataset = run.summary.dataset
    source = str(manifest.get("dataset", {}).get("source") or "")
    in_catalogue = source.startswith("ir_datasets:")
    known: dict[str, Any] = _filled(
        {
            "tag": run.name,
            "platform": {
                "hardware": {
                    "cpu": {
                        "model": machine.get("processor"),
                        "number of cores": machine.get("cores"),
                    },
                    "ram": f"{memory} GB" if memory else None,
                },
                "operating system": {
                    "kernel": machine.get("system"),
                    "distribution": machine.get("distribution"),
                },
                "software": {
                    "libraries": {
                        "python": [f"python=={python}"] * bool(python)
                        + [f"{name}=={version}" for name, version in packages.items()]
                    }
                },
            },
            "implementation": {"source": {"lang": ["python"], "commit": commit}},
            "data": {
                "test collection": {
                    "name": dataset.name,
                    "split": dataset.split,
                    "fingerprint": dataset.fingerprint,
                    "ir_datasets": source.partition(":")[2] if in_catalogue else None,
                }
            },
            "method": {
                "automatic": True,
                "score ties": "id ascending; scores in the file fall strictly",
                "retrieval": list(_stages(run)),
            },
        }
    )
    return known


def _stages(run: Run) -> Iterator[dict[str, Any]]:
    """The legs of a hybrid, and what combines them; else the retriever alone."""
    own = run.manifest.get("retriever", {})
    facts = own.get("facts") or {}
    legs: Mapping[str, Any] = facts.get("legs") or {}
    for name, leg in legs.items():
        yield {"name": name, "method": leg.get("target", name), **_plain(leg.get("params") or {})}
    stage = {"name": run.name, "method": own.get("target", run.name)}
    if legs:
        fusion = facts.get("fusion") or {}
        yield {**stage, "fusion": fusion.get("text"), "interpolates": list(legs)}
    else:
        yield {**stage, **_plain(own.get("params") or {})}


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in ("name", "method")}


def _filled(value: Any) -> Any:
    """``value`` without what is not known, so that no empty entry looks like a fact."""
    if isinstance(value, dict):
        filled = {name: _filled(part) for name, part in value.items()}
        return {name: part for name, part in filled.items() if part not in (None, {}, [])}
    return value


def _merged(known: Any, given: Any) -> Any:
    if given is None:
        return known
    if isinstance(known, dict) and isinstance(given, Mapping):
        return {name: _merged(known.get(name), given.get(name)) for name in {**known, **given}}
    return given
