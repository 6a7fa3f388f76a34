"""A capability can be taken away, and one of a stranger's package is found."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrieval_bench.capabilities import Capability, capabilities, named, own_packages
from retrieval_bench.comparison.claims import first_lines
from retrieval_bench.metrics.truths import TRUTHS
from tests.builders.guide import GUIDE
from tests.builders.imports import CORE, graph, tree
from tests.builders.json_schemas import commands_with
from tests.builders.processes import completed
from tests.builders.reference_pages import commands

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "retrieval_bench")


def test_a_folder_is_all_that_a_package_takes() -> None:
    folders = sorted(path.name for path in (ROOT / "harness").glob("retrieval_bench_*"))
    assert list(own_packages()) == folders
    assert len(capabilities()) >= len(folders)
    ranks = [added.rank for added in capabilities()]
    assert ranks == sorted(ranks)


def test_naming_what_is_there_loads_no_more_than_the_names() -> None:
    code = (
        "import sys\nfrom retrieval_bench.capabilities import capabilities\ncapabilities()\n"
        "print([n for n in sys.modules if n.startswith('retrieval_bench_') and n.count('.') > 1])"
    )
    assert completed(sys.executable, "-c", code).stdout.strip() == "[]"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the product without any capability."""
    folder = tmp_path_factory.mktemp("kernel")
    for name in ("harness/retrieval_bench", "retrievers/retrieval_bench_retrievers"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    return folder


_COMMAND = "from retrieval_bench.cli import main\nsys.exit(main(sys.argv[1:]))"


@pytest.mark.slow
class TestAway:
    """The kernel with every capability taken away."""

    @staticmethod
    def start(product: Path) -> str:
        """Code that puts a copy of the product on the path of a Python without ``site``, which
        would add the folder of this project."""
        path = [str(product / "harness"), str(product / "retrievers")]
        libraries = sysconfig.get_path("purelib")
        return f"import sys\nsys.path[:0] = {path!r}\nsys.path.append({libraries!r})\n"

    def run(self, kernel: Path, *words: str, code: str = _COMMAND) -> str:
        """Run ``code`` there and return its output."""
        command = self.start(kernel) + code
        done = completed(sys.executable, "-S", "-c", command, *words, check=False)
        return done.stdout + done.stderr

    def test_the_help_names_none_and_no_group_is_left_empty(self, kernel: Path) -> None:
        names = {words for added in capabilities() for words in (*added.groups, *added.commands)}
        shown = self.run(kernel, "--help")
        assert "usage: " in shown
        assert not [name for name in names if re.search(rf"\b{name}\b", shown)]
        assert "no command 'data'" in self.run(kernel, "data", "--help")

    def test_its_command_is_not_known(self, kernel: Path) -> None:
        assert "no command 'label'" in self.run(kernel, "label", "status")

    def test_what_python_has_of_it_says_what_is_missing(self, kernel: Path) -> None:
        for code, package in (
            ("import retrieval_bench as r; r.reader", "retrieval_bench_answers"),
            ("import retrieval_bench as r; r.history", "retrieval_bench_regress"),
            ("import retrieval_bench.testing as t; t.CHECKS", "retrieval_bench_conformance"),
        ):
            said = self.run(kernel, code=code)
            assert f"; not here: {package}; install retrieval-bench whole" in said
        assert "not here" not in self.run(kernel, code="import retrieval_bench as r; r.readr")

    def test_runs_are_compared_by_labels_and_others_say_what_is_missing(self, kernel: Path) -> None:
        judged = self.run(kernel, code=f"{_SYSTEMS}print(r.compare([one, two], data(QRELS)))")
        assert "nDCG@10" in judged
        assert "Traceback" not in judged
        measured = self.run(kernel, code=f"{_SYSTEMS}print(r.bench(one, data(None)))")
        assert "Nothing is judged yet" in measured
        for call in ("data(None)", "data(QRELS), until_decided='split'"):
            said = self.run(kernel, code=f"{_SYSTEMS}r.compare([one, two], {call})")
            assert "nothing here can" in said
            assert "two was called" not in said
            assert "install retrieval-bench whole" in said


_SYSTEMS = """
import retrieval_bench as r
from retrieval_bench.data import build_dataset
QRELS = {"q1": {"d1": 1}, "q2": {"d2": 1}}
def data(qrels):
    documents = [r.Document("d1", "red apples"), r.Document("d2", "blue whales")]
    return build_dataset("small", documents, [r.Query("q1", "red"), r.Query("q2", "whales")], qrels)
def one(query, k):
    return ["d1", "d2"]
def two(query, k):
    print("two was called")
    return ["d2", "d1"]
"""


def own(package: str) -> Capability:
    """The additions of a package of this repository."""
    capability: Capability = named(f"{package}.capability:CAPABILITY")
    return capability


@pytest.mark.parametrize("package", own_packages())
def test_a_package_says_what_it_stands_on(package: str) -> None:
    used = {
        other.partition("/")[0]
        for module, others in graph().items()
        if module.startswith(f"{package}/")
        for other in others
    }
    beside = {name for name in used if name.startswith("retrieval_bench_")} - {package}
    assert beside == set(own(package).stands_on)


def called(*functions: str) -> Iterator[tuple[str, ast.Call]]:
    """Where the product calls these functions by name."""
    for path in CORE.parent.rglob("*.py"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in functions:
                yield str(path), node


def _names(given: ast.expr) -> Iterator[str]:
    """A name that stands there, or, where it ends in a kind of truth, one for each of these."""
    if isinstance(given, ast.Constant):
        yield str(given.value)
    elif isinstance(given, ast.JoinedStr) and isinstance(given.values[0], ast.Constant):
        yield from (f"{given.values[0].value!s}{kind}" for kind in TRUTHS)


def test_each_service_that_is_asked_for_is_there_and_no_other() -> None:
    words = {
        name
        for _, call in called("service", "offered")
        if call.args
        for name in _names(call.args[0])
    } | {"read rules", "read spans"}
    assert words == {name for package in capabilities() for name in package.services}


def test_what_may_not_stand_together_is_called_as_options_are() -> None:
    """A package may not be here, so that a name that no parser has is no error when it runs."""
    known = {action.dest for _, parser in commands() for action in parser._actions}
    unknown = [
        (path, name)
        for path, call in called("refuse", "refuse_settled")
        if len(call.args) > 1 and isinstance(call.args[1], ast.Constant)
        for name in str(call.args[1].value).split()
        if name not in known
    ]
    assert not unknown


_ALL = """
import contextlib, io, json, sys
from retrieval_bench.cli import main
def said(words):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code
    return code, printed.getvalue()
print(json.dumps([said(words) for words in json.loads(sys.argv[1])]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("package", own_packages())
def test_each_can_be_taken_away(tmp_path: Path, package: str) -> None:
    """The kernel measures without it, and names nothing of it; what stands on it says so."""
    for folder in ("harness", "retrievers"):
        (tmp_path / folder).mkdir()
        for path in (ROOT / folder).glob("retrieval_bench*"):
            if path.name != package:
                (tmp_path / folder / path.name).symlink_to(path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    standing = [name for name in own_packages() if package in own(name).stands_on]
    theirs = [words for name in standing for words in own(name).commands]
    asked = [["--help"], ["bench", "bm25", "--dry-run"], ["data", "schema", "--format", "json"]]
    asked += [words.split() for words in theirs]
    code = TestAway.start(tmp_path) + _ALL
    done = completed(sys.executable, "-S", "-c", code, json.dumps(asked)).stdout
    (helped, bench, schema, *others) = json.loads(done.splitlines()[-1])
    assert helped[0] == bench[0] == 0, bench[1]
    added = own(package)
    alone = {*added.groups, *(words for words in added.commands if " " not in words)}
    assert not [name for name in alone if re.search(rf"(?m)^.{{11}} {name} ", helped[1])]
    if schema[0] == 0 or package != "retrieval_bench_catalog":
        documents = {entry["name"] for entry in json.loads(schema[1])["documents"]}
        assert not documents & added.documents.keys()
    for code, said in others:
        assert code == 2
        words = " ".join(said.split())
        assert f"it stands on {package}, not here: install retrieval-bench whole" in words


@pytest.mark.slow
def test_the_package_of_the_guide_adds_a_command_a_table_and_a_document(tmp_path: Path) -> None:
    page = (GUIDE / "look-up" / "plugins.md").read_text("utf-8")
    files = dict(re.findall(r"```\w+\n# (acme_words/\w+\.py)\n(.*?)```", page, re.S))
    assert len(files) == 2
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    entry = re.search(r'\."retrieval_bench\.capabilities"\]\n(.*?)\n```', page, re.S)
    assert entry
    info = tmp_path / "acme_words-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-words\nVersion: 1\n")
    registered = f"[retrieval_bench.capabilities]\n{entry[1]}\n".replace('"', "")
    (info / "entry_points.txt").write_text(registered)
    path = {"PYTHONPATH": str(tmp_path)}
    assert "words" in completed(*COMMAND, "data", "--help", **path).stdout
    shown = completed(*COMMAND, "data", "words", "science-mini", **path).stdout
    assert "220 documents" in shown
    made = json.loads(
        completed(*COMMAND, "data", "words", "science-mini", "--format", "json", **path).stdout
    )
    schema = json.loads(completed(*COMMAND, "data", "schema", "words", **path).stdout)
    assert set(schema["required"]) <= set(made)


CLAIM_NOTHING = {
    # They count labels, questions and answers, list, or print a heading.
    *(f"bench --{how}" for how in ("cold", "dry-run", "probe", "protocol tutorial", "writes")),
    *("baseline", "data history", "data list", "doctor", "doctor --selftest", "explain --spans"),
    *("lab reproduce", "lab submit", "label pool", "label status", "score audit --scorer"),
    *("score audit --table", "score outcomes", "score qa", "score reader"),
}


def test_of_each_command_with_figures_it_is_known_whether_its_first_line_claims_something() -> None:
    """So that whoever adds one thinks of it."""
    figures = r"means?|metrics|values?|verdicts?|warnings|share|smallest|ok"
    told = {*first_lines()} | CLAIM_NOTHING
    assert commands_with(figures) == told, "`claims` of its package, or CLAIM_NOTHING, has each"
    assert not {*first_lines()} & CLAIM_NOTHING
