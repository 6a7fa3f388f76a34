"""A sentence-transformers model of two small layers with seeded random weights, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval_bench_retrievers.encoders.encoder import Encoder
from tests.builders.tiny_bert import write_tokenizer, write_weights

WORDS = """
the a of and in is to for with on by as cell cells tree trees leaf leaves river rivers
water light stone stones star stars planet planets moon sun wind rain snow ice fire
salt iron gold bird birds fish whale whales ant ants bee bees heart blood bone bones
virus vaccine bridge bridges engine sound colour glass paper sand seed seeds root roots
"""


def build_tiny_model(
    folder: Path, *, normalize: bool = True, prompts: dict[str, str] | None = None
) -> Path:
    """Write the model to ``folder`` and return it: 32 dimensions, reads 24 tokens, lower case.

    Single letters are in the vocabulary, so Latin text in words that it does not know comes in
    crumbs, and other scripts are unknown. The files are those of the older releases of the
    library, which every release reads.
    """
    vocabulary = write_tokenizer(folder, WORDS)
    write_weights(folder, "BertModel", vocabulary, seed=5)
    kinds = ["Transformer", "Pooling", "Normalize"] if normalize else ["Transformer", "Pooling"]
    modules = [
        {
            "idx": place,
            "name": str(place),
            "path": f"{place}_{kind}" if place else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for place, kind in enumerate(kinds)
    ]
    _write(folder / "modules.json", modules)
    _write(folder / "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": False})
    _write(folder / "config_sentence_transformers.json", {"prompts": prompts or {}})
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    _write(folder / "1_Pooling" / "config.json", pooling)
    return folder


def encoded(encoder: Encoder, texts: list[str]) -> NDArray[np.float32]:
    """The vectors of ``texts`` as documents, a row each."""
    vectors = np.full((len(texts), encoder.dimension), np.nan, dtype=np.float32)
    for rows, batch in encoder.document_batches(texts):
        vectors[rows] = batch
    return vectors


@contextmanager
def one_thread() -> Iterator[None]:
    """Models this small are slower on several threads, and on a busy machine much slower."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
