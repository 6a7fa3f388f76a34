"""A reader that picks answers out of documents with a question-answering model of Hugging Face.

The model gives each token a score for being the first and for being the last of the answer; which
spans follow from that is computed here, over all windows of all documents of a question, because
the library's own pipeline is gone from its newer releases. Scores are sums of logits, so that spans
of different documents can be compared (as Haystack 0.x does).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError, ModelError
from retrieval_bench.core.installed.installation import require
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.core.types import Document, Query
from retrieval_bench.measure.threads import prepare_environment
from retrieval_bench_answers.answers import Answer, Span
from retrieval_bench_answers.contract import Reader
from retrieval_bench_retrievers.encoders.encoder import no_progress_bar, whole_number
from retrieval_bench_retrievers.encoders.model_files import content_hash, in_short, opened

_WHERE = "reader huggingface"
_PARTS: dict[str, Any] = {
    "where": _WHERE,
    "accepted": "a folder or name of a model that AutoModelForQuestionAnswering loads",
    "fix": "correct the name, or download a model that was trained for questions",
}
"""Of errors about the model."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNBOUNDED = 1_000_000
"""What tokenizers say who know no limit is far above this."""


class HuggingFaceReader(Reader):
    """Answers by ``AutoModelForQuestionAnswering``.

    A document longer than the model reads is cut into windows that overlap. A span has at most
    ``max_answer_tokens`` tokens. The empty answer takes part with the score of the window that is
    least sure of it, as the official script of SQuAD 2.0 has it, plus ``no_answer_boost``.

    Args:
        model: a folder, for which no hub is asked, or a name.
        device: as torch names it; ``auto`` takes a GPU where there is one.
        batch_size: windows in one pass through the model.
        max_length: tokens of a window, question included; less where the model reads less.
        stride: tokens that two windows share.
        max_question_tokens: a longer question is cut off.
        max_answer_tokens: of one answer.
        no_answer: whether the empty answer takes part; False for models that never learned it.
        no_answer_boost: more than 0 makes the empty answer win more often.
        threads: that torch may use.

    Raises:
        ConfigError: a parameter that cannot be used.
        MissingDependencyError: torch or transformers is not installed.
        ModelError: no such model, or one without a head for questions.
    """

    def __init__(
        self,
        model: str,
        *,
        device: str = "auto",
        batch_size: int = 16,
        max_length: int = 384,
        stride: int = 128,
        max_question_tokens: int = 64,
        max_answer_tokens: int = 30,
        no_answer: bool = True,
        no_answer_boost: float = 0.0,
        threads: int = 1,
    ) -> None:
        self._name = model
        self._batch_size = whole_number(batch_size, "batch_size", 1, where=_WHERE)
        self._max_question = whole_number(
            max_question_tokens, "max_question_tokens", 1, where=_WHERE
        )
        self._max_answer = whole_number(max_answer_tokens, "max_answer_tokens", 1, where=_WHERE)
        self._stride = whole_number(stride, "stride", 0, where=_WHERE)
        self._max_length = whole_number(max_length, "max_length", 8, where=_WHERE)
        self._threads = whole_number(threads, "threads", 1, where=_WHERE)
        self._no_answer = no_answer
        self._boost = float(no_answer_boost)
        for package in ("torch", "transformers"):
            require(package, "dense", _WHERE)
        prepare_environment(self._threads)
        self._tokenizer, self._model, self._folder = _load(model)
        self._device = _place(self._model, device)
        self._fit()

    def read(self, question: Query, documents: Sequence[Document], n: int) -> Sequence[Answer]:
        """See :meth:`retrieval_bench_answers.contract.Reader.read`."""
        texts = [_clean(document.text) for document in documents]
        chosen = [i for i, text in enumerate(texts) if text.strip()]
        if not chosen:
            return [Answer("")]
        encoded = self._tokenizer(
            [self._cut(_clean(question.text))] * len(chosen),
            [texts[i] for i in chosen],
            truncation="only_second",
            max_length=self._max_length,
            stride=self._stride,
            padding=True,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            return_tensors="pt",
        )
        offsets = encoded.pop("offset_mapping").numpy()
        owners = [chosen[i] for i in encoded.pop("overflow_to_sample_mapping").tolist()]
        starts, ends = self._logits(encoded)
        spans: dict[tuple[int, int, int], float] = {}
        nulls = []
        for window, owner in enumerate(owners):
            first = self._first(encoded["input_ids"][window].tolist())
            nulls.append(float(starts[window, first]) + float(ends[window, first]))
            inside = np.array([sequence_id == 1 for sequence_id in encoded.sequence_ids(window)])
            view = _Window(starts[window], ends[window], offsets[window], inside)
            for start, end, score in _spans(view, texts[owner], self._max_answer, 4 * n):
                key = (owner, start, end)
                spans[key] = max(score, spans.get(key, -np.inf))
        ranked = [
            (-score, owner, start, Answer(documents[owner].text[start:end],
             Span(documents[owner].id, start, end), score))
            for (owner, start, end), score in spans.items()
        ]  # fmt: skip
        if self._no_answer or not ranked:
            null = min(nulls) + self._boost
            ranked.append((-null, len(documents), 0, Answer("", None, null)))
        ranked.sort(key=lambda span: span[:3])
        return [answer for *_, answer in ranked[:n]]

    def describe(self) -> Mapping[str, Any]:
        """See :meth:`retrieval_bench_answers.contract.Reader.describe`."""
        return {
            "model": self._name,
            "model_sha256": None if self._folder is None else content_hash(self._folder),
            "architecture": type(self._model).__name__ if self._model is not None else None,
            "device": str(self._device),
            "max_length": self._max_length,
            "stride": self._stride,
            "max_question_tokens": self._max_question,
            "max_answer_tokens": self._max_answer,
            "no_answer": self._no_answer,
            "no_answer_boost": self._boost,
            "batch_size": self._batch_size,
            "threads": self._threads,
            "versions": {name: version(name) for name in ("torch", "transformers")},
        }

    def close(self) -> None:
        """Let go of the model."""
        self._model = None

    def _fit(self) -> None:
        """Windows that the model can read, and that have room for some of a document."""
        limits = [self._tokenizer.model_max_length]
        limits.append(getattr(self._model.config, "max_position_embeddings", None) or _UNBOUNDED)
        known = [limit for limit in limits if 0 < limit < _UNBOUNDED]
        self._max_length = min([self._max_length, *known])
        special = self._tokenizer.num_special_tokens_to_add(pair=True)
        self._max_question = min(self._max_question, (self._max_length - special) // 2)
        room = self._max_length - special - self._max_question
        if self._max_question < 1 or room < 1:
            raise ConfigError(
                f"max_length = {self._max_length}",
                where=f"reader {self._name!r}",
                accepted=f"more than the {special} special tokens of the model",
            )
        self._stride = min(self._stride, room - 1)

    def _cut(self, question: str) -> str:
        pieces = self._tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)
        offsets = pieces["offset_mapping"]
        if len(offsets) <= self._max_question:
            return question
        return question[: offsets[self._max_question - 1][1]]

    def _first(self, ids: Sequence[int]) -> int:
        """Return where the model points to when there is no answer."""
        cls = self._tokenizer.cls_token_id
        return ids.index(cls) if cls in ids else 0

    def _logits(self, encoded: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Scores (windows, tokens) of being first and last."""
        import torch

        names = [name for name in self._tokenizer.model_input_names if name in encoded]
        n = len(encoded["input_ids"])
        starts, ends = [], []
        before = torch.get_num_threads()
        torch.set_num_threads(self._threads)
        try:
            with torch.inference_mode():
                for at in range(0, n, self._batch_size):
                    batch = {
                        name: encoded[name][at : at + self._batch_size].to(self._device)
                        for name in names
                    }
                    made = self._model(**batch)
                    starts.append(made.start_logits.float().cpu().numpy())
                    ends.append(made.end_logits.float().cpu().numpy())
        finally:
            torch.set_num_threads(before)
        return np.concatenate(starts), np.concatenate(ends)


class _Window(NamedTuple):
    """One window: scores of its tokens, where they stand in the document, which are of it."""

    starts: NDArray[np.float32]
    ends: NDArray[np.float32]
    offsets: NDArray[np.int64]
    inside: NDArray[np.bool_]


def _spans(window: _Window, text: str, max_tokens: int, most: int) -> list[tuple[int, int, float]]:
    """The best ``most`` spans: first character, one behind the last, score."""
    tokens = np.flatnonzero(window.inside & (window.offsets[:, 1] > window.offsets[:, 0]))
    if not len(tokens):
        return []
    starts = window.starts[tokens].astype(np.float64)
    ends = window.ends[tokens].astype(np.float64)
    sums = starts[:, None] + ends[None, :]
    length = np.arange(len(tokens))[None, :] - np.arange(len(tokens))[:, None]
    sums[(length < 0) | (length >= max_tokens)] = -np.inf
    flat = sums.ravel()
    best = np.argsort(-flat, kind="stable")[:most] if len(flat) <= most else _top(flat, most)
    spans = []
    for place in best.tolist():
        first, last = divmod(place, len(tokens))
        if not np.isfinite(flat[place]):
            continue
        start, end = int(window.offsets[tokens[first], 0]), int(window.offsets[tokens[last], 1])
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())  # some tokenizers count the blank before a word
        end -= len(piece) - len(piece.rstrip())
        if start < end:
            spans.append((start, end, float(flat[place])))
    return spans


def _top(values: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Places of the ``most`` highest values; ties by place."""
    least = np.partition(values, len(values) - most)[len(values) - most]
    among = np.flatnonzero(values >= least)
    return np.asarray(among[np.argsort(-values[among], kind="stable")[:most]])


def _clean(text: str) -> str:
    """``text`` as tokenizers accept it, character by character the same length."""
    return _SURROGATES.sub("\ufffd", text)


def _load(name: str) -> tuple[Any, Any, Path | None]:
    """Tokenizer, model and its folder; a hub is asked only for what is not on this machine."""
    folder = user_path(name)
    if folder.is_dir():
        return *_open(str(folder), local=True), folder
    return *opened(lambda local: _open(name, local=local), name, **_PARTS), None


def _open(name: str, *, local: bool) -> tuple[Any, Any]:
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    # Left open, code that comes with a model is asked about on stdin.
    given = {"local_files_only": local, "trust_remote_code": False}
    try:
        # A download is worth a bar; reading weights that are here takes a moment.
        with no_progress_bar() if local else nullcontext():
            tokenizer = AutoTokenizer.from_pretrained(name, **given)
            model, loaded = AutoModelForQuestionAnswering.from_pretrained(
                name, output_loading_info=True, **given
            )
    except Exception as problem:  # each library below raises errors of its own
        raise _refused(name, in_short(problem)) from problem
    missing = sorted(loaded["missing_keys"])
    if missing:
        raise _refused(name, f"its files have no {', '.join(missing[:3])}: the weights are random")
    if not tokenizer.is_fast:
        raise _refused(name, "its tokenizer does not say where a token stands in the text")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if tokenizer.padding_side != "right":
        tokenizer.padding_side = "right"
    return tokenizer, model.eval()


def _place(model: Any, device: str) -> Any:
    import torch

    wanted = device
    if device == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        model.to(wanted)
    except (RuntimeError, AssertionError) as problem:
        raise ConfigError(
            f"device {device!r}: {in_short(problem)}", where=_WHERE, accepted="auto, cpu, cuda"
        ) from None
    return wanted


def _refused(name: str, why: str) -> ModelError:
    return ModelError(f"model {name!r} cannot be used for questions: {why}", **_PARTS)
