"""Recall over the tokens that are delivered: a line for each run."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.runs.run import Run
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.vega import Spec, mark


def recall_over_tokens(
    names: Sequence[str], runs: Sequence[Run], width: int = vega.WIDTH
) -> Spec | None:
    """Mean recall of spans at rising budgets, as each run was measured; None where one says nothing
    of that, or their tokens are counted in two ways.

    Args:
        names: of the runs.
    """
    spans = [run.manifest.get("spans") or {} for run in runs]
    if not all(of.get("curve") for of in spans) or len({of["tokens"] for of in spans}) > 1:
        return None
    shown = dict(zip(names[: len(vega.STYLES)], [of["curve"] for of in spans], strict=False))
    points = [
        {"system": name, "tokens": int(budget), "recall": recall}
        for name, curve in shown.items()
        for budget, recall in curve.items()
    ]
    labels = list(shown)
    color, dash, shape = vega.told_apart(labels, key=vega.legend(labels, labels, columns=2))
    x = vega.axis("tokens", vega.linear(0, points[-1]["tokens"]), "Tokens delivered", width)
    y = vega.axis("recall", vega.linear(0.0, 1.0), "Mean recall of spans", width)
    both = {"x": x, "y": y, "color": color}
    layers = [
        mark("line", points, {**both, "strokeDash": dash}),
        mark("point", points, {**both, "shape": shape}),
    ]
    most = max(curve["1000"] for curve in shown.values())
    best = [name for name, curve in shown.items() if curve["1000"] == most]
    highest = f"{', '.join(best)} {'is' if len(best) == 1 else 'are'}"
    left, n = len(runs) - len(shown), len(runs[0].evaluation.query_ids)
    return vega.picture(
        {"layer": layers, "height": 320},
        title="Recall of spans over tokens",
        width=width,
        about=f"{counted(n, 'query')}, tokens as {spans[0]['tokens']}",
        notes=[f"{counted(left, 'run')} more cannot be told apart, and are left out."] * (left > 0),
        said=[f"At 1,000 tokens {highest} highest, with {most:.3f}."],
    )
