from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.git import code_state
from retrieval_bench.core.progress import Step
from retrieval_bench_duet.launch import SideProcess
from retrieval_bench_duet.revisions import kept
from retrieval_bench_duet.revisions.revisions import place_of, same_code, wrong_code
from retrieval_bench_duet.sides import Place, Side
from tests.builders import some
from tests.builders.files import save
from tests.builders.git_project import GitProject
from tests.builders.processes import printed
from tests.builders.reporters import Remembering
from tests.cli.project import make_project

ROOT = Path(__file__).parents[2]
PACKAGE = {"mine/__init__.py": "", "mine/search.py": "NAME = 'first'\n"}
SECOND = {"mine/search.py": "NAME = 'second'\n"}


pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    """Two commits: ``mine.search`` says "first", then "second"."""
    made = GitProject(tmp_path / "project")
    made.commit(PACKAGE)
    made.git("tag", "v1")
    made.commit(SECOND)
    return made


def loaded(place: Place, module: str = "mine.search", what: str = "NAME") -> str:
    """What ``module`` says when it is imported at ``place``, as a worker does it."""
    return printed(
        place, f"import importlib; print(getattr(importlib.import_module({module!r}), {what!r}))"
    )


# -- what a revision is --------------------------------------------------------------------------


@pytest.mark.slow
def test_two_revisions_and_the_own_tree_are_three_codes(project: GitProject) -> None:
    project.write({"mine/search.py": "NAME = 'third'\n"})
    places = [project.at(name) for name in ("v1", "main", "WORKTREE")]
    assert [loaded(place) for place in places] == ["first", "second", "third"]
    hashes = project.git("rev-parse", "v1", "main").split()
    assert [place.commit for place in places] == [*hashes, None]
    assert [place.label for place in places] == [
        f"v1 ({hashes[0][:7]})",
        f"main ({hashes[1][:7]})",
        "WORKTREE",
    ]
    assert places[2].folder == places[2].tree == project.folder
    assert all(str(place.python) == sys.executable for place in places)


def test_an_unchanged_tree_is_its_commit_and_a_new_file_is_a_change(project: GitProject) -> None:
    head = project.git("rev-parse", "HEAD")
    assert project.at("WORKTREE").commit == head
    project.write({"new.py": ""})
    assert project.at("WORKTREE").commit is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("main~1", "first"),
        ("HEAD", "second"),
        ("v1", "first"),
        ("release/2.0-ünïcode", "second"),
        ("annotated", "second"),
        ("refs/tags/v1", "first"),
        (":/change", "second"),
    ],
)
def test_whatever_git_understands_is_a_revision(project: GitProject, name: str, says: str) -> None:
    project.git("branch", "release/2.0-ünïcode")
    project.git("tag", "-a", "annotated", "-m", "a tag with a text")
    assert loaded(project.at(name)) == says


def test_a_hash_is_shown_short_and_may_be_given_short(project: GitProject) -> None:
    commit = project.git("rev-parse", "v1")
    for given in (commit, commit[:9]):
        assert project.at(given).label == commit[:7]


def test_a_branch_called_worktree_is_another_thing(project: GitProject) -> None:
    project.git("branch", "worktree", "v1")
    project.git("branch", "WORKTREE", "v1")
    assert loaded(project.at("worktree")) == "first"
    assert project.at("WORKTREE").tree == project.folder
    by_its_full_name = project.at("refs/heads/WORKTREE")
    assert loaded(by_its_full_name) == "first"


def test_a_module_that_moved_is_found_where_it_was(project: GitProject) -> None:
    project.git("mv", "mine/search.py", "mine/found.py")
    project.commit({})
    assert loaded(project.at("HEAD~1")) == "second"
    now = project.at("HEAD")
    assert "No module named 'mine.search'" in loaded(now)
    assert loaded(now, "mine.found") == "second"


def test_folders_may_have_blanks_and_letters_of_any_script(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "mein projekt 검색 é")
    project.commit({"unter ordner/mine.py": "NAME = 'é검색'\n", "x'\"y.py": ""})
    place = place_of("HEAD", project.folder / "unter ordner", cache=tmp_path / "ca che é")
    assert place.folder.name == "unter ordner"
    assert (place.folder / "mine.py").read_text(encoding="utf-8") == "NAME = 'é검색'\n"
    assert (some(place.tree) / "x'\"y.py").is_file()


# -- what is no revision -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nope", "", "-x", "--all", "v1..main", "HEAD:mine", "main~9"])
def test_an_unknown_revision_says_what_there_is(project: GitProject, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        project.at(name)
    assert caught.value.given == f"unknown revision {name!r}"
    assert "main, v1" in caught.value.accepted
    assert "WORKTREE" in caught.value.accepted


def test_a_close_name_is_offered_and_one_that_only_the_server_has(
    project: GitProject, tmp_path: Path
) -> None:
    for number in range(20):
        project.git("branch", f"topic-{number}")
    with pytest.raises(ConfigError, match=r"did you mean main\?") as caught:
        project.at("mian")
    assert "topic-7" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"and 12 more"):
        project.at("zzz")
    clone = tmp_path / "clone"
    project.git("clone", "--quiet", str(project.folder), str(clone))
    with pytest.raises(ConfigError, match=r"did you mean origin/topic-7\?"):
        place_of("topic-7", clone)


def test_a_shallow_clone_says_how_to_get_the_rest(project: GitProject, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    project.git("clone", "--quiet", "--depth=1", f"file://{project.folder}", str(clone))
    with pytest.raises(ConfigError, match=r"git fetch --unshallow.*fetch-depth: 0"):
        place_of("HEAD~1", clone)


def test_a_repository_without_commits_has_a_tree_only(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "new")
    with pytest.raises(ConfigError, match="no commit yet"):
        project.at("HEAD")
    project.write(PACKAGE)
    place = project.at("WORKTREE")
    assert place.commit is None
    assert loaded(place) == "first"


@pytest.mark.parametrize(
    ("edited", "told"),
    [
        ({"mine/search.py": "NAME = 'other'\n"}, True),
        ({"mine/새.py": "\n"}, True),
        ({"results/runs/one.py": "\n"}, False),
        ({"cache/vectors.npz": "\n"}, False),
    ],
)
def test_a_tree_that_is_edited_meanwhile_is_not_measured(
    project: GitProject, edited: dict[str, str], told: bool
) -> None:
    side = Side("mine", project.at("WORKTREE"))
    facts: dict[str, Any] = {"files": [], "config": {}}
    assert wrong_code([side, side], [facts, facts]) == ""
    project.write(edited)
    why = "WORKTREE was not measured: files of it were edited meanwhile"
    assert wrong_code([side, side], [facts, facts]) == (why if told else "")


def test_another_commit_or_another_edit_is_another_state(project: GitProject) -> None:
    states = [code_state(project.folder)]
    project.write({"mine/search.py": "NAME = 'three'\n"})
    states.append(code_state(project.folder))
    project.write({"mine/search.py": "NAME = 'four'\n"})
    states.append(code_state(project.folder))
    project.commit({"mine/search.py": "NAME = 'four'\n"})
    states.append(code_state(project.folder))
    assert code_state(project.folder) == states[-1]
    project.git("checkout", "--quiet", "v1")
    states.append(code_state(project.folder))
    assert None not in states
    assert len(set(states)) == len(states)


def test_without_files_of_a_repository_there_is_no_revision(
    project: GitProject, tmp_path: Path
) -> None:
    for name in ("HEAD", "WORKTREE"):
        with pytest.raises(ConfigError, match="not a git repository"):
            place_of(name, tmp_path)
        with pytest.raises(ConfigError, match="must be run in a work tree"):
            place_of(name, project.folder / ".git")
    bare = tmp_path / "bare.git"
    project.git("clone", "--quiet", "--bare", str(project.folder), str(bare))
    with pytest.raises(ConfigError, match="must be run in a work tree"):
        place_of("main", bare)


def test_without_git_it_says_so(project: GitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project.folder))
    with pytest.raises(ConfigError, match="no command `git`"):
        project.at("HEAD")


def test_a_folder_that_the_revision_lacks_is_refused(project: GitProject) -> None:
    project.commit({"service/app.py": ""})
    assert place_of("HEAD", project.folder / "service").folder.name == "service"
    with pytest.raises(ConfigError, match=r"v1 \(.{7}\) has no folder service"):
        place_of("v1", project.folder / "service")


def test_revisions_of_the_harness_that_cannot_be_measured_are_refused(tmp_path: Path) -> None:
    names = ("harness/retrieval_bench", "retrievers/retrieval_bench_retrievers")
    project = GitProject(tmp_path / "fork")
    project.commit({"harness/__init__.py": "", "harness/retriever.py": ""})
    project.commit({f"{name}/__init__.py": "" for name in names})
    for revision in ("HEAD", "HEAD~1"):
        with pytest.raises(ConfigError, match="older than what a duet can measure"):
            place_of(revision, project.folder, cache=tmp_path / "cache")


# -- what is left alone --------------------------------------------------------------------------


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_repository_of_the_user_stays_as_it_is(project: GitProject) -> None:
    hook = project.folder / ".git" / "hooks" / "post-checkout"
    for name in ("post-checkout", "post-index-change"):
        hook = project.folder / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{project.folder}/called'\n")
        hook.chmod(0o755)
    project.git("config", "core.splitIndex", "true")
    project.write({"uncommitted.py": "", "mine/search.py": "NAME = 'third'\n"})
    before = everything_in(project.folder)
    project.at("v1")
    project.at("v1")
    assert everything_in(project.folder) == before
    assert project.git("worktree", "list").count("\n") == 0


def test_neither_pruning_nor_collecting_garbage_takes_it_away(project: GitProject) -> None:
    place = project.at("v1")
    commit = place.commit
    project.git("tag", "-d", "v1")
    project.git("reset", "--quiet", "--hard", project.git("commit-tree", "HEAD^{tree}", "-m", "x"))
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("worktree", "prune")
    project.git("gc", "--quiet", "--prune=now")
    assert loaded(place) == "first"
    with pytest.raises(ConfigError, match="unknown revision"):
        project.at(str(commit))


def test_variables_of_a_hook_do_not_point_elsewhere(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GitProject(tmp_path / "other")
    other.commit({"other.py": ""})
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))
    before = everything_in(other.folder)
    assert loaded(project.at("v1")) == "first"
    assert everything_in(other.folder) == before


def test_a_part_of_the_tree_that_is_checked_out_is_no_part_of_a_revision(
    project: GitProject,
) -> None:
    project.commit({"docs/a.txt": "a", "b.txt": "b"})
    project.git("sparse-checkout", "set", "docs")
    assert not (project.folder / "mine").exists()
    assert loaded(project.at("HEAD")) == "second"


def test_a_working_tree_of_the_users_own_is_a_place_to_stand(
    project: GitProject, tmp_path: Path
) -> None:
    project.git("worktree", "add", "--quiet", str(tmp_path / "linked"), "v1")
    assert loaded(place_of("WORKTREE", tmp_path / "linked")) == "first"
    assert loaded(place_of("main", tmp_path / "linked")) == "second"


def test_attributes_for_archives_and_rules_on_line_ends_change_no_code(project: GitProject) -> None:
    project.commit(
        {".gitattributes": "mine/search.py export-ignore\nversion.py export-subst\n"}
        | {"version.py": "V = '$Format:%H$'\n"}
    )
    place = project.at("HEAD")
    assert loaded(place) == "second"
    assert loaded(place, "version", "V") == "$Format:%H$"
    # A file that is stored with CR LF against the rule looks changed to git from the start.
    (project.folder / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    project.commit({})
    project.commit({".gitattributes": "*.txt text eol=lf\n"})
    first = project.at("HEAD")
    made = first.folder.parent.stat().st_ino
    assert project.at("HEAD").folder.parent.stat().st_ino == made


# -- what is kept --------------------------------------------------------------------------------


def test_a_revision_is_checked_out_once(project: GitProject) -> None:
    reporter = Remembering()
    first = project.at("v1", reporter=reporter)
    again = project.at("main~1", reporter=reporter)
    assert again.tree == first.tree
    assert reporter.events == [f"checking out {first.label}", "end"]


def _change(tree: Path) -> None:
    (tree / "mine" / "search.py").write_text("NAME = 'hacked'\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "made"),
    [
        pytest.param(_change, 2, id="changed"),
        pytest.param(lambda tree: (tree / "mine" / "search.py").unlink(), 2, id="removed"),
        pytest.param(lambda tree: save(tree / "sitecustomize.py", "raise 1"), 2, id="added"),
        pytest.param(lambda tree: save(tree.parent / "index", b"DIRC"), 2, id="cut"),
        pytest.param(lambda tree: (tree.parent / "about.json").unlink(), 2, id="half"),
        pytest.param(lambda tree: save(tree.parent / "about.json", "[1"), 2, id="nonsense"),
        pytest.param(lambda tree: save(tree / "mine/__pycache__/s.pyc", b""), 1, id="bytecode"),
    ],
)
def test_a_damaged_folder_is_made_again(project: GitProject, damage: Any, made: int) -> None:
    reporter = Remembering()
    place = project.at("v1", reporter=reporter)
    damage(place.tree)
    again = project.at("v1", reporter=reporter)
    assert len(reporter.phases) == made
    assert loaded(again) == "first"
    assert not (some(place.tree) / "sitecustomize.py").exists()


OTHER_PROCESS = """
import sys
from pathlib import Path
from retrieval_bench_duet.revisions.revisions import place_of
place = place_of(sys.argv[1], Path(sys.argv[2]))
print(place.tree, flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(revision: str, project: GitProject) -> Iterator[Path]:
    """A process that uses a revision; gives the folder of its tree."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS, revision, str(project.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:
        yield Path(some(process.stdout).readline().strip())


@contextmanager
def another_user(revision: str, project: GitProject) -> Iterator[Path]:
    """The same, told by its lock alone."""
    tree = some(project.at(revision).tree)
    theirs = kept._in_use.pop(tree.parent)
    try:
        yield tree
    finally:
        theirs.close()


@pytest.mark.parametrize(
    "another", [another_user, pytest.param(another_process, marks=pytest.mark.slow)]
)
def test_what_another_process_uses_is_neither_changed_nor_removed(
    project: GitProject, monkeypatch: pytest.MonkeyPatch, another: Any
) -> None:
    monkeypatch.setattr(kept, "MOST_KEPT", 1)
    with another("v1", project) as theirs:
        assert project.at("main").tree != theirs
        assert (theirs / "mine" / "search.py").is_file()
        assert project.at("v1").tree == theirs
        _change(theirs)
        with pytest.raises(ConfigError, match="another process uses it"):
            project.at("v1")
    assert loaded(project.at("v1")) == "first"


def test_two_at_once_make_it_once(project: GitProject) -> None:
    reporter, found = Remembering(), []

    def use() -> None:
        found.append(project.at("v1", reporter=reporter).tree)

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1
    assert reporter.count(Step.CHECKING_OUT) == 1


@pytest.mark.slow
def test_the_longest_unused_ones_are_removed(
    project: GitProject, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST_KEPT", 3)
    commits = [project.commit({"n.txt": str(n)}) for n in range(5)]
    revisions = cache / "commits"
    for commit in [*commits[:3], commits[0], *commits[3:]]:
        project.at(commit)
        for file in kept._in_use.values():  # as if each was a process of its own
            file.close()
        kept._in_use.clear()
        for lock in revisions.glob("*/.lock"):  # and time went by
            used = lock.stat().st_mtime - 10
            os.utime(lock, (used, used))
    (revisions / "half-made").mkdir()
    project.at(commits[4])
    left = {path.name[:12] for path in revisions.iterdir() if path.is_dir()}
    assert left == {commits[n][:12] for n in (0, 3, 4)}


def test_a_checkout_that_fails_leaves_nothing(project: GitProject, cache: Path) -> None:
    project.git("config", "filter.secret.smudge", "echo no key for this >&2; false")
    project.git("config", "filter.secret.required", "true")
    project.commit({".gitattributes": "*.bin filter=secret\n"})
    project.git("config", "filter.secret.clean", "cat")
    project.commit({"a.bin": "x"})
    with pytest.raises(ConfigError, match="no key for this"):
        project.at("HEAD")
    assert not [path for path in (cache / "commits").iterdir() if path.is_dir()]


def test_a_cache_that_cannot_be_written_says_what_to_do(
    project: GitProject, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="RETRIEVAL_BENCH_CACHE"):
        place_of("v1", project.folder, cache=tmp_path / "file" / "cache")


def test_what_a_checkout_does_not_bring_is_said(project: GitProject) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    project.commit({".gitattributes": "*.bin filter=lfs\n", "model.bin": pointer, "a.py": ""})
    head = project.git("rev-parse", "HEAD")
    project.git("update-index", "--add", "--cacheinfo", f"160000,{head},libs/other")
    project.git("commit", "--quiet", "-m", "submodule")
    for _ in range(2):
        place = project.at("HEAD")
        assert [note.partition(": ")[2] for note in place.notes] == [
            "1 submodule left empty, such as libs/other",
            "1 file with a pointer of Git LFS in place of the content, such as model.bin",
        ]
    assert project.at("v1").notes == ()


# -- which code is loaded ------------------------------------------------------------------------


def test_the_tree_goes_before_what_is_installed_and_behind_the_library(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit(
        {"random.py": "raise SystemExit('hides the library')\n", "src/deep/__init__.py": "X = 1\n"}
    )
    elsewhere = tmp_path / "elsewhere"
    packages = project.folder / ".venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (project.folder / "lib").mkdir()
    monkeypatch.setattr(
        sys, "path", [*sys.path, "", *map(str, (project.folder / "mine", project.folder / "lib")),
                      str(project.folder), str(packages), str(elsewhere)]
    )  # fmt: skip
    place = project.at("HEAD")
    tree = str(place.tree)
    path = list(place.sys_path)
    assert path.index(os.path.dirname(os.__file__)) < path.index(tree)
    begin = path.index(tree)
    assert path[begin : begin + 3] == [tree, f"{tree}/src", f"{tree}/mine"]
    assert path[-2:] == [str(packages), str(elsewhere)]
    own = [p for p in path if p.startswith(str(project.folder))]
    assert own == [str(packages)]
    assert loaded(place, "random", "choice").startswith("<bound method")
    assert loaded(place, "deep", "X") == "1"


def test_a_project_within_the_repository_has_its_own_roots(project: GitProject) -> None:
    project.commit({"part/pyproject.toml": "", "part/src/inner.py": "X = 1", "part/sub/a.txt": ""})
    place = place_of("HEAD", project.folder / "part" / "sub")
    tree = place.tree
    roots = [entry for entry in place.sys_path if entry.startswith(str(tree))]
    assert roots == [f"{tree}/part", f"{tree}/part/src", str(tree)]


def test_packages_named_as_those_of_this_project_do_not_hide_them(
    project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "retrieval_bench_retrievers"
    project.commit({f"{name}/__init__.py": "", f"{name}/own.py": "X = 1"})
    ours = [ROOT / "retrievers" / name, ROOT / "harness" / "retrieval_bench"]
    # The user's tree is on the path as well, behind them.
    folders = [*(folder.parent for folder in ours), project.folder]
    monkeypatch.setattr(sys, "path", [*sys.path, *map(str, folders)])
    place = project.at("HEAD")
    assert Path(loaded(place, name, "__file__")).is_relative_to(ROOT)
    assert loaded(place) == "second"
    files = [str(folder / "__init__.py") for folder in ours]
    side = Side("bm25", place)
    facts = {"files": [*files, str(place.folder / "mine" / "__init__.py")], "config": {}}
    assert wrong_code([side, side], [facts, facts]) == ""


FINDER = """
import sys
from importlib.util import spec_from_file_location
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        file = {mapping!r}.get(name)
        return file and spec_from_file_location(name, file)
def install():
    sys.meta_path.{how}
"""


def editable(tmp_path: Path, project: GitProject, how: str) -> Path:
    """An interpreter in which the user's tree is installed by a finder, as setuptools does it."""
    environment = tmp_path / f"environment-{how[:3]}"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    mapping = {
        name: str(project.folder / file)
        for name, file in {"mine": "mine/__init__.py", "fresh": "fresh.py"}.items()
    }
    (packages / "__editable___mine_finder.py").write_text(FINDER.format(mapping=mapping, how=how))
    (packages / "__editable__.mine.pth").write_text(
        "import __editable___mine_finder; __editable___mine_finder.install()\n"
    )
    return environment / "bin" / "python"


def at(place: Place, python: Path) -> Place:
    return replace(place, python=python)


@pytest.mark.slow
def test_an_editable_installation_of_the_users_tree_does_not_win(
    project: GitProject, tmp_path: Path
) -> None:
    project.write({"mine/search.py": "NAME = 'third'\n", "fresh.py": "NAME = 'new'\n"})
    usual = at(project.at("v1"), editable(tmp_path, project, "append(Finder)"))
    assert loaded(usual) == "first"
    # What the revision does not have is found in the user's tree all the same, which is noticed,
    # as is a finder that goes before the path.
    side = Side("x", usual)
    fresh = loaded(usual, "fresh", "__file__")
    assert fresh == str(project.folder / "fresh.py")
    facts = {"files": [fresh], "config": {}}
    assert "a file of your own tree" in wrong_code([side, side], [facts, facts])
    first = at(usual, editable(tmp_path, project, "insert(0, Finder)"))
    facts = {"files": [loaded(first, "mine", "__file__")], "config": {}}
    assert "a file of your own tree" in wrong_code([side, side], [facts, facts])


def _sides(*places: Place) -> Sequence[Side]:
    return [Side("x", place) for place in places]


def _facts(*files: Path, config: str = "same") -> dict[str, Any]:
    return {"files": [str(file) for file in files], "config": {"target": config}}


def test_code_of_the_tree_that_came_from_elsewhere_is_wrong_code(
    project: GitProject, tmp_path: Path
) -> None:
    project.commit({"single.py": "", "datasets/a.txt": "no package"})
    places = [project.at(name) for name in ("HEAD~1", "HEAD")]
    assert all(place.tree for place in places)
    good = [_facts(place.folder / "mine" / "__init__.py") for place in places]
    assert wrong_code(_sides(*places), good) == ""
    stale = tmp_path / "site-packages"
    for name in ("mine/__init__.py", "mine/search.py", "single.py", "datasets/__init__.py"):
        save(stale / name, "")
    for name, top in {"mine/search.py": "mine", "single.py": "single"}.items():
        said = wrong_code(_sides(*places), [good[0], _facts(stale / name)])
        assert said.startswith(f"HEAD ({places[1].commit}"[:13])
        assert f"{top} was loaded from {(stale / name).parent}" in said
    # A folder of data does not count as a package, nor does what only the other revision has.
    fine = [_facts(stale / "single.py", places[0].folder / "mine" / "__init__.py"), good[1]]
    assert wrong_code(_sides(*places), fine) == ""
    fine = [good[0], _facts(stale / "datasets/__init__.py", places[1].folder / "single.py")]
    assert wrong_code(_sides(*places), fine) == ""
    crossed = wrong_code(_sides(*places), [good[1], good[0]])
    assert "mine was loaded from" in crossed


SETTINGS = {
    "src": {"setup.py": ""},
    "": {"setup.cfg": "[metadata]\nname = core\n"},
    "lib": {"setup.py": "setup(packages=find_packages(), package_dir={\n  '': 'lib',\n})"},
    "code": {"setup.cfg": "[options]\npackage_dir =\n    =code\n"},
    "python": {
        "pyproject.toml": "[project]\nname = 'core'\n[tool.maturin]\npython-source = 'python'\n"
    },
    "py/x": {
        "pyproject.toml": "[build-system]\nrequires = []\n"
        f"[tool.hatch.build]\npackages = ['py/x/core', '/', '../..', 'no', '{'long' * 999}']\n"
    },
}
"""Places that packages of a project lie in, and the files that say so."""


@pytest.mark.parametrize("source", SETTINGS)
def test_an_installed_copy_of_another_project_of_the_revision_is_wrong_code(
    project: GitProject, tmp_path: Path, source: str
) -> None:
    folder = Path("libs/core", source).as_posix()
    files = {f"libs/core/{name}": text for name, text in SETTINGS[source].items()}
    project.commit(files | {f"{folder}/core/__init__.py": "", "requirements.txt": "./libs/core"})
    project.commit({f"{folder}/core/__init__.py": "slower = 1"})
    project.write({"mine/search.py": ""})
    places = [project.at(name) for name in ("HEAD~1", "HEAD")]
    copy = save(tmp_path / "site-packages" / "core" / "__init__.py", "")
    facts = [_facts(place.folder / "mine" / "__init__.py", copy) for place in places]
    said = wrong_code(_sides(*places), facts)
    assert said == (
        f"{places[0].label} was not measured: core was loaded from {copy.parent}, though the "
        f"revision has its own in {folder}; let `setup` install that one"
    )
    own = project.at("WORKTREE")
    said = wrong_code(_sides(own, own), [_facts(copy)] * 2)
    assert said.endswith(f"in {folder}; install that one editable")
    good = _facts(project.folder / folder / "core" / "__init__.py")
    assert wrong_code(_sides(own, own), [good] * 2) == ""


def test_what_is_no_project_of_the_revision_may_come_from_elsewhere(
    project: GitProject, tmp_path: Path
) -> None:
    project.commit(
        {
            "examples/faiss/__init__.py": "",
            "examples/pyproject.toml": "[tool.ruff]\n[tool.setuptools]\n",
            "tests/setup.cfg": "[flake8]\n",
            "tests/yaml.py": "",
            "pyproject.toml": "[project]\nname = 'a'\n[tool.hatch.build]\nexclude = ['scripts']\n",
            "scripts/rich.py": "",
            "libs/acme-core/setup.py": "",
            "libs/acme-core/src/acme/core/__init__.py": "",
            "libs/acme-core/src/google/own.py": "",
        }
    )
    packages = tmp_path / "site-packages"
    places = [
        replace(place, sys_path=(*place.sys_path, str(packages)))
        for place in (project.at(name) for name in ("HEAD~1", "HEAD"))
    ]
    fine = ["faiss/__init__.py", "yaml.py", "rich.py", "acme/other/__init__.py", "google/auth.py"]
    for name in [*fine, "acme/core/__init__.py"]:
        save(packages / name, "")
    good = _facts(places[0].folder / "mine" / "__init__.py")
    third = _facts(*(packages / name for name in fine))
    assert wrong_code(_sides(*places), [good, third]) == ""
    # The namespace is shared, and what is in it is not.
    core = _facts(packages / "acme" / "core" / "__init__.py")
    assert "acme.core was loaded" in wrong_code(_sides(*places), [good, core])
    here = _facts(places[1].folder / "mine" / "__init__.py")
    assert wrong_code(_sides(*places), [core, here]) == ""  # the commit before has none


def test_a_copy_installed_within_the_own_tree_is_not_the_own_tree(project: GitProject) -> None:
    place = project.at("WORKTREE")
    copy = save(project.folder / ".venv/lib/python3/site-packages/mine/__init__.py", "")
    own = _facts(project.folder / "mine" / "__init__.py")
    assert wrong_code(_sides(place, place), [own, own]) == ""
    assert "mine was loaded from" in wrong_code(_sides(place, place), [own, _facts(copy)])


def test_revisions_that_use_nothing_of_the_repository_are_one_thing(project: GitProject) -> None:
    places = [project.at(name) for name in ("v1", "main")]
    outside = _facts(Path(json.__file__))
    said = wrong_code(_sides(*places), [outside, outside])
    assert said.startswith(f"{places[0].label} and {places[1].label} load no code")
    by_file = [
        _facts(Path(json.__file__), config=str(place.folder / "own.yaml")) for place in places
    ]
    assert "load no code" in wrong_code(_sides(*places), by_file)
    other = _facts(Path(json.__file__), config="other")
    assert wrong_code(_sides(*places), [outside, other]) == ""
    inside = _facts(places[1].folder / "mine" / "__init__.py")
    assert wrong_code(_sides(*places), [outside, inside]) == ""
    here = Place.here()
    assert wrong_code(_sides(here, here), [outside, outside]) == ""


def test_one_commit_under_two_names_is_one_code(project: GitProject) -> None:
    names = ("main", "HEAD", "WORKTREE", "v1")
    main, head, own, first = (project.at(name) for name in names)
    assert f"{main.label} and {head.label} are the same commit" in same_code(main, head)
    assert f"{main.label} and WORKTREE are the same commit" in same_code(main, own)
    assert f"both sides are {main.label}" in same_code(main, main)
    assert same_code(main, first) == ""
    project.write({"mine/search.py": ""})
    changed = project.at("WORKTREE")
    assert same_code(main, changed) == same_code(changed, changed) == ""


def measured(sides: Sequence[Side], spec: dict[str, Any], n: int) -> tuple[list[Any], list[Any]]:
    """What each side says of itself, and of its answers to the first ``n`` queries."""
    facts, digests = [], []
    for side in sides:
        process = SideProcess(side, spec, hash_seed=0, call_s=30)
        try:
            facts.append(process.ready())
            digests.append(list(process.digests(range(n))))
        finally:
            process.close()
    return facts, digests


@pytest.mark.slow
def test_processes_of_two_revisions_measure_the_code_of_each(tmp_path: Path) -> None:
    project = GitProject(make_project(tmp_path))
    project.git("add", "--all")
    project.commit({})
    module = next(project.folder.glob("*.py"))
    text = module.read_text(encoding="utf-8")
    module.write_text(text.replace("return hits[:k]", "return hits[:1]"), encoding="utf-8")
    sides = [Side("own.yaml", project.at(name)) for name in ("HEAD", "WORKTREE")]
    spec = {"dataset": str(project.folder / "data"), "split": "test", "k": 10, "threads": 1}
    facts, digests = measured(sides, spec, 4)
    assert wrong_code(sides, facts) == ""
    assert digests[0] != digests[1]
    for side, fact in zip(sides, facts, strict=True):
        assert str(side.place.folder / module.name) in fact["files"]
    # A path to the user's own file is the user's own code at either side.
    given = Side(str(project.folder / "own.yaml"), sides[0].place)
    process = SideProcess(given, spec, hash_seed=0, call_s=30)
    try:
        said = wrong_code([given, sides[1]], [process.ready(), facts[1]])
    finally:
        process.close()
    assert "a file of your own tree" in said


@pytest.mark.slow
def test_a_program_is_that_of_each_revision(tmp_path: Path) -> None:
    project = GitProject(make_project(tmp_path))
    answer = r"""while read -r line; do id=${line#*\"id\":\"}; id=${id%%\"*}
    printf '{"id":"%s","hits":[{"id":"DOCUMENT"}]}\n' "$id"; done"""
    config = "name: words\ntarget: command\nparams: {command: [sh, words.sh]}\n"
    project.commit({"words.sh": answer.replace("DOCUMENT", "d1"), "words.yaml": config})
    project.write({"words.sh": answer.replace("DOCUMENT", "d2")})
    sides = [Side("words.yaml", project.at(name)) for name in ("HEAD", "WORKTREE")]
    spec = {"dataset": str(project.folder / "data"), "split": "test", "k": 10, "threads": 1}
    facts, digests = measured(sides, spec, 2)
    for side, fact in zip(sides, facts, strict=True):
        assert str(side.place.folder / "words.sh") in fact["files"]
    assert wrong_code(sides, facts) == ""
    assert digests[0] != digests[1]
