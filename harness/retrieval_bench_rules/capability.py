"""Rules add truth that is no id: ``expect`` and ``forbid`` of queries, metrics of slots, files of
cases, and ``--no-forbidden``."""

from retrieval_bench.capabilities import Capability

_PACKAGE = "retrieval_bench_rules"

CAPABILITY = Capability(
    rank=160,
    options={
        "bench": f"{_PACKAGE}.commands.no_forbidden:BENCH",
        "compare": f"{_PACKAGE}.commands.no_forbidden:COMPARE",
    },
    keys={"run": f"{_PACKAGE}.facts:SlotsOfRun"},
    services={
        "read rules": f"{_PACKAGE}.slots:read_rules",
        "decide by rules": f"{_PACKAGE}.slots:decide",
        "judge as kept by rules": f"{_PACKAGE}.slots:as_kept",
        "judge as decided in runs by rules": f"{_PACKAGE}.slots:with_decided",
        "look at rules": f"{_PACKAGE}.looked_at:look_at_rules",
        "say what was understood": f"{_PACKAGE}.formats.cases:understood",
        "metrics of rules": f"{_PACKAGE}.metrics:METRICS",
        "choose metrics of rules": f"{_PACKAGE}.metrics:usual",
    },
    formats={
        "cases": f"{_PACKAGE}.formats.cases:CASES",
        "case_rules": f"{_PACKAGE}.formats.cases:CASE_RULES",
    },
    files={"cases": (f"{_PACKAGE}.formats.case_schema:cases", "questions with their truth")},
)
