"""A retriever that writes down what it is told and asked, also in processes of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SOURCE = '''
import json
from retrieval_bench import Retriever
from retrieval_bench.core.config import build_retriever


class Spy(Retriever):
    """A BM25."""

    def __init__(self, *, k1=0.9):
        self.inner = build_retriever({"target": "bm25", "params": {"k1": k1}})

    @property
    def capabilities(self):
        return self.inner.capabilities

    def use_language(self, language):
        self._say(language=language)
        self.inner.use_language(language)

    def use_filters(self, fields):
        self.inner.use_filters(fields)

    def index(self, documents):
        self.inner.index(documents)

    def search(self, query, k):
        self._say(k=k, filter=query.filter is not None)
        return self.inner.search(query, k)

    def _say(self, **told):
        with open("spy.log", "a") as log:
            log.write(json.dumps(told) + "\\n")
'''

CONFIGS = {
    "spy.yaml": "name: spy\ntarget: spy.py:Spy\n",
    "two.yaml": "name: two\ntarget: spy.py:Spy\nparams: {k1: 1.5}\n",
    "both.yaml": "name: both\ntarget: hybrid\nparams:\n  depth: 4\n  legs:\n"
    "    - {name: spy, target: 'spy.py:Spy'}\n"
    "    - {name: two, target: 'spy.py:Spy', params: {k1: 1.5}}\n",
}
"""Files that name it."""


def write_spy(folder: Path) -> None:
    """Put the retriever and its configs into ``folder``."""
    for name, text in {"spy.py": SOURCE, **CONFIGS}.items():
        (folder / name).write_text(text, encoding="utf-8")


def heard(folder: Path, what: str) -> set[Any]:
    """All values that were told of ``what``: "language", "k" or "filter"."""
    log = folder / "spy.log"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return {entry[what] for entry in map(json.loads, lines) if what in entry}
