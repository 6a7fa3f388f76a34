"""The light install in an empty environment of its own: BM25 and scoring, without torch."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.cli.project import make_project

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.install, pytest.mark.slow, pytest.mark.long]


def _run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        command, cwd=cwd, env=clean, capture_output=True, text=True, check=False, encoding="utf-8"
    )


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment that holds the wheel and nothing optional."""
    folder = tmp_path_factory.mktemp("light")
    venv.create(folder / "env", with_pip=True)
    commands = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    pip = (commands / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    built = _run(*pip, "wheel", "--no-deps", "--wheel-dir", folder / "dist", ROOT, cwd=folder)
    if built.returncode != 0 and "hatchling" in built.stderr:
        pytest.skip("no package index can be reached, and the wheel needs hatchling to be built")
    assert built.returncode == 0, built.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    installed = _run(*pip, "install", "--constraint", ROOT / "constraints.txt", wheel, cwd=folder)
    assert installed.returncode == 0, installed.stderr
    return commands


def test_nothing_heavy_came_along(light: Path, tmp_path: Path) -> None:
    code = (
        "from importlib.util import find_spec\n"
        "heavy = ('torch', 'faiss', 'sentence_transformers', 'numba', 'onnxruntime', 'pytest')\n"
        "print([n for n in (*heavy, 'bm25s', 'vl_convert') if find_spec(n)])"
    )
    done = _run(light / "python", "-c", code, cwd=tmp_path)
    assert done.stdout.strip() == "[]"


def test_the_guide_came_along(light: Path, tmp_path: Path) -> None:
    guide = Path(_run(light / "retrieval-bench", "--guide", cwd=tmp_path).stdout.strip())
    assert (guide.parent / "do" / "rules.md").is_file()
    said = _run(light / "retrieval-bench", "--skill", cwd=tmp_path).stdout
    assert said == (guide.parent / "skills/retrieval-bench/SKILL.md").read_text(encoding="utf-8")
    assert (guide.parent / "ci/action/regress.sh").is_file()


def test_bm25_runs_on_the_bundled_collection(light: Path, tmp_path: Path) -> None:
    done = _run(light / "retrieval-bench", "bench", "bm25", "--rounds", "1", "-v", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "bm25 on science-mini" in done.stdout
    assert len(list((tmp_path / "results" / "runs").glob("*-bm25-*"))) == 1
    told = " ".join(done.stderr.split()).partition("no pictures")[2]
    assert "vl-convert-python" in told
    assert 'pip install "retrieval-bench[plots] @ file:' in told


def test_saved_runs_are_scored_and_compared(light: Path, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    bench = (light / "retrieval-bench", "bench", "--dataset", "data", "--rounds", "1")
    first = _run(*bench, "--retriever", "own.yaml", "--out", "first", cwd=project)
    assert first.returncode == 0, first.stderr
    again = _run(
        *(*bench, "--retriever", "trec_run", "--set", "path=first/run.trec", "--out", "again"),
        cwd=project,
    )
    assert again.returncode == 0, again.stderr
    compared = _run(light / "retrieval-bench", "compare", "first", "again", "-v", cwd=project)
    assert compared.returncode == 0, compared.stderr
    assert "trec_run - own" in compared.stdout


def test_langchain_works_without_the_extra(light: Path, tmp_path: Path) -> None:
    done = _run(
        *(light / "retrieval-bench", "bench", "--retriever", "langchain-in-memory"),
        *("--rounds", "1"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("retriever", "extra", "layers"),
    [
        ("dense", "dense", "dense"),
        ("hybrid-light", "dense-light", "bge-small dense-light"),
        ("bm25s", "bm25s", "bm25s"),
    ],
)
def test_what_needs_an_extra_says_how_to_add_it_to_this_wheel(
    light: Path, tmp_path: Path, retriever: str, extra: str, layers: str
) -> None:
    done = _run(light / "retrieval-bench", "bench", "--retriever", retriever, cwd=tmp_path)
    assert done.returncode == 2
    assert f'pip install "retrieval-bench[{extra}] @ file:' in done.stderr
    assert all(layer in done.stderr for layer in layers.split())
    asked = (light / "python", "-m", "retrieval_bench.experiment.layers", retriever)
    assert _run(*asked, cwd=tmp_path).stdout == f"{layers}\n"
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results" / "runs").exists() or not list(
        (tmp_path / "results" / "runs").glob("[!.]*")
    )


THEIRS = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "their-search"
version = "1.0"
[tool.hatch.build.targets.wheel]
only-include = ["harness.py", "retrievers"]
""",
    "harness.py": "WEIGHT = 2.0\n",
    "retrievers/__init__.py": "",
    "retrievers/words.py": "def words(text):\n    return set(text.lower().split())\n",
    "retrievers/mine.py": """
from harness import WEIGHT
from retrieval_bench import Retriever
from retrievers.words import words

from . import words as module


class Mine(Retriever):
    def index(self, documents):
        self.texts = {d.id: module.words(d.contents) for d in documents}

    def search(self, query, k):
        found = words(query.text)
        hits = [(i, WEIGHT * len(found & text)) for i, text in self.texts.items()]
        return sorted((h for h in hits if h[1]), key=lambda h: (-h[1], h[0]))[:k]
""",
    "configs/retrievers/mine.yaml": "name: mine\ntarget: retrievers.mine:Mine\n",
}


def test_a_project_with_packages_of_the_same_names_lives_beside_it(
    light: Path, tmp_path: Path
) -> None:
    """Its ``harness`` and ``retrievers`` are its own, installed or not, and nothing of ours goes
    with them when they are uninstalled."""
    project = make_project(tmp_path)
    for name, text in THEIRS.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    pip = (light / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    bench = (light / "retrieval-bench", "bench", "--dataset", "data", "--rounds", "1")
    for step in ("install", "uninstall"):
        words = ("install", project) if step == "install" else ("uninstall", "-y", "their-search")
        done = _run(*pip, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        for retriever in ("mine", "retrievers.mine:Mine", "retrievers/mine.py:Mine", "bm25"):
            done = _run(*bench, "--retriever", retriever, cwd=project)
            assert done.returncode == 0, done.stderr
        theirs = _run(light / "python", "-c", "import harness; print(harness.WEIGHT)", cwd=project)
        assert theirs.stdout == "2.0\n"
    assert len(list((project / "results" / "runs").glob("[!.]*"))) == 8


def test_the_command_that_is_named_brings_the_light_encoder(light: Path, tmp_path: Path) -> None:
    """All that is missing is told at once: the line is pasted as it stands, and nothing else."""
    bench = (light / "retrieval-bench", "bench", "--retriever", "hybrid-light", "--rounds", "1")
    refused = _run(*bench, cwd=tmp_path).stderr
    line = refused.partition("  do: ")[2].strip()
    pinned = ("env", f"PIP_CONSTRAINT={ROOT / 'constraints.txt'}", "sh", "-c", line)
    added = _run(*pinned, cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    done = _run(*bench, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "hybrid-light on science-mini" in done.stdout
    heavy = _run(light / "python", "-c", "import torch", cwd=tmp_path)
    assert "ModuleNotFoundError" in heavy.stderr
