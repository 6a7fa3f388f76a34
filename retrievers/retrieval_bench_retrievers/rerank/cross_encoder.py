"""A cross-encoder of sentence-transformers as a reranker: it reads query and document together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from retrieval_bench.core.errors import ModelError
from retrieval_bench.core.installed.installation import require
from retrieval_bench.core.plugins import beside_config
from retrieval_bench.core.types import Document
from retrieval_bench.measure.threads import prepare_environment
from retrieval_bench_retrievers.encoders.encoder import (
    no_progress_bar,
    readable,
    versions_of,
    whole_number,
)
from retrieval_bench_retrievers.encoders.model_files import (
    content_hash,
    downloaded_folder,
    given_folder,
    in_short,
    opened,
)
from retrieval_bench_retrievers.rerank.reranking import Reranked, Reranker, by_score

_ACCEPTED = (
    "the name of a cross-encoder, such as cross-encoder/ms-marco-MiniLM-L6-v2, a folder with one, "
    "or module:function"
)
_HEADS = ("ForSequenceClassification", "ForCausalLM", "ForConditionalGeneration")
"""Ends of the names of architectures that give a pair a score. Any other one would get a head of
random weights."""


class CrossEncoderReranker(Reranker):
    """Reranks by ``CrossEncoder.predict`` of pairs of query and document (title and text).

    Building one checks what can be checked without loading the model. No hub is asked for a folder,
    and for a name only where the model was not downloaded before.

    Args:
        model: a folder, or a name.
        device: as torch names it; ``auto`` takes a GPU where there is one.
        batch_size: pairs in one pass through the model.
        max_length: tokens of a pair; the model's own where not given.

    Raises:
        ConfigError: a parameter that cannot be used.
        MissingDependencyError: the extra ``dense`` is not installed.
        ModelError: no such folder.
    """

    pointwise = True

    def __init__(
        self,
        model: str,
        *,
        device: str = "auto",
        batch_size: int = 32,
        max_length: int | None = None,
    ) -> None:
        self._name = model
        self._device = None if device == "auto" else device
        self._batch_size = whole_number(batch_size, "batch_size", where="reranker")
        self._max_length = (
            None if max_length is None else whole_number(max_length, "max_length", where="reranker")
        )
        for package in ("torch", "sentence-transformers"):
            require(package, "dense", "reranker")
        beside, files = beside_config(model), ("config.json",)
        self._folder = given_folder(model, beside, files, _ACCEPTED, "the folder of the config")
        self._model: Any = None
        self._facts: dict[str, Any] = {}

    def prepare(self) -> None:
        """Load the model, unless it is loaded.

        Raises:
            ModelError: it cannot be had or read, or is no cross-encoder.
        """
        if self._model is not None:
            return
        prepare_environment()
        if self._folder is not None:
            model = self._open(str(self._folder), local_files_only=True)
        else:
            model = opened(
                lambda local: self._open(self._name, local_files_only=local),
                self._name,
                where="reranker",
                accepted=_ACCEPTED,
                fix="download the model elsewhere, and give its folder",
            )
            self._folder = downloaded_folder(self._name)
        kinds = getattr(getattr(model, "config", None), "architectures", None) or ()
        if kinds and not any(str(kind).endswith(_HEADS) for kind in kinds):
            raise ModelError(
                f"{self._name!r} is a {kinds[0]}, which gives a pair of texts no score",
                where="reranker",
                accepted=_ACCEPTED,
                fix="name a cross-encoder; encoders of single texts belong into `dense`",
            )
        if getattr(model, "num_labels", 1) != 1:
            raise ModelError(
                f"{self._name!r} gives {model.num_labels} numbers for a pair",
                where="reranker",
                accepted="a model with one label",
                fix="name another model, or write a function that takes one of its numbers",
            )
        self._model = model
        # Later releases have another name for it, and warn of the older one.
        longest = "max_seq_length" if hasattr(model, "max_seq_length") else "max_length"
        self._facts = {"device": str(model.device), "max_length": getattr(model, longest)}

    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        """See :meth:`.Reranker.rerank`."""
        self.prepare()
        query = readable(text)
        values = self._model.predict(
            [(query, readable(document.contents)) for document in documents],
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return by_score(values, documents, self._name)

    def describe(self) -> Mapping[str, Any]:
        """The model with its hash, what it reads, and where it runs."""
        return {
            "model": self._name,
            "model_sha256": None if self._folder is None else content_hash(self._folder),
            "batch_size": self._batch_size,
            **self._facts,
            "versions": versions_of(("sentence-transformers", "transformers", "torch")),
        }

    def close(self) -> None:
        """Let go of the model."""
        self._model = None

    def _open(self, what: str, *, local_files_only: bool) -> Any:
        try:
            from sentence_transformers import CrossEncoder

            given = {} if self._max_length is None else {"max_length": self._max_length}
            with no_progress_bar() if local_files_only else nullcontext():
                return CrossEncoder(
                    what, device=self._device, local_files_only=local_files_only, **given
                )
        except Exception as problem:  # each library below raises errors of its own
            raise ModelError(
                f"model {self._name!r} cannot be loaded: {in_short(problem)}",
                where=str(self._folder or "hub"),
                accepted=_ACCEPTED,
                fix="correct the name or the device, or download the model and give its folder",
            ) from problem
