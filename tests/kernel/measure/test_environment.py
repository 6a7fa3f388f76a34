"""What a manifest says of the surroundings of a run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.core.installed.git import why_no_commit
from retrieval_bench.measure.environment import environment, git_revision, packages, peak_rss_bytes
from retrieval_bench.measure.threads import numpy_blas, search_threads
from tests.builders import some
from tests.builders.fake_system import V1, allowed, lay_out
from tests.builders.git_project import GitProject


def test_everything_that_can_move_a_time_is_there(tmp_path: Path) -> None:
    found = environment(2, lay_out(tmp_path, V1, allowed("0")))
    assert found["threads"] == 2
    assert found["machine"]["cpu_limit"] == 0.5
    assert found["machine"]["usable_cores"] == 1
    assert found["packages"]["numpy"] == np.__version__
    assert found["clock"]["name"] == "perf_counter_ns"
    assert found["blas"] == numpy_blas()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_thread_pools_say_what_timed_searches_use() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))
    with search_threads(1):
        pools = environment(1)["thread_pools"]
    assert {pool["num_threads"] for pool in pools} <= {1}
    for pool in pools:
        assert {"internal_api", "version"} <= set(pool)
        assert "filepath" not in pool, "a path of the machine is nobody's business"


def test_variables_that_matter_are_recorded_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {
        "OMP_NUM_THREADS": "3",
        "POLARS_MAX_THREADS": "2",
        "PYTHONHASHSEED": "0",
        "VECLIB_MAXIMUM_THREADS": "1",
    }
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SEARCH_API_TOKEN", "hidden")
    variables = environment(1)["variables"]
    assert wanted.items() <= variables.items()
    assert "hidden" not in variables.values()


def test_the_library_that_numpy_computes_with_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    built = {"Build Dependencies": {"blas": {"name": "openblas", "version": "0.3"}}}
    monkeypatch.setattr(np, "show_config", lambda mode: built)
    assert numpy_blas() == {"name": "openblas", "version": "0.3"}
    monkeypatch.setattr(np, "show_config", lambda mode: {})
    assert numpy_blas() is None


def test_only_installed_packages_have_a_version() -> None:
    found = packages()
    assert "numpy" in found
    assert all(found.values())


def test_why_there_is_no_revision_is_told_in_words_of_git(tmp_path: Path) -> None:
    assert git_revision(tmp_path) is None
    assert why_no_commit(tmp_path) == "outside of a git repository"
    project = GitProject(tmp_path)
    assert why_no_commit(tmp_path) == "the repository has no commit yet"
    project.commit({"a.py": ""})
    # A repository of somebody else is none that is not there.
    (tmp_path / ".git" / "config").write_text("[", encoding="utf-8")
    assert git_revision(tmp_path) is None
    why = why_no_commit(tmp_path)
    assert why.startswith("git refuses to read the repository (")
    assert "bad config" in why


def test_changed_files_are_told(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        name = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    file = tmp_path / "é.txt"
    file.write_text("1", encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "one")
    clean = some(git_revision(tmp_path))
    file.write_text("2", encoding="utf-8")
    changed = some(git_revision(tmp_path))
    assert len(clean["commit"]) == 40
    assert (clean["dirty"], changed["dirty"]) == (False, True)


@pytest.mark.parametrize("below", [".", "sub"])
def test_new_files_are_changes_where_they_are_no_results(tmp_path: Path, below: str) -> None:
    project = GitProject(tmp_path)
    project.commit({".gitignore": "*.log\n", "sub/a.py": ""})
    folder = tmp_path / below

    def dirty(besides: Path | None = None) -> bool:
        revision = some(git_revision(folder, besides=besides))
        return bool(revision["dirty"])

    for name in ("results/baselines/a.json", "noise.log", "__pycache__/a.pyc", "kept/a"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1", encoding="utf-8")
    assert dirty()
    assert not dirty(Path("kept"))
    assert not dirty(folder / "kept")
    (tmp_path / "new.py").write_text("", encoding="utf-8")
    assert dirty(Path("kept"))


def test_what_git_cannot_tell_is_not_called_clean(tmp_path: Path) -> None:
    GitProject(tmp_path).commit({"a.py": ""})
    (tmp_path / ".git" / "index").write_bytes(b"no index")
    revision = some(git_revision(tmp_path))
    assert revision["dirty"] is True


def test_peak_memory_does_not_fall() -> None:
    first = peak_rss_bytes()
    if first is None:
        pytest.skip("the system does not tell")
    block = np.ones(4_000_000)
    second = some(peak_rss_bytes())
    assert second >= first > 1_000_000
    assert block.sum() == 4_000_000
