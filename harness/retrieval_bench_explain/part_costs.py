"""What a part of a retriever takes: the time of each call without it, from the stages that were
timed in the same call, and what it uses up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.metrics.judged import NONE
from retrieval_bench.runs.run import Run
from retrieval_bench.runs.summary import PartFacts
from retrieval_bench.runs.usage_means import PER, means, total
from retrieval_bench.stats.percentiles import needs, quantiles
from retrieval_bench_explain.parts import CHUNKER, Cost, Row, Worth

_NS_PER_MS = 1e6
_WHOLE = ("leg:", "step:")


def cost_of(run: Run, part: PartFacts) -> Cost:
    """What ``part``, an entry of ``parts`` of the summary of ``run``, takes."""
    p50 = p95 = share = None
    calls = ~run.timings.failed
    if part.timed and run.asked is None and run.summary.latency_ms.mean is not None:
        wall = run.timings.wall_ns[calls].astype(np.float64)
        saved = _saved_ns(run, part, calls)
        if saved is not None and len(wall):
            without = np.maximum(wall - saved, 0)
            p50 = _difference(wall, without, 50.0)
            p95 = _difference(wall, without, 95.0)
            share = float(saved.sum() / wall.sum()) if wall.sum() else None
    rows = _used(run, part, calls)
    if rows is None:
        return Cost(p50, p95, share)
    used = means(np.broadcast_to(np.asarray(_share(run, part, calls)), len(rows))[:, None] * rows)
    money = used["money"]
    return Cost(p50, p95, share, used, None if money is None else PER * money)


def chunker_of(run: Run, token_price: float | None) -> list[Row]:
    """The chunker of a run whose truth is by spans, with what a reader pays for its hits: one row,
    or none.

    Args:
        token_price: money for a million tokens.

    Raises:
        ConfigError: a price, where no token was counted.
    """
    counted = run.manifest.get("spans", {}).get("tokens_delivered")
    said = run.manifest["retriever"].get("chunk")
    if token_price is not None and (counted is None or said is None):
        raise ConfigError(
            f"a price of tokens for {run.name}",
            where="--token-price",
            accepted="a run on a dataset whose truth is by spans, of a retriever with `chunk`",
            fix="leave it out",
        )
    if counted is None or said is None:
        return []
    sizes = [str(said[key]) for key in ("size", "overlap") if said.get(key)]
    money = None if token_price is None else PER * token_price * counted / 1e6
    cost = Cost(usage={"tokens_delivered": counted}, money_per_1000_queries=money)
    name = "-".join([said["by"], *sizes])
    return [Row(name, CHUNKER, "whole documents", Worth.UNKNOWN, UNASKED, cost=cost)]


UNASKED = "what it buys is what `compare` says of it beside another chunker"


def _saved_ns(run: Run, part: PartFacts, calls: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """Nanoseconds of each call that go with the part; None where no stage of it was timed."""
    known = run.timings.stages
    own = [name for name in part.stages if name in known]
    if not own:
        return None
    spent = {
        name: np.maximum(known[name][calls], 0).astype(np.float64)
        for name in [*own, *part.beside]
        if name in known
    }
    beside = [spent[name] for name in part.beside if name in spent]
    at_once = [name for name in own if name.startswith(_WHOLE)] if beside else []
    one_by_one = [spent[name] for name in own if name not in at_once]
    saved = np.sum(one_by_one, axis=0) if one_by_one else np.zeros(int(calls.sum()))
    if at_once:
        rest = np.max(beside, axis=0)
        saved = saved + np.maximum(np.max([spent[name] for name in at_once], axis=0) - rest, 0)
    return np.asarray(_share(run, part, calls) * saved)


def _share(run: Run, part: PartFacts, calls: NDArray[np.bool_]) -> Any:
    """How much of the time of its stages goes with the part: of a depth, for each call, the share
    of the documents of its list beyond k."""
    lists = run.rankings.kept(part.gets) if part.kind == "depth" and part.gets else None
    if lists is None:
        return part.share
    length = (lists != NONE).sum(axis=1)[run.timings.query[calls]]
    return 1 - np.minimum(length, run.summary.k) / np.maximum(length, 1)


def _difference(
    wall: NDArray[np.float64], without: NDArray[np.float64], level: float
) -> float | None:
    if len(wall) < needs(level).printed:
        return None
    long, short = (float(quantiles(of, level / 100)) for of in (wall, without))
    return (long - short) / _NS_PER_MS


def _used(run: Run, part: PartFacts, calls: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """What each call used up for the part, (calls, 4)."""
    own = [name for name in run.timings.usage if _belongs(name, part.stages)]
    if not own:
        return None
    return total({name: run.timings.usage[name][calls] for name in own})


def _belongs(name: str, stages: Sequence[str]) -> bool:
    """Whether the stage called ``name`` is one of ``stages``, or inside of one."""
    inside = [stage.split(":", 1)[1] + "." for stage in stages if stage.startswith(_WHOLE)]
    return name in stages or any(name.startswith(prefix) for prefix in inside)
