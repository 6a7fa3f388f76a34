"""An index that can be written to while it answers, and shows all of it at once."""

from collections.abc import Iterable, Sequence

from retrieval_bench import Capabilities, Document, Query, Retriever


class Writable(Retriever):
    """Counts shared words; with ``zombies`` what is deleted stays."""

    def __init__(self, *, zombies: bool = False, external: bool = False) -> None:
        self.zombies, self.external = zombies, external
        self.held: dict[str, set[str]] = {}

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(writes=True, external=self.external)

    def collection(self) -> str:
        return "notes" if self.external else ""

    def index(self, documents: Iterable[Document]) -> None:
        self.held = {document.id: set(document.contents.split()) for document in documents}

    def add(self, documents: Sequence[Document]) -> None:
        self.held |= {document.id: set(document.contents.split()) for document in documents}

    def delete(self, ids: Sequence[str]) -> None:
        for name in () if self.zombies else ids:
            self.held.pop(name, None)

    def search(self, query: Query, k: int) -> list[tuple[str, float]]:
        asked = set(query.text.split())
        hits = [(name, float(len(asked & held))) for name, held in self.held.items()]
        return sorted((hit for hit in hits if hit[1]), key=lambda hit: (-hit[1], hit[0]))[:k]
