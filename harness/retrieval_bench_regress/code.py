"""The code that a baseline was made of: side a of a duet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrieval_bench.core.config import config_hash
from retrieval_bench.core.errors import ConfigError
from retrieval_bench_duet.result import DuetResult
from retrieval_bench_duet.revisions.trees import Repository
from retrieval_bench_regress.baseline import LatencyBaseline, QualityBaseline
from retrieval_bench_regress.latency_gates import Duet


@dataclass(frozen=True, slots=True)
class Code:
    """Code of the baseline, to be measured again.

    Attributes:
        commit: that holds its files.
        retriever, overrides: as they were given.
        config: hash of what these made then; None where the baseline does not know it.
        protocol: threads of timed searches, and seconds per call, where its times say so.
    """

    commit: str
    retriever: str
    overrides: tuple[str, ...]
    config: str | None = None
    protocol: Mapping[str, Any] = field(default_factory=dict)


def code_of(source: QualityBaseline | LatencyBaseline | None) -> Code | None:
    """Return the code that ``source`` was made of; None where nothing holds it."""
    if source is None or source.commit is None:
        return None
    known = source.protocol if isinstance(source, LatencyBaseline) else {}
    same = {name: known[name] for name in ("threads", "timeout_s") if known.get(name)}
    given = source.retriever
    return Code(source.commit, given.given, tuple(given.overrides), given.hash, same)


def why_no_code(source: QualityBaseline | LatencyBaseline | None) -> str:
    """Return why :func:`code_of` knows none."""
    if source is None:
        return "no baseline that names a revision"
    if source.revision is None:
        return (
            "the baseline names no revision: it was made outside of a git repository, or in one "
            "without a commit or that git could not read"
        )
    return "the baseline was made of files that no commit holds, and names no revision"


def with_its_config(duet: Duet, code: Code, make: str) -> Duet:
    """``duet``, of which nothing is taken when its side a has another config than ``code``: it
    raises ConfigError then.

    Args:
        make: the command that makes the baseline.
    """

    def checked() -> DuetResult:
        outcome = duet()
        config = outcome.a.config
        if code.config is None or not config or _hash(config) == code.config:
            return outcome
        raise ConfigError(
            f"side a was built from another config than the baseline: {_hash(config)}",
            where=code.retriever,
            accepted=f"the config of then, {code.config}: a file outside of the repository is "
            "today's on both sides",
            fix="undo the change of the file; or keep it in the repository, commit it and make "
            f"the baseline anew: {make} --force",
        )

    return checked


def _hash(config: Mapping[str, Any]) -> str:
    """Return the hash of what a side says that it was built from. Earlier revisions do not tell the
    hash, which takes the files that legs name."""
    return str(config.get("hash") or config_hash(config["target"], config["params"]))


def check_there(commit: str, make: str) -> None:
    """Refuse a duet whose side a cannot be had.

    Args:
        make: the command that makes the baseline.

    Raises:
        ConfigError: no repository that git can read, or it does not have ``commit``.
    """
    try:
        repository = Repository.around(Path.cwd())
    except ConfigError as problem:
        raise ConfigError(
            f"no commit {commit[:10]} of the baseline: {problem.given}",
            where=problem.where,
            accepted="the repository of the baseline, which git can read",
            fix="go there, or let git read it; or judge by the stored times alone: --duet never",
        ) from None
    fix = f"make the baseline anew: {make} --force"
    try:
        repository.commit(commit)
    except ConfigError:
        raise ConfigError(
            f"the commit that the baseline was made of is not here: {commit[:10]}",
            where=str(repository.root),
            accepted="a commit of this repository; a squash or a rebase leaves the old ones behind",
            fix=f"git fetch --unshallow; or {fix}" if repository.shallow else fix,
        ) from None
