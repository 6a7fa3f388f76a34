"""Datasets on the way out: the files of a format that another tool reads, and that are read here.

The formats with a ``write`` of their own in :func:`.formats` are the targets. What a format
cannot hold without a change is refused, all of it at once; what it has no place for is told.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.config import for_editors
from retrieval_bench.core.errors import ConfigError, check_known, near_names
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.core.types import KEEP, Dataset
from retrieval_bench.data.catalog import load_dataset
from retrieval_bench.data.faults import reporting
from retrieval_bench.data.formats import formats
from retrieval_bench.data.settings import CONFIG_NAME
from retrieval_bench.data.source import DataFormat, Outgoing
from retrieval_bench_exchange.kernel_formats import WRITERS


@cache
def targets() -> Mapping[str, DataFormat]:
    """Formats that can be written, by name."""
    ways = {name: WRITERS.get(name, format_.write) for name, format_ in formats().items()}
    return {name: replace(formats()[name], write=way) for name, way in ways.items() if way}


@dataclass(frozen=True, slots=True)
class Exported(Documented):
    """Files that were written.

    Attributes:
        dataset: its name.
        split: which judgements were written.
        format: the target.
        folder: where the files are.
        files: their paths in ``folder``, ``dataset.yaml`` last.
        n_queries: those with a judgement in this split.
        n_judgements: in this split.
        lost: what the format has no place for, a phrase each.
    """

    dataset: str
    split: str
    format: str
    folder: str
    files: tuple[str, ...]
    n_queries: int
    n_judgements: int
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExportedRun(Documented):
    """A run that was written in a format of other programs.

    Attributes:
        run: its id.
        format: as what.
        file: where it was written.
    """

    run: str
    format: str
    file: str


def export_dataset(
    dataset: str | Path | Dataset,
    to: str,
    folder: str | Path,
    *,
    split: str = "test",
    settings: Mapping[str, Any] | None = None,
    described: Mapping[str, Any] | None = None,
) -> Exported:
    """Write a dataset in the format of another tool, with a ``dataset.yaml`` that reads it back.

    Args:
        dataset: name, folder or the dataset itself, which has its split already.
        to: one of :func:`targets`.
        folder: made here; it may be there if it is empty.
        split: of a dataset that is given by name or folder.
        settings: of the format, such as ``{"index": "articles"}`` for ``rank_eval``.
        described: further keys of the ``dataset.yaml``.

    Raises:
        ConfigError: unknown format or setting; a folder that holds something.
        DataError: what the format cannot hold, all at once; nothing is written then.
    """
    format_ = targets().get(to)
    if format_ is None or format_.write is None:
        read = formats().get(to)
        reason = f" is only read: {read.read_only}" if read and read.read_only else ""
        raise ConfigError(
            f"format {to!r}{reason}",
            where="--to",
            kind="unknown-name",
            accepted=near_names(to, targets()),
            fix="choose one that can be written",
        )
    for key in settings or ():
        fix = "correct the name" if format_.settings else "leave --set out"
        what = f"no setting {key!r} of format {to}"
        check_known(key, format_.settings, what, where="--set", fix=fix)
    target = user_path(folder)
    _check_free(target)
    data = dataset if isinstance(dataset, Dataset) else load_dataset(dataset, split)
    with reporting(f"dataset {data.name!r}, split {data.split!r}, as {to}", target) as faults:
        if not data.qrels and not format_.unjudged:
            faults.of("judgements").error(None, "no judgements in this split", "at least one")
        made = format_.write(data, {**format_.settings, **(settings or {})}, faults)
        if data.cluster_key and any(gone.startswith("metadata of queries") for gone in made.lost):
            made = replace(made, lost=(*made.lost, f"the clusters of queries ({data.cluster_key})"))
            data = replace(data, cluster_key=None)
    _save(target, made, {**_description(data, to, made), **(described or {})})
    return Exported(
        dataset=data.name,
        split=data.split,
        format=to,
        folder=str(folder),
        files=(*made.files, CONFIG_NAME),
        n_queries=len(data.qrels),
        n_judgements=sum(map(len, data.qrels.values())),
        lost=tuple(made.lost),
    )


def _description(data: Dataset, to: str, made: Outgoing) -> dict[str, Any]:
    facts = {
        "format": to,
        "name": data.name,
        "language": data.language,
        "unit_key": data.unit_key,
        "cluster_key": data.cluster_key,
        "self_hits": None if data.self_hits == KEEP else data.self_hits,
        "judges": {who: {"kind": kind} for who, kind in data.judges.items()} or None,
        "drawn_from": data.drawn_from,
    }
    return {key: value for key, value in facts.items() if value is not None} | {**made.described}


def _check_free(target: Path) -> None:
    try:
        taken = target.is_file() or (target.is_dir() and any(target.iterdir()))
    except OSError as problem:
        raise _cannot_write(target, problem) from None
    if taken:
        raise ConfigError(
            "there is something already, and nothing is written over it",
            where=str(target),
            accepted="a folder that is empty or not there yet",
            fix="name another one with --out, or remove it",
        )


def _save(target: Path, made: Outgoing, description: Mapping[str, Any]) -> None:
    """Write all files beside their place, then move them there at once."""
    beside: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.parent / f".{target.name}.{os.getpid()}"
        beside.mkdir()
        for name, lines in made.files.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in lines)
        described = yaml.safe_dump(dict(description), allow_unicode=True, sort_keys=False)
        (beside / CONFIG_NAME).write_text(f"{for_editors('dataset')}{described}", encoding="utf-8")
        beside.replace(target)
    except OSError as problem:
        raise _cannot_write(target, problem) from None
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


def _cannot_write(target: Path, problem: OSError) -> ConfigError:
    return ConfigError(
        f"cannot write: {problem.strerror}",
        where=str(target),
        accepted="a folder that can be written",
        fix="name another one with --out",
    )
