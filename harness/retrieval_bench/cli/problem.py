"""Document where the input was wrong."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import Kind


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault of the input.

    Attributes:
        kind: of a closed list, for programs.
        what: was given.
        where: it was given; empty where that is plain.
        accepted: what may be given.
        do: what to do.
        faults: a line for each thing wrong, where there are several.
    """

    kind: Kind
    what: str
    where: str
    accepted: str
    do: str
    faults: list[str]


@dataclass(frozen=True, slots=True)
class Error(Documented):
    """Document that is printed where the input was wrong.

    Attributes:
        error: what was given, where, what is accepted, what to do.
        code: the exit code.
    """

    error: Fault
    code: int
