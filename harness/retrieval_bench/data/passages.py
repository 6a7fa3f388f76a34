"""Search for the documents that contain a passage: exact text, but for Unicode form (NFC) and white
space."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable

from retrieval_bench.core.types import Document


def folded(text: str) -> str:
    """``text`` in Unicode form NFC, each run of white space one blank, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def holders(documents: Iterable[Document], passages: Collection[str]) -> dict[str, list[str]]:
    """Passage -> ids of the documents whose text contains it, in their order; each passage is a
    key.

    Args:
        passages: folded, none empty.
    """
    holders: dict[str, list[str]] = {passage: [] for passage in passages}
    # A word that is neither the first nor the last of a passage is a whole word of its document.
    by_word: defaultdict[str, list[str]] = defaultdict(list)
    for passage in holders:
        by_word[max(passage.split(" ")[1:-1], key=len, default="")].append(passage)
    for document in documents:
        text = folded(document.text)
        for word in {"", *text.split(" ")} & by_word.keys():
            for passage in by_word[word]:
                if passage in text:
                    holders[passage].append(document.id)
    return holders
