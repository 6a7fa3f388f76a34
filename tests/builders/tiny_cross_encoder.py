"""A cross-encoder of two small layers with seeded random weights, for tests."""

from __future__ import annotations

from pathlib import Path

from tests.builders.tiny_bert import write_tokenizer, write_weights

WORDS = """
the a of and in is to for with on light stone star stars planet moon sun rain snow ice river water
"""


def build_tiny_cross_encoder(folder: Path, *, labels: int = 1, head: bool = True) -> Path:
    """Write the model to ``folder`` and return it: reads 64 tokens, lower case, with a vocabulary
    of some words and single letters.

    Args:
        labels: numbers that it gives for a pair.
        head: False writes the encoder alone, which gives a pair no score.
    """
    vocabulary = write_tokenizer(folder, WORDS)
    kind = "BertForSequenceClassification" if head else "BertModel"
    write_weights(folder, kind, vocabulary, seed=3, num_labels=labels)
    return folder
