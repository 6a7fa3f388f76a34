"""The search of the handbook: `make_retriever()` is what the chain uses."""

import math
import re
from pathlib import Path

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

FOLDER = Path(__file__).parent / "handbook"
SYNONYMS: dict[str, str] = {}


def split(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


class HandbookRetriever(BaseRetriever):
    pages: list[Document]
    known: dict[str, int]
    k: int = 5

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        asked = {SYNONYMS.get(word, word) for word in split(query)}
        scored: list[tuple[float, str, Document]] = []
        for page in self.pages:
            shared = asked & page.metadata["words"]
            score = sum(math.log(1 + len(self.pages) / self.known[word]) for word in shared)
            if score:
                scored.append((-score, page.metadata["file"], page))
        return [page for _, _, page in sorted(scored, key=lambda s: s[:2])][: self.k]


def make_retriever(k: int = 5) -> HandbookRetriever:
    pages: list[Document] = []
    known: dict[str, int] = {}
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        words = set(split(text))
        for word in words:
            known[word] = known.get(word, 0) + 1
        pages.append(
            Document(
                text,
                metadata={"file": path.name, "source": f"handbook/{path.name}", "words": words},
            )
        )
    return HandbookRetriever(pages=pages, known=known, k=k)
