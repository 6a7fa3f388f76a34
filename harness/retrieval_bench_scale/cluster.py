"""Workers of a Dask cluster: each proves that it is like this process before it gets any work.

Work and results are files in a folder that all of them see; what is sent is small. A worker whose
code or versions differ, or that sees another folder, would give other figures, so it is refused.
"""

from __future__ import annotations

import hashlib
import platform
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.installation import require
from retrieval_bench.measure.environment import packages

_CONNECT_S = 10
_MOST_OFF_S = 0.1
"""Beyond the time that asking takes: work begins on all workers at a time of day."""

_ADDRESS = re.compile(r"tcp://.+:\d+")
_ACCEPTED = "the address of a Dask scheduler, tcp://HOST:PORT"
_START = "start one: dask scheduler; and on each machine: dask worker ADDRESS --nthreads 1"
_PARTS = ("retrieval_bench", "retrieval_bench_retrievers")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A scheduler that answered, and its workers, which were all found to be like this process.

    Attributes:
        address: of the scheduler.
        client: of the library ``distributed``.
        workers: their addresses.
    """

    address: str
    client: Any
    workers: Sequence[str]

    def has(self, worker: str) -> bool:
        """Whether a worker is still there."""
        return worker in self.client.scheduler_info(n_workers=-1)["workers"]


@contextmanager
def connected(address: str, folder: Path) -> Iterator[Cluster]:
    """The cluster whose scheduler has this ``address``.

    Args:
        address: as Dask has it, ``tcp://HOST:PORT``.
        folder: that all workers must see under the same path.

    Raises:
        ConfigError: nobody answers, there is no worker, or one differs.
        MissingDependencyError: the extra ``cluster`` is not installed.
    """
    where = f"--on {address}"
    if not _ADDRESS.fullmatch(address):
        raise ConfigError(f"--on {address}", accepted=_ACCEPTED, fix=_START)
    require("distributed", "cluster", where)
    try:
        client = dask().Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:
        raise ConfigError(
            f"no scheduler answers at {address}", where=str(problem), accepted=_ACCEPTED, fix=_START
        ) from None
    try:
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            raise ConfigError(
                "the cluster has no workers",
                where=where,
                accepted="one or more",
                fix=f"on each machine: dask worker {address} --nthreads 1",
            )
        _check_alike(client, workers, folder)
        yield Cluster(address, client, workers)
    finally:
        client.close()


def dask() -> Any:
    """The library ``distributed``, which has no types."""
    return import_module("distributed")


def same_code() -> str:
    """A hash over all modules of this project, as they lie on the disk."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for folder in (package, *(_other(package, part) for part in _PARTS[1:])):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _other(package: Path, name: str) -> Path:
    spec = find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else package.parent / name


def facts() -> Mapping[str, str]:
    """What must be equal on all workers, by what a message calls it; looked at anew each time, for
    a worker lives longer than its files."""
    versions = {"Python": platform.python_version(), **packages()}
    return {"files of this project": same_code(), **versions}


def _proof(token: str) -> tuple[Mapping[str, str], str | None, float]:
    """On a worker: its facts, what it reads in the file ``token``, and what time it has."""
    path = Path(token)
    return facts(), path.read_text("utf-8") if path.is_file() else None, time.time()


def _check_alike(client: Any, workers: Sequence[str], folder: Path) -> None:
    secret, token = token_hex(8), folder / f".shared-{token_hex(4)}"
    token.write_text(secret, encoding="utf-8")
    before = time.time()
    try:
        proofs = client.run(_proof, str(token), workers=list(workers), on_error="return")
    finally:
        token.unlink(missing_ok=True)
    after = time.time()
    for worker, proof in proofs.items():
        if isinstance(proof, BaseException):
            raise _refused(worker, f"can't run this project: {proof}", "install it there, as here")
        theirs, read, clock = proof
        if other := difference(theirs, facts()):
            raise _refused(worker, other, "install the same revision and packages there")
        if read != secret:
            problem = f"does not see the folder {folder}"
            raise _refused(worker, problem, "share it under the same path, or name one with --out")
        if (off := max(before - clock, clock - after)) > _MOST_OFF_S:
            problem = f"has a clock that is {off:.1f} s off"
            raise _refused(worker, problem, "set the clocks of all machines, as with NTP")


def difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """What differs first, as the end of a sentence on them; empty where nothing does."""
    for name in dict.fromkeys([*ours, *theirs]):
        there, here = theirs.get(name, "none"), ours.get(name, "none")
        if there != here:
            return f"has other {name}: {there}; here {here}"
    return ""


def check_same(ours: Mapping[str, Any], theirs: Mapping[str, Any] | None = None) -> None:
    """On a worker: refuse to work where the facts of whoever asks are not those of this process.

    Args:
        theirs: None = :func:`facts`.

    Raises:
        ConfigError: something differs.
    """
    if other := difference(facts() if theirs is None else theirs, ours):
        raise _refused(platform.node(), other, "take machines of one kind with one installation")


def _refused(worker: str, problem: str, fix: str) -> ConfigError:
    return ConfigError(
        f"the worker {worker} {problem}",
        accepted="workers with the files and packages that this process has, and the same folder",
        fix=fix,
    )
