"""A sentence-transformers model of two small layers with seeded random weights, for tests."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
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
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    letters = list(string.ascii_lowercase + string.digits + ".,?!-")
    pieces = [*SPECIAL, *WORDS.split(), *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64, **names}
    _write(folder / "tokenizer_config.json", settings)
    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
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
