"""What plays against what: a retriever, and the code that it is made of."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """Place that the code of a side comes from.

    Attributes:
        label: what is shown: "main (3f2a1c9)", "WORKTREE".
        folder: where its process stands, so that relative paths and ``configs/`` are found there.
        python: the interpreter, with what the code needs installed.
        sys_path: where modules are looked for.
        commit: of the code; None where files differ from any commit, or outside a repository.
        tree: when given, code found in it must be taken from it: a package that is also installed
            elsewhere would be measured in its place.
        origin: the user's own tree, which is not to be used in place of ``tree``.
        notes: what to know of it, such as submodules that are missing.
        state: of a tree that may be edited meanwhile, from :func:`.code_state`.
        roots: folders in ``tree`` that packages of it lie in, whether they are on the path or not.
        packages: where the packages lie that were installed for this commit alone, its own ones
            among them.
    """

    label: str
    folder: Path
    python: Path = Path(sys.executable)
    sys_path: tuple[str, ...] = ()
    commit: str | None = None
    tree: Path | None = None
    origin: Path | None = None
    notes: tuple[str, ...] = ()
    state: str | None = None
    roots: tuple[Path, ...] = ()
    packages: Path | None = None

    @classmethod
    def here(cls) -> Place:
        """The code that runs now, and the folder where the user stands."""
        return cls("", Path.cwd(), sys_path=tuple(sys.path))


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two.

    Attributes:
        retriever: the name of a config, a YAML file, ``module:Class``, or an inline mapping.
        overrides: ``dotted.path=value`` into its parameters.
    """

    retriever: str | Mapping[str, Any]
    place: Place = field(default_factory=Place.here)
    overrides: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that tells it from the other side."""
        given = self.retriever
        name = given if isinstance(given, str) else str(given.get("name", given.get("target")))
        words = [name, *self.overrides]
        return " ".join(words) + (f" at {self.place.label}" if self.place.label else "")
