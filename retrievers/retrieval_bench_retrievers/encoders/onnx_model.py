"""Models with int8 weights on onnxruntime, without torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.measure.threads import thread_limit

_POSITIONS = 512


class OnnxGraph:
    """A model of the BERT family as an ONNX file, with its tokenizer: texts in, its output out.

    Texts go through it one at a time, without padding, which is faster on a processor than in
    batches; and where weights are int8, activations are quantised together, so that in a batch a
    text's vector would depend on its neighbours. onnxruntime fixes its threads when a model is
    opened, so there is a session for each number of threads.

    Args:
        weights: the ONNX file.
        tokenizer: a file of the library ``tokenizers``.
        tokens: that are read of a text, or of a pair.
    """

    def __init__(self, weights: Path, tokenizer: Path, tokens: int) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_padding()
        self._weights = str(weights)
        self._length = 0
        self.tokens = tokens
        self._sessions = cache(_session)
        self._sessions(self._weights, 1)

    @property
    def tokens(self) -> int:
        """Tokens that are read."""
        return self._length

    @tokens.setter
    def tokens(self, length: int) -> None:
        self.tokenizer.enable_truncation(length)
        self._length = length

    def run(self, given: str | tuple[str, str], threads: int) -> NDArray[np.float32]:
        """The output for one text, or for a pair of texts.

        Raises:
            IndexError: it has more tokens than the model has positions for.
        """
        one, other = (given, None) if isinstance(given, str) else given
        encoded = self.tokenizer.encode(one, other)
        ids = np.array([encoded.ids])
        if ids.size > _POSITIONS:
            raise IndexError(f"{ids.size} tokens; the model has {_POSITIONS} positions")
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([encoded.type_ids]),
        }
        (output,) = self._sessions(self._weights, threads).run(None, inputs)
        found: NDArray[np.float32] = output[0]
        return found

    def run_all(self, given: Sequence[str]) -> list[NDArray[np.float32]]:
        """The outputs for several texts, spread over all cores, one thread each; a single text,
        such as a query, takes as many threads as a timed call may."""
        if len(given) == 1:
            return [self.run(given[0], thread_limit())]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda one: self.run(one, 1), given))


class OnnxModel:
    """What :class:`.Encoder` drives in place of a model of sentence-transformers: the mean of the
    tokens' vectors, or the first one, scaled to length 1.

    Args:
        weights, tokenizer, tokens: as of :class:`OnnxGraph`.
        pooling: ``mean`` or ``cls``.
        prompts: of the model, by role.
    """

    device = "cpu"
    positions = _POSITIONS

    def __init__(
        self,
        weights: Path,
        tokenizer: Path,
        *,
        tokens: int,
        pooling: str,
        prompts: Mapping[str, str],
    ) -> None:
        self._graph = OnnxGraph(weights, tokenizer, tokens)
        self._first = pooling == "cls"
        self.prompts = prompts

    def __iter__(self) -> Iterator[OnnxModel]:
        """The modules: this one."""
        yield self

    @property
    def tokenizer(self) -> Any:
        """Of the library ``tokenizers``."""
        return self._graph.tokenizer

    @property
    def max_seq_length(self) -> int:
        """Tokens read of a text."""
        return self._graph.tokens

    @max_seq_length.setter
    def max_seq_length(self, length: int) -> None:
        self._graph.tokens = length

    def encode(self, texts: Sequence[str], *, prompt: str, **_: object) -> NDArray[np.float32]:
        """One row for each of ``texts``.

        Raises:
            IndexError: a text has more tokens than the model has positions for.
        """
        outputs = self._graph.run_all([prompt + text for text in texts])
        rows = [tokens[0] if self._first else tokens.mean(axis=0) for tokens in outputs]
        return np.stack([row / np.linalg.norm(row) for row in rows])


def _session(weights: str, threads: int) -> Any:
    """The model, ready to compute with ``threads`` threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
