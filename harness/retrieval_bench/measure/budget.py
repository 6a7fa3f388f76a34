"""Money that a measurement may spend: it ends before the call that would be one too many."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Usage

_WAITS = 20
"""Answers without money after which nobody believes that any will tell."""


@dataclass(slots=True)
class Budget:
    """Money that is left.

    Attributes:
        limit: in the currency of the usage; None = no limit.
        spent: so far, by all systems.
        dearest: the call that took most.
        silent: answers so far, while none said what it took.
        told: one did.
    """

    limit: float | None = None
    spent: float = 0.0
    dearest: float = 0.0
    silent: int = 0
    told: bool = False

    def pay(self, usage: Usage | None, name: str) -> None:
        """Pay for an answer of the retriever called ``name``.

        Raises:
            ConfigError: there is a limit, and no answer says what it takes.
        """
        if usage is None or usage.money is None:
            self.silent += not self.told
            if self.limit is not None and self.silent >= _WAITS:
                raise ConfigError(
                    f"--max-cost {self.limit:g}: {self.silent} answers of {name} say nothing of "
                    "money",
                    accepted="a retriever or step that reports usage with money, or with a price",
                    fix="report usage (report_usage, or a message of the model); where it tells "
                    "tokens or calls alone, add `price: {tokens_in: ..., tokens_out: ..., calls: "
                    "...}` to its config; or leave --max-cost out",
                )
            return
        self.told = True
        self.spent += usage.money
        self.dearest = max(self.dearest, usage.money)

    @property
    def empty(self) -> bool:
        """True if another call might take more than there is."""
        return self.limit is not None and self.spent + self.dearest > self.limit

    def spares(self, calls: int, made: int) -> bool:
        """Return whether ``calls`` more after the next, each like the mean of ``made``, would leave
        something."""
        if self.limit is None or not made:
            return True
        return self.spent + self.dearest + calls * self.spent / made <= self.limit
