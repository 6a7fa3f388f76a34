"""all-MiniLM-L6-v2 with int8 weights on onnxruntime: the default model without torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.measure.threads import thread_limit

_POSITIONS = 512


class Int8Model:
    """What :class:`.Encoder` drives in place of a model of sentence-transformers: the mean of the
    tokens' vectors, scaled to length 1.

    Texts go through the model one at a time, without padding, which is faster on a processor than
    in batches. The texts of a batch are spread over all cores, one thread each; a single text, such
    as a query, takes as many threads as a timed call may.

    Args:
        weights: the ONNX file.
        tokenizer: a file of the library ``tokenizers``.
    """

    prompts: Mapping[str, str] = {}
    device = "cpu"

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_padding()
        self._length = 0
        self.max_seq_length = 256
        self._session = cache(partial(_session, str(weights)))
        self._session(1)

    def __iter__(self) -> Iterator[Int8Model]:
        """The modules: this one."""
        yield self

    @property
    def max_seq_length(self) -> int:
        """Tokens read of a text."""
        return self._length

    @max_seq_length.setter
    def max_seq_length(self, length: int) -> None:
        self.tokenizer.enable_truncation(length)
        self._length = length

    def encode(self, texts: Sequence[str], *, prompt: str, **_: object) -> NDArray[np.float32]:
        """One row for each of ``texts``.

        Raises:
            IndexError: a text has more tokens than the model has positions for.
        """
        if len(texts) == 1:
            return self._vector(prompt + texts[0], thread_limit())[np.newaxis]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return np.stack(list(pool.map(lambda text: self._vector(prompt + text, 1), texts)))

    def _vector(self, text: str, threads: int) -> NDArray[np.float32]:
        ids = np.array([self.tokenizer.encode(text).ids])
        if ids.size > _POSITIONS:
            raise IndexError(f"{ids.size} tokens; the model has {_POSITIONS} positions")
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        (tokens,) = self._session(threads).run(["last_hidden_state"], inputs)
        mean: NDArray[np.float32] = tokens[0].mean(axis=0)
        return mean / np.linalg.norm(mean)


def _session(weights: str, threads: int) -> Any:
    """The model, ready to compute with ``threads`` threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
