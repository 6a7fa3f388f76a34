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
from retrieval_bench.core.installed.modules import user_path
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
_MOST_SAID = 1 << 20
"""Of tokens: a tokenizer that knows no limit says 10 ** 30."""

_NO_WEIGHTS = (".onnx", ".md", ".txt", ".json")


@dataclass(frozen=True, slots=True)
class OnnxFolder:
    """What such a folder says.

    Attributes:
        weights, tokenizer: the files.
        tokens: that are read of a text.
        positions: that the model has for tokens.
        pooling: ``cls`` or ``mean``; None where no file says it.
        normalized: whether vectors are scaled to length 1.
        prompts: by name; ``default_prompt_name`` is that of all other texts.
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
    default_prompt_name: str | None

    @classmethod
    def read(cls, name: str) -> OnnxFolder:
        """The folder ``name``, or that of the ONNX file ``name``.

        Raises:
            ModelError: it has no model, no tokenizer, or steps that need sentence-transformers.
        """
        weights = _weights(name)
        folder = _folder_of(weights)
        steps = [
            str(step.get("type", "")).split(".")[-1]
            for step in _json(folder, "modules.json", [])
            if isinstance(step, dict)
        ]
        if other := [step for step in steps if step not in _STEPS]:
            raise _refusal(
                f"the model has a step {other[0]!r}, which onnxruntime does not compute",
                folder,
                accepted=f"{', '.join(_STEPS)}",
                fix="use backend: torch or onnx, which need sentence-transformers",
            )
        config, sbert = _json(folder, "config.json", {}), "sentence_bert_config.json"
        said = _number(_json(folder, sbert, {}).get("max_seq_length"))
        said = said or _number(_json(folder, "tokenizer_config.json", {}).get("model_max_length"))
        known = [_number(config.get(key)) for key in ("max_position_embeddings", "n_positions")]
        positions = next((n for n in known if n), None) or min(said or _POSITIONS, _MOST_SAID)
        if positions > 8:
            positions -= positions % 8  # RoBERTa and its kin count two that no token gets: 514
        own = _json(folder, "config_sentence_transformers.json", {})
        return cls(
            folder=folder,
            weights=weights,
            tokenizer=_tokenizer(weights, folder),
            tokens=int(min(said or positions, positions)),
            positions=positions,
            pooling=_pooling(folder),
            normalized="Normalize" in steps,
            prompts=own.get("prompts") or {},
            default_prompt_name=own.get("default_prompt_name"),
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
                default_prompt_name=self.default_prompt_name,
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
        """Over the weights and all that lies beside them, whatever its name, since a graph may keep
        numbers in other files; over the tokenizer and the settings."""
        files = [self.weights, *sorted(self.weights.parent.iterdir()), self.tokenizer]
        files = [path for path in files if path == self.weights or path.suffix not in _NO_WEIGHTS]
        files += [*sorted(self.folder.glob("*.json")), self.folder / "1_Pooling/config.json"]
        return hash_of(
            (path.name, file_hash(path)) for path in dict.fromkeys(files) if path.is_file()
        )


def _folder_of(weights: Path) -> Path:
    """The folder of the whole model: with ``onnx/model.onnx`` that above, unless the settings lie
    beside the weights."""
    beside, above = weights.parent, weights.parent.parent
    own = any((beside / name).is_file() for name in ("modules.json", "config.json"))
    return above if beside.name == "onnx" and not own else beside


def _number(said: Any) -> int | None:
    """A whole number above 0; None where it is none."""
    return said if type(said) is int and said > 0 else None


def _weights(name: str) -> Path:
    given = user_path(name)
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
    """Content of the file, ``default`` where there is none."""
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
