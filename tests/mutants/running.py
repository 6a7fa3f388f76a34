"""Puts a fault into a copy of the project and runs tests there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.mutants.table import Mutant

ROOT = Path(__file__).parents[2]
ENOUGH = 2
"""Tests that see a fault; more are not looked for."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_UNTIMED = "not dense and not install and not realdata and not long"


def copied(folder: Path) -> Path:
    """Copy the files of the project that git knows, and new ones, into ``folder``."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    project = folder / "project"
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, project / name)
    return project


def judged(project: Path, mutant: Mutant) -> list[str]:
    """Give the first tests that fail with the fault in place, at most :data:`ENOUGH`.

    Args:
        project: a copy, which is as it was afterwards.

    Raises:
        ValueError: the fault can't be put in place, or the tests can't be run.
    """
    file = project / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.before) != 1:
        raise ValueError(f"{mutant.name}: {mutant.before!r} stands not once in {mutant.file}")
    file.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
    paths = [str(project / "harness"), str(project / "retrievers"), str(project)]
    try:
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", f"--maxfail={ENOUGH}"),
                *("-p", "no:cacheprovider", "-m", _UNTIMED, *mutant.tests),
            ],
            cwd=project,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "1000"},
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
        )
    finally:
        file.write_text(text, encoding="utf-8")
    if ran.returncode not in (0, 1, 2):
        raise ValueError(f"{mutant.name}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return list(dict.fromkeys(_FAILED.findall(ran.stdout)))
