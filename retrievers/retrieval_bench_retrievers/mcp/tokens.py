"""Usage whose tokens are counted when somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from retrieval_bench.core.types import Usage


class LazyUsage(Mapping[str, Usage]):
    """Usage by stage that is counted when somebody looks, which is after the call was timed."""

    def __init__(self, makers: Mapping[str, Callable[[], Usage]]) -> None:
        self._makers = makers
        self._made: dict[str, Usage] = {}

    def __getitem__(self, stage: str) -> Usage:
        if stage not in self._made:
            self._made[stage] = self._makers[stage]()
        return self._made[stage]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
