"""What leaves a run for a tracker: its figures under names that stay, unrounded, and its facts.

Source: the names of trackers' own keys are in :mod:`.mlflow_runs` and :mod:`.otlp_spans`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from retrieval_bench.capabilities import named
from retrieval_bench.core import secrets
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, check_known
from retrieval_bench.core.installed.version import VERSION
from retrieval_bench.reports.frames import means
from retrieval_bench.runs.find import find_run
from retrieval_bench.runs.records import read_run
from retrieval_bench.runs.run import Run

TRACKERS: Mapping[str, str] = {
    "mlflow": "retrieval_bench_exchange.trackers.mlflow_runs:send",
    "otlp": "retrieval_bench_exchange.trackers.otlp_spans:send",
}
"""Tracker -> its function, which takes a run, an address and settings, and gives the id there."""
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "mlflow": {"experiment": None},
    "otlp": {"texts": False},
}
"""What may be set, and what it is otherwise."""
EXAMPLES = {"mlflow": "sqlite:///mlflow.db", "otlp": "http://localhost:4318"}
"""Addresses, for messages."""


@dataclass(frozen=True, slots=True)
class SentRun(Documented):
    """A run that a tracker has now.

    Attributes:
        run: its id.
        format: which tracker.
        into: its address, without passwords that a variable holds.
        id: of MLflow's run, or of the trace.
        figures: how many it has, ends of intervals and counts included.
    """

    run: str
    format: str
    into: str
    id: str
    figures: int


def export_run(
    run: Run | str, to: str, into: str, *, settings: Mapping[str, Any] | None = None
) -> SentRun:
    """Send a saved run to a tracker: its figures, unrounded, and how it was made.

    Args:
        run: itself, its folder, or a name such as ``@last``.
        to: "mlflow" or "otlp".
        into: address of the tracker; ``${NAME}`` is filled in.
        settings: see :data:`SETTINGS`.

    Raises:
        ConfigError: no such tracker or setting, a run that is not saved, an address that does not
            answer, or the run is there already.
        MissingDependencyError: the extra is not installed.
    """
    check_known(to, TRACKERS, f"tracker {to!r}", where="--to", fix="choose one of these")
    for key in settings or ():
        check_known(key, SETTINGS[to], f"setting {key!r} of {to}", where="--set")
    saved = run if isinstance(run, Run) else read_run(find_run(run))
    if not saved.summary.run_id:
        raise ConfigError(
            f"a run of {saved.name} that is not saved",
            accepted="a saved run, whose id the tracker keeps",
            fix="save it first: bench(..., save=True)",
        )
    address = str(secrets.expand(into, "--into"))
    if password := urlsplit(address).password:
        secrets.mask(address, address.replace(f":{password}@", ":***@"))
        secrets.mask(unquote(password), "***")
    sent_id = named(TRACKERS[to])(saved, address, {**SETTINGS[to], **(settings or {})})
    shown = str(secrets.redact(address))
    return SentRun(saved.summary.run_id, to, shown, sent_id, len(figures(saved)))


def figures(run: Run) -> dict[str, float]:
    """Each mean and percentile by its name, with ``.low`` and ``.high`` of its 95 % interval and
    ``.n`` of its queries or calls, and how many queries failed; all as they were computed.

    Milliseconds end with ``_ms``. What is not known is left out.
    """
    rows: dict[str, float] = {}
    for row in means([(run.name, run)]):
        name = row["metric"].replace(" ", "_")
        told = {"": row["mean"], ".low": row["low"], ".high": row["high"], ".n": row["n"]}
        rows |= {f"{name}{end}": value for end, value in told.items() if value is not None}
    return rows | {"failed_queries": run.summary.n_failed}


def facts(run: Run) -> dict[str, str | int]:
    """What says which run it is, and what of: parameters of the retriever by dotted path."""
    data = run.summary.dataset
    return {
        "run": run.summary.run_id,
        "retriever": run.name,
        "dataset": data.name,
        "split": data.split,
        "fingerprint": data.fingerprint,
        "k": run.summary.k,
        "status": run.summary.status,
        "version": VERSION,
        **{f"params.{name}": value for name, value in run.settings.items()},
    }


def unreachable(address: str, to: str, why: object) -> ConfigError:
    """The error of a tracker that did not take the run."""
    return ConfigError(
        f"{to} did not take the run: {secrets.redact(str(why).strip() or type(why).__name__)}",
        where=str(secrets.redact(address)),
        accepted=f"the address of a tracker that answers, such as {EXAMPLES[to]}",
        fix="start it, or correct --into",
    )
