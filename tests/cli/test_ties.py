"""Equal scores that decide are told by every command that gives a figure."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.builders.files import beir, save, save_all
from tests.cli.project import QUICK as ONCE
from tests.cli.project import Command

FRUIT = [
    *("apple", "banana", "cherry", "dates", "elder", "figs"),
    *("grape", "honey", "iris", "juniper", "kale", "lemon"),
]
SEARCHES = """
NAMES = "apple banana cherry dates elder figs grape honey".split()
def best(text, k):
    right = str(100 + NAMES.index(text))
    others = [str(i) for i in range(100, 112) if str(i) != right]
    return [(d, 1.0) for d in [right, *others][:k]]
def plain(text, k):
    return [d for d, _ in best(text, k)]
def falling(text, k):
    return [(d, 1 - rank / 1e9) for rank, (d, _) in enumerate(best(text, k))]
def boolean(text, k):
    return [(d, float(rank < 4)) for rank, (d, _) in enumerate(best(text, k))]
def rounded(text, k):
    return [(d, round(1 - rank / 250, 2)) for rank, (d, _) in enumerate(best(text, k))]
"""
CONSTANT = "All hits of a query have the same score"
SHARED = "share their score with another hit"


@pytest.fixture
def fruit(here: Path) -> Path:
    """Twelve fruits, of which one has two documents of equal text, and the first eight as queries;
    searches that put the right one first."""
    docs = {str(100 + i): f"{name} farming guide chapter {i}" for i, name in enumerate(FRUIT)}
    docs["900"] = docs["100"]
    queries = {str(i): name for i, name in enumerate(FRUIT[:8])}
    judged = [*((str(i), str(100 + i), 1) for i in range(8)), ("0", "900", 2)]
    beir(here / "fruit", docs, queries, judged)
    save(here / "tie.py", SEARCHES)
    for name in ("best", "plain", "falling", "boolean", "rounded"):
        text = f'target: callable\nparams: {{function: "tie.py:{name}"}}\n'
        save(here / f"{name}.yaml", text)
    return here


def shown(run: Command, *arguments: str) -> str:
    run(*arguments)
    return run.unwrapped


@pytest.mark.usefixtures("fruit")
class TestConstantScores:
    def test_bench_says_what_they_decide_and_what_to_return(self, run: Command) -> None:
        out = shown(run, "bench", "best.yaml", "--dataset", "fruit", "--k", "8", *ONCE)
        assert "best on fruit: nDCG@8 0.417" in out
        assert (
            f"! {CONSTANT}, so their order is that of their ids: in other orders nDCG@8 would be "
            "anything from 0.000 to 0.923. Return ids alone, best first, or scores that tell the "
            "hits apart."
        ) in out

    def test_the_document_has_the_figures(self, run: Command) -> None:
        command = ("bench", "best.yaml", "--dataset", "fruit", "--k", "8", *ONCE)
        document = json.loads(shown(run, *command, "--format", "json"))
        ties = document["ties"]
        assert (ties["metric"], ties["share"], ties["constant"]) == ("nDCG@8", 1.0, True)
        assert [ties["worst"], ties["best"]] == pytest.approx([0.0, 0.923], abs=5e-4)
        assert [one["code"] for one in document["warnings"]].count("ties") == 1

    def test_compare_does_not_recommend_without_saying_so(self, run: Command) -> None:
        command = ("compare", "best.yaml", "plain.yaml", "--dataset", "fruit", "--k", "8", *ONCE)
        out = shown(run, *command)
        assert "Nothing is recommended while this is open: best has tied hits, and" in out
        assert "their order alone decides which mean is higher" in out
        assert "to 0.923." in out
        assert "Use plain" not in out
        assert f"best: {CONSTANT}" in out
        assert f"plain: {CONSTANT}" not in out

    def test_probe_and_doctor_say_so(self, run: Command) -> None:
        asked = ("best.yaml", "--dataset", "fruit", "--k", "8")
        assert CONSTANT in shown(run, "bench", *asked, "--probe", "2")
        assert CONSTANT in shown(run, "doctor", *asked)

    def test_they_are_named_where_nothing_is_judged(self, run: Command, fruit: Path) -> None:
        (fruit / "fruit" / "qrels" / "test.tsv").unlink()
        (fruit / "fruit" / "qrels").rmdir()
        out = shown(run, "bench", "best.yaml", "--dataset", "fruit", "--k", "8", *ONCE)
        assert f"! {CONSTANT}, so their order is that of their ids. Return" in out


@pytest.mark.usefixtures("fruit")
@pytest.mark.parametrize(
    ("name", "told"), [("plain", ""), ("falling", ""), ("boolean", SHARED), ("rounded", SHARED)]
)
def test_scores_are_told_where_they_tie(name: str, told: str, run: Command) -> None:
    out = shown(run, "bench", f"{name}.yaml", "--dataset", "fruit", "--k", "8", *ONCE)
    assert (SHARED in out) == bool(told)
    assert CONSTANT not in out
    assert ("0.923" in out.splitlines()[0].partition("[")[0]) == (name in ("plain", "falling"))


@pytest.mark.usefixtures("fruit")
def test_equal_texts_are_told_as_the_cause(run: Command) -> None:
    out = shown(run, "bench", "bm25", "--dataset", "fruit", *ONCE)
    assert "in other orders nDCG@10 would be anything from 0.982 to 1.000. Most of them" in out
    assert "are documents of equal text, which no search can tell apart" in out


def test_score_run_says_so(run: Command, here: Path) -> None:
    lines = "".join(f"q1 Q0 {doc} {rank} 1.0 t\n" for rank, doc in enumerate("abc", start=1))
    save_all(here, {"q.txt": "q1 0 a 1\n", "t.run": lines})
    out = shown(run, "score", "run", "t.run", "--qrels", "q.txt", "--metrics", "nDCG@10", "RR")
    assert "nDCG@10 is 0.5000 over 1 query. ! All hits" in out
    assert "anything from 0.500 to 1.000" in out
    assert "the ranks in a run file are not read" in out
    documents = {doc: f"on {doc}" for doc in "abc"}
    beir(here / "ds", documents, {"q1": "which"}, [("q1", "a", 1)])
    replayed = ("bench", "trec_run", "--set", "path=t.run", "--dataset", "ds", "--k", "3")
    out = shown(run, *replayed, "--metrics", "nDCG@3", "RR", "-v")
    assert re.search(r"nDCG@3 +0.500", out), "one file has one value"
    assert re.search(r"RR +0.333", out)
    assert "anything from 0.500 to 1.000" in out
    assert "ties: as replayed" in out
    by_list = shown(run, "score", "run", "t.run", "--qrels", "q.txt", "--convention", "blog")
    assert CONSTANT not in by_list, "there the order of the file decides, not that of ids"


def queries_of(folder: Path) -> list[str]:
    lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["_id"] for line in lines]


@pytest.mark.usefixtures("fruit")
def test_fusion_by_ranks_says_what_tells_its_hits_apart(run: Command, here: Path) -> None:
    swapped = "def a(text, k):\n    return ['100', '101', '102'][:k]\n"
    swapped += "def b(text, k):\n    return ['101', '100', '103'][:k]\n"
    save(here / "legs.py", swapped)
    legs = "".join(
        f"\n    - {{name: {leg}, target: callable, params: {{function: 'legs.py:{leg}'}}}}"
        for leg in "ab"
    )
    for name, more in (("even", ""), ("uneven", "\n  fusion: {weights: {a: 1.0, b: 0.9}}")):
        (here / f"{name}.yaml").write_text(f"target: hybrid\nparams:\n  legs:{legs}{more}\n")
    out = shown(run, "bench", "even.yaml", "--dataset", "fruit", "--k", "3", *ONCE)
    assert "To break such ties, give the legs unequal weights, or fuse scores." in out
    out = shown(run, "bench", "uneven.yaml", "--dataset", "fruit", "--k", "3", *ONCE)
    assert SHARED not in out
    for name, docs in (("a", ("100", "101")), ("b", ("101", "100"))):
        lines = "".join(
            f"{query} Q0 {doc} {rank} {9 - rank} {name}\n"
            for query in queries_of(here / "fruit")
            for rank, doc in enumerate(docs, start=1)
        )
        save(here / f"{name}.run", lines)
    out = shown(run, "compare", "a.run", "b.run", "--fuse", "--dataset", "fruit", "--k", "3")
    assert "give the legs unequal weights" in out, "also where the legs are run files"
    assert "the ranks in a run file" not in out


@pytest.mark.parametrize(
    "texts",
    [
        ["donor of type A+ wanted", "donor of type A- wanted", "grade B+ maths", "grade B- maths"],
        ["a compiler of C++", "a compiler of C#", "a compiler of C"],
        ["it is -5 outside", "it is 5 outside", "rain"],
    ],
)
def test_texts_that_differ_in_signs_are_not_called_equal(
    texts: list[str], here: Path, run: Command
) -> None:
    """F9: the analyser made them equal; taking them out of the corpus would lose answers."""
    docs = {f"d{at}": text for at, text in enumerate(texts)}
    queries = {f"q{at}": text for at, text in enumerate(texts)}
    beir(here / "signs", docs, queries, [(f"q{at}", f"d{at}", 1) for at in range(len(texts))])
    for command in ("bench", "doctor"):
        more = ONCE if command == "bench" else ()
        out = shown(run, command, "bm25", "--dataset", "signs", "--k", "2", *more)
        assert "documents that differ in signs only, such as d0 and d1, which tokenizer" in out
        assert "`tokenizer: whitespace` tells them apart" in out
        assert "equal text" not in out
        assert "same text" not in out
    apart = ("--set", "tokenizer=whitespace")
    out = shown(run, "bench", "bm25", "--dataset", "signs", "--k", "2", *apart, *ONCE)
    assert "nDCG@2 1.000" in out
    assert "signs only" not in out


def test_equal_texts_in_other_case_and_punctuation_stay_copies(here: Path, run: Command) -> None:
    docs = {"d0": "Grapes, in autumn.", "d1": "grapes in Autumn", "d2": "lemons"}
    beir(here / "same", docs, {"q0": "grapes", "q1": "lemons"}, [("q0", "d1", 1), ("q1", "d2", 1)])
    out = shown(run, "bench", "bm25", "--dataset", "same", "--k", "2", *ONCE)
    assert "documents of equal text" in out


LETTERS = "abcdefghijklmnopqrst"


@pytest.fixture
def same(here: Path) -> Path:
    """K1: twenty documents of one text, of which the last is judged, and runs that put it first."""
    docs = dict.fromkeys(LETTERS, "same words here")
    queries = {f"q{i}": "same words" for i in range(5)}
    beir(here / "same", docs, queries, [(query, "t", 1) for query in queries])
    ranked = [LETTERS[-1], *LETTERS[:-1]]
    for n in (10, 20):
        lines = (f"{q} Q0 {d} {r} 1.0 x" for q in queries for r, d in enumerate(ranked[:n], 1))
        save(here / f"{n}.run", "\n".join(lines) + "\n")
    return here


@pytest.mark.usefixtures("same")
class TestTiesAtTheCut:
    @pytest.mark.parametrize(
        ("name", "k"), [("bm25", 1), ("bm25", 10), ("bm25", 20), ("bm25s", 10)]
    )
    def test_the_range_takes_the_hits_behind_the_cut(self, run: Command, name: str, k: int) -> None:
        """K1: t is in the tie, and was not in the ten hits that were kept."""
        out = shown(run, "bench", name, "--dataset", "same", "--k", str(k), *ONCE)
        assert f"{name} on same: nDCG@{min(k, 10)} 0.000" in out
        assert "would be anything from 0.000 to 1.000. Most of them are documents of equal" in out
        assert "not known" not in out

    @pytest.mark.parametrize(("n", "low", "unknown"), [(20, "0.000", False), (10, "0.289", True)])
    def test_a_run_file_says_the_same_scored_and_replayed(
        self, run: Command, n: int, low: str, unknown: bool
    ) -> None:
        """K1: they differed; where the file ends with the tie, what else is in it nobody knows."""
        replay = ("bench", "trec_run", "--set", f"path={n}.run", "--dataset", "same", *ONCE)
        scored = ("score", "run", f"{n}.run", "--dataset", "same", "--metrics", "nDCG@10")
        for command in (replay, scored):
            out = shown(run, *command)
            assert f"would be anything from {low} to 1.000" in out
            known = "What else has the score of the last hit is not known for 5 queries: the range"
            assert (known in out) == unknown

    @pytest.mark.parametrize(
        ("body", "unknown"),
        [
            ("return [(d, 1.0) for d in LETTERS[:10]]", True),
            ("return [(d, 1.0) for d in LETTERS[:k]]", False),
            ("return [(d, 1.0) for d in (LETTERS[:k] if k == 10 else LETTERS[5:])]", True),
            ("assert k == 10; return [(d, 1.0) for d in LETTERS[:k]]", True),
        ],
        ids=["no more than ten", "as many as wanted", "others each time", "fails"],
    )
    def test_what_cannot_be_known_is_said_to_be_unknown(
        self, run: Command, here: Path, body: str, unknown: bool
    ) -> None:
        """K1: an engine that gives no more than it gave, or others, tells nothing of its tie."""
        save(here / "own.py", f'LETTERS = "{LETTERS}"\ndef own(text, k):\n    {body}\n')
        save(here / "own.yaml", 'target: callable\nparams: {function: "own.py:own"}\n')
        out = shown(run, "bench", "own.yaml", "--dataset", "same", *ONCE)
        assert ("not known for 5 queries" in out) == unknown
        if not unknown:
            assert "anything from 0.000 to 1.000" in out


@pytest.mark.usefixtures("here")
def test_copies_cut_apart_are_told(run: Command, here: Path) -> None:
    """K1: six texts of thirty copies each, of which the last is judged; and pairs that the cut
    tears."""
    names = ["apple", "banana", "cherry", "dates", "elder", "figs"]
    docs = {f"{name}{i:02}": f"{name} pie recipe" for name in names for i in range(30)}
    beir(here / "six", docs, {n: n for n in names}, [(n, f"{n}29", 1) for n in names])
    out = shown(run, "bench", "bm25", "--dataset", "six", *ONCE)
    assert "anything from 0.000 to 1.000. Most of them are documents of equal text" in out
    pairs = {f"{n}{i}": f"{n} pie" if n == "apple" else n for n in names for i in "ab"}
    beir(
        here / "two",
        pairs,
        {n: f"{n} apple" for n in names[1:]},
        [(n, f"{n}b", 1) for n in names[1:]],
    )
    out = shown(run, "bench", "bm25", "--dataset", "two", "--k", "1", *ONCE)
    assert "nDCG@1 would be anything from 0.000 to 1.000" in out


@pytest.mark.usefixtures("fruit")
def test_nobody_is_asked_for_more_where_nothing_ties(run: Command, here: Path) -> None:
    """K1: a search that ends it all when more hits are wanted than were measured."""
    lines = SEARCHES + "\ndef once(text, k):\n    assert k == 8\n    return falling(text, k)\n"
    save(here / "tie.py", lines)
    save(here / "once.yaml", 'target: callable\nparams: {function: "tie.py:once"}\n')
    out = shown(run, "bench", "once.yaml", "--dataset", "fruit", "--k", "8", *ONCE)
    assert "not known" not in out
