"""A question-answering model of two small layers with seeded random weights, for tests."""

from __future__ import annotations

import json
import string
from pathlib import Path

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
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
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForQuestionAnswering, BertModel

    letters = list(string.ascii_lowercase + string.digits + ".,?!-")
    pieces = [*SPECIAL, *WORDS.split(), *letters, *(f"##{letter}" for letter in letters)]
    if blanks:
        pieces += [f" {word}" for word in WORDS.split()]
    vocabulary = {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if blanks:
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_next")
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    kind = BertForQuestionAnswering if head else BertModel
    kind(config).save_pretrained(folder)
    return folder
