"""A question-answering model of two small layers with seeded random weights, for tests."""

from __future__ import annotations

from pathlib import Path

from tests.builders.tiny_bert import write_tokenizer, write_weights

WORDS = """
the a of and in is to for who what when where how many capital days leave paid seoul paris river
water light stone stars blue whale year employee company founded is was 서울 수도 연차
"""


def build_tiny_reader(folder: Path, *, head: bool = True, blanks: bool = False) -> Path:
    """Write the model to ``folder`` and return it: reads 64 tokens, lower case, with a vocabulary
    of some words and single letters.

    Args:
        head: False writes the encoder alone, which cannot answer.
        blanks: the tokenizer counts the blank before a word as a part of it, as some do.
    """
    vocabulary = write_tokenizer(folder, WORDS, blanks=blanks)
    kind = "BertForQuestionAnswering" if head else "BertModel"
    write_weights(folder, kind, vocabulary, seed=7)
    return folder
