"""Modes add ``compare --until-decided``, and compare runs where nothing is judged."""

from retrieval_bench.capabilities import Capability

_PACKAGE = "retrieval_bench_modes"

CAPABILITY = Capability(
    rank=40,
    options={"compare": f"{_PACKAGE}.commands.until_decided:UNTIL_DECIDED"},
    keys={"comparison": f"{_PACKAGE}.document:Modes"},
    services={
        "compare runs without judgements": f"{_PACKAGE}.unjudged:compare_unjudged",
        "show how alike runs answer": f"{_PACKAGE}.tables.likeness:likeness_tables",
        "show in short how alike runs answer": f"{_PACKAGE}.tables.likeness:unjudged_brief",
        "compare runs measured until decided": f"{_PACKAGE}.until_decided:compare_until_decided",
        "measure until decided": f"{_PACKAGE}.asking:prepare_until_decided",
        "check options of measuring until decided": (
            f"{_PACKAGE}.commands.until_decided:check_options"
        ),
    },
)
