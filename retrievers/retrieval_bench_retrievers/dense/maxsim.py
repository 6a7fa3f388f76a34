"""Exact late interaction: the sum, over the tokens of a query, of the greatest similarity that any
token of a document has (MaxSim). Khattab & Zaharia (2020), ColBERT, SIGIR, section 3.3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import check_known
from retrieval_bench.core.ranking import top_k
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.encoders.encoded import Encoded
from retrieval_bench_retrievers.encoders.encoder import Vectors
from retrieval_bench_retrievers.encoders.token_encoder import TokenEncoder

PRECISIONS = ("float32", "int8")
_BLOCK = 1 << 22
"""Similarities that are held at once."""


def checked_precision(given: str, where: str) -> str:
    """``given``, if vectors can be kept so.

    Raises:
        ConfigError: they cannot.
    """
    check_known(given, PRECISIONS, f"precision = {given!r}", where=where)
    return given


class TokenVectors:
    """The token vectors of documents, searched exhaustively.

    Args:
        precision: ``float32``, or ``int8``: each vector as whole numbers of at most 127 with a
            factor of its own, a quarter of the memory. Sums are taken in float32 either way.
        dimension: of a vector.
    """

    def __init__(self, precision: str, dimension: int) -> None:
        self._int8 = precision == "int8"
        self._tokens: NDArray[Any] = np.empty((0, dimension), np.int8 if self._int8 else np.float32)
        self._factors: Vectors = np.empty(0, np.float32)
        self._starts: NDArray[np.int64] = np.zeros(1, np.int64)
        self._rows: NDArray[np.intp] = np.empty(0, np.intp)

    @classmethod
    def of(
        cls,
        encoder: TokenEncoder,
        texts: Sequence[str],
        precision: str,
        progress: Callable[[int, int], None] | None = None,
    ) -> TokenVectors:
        """Those that ``encoder``, once it is loaded, gives for ``texts``; equal ones share theirs,
        so that they tie."""
        row_of: dict[str, int] = {}
        rows = [row_of.setdefault(text, len(row_of)) for text in texts]
        found: dict[int, Vectors] = {}
        for chosen, batch in encoder.document_batches(list(row_of)):
            found.update(zip(chosen, batch, strict=True))
            if progress is not None:
                progress(len(found), len(row_of))
        made = cls(precision, encoder.dimension)
        made.set([found[row] for row in range(len(row_of))], rows)
        return made

    def __len__(self) -> int:
        return len(self._rows)

    def describe(self) -> dict[str, int]:
        """How many there are, and what they take."""
        return {"documents": len(self), "tokens": self.n_tokens, "vector_bytes": self.nbytes}

    @property
    def n_tokens(self) -> int:
        """Vectors of all documents."""
        return int(self._starts[-1])

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return self._tokens.nbytes + self._factors.nbytes + self._starts.nbytes

    def set(self, documents: Sequence[Vectors], rows: Sequence[int] | None = None) -> None:
        """Take the vectors of all distinct documents, each (tokens, dimension).

        Args:
            rows: for each document which of these are its own; None = in their order.
        """
        self._rows = np.asarray(range(len(documents)) if rows is None else rows, dtype=np.intp)
        sizes = [len(one) for one in documents]
        self._starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)
        self._tokens = np.empty((self.n_tokens, self._tokens.shape[1]), self._tokens.dtype)
        self._factors = np.empty(self.n_tokens if self._int8 else 0, np.float32)
        for start, one in zip(self._starts[:-1], documents, strict=True):
            place = slice(int(start), int(start) + len(one))
            if not self._int8:
                self._tokens[place] = one
                continue
            factors = np.abs(one).max(axis=1, initial=0) / 127
            factors[factors == 0] = 1
            self._factors[place] = factors
            self._tokens[place] = np.rint(one / factors[:, np.newaxis])

    def scores(
        self, query: Vectors, documents: NDArray[np.intp] | None = None
    ) -> NDArray[np.float64]:
        """MaxSim of ``query`` (tokens, dimension) with these ``documents`` (None = all); 0 with one
        without tokens."""
        wanted = self._rows if documents is None else self._rows[documents]
        rows, place = np.unique(wanted, return_inverse=True)
        found = np.zeros(len(rows))
        for block in self._blocks(rows, max(1, _BLOCK // max(1, len(query)))):
            taken = rows[block]
            sizes = self._starts[taken + 1] - self._starts[taken]
            filled = sizes > 0
            if not filled.any():
                continue
            at = self._places(taken)
            similar = self._tokens[at].astype(np.float32, copy=False) @ query.T
            if self._int8:
                similar *= self._factors[at][:, np.newaxis]
            starts = np.concatenate(([0], np.cumsum(sizes[filled])[:-1]))
            best = np.maximum.reduceat(similar, starts, axis=0)
            found[block[filled]] = best.sum(axis=1, dtype=np.float64)
        return np.asarray(found[place])

    def _places(self, rows: NDArray[np.intp]) -> slice | NDArray[np.int64]:
        """Of the tokens of ``rows``, which ascend; of neighbours a slice, which copies nothing."""
        if rows[-1] - rows[0] == len(rows) - 1:
            return slice(int(self._starts[rows[0]]), int(self._starts[rows[-1] + 1]))
        return np.concatenate([np.arange(self._starts[r], self._starts[r + 1]) for r in rows])

    def _blocks(self, rows: NDArray[np.intp], width: int) -> Iterable[NDArray[np.intp]]:
        """Places in ``rows``, as many at a time as have at most ``width`` tokens, and one at
        least."""
        ends = np.cumsum(self._starts[rows + 1] - self._starts[rows])
        start = 0
        while start < len(rows):
            before = int(ends[start - 1]) if start else 0
            end = max(start + 1, int(np.searchsorted(ends, before + width, side="right")))
            yield np.arange(start, end)
            start = end


class MaxSim(Encoded[TokenEncoder]):
    """Exhaustive search by MaxSim over the token vectors of a multi-vector model.

    Args:
        model: the name or folder of a multi-vector model: see :class:`.TokenEncoder`.
        precision: of the vectors that are kept, ``float32`` or ``int8``.
        prompts, device, batch_size, max_seq_length: as of ``dense``.

    Raises:
        ConfigError: a parameter that cannot be used.
        MissingDependencyError: the extra ``dense`` is not installed.
        ModelError: no such folder.
    """

    stage = "maxsim"

    def __init__(
        self,
        model: str,
        *,
        precision: str = "float32",
        prompts: Mapping[str, str] | None = None,
        device: str = "auto",
        batch_size: int = 32,
        max_seq_length: int | None = None,
    ) -> None:
        self._precision = checked_precision(precision, "retriever maxsim")
        encoder = TokenEncoder(
            model,
            prompts=prompts,
            device=device,
            batch_size=batch_size,
            max_seq_length=max_seq_length,
        )
        super().__init__(encoder)

    @property
    def capabilities(self) -> Capabilities:
        """Exact; a vector depends a little on what it was encoded together with."""
        return Capabilities(exact=True, score_tolerance=1e-4, filters=True)

    def index(self, documents: Iterable[Document]) -> None:
        """Encode the documents.

        Raises:
            ContractError: two documents of one id.
            ModelError: the model cannot be loaded, or is no multi-vector model.
        """
        texts = self._read(documents)
        self._index = TokenVectors.of(self._encoder, texts, self._precision, self.progress)

    def _encoded(self, text: str) -> Any:
        return self._encoder.encode_query(text)[0]

    def _best(
        self, asked: Vectors, k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[list[str], NDArray[np.float64]]:
        # Of all documents, whatever the filter: a sum depends a little on what it is taken with.
        scores = self._index.scores(asked)
        if allowed is not None:
            scores[~allowed] = -np.inf
            k = min(k, int(np.count_nonzero(allowed)))
        best = top_k(scores, k)
        return [self._ids[at] for at in best.tolist()], scores[best]

    def describe(self) -> Mapping[str, Any]:
        """The model, and what its vectors take."""
        kept = {} if self._index is None else self._index.describe()
        return {**self._encoder.describe(), "precision": self._precision, **kept}
