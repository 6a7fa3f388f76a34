"""Files of an index: arrays that are read where they lie, and the rest as JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.filters import MISSING
from retrieval_bench.core.metadata import MetadataTable


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
    """Read the value that :func:`write_json` wrote."""
    return json.loads(path.read_bytes())


def write_metadata(folder: Path, table: MetadataTable) -> None:
    """The fields that documents are filtered by."""
    columns = table.columns()
    known = {
        field: [[] if value is MISSING else [value] for value in values]
        for field, (values, _) in columns.items()
    }
    write_json(folder / "metadata.json", {"documents": len(table), "values": known})
    for at, (_, numbers) in enumerate(columns.values()):
        np.save(folder / f"metadata-{at}.npy", numbers)


def read_metadata(folder: Path) -> MetadataTable:
    """Read the table that :func:`write_metadata` wrote."""
    kept = read_json(folder / "metadata.json")
    columns = {
        field: ([value[0] if value else MISSING for value in values], np.load(file))
        for at, (field, values) in enumerate(kept["values"].items())
        for file in [folder / f"metadata-{at}.npy"]
    }
    return MetadataTable.of(kept["documents"], columns)


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
