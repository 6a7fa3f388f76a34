"""What the plugin adds to pytest in a project that does not use it.

Two folders hold pytest and this project as a wheel installs it; in one the entry point is missing.
(With ``-p no:NAME`` pytest still looks at all files of a package that has plugins.)
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

from tests.benchmarks import children
from tests.benchmarks.report import Group, Options, Row
from tests.benchmarks.timing import middle

LIMIT = 10e-3
TESTS = 100
_PYTEST = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")


def measure(options: Options) -> Group:
    """``pytest --version``, and the collection of a folder, with the plugin and without it."""
    turns = 1 if options.quick else 25
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        top = Path(temporary)
        sides = _installed(top)
        (record,) = sides[0].glob("retrieval_bench-*.dist-info/RECORD")
        n_files = len(record.read_text("utf-8").splitlines())
        tests = top / "tests"
        tests.mkdir()
        lines = [f"def test_{at}():\n    pass\n" for at in range(TESTS)]
        (tests / "test_a.py").write_text("\n".join(lines), encoding="utf-8")
        collecting = ["--collect-only", "--quiet", f"--rootdir={tests}", str(tests)]
        for what, words in (("pytest --version", ["--version"]), ("collection", collecting)):
            for side in sides:
                _pytest(side, words, tests)  # compiles
            seconds = [[_pytest(side, words, tests) for side in sides] for _ in range(turns)]
            taken, without = np.array(seconds).T
            more = max(0.0, middle(taken - without))
            rows += [
                Row(f"{what}, more with the plugin", more, "s", at_most=LIMIT, absolute=True),
                Row(f"{what}, with it", middle(taken), "s"),
            ]
    return Group(
        "The plugin of pytest where nothing uses it",
        rows,
        [
            f"seconds of CPU, medians of {turns} pairs of fresh processes; {TESTS} tests",
            "the side without it has the same files and no entry point",
            f"before it collects, pytest lists all {n_files:,} files of a package with plugins",
        ],
    )


def _installed(top: Path) -> tuple[Path, Path]:
    """Folders for the path of modules, with the entry point and without it."""
    plugged, bare = top / "with", top / "without"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(plugged)]
    children.run([*pip, str(children.ROOT)])
    for name in _PYTEST:
        for file in distribution(name).files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                (plugged / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), plugged / file)
    shutil.copytree(plugged, bare)
    (entries,) = bare.glob("retrieval_bench-*.dist-info/entry_points.txt")
    entries.unlink()
    return plugged, bare


def _pytest(side: Path, words: Sequence[str], project: Path) -> float:
    """Seconds of CPU of one process that sees no other packages.

    It starts in the project: `-m` puts its folder on the path, where packages would count twice.
    """
    command = [sys.executable, "-S", "-m", "pytest", "-p", "no:cacheprovider", *words]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(side)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout!r}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
