"""The recommended setting as a retriever config that every command takes."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from retrieval_bench.core import secrets
from retrieval_bench.core.config import RetrieverConfig
from retrieval_bench.core.errors import ConfigError, HarnessError, RecordError
from retrieval_bench.tuning.result import Tuning


def check_out(out: Path | None, config: RetrieverConfig) -> None:
    """Whether :func:`write_config` can write ``out``, and the retriever be built from there.

    Raises:
        ConfigError: no YAML file, it exists already, there is no such folder, or what the config
            names by a relative path is not found from there.
    """
    if out is None:
        return
    if out.suffix not in (".yaml", ".yml"):
        raise _bad(out, "a file that ends in .yaml", "give it such a name")
    if out.exists():
        raise _bad(out, "a file that is not there yet", "give another name, or remove it")
    if not os.access(out.absolute().parent, os.W_OK):
        raise _bad(out, "a folder that may be written to", "make the folder first")
    if config.source is not None and out.absolute().parent != config.source.parent:
        moved = config.model_copy(update={"source": out.absolute()})
        try:
            moved.build().close()
        except HarnessError as problem:
            raise _bad(
                out,
                f"a folder from where the config's paths lead to the same ({problem.given})",
                f"write it to {config.source.parent}",
            ) from None


def write_config(out: Path, found: Tuning) -> None:
    """Write the recommended config; its first lines say what to expect of it.

    Raises:
        RecordError: the file cannot be written, or it is there already.
    """
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(config_text(found))
    except OSError as problem:
        raise RecordError(
            f"cannot write {out}: {problem.strerror}",
            where=str(out.absolute().parent),
            fix="give another --out; the setting is in the table",
        ) from None


def config_text(found: Tuning) -> str:
    """The file as text."""
    chosen, own = found.selection, found.recommended
    how = (
        f"chosen on split {found.plan.dev_split}, tried on split {found.plan.split}"
        if found.plan.dev_split
        else f"cross-validated on split {found.plan.split}, {found.plan.folds} folds, "
        f"{found.plan.repeats} times, seed {found.plan.seed}"
    )
    choice = (
        f"{found.winner} - best of {len(found.grid.settings)} settings of {own.name} on "
        f"{found.dataset['name']}, {how}"
    )
    worth = (
        f"{found.metric}: {found.held_out:.4f} held out ({found.default:.4f} by the default: "
        f"{found.delta.verdict.value}); not {chosen.tuning:.4f}, which is on the tuning queries"
    )
    content = {
        "name": f"{own.name}-tuned",
        "target": own.target,
        "description": own.description,
        "params": own.params,
    }
    body = yaml.dump(
        secrets.redact({key: value for key, value in content.items() if value}),
        Dumper=_ListsInLine,
        allow_unicode=True,
        sort_keys=False,
        width=100,
    )
    comments = "".join(f"# {' '.join(line.split())}\n" for line in (choice, worth))
    return str(secrets.redact(comments)) + body


class _ListsInLine(yaml.SafeDumper):
    """Mappings a key a line, lists as ``[a, b]``: as these configs are written by hand."""


_ListsInLine.add_representer(
    list,
    lambda dumper, items: dumper.represent_sequence(
        "tag:yaml.org,2002:seq", items, flow_style=True
    ),
)


def _bad(out: Path, accepted: str, fix: str) -> ConfigError:
    return ConfigError(f"--out {out}", accepted=accepted, fix=fix)
