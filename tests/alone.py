"""The kernel's tests with packages taken away, all or those that are named.

`python -m tests.alone [NAME ...]`

Folder and tests of each go, and what stands on one of them says so and adds nothing. The tests that
ask for one are skipped (``needs``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from retrieval_bench.capabilities import named, own_packages

ROOT = Path(__file__).parents[1]
_PLUGINS = ("-p", "no:xdist", "-p", "no:retrieval-bench")  # ours may be away
_START = "import sys; sys.path[:0] = {path}; sys.path.append({libraries!r}); import pytest; "
_START += "sys.exit(pytest.main(sys.argv[1:]))"


def away(names: Sequence[str]) -> set[str]:
    """The packages that go with those named, since they stand on one of them."""
    gone = set(names)
    for package in own_packages():
        if gone & set(named(f"{package}.capability:CAPABILITY").stands_on):
            gone.add(package)
    return gone if gone == set(names) else away(sorted(gone))


def copied(to: Path, names: Sequence[str]) -> None:
    """Copy the project without these packages, and without the tests of all that go with them."""
    left_out = {ROOT / "harness" / name for name in names}
    left_out |= {ROOT / "tests" / name.removeprefix("retrieval_bench_") for name in away(names)}

    def ignored(folder: str, entries: list[str]) -> set[str]:
        caches = set(shutil.ignore_patterns("__pycache__", ".*", "results")(folder, entries))
        return caches | {entry for entry in entries if Path(folder, entry) in left_out}

    shutil.copytree(ROOT, to, ignore=ignored)


def main(names: Sequence[str]) -> int:
    """Run them; gives the exit code of pytest."""
    packages = [
        f"retrieval_bench_{name.removeprefix('retrieval_bench_')}" for name in names
    ] or own_packages()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "kernel")
        copied(place, packages)
        path = [str(place / part) for part in ("harness", "retrievers", ".")]
        code = _START.format(path=path, libraries=sysconfig.get_path("purelib"))
        chosen = ["-m", "not slow and not long and not dense and not realdata"]
        words = [sys.executable, "-S", "-c", code, "-q", *_PLUGINS, *chosen, "tests/kernel"]
        return subprocess.run(words, cwd=place, env=os.environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
