"""Pictures adds none of the commands: it draws what others show."""

from retrieval_bench.capabilities import Capability

_PACKAGE = "retrieval_bench_pictures"

CAPABILITY = Capability(
    services={
        "keep pictures of runs": f"{_PACKAGE}.of_runs:keep_pictures",
        "draw a run": f"{_PACKAGE}.of_runs:named_pictures",
        "draw times side by side": f"{_PACKAGE}.of_runs:side_by_side",
        "draw": f"{_PACKAGE}.draw:svg",
    },
)
