"""Launches add no command: what measures with ``--launches`` does it by them."""

from retrieval_bench.capabilities import Capability

CAPABILITY = Capability(
    services={"measure in fresh processes": "retrieval_bench_launches.launches:LaunchSpec"}
)
