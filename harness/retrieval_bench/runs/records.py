"""Files that a run leaves on disk: one folder, written once, complete or not at all.

The layout is versioned by ``schema_version`` (see :mod:`.runs.summary`); a folder of a newer
version is refused with a clear message, never half understood.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import math
import os
import re
import shutil
import signal
import tempfile
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import ConfigError, DataError, RecordError, check_distinct
from retrieval_bench.core.figures import visible
from retrieval_bench.core.notices import to_document
from retrieval_bench.data.formats import trec_runs as trec
from retrieval_bench.measure.calls import NOT_RUN, OK
from retrieval_bench.metrics import parse_metrics
from retrieval_bench.runs.arrays import (
    DAMAGED,
    RANKINGS,
    TIMINGS,
    load_rankings,
    load_timings,
    write_arrays,
)
from retrieval_bench.runs.checksums import SUMS, check_sums, write_sums
from retrieval_bench.runs.evaluation import Evaluation, averaged
from retrieval_bench.runs.run import Rankings, Run
from retrieval_bench.runs.summary import Summary

SCHEMA_VERSION = 2
"""Of ``summary.json``; 1: first version; 2: warnings have a code."""

SUMMARY = "summary.json"
MANIFEST = "manifest.json"
TREC_RUN = "run.trec"
PER_QUERY = "per_query.csv"
PICTURES = "pictures"
TEXT = "summary.txt"
COLD = "cold.json"
DUET = "duet.json"
LOAD = "load.json"
SWEEP = "sweep.json"
LOADED = ("calls-*.npy", "quality-*.npy")
_PENDING = ".summary.json"
_FILES = (
    *(SUMMARY, MANIFEST, TREC_RUN, RANKINGS, PER_QUERY, TIMINGS, DUET, LOAD, SWEEP),
    *(*LOADED, _PENDING),
    SUMS,
)
"""Patterns of the names of all that a record is made of."""

DEFAULT_ROOT = Path("results") / "runs"

_CONTROLS = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What JSON may hold as it is, and a terminal may obey or a reader of lines take for line ends."""

_LONGEST_STATUS = 500
"""Characters of a status in ``per_query.csv``, where it stands once for each metric."""

_LONGEST_SLUG = 60
"""Bytes: two of them, time, hash and prefix stay below the 255 that file systems allow."""


def check_destination(out: Path | None, root: Path = DEFAULT_ROOT, record: str = "run") -> None:
    """Find out before the measurement whether a record can be written; leaves no trace.

    Args:
        root: where a new folder is made without ``out``.
        record: what it is, in a message.

    Raises:
        RecordError: ``out`` is a file, already holds something, or cannot be written to.
    """
    target = root if out is None else _resolved(out)
    try:
        what = None if out is None else _taken(target)
        if what is None:
            existing = out is not None and target.is_dir()
            probe(target if existing or out is None else target.parent)
    except OSError as problem:
        raise cannot_write(root if out is None else out, problem, record) from None
    if what is not None:
        raise RecordError(
            f"output folder {what}",
            where=str(out),
            accepted="a folder that does not exist yet, or an empty one",
            fix="name another folder with --out, or leave it out for a new one in "
            f"{root.as_posix()}",
        )


def write_run(run: Run, out: Path | None = None, root: Path = DEFAULT_ROOT) -> Run:
    """Save ``run`` as one folder, complete or not at all; gives it as :func:`read_run` would.

    A ranking that cannot be written as TREC text costs ``run.trec``, not the run: a warning in the
    summary says so.

    Args:
        out: exactly this folder; None = a new one under ``root``, named after time, retriever,
            dataset and a hash of the content.

    Raises:
        RecordError: nothing was written; disk full, read-only, or the folder is taken.
    """
    check_destination(out, root)
    if out is None:
        _keep_out_of_git(root)
    created = datetime.now(UTC)
    run_id = record_id(created, run.name, run.summary.dataset.name, digest=_content_hash(run))
    shown = (root / run_id if out is None else out).absolute()
    second = created.isoformat(timespec="seconds")
    manifest = secrets.redact_manifest({"run_id": run_id, "created": second, **run.manifest})
    status = _status_texts(run.status)
    try:
        with new_folder(_resolved(shown), run_id) as folder:
            summary = run.summary.replace(run_id=run_id)
            complaint = _write_trec(folder / TREC_RUN, run)
            if complaint is not None:
                summary = summary.replace(warnings=[*summary.warnings, complaint])
            # No secret, and no sentence that moves the cursor of a terminal it is printed on.
            summary = summary.with_texts(lambda text: visible(secrets.redact(text)))
            write_arrays(folder, run.rankings, run.timings)
            _write_per_query(folder / PER_QUERY, run, status)
            _write_json(folder / MANIFEST, manifest)
            # Last and at once: without it, it is no run. Its time, not in ticks, orders a session.
            _write_json(folder / _PENDING, to_document(summary.as_dict()))
            with suppress(OSError):  # some shares let nobody set it
                os.utime(folder / _PENDING, ns=(now := time.time_ns(), now))
            (folder / _PENDING).replace(folder / SUMMARY)
    except OSError as problem:
        raise cannot_write(shown, problem) from None
    return Run(summary, manifest, run.rankings, status, run.timings, run.evaluation, shown)


def add_files(folder: Path, files: Mapping[str, str]) -> None:
    """Put further files (path in the folder -> text) beside the figures of a saved run.

    Raises:
        RecordError: they cannot be written; the run itself is complete.
    """
    try:
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise RecordError(
            f"cannot write {', '.join(files)}: {problem.strerror}",
            where=str(folder),
            fix="make room there; the run itself is saved",
        ) from None


def read_run(folder: Path) -> Run:
    """The run in ``folder``.

    Raises:
        RecordError: no run there, written by a newer version, or damaged (which file, and how).
    """
    document = read_json(folder / SUMMARY)
    check_version(document, SCHEMA_VERSION, "run", folder / SUMMARY)
    check_sums(folder)
    try:
        summary = Summary.model_validate(document)
        rankings = load_rankings(folder)
        timings = load_timings(folder)
        status, evaluation = _read_per_query(folder / PER_QUERY, summary, rankings)
        summary = summary.replace(metrics=evaluation.as_dict())
        manifest = read_json(folder / MANIFEST)
        _check_facts(manifest)
    except ConfigError as problem:
        raise RecordError(
            f"run with a metric that is not known here: {problem.given}",
            where=str(folder),
            fix="install the package that registers this metric",
        ) from None
    except DAMAGED as problem:
        raise RecordError(
            f"run folder is damaged: {type(problem).__name__}: {problem}",
            where=str(folder),
            fix="measure again; a folder is written completely or not at all, so something "
            "changed it afterwards",
        ) from None
    return Run(summary, manifest, rankings, status, timings, evaluation, folder)


def _check_facts(manifest: Mapping[str, Any]) -> None:
    """Refuse facts of another kind than every report takes them for.

    Raises:
        ValueError: one is found.
    """
    for name in ("retriever", "environment", "protocol"):
        if not isinstance(manifest.get(name, {}), dict):
            raise ValueError(f"manifest.{name} is no dict")


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read several runs, each once.

    Raises:
        ConfigError: a folder is given twice.
        RecordError: as :func:`read_run`.
    """
    check_distinct([str(folder.absolute().resolve()) for folder in folders], "run folder")
    return [read_run(folder) for folder in folders]


def to_json(document: Any, *, indented: bool = True) -> str:
    """``document`` as JSON text that every reader takes, in UTF-8 and without a last line break.

    Numbers that are not finite become null; lone surrogates, which UTF-8 lacks, become visible
    escapes, control characters escapes of JSON; what JSON does not know becomes text.
    """
    how: Any = {"indent": 2} if indented else {"separators": (",", ":")}
    text = json.dumps(_plain(document), ensure_ascii=False, default=_as_text, **how)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _resolved(path: Path) -> Path:
    """The place behind links; unlike ``Path.resolve`` it never raises."""
    return Path(os.path.realpath(path))


def _taken(target: Path) -> str | None:
    """Return why a run cannot become ``target``; None = it can."""
    if target.is_dir():
        if (target / SUMMARY).exists():
            return "already holds a run"
        return "is not empty" if any(target.iterdir()) else None
    return "is a file" if os.path.lexists(target) else None


def probe(folder: Path) -> None:
    """Try to write into ``folder``, or to make it; nothing of that stays, and nothing is made that
    another process might be about to use."""
    folder = folder.absolute()
    there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    trial = Path(tempfile.mkdtemp(prefix=".probe-", dir=there))
    try:
        (trial / folder.relative_to(there)).mkdir(parents=True, exist_ok=True)
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def _keep_out_of_git(root: Path) -> None:
    """Runs are no part of the user's repository, unless a .gitignore of theirs says otherwise."""
    with suppress(OSError):
        if not root.exists():
            root.mkdir(parents=True)
            (root / ".gitignore").write_text("*\n", encoding="utf-8")


@contextmanager
def new_folder(target: Path, record_id: str) -> Iterator[Path]:
    """A folder to write the files of a record in, which is ``target`` afterwards or gone.

    An existing empty folder is filled in place: a mounted one cannot be renamed onto.
    """
    if target.is_dir():
        try:
            yield target
            write_sums(target)
        except BaseException:
            for path in [path for name in _FILES for path in target.glob(name)]:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            raise
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".tmp-{os.getpid()}-{record_id}"
    temporary.mkdir()
    try:
        yield temporary
        write_sums(temporary)
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


SECOND = "%Y%m%dT%H%M%SZ"  # names of records begin with it


def record_id(created: datetime, *names: str, digest: str | None = None) -> str:
    """Name a record by its second, its ``names``, and a hash of its content, or chance."""
    return "-".join((created.strftime(SECOND), *map(slug, names), digest or token_hex(4)))


@contextmanager
def new_record(target: Path, name: str, noun: str) -> Iterator[Path]:
    """A folder as :func:`new_folder` gives it, for a record that is called ``noun``.

    Raises:
        RecordError: it cannot be written; nothing is left of it.
    """
    try:
        with new_folder(target, name) as folder:
            yield folder
    except OSError as problem:
        raise cannot_write(target, problem, noun) from None


def _write_trec(path: Path, run: Run) -> str | None:
    """Write ``run.trec``, or say why that cannot be done."""
    rankings = run.rankings
    rows = {query_id: rankings.row(at) for at, query_id in enumerate(rankings.query_ids)}
    try:
        trec.write_run(path, rows, slug(run.name))
    except DataError as problem:
        path.unlink(missing_ok=True)
        return f"{TREC_RUN} was not written: {problem.given}"
    return None


def _write_per_query(path: Path, run: Run, status: Sequence[str]) -> None:
    evaluated = {query_id: at for at, query_id in enumerate(run.evaluation.query_ids)}
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("query_id", "status", "metric", "value"))
        for query_id, told in zip(run.rankings.query_ids, status, strict=True):
            at = evaluated.get(query_id)
            shown = visible(query_id)
            if at is None:
                rows.writerow((shown, told, "", ""))
                continue
            values = run.evaluation.per_query[at].tolist()
            for metric, value in zip(run.evaluation.metrics, values, strict=True):
                rows.writerow((shown, told, metric, repr(value)))


def _read_per_query(
    path: Path, summary: Summary, rankings: Rankings
) -> tuple[tuple[str, ...], Evaluation]:
    status, values = dict[str, str](), dict[str, dict[str, float]]()
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            shown = visible(row["query_id"])
            status[shown] = row["status"]
            if row["metric"]:
                values.setdefault(shown, {})[row["metric"]] = float(row["value"])
    names = list(summary.metrics)
    rows = [[row[name] for name in names] for row in values.values()]
    per_query = np.array(rows, dtype=np.float64).reshape(len(values), len(names))
    original = {visible(query_id): query_id for query_id in rankings.query_ids}
    evaluated = tuple(original[shown] for shown in values)
    of = rankings.labels if summary.dataset.cluster_key else {}
    metrics, whole = parse_metrics(names), summary.until_decided is None
    again = averaged(evaluated, metrics, per_query, intervals=whole, clusters=of)
    # Means as they were saved, with the intervals of today: those of earlier versions were shorter.
    means = tuple(
        replace(mean, mean=float("nan") if entry.mean is None else entry.mean, n=entry.n)
        for mean, entry in zip(again.means, summary.metrics.values(), strict=True)
    )
    evaluation = replace(again, means=means, judged=summary.judged)
    return tuple(status[shown] for shown in map(visible, rankings.query_ids)), evaluation


def _status_texts(status: Sequence[str]) -> tuple[str, ...]:
    """``status`` as it is written: no secret, one line, not too long."""
    texts = [
        state if state in (OK, NOT_RUN) else visible(redacted)
        for state, redacted in zip(status, secrets.redact(status), strict=True)
    ]
    most = _LONGEST_STATUS
    return tuple(text if len(text) <= most else f"{text[: most - 3]}..." for text in texts)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(to_json(content) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_encodable(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        raise TypeError(f"{type(value).__name__} is a record: what JSON has of it is as_dict()")
    return value


def _as_text(value: Any) -> str:
    return _encodable(str(value))


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def read_json(
    path: Path, made_by: str = "a run folder, as `retrieval-bench bench`"
) -> dict[str, Any]:
    """The object in a JSON file of a record.

    Raises:
        RecordError: missing, unreadable, cut off, or no object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(
            f"no {path.name} in the folder",
            where=str(path.parent),
            accepted=f"{made_by} writes it",
            fix="check the path; runs lie in results/runs",
        ) from None
    except (OSError, ValueError, RecursionError) as problem:
        raise RecordError(f"unreadable: {problem}", where=str(path)) from None
    if not isinstance(content, dict):
        raise RecordError("not a JSON object", where=str(path))
    return content


def check_version(document: Mapping[str, Any], newest: int, what: str, path: Path) -> None:
    """Raise :class:`.RecordError` for a record of another form than up to ``newest``.

    Args:
        what: a record of this kind; ``path`` is its file.
    """
    version = document.get("schema_version")
    if not isinstance(version, int) or version > newest:
        raise RecordError(
            f"{what} of schema version {version}",
            where=str(path),
            accepted=f"versions up to {newest}",
            fix="read it with the version of retrieval-bench that wrote it, or a newer one",
        )


def cannot_write(path: Path, problem: OSError, what: str = "run") -> RecordError:
    """The error that tells why ``what`` was not written, and what to do."""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        fix = "free some space, or name a folder on another disk with --out"
    elif problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        fix = "name a place that you may write to with --out"
    else:
        fix = "name another folder with --out"
    return RecordError(
        f"cannot write the {what}: {problem.strerror or problem}",
        where=str(path),
        accepted="a folder with free space that you may write to",
        fix=fix,
    )


def _content_hash(run: Run) -> str:
    digest = hashlib.sha256(to_json(run.manifest).encode())
    digest.update(run.rankings.ranking.tobytes())
    digest.update(run.timings.wall_ns.tobytes())
    return digest.hexdigest()[:8]


def slug(name: str) -> str:
    """``name`` as a part of a file name: letters of any script stay, and it is never too long."""
    safe = re.sub(r"[^\w.+-]+", "_", unicodedata.normalize("NFC", name)).strip("._")
    return safe.encode()[:_LONGEST_SLUG].decode(errors="ignore").strip("._") or "run"


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """A first Ctrl-C waits until what was measured is saved; a second one does not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def later(*_: Any) -> None:
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
