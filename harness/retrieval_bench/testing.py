"""What authors of retrievers test theirs with; packages beside the kernel bring it."""

from typing import Any

from retrieval_bench.capabilities import brought


def __getattr__(name: str) -> Any:
    return brought(f"testing.{name}")
