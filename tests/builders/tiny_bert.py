"""What the small models of the tests have in common: a vocabulary of words and single letters, and
two layers with seeded random weights."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def write_tokenizer(folder: Path, words: str, *, blanks: bool = False) -> int:
    """Write a lower-case tokenizer of 64 tokens into the new ``folder``; its vocabulary's size.

    Args:
        blanks: the blank before a word counts as a part of it, as some have it.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    letters = list(string.ascii_lowercase + string.digits + ".,?!-")
    pieces = [*_SPECIAL, *words.split(), *letters, *(f"##{letter}" for letter in letters)]
    if blanks:
        pieces += [f" {word}" for word in words.split()]
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
    return len(vocabulary)


def write_weights(folder: Path, kind: str, vocabulary: int, *, seed: int, **settings: Any) -> None:
    """Write the model of the class ``kind`` of transformers, with further ``settings``, into
    ``folder``."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        **settings,
    )
    model: Any = getattr(transformers, kind)(config)
    model.save_pretrained(folder)
