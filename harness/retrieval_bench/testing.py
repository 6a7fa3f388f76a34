"""Tests for authors of retrievers, which a package beside the kernel brings."""

from typing import Any

from retrieval_bench.capabilities import brought


def __getattr__(name: str) -> Any:
    return brought(f"testing.{name}")
