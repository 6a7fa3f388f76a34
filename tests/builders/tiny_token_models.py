"""A multi-vector model and a sparse encoder of two small layers with seeded random weights."""

from __future__ import annotations

from pathlib import Path

from tests.builders.tiny_bert import write_tokenizer, write_weights
from tests.builders.tiny_encoder import WORDS


def build_multi_vector_model(folder: Path) -> Path:
    """Write a model of token vectors of 128 dimensions to the new ``folder``."""
    from sentence_transformers import MultiVectorEncoder

    plain = folder.with_name(f"{folder.name}-plain")
    write_weights(plain, "BertModel", write_tokenizer(plain, WORDS), seed=5)
    MultiVectorEncoder(str(plain), device="cpu").save_pretrained(str(folder))
    return folder


def build_sparse_encoder(folder: Path) -> Path:
    """Write a model that gives each text weights of the terms of its vocabulary."""
    vocabulary = write_tokenizer(folder, f"{WORDS} [MASK]")
    write_weights(folder, "BertForMaskedLM", vocabulary, seed=5, initializer_range=0.5)
    return folder
