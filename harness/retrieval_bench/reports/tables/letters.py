"""Short names of systems for the marks that say "significantly better than"."""

from __future__ import annotations

from collections.abc import Sequence

LETTERS = "abcdefghijklmnoprstuvwxyz"
"""Without q, whose raised form many fonts lack."""


def letter(place: int, of: int) -> str:
    """What stands for system ``place``, from 0, of ``of``: letters, numbers where they run out."""
    return LETTERS[place] if of <= len(LETTERS) else str(place + 1)


def marks(places: Sequence[int], of: int) -> str:
    """Those of several systems, rising; four or more in a row as a range: "abd", "a-e". Where
    letters run out, only how many they are: of numbers nobody would find one again."""
    if of > len(LETTERS):
        return str(len(places)) if places else ""
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
    return "".join(parts)


def meaning(of: int) -> str:
    """What raised marks stand for, as a note."""
    if of > len(LETTERS):
        return "raised number: shown to be better than so many systems"
    return "raised letters: shown to be better than these systems"
