"""What all retrievers share that match words: tokenizing a corpus and a query, and its health."""

from __future__ import annotations

import math
import sys
import time
from abc import abstractmethod
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError, DataError, counted
from retrieval_bench.core.metadata import MetadataTable
from retrieval_bench.core.notices import Code, Notice, coded
from retrieval_bench.core.retriever import Capabilities, Retriever, require_index, require_k
from retrieval_bench.core.scripts import (
    BLANKLESS,
    ScriptSample,
    main_scripts,
    no_common_script,
    script_profile,
)
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_retrievers.index_files import (
    read_json,
    read_metadata,
    write_json,
    write_metadata,
)
from retrieval_bench_retrievers.lexical.numbering import Numbered, Vocabulary, numbered
from retrieval_bench_retrievers.text.languages import language_advice
from retrieval_bench_retrievers.text.tokenizers import (
    TOKENIZERS,
    TokenizerSpec,
    WordTokenizer,
    make_tokenizer,
)

_CUTS_AT_BLANKS = ("whitespace", "word", "english", "bm25s")
_KEEPS_WORDS = (*_CUTS_AT_BLANKS, "lucene")  # which cuts Han, as StandardTokenizer does
_LARGE_SHARE = 0.3
_BLOCK = 2_000
"""Documents that are tokenized at a time."""


@dataclass(slots=True)
class TokenizedCorpus:
    """A corpus as numbers, documents in ascending order of their ids.

    Attributes:
        ids: document ids.
        vocabulary: term -> its number, from 0.
        tokens: int32, term numbers of all documents, one document after the other; whoever needs
            them no more may take them away, since they are as large as an index.
        lengths: int64 (documents,), how many of them each document has.
    """

    ids: list[str]
    vocabulary: dict[str, int]
    tokens: NDArray[np.int32]
    lengths: NDArray[np.int64]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        """The term numbers of each document."""
        end = 0
        for length in self.lengths.tolist():
            end += length
            yield self.tokens[end - length : end]


class LexicalRetriever(Retriever):
    """Base of BM25 in its implementations; a subclass builds an index and ranks positions."""

    accepts: ClassVar[Mapping[str, str]] = {"tokenizer": TOKENIZERS}
    variants: ClassVar[tuple[str, ...]]
    """Formulas that it knows."""

    def __init__(self, tokenizer: TokenizerSpec, variant: str, k1: float, b: float) -> None:
        self._spec = tokenizer
        self._tokenize = make_tokenizer(tokenizer)
        if variant not in self.variants:
            raise ConfigError(f"variant {variant!r}", accepted=", ".join(self.variants))
        self._variant = variant
        self._params = {"k1": checked_number("k1", k1), "b": checked_number("b", b, 1)}
        self._language: str | None = None
        self._ids: list[str] | None = None
        self._vocabulary: dict[str, int] = {}
        self._n_tokens = 0
        self._scripts: dict[str, float] = {}
        self._fields: tuple[str, ...] = ()
        self._metadata = MetadataTable(())

    @property
    def capabilities(self) -> Capabilities:
        """Exact, and filters before it ranks."""
        return Capabilities(filters=True)

    def use_filters(self, fields: Sequence[str]) -> None:
        """Keep these fields of the documents."""
        self._fields = tuple(fields)
        self._ids = None

    def use_language(self, language: str | None) -> None:
        """Take the dataset's language for stems and stop words, where the parameters name none."""
        self._tokenize = make_tokenizer(self._spec, language)
        self._language = language
        self._ids = None

    def index(self, documents: Iterable[Document]) -> None:
        """See :meth:`retrieval_bench.core.retriever.Retriever.index`; texts are title, blank, text.

        Raises:
            DataError: an id given twice.
        """
        sample = ScriptSample()
        corpus = self._read(documents, sample)
        self._build(corpus)
        self._ids = corpus.ids
        self._vocabulary = corpus.vocabulary
        self._n_tokens = int(corpus.lengths.sum())
        self._scripts = sample.profile()

    def search(self, query: Query, k: int) -> Ranking:
        """See :meth:`.Retriever.search`; only documents that share a term with
        the query are returned, whatever the sign of their score."""
        require_k(k)
        require_index(self._ids is not None, self)
        began = time.perf_counter_ns()
        counts = self._known_terms(query.text)
        tokenized = time.perf_counter_ns()
        ids: list[str] = []
        scores = np.empty(0)
        allowed = None if query.filter is None else self._metadata.mask(query.filter)
        filtered = time.perf_counter_ns()
        if counts and self._ids and (allowed is None or allowed.any()):
            positions, scores = self._rank(counts, k, allowed)
            ids = [self._ids[position] for position in positions.tolist()]
        stages = {"tokenize": tokenized - began, "sparse": time.perf_counter_ns() - filtered}
        if allowed is not None:
            stages["filter"] = filtered - tokenized
        return Ranking(ids, scores, stages)

    def _save_corpus(self, folder: Path) -> None:
        """Write what is known of the corpus besides the index of the subclass."""
        require_index(self._ids is not None, self)
        write_json(folder / "ids.json", self._ids)
        write_json(folder / "vocabulary.json", list(self._vocabulary))
        write_json(folder / "corpus.json", {"tokens": self._n_tokens, "scripts": self._scripts})
        write_metadata(folder, self._metadata)

    def _load_corpus(self, folder: Path) -> None:
        """Load what :meth:`_save_corpus` wrote."""
        facts = read_json(folder / "corpus.json")
        self._vocabulary = {term: n for n, term in enumerate(read_json(folder / "vocabulary.json"))}
        self._n_tokens, self._scripts = facts["tokens"], facts["scripts"]
        self._metadata = read_metadata(folder)
        self._ids = read_json(folder / "ids.json")

    def search_space(self) -> Mapping[str, Sequence[float]]:
        """Values of k1 and b worth trying, those given first."""
        k1, b = self._params["k1"], self._params["b"]
        return {
            "k1": [k1, *(value for value in (0.4, 0.6, 0.9, 1.2, 1.5, 2.0, 3.0) if value != k1)],
            "b": [b, *(value for value in (0.0, 0.2, 0.4, 0.6, 0.75, 0.9, 1.0) if value != b)],
        }

    def describe(self) -> Mapping[str, Any]:
        """See :meth:`.Retriever.describe`; sizes once a corpus is indexed."""
        facts: dict[str, Any] = {"variant": self._variant, **self._params}
        facts["tokenizer"] = self._tokenize.describe()
        if self._ids is not None:
            facts["vocabulary"] = len(self._vocabulary)
            facts["average_document_length"] = self._n_tokens / max(1, len(self._ids))
            facts["index_bytes"] = self._index_bytes() + _bytes_of(self._vocabulary, self._ids)
        return facts

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """See :meth:`retrieval_bench.core.retriever.Retriever.health`."""
        require_index(self._ids is not None, self)
        warnings = self._tokenizer_warnings()
        if self._language is None:
            advice = language_advice(self._spec, [query.text for query in queries])
            warnings += filter(None, [advice])
        asked = script_profile(query.text for query in queries)
        if no_common_script(self._scripts, asked):
            warnings.append(
                f"the queries are written in {main_scripts(asked)}, the corpus in "
                f"{main_scripts(self._scripts)}: words of different scripts never match"
            )
        answerable = [query for query in queries if query.answerable]
        lost = [query.text for query in answerable if not self._known_terms(query.text)]
        stopped = [text for text in lost if not self._tokenize(text) and WordTokenizer()(text)]
        if unknown := len(lost) - len(stopped):
            text = f"no term of {_share(unknown, answerable)} is in the corpus"
            warnings.append(Notice(text, Code.NO_KNOWN_TERM))
        if stopped:
            name, example = self._tokenize.describe()["name"], f"{stopped[0][:40]!r}"
            text = f"all words of {_share(len(stopped), answerable)}, such as {example}, are stop "
            text += f"words of tokenizer {name!r}, which drops them: `tokenizer: word` keeps them"
            warnings.append(Notice(text, Code.NO_KNOWN_TERM))
        return coded(warnings, Code.UNFIT)

    @abstractmethod
    def _build(self, corpus: TokenizedCorpus) -> None:
        """Replace the index; a corpus without any term must work."""

    @abstractmethod
    def _rank(
        self, counts: Mapping[int, int], k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Positions and scores of the best ``k`` documents that have a term of ``counts``, by
        score, ties by position.

        Args:
            allowed: which documents may be answers, some of them; None = all.
        """

    @abstractmethod
    def _index_bytes(self) -> int:
        """Bytes of the index without vocabulary and ids."""

    def _read(self, documents: Iterable[Document], sample: ScriptSample) -> TokenizedCorpus:
        ids: list[str] = []
        metadata = MetadataTable(self._fields)
        gathered = _Gathered()
        blocks = self._blocks(documents, ids, metadata, sample)
        with closing(numbered(blocks, self._tokenize, (self._spec, self._language))) as made:
            for source, block in made:
                gathered.add(source, block)
        order = sorted(range(len(ids)), key=ids.__getitem__)
        ids = [ids[at] for at in order]
        self._metadata = metadata.reordered(order)
        repeated = next((a for a, b in pairwise(ids) if a == b), None)
        if repeated is not None:
            raise DataError(
                f"document id {repeated!r} given twice", fix="give each document an id of its own"
            )
        return gathered.corpus(ids, np.array(order, dtype=np.int64))

    def _blocks(
        self,
        documents: Iterable[Document],
        ids: list[str],
        metadata: MetadataTable,
        sample: ScriptSample,
    ) -> Iterator[list[str]]:
        """The texts of the documents, some at a time; the rest of each goes where it is kept."""
        block: list[str] = []
        for document in documents:
            metadata.add(document.metadata)
            ids.append(document.id)
            block.append(document.contents)
            sample.add(block[-1])
            if len(block) == _BLOCK:
                yield block
                block = []
        yield block

    def _known_terms(self, text: str) -> dict[int, int]:
        """Number of each term of the corpus that ``text`` asks for -> how often it does."""
        known, terms = self._vocabulary, self._tokenize(text)
        if self._tokenize.are_parts(terms):
            return {n: 1 for part in set(terms) for term, n in known.items() if part in term}
        return Counter(known[term] for term in terms if term in known)

    def _tokenizer_warnings(self) -> list[str]:
        facts = self._tokenize.describe()
        name = facts["name"]
        blankless = sum(self._scripts.get(script, 0.0) for script in BLANKLESS)
        hangul = self._scripts.get("Hangul", 0.0)
        corpus = f"the corpus is written in {main_scripts(self._scripts)}"
        warning = ""
        if name in _CUTS_AT_BLANKS and blankless >= _LARGE_SHARE:
            warning = (
                f"tokenizer {name!r} cuts at blanks and punctuation, but {corpus}, without blanks "
                "between words: use tokenizer 'auto'"
            )
        elif name in _KEEPS_WORDS and hangul >= _LARGE_SHARE:
            warning = (
                f"tokenizer {name!r} keeps whole words, but {corpus}, whose words carry their "
                "particles and seldom match: use tokenizer 'auto' or 'kiwi'"
            )
        elif name == "kiwi" and self._scripts and hangul < _LARGE_SHARE:
            warning = f"tokenizer 'kiwi' is made for Korean, but {corpus}: use tokenizer 'auto'"
        elif name == "auto" and facts["stemmer"] is None:
            warning = (
                f"no Snowball stemmer for language {facts['language']!r}: its words are indexed as "
                "they are, stop words included"
            )
        return [warning] if warning else []


def checked_number(name: str, value: float, high: float = math.inf) -> float:
    """``value`` as a float.

    Raises:
        ConfigError: not a number, or outside 0 to ``high``.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= high or math.isinf(number):
        upper = "" if math.isinf(high) else f" to {high:g}"
        raise ConfigError(f"{name} = {value!r}", accepted=f"a number from 0{upper}")
    return number


class _Gathered:
    """Blocks of numbered texts as one corpus: numbers of whoever numbered become those that one
    process would have given, in the order in which terms come first."""

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()
        self._numbers: defaultdict[int, array[int]] = defaultdict(lambda: array("i"))
        self._tokens, self._lengths = array("i"), array("i")

    def add(self, source: int, block: Numbered) -> None:
        """Add the next block; its numbers are those of ``source``."""
        numbers = self._numbers[source]
        numbers.extend(map(self._vocabulary.__getitem__, block.new))
        terms = _as_array(numbers)[_as_array(block.terms)]
        self._tokens.frombytes(terms.tobytes())
        self._lengths.frombytes(np.diff(_as_array(block.ends), prepend=np.int32(0)).tobytes())

    def corpus(self, ids: list[str], order: NDArray[np.int64]) -> TokenizedCorpus:
        """All of it.

        Args:
            ids: in ascending order.
            order: which document each of them is, in the order of the blocks.
        """
        lengths = _as_array(self._lengths).astype(np.int64)
        tokens = _as_array(self._tokens)
        if (np.diff(order) != 1).any():
            tokens = _reordered(tokens, np.cumsum(lengths) - lengths, lengths, order)
        return TokenizedCorpus(ids, dict(self._vocabulary), tokens, lengths[order])


def _reordered(
    tokens: NDArray[np.int32],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    order: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Tokens of the documents in another order, some at a time: their places take more memory."""
    moved = np.empty_like(tokens)
    end = 0
    for first in range(0, len(order), _BLOCK):
        chosen = order[first : first + _BLOCK]
        sizes = lengths[chosen]
        ends = np.cumsum(sizes)
        places = np.repeat(starts[chosen] - ends + sizes, sizes) + np.arange(sizes.sum())
        moved[end : end + len(places)] = tokens[places]
        end += len(places)
    return moved


def _as_array(numbers: array[int]) -> NDArray[np.int32]:
    return np.frombuffer(numbers, dtype=np.int32)


def _bytes_of(vocabulary: dict[str, int], ids: list[str]) -> int:
    terms = sum(map(sys.getsizeof, vocabulary))
    numbers = 32 * len(vocabulary)  # sys.getsizeof of an int
    return sys.getsizeof(vocabulary) + terms + numbers + sys.getsizeof(ids)


def _share(n: int, queries: Sequence[Query]) -> str:
    """How many of the answerable ``queries`` that are, in words."""
    return f"{n} of {counted(len(queries), 'answerable query')} ({n / len(queries):.1%})"
