"""A folder of sentence-transformers whose model is an ONNX file, read without torch.

What the library would learn from the folder is read from the same files: the tokens of a text, how
the vectors of tokens become one, and the prompts. Steps that only the library can compute are
refused, since without them the vectors would be others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ModelError
from retrieval_bench_retrievers.encoders.model_files import in_short
from retrieval_bench_retrievers.encoders.onnx_model import OnnxModel
from retrieval_bench_retrievers.encoders.packaged import file_hash, hash_of

ACCEPTED = (
    "a folder with model.onnx or onnx/model.onnx, or one such file in it, and tokenizer.json, as "
    "sentence-transformers and optimum save them"
)
_PLACES = ("model.onnx", "onnx/model.onnx")
_POOLINGS = ("cls", "mean")
_STEPS = ("Transformer", "Pooling", "Normalize")
_POSITIONS = 512


@dataclass(frozen=True, slots=True)
class OnnxFolder:
    """What such a folder says.

    Attributes:
        weights, tokenizer: the files.
        tokens: that are read of a text.
        positions: that the model has for tokens.
        pooling: ``cls`` or ``mean``; None where no file says it.
        normalized: whether vectors are scaled to length 1.
        prompts: by name.
        content_hash: one sha256 over the files that decide a vector.
    """

    folder: Path
    weights: Path
    tokenizer: Path
    tokens: int
    positions: int
    pooling: str | None
    normalized: bool
    prompts: Mapping[str, str]

    @classmethod
    def read(cls, name: str) -> OnnxFolder:
        """The folder ``name``, or that of the ONNX file ``name``.

        Raises:
            ModelError: it has no model, no tokenizer, or steps that need sentence-transformers.
        """
        weights = _weights(name)
        folder = weights.parent.parent if weights.parent.name == "onnx" else weights.parent
        steps = [
            str(step.get("type", "")).split(".")[-1] for step in _json(folder, "modules.json", [])
        ]
        if other := [step for step in steps if step not in _STEPS]:
            raise _refusal(
                f"the model has a step {other[0]!r}, which onnxruntime does not compute",
                folder,
                accepted=f"{', '.join(_STEPS)}",
                fix="use backend: torch or onnx, which need sentence-transformers",
            )
        positions = _json(folder, "config.json", {}).get("max_position_embeddings", _POSITIONS)
        positions -= positions % 8  # RoBERTa and its kin count two that no token gets: 514
        said = _json(folder, "sentence_bert_config.json", {}).get("max_seq_length")
        said = said or _json(folder, "tokenizer_config.json", {}).get("model_max_length")
        return cls(
            folder=folder,
            weights=weights,
            tokenizer=_tokenizer(weights, folder),
            tokens=int(min(said or positions, positions)),
            positions=positions,
            pooling=_pooling(folder),
            normalized="Normalize" in steps,
            prompts=_json(folder, "config_sentence_transformers.json", {}).get("prompts", {}),
        )

    def opened(self) -> OnnxModel:
        """What computes its vectors.

        Raises:
            ModelError: onnxruntime or tokenizers cannot read it.
        """
        try:
            return OnnxModel(
                self.weights,
                self.tokenizer,
                tokens=self.tokens,
                pooling=self.pooling,
                prompts=self.prompts,
                positions=self.positions,
                normalized=self.normalized,
            )
        except ModelError:
            raise
        except Exception as problem:  # both libraries raise errors of their own
            raise _refusal(
                f"the model cannot be loaded: {in_short(problem)}",
                self.weights,
                accepted="an ONNX file and a tokenizer.json that belong together",
                fix="save or download them again",
            ) from problem

    @property
    def content_hash(self) -> str:
        """Over the weights, also those that lie beside the graph, the tokenizer and settings."""
        files = [*self.weights.parent.glob(f"{self.weights.name}*"), self.tokenizer]
        files += [*sorted(self.folder.glob("*.json")), self.folder / "1_Pooling/config.json"]
        return hash_of(
            (path.name, file_hash(path)) for path in dict.fromkeys(files) if path.is_file()
        )


def _weights(name: str) -> Path:
    given = Path(name).expanduser()
    found = [given] if given.suffix == ".onnx" else [given / place for place in _PLACES]
    for path in found:
        if path.is_file():
            return path.absolute()  # not resolved: hubs keep links to files without these names
    others = sorted(path.relative_to(given).as_posix() for path in given.rglob("*.onnx"))
    problem = f"no ONNX model at {name!r}"
    if others:
        raise _refusal(problem, given, fix=f"name one of its files: model: {name}/{others[0]}")
    raise _refusal(problem, given, fix="correct the path; for a name at a hub, download it first")


def _tokenizer(weights: Path, folder: Path) -> Path:
    for place in (weights.parent, folder):
        if (path := place / "tokenizer.json").is_file():
            return path
    raise _refusal(
        "the model has no tokenizer.json",
        folder,
        fix="save it there: AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)",
    )


def _pooling(folder: Path) -> str | None:
    settings = _json(folder, "1_Pooling/config.json", {})
    if not settings:
        return None
    old = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
    on = [
        key for key, value in settings.items() if key.startswith("pooling_mode_") and value is True
    ]
    said = settings.get("pooling_mode") or "+".join(old.get(key, key) for key in on)
    if said not in _POOLINGS or settings.get("include_prompt") is False:
        raise _refusal(
            f"token vectors become one by {said!r}, or without those of the prompt",
            folder / "1_Pooling/config.json",
            accepted=f"{' or '.join(_POOLINGS)}, include_prompt true",
            fix="use backend: torch or onnx, which need sentence-transformers",
        )
    return str(said)


def _json(folder: Path, name: str, default: Any) -> Any:
    """What the file says, ``default`` where there is none."""
    path = folder / name
    if not path.is_file():
        return default
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise _refusal(f"it can't be read: {problem}", path, fix="save the model again") from None
    if not isinstance(said, type(default)):
        raise _refusal(f"it is no JSON {type(default).__name__}", path, fix="save the model again")
    return said


def _refusal(problem: str, where: Path, *, fix: str, accepted: str = ACCEPTED) -> ModelError:
    return ModelError(problem, where=str(where), accepted=accepted, fix=fix)
