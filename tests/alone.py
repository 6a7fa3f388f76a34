"""The kernel's tests with packages taken away, all or those that are named.

`python -m tests.alone [NAME ...]`, `python -m tests.alone each`

Folder and tests of each go, and what stands on one of them says so and adds nothing. The tests that
ask for one are skipped (``needs``). ``each``: every package in turn, and only tests that ask for
one: any other passes with all of them there and with none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from subprocess import PIPE, STDOUT

from retrieval_bench.capabilities import named, own_packages

ROOT = Path(__file__).parents[1]
_PLUGINS = ("-p", "no:xdist", "-p", "no:retrieval-bench")  # ours may be away
EACH = "each"
_ASKS = r"needs\([^)]*retrieval_bench_"
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
    """Run them; gives the exit code of pytest, of ``each`` the highest."""
    if list(names) == [EACH]:
        files = (ROOT / "tests/kernel").rglob("test_*.py")
        asking = [path for path in files if re.search(_ASKS, path.read_text("utf-8"))]
        tests = [path.relative_to(ROOT).as_posix() for path in sorted(asking)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            of_one = partial(_without, only="needs and ", tests=tests)
            return max(pool.map(of_one, ([name] for name in own_packages())))
    given = [f"retrieval_bench_{name.removeprefix('retrieval_bench_')}" for name in names]
    return _without(given or own_packages())


def _without(
    packages: Sequence[str], only: str = "", tests: Sequence[str] = ("tests/kernel",)
) -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "kernel")
        copied(place, packages)
        path = [str(place / part) for part in ("harness", "retrievers", ".")]
        code = _START.format(path=path, libraries=sysconfig.get_path("purelib"))
        chosen = ["-m", f"{only}not slow and not long and not dense and not realdata"]
        words = [sys.executable, "-S", "-c", code, "-q", *_PLUGINS, *chosen, *tests]
        done = subprocess.run(words, cwd=place, stdout=PIPE, stderr=STDOUT, text=True, check=False)
    shown = done.stdout if done.returncode else done.stdout.strip().rpartition("\n")[2]
    gone = " ".join(package.removeprefix("retrieval_bench_") for package in packages)
    sys.stdout.write(f"without {gone}: {shown}\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
