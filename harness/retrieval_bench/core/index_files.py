"""Files of an index: arrays that are read where they lie, and the rest as JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_array(path: Path) -> NDArray[Any]:
    """An array of ``np.save``, mapped into memory: its pages are read when they are needed."""
    try:
        return np.asarray(np.load(path, mmap_mode="r"))
    except ValueError:  # nothing can be mapped of no bytes
        return np.asarray(np.load(path))


def write_json(path: Path, value: Any) -> None:
    """``value`` in ASCII, so that any text can be written."""
    path.write_text(json.dumps(value, ensure_ascii=True), encoding="ascii")


def read_json(path: Path) -> Any:
    """What :func:`write_json` wrote."""
    return json.loads(path.read_bytes())


def code_hash(*modules: str) -> str:
    """A hash of the files that lie beside these modules of ours: an index that other code made may
    be another one.

    Args:
        modules: values of their ``__file__``.
    """
    digest = hashlib.sha256()
    for module in modules:
        for path in sorted(Path(module).parent.glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
