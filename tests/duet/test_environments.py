from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.progress import Step
from retrieval_bench_duet.revisions import environments
from retrieval_bench_duet.revisions.dependencies import Needs
from retrieval_bench_duet.revisions.environments import Setup
from retrieval_bench_duet.revisions.revisions import place_of, wrong_code
from retrieval_bench_duet.sides import Place, Side
from tests.builders import some
from tests.builders.files import save_all
from tests.builders.git_project import GitProject
from tests.builders.processes import printed
from tests.builders.reporters import Remembering

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    return GitProject(tmp_path / "project")


def wheel(folder: Path, name: str, version: str, *, says: str = "") -> None:
    """A wheel with one module that knows its version, or says something else."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", f"VERSION = {(says or version)!r}\n")
        file.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")


def toml(*dependencies: str, extra: str = "") -> str:
    return (
        f'[project]\nname = "mine"\nversion = "1"\ndependencies = {list(dependencies)!r}\n{extra}'
    )


# -- what counts ---------------------------------------------------------------------------------


def test_only_what_is_about_dependencies_counts(project: GitProject, cache: Path) -> None:
    project.commit({"pyproject.toml": toml("numpy"), "README.md": "a"})
    project.commit(
        {"pyproject.toml": toml("numpy", extra='[project.urls]\nhome = "x"\n[tool.ruff]\nx = 1\n')}
    )
    project.write({"mine.py": "", "README.md": "b"})
    for name in ("HEAD~1", "HEAD"):
        place = project.at(name)
        assert (str(place.python), place.notes) == (sys.executable, ())
    assert not [*cache.glob("commits/*/env")]


@pytest.mark.parametrize(
    ("files", "name", "text"),
    [
        ({"pyproject.toml": toml("numpy")}, "pyproject.toml", toml("numpy>=2")),
        (
            {"pyproject.toml": toml("numpy")},
            "pyproject.toml",
            toml("numpy", extra="[project.optional-dependencies]\na = ['numpy>=2']\n"),
        ),
        ({"pyproject.toml": toml("numpy")}, "requirements.txt", "numpy"),
        ({"requirements.txt": "-r requirements/base.txt"}, "requirements/base.txt", "numpy"),
        ({"requirements.txt": "-c constraints-a.txt"}, "constraints-a.txt", "numpy==2"),
        ({"requirements.txt": "numpy"}, "constraints.txt", "numpy==2"),
        ({"setup.py": "setup()"}, "setup.py", "setup(name='a')"),
        ({"requirements.txt": "-r requirements.in"}, "requirements.in", "numpy"),
        ({"setup.py": "setup()"}, "requirements-core.txt", "numpy"),
        ({"setup.py": "setup()"}, "setup.cfg", "[options]\n"),
        (
            {"pyproject.toml": "[project]\nname = 'a'\ndynamic = ['dependencies']\n"},
            "requirements/base.txt",
            "numpy",
        ),
        ({"setup.py": "setup()"}, "pyproject.toml", "[build-system]\nrequires = ['hatchling']\n"),
        ({"setup.py": "setup()"}, "pyproject.toml", "[tool.poetry.dependencies]\na = '1'\n"),
    ],
)
def test_each_file_that_says_what_is_needed_counts(
    tmp_path: Path, files: dict[str, str], name: str, text: str
) -> None:
    save_all(tmp_path / "then", files)
    save_all(tmp_path / "now", files)
    then, now = ([tmp_path / "then"], [tmp_path / "now"])
    assert Needs.of(then, None, now) == Needs.of(now, None, then)
    save_all(tmp_path / "now", {name: text})
    assert Needs.of(then, None, now) != Needs.of(now, None, then)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", toml("numpy", extra='requires-python = ">=3.12"\n')),
        ("pyproject.toml", toml("numpy", extra="[dependency-groups]\ndev = ['pytest']\n")),
        ("requirements-dev.txt", "pytest"),
    ],
)
def test_what_is_not_installed_does_not_count(tmp_path: Path, name: str, text: str) -> None:
    save_all(tmp_path / "then", {"pyproject.toml": toml("numpy")})
    save_all(tmp_path / "now", {"pyproject.toml": toml("numpy"), name: text})
    then, now = ([tmp_path / "then"], [tmp_path / "now"])
    assert Needs.of(then, None, now) == Needs.of(now, None, then)


@pytest.mark.slow
def test_files_of_a_project_within_the_repository_count(project: GitProject) -> None:
    project.commit({"part/setup.cfg": "", "part/uv.lock": "a", "other/uv.lock": "a"})

    def noted(folder: Path) -> int:
        return len(place_of("HEAD", folder).notes)

    project.write({"other/uv.lock": "b"})
    assert (noted(project.folder), noted(project.folder / "part")) == (0, 0)
    project.write({"part/uv.lock": "b"})
    assert (noted(project.folder), noted(project.folder / "part")) == (0, 1)
    project.write({"uv.lock": "b"})
    assert (noted(project.folder), noted(project.folder / "part")) == (1, 2)


def test_only_a_lock_file_differs(project: GitProject) -> None:
    project.commit({"poetry.lock": "a"})
    project.write({"poetry.lock": "b"})
    place = project.at("HEAD")
    assert str(place.python) == sys.executable
    said = (
        "poetry.lock is another one and was not used, since pip cannot read it; `setup` can install"
    )
    assert place.notes == (f"{place.label}: {said} by it",)


# -- what is installed ---------------------------------------------------------------------------

OPTIONAL = """
[project.optional-dependencies]
Fast_Math = ["numpy>=99"]
conditional = ["absent; python_version < '3'", "scipy"]
only-conditions = ["numpy; python_version < '3'"]
absent = ["numpy", "no-such-package-anywhere"]
everything = ["mine[fast-math, absent]"]
"""


def test_extras_in_use_are_those_whose_packages_are_all_installed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(toml("pydantic", extra=OPTIONAL))
    here = [tmp_path]
    wanted = Needs.of(here, None, here)
    assert wanted.extras == ("fast-math", "conditional")
    assert wanted.requirements == (
        *("pydantic", "numpy>=99", "absent; python_version < '3'", "scipy"),
    )
    assert Needs.of(here, (), here).requirements == ("pydantic",)
    assert Needs.of(here, ("Everything",), here).requirements == (
        *("pydantic", "numpy>=99", "numpy", "no-such-package-anywhere"),
    )


def test_an_extra_is_in_use_when_it_is_so_in_the_users_tree(tmp_path: Path) -> None:
    for name, package in {"then": "a-package-that-was-replaced", "now": "numpy"}.items():
        (tmp_path / name).mkdir()
        extra = f"[project.optional-dependencies]\ndense = ['{package}']\n"
        (tmp_path / name / "pyproject.toml").write_text(toml(extra=extra))
    found = Needs.of([tmp_path / "then"], None, [tmp_path / "now"])
    assert found.requirements == ("a-package-that-was-replaced",)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (False, True)),
        ({"pyproject.toml": toml("a")}, (False, False)),
        ({"pyproject.toml": "[tool.ruff]\n"}, (False, True)),
        ({"pyproject.toml": "[broken"}, (False, True)),
        ({"pyproject.toml": "[build-system]\nrequires = []\n"}, (True, False)),
        ({"pyproject.toml": toml().replace("dependencies = []", "dynamic = ['dependencies']")},
         (True, False)),
        ({"setup.py": ""}, (True, False)),
        ({"setup.cfg": "[flake8]\nx = 1\n"}, (False, True)),
        ({"setup.cfg": "[options]\ninstall_requires = a\n"}, (True, False)),
        ({"requirements.txt": "a"}, (False, False)),
        ({"constraints.txt": "a"}, (False, True)),
    ],
)  # fmt: skip
def test_what_is_built_and_what_is_only_read(
    tmp_path: Path, files: dict[str, str], expected: tuple[bool, bool]
) -> None:
    save_all(tmp_path, files)
    found = Needs.of([tmp_path], None, [tmp_path])
    assert (bool(found.building), found.nothing) == expected


@pytest.mark.slow
@pytest.mark.long
def test_two_commits_share_no_environment_though_their_words_are_the_same(
    project: GitProject,
) -> None:
    for says in ("first", "second"):
        wheel(project.folder / "vendor", "tiny_dep", "1.0", says=says)
        project.commit({"requirements.txt": "vendor/tiny_dep-1.0-py3-none-any.whl\n"})
    project.write({"requirements.txt": ""})
    places = [project.at(name) for name in ("HEAD~1", "HEAD")]
    said = [printed(place, "import tiny_dep; print(tiny_dep.VERSION)") for place in places]
    assert said == ["first", "second"]


@pytest.mark.slow
@pytest.mark.long
def test_only_an_environment_of_one_commit_can_hold_code_of_this_commit(
    project: GitProject, tmp_path: Path
) -> None:
    wheel(tmp_path / "wheels", "tiny_dep", "1.0")
    wheel(project.folder / "dist", "tiny_dep", "1.0")
    project.write({"libs/tiny/setup.py": "", "libs/tiny/tiny_dep.py": "VERSION = 'own'"})
    project.commit({"requirements.txt": "dist/tiny_dep-1.0-py3-none-any.whl\n"})
    project.commit({"requirements.txt": "tiny-dep==1.0\n"})
    project.write({"requirements.txt": ""})
    command = Setup(command="python -m pip install --no-deps tiny-dep")
    said = []
    for name, setup in (("HEAD~1", None), ("HEAD", None), ("HEAD", command)):
        place = project.at(name, setup=setup)
        file = printed(place, "import tiny_dep; print(tiny_dep.__file__)")
        side = Side("x", place)
        said.append(wrong_code([side, side], [{"files": [file], "config": {}}] * 2))
    assert [text.partition(", though ")[2] for text in said] == [
        "",
        "the revision has its own in libs/tiny; let `setup` install that one",
        "",
    ]


def test_an_extra_that_the_revision_lacks_is_refused(project: GitProject) -> None:
    project.commit({"pyproject.toml": toml("absent", extra=OPTIONAL)})
    for own in ("absent", "other"):  # the same needs as in the revision, and others
        project.write({"pyproject.toml": toml(own, extra=OPTIONAL)})
        with pytest.raises(ConfigError, match="extras dense, which HEAD") as caught:
            project.at("HEAD", setup=Setup(extras=("dense",)))
        assert "fast-math" in caught.value.accepted
    with pytest.raises(ConfigError, match="`extras` and `setup`"):
        Setup(extras=("dense",), command="true")


@pytest.mark.slow
def test_a_revision_with_other_dependencies_has_an_environment_of_its_own(
    project: GitProject, tmp_path: Path
) -> None:
    for version in ("1.0", "1.5", "2.0"):
        wheel(tmp_path / "wheels", "tiny_dep", version)
    project.commit(
        {"pyproject.toml": toml("tiny-dep<2", "numpy"), "constraints.txt": "tiny-dep<1.2\n"}
    )
    project.commit({"pyproject.toml": toml("tiny-dep<2", "numpy"), "a.py": "", "new.py": ""})
    project.write({"pyproject.toml": toml("tiny-dep>=2", "numpy"), "harness.py": "own = 1"})
    reporter = Remembering()
    place, other = (project.at(name, reporter=reporter) for name in ("HEAD~1", "HEAD"))
    assert reporter.count(Step.MAKING_ENVIRONMENT) == 2
    assert sys.executable not in {str(place.python), str(other.python)}
    assert printed(place, "import tiny_dep; print(tiny_dep.VERSION)") == "1.0"
    # What is the same is that of the running interpreter, and the harness is there.
    mine = "import numpy; print(numpy.__file__)"
    assert printed(place, mine) == printed(Place.here(), mine)
    assert printed(place, "import retrieval_bench; print(retrieval_bench.__file__)") == str(
        ROOT / "harness" / "retrieval_bench" / "__init__.py"
    )
    again = project.at("HEAD", reporter=reporter)
    assert (reporter.count(Step.MAKING_ENVIRONMENT), again.python) == (2, other.python)
    own = project.at("WORKTREE")
    assert str(own.python) == sys.executable
    # An interpreter that is gone is made again.
    place.python.unlink()
    project.at("HEAD~1", reporter=reporter)
    assert reporter.count(Step.MAKING_ENVIRONMENT) == 3
    assert printed(place, "import tiny_dep; print(tiny_dep.VERSION)") == "1.0"


@pytest.mark.slow
@pytest.mark.long
def test_packages_of_an_environment_go_before_those_of_pythonpath(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path / "wheels", "tiny_dep", "1.0")
    extra = tmp_path / "extra"
    wheel(extra, "tiny_dep", "2.0")
    with zipfile.ZipFile(extra / "tiny_dep-2.0-py3-none-any.whl") as file:
        file.extractall(extra)
    (extra / "besides.py").write_text("")
    project.commit({"requirements.txt": "tiny-dep<2\n", "lib/tiny_part.py": "NAME = 'first'\n"})
    project.write({"requirements.txt": ""})
    # As Python does it, for this process and for those that it starts.
    path = [str(project.folder / "lib"), str(extra)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.setattr(sys, "path", [*path, *sys.path])
    place = project.at("HEAD")
    assert printed(place, "import tiny_dep; print(tiny_dep.VERSION)") == "1.0"
    assert printed(place, "import besides; print(besides.__file__)") == str(extra / "besides.py")
    # What lies in the repository is no package but code of the revision.
    lib = str(place.folder / "lib")
    packages = str(next(place.python.parents[1].glob("lib/*/site-packages")))
    assert place.sys_path.index(lib) < place.sys_path.index(packages)
    own = project.at("WORKTREE")
    assert printed(own, "import tiny_dep; print(tiny_dep.VERSION)") == "2.0"


@pytest.mark.slow
def test_what_cannot_be_installed_is_said_in_pips_words(
    project: GitProject, cache: Path, tmp_path: Path
) -> None:
    project.commit({"requirements.txt": "no-such-package-anywhere==7\n"})
    project.write({"requirements.txt": ""})
    with pytest.raises(ConfigError, match=r"what HEAD \(.{7}\) needs cannot") as caught:
        project.at("HEAD")
    assert "No matching distribution found for no-such-package-anywhere==7" in str(caught.value)
    assert "name the extras" in caught.value.fix
    assert not [path for path in (cache / "commits").iterdir() if path.is_dir()]


@pytest.mark.slow
def test_pip_keeps_to_what_the_harness_needs(project: GitProject, tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "numpy", "0.1")
    project.commit({"requirements.txt": "numpy<1\n"})
    project.write({"requirements.txt": ""})
    with pytest.raises(ConfigError, match="conflict"):
        project.at("HEAD")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.needs("setuptools")
def test_a_project_that_only_setup_py_knows_is_built_from_a_copy(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")  # as pip reads it, this switches it off
    wheel(tmp_path / "wheels", "tiny_dep", "1.0")
    project.commit(
        {
            "setup.py": "from setuptools import setup\n"
            "setup(name='mine', py_modules=['mine'], install_requires=['tiny-dep==1.0'])\n",
            "mine.py": "import tiny_dep\nNAME = 'first'\n",
        }
    )
    project.write({"setup.py": "", "mine.py": "NAME = 'third'\n"})
    reporter = Remembering()
    place = project.at("HEAD", reporter=reporter)
    assert printed(place, "import mine; print(mine.NAME, mine.__file__)") == (
        f"first {place.folder / 'mine.py'}"
    )
    project.at("HEAD", reporter=reporter)
    assert (
        len(reporter.phases) == 2
    )  # checked out once, one environment: the build left the tree alone


# -- what the user does --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_command_of_the_user_prepares_a_revision_once(project: GitProject) -> None:
    project.commit({".gitignore": "_version.py\n", "mine.py": "from _version import V\n"})
    project.write({"_version.py": "V = 'of the tree'", "data.txt": "42"})
    setup = Setup(
        command='echo "V = \'$(cat "$RETRIEVAL_BENCH_TREE/data.txt")\'" > _version.py && '
        "python -c \"import sys; open('made by', 'w').write(sys.prefix)\""
    )
    reporter = Remembering()
    for _ in range(2):
        place = project.at("HEAD", setup=setup, reporter=reporter)
        assert printed(place, "import mine; print(mine.V)") == "42"
    assert reporter.count(Step.MAKING_ENVIRONMENT) == 1
    assert (place.folder / "made by").read_text() == str(place.python.parents[1])
    bare = project.at("HEAD")
    assert bare.tree != place.tree
    assert "No module named '_version'" in printed(bare, "import mine")
    # A tree that is made again is prepared again.
    (place.folder / "mine.py").write_text("V = 'hacked'")
    place = project.at("HEAD", setup=setup, reporter=reporter)
    assert reporter.count(Step.MAKING_ENVIRONMENT) == 2
    assert printed(place, "import mine; print(mine.V)") == "42"


LINKING = 'ln -s "$RETRIEVAL_BENCH_TREE/data" data && mkdir built && cp data/x.txt built'


@pytest.mark.slow
@pytest.mark.parametrize("pip", ["pip", pytest.param("pip3", marks=pytest.mark.long)])
def test_pip_in_a_command_of_the_user_is_that_of_the_environment(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pip: str
) -> None:
    users = tmp_path / "users"
    users.mkdir()
    (users / pip).write_text(f"#!/bin/sh\ntouch '{users}/called'\n")
    (users / pip).chmod(0o755)
    monkeypatch.setenv("PATH", f"{users}{os.pathsep}{os.environ['PATH']}")
    wheel(tmp_path / "wheels", "tiny_dep", "1.0")
    project.commit({"mine.py": ""})
    setup = Setup(command=f"{pip} install --no-deps tiny-dep")
    place = project.at("HEAD", setup=setup)
    file = printed(place, "import tiny_dep; print(tiny_dep.__file__)")
    assert Path(file).is_relative_to(place.python.parents[1])
    assert not (users / "called").exists()


@pytest.mark.slow
def test_a_command_of_the_user_always_runs_in_fresh_files(
    project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit({".gitignore": "data\n", "mine.py": "", "dos.txt": "one\r\n"})
    project.commit({".gitattributes": "*.txt text eol=lf\n"})  # changed from the start, for git
    project.write({"data/y.txt": ""})
    reporter = Remembering()

    def prepared() -> Place:
        return project.at("HEAD", setup=Setup(command=LINKING), reporter=reporter)

    with pytest.raises(ConfigError, match="`setup` failed"):
        prepared()
    project.write({"data/x.txt": "first"})
    first = prepared()  # nothing is left of the one that failed
    assert prepared() == first
    assert reporter.count(Step.MAKING_ENVIRONMENT) == 2
    # Where an interpreter is gone, or stands on other packages, it runs again.
    first.python.unlink()
    assert prepared() == first
    monkeypatch.setattr(environments, "_distributions", lambda: ["other-1.dist-info"])
    project.write({"data/x.txt": "second"})
    second = prepared()
    assert reporter.count(Step.MAKING_ENVIRONMENT) == 4
    for place, text in ((first, "first"), (second, "second")):
        assert (place.folder / "built" / "x.txt").read_text() == text
    assert {path.name for path in (project.folder / "data").iterdir()} == {"x.txt", "y.txt"}


def test_what_a_package_keeps_within_itself_makes_no_other_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As setuptools does it, once something has imported it.
    within = tmp_path / "site-packages" / "tool" / "_vendor"
    (within / "part-1.dist-info").mkdir(parents=True)
    (within.parent / "__init__.py").write_text("")
    beside = tmp_path / "other" / "site-packages"
    (beside / "more-1.dist-info").mkdir(parents=True)
    before = environments.beneath(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(within)])
    assert environments.beneath(tmp_path) == before
    monkeypatch.setattr(sys, "path", [*sys.path, str(beside)])
    after = environments.beneath(tmp_path)
    assert str(beside) in after["underlay"]
    assert "more-1.dist-info" in after["installed"]


@pytest.mark.slow
def test_what_a_command_takes_from_one_working_tree_is_not_for_another(
    project: GitProject, tmp_path: Path
) -> None:
    project.commit({"mine.py": "", "part/setup.py": "", "part/inner.py": ""})
    project.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    setup = Setup(command='cp "$RETRIEVAL_BENCH_TREE/data.txt" . && touch made')
    for folder in (project.folder, tmp_path / "linked"):
        (folder / "data.txt").write_text(folder.name)
        place = place_of("HEAD", folder, setup=setup)
        assert (place.folder / "data.txt").read_text() == folder.name
    # Nor is what it made for one project of the repository there for another one.
    inner = place_of("HEAD", project.folder / "part", setup=setup)
    assert (inner.folder / "made").is_file()
    assert not (some(inner.tree) / "made").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo working; echo no compiler >&2; exit 3", r"exit code 3\):\n    working\n    no comp"),
        ("echo > mine.py", "`setup` changed files of HEAD .*: mine.py"),
    ],
)
def test_a_command_that_fails_or_changes_code_is_refused(
    project: GitProject, cache: Path, command: str, said: str
) -> None:
    project.commit({"mine.py": "NAME = 'first'\n"})
    for _ in range(2):
        with pytest.raises(ConfigError, match=said):
            project.at("HEAD", setup=Setup(command=command))
    assert not [path for path in (cache / "commits").iterdir() if path.is_dir()]
