"""``duet`` from words to the record on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench.core.progress import Reporter
from retrieval_bench.data import pinned
from retrieval_bench_duet import controller
from retrieval_bench_duet.controller import DuetProtocol
from retrieval_bench_duet.result import DuetResult, check_place, write_duet
from retrieval_bench_duet.revisions.environments import Setup
from retrieval_bench_duet.revisions.revisions import WORKTREE, place_of, same_code
from retrieval_bench_duet.sides import Place, Side


@dataclass(frozen=True, slots=True)
class Request:
    """Sides of a duet, in the user's words.

    Attributes:
        retriever: of both sides: name of a config, YAML file, ``module:Class``.
        a, b: of one side.
        rev_a, rev_b: git revision; None = the files as they are.
        set_a, set_b: ``dotted.path=value`` into the parameters of one side.
        overrides: into those of both.
        setup: how the code of a revision gets the packages it needs.
    """

    retriever: str | None = None
    a: str | None = None
    b: str | None = None
    rev_a: str | None = None
    rev_b: str | None = None
    set_a: Sequence[str] = ()
    set_b: Sequence[str] = ()
    overrides: Sequence[str] = ()
    setup: Setup | None = None

    def sides(self, reporter: Reporter | None = None) -> tuple[Side, Side]:
        """Both sides, with the code of their revisions.

        Raises:
            ConfigError: no retriever, two sides that are the same thing, or words without effect.
        """
        if self.retriever and self.a and self.b:
            raise ConfigError(
                f"--retriever {self.retriever} beside --a and --b",
                accepted="--a and --b, or --retriever with at most one of them",
                fix="leave out --retriever, which neither side would use",
            )
        if not self._revisions and self.setup not in (None, Setup()):
            raise ConfigError(
                "--extras or --setup without a revision",
                accepted="them beside --rev-a or --rev-b",
                fix="leave them out: both sides use the packages that are installed now",
            )
        given = {"a": self.a or self.retriever, "b": self.b or self.retriever}
        named = {side: name for side, name in given.items() if name}
        if missing := [f"side {side}" for side in given if side not in named]:
            raise ConfigError(
                f"no retriever for {' and '.join(missing)}",
                accepted="--a NAME --b NAME, or --retriever NAME with --rev-a and --rev-b, or with "
                "--set-a and --set-b",
                fix="name what is to be compared",
            )
        a = Side(named["a"], self._place(self.rev_a, reporter), (*self.overrides, *self.set_a))
        b = Side(named["b"], self._place(self.rev_b, reporter), (*self.overrides, *self.set_b))
        same = same_code(a.place, b.place)
        if (a.retriever, a.overrides) == (b.retriever, b.overrides) and (
            a.place == b.place or same
        ):
            raise ConfigError(
                same or f"both sides are {a.name}",
                accepted="sides that differ in --a and --b, in --rev-a and --rev-b, or in --set-a "
                "and --set-b",
                fix="change one of them; `selftest` measures a thing beside itself",
            )
        return a, b

    @property
    def _revisions(self) -> bool:
        return self.rev_a is not None or self.rev_b is not None

    def _place(self, revision: str | None, reporter: Reporter | None) -> Place:
        if not self._revisions:
            return Place.here()
        return place_of(revision or WORKTREE, setup=self.setup, reporter=reporter)


def duet(
    request: Request,
    dataset: str | Path,
    *,
    split: str = "test",
    k: int = 10,
    protocol: DuetProtocol | None = None,
    out: Path | None = None,
    reporter: Reporter | None = None,
) -> DuetResult:
    """Measure both sides, call by call in turn,, and save every time.

    Args:
        out: folder of the record; None = a new one under ``results/duets``.

    Raises:
        HarnessError: what was given cannot be used.
        RecordError: it cannot be saved; ``runs`` holds the result where there is one.
    """
    check_place(out)
    a, b = request.sides(reporter)
    result = controller.duet(
        a, b, pinned(dataset), split=split, k=k, protocol=protocol, reporter=reporter
    )
    try:
        return replace(result, folder=write_duet(result, out)) if result.launched else result
    except RecordError as problem:
        problem.runs = [result]
        raise
