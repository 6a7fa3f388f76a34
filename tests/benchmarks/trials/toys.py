"""The toy repositories: what somebody gets who is to measure their search, and what is changed.

All four search one handbook of 40 pages. ``questions.md`` has a question for each page, with the
phrase that answers it; ``trap.md`` has twelve of them.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TRAP = (
    *("laptop", "leave", "sick", "remote", "travel", "hotel"),
    *("phone", "vpn", "printer", "badge", "lunch", "fire"),
)
"""Pages whose questions the trap has; the change wins that of the first."""
SENTENCE = (
    "Measure the search in this repository with the questions in questions.md, stop changes that "
    "make it worse, and tell by the twelve questions in trap.md whether a change makes it better."
)
"""All that is said."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a file.

    Attributes:
        file: its name.
        old: text that stands there once.
        new: what stands there afterwards.
    """

    file: str
    old: str
    new: str

    def apply(self, folder: Path) -> None:
        """Change it, or fail where the text is not there once."""
        path = folder / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.file}: {self.old}"
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


_RANK = {
    "nothing": Edit("rank.mjs", "/** The best pages", "/** Up to `limit` pages, the best"),
    "worse": Edit("rank.mjs", "const text = `${title} ${body}`", "const text = title"),
    "one won": Edit("rank.mjs", "const synonyms = {}", 'const synonyms = { laptop: "notebook" }'),
}
_PYTHON = {
    "nothing": Edit("handbook.py", "[: self.k]", "[: self.k]  # the best"),
    "worse": Edit("handbook.py", "words = set(split(text))", "words = set(split(text)[:2])"),
    "one won": Edit("handbook.py", "str] = {}", 'str] = {"laptop": "notebook"}'),
}


@dataclass(frozen=True, slots=True)
class Toy:
    """A repository.

    Attributes:
        edits: a change of each kind: "nothing", "worse", "one won".
        serve: what starts its service; empty where it is none.
    """

    edits: dict[str, Edit]
    serve: tuple[str, ...] = ()


TOYS = {
    "mcp": Toy(_RANK),
    "command": Toy(_RANK),
    "langchain": Toy(_PYTHON),
    "http": Toy(_RANK, ("node", "server.mjs")),
}


def make(name: str, folder: Path) -> None:
    """Write a toy into a new folder."""
    shutil.copytree(HERE / "toys" / name, folder)
    if name != "langchain":
        shutil.copy(HERE / "toys" / "rank.mjs", folder)
    (folder / "handbook").mkdir()
    rows = [line.split("\t") for line in (HERE / "handbook.tsv").read_text("utf-8").splitlines()]
    for page, title, text, *_ in rows:
        (folder / "handbook" / f"{page}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    for file, pages in (("questions.md", [row[0] for row in rows]), ("trap.md", TRAP)):
        lines = [
            f"| {q} | {phrase} | {page}.md |" for page, _, _, q, phrase in rows if page in pages
        ]
        table = "\n".join(["| question | answer | page |", "|---|---|---|", *lines, ""])
        (folder / file).write_text(table, encoding="utf-8")
