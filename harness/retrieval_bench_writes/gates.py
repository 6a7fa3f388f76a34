"""Records of ``bench --writes``, and gates by them: does it show later than it did?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from retrieval_bench.core.errors import ConfigError, Interrupted, RecordError
from retrieval_bench.core.installed.installation import typed
from retrieval_bench.core.plugins import describe_faults
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.environment import git_revision, machine
from retrieval_bench.runs.records import check_version, read_json, to_json
from retrieval_bench_regress.gate import Regression, worst
from retrieval_bench_regress.latency_gates import (
    LatencyGate,
    LatencyResult,
    not_measured,
    other_data,
    p_share_no_larger,
)
from retrieval_bench_regress.policy import OF_WRITES, load_policy
from retrieval_bench_regress.regress import Request
from retrieval_bench_regress.session import subject_of
from retrieval_bench_writes.freshness import Freshness
from retrieval_bench_writes.measured import LIMIT_S, Plan, freshness

_LEVEL = 0.05
"""p of "no more zombies than then" below which there are more."""

_P95 = 95.0


def record_of(fresh: Freshness) -> str:
    """Record that ``--writes-record`` writes."""
    return to_json({"schema_version": fresh.schema_version, **fresh.as_dict()})


def read_record(path: Path) -> Freshness:
    """The record that ``--writes-record`` wrote, but for blocks and kills, which judge nothing.

    Raises:
        RecordError: there is none, of a newer version, or damaged.
    """
    document = read_json(path, "a record of bench --writes-record")
    check_version(document, Freshness.schema_version, "record of writes", path)
    try:
        judged_by = {**document, "while_writing": None, "kills": None}
        return TypeAdapter(Freshness).validate_python(judged_by)
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
    """Repeat a record, and judge what is measured now by it and by the limits of the policy. Where
    the data or the machine are others, nothing is written, and nothing is judged.

    Raises:
        HarnessError: what was given cannot be used, or nothing was measured.
        Interrupted: the user stopped it.
    """
    then = read_record(path)
    anew = typed(
        *("bench", request.retriever),
        dataset=request.dataset,
        split=request.split,
        k=then.k,
        set=request.overrides,
        writes=f"{then.rate:g}",
        write_count=then.count,
        write_limit=None if then.limit_s == LIMIT_S else f"{then.limit_s:g}",
        writes_into=into,
        writes_record=path,
    )
    if then.status != "complete":
        raise ConfigError(
            "a record that was stopped before its end",
            where=str(path),
            accepted="a record of a whole measurement",
            fix=f"measure it: {anew}",
        )
    policy = load_policy(request.policy, k=None)
    policy.require(policy.writes, of=" and ".join(OF_WRITES))
    experiment = prepare(
        [request.retriever],
        request.dataset,
        split=request.split,
        k=then.k,
        overrides=request.overrides,
        save=False,
    )
    candidate, data = experiment.candidates[0], experiment.dataset
    here = str(machine()["fingerprint"])
    if (candidate.name, data.name) != (then.retriever, then.dataset):
        experiment.close()
        raise ConfigError(
            f"{candidate.name} on {data.name} beside a record of {then.retriever} on "
            f"{then.dataset}",
            where=str(path),
            accepted="a record of the same retriever and dataset",
            fix=f"measure it: {anew}",
        )
    changed = candidate.config.get("hash") != then.config
    notes = ["The settings of the retriever are not those of the record."] * changed
    subject = subject_of(experiment, here, git_revision())
    whole = Regression(subject, policy, {}, None, None, notes=tuple(notes))
    why = other_data(then, data.split, data.fingerprint)
    if not why and then.machine != here:
        why = f"the record is of machine {then.machine}: times of another machine say nothing here"
    if why:
        experiment.close()
        judged = not_measured(policy.writes, why)
        return replace(whole, latency=judged, advice=(f"Make a record here: {anew}",))
    plan = Plan(then.rate, then.count, then.limit_s, into, seed=then.seed)
    now = freshness(experiment, plan, reporter=reporter)
    if now.status != "complete":
        raise Interrupted("interrupted: nothing was judged")
    gates = tuple(gates_of(then, now, policy.writes))
    reasons = "; ".join(gate.reason for gate in gates if gate.verdict is not Verdict.EQUIVALENT)
    verdict = worst(gate.verdict for gate in gates)
    judged = LatencyResult(verdict, gates, reasons or "no sign of it showing later")
    return replace(whole, latency=judged, warnings=tuple(now.warnings))


def gates_of(then: Freshness, now: Freshness, limits: Mapping[str, float]) -> Iterator[LatencyGate]:
    """``visible_p95`` and ``zombies``, each where it has a limit.

    The p95 fails where its interval now lies above that of then and the limit, and passes where
    it is shown not to be above both: intervals, one against the other. Zombies fail where
    Fisher's exact test shows more of them, and their share rose by more than the limit.
    """
    for name, limit in limits.items():
        judge = _visible if name == "visible_p95" else _zombies
        verdict, reason, ratio = judge(then, now, limit)
        yield LatencyGate(name, verdict, limit, ratio, reason=reason)


Gate = tuple[Verdict, str, float | None]
"""Verdict, reason, and figure now over that of then."""


def _visible(then: Freshness, now: Freshness, limit: float) -> Gate:
    before, after = then.visible.at(_P95), now.visible.at(_P95)
    most, least, high = before.surely_by, after.surely_after, after.surely_by
    if reason := before.reason or after.reason or before.unsure or after.unsure:
        return Verdict.MISSING, reason, None
    if most is None:
        return Verdict.MISSING, "it was over the limit then", None
    bound, verdict = (1 + limit) * most, Verdict.UNDECIDED
    if least > bound:
        verdict = Verdict.WORSE
    elif high is not None and high <= bound:
        verdict = Verdict.EQUIVALENT
    ends = after.at_most_s, before.at_most_s
    ratio = None if ends[0] is None or not ends[1] else ends[0] / ends[1]
    told = "over the limit" if high is None else f"{high:.3g} s"
    return verdict, f"visible_p95 is {least:.3g} s to {told} now, at most {most:.3g} s then", ratio


def _zombies(then: Freshness, now: Freshness, limit: float) -> Gate:
    old, new = then.deleted.outdated, now.deleted.outdated
    why = f"{new.count:,} zombies in {new.n:,} deletions now, {old.count:,} in {old.n:,} then"
    if not (old.n and new.n):
        return Verdict.MISSING, why, None
    more = p_share_no_larger((new.count, new.n), (old.count, old.n)) < _LEVEL
    rises = new.count / new.n - old.count / old.n > limit
    return Verdict.WORSE if more and rises else Verdict.EQUIVALENT, why, None
