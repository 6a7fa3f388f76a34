"""From words to a measurement beside its baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_regress.code import Code
from retrieval_bench_regress.latency_gates import Duet
from retrieval_bench_regress.regress import Request, duet_against
from tests.builders.baselines import COMMIT, today
from tests.builders.git_project import GitProject


def test_the_command_that_makes_a_baseline_says_what_is_not_as_usual() -> None:
    assert Request("bm25").make == "retrieval-bench baseline bm25"
    own = Request("my own.yaml", "data", k=3, overrides=["b=1"], baselines=Path("kept"))
    words = "'my own.yaml' --dataset data --k 3 --set b=1 --baselines kept"
    assert own.make == f"retrieval-bench baseline {words}"


def against(folder: Path) -> Duet:
    code, request = Code(COMMIT, "mine.yaml", ()), Request("mine.yaml")
    return duet_against(code, request, today(folder), setup=None, not_kept=[], reporter=None)


def test_a_commit_that_is_gone_is_told_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    GitProject(tmp_path).commit({"a.py": ""})
    monkeypatch.chdir(tmp_path)
    duet = against(tmp_path)
    with pytest.raises(ConfigError) as caught:
        duet()
    assert caught.value.given == "the commit that the baseline was made of is not here: 3f2a1c9000"
    assert "a squash or a rebase" in caught.value.accepted
    assert caught.value.fix == "make the baseline anew: MAKE --force"


@pytest.mark.parametrize("broken", [False, True])
def test_a_repository_that_is_not_there_is_told_with_options_that_regress_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if broken:
        GitProject(tmp_path).commit({"a.py": ""})
        (tmp_path / ".git" / "config").write_text("[", encoding="utf-8")
    duet = against(tmp_path)
    with pytest.raises(ConfigError) as caught:
        duet()
    assert ("bad config" in caught.value.given) is broken
    assert ("not a git repository" in caught.value.given) is not broken
    assert "--a and --b" not in caught.value.render()
    assert "--duet never" in caught.value.fix


class TestWhatAPathMeans:
    """In the checkout of another revision, where an absolute one is today's file."""

    @pytest.fixture
    def project(self, tmp_path: Path) -> GitProject:
        made = GitProject(tmp_path / "real")
        made.write({"mine.yaml": "", "sub/other.py": ""})
        (tmp_path / "link").symlink_to(tmp_path / "real")
        (tmp_path / "outside.yaml").write_text("", encoding="utf-8")
        return made

    @pytest.mark.parametrize("way", ["real", "link"])
    def test_of_the_repository_it_starts_where_the_user_stands(
        self, project: GitProject, monkeypatch: pytest.MonkeyPatch, way: str
    ) -> None:
        top = project.folder.parent / way
        monkeypatch.chdir(top / "sub")
        assert Request(str(top / "mine.yaml")).relative_retriever == "../mine.yaml"
        assert Request(f"{top}/sub/other.py:Mine").relative_retriever == "other.py:Mine"

    def test_all_else_stays_as_it_was_given(
        self, project: GitProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outside = str(project.folder.parent / "outside.yaml")
        monkeypatch.chdir(project.folder)
        for given in (outside, "mine.yaml", "../real/mine.yaml", "bm25", "module:Class"):
            assert Request(given).relative_retriever == given

    def test_without_a_repository_the_folder_of_the_user_counts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert Request(str(tmp_path / "mine.yaml")).relative_retriever == "mine.yaml"
