"""A saved run as a run of MLflow: figures are metrics, facts are parameters.

MLflow refuses ``@`` and brackets in names: what is not a letter, a digit or one of ``_-.:`` is
written as ``_`` (``nDCG_10``), and a tag (``retrieval_bench.name.nDCG_10``) has the name itself.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.installation import require
from retrieval_bench.runs.run import Run
from retrieval_bench_exchange.trackers.sent import facts, figures, unreachable

_TAG = "retrieval_bench"
_BATCH = 100
"""Parameters or tags that MLflow takes at once."""


def keys(names: Iterable[str]) -> dict[str, str]:
    """Keys that MLflow takes -> ``names``; where two would be one, the later ends with ``_2``."""
    kept: dict[str, str] = {}
    for name in names:
        key = re.sub(r"[^\w.:-]", "_", name)
        while key in kept:
            key += "_2"
        kept[key] = name
    return kept


def send(run: Run, address: str, settings: Mapping[str, Any]) -> str:
    """Log ``run`` in the experiment that is set, or of its dataset's name; the id of MLflow's run.

    Raises:
        ConfigError: this run is there already, or no tracker answers.
        MissingDependencyError: the extra ``mlflow`` is not installed.
    """
    require("mlflow-skinny", "mlflow", "--to mlflow")
    # Otherwise an address where nothing answers takes four minutes.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    before = logging.root.manager.disable
    logging.disable(logging.INFO)  # it tells of each table that it makes
    try:
        return _logged(run, MlflowClient(address), settings["experiment"])
    except (MlflowException, ImportError, OSError) as problem:
        raise unreachable(address, "mlflow", problem) from problem
    finally:
        logging.disable(before)


def _logged(run: Run, client: Any, experiment: str | None) -> str:
    from mlflow.entities import Metric, Param, RunTag

    name = experiment or run.summary.dataset.name
    there = client.get_experiment_by_name(name)
    experiment_id = there.experiment_id if there else client.create_experiment(name)
    run_id = run.summary.run_id
    same = f"tags.`{_TAG}.run` = '{run_id}' and attributes.status = 'FINISHED'"
    if earlier := client.search_runs([experiment_id], same, max_results=1):
        raise ConfigError(
            f"run {run_id} is there already, as {earlier[0].info.run_id}",
            where=f"experiment {name}",
            accepted="a run that was not sent yet",
            fix="name another experiment with --set experiment=NAME",
        )
    made = int(datetime.fromisoformat(run.manifest["created"]).timestamp() * 1000)
    told, of = figures(run), facts(run)
    names = keys([*told, *of])
    metrics = [Metric(key, told[name], made, 0) for key, name in names.items() if name in told]
    params = [Param(key, str(of[name])) for key, name in names.items() if name in of]
    tags = [RunTag(f"{_TAG}.name.{short}", long) for short, long in names.items() if short != long]
    new = client.create_run(experiment_id, made, {f"{_TAG}.run": run_id}, run_name=run.name)
    sent_id = str(new.info.run_id)
    try:
        client.log_batch(sent_id, metrics=metrics)
        for batch in _batches(params):
            client.log_batch(sent_id, params=batch)
        for batch in _batches(tags):
            client.log_batch(sent_id, tags=batch)
    except BaseException:
        client.set_terminated(sent_id, "FAILED")
        raise
    client.set_terminated(sent_id, "FINISHED", made)
    return sent_id


def _batches(entries: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(entries), _BATCH):
        yield entries[start : start + _BATCH]
