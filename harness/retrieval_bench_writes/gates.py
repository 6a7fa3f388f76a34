"""Records of ``bench --writes``, and gates by them: does it show later than it did?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench.core.plugins import describe_faults
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.environment import git_revision
from retrieval_bench.runs.records import check_version, read_json, to_json
from retrieval_bench_regress.gate import Regression, worst
from retrieval_bench_regress.latency_gates import LatencyGate, LatencyResult, p_share_no_larger
from retrieval_bench_regress.policy import load_policy
from retrieval_bench_regress.regress import Request
from retrieval_bench_regress.session import subject_of
from retrieval_bench_writes.freshness import Freshness
from retrieval_bench_writes.measured import Plan, freshness

VISIBLE_LIMIT = 0.25
"""A p95 of the time to visible that is longer by more than this share fails."""

_LEVEL = 0.05
"""p of "no more zombies than then" below which there are more."""

_P95 = 95.0


def record_of(fresh: Freshness) -> str:
    """Record that ``--writes-record`` writes."""
    return to_json({"schema_version": fresh.schema_version, **fresh.as_dict()})


def read_record(path: Path) -> Freshness:
    """The record that ``--writes-record`` wrote.

    Raises:
        RecordError: there is none, of a newer version, or damaged.
    """
    document = read_json(path, "a record of bench --writes-record")
    check_version(document, Freshness.schema_version, "record of writes", path)
    try:
        return TypeAdapter(Freshness).validate_python(document)
    except ValidationError as problem:
        raise RecordError(
            f"it lacks something: {describe_faults(problem)[0]}",
            where=str(path),
            accepted="a record of this version",
            fix="measure again",
        ) from None


def regress_writes(
    request: Request, path: Path, into: str | None, *, reporter: Reporter | None = None
) -> Regression:
    """Repeat a record, and judge what is measured now by it.

    Raises:
        HarnessError: what was given cannot be used, or nothing was measured.
    """
    then = read_record(path)
    experiment = prepare(
        [request.retriever],
        request.dataset,
        split=request.split,
        k=then.k,
        overrides=request.overrides,
        save=False,
    )
    given = (experiment.candidates[0].name, experiment.dataset.name)
    if given != (then.retriever, then.dataset):
        experiment.close()
        raise ConfigError(
            f"{' on '.join(given)} beside a record of {then.retriever} on {then.dataset}",
            where=str(path),
            accepted="a record of the same retriever and dataset",
            fix="measure it: bench --writes R --writes-record FILE",
        )
    plan = Plan(then.rate, then.count, then.limit_s, into, seed=then.seed)
    now = freshness(experiment, plan, reporter=reporter)
    gates = tuple(gates_of(then, now))
    reasons = "; ".join(gate.reason for gate in gates if gate.verdict is not Verdict.EQUIVALENT)
    verdict = worst(gate.verdict for gate in gates)
    return Regression(
        subject_of(experiment, "", git_revision()),
        load_policy(request.policy, k=then.k),
        {},
        None,
        LatencyResult(verdict, gates, reasons or "no sign of it showing later"),
        warnings=tuple(now.warnings),
    )


def gates_of(then: Freshness, now: Freshness) -> Iterator[LatencyGate]:
    """``visible_p95``, and ``zombies``.

    The p95 fails where its interval now lies above that of then and the limit, and passes where
    it is shown not to be above both: exact intervals, one against the other. Zombies fail where
    Fisher's exact test shows more of them.
    """
    before, after = then.visible.at(_P95), now.visible.at(_P95)
    most, least = before.surely_by, after.surely_after
    gate: dict[str, Any] = {"gate": "visible_p95", "limit": VISIBLE_LIMIT}
    if before.reason or after.reason:
        yield LatencyGate(
            verdict=Verdict.MISSING, reason=before.reason or after.reason or "", **gate
        )
    elif most is None:
        why = "it was over the limit then"
        yield LatencyGate(verdict=Verdict.MISSING, reason=why, **gate)
    else:
        bound, high = (1 + VISIBLE_LIMIT) * most, after.surely_by
        verdict = Verdict.UNDECIDED
        if least > bound:
            verdict = Verdict.WORSE
        elif high is not None and high <= bound:
            verdict = Verdict.EQUIVALENT
        ends = after.at_most_s, before.at_most_s
        ratio = None if ends[0] is None or not ends[1] else ends[0] / ends[1]
        told = "over the limit" if high is None else f"{high:.3g} s"
        why = f"visible_p95 is {least:.3g} s to {told} now, at most {most:.3g} s then"
        yield LatencyGate(verdict=verdict, stored=ratio, reason=why, **gate)
    old, new = then.deleted.outdated, now.deleted.outdated
    why = f"{new.count:,} zombies in {new.n:,} deletions now, {old.count:,} in {old.n:,} then"
    verdict = Verdict.MISSING
    if old.n and new.n:
        p = p_share_no_larger((new.count, new.n), (old.count, old.n))
        verdict = Verdict.WORSE if p < _LEVEL else Verdict.EQUIVALENT
    yield LatencyGate("zombies", verdict, 0.0, reason=why)
