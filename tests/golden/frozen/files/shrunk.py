from collections.abc import Iterable, Sequence

from retrieval_bench import Document, Query, Retriever
from retrieval_bench.core.retriever import Rung


class Shrunk(Retriever):
    """Counts shared words, of the first few of a document."""

    def __init__(self, *, words: int = 2) -> None:
        self.words = words
        self.texts: dict[str, set[str]] = {}

    def index(self, documents: Iterable[Document]) -> None:
        self.texts = {d.id: {*d.contents.split()[: self.words]} for d in documents}

    def describe(self) -> dict[str, int]:
        return {"index_bytes": sum(len(" ".join(text)) for text in self.texts.values())}

    def search(self, query: Query, k: int) -> Sequence[tuple[str, float]]:
        scores = {i: len(text & {*query.text.split()}) for i, text in self.texts.items()}
        return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))[:k]

    def rungs(self) -> list[Rung]:
        return [
            Rung("exact", "all words", Shrunk(words=1000)),
            Rung("weights", "nobody knows", known=False),
            Rung("words", f"{self.words} are read", Shrunk(words=self.words)),
            Rung("index", "exhaustive"),
        ]
