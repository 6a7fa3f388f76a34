from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.config import config_hash
from retrieval_bench.core.errors import ConfigError, RecordError
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


def subject(root: Path, **asked: Any) -> Subject:
    found = read_history([root])
    assert not found.left_out
    (only,) = subjects(found.runs, found.duets, **asked)
    return only


def text(root: Path, **asked: Any) -> str:
    found = read_history([root])
    chosen = subjects(found.runs, found.duets, **asked)
    return terminal.plain(history_tables(chosen, found))


def keys(only: Subject) -> list[tuple[str, str]]:
    """The keys of each run for quality and times, the oldest first."""
    return [(str(run.same_quality), str(run.same_times)) for run in only.runs]


# -- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "quality", "times"),
    [
        ({}, True, True),
        ({"config": "other", "commit": 3, "dirty": True, "source": None}, True, True),
        ({"protocol": {"profile": "p.yaml", "levels": [50.0, 99.0]}}, True, True),
        ({"p50": None}, True, True),
        ({"machine": {"fingerprint": "bbbb"}}, True, False),
        ({"machine": {"processor": "as it calls itself"}}, True, True),
        ({"protocol": {"threads": 4}}, True, False),
        ({"protocol": {"rounds": 3}}, True, False),
        ({"threads": 4}, True, False),
        ({"beside": ["dense"]}, True, False),
        ({"convention": "piaf"}, False, True),
        ({"metrics_version": 2}, False, True),
        ({"split": "dev"}, False, False),
        ({"k": 100}, False, False),
        ({"fingerprint": "e" * 32}, False, False),
    ],
)
def test_only_runs_that_may_be_held_against_each_other_share_a_key(
    tmp_path: Path, other: dict[str, Any], quality: bool, times: bool
) -> None:
    save_run(tmp_path, 1)
    save_run(tmp_path, 2, **other)
    one, two = keys(subject(tmp_path))
    assert (one[0] == two[0], one[1] == two[1]) == (quality, times)


def test_a_run_without_a_whole_measurement_has_no_key(tmp_path: Path) -> None:
    save_run(tmp_path, 1, status="partial")
    save_run(tmp_path, 2, protocol={"profile": RANKINGS_ONLY})
    one, two = subject(tmp_path).runs
    assert (one.same_quality, one.same_times, two.same_times) == (None, None, None)
    assert two.same_quality is not None


def test_a_key_does_not_depend_on_the_folders_that_are_given(tmp_path: Path) -> None:
    """Its mates may lie elsewhere: a run says who they were."""
    save_run(tmp_path / "one", 1, beside=[])
    save_run(tmp_path / "one", 2, beside=["dense", "a"])
    save_run(tmp_path / "more", 3, retriever="dense", beside=["a", "bm25"])
    found = []
    for folders in (["one"], ["one", "more"]):
        records = read_history([tmp_path / name for name in folders])
        bm25 = next(one for one in subjects(records.runs, []) if one.retriever == "bm25")
        assert [facts["beside"] for facts in bm25.keys.values() if "beside" in facts] == [
            [],
            ["a", "dense"],
        ]
        found.append(keys(bm25))
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_run_says_with_whom_it_took_turns() -> None:
    protocol = Protocol(rounds=1, warm_up_s=0.0)
    made = prepare(["bm25", "bm25", "bm25s"], "science-mini", protocol=protocol, save=False)
    told = [run.manifest["beside"] for run in made.run(save=False)]
    assert told == [["bm25", "bm25s"], ["bm25", "bm25s"], ["bm25", "bm25"]]


def test_a_key_is_that_of_what_its_runs_share(tmp_path: Path) -> None:
    save_run(tmp_path / "a", 1)
    save_run(tmp_path / "b", 9, p50=5.0, commit=4)
    save_run(tmp_path / "c", 1, machine={"fingerprint": "bbbb"})
    a, b, c = (keys(subject(tmp_path / name))[0] for name in "abc")
    assert a == b
    assert a[0] == c[0]
    assert a[1] != c[1]
    assert a == ("92ada7ed", "e965806b")


def test_a_document_has_both_keys_of_each_run_and_what_they_stand_for(tmp_path: Path) -> None:
    save_run(tmp_path, 1)
    save_run(tmp_path, 2, k=100)
    save_run(tmp_path, 3, status="partial")
    document = subject(tmp_path).as_dict()
    of_runs = [(run["same_quality"], run["same_times"]) for run in document["runs"]]
    assert of_runs[2] == (None, None)
    (quality, times), (other, others) = of_runs[:2]
    assert set(document["keys"]) == {quality, times, other, others}
    assert (document["keys"][quality]["k"], document["keys"][other]["k"]) == (10, 100)
    assert document["keys"][times]["machine"] == "aaaa11112222"


def test_runs_stand_in_the_order_of_time_and_only_the_last_are_kept(tmp_path: Path) -> None:
    for day in (5, 1, 3):
        save_run(tmp_path, day)
    only = subject(tmp_path, last=2)
    assert [run.id for run in only.runs] == ["run-003", "run-005"]
    assert "bm25 on tiny: the newest 2 of 3 runs" in text(tmp_path, last=2)


# -- what to do next -----------------------------------------------------------------------------


def test_history_says_nothing_is_slower_and_names_nothing_as_moved(tmp_path: Path) -> None:
    for day, p50 in enumerate((1.0, 9.0, 1.0, 20.0)):
        save_run(tmp_path, day, commit=day, p50=p50, mean=p50 / 40)
    said = text(tmp_path)
    assert not re.search(r"slower|faster|regression|FAIL|worse|[Ss]tep", said)
    assert "Whether a time moved is decided by a duet." in said


@pytest.mark.parametrize(
    ("runs", "pair"),
    [
        ([{}, {}, {}], (1, 2)),
        ([{}, {}, {"k": 100}], (0, 1)),
        ([{}, {"k": 100}, {}], (0, 2)),
        ([{}, {"status": "partial"}, {}, {"status": "partial"}], (0, 2)),
        ([{}, {"machine": {"fingerprint": "bbbb"}}], None),
        ([{"status": "partial"}, {"status": "partial"}], None),
        ([{}], None),
    ],
)
def test_the_last_line_compares_the_two_newest_runs_that_may_be(
    tmp_path: Path, runs: list[dict[str, Any]], pair: tuple[int, int] | None
) -> None:
    for day, other in enumerate(runs):
        save_run(tmp_path, day, **other)
    said = text(tmp_path)
    if pair is None:
        assert "retrieval-bench" not in said
        assert "To compare" not in said
    else:
        folders = [str(tmp_path / f"run-{day:03}") for day in pair]
        assert said.splitlines()[-1].strip() == f"retrieval-bench compare {' '.join(folders)}"


CUT = {"by": "tokens", "size": 40, "overlap": 0}


def test_a_file_with_a_chunker_behind_it_is_another_retriever_than_the_file(here: Path) -> None:
    (here / "mine.yaml").write_text("target: bm25", encoding="utf-8")
    own = str(here / "mine.yaml")
    for day, (name, chunk) in enumerate((("mine", None), ("mine+tokens-40-0", CUT))):
        save_run(here / "results/runs", day, retriever=name, source=own, chunk=chunk)
        (only,) = history(retriever=f"{name.replace('mine', 'mine.yaml')}", last=None).subjects
        assert only.retriever == name


def test_a_change_of_the_chunker_is_told(tmp_path: Path) -> None:
    for day, size in enumerate((40, 20)):
        save_run(tmp_path, day, config=f"c{size}", chunk={**CUT, "size": size})
    assert subject(tmp_path).runs[0].params["chunk.size"] == "40"
    assert "config: c40 = chunk.size 40; c20 = chunk.size 20." in folded(text(tmp_path))


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
    assert "Found twice, and counted once: 3 records." in terminal.plain(history_tables((), found))


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


def test_duets_are_listed_with_the_key_of_those_against_the_same_revision(tmp_path: Path) -> None:
    save_duet(tmp_path, 1, ratio=1.01)
    save_duet(tmp_path, 2, ratio=1.06, verdict="FAIL", commit=None)
    only = subject(tmp_path)
    one, two = (str(duet.same_times) for duet in only.duets)
    assert one == two
    said = text(tmp_path)
    assert re.search(r"WORKTREE +\+6\.0 % \[\+5\.0, \+7\.0\] +- +FAIL$", said, re.M)
    assert "Side a: bm25 at main (1111111)." in folded(said)
    save_duet(tmp_path, 3, pinned=5)
    save_duet(tmp_path, 4, pinned=None)
    *_, other, none = (duet.same_times for duet in subject(tmp_path).duets)
    assert none is None
    assert str(other) != one
    said = folded(text(tmp_path))
    assert f" FAIL {one[:6]} " in said
    assert f"{one[:6]} = commit 1111111; {str(other)[:6]} = commit 6666666." in said
    assert " PASS none " in said
    assert "1 duet comparable with none: side a is not a revision (--rev-a)." in said


# -- what is shown -------------------------------------------------------------------------------


def test_the_table_has_a_column_only_for_what_tells_rows_apart_and_fits_a_terminal(
    tmp_path: Path,
) -> None:
    for day in range(2):
        save_run(tmp_path / "alike", day)
    said = text(tmp_path / "alike")
    assert re.search(r"^  date, UTC +revision +nDCG@10 +p50 +p95$", said, re.M)
    assert not re.search("config|same key[.]|cut short", said)
    other = {"fingerprint": "bbbb", "processor": "Other"}
    for day in range(6):
        save_run(
            tmp_path / "more",
            day,
            commit=day // 2,
            dirty=day == 3,
            p50=2 + day / 10,
            config="c2" if day > 3 else "c1",
            params={"b": {"x": 1 + (day > 3)}},
            machine=other if day == 1 else {},
            status="partial" if day == 0 else "complete",
        )
    said = text(tmp_path / "more")
    _, (quality, there), (_, here), *_ = keys(subject(tmp_path / "more"))
    quality, there, here = quality[:6], there[:6], here[:6]
    rows = [line for line in said.splitlines() if line.startswith("  2026")]
    assert [re.split(r"  +", row.strip()) for row in rows] == [
        ["2026-01-01 00:00", "1111111", "c1", "0.5000", "2.00", "-", "partial", "-"],
        ["2026-01-01 01:00", "1111111", "c1", "0.5000", "2.10", "-", quality, there],
        ["2026-01-01 02:00", "2222222", "c1", "0.5000", "2.20", "-", quality, here],
        ["2026-01-01 03:00", "2222222+", "c1", "0.5000", "2.30", "-", quality, here],
        ["2026-01-01 04:00", "3333333", "c2", "0.5000", "2.40", "-", quality, here],
        ["2026-01-01 05:00", "3333333", "c2", "0.5000", "2.50", "-", quality, here],
    ]
    assert max(map(len, rows)) <= 80
    assert "config: c1 = b.x 1; c2 = b.x 2." in said
    assert "1 run cut short: comparable with none" in folded(said)
    assert "times: compare only rows with the same key." in folded(said)
    machines = f"{there} = machine bbbb (Other, 2 cores); {here} = machine aaaa11112222 (Tester, "
    assert machines in folded(said)


def test_facts_that_tell_keys_or_configs_apart_are_told(tmp_path: Path) -> None:
    many = dict.fromkeys(("rounds", "min_calls", "warm_up_s", "timeout_s"), 1)
    save_run(tmp_path, 1, threads=1, protocol={"threads": 1})
    save_run(tmp_path, 2, threads=2, protocol={"threads": 2, **many})
    save_run(tmp_path, 3, threads=2, protocol={"threads": 2, **many, "timeout_s": 2})
    said = folded(text(tmp_path))
    _, two, three = (times[:6] for _, times in keys(subject(tmp_path)))
    told = dict(re.findall(r"(\w{6}) = ([^;]+?)(?:;|\.$|\. )", said))
    assert "timeout_s 1" in told[two]
    assert "timeout_s 2" in told[three]
    assert told[two].count("threads") == 1


def test_of_many_keys_the_newest_are_told(tmp_path: Path) -> None:
    for day in range(12):
        save_run(tmp_path, day, threads=day + 1)
    said = folded(text(tmp_path))
    assert "4 older: --format json; " in said
    assert len(re.findall(r"= threads \d+", said)) == 8


def test_configs_that_differ_in_their_legs_alone_are_said_so(tmp_path: Path) -> None:
    for day, config in enumerate(("c1", "c2")):
        save_run(tmp_path, day, config=config)
    assert "config: c1 = other legs; c2 = other legs." in folded(text(tmp_path))


def test_the_last_command_compares_what_has_a_metric_in_common(tmp_path: Path) -> None:
    folders = [save_run(tmp_path, day) for day in range(3)]
    summary = json.loads((folders[2] / "summary.json").read_text("utf-8"))
    summary["metrics"] = {"R@5": next(iter(summary["metrics"].values()))}
    (folders[2] / "summary.json").write_text(json.dumps(summary), "utf-8")
    pair = subject(tmp_path).newest_pair
    assert pair is not None
    assert [run.folder for run in pair] == folders[:2]


def test_one_retriever_on_several_datasets_is_named_with_one_of_them(tmp_path: Path) -> None:
    for day, dataset in enumerate(("other", "science-mini")):
        save_run(tmp_path, day, dataset=dataset)
    assert "data history bm25 --dataset science-mini" in folded(text(tmp_path))


def test_an_interval_that_is_none_leaves_the_figure(tmp_path: Path) -> None:
    folder = save_run(tmp_path, 1)
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    figure = summary["metrics"]["nDCG@10"]
    figure["ci95"] = [float("nan"), 1.0]
    (folder / "summary.json").write_text(json.dumps(summary), "utf-8")
    (run,) = subject(tmp_path).runs
    assert run.metrics["nDCG@10"].interval is None


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
    assert entry["name"] == f"bm25 on tiny: p50 [{keys(only)[0][1]}]"
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
