"""A file of results: new, complete or not at all, one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any

from retrieval_bench.core.errors import RecordError


def check_new_file(path: Path) -> None:
    """Find out before the work whether ``path`` can be written; leaves no trace.

    Raises:
        RecordError: something is there already, or its folder is missing or read-only.
    """
    if path.exists() or path.is_symlink():
        raise RecordError(
            f"{path} is there already",
            where="--out",
            accepted="a file that does not exist yet",
            fix="name another file, or remove this one",
        )
    if not path.parent.is_dir():
        raise _refused(path, "no such folder")
    if not os.access(path.parent, os.W_OK):
        raise _refused(path, "the folder is read-only")


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write ``records``, UTF-8, one a line, every script as it is.

    Raises:
        RecordError: it cannot be written; nothing is left of it.
    """
    check_new_file(path)
    part = path.with_name(f".{path.name}.{token_hex(4)}.part")
    try:
        with part.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        part.replace(path)
    except OSError as problem:
        raise _refused(path, problem.strerror or str(problem)) from None
    finally:
        part.unlink(missing_ok=True)


def _refused(path: Path, why: str) -> RecordError:
    return RecordError(
        f"cannot write {path}: {why}",
        where="--out",
        fix="name a file in a folder that is there, or make room",
    )
