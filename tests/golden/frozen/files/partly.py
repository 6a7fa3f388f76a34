"""An approximate search that is told by its parameters how much it sees."""

from collections.abc import Iterable, Sequence

from retrieval_bench import Capabilities, Document, Query, Retriever


class Partly(Retriever):
    """Counts shared words in ``eighths`` of eight of its documents, or with ``exact`` in all."""

    def __init__(self, *, eighths: int = 8, exact: bool = False) -> None:
        self.eighths, self.exact = eighths, exact
        self.held: list[Document] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(exact=self.exact, filters=True)

    def index(self, documents: Iterable[Document]) -> None:
        self.held = sorted(documents, key=lambda one: one.id)

    def search(self, query: Query, k: int) -> Sequence[tuple[str, float]]:
        words = set(query.text.lower().split())
        found = [
            (one.id, len(words & set(one.contents.lower().split())))
            for at, one in enumerate(self.held)
            if (self.exact or at % 8 < self.eighths)
            and (query.filter is None or query.filter.matches(one.metadata))
        ]
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:k]
