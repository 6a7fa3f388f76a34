"""Short names of systems for the marks that say "significantly better than"."""

from __future__ import annotations

from collections.abc import Sequence

LETTERS = "abcdefghijklmnoprstuvwxyz"
"""Without q, whose raised form many fonts lack."""


def letter(place: int, of: int) -> str:
    """What stands for system ``place``, from 0, of ``of``: letters, numbers where they run out."""
    return LETTERS[place] if of <= len(LETTERS) else str(place + 1)


def marks(places: Sequence[int], of: int) -> str:
    """Those of several systems, rising; four or more in a row as a range: "abd", "a-e", "1,4-9"."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    parts: list[str] = []
    for run in runs:
        names = [letter(place, of) for place in run]
        parts += [f"{names[0]}-{names[-1]}"] if len(run) > 3 else names
    return ("" if of <= len(LETTERS) else ",").join(parts)
