from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.config import config_hash
from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench.core.installed.installation import packaged_configs
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.reports.render import terminal
from retrieval_bench_regress.history import Subject, subjects
from retrieval_bench_regress.history.facts import read_history
from retrieval_bench_regress.history.history import history
from retrieval_bench_regress.tables.github_benchmark import benchmark_entries
from retrieval_bench_regress.tables.history import history_tables
from tests.builders.history_sample import save_duet, save_run
from tests.builders.tables import folded

OUTSIDE = "/elsewhere/bm25.yaml"


def subject(root: Path, **asked: Any) -> Subject:
    found = read_history([root])
    assert not found.left_out
    (only,) = subjects(found.runs, found.duets, **asked)
    return only


def text(root: Path, **asked: Any) -> str:
    found = read_history([root])
    chosen = subjects(found.runs, found.duets, **asked)
    return terminal.plain(history_tables(chosen, found))


def on_lines(only: Subject) -> list[str]:
    """Letter and number of each run, the oldest first."""
    pairs = [(run.quality_line, run.latency_line) for run in only.runs]
    return ["".join(line or "-" for line in pair) for pair in pairs]


# -- lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "where"),
    [
        ({}, "A1"),
        ({"config": "other", "commit": 3, "dirty": True, "source": None}, "A1"),
        ({"protocol": {"profile": "p.yaml", "levels": [50.0, 99.0]}}, "A1"),
        ({"machine": {"fingerprint": "bbbb"}}, "A2"),
        ({"protocol": {"threads": 4}}, "A2"),
        ({"protocol": {"rounds": 3}}, "A2"),
        ({"k": 100}, "B2"),
        ({"fingerprint": "e" * 32}, "B2"),
        ({"status": "partial"}, "--"),
        ({"p50": None}, "A-"),
    ],
)
def test_a_line_holds_only_what_may_be_held_against_each_other(
    tmp_path: Path, other: dict[str, Any], where: str
) -> None:
    save_run(tmp_path, 1)
    save_run(tmp_path, 2, **other)
    assert on_lines(subject(tmp_path)) == ["A1", where]


def test_times_beside_another_retriever_are_on_a_line_of_their_own(tmp_path: Path) -> None:
    save_run(tmp_path, 1)
    save_run(tmp_path, 2, beside=["dense"])
    save_run(tmp_path, 3, beside=["bm25"], retriever="dense")
    found = read_history([tmp_path])
    bm25 = next(one for one in subjects(found.runs, []) if one.retriever == "bm25")
    assert on_lines(bm25) == ["A1", "A2"]
    assert bm25.latency_lines[1].same["beside"] == ["dense"]


def test_a_line_does_not_depend_on_the_folders_that_are_given(tmp_path: Path) -> None:
    """Its mates may lie elsewhere: a run says who they were."""
    save_run(tmp_path / "one", 1, beside=[])
    save_run(tmp_path / "one", 2, beside=["dense", "a"])
    save_run(tmp_path / "more", 3, retriever="dense", beside=["a", "bm25"])
    ids = set()
    for folders in (["one"], ["one", "more"]):
        found = read_history([tmp_path / name for name in folders])
        bm25 = next(one for one in subjects(found.runs, []) if one.retriever == "bm25")
        assert on_lines(bm25) == ["A1", "A2"]
        assert bm25.latency_lines[1].same["beside"] == ["a", "dense"]
        ids.add(bm25.latency_lines[1].id)
    assert len(ids) == 1


@pytest.mark.slow
def test_a_run_says_with_whom_it_took_turns() -> None:
    protocol = Protocol(rounds=1, warm_up_s=0.0)
    made = prepare(["bm25", "bm25", "bm25s"], "science-mini", protocol=protocol, save=False)
    told = [run.manifest["beside"] for run in made.run(save=False)]
    assert told == [["bm25", "bm25s"], ["bm25", "bm25s"], ["bm25", "bm25"]]


def test_the_id_of_a_line_is_that_of_what_its_runs_share(tmp_path: Path) -> None:
    save_run(tmp_path / "a", 1)
    save_run(tmp_path / "b", 9, p50=5.0, commit=4)
    save_run(tmp_path / "c", 1, machine={"fingerprint": "bbbb"})
    ids = [subject(tmp_path / name).latency_lines[0].id for name in "abc"]
    assert ids[0] == ids[1] != ids[2]


def test_more_lines_than_letters(tmp_path: Path) -> None:
    for day in range(28):
        save_run(tmp_path, day, k=day + 1)
    labels = [line.label for line in subject(tmp_path).quality_lines]
    assert labels[0] == "A"
    assert labels[26:] == ["A2", "B2"]


def test_runs_stand_in_the_order_of_time_and_only_the_last_are_kept(tmp_path: Path) -> None:
    for day in (5, 1, 3):
        save_run(tmp_path, day)
    only = subject(tmp_path, last=2)
    assert [run.id for run in only.runs] == ["run-003", "run-005"]
    assert "bm25 on tiny: the newest 2 of 3 runs" in text(tmp_path, last=2)


# -- steps ---------------------------------------------------------------------------------------


def test_the_largest_step_of_a_time_comes_with_the_duet_that_decides(tmp_path: Path) -> None:
    for day, (commit, p50) in enumerate([(0, 2.0), (0, 2.1), (1, 2.05), (2, 2.6), (2, 2.5)]):
        save_run(tmp_path, day, commit=commit, p50=p50)
    (step,) = subject(tmp_path).steps
    assert (step.before.id, step.after.id) == ("run-002", "run-003")
    assert step.change == pytest.approx(2.55 / 2.05 - 1)
    assert step.equal_code == pytest.approx(0.05)
    said = text(tmp_path)
    assert "Largest step of p50: +24.4 % from 2222222 to 3333333 (2.05 to 2.55 ms)." in said
    assert "no verdict: runs of equal code differ by up to 5.0 % here." in folded(said)
    revisions = f"--rev-a {'2' * 12} --rev-b {'3' * 12}"
    command = f"retrieval-bench duet bm25 --dataset tiny {revisions}"
    assert f"A duet decides:\n  {command}\n" in said


def test_history_says_nothing_is_slower(tmp_path: Path) -> None:
    for day, p50 in enumerate((1.0, 9.0, 1.0, 20.0)):
        save_run(tmp_path, day, commit=day, p50=p50)
    assert not re.search(r"slower|faster|regression|FAIL|worse", text(tmp_path))


@pytest.mark.parametrize(
    "after",
    [{"p50": 9.0, "machine": {"fingerprint": "bbbb"}}, {"p50": 2.019}],
    ids=["between two lines", "below what a duet calls a difference"],
)
def test_what_is_no_step(tmp_path: Path, after: dict[str, Any]) -> None:
    save_run(tmp_path, 1, commit=0, p50=2.0)
    save_run(tmp_path, 2, commit=1, **after)
    assert subject(tmp_path).steps == []


@pytest.mark.parametrize(
    ("before", "other", "why"),
    [
        ({}, {"commit": 0, "config": "c2"}, "both are one revision"),
        ({}, {"commit": 1, "dirty": True}, "the files of one are in no commit"),
        ({}, {"commit": None}, "the files of one are in no commit"),
        (
            {},
            {"commit": 1, "overrides": None},
            "the saved runs do not tell how to make one of them",
        ),
        ({}, {"commit": 1, "config": "c2", "source": OUTSIDE}, "the saved runs do not tell"),
        ({"source": OUTSIDE}, {"commit": 1, "config": "c2"}, "the saved runs do not tell"),
    ],
)
def test_where_no_duet_can_decide_it_says_why(
    tmp_path: Path, before: dict[str, Any], other: dict[str, Any], why: str
) -> None:
    save_run(tmp_path, 1, p50=2.0, **before)
    save_run(tmp_path, 2, p50=3.0, **other)
    (step,) = subject(tmp_path).steps
    assert step.decides == ()
    assert f"No duet can decide it afterwards: {why}" in folded(text(tmp_path))
    assert "no code was run twice here" in folded(text(tmp_path))


def test_the_same_files_run_twice_are_no_step_but_uncommitted_ones_are(tmp_path: Path) -> None:
    for day, p50 in enumerate((2.0, 3.0)):
        save_run(tmp_path / "clean", day, p50=p50)
        save_run(tmp_path / "dirty", day, p50=p50, dirty=True)
    assert subject(tmp_path / "clean").steps == []
    assert len(subject(tmp_path / "dirty").steps) == 1


def test_the_duet_asks_for_the_depth_the_threads_and_the_file(tmp_path: Path) -> None:
    source = str(Path.cwd() / "mine" / "own.yaml")
    for day, p50 in enumerate((2.0, 3.0)):
        save_run(tmp_path, day, commit=day, p50=p50, k=100, threads=4, source=source)
    (step,) = subject(tmp_path).steps
    assert step.decides[2] == str(Path("mine") / "own.yaml")
    assert step.decides[-4:] == ("--k", "100", "--threads", "4")


@pytest.mark.parametrize(
    ("source", "data"),
    [
        (None, "tiny"),
        ("small", "small"),
        ("module:function", "module:function"),
        (str(Path.cwd() / "my data" / ".." / "tiny"), "./tiny"),
        (str(Path.cwd() / "my data" / "tiny"), str(Path("my data", "tiny"))),
        ("/elsewhere/tiny", "/elsewhere/tiny"),
    ],
)
def test_the_duet_finds_the_dataset(tmp_path: Path, source: str | None, data: str) -> None:
    for day, p50 in enumerate((2.0, 3.0)):
        save_run(tmp_path, day, commit=day, p50=p50, data=source)
    (step,) = subject(tmp_path).steps
    assert step.decides[3] == "--dataset"
    assert step.decides[4] == data


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (["k1=2"], ["k1=2"], ("--set", "k1=2")),
        ([], ["k1=2", "b=0.1"], ("--set-b", "k1=2", "b=0.1")),
        (["b=1"], ["b=0"], ("--set-a", "b=1", "--set-b", "b=0")),
    ],
)
def test_the_duet_measures_what_was_measured(
    tmp_path: Path, before: list[str], after: list[str], words: tuple[str, ...]
) -> None:
    save_run(tmp_path, 1, commit=1, p50=2.0, overrides=before)
    save_run(tmp_path, 2, commit=2, p50=3.0, overrides=after)
    (step,) = subject(tmp_path).steps
    assert step.decides[-len(words) :] == words


def test_the_duet_of_a_config_that_moved_names_both_files(tmp_path: Path) -> None:
    for day, name in enumerate(("old", "new")):
        source = str(Path.cwd() / name / "own.yaml")
        save_run(tmp_path, day, commit=day, p50=2.0 + day, source=source)
    (step,) = subject(tmp_path).steps
    assert step.decides[2:4] == (str(Path("old/own.yaml")), str(Path("new/own.yaml")))


def test_only_a_config_of_the_folders_in_use_is_called_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for at, project in enumerate((mine, other)):
        file = project / "configs" / "retrievers" / "bm25.yaml"
        file.parent.mkdir(parents=True)
        file.write_text("target: bm25", encoding="utf-8")
        save_run(tmp_path / "runs", at, source=str(file))
    packaged = packaged_configs() / "retrievers" / "bm25.yaml"
    save_run(tmp_path / "runs", 2, source=str(packaged))
    save_run(tmp_path / "runs", 3, source="/gone/_configs/retrievers/bm25.yaml")
    save_run(tmp_path / "runs", 4, source="/gone/configs/readers/bm25.yaml")
    always = ["bm25", "/gone/configs/readers/bm25.yaml"]
    monkeypatch.chdir(mine)
    called = [run.source for run in subject(tmp_path / "runs").runs]
    assert called == ["bm25", str(other / "configs/retrievers/bm25.yaml"), str(packaged), *always]
    monkeypatch.chdir(tmp_path)
    called = [run.source for run in subject(tmp_path / "runs").runs]
    paths = [f"{name}/configs/retrievers/bm25.yaml" for name in ("mine", "other")]
    assert called == [*paths, "bm25", *always]


CUT = {"by": "tokens", "size": 40, "overlap": 0}


def test_a_retriever_that_cuts_documents_is_called_by_its_chunker_too(tmp_path: Path) -> None:
    own, packaged = Path.cwd() / "mine.yaml", packaged_configs() / "retrievers" / "bm25.yaml"
    cases: list[tuple[str, Path | None, dict[str, Any] | None, str]] = [
        ("mine+tokens-40-0", own, CUT, "mine.yaml+tokens-40-0"),
        ("other+tokens-40-0", own, CUT, "mine.yaml+tokens-40-0"),
        ("mine", own, CUT, "mine.yaml"),
        ("a+b", Path.cwd() / "a+b.yaml", None, "a+b.yaml"),
        ("bm25+tokens-40-0", packaged, CUT, "bm25+tokens-40-0"),
        ("m:C+tokens-40-0", None, CUT, "m:C+tokens-40-0"),
    ]
    for at, (name, source, chunk, called) in enumerate(cases):
        more = {"target": "m:C"} if source is None else {}
        told = {"source": None if source is None else str(source), "chunk": chunk, **more}
        save_run(tmp_path / str(at), 0, commit=0, retriever=name, **told)
        (run,) = subject(tmp_path / str(at)).runs
        assert run.source == called


def test_a_change_of_the_chunker_is_told(tmp_path: Path) -> None:
    for day, size in enumerate((40, 20)):
        save_run(tmp_path, day, config=f"c{size}", chunk={**CUT, "size": size})
    assert subject(tmp_path).runs[0].params["chunk.size"] == "40"
    assert "(chunk.size=20)" in folded(text(tmp_path))


def test_a_metric_of_older_runs_is_known(here: Path) -> None:
    save_run(here / "runs", 0)
    folder = save_run(here / "runs", 1)
    _without(folder, "summary.json", "metrics", "R@10")
    assert history(metrics=["R@10"], folders=[here / "runs"], last=1).subjects
    with pytest.raises(ConfigError, match="which no saved run has"):
        history(metrics=["AP@10"], folders=[here / "runs"], last=1)


def test_a_run_keeps_what_it_was_told_to_override_and_a_config_tells_its_hash_beforehand() -> None:
    told = ["k1=2", "b=0.5"]
    with closing(prepare(["bm25"], "science-mini", overrides=told)) as named:
        assert named.candidates[0].config["overrides"] == told
    with closing(prepare([{"target": "bm25"}], "science-mini")) as inline:
        assert "overrides" not in inline.candidates[0].config
    # A side of a duet has no manifest: its process tells the config and nothing else.
    with closing(prepare(["bm25", "bm25"], "science-mini")) as made:
        one, same = (candidate.config for candidate in made.candidates)
    assert one["hash"] == same["hash"] == config_hash(one["target"], one["params"])


def test_a_step_of_quality_comes_with_the_comparison(tmp_path: Path) -> None:
    for day, mean in enumerate((0.5, 0.5, 0.47)):
        save_run(tmp_path, day, commit=day, mean=mean, config=f"c{day}", params={"k1": day})
    (step,) = subject(tmp_path).steps
    assert step.figure == "nDCG@10"
    assert step.change == pytest.approx(-0.03)
    said = text(tmp_path)
    assert "-0.0300 from 2222222 (cfg 2) to 3333333 (cfg 3) (0.5000 to 0.4700)" in said
    assert f"retrieval-bench compare {tmp_path / 'run-001'} {tmp_path / 'run-002'}" in said


# -- what is read --------------------------------------------------------------------------------


def test_arrays_are_not_needed_and_files_that_are_no_run_do_not_matter(tmp_path: Path) -> None:
    folder = save_run(tmp_path, 1)
    assert {path.name for path in folder.iterdir()} == {"summary.json", "manifest.json"}
    (tmp_path / ".tmp-123-run").mkdir()
    (tmp_path / "README.md").write_text("x", encoding="utf-8")
    assert len(subject(tmp_path).runs) == 1


def _without(folder: Path, name: str, *path: str, value: Any = None) -> None:
    """Take a key out of a JSON file, or set it to ``value``."""
    document = json.loads((folder / name).read_text(encoding="utf-8"))
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    (folder / name).write_text(json.dumps(document), encoding="utf-8")


BREAKS: dict[str, Any] = {
    "cut off": lambda f: (f / "summary.json").write_text('{"schema', encoding="utf-8"),
    "no manifest": lambda f: (f / "manifest.json").unlink(),
    "foreign": lambda f: (f / "summary.json").unlink(),
    "later": lambda f: _without(f, "summary.json", "schema_version", value=99),
    "no time": lambda f: _without(f, "manifest.json", "created"),
    "odd time": lambda f: _without(f, "manifest.json", "created", value="yesterday"),
    "odd mean": lambda f: _without(f, "summary.json", "metrics", "nDCG@10", "mean", value="x"),
    "odd p50": lambda f: _without(f, "summary.json", "latency_ms", "p50", "value", value=[1]),
    "odd ends": lambda f: _without(f, "summary.json", "latency_ms", "p50", "ci95", value=[1]),
    "no machine": lambda f: _without(f, "manifest.json", "environment", "machine"),
    "a list": lambda f: (f / "summary.json").write_text("[]", encoding="utf-8"),
    "NaN": lambda f: (f / "summary.json").write_bytes(
        (f / "summary.json").read_bytes().replace(b'"value": 2.0', b'"value": NaN')
    ),
    "endless k": lambda f: _without(f, "summary.json", "k", value=float("inf")),
    "odd threads": lambda f: _without(f, "manifest.json", "environment", "threads", value="all"),
    "nested": lambda f: (f / "manifest.json").write_text(
        '{"a":' * 100_000 + "1" + "}" * 100_000, encoding="utf-8"
    ),
}


@pytest.mark.parametrize("how", list(BREAKS))
def test_a_folder_that_is_no_whole_run_is_named_and_left_out(tmp_path: Path, how: str) -> None:
    save_run(tmp_path, 1)
    broken = save_run(tmp_path, 2)
    BREAKS[how](broken)
    found = read_history([tmp_path])
    assert [run.id for run in found.runs] == ["run-001"]
    ((folder, reason),) = [(one.folder, one.reason) for one in found.left_out]
    assert folder == broken
    assert reason
    *_, last = history_tables(subjects(found.runs, []), found)
    assert f"Left out: {broken}: {reason}." in last.notes


def test_a_link_that_leads_nowhere_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert read_history([tmp_path]).left_out == ()


def test_many_broken_folders_are_counted_and_the_first_named(tmp_path: Path) -> None:
    save_run(tmp_path, 1)
    for at in range(9):
        (tmp_path / f"x{at}").mkdir()
    said = text(tmp_path)
    assert said.count("Left out: ") == 6
    assert "4 more folders that are not runs" in said


def test_runs_found_twice_are_counted_once(tmp_path: Path) -> None:
    for name in "ab":
        save_run(tmp_path / name, 1)
        save_duet(tmp_path / name, 1)
    found = read_history([tmp_path / "a", tmp_path / "b", tmp_path / "a" / "run-001"])
    assert (len(found.runs), len(found.duets), found.copies) == (1, 1, 3)
    assert "3 runs stood there twice and count once." in terminal.plain(history_tables((), found))


def test_without_folders_the_usual_ones_are_read_and_need_not_be_there_but_a_named_one(
    here: Path,
) -> None:
    assert read_history().runs == ()
    save_run(here / "results" / "runs", 1)
    save_duet(here / "results" / "duets", 1)
    assert (len(read_history().runs), len(read_history().duets)) == (1, 1)
    with pytest.raises(RecordError, match="no such folder"):
        read_history([here / "nowhere"])


# -- duets ---------------------------------------------------------------------------------------


def test_duets_are_a_trend_against_a_pinned_revision(tmp_path: Path) -> None:
    save_duet(tmp_path, 1, ratio=1.01)
    save_duet(tmp_path, 2, ratio=1.06, verdict="FAIL", commit=None)
    save_duet(tmp_path, 3, pinned=5)
    save_duet(tmp_path, 4, pinned=None)
    only = subject(tmp_path)
    assert [duet.trend for duet in only.duets] == ["a", "a", "b", None]
    said = text(tmp_path)
    assert re.search(r"WORKTREE +\+6\.0 % \[\+5\.0, \+7\.0\] +- +FAIL +a", said)
    assert "line a: against bm25 at 1111111" in said
    assert "1 duet on no line: side a is not a revision" in said


# -- what is shown -------------------------------------------------------------------------------


def test_the_table_marks_changes_and_fits_a_terminal(tmp_path: Path) -> None:
    for day in range(6):
        save_run(
            tmp_path,
            day,
            commit=day // 2,
            dirty=day == 3,
            p50=2 + day / 10,
            config="c2" if day > 3 else "c1",
            params={"b": {"x": 1 + (day > 3)}},
            machine={"fingerprint": "bbbb"} if day == 1 else {},
            status="partial" if day == 0 else "complete",
        )
    said = text(tmp_path)
    rows = [line for line in said.splitlines() if line.startswith("  2026")]
    assert [re.split(r"  +", row.strip()) for row in rows] == [
        ["2026-01-01 00:00", "1111111", "1", "0.5000", "2.00", "-", "partial"],
        ["2026-01-01 01:00", "1111111", "1", "0.5000", "2.10", "-", "A1"],
        ["2026-01-01 02:00", "2222222", "1", "0.5000", "2.20", "-", "A2"],
        ["2026-01-01 03:00", "2222222+", "1", "0.5000", "2.30", "-", "A2"],
        ["2026-01-01 04:00", "3333333", "2*", "0.5000", "2.40", "-", "A2"],
        ["2026-01-01 05:00", "3333333", "2", "0.5000", "2.50", "-", "A2"],
    ]
    assert max(map(len, rows)) <= 80
    assert "cfg: 1 = c1; 2 = c2 (b.x=2)" in said
    assert "1 run cut short: on no line" in said
    assert "line 2: Tester, 2 cores (aaaa11112222), 1 thread" in said


def test_several_subjects_are_a_line_each_and_the_newest_first(tmp_path: Path) -> None:
    save_run(tmp_path, 1, retriever="검색")
    save_run(tmp_path, 2, dataset="other")
    save_run(tmp_path, 3)
    said = text(tmp_path)
    assert "Saved runs of 2 retrievers" in said
    rows = [line.split()[:3] for line in said.splitlines() if "2026-" in line]
    assert rows == [["bm25", "tiny", "1"], ["bm25", "other", "1"], ["검색", "tiny", "1"]]
    assert "retrieval-bench data history bm25" in said


def test_a_command_that_is_shown_can_be_pasted(tmp_path: Path) -> None:
    for day in (1, 2):
        save_run(tmp_path, day, retriever="my own", dataset=f"two words {day}")
    assert "data history 'my own' --dataset 'two words 2'" in text(tmp_path)


# -- for the action ------------------------------------------------------------------------------


def test_an_entry_of_the_action_is_the_newest_complete_run(tmp_path: Path) -> None:
    save_run(tmp_path, 1, p50=1.0)
    save_run(tmp_path, 2, p50=2.0, commit=1)
    save_run(tmp_path, 3, p50=9.0, status="partial")
    only = subject(tmp_path)
    (entry,) = benchmark_entries([only], "latency")
    assert entry["name"] == f"bm25 on tiny: p50 [{only.latency_lines[0].id}]"
    assert (entry["unit"], entry["value"], entry["range"]) == ("ms", 2.0, "± 0.4")
    assert {"run: run-002", "revision: 2222222", "machine: aaaa11112222"} <= set(
        entry["extra"].split("\n")
    )
    (entry,) = benchmark_entries([only], "quality")
    assert entry["name"].startswith("bm25 on tiny: nDCG@10 [")
    assert (entry["unit"], entry["value"]) == ("mean", 0.5)


def test_rankings_of_regress_are_no_measurement_of_time(tmp_path: Path) -> None:
    save_run(tmp_path, 1, p50=1.0, mean=0.4)
    save_run(tmp_path, 2, p50=9.0, mean=0.5, protocol={"profile": RANKINGS_ONLY})
    only = subject(tmp_path)
    assert on_lines(only) == ["A1", "A-"]
    assert "9.0" not in text(tmp_path)
    (entry,) = benchmark_entries([only], "latency")
    assert entry["value"] == 1.0
    (entry,) = benchmark_entries([only], "quality")
    assert entry["value"] == 0.5


def test_another_machine_has_another_name_and_so_another_chart(tmp_path: Path) -> None:
    save_run(tmp_path / "a", 1)
    save_run(tmp_path / "b", 1, machine={"fingerprint": "bbbb"})
    one, other = (benchmark_entries([subject(tmp_path / n)], "latency")[0] for n in "ab")
    assert one["name"] != other["name"]
    quality = [benchmark_entries([subject(tmp_path / n)], "quality")[0]["name"] for n in "ab"]
    assert quality[0] == quality[1]


def test_what_has_no_times_gives_no_entry(tmp_path: Path) -> None:
    save_run(tmp_path, 1, p50=None)
    assert benchmark_entries([subject(tmp_path)], "latency") == []
