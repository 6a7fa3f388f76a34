"""The documents and queries that the conformance suite uses unless a subclass brings its own.

Twenty short documents in five languages, no two alike; the first two share no script. Ids are meant
to hurt: their order is not the order of the list, digits sort as text, some hold blanks, marks or
letters beyond ASCII. Metadata are mutable on purpose, so that a retriever which writes to them is
seen. Every call builds new objects.
"""

from __future__ import annotations

import itertools
from typing import Any

from retrieval_bench.core.filters import Filter, parse_filter
from retrieval_bench.core.types import Document, Message, Query

_DOCUMENTS: tuple[tuple[str, str, str, str], ...] = (
    ("note 10", "en", "", "The moon pulls the ocean and raises tides twice in a day."),
    ("문서 3", "ko", "", "김치는 낮은 온도에서 천천히 발효되어 신맛이 깊어진다."),
    ("note 9", "en", "", "Glass turns soft when heated and can then be blown into bottles."),
    ("文档二", "zh", "", "竹子一天之内可以长高将近一米。"),
    ("zeta", "fr", "", "Le pain au levain demande du temps, de la farine et de la patience."),
    ("مقال 4", "ar", "", "تهاجر الطيور في الخريف نحو البلاد الدافئة."),
    (
        "10",
        "en",
        "Copper roofs",
        "Rain slowly covers the metal with a green layer that protects it.",
    ),
    ("9", "ko", "", "한강은 서울을 가로질러 서해로 흘러간다."),
    ("9a", "zh", "", "茶叶用热水冲泡，香气慢慢散开。"),
    ("été-7", "fr", "", "Les vignerons récoltent le raisin à la fin de septembre."),
    ("B", "ar", "", "يزرع الفلاحون النخيل قرب الواحات."),
    ("a", "en", "", "Bees find their way home by watching where the sun stands."),
    ("two  blanks", "ko", "제주도", "화산이 만든 섬에는 검은 돌담이 많다."),
    ("path/like:id#1", "zh", "", "地震发生时请躲在坚固的桌子下面。"),
    ("Z-1", "fr", "", "Un phare guide les navires pendant la nuit et le brouillard."),
    ("-", "ar", "", "صنع النحاسون قديما أواني جميلة في الأسواق."),
    ("doc_2", "en", "", "A chess engine searches millions of positions each second."),
    ("doc_11", "ko", "", "도서관에서는 책을 두 주 동안 빌릴 수 있다."),
    ("雪", "zh", "雪山", "登山者在海拔五千米处搭起帐篷。"),
    ("œuf", "fr", "Cuisine", "Battez les blancs en neige puis ajoutez le sucre."),
)


def sample_documents() -> list[Document]:
    """Twenty documents: English, Korean, Chinese, French and Arabic, four of each, on two shelves
    in turn."""
    shelves = itertools.cycle("ab")
    return [
        Document(
            doc_id,
            text,
            title,
            {"language": language, "tags": [language, "sample"], "shelf": next(shelves)},
        )
        for doc_id, language, title, text in _DOCUMENTS
    ]


def sample_filters() -> list[Filter]:
    """Two filters that most engines know, equal to and one of, and one that fits no document."""
    written: tuple[dict[str, Any], ...] = (
        {"shelf": "b"},
        {"language": {"in": ["ko", "fr"]}},
        {"language": "is"},
    )
    return [parse_filter(item) for item in written]


def sample_queries() -> list[Query]:
    """Eight queries: one or more in each language, one of a common word, one conversation."""
    texts = (
        "how does the moon raise the tides of the ocean",
        "green metal",
        "the",
        "김치 발효 온도",
        "竹子 长高",
        "pain au levain et farine",
        "هجرة الطيور في الخريف",
    )
    queries = [
        Query(f"query {number}", text, metadata={"tags": ["sample"]})
        for number, text in enumerate(texts, start=1)
    ]
    turns = (
        Message("user", "I keep insects."),
        Message("assistant", "Which ones?"),
        Message("user", "Bees: how do they find their home?"),
    )
    return [*queries, Query("query 8", turns[-1].content, turns, {"tags": ["sample", "chat"]})]


UNKNOWN_WORDS = "qxzvkj wvvrplk zzyqxw"
EMOJI = "🐝🏔️ 👩‍👩‍👧‍👦 🇰🇷 \U0001fae0"
RIGHT_TO_LEFT = "أين تذهب الطيور؟ \u200fשלום עולם"


def long_texts() -> tuple[str, str]:
    """Ten thousand words that mostly occur in the documents, and one word of ten thousand
    letters."""
    words = " ".join(text for *_, text in _DOCUMENTS).split()
    return " ".join(words[i % len(words)] for i in range(10_000)), "ab" * 5_000
