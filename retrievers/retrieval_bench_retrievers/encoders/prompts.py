"""Prompts that an encoder was trained with: which families of models ask for them, what a model's
own folder says, and the line of a config that sets what is missing.

A text without its prompt is encoded all the same, and nearby words still find each other, so
nothing but a lower value shows that it is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from retrieval_bench.core.notices import Code, Notice

_WEB_SEARCH = "Given a web search query, retrieve relevant passages that answer the query"
_REPRESENT = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class Family:
    """Models that share their prompts.

    Attributes:
        names: pattern of the last part of a name, in lower case.
        query, document: put before each text; empty = none.
        required: whether the card says that it takes them; otherwise they are recommended.
        source: where that is said.
    """

    names: str
    query: str
    document: str = ""
    required: bool = True
    source: str = ""


FAMILIES = (
    Family(r"bge-m3|bge-reranker|-unsupervised", "", source="no prompts: their cards"),
    Family(
        r"\be5-(mistral|omni)|\be5\b.*instruct|^sfr-embedding|^linq-embed",
        f"Instruct: {_WEB_SEARCH}\nQuery: ",
        source="card of intfloat/e5-mistral-7b-instruct: the model was trained with instructions",
    ),
    Family(
        r"\be5\b",
        "query: ",
        "passage: ",
        source="card of intfloat/multilingual-e5-small; microsoft/unilm, e5/model_config.py",
    ),
    Family(
        r"\bbge-.*zh",
        "为这个句子生成表示以用于检索相关文章：",
        required=False,
        source="card of BAAI/bge-large-zh-v1.5: recommended for short queries",
    ),
    Family(
        r"\bbge-(multilingual-gemma2|en-icl)",
        f"<instruct>{_WEB_SEARCH}\n<query>",
        source="card of BAAI/bge-multilingual-gemma2",
    ),
    Family(
        r"\bbge-.*\ben\b",
        _REPRESENT,
        required=False,
        source="card of BAAI/bge-base-en-v1.5: slightly lower without, recommended for short "
        "queries",
    ),
    Family(
        r"\bgte-qwen|\bgte-.*instruct",
        f"Instruct: {_WEB_SEARCH}\nQuery: ",
        source="card of Alibaba-NLP/gte-Qwen2-1.5B-instruct; other gte models take none",
    ),
    Family(
        r"\bnomic-embed-text|\bmodernbert-embed",
        "search_query: ",
        "search_document: ",
        source="card of nomic-ai/nomic-embed-text-v1.5: must include a task instruction prefix",
    ),
    Family(
        r"\bnomic-embed-code",
        "Represent this query for searching relevant code: ",
        source="card of nomic-ai/nomic-embed-code",
    ),
    Family(
        r"\barctic-embed.*v2", "query: ", source="card of Snowflake/snowflake-arctic-embed-l-v2.0"
    ),
    Family(
        r"\barctic-embed",
        _REPRESENT,
        source="card of Snowflake/snowflake-arctic-embed-m; mteb, arctic_models.py",
    ),
    Family(
        r"\bjina-embeddings-v3",
        "Represent the query for retrieving evidence documents: ",
        "Represent the document for retrieval: ",
        source="card of jinaai/jina-embeddings-v3; mteb, jina_models.py",
    ),
    Family(
        r"\bjina-embeddings-v4", "Query: ", "Passage: ", source="card of jinaai/jina-embeddings-v4"
    ),
    Family(
        r"\bqwen3-embedding",
        f"Instruct: {_WEB_SEARCH}\nQuery:",
        required=False,
        source="card of Qwen/Qwen3-Embedding-0.6B: 1 to 5 % lower without",
    ),
    Family(
        r"\binstructor-",
        "Represent the question for retrieving supporting documents: ",
        "Represent the document for retrieval: ",
        source="card of hkunlp/instructor-large",
    ),
    Family(
        r"mxbai-embed-de\b",
        "query: ",
        "passage: ",
        source="card of mixedbread-ai/deepset-mxbai-embed-de-large-v1",
    ),
    Family(
        r"\bmxbai-embed-(2d-)?large",
        _REPRESENT,
        source="card of mixedbread-ai/mxbai-embed-large-v1: have to provide the prompt",
    ),
    Family(r"\buae-large", _REPRESENT, required=False, source="card of WhereIsAI/UAE-Large-V1"),
    Family(
        r"\bembeddinggemma",
        "task: search result | query: ",
        "title: none | text: ",
        source="card of google/embeddinggemma-300m",
    ),
    Family(
        r"\bruri-(small|base|large)", "クエリ: ", "文章: ", source="card of cl-nagoya/ruri-base"
    ),
)
"""The first that fits a name is that of the model; one without prompts asks for none."""

_TELLING = 4
"""Words of a prompt from which on it is a sign by itself; shorter ones take both of a pair."""

_MUST = re.compile(r"\b(must|should|has to|have to|needs?|requires?|required|important)\b", re.I)
_NEED_NOT = re.compile(r"\b(not|no|without|never|optional(ly)?)\b|n't\b", re.I)
_QUERY = re.compile(r"(^|[._-])(query|queries|question)", re.I)
_DOCUMENT = re.compile(r"(^|[._-])(document|doc|passage|corpus)", re.I)
_HUB_FOLDER = re.compile(r"models--(?:.+--)?(.+)")


def missing(
    name: str,
    folder: Path | None,
    prompts: Mapping[str, str],
    chosen: Iterable[str],
    own: Mapping[str, str | None],
) -> Notice | None:
    """The sentence on prompts that the model asks for and does not get; None where it asks for none
    or has them.

    Args:
        name: of the model, as it was given.
        folder: with its files, None where it is not known.
        prompts: in use, by ``query`` and ``document``.
        chosen: of these, the ones that the config sets; nobody is told of them, even if empty.
        own: all prompts that the model has.
    """
    settled = {role for role in ("query", "document") if prompts[role] or role in chosen}
    asked = next(_asked(name, folder, own), None)
    if asked is None:
        return None
    texts = {"query": asked.query, "document": asked.document}
    absent = [role for role, text in texts.items() if text and role not in settled]
    if not absent:
        return None
    lines = {role: prompts[role] or text for role, text in texts.items()}
    line = ", ".join(
        f"{role}: {json.dumps(text, ensure_ascii=False)}" for role, text in lines.items() if text
    )
    of = " and ".join({"query": "queries", "document": "documents"}[role] for role in absent)
    must = "asks for" if asked.required else "recommends"
    effect = ": dense rankings may be underrated" if asked.required else ""
    text = (
        f"{name} gets no prompt before {of}, which {asked.source} {must}{effect}. Add to its "
        f"parameters: prompts: {{{line}}}"
    )
    return Notice(text, Code.PROMPTS if asked.required else Code.NOTE)


def _asked(name: str, folder: Path | None, own: Mapping[str, str | None]) -> Iterator[Family]:
    """What asks for prompts, the surest first; the texts are the model's own where it has some."""
    card = _Card.of(folder)
    named, base = _family([name, *_folder_names(folder), *card.names]), _family(card.bases)
    texts = {
        role: next((text for key, text in own.items() if text and pattern.search(key)), "")
        for role, pattern in (("query", _QUERY), ("document", _DOCUMENT))
    }
    if named is not None:
        if named.query:
            query, document = texts["query"] or named.query, texts["document"] or named.document
            yield replace(named, query=query, document=document, source="its card")
        return
    if any(texts.values()):
        yield Family("", **texts, required=False, source="its config_sentence_transformers.json")
    yield from card.prompts()
    if base is not None and base.query:
        source = f"the card of {card.bases[0]}, which it was made from,"
        yield replace(base, required=False, source=source)


def _family(names: Iterable[str]) -> Family | None:
    """The family of the first name that is known."""
    for name in names:
        last = re.split(r"[/\\]", name.rstrip("/\\"))[-1].casefold().replace("_", "-")
        for family in FAMILIES:
            if re.search(family.names, last):
                return family
    return None


def _folder_names(folder: Path | None) -> list[str]:
    """The name of the folder, and the model's where a hub's library made the folder."""
    if folder is None:
        return []
    hub = [match[1] for part in folder.parts if (match := _HUB_FOLDER.fullmatch(part))]
    return [folder.name, *hub]


@dataclass(frozen=True, slots=True)
class _Card:
    """What the files of a model say of it.

    Attributes:
        names: that it has there.
        bases: models that it was made from.
        lines: of the text for people.
    """

    names: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path | None) -> _Card:
        """The card in ``folder``; empty where there is none, or none that can be read."""
        if folder is None:
            return cls()
        readme = _text(folder / "README.md")
        head: Mapping[str, Any] = {}
        body = readme
        if readme.startswith("---") and readme.count("---") > 1:
            _, front, body = readme.split("---", 2)
            head = _mapping(front)
        declared = _mapping(_text(folder / "config.json")).get("_name_or_path")
        bases = _texts(head.get("base_model"))
        index = head.get("model-index")
        entries = index if isinstance(index, list) else []
        names = [str(one["name"]) for one in entries if isinstance(one, Mapping) and "name" in one]
        heading = re.search(r"^#+[ \t]+([\w./-]+)", body, re.MULTILINE)
        names += [heading[1]] if heading else []
        names += [one for one in _texts(declared) if one not in bases]
        return cls(tuple(names), tuple(bases), tuple(body.splitlines()))

    def prompts(self) -> Iterator[Family]:
        """Prompts of a family that the text quotes, all of that family; required where a sentence
        says so, none where one says that they are not needed."""
        for family in FAMILIES:
            wanted = [text for text in (family.query, family.document) if text]
            quoting = [[line for line in self.lines if _quotes(line, text)] for text in wanted]
            telling = len(wanted) == 2 or len(family.query.split()) >= _TELLING
            if not telling or not all(quoting):
                continue
            lines = [line for some in quoting for line in some]
            if any(_NEED_NOT.search(line) for line in lines):
                return
            required = any(_MUST.search(line) for line in lines)
            yield replace(family, required=required, source="its card")
            return


def _quotes(line: str, prompt: str) -> bool:
    """Return whether ``prompt`` begins what stands between quotation marks of ``line``."""
    return any(f"{mark}{prompt.rstrip()}" in line for mark in "\"'`“‘")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _mapping(text: str) -> Mapping[str, Any]:
    """YAML, of which JSON is a part, where it is a mapping; else an empty one."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return content if isinstance(content, Mapping) else {}


def _texts(value: Any) -> list[str]:
    return [str(one) for one in (value if isinstance(value, list) else [value]) if one]
