"""Models on onnxruntime, without torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ModelError
from retrieval_bench.measure.threads import thread_limit

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")


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
        positions: that the model has for tokens.

    Raises:
        ModelError: the graph wants other inputs than a text's tokens, or has several outputs of
            which none has a known name.
    """

    def __init__(self, weights: Path, tokenizer: Path, tokens: int, positions: int = 512) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_padding()
        self._weights = str(weights)
        self._length = 0
        self.positions = positions
        self.tokens = tokens
        self._sessions = cache(_session)
        self._inputs, self._output = _names(self._sessions(self._weights, 1), weights)

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
        if ids.size > self.positions:
            raise IndexError(f"{ids.size} tokens; the model has {self.positions} positions")
        values = (ids, np.ones_like(ids), np.array([encoded.type_ids]))
        inputs = {
            name: array for name, array in zip(_INPUTS, values, strict=True) if name in self._inputs
        }
        (output,) = self._sessions(self._weights, threads).run([self._output], inputs)
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
    tokens' vectors, or the first one.

    Args:
        weights, tokenizer, tokens, positions: as of :class:`OnnxGraph`.
        pooling: ``mean`` or ``cls``; None where the graph gives one vector a text.
        prompts: of the model, by role.
        default_prompt_name: of the prompt of other texts.
        normalized: whether vectors are scaled to length 1.

    Raises:
        ModelError: without ``pooling`` the graph gives a vector for each token.
    """

    device = "cpu"

    def __init__(
        self,
        weights: Path,
        tokenizer: Path,
        *,
        tokens: int,
        pooling: str | None,
        prompts: Mapping[str, str],
        positions: int = 512,
        normalized: bool = True,
        default_prompt_name: str | None = None,
    ) -> None:
        self.default_prompt_name = default_prompt_name
        self._graph = OnnxGraph(weights, tokenizer, tokens, positions)
        self._pooling = pooling
        self._normalized = normalized
        self.prompts = prompts
        if pooling is None and self._graph.run("a", 1).ndim > 1:
            raise ModelError(
                "no file says how the vectors of tokens become one",
                where=str(weights),
                accepted="1_Pooling/config.json, as SentenceTransformer.save() writes it",
                fix='add it: {"pooling_mode": "mean"} or {"pooling_mode": "cls"}',
            )

    def __iter__(self) -> Iterator[OnnxModel]:
        """The modules: this one."""
        yield self

    @property
    def positions(self) -> int:
        """Tokens of a text that the model has positions for."""
        return self._graph.positions

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
        rows = np.stack([self._pooled(output) for output in outputs])
        # Row by row: a text's vector must not depend on how many are given with it.
        return np.stack([row / np.linalg.norm(row) for row in rows]) if self._normalized else rows

    def _pooled(self, output: NDArray[np.float32]) -> Any:
        if output.ndim == 1:
            return output
        return output[0] if self._pooling == "cls" else output.mean(axis=0)


def _session(weights: str, threads: int) -> Any:
    """The model, ready to compute with ``threads`` threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])


def _names(session: Any, weights: Path) -> tuple[set[str], str]:
    """The inputs of a graph, and the output to take."""
    inputs = {given.name for given in session.get_inputs()}
    outputs = [made.name for made in session.get_outputs()]
    known = [name for name in _OUTPUTS if name in outputs] or outputs
    if not inputs <= set(_INPUTS) or (known[0] not in _OUTPUTS and len(known) > 1):
        raise ModelError(
            f"the graph takes {', '.join(sorted(inputs))} and gives {', '.join(outputs)}",
            where=str(weights),
            accepted=f"inputs {', '.join(_INPUTS)}; one output, or one named {', '.join(_OUTPUTS)}",
            fix="export the model for feature extraction",
        )
    return inputs, known[0]
