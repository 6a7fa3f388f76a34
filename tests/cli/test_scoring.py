"""``evaluate``, ``audit`` and ``reader`` through the command line."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench_exchange.formats.squad import paragraph_id
from retrieval_bench_score.conventions import CONVENTIONS
from tests.builders.files import json_lines, save, save_all
from tests.builders.processes import loads
from tests.cli.project import QRELS, Command

RUN = {
    "q1": {"d3": 3.0, "d2": 2.0, "d1": 1.0},
    "q2": {"d2": 2.0, "d1": 1.0},
    "질문": {"문서": 0.5},
    "other": {"d1": 1.0},
}
AP = {"q1": (1 / 1 + 2 / 3) / 2, "q2": 1.0, "q3": 0.0, "질문": 1.0}
MEAN = sum(AP.values()) / 4


@pytest.fixture
def project(project: Path) -> Path:
    return save_all(project, {"run.trec": trec_run(), "qrels.txt": trec_qrels()})


def trec_run() -> str:
    return "".join(
        f"{q} Q0 {d} {rank} {score} tag\n"
        for q, of in RUN.items()
        for rank, (d, score) in enumerate(of.items(), 1)
    )


def trec_qrels() -> str:
    return "".join(f"{q} 0 {d} {grade}\n" for q, of in QRELS.items() for d, grade in of.items())


def table(rows: dict[str, dict[str, Any]]) -> str:
    lines = "".join(f"{q}\t{d}\t{value}\n" for q, of in rows.items() for d, value in of.items())
    return "query-id\tcorpus-id\tscore\n" + lines


AVERAGE_PRECISION = ("--metrics", "AP", "--per-query")
LISTS = {q: list(of) for q, of in RUN.items()}

RUN_FILES = {
    "run.trec": trec_run(),
    "results.tsv": table(RUN),
    "scores.json": json.dumps(RUN, indent=1),
    "lists.json": json.dumps(LISTS, ensure_ascii=False),
    "scores.jsonl": json_lines({q: of} for q, of in RUN.items()),
    "submission.csv": json_lines(
        {"eval_id": q, "topk": of, "answer": "?"} for q, of in LISTS.items()
    ),
}
TRUTH_FILES = {
    "qrels.txt": trec_qrels(),
    "test.tsv": table(QRELS),
    "qrels.json": json.dumps(QRELS),
    "qrels.jsonl": json_lines({q: of} for q, of in QRELS.items()),
    "truth.jsonl": json_lines({"eval_id": q, "docids": list(of)} for q, of in QRELS.items()),
}


def unanswerable(project: Path) -> None:
    """Six queries that nothing answers and four more with an answer, in dataset and run."""
    none = {"metadata": {"answerable": False}}
    with (project / "data" / "queries.jsonl").open("a", encoding="utf-8") as file:
        file.write(json_lines({"_id": f"u{i}", "text": f"hello {i}"} | none for i in range(6)))
        file.write(json_lines({"_id": f"a{i}", "text": f"what {i}"} for i in range(4)))
    with (project / "data" / "qrels" / "test.tsv").open("a", encoding="utf-8") as file:
        file.write("".join(f"a{i}\td1\t1\n" for i in range(4)))
    with (project / "run.trec").open("a", encoding="utf-8") as file:
        file.write("".join(f"u{i} Q0 d2 1 0.{i} t\n" for i in range(1, 6)))
        file.write("".join(f"a{i} Q0 d1 1 {i + 1}.5 t\n" for i in range(4)))


class TestAsTrecEval:
    """Names, modes and lines of trec_eval, worked out by hand."""

    QRELS = "# by hand\nq1 0 a 2.0\nq1 0 b 1\nq1 0 p -1\nq1 0 n 0\nq2 0 c 1\nq3 0 d 1\n"
    RUN = (
        "q1 Q0 n 1 5 mine\nq1 Q0 p 2 4 mine\n#no line 1 2 3 4\nq1 Q0 x 3 3 mine\n"
        "q1 Q0 a 4 2 mine\nq1 Q0 b 5 1 mine\nq3 Q0 d 1 1 mine\nother Q0 d 1 1 last\n"
    )

    @pytest.fixture(autouse=True)
    def files(self, here: Path) -> None:
        (here / "qrels").write_text(self.QRELS, encoding="utf-8")
        (here / "run").write_text(self.RUN, encoding="utf-8")

    def lines(self, run: Command, *options: str) -> list[list[str]]:
        code = run("score run run --qrels qrels --format trec", *options)
        assert (code, run.err) == (0, "")
        return [line.split() for line in run.out.splitlines()]

    def test_the_official_measures_are_printed_when_nothing_is_asked_for(
        self, run: Command
    ) -> None:
        lines = self.lines(run)
        assert lines[:5] == [
            *(["runid", "all", "last"], ["num_q", "all", "3"], ["num_ret", "all", "6"]),
            *(["num_rel", "all", "4"], ["num_rel_ret", "all", "3"]),
        ]
        assert ["map", "all", f"{(1 / 4 + 2 / 5) / 2 / 3 + 1 / 3:.4f}"] in lines
        assert [line[0] for line in lines[-9:]] == [
            f"P_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)
        ]
        assert run.out.startswith(f"runid{' ' * 17}\tall\tlast\nnum_q{' ' * 17}\tall\t3\n")

    def test_queries_that_the_run_lacks_are_left_out_without_c(self, run: Command) -> None:
        names = ("--metrics", "num_q", "num_rel", "map")
        whole, left = self.lines(run, *names), self.lines(run, *names, "--missing", "left-out")
        ap = (1 / 4 + 2 / 5) / 2
        assert [line[2] for line in whole] == ["3", "4", f"{(ap + 1) / 3:.4f}"]
        assert [line[2] for line in left] == ["2", "3", f"{(ap + 1) / 2:.4f}"]

    def test_the_lines_of_queries_come_first_and_leave_out_what_only_a_whole_run_has(
        self, run: Command
    ) -> None:
        lines = self.lines(run, "--metrics", "all_trec", "--per-query", "--missing", "left-out")
        of = [line for line in lines if line[1] == "q1"]
        assert not {"runid", "num_q", "gm_map", "gm_bpref"} & {line[0] for line in of}
        assert ["relstring", "q1", "'0.-21'"] in of
        assert lines.index(["num_ret", "q3", "1"]) > lines.index(["num_ret", "q1", "5"])
        assert ["relstring", "all"] not in [line[:2] for line in lines]

    @pytest.mark.parametrize(
        ("options", "p", "ap"),
        [
            (("--rel", "2"), 1 / 5, 1 / 4),
            (("--depth", "4"), 1 / 5, 1 / 4 / 2),
            (("--judged-only",), 2 / 5, (1 / 2 + 2 / 3) / 2),
            (("--judged-only", "--rel", "2", "--depth", "4"), 1 / 5, 1 / 2),
        ],
    )
    def test_the_modes(self, run: Command, options: tuple[str, ...], p: float, ap: float) -> None:
        lines = self.lines(run, "--metrics", "P.5", "map", "--per-query", *options)
        assert lines[0] == ["map", "q1", f"{ap:.4f}"]
        assert lines[1] == ["P_5", "q1", f"{p:.4f}"]

    def test_with_c_it_counts_every_relevant_document_whatever_the_level(
        self, run: Command
    ) -> None:
        names = ("--metrics", "num_rel", "--rel", "2")
        assert self.lines(run, *names) == [["num_rel", "all", "4"]]
        assert self.lines(run, *names, "--missing", "left-out") == [["num_rel", "all", "1"]]

    def test_our_names_are_printed_as_trec_eval_has_them(self, run: Command) -> None:
        names = ("nDCG@10", "IPrec@0.5", "AP", "F1@5", "nDCG(gains={1:3.5,2:9})", "Utility")
        lines = self.lines(run, "--metrics", *names)
        assert [line[0] for line in lines] == [
            *("map", "iprec_at_recall_0.50", "utility", "ndcg_1=3.5,2=9", "ndcg_cut_10", "F1@5")
        ]

    def test_the_table_and_the_json_name_the_modes(self, run: Command) -> None:
        score = "score run run --qrels qrels --metrics NumRet AP"
        assert run(f"{score} --depth 3 --missing left-out") == 0
        assert "NumRet(depth=3) is 4 [2, 6] over 2 queries" in run.out
        assert "but queries missing from the run: left out" in " ".join(run.out.split())
        metrics = run.json(f"{score} --judged-only")["metrics"]
        assert metrics["NumRet(judged_only=True)"]["mean"] == 4
        assert list(metrics) == ["NumRet(judged_only=True)", "AP(judged_only=True)"]

    @pytest.mark.parametrize("zipped", [False, True])
    @pytest.mark.parametrize("piped", ["run", "qrels"])
    def test_standard_input_stands_for_either_file(
        self, run: Command, monkeypatch: pytest.MonkeyPatch, piped: str, zipped: bool
    ) -> None:
        content = (self.RUN if piped == "run" else self.QRELS).encode()
        raw = io.BytesIO(gzip.compress(content) if zipped else content)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(raw))
        files = {"run": "run", "qrels": "qrels", piped: "-"}
        options = ("--metrics", "map", "--format", "trec")
        assert run("score run", files["run"], "--qrels", files["qrels"], *options) == 0
        assert run.out.split() == ["map", "all", f"{((1 / 4 + 2 / 5) / 2 + 1) / 3:.4f}"]

    def test_standard_input_cannot_be_both(self, run: Command) -> None:
        assert run("score run - --qrels -") == 2
        assert "the run and the judgements from standard input" in run.err

    def test_comments_are_told(self, run: Command) -> None:
        assert run("score run run --qrels qrels") == 0
        assert "comment lines, not read: 1 (run:3)" in " ".join(run.out.split())

    @pytest.mark.parametrize("option", ["--rel", "--depth"])
    def test_numbers_begin_with_1(self, run: Command, option: str) -> None:
        assert f"{option} 0" in run.refused(f"score run run --qrels qrels {option} 0")


class TestAuditOfATable:
    """``score audit --table``."""

    def test_what_the_queries_could_show_is_told(self, here: Path, run: Command) -> None:
        (here / "paper.csv").write_text(
            "system,metric,mean,n\na,nDCG@10,0.6,300\nb,NDCG@10,0.8,300\nc,nDCG@10,0.605,300\n",
            encoding="utf-8",
        )
        assert run("score audit --table paper.csv") == 0
        assert "2 of 3 differences could be shown." in run.out
        pairs = run.json("score audit --table paper.csv --sd 5")["pairs"]
        assert [pair["possible"] for pair in pairs] == [False] * 3
        assert pairs[0]["sd"] == 5
        assert run("score audit --table paper.csv --scorer x:y") == 2
        assert run("score audit --table paper.csv --qrels q") == 2
        assert "--table with runs, judgements or another audit" in run.err
        assert "--k with --table" in run.refused("score audit --table paper.csv --k 5")
        assert "--sd without --table" in run.refused("score audit a.run --qrels q --sd 0.3")


@pytest.mark.usefixtures("project")
class TestAuditOfAScorer:
    """``score audit --scorer``."""

    @pytest.mark.slow
    def test_what_is_wrong_with_it_is_told(self, here: Path, run: Command) -> None:
        (here / "mine.py").write_text(
            "def rr(run, qrels):\n"
            "    print('hello')\n"
            "    best = {q: max(of, key=of.get) for q, of in run.items() if of}\n"
            "    hits = [qrels.get(q, {}).get(d, 0) > 0 for q, d in best.items()]\n"
            "    return sum(hits) / len(run)\n",
            encoding="utf-8",
        )
        assert run("score audit --scorer mine.py:rr") == 0
        assert "mine.py:rr gets" in run.out
        assert "hello" not in run.out
        assert "rewards ties: with all scores equal it gives 1.0000 or 0.0000" in " ".join(
            run.out.split()
        )
        document = run.json("score audit --scorer mine.py:rr")
        assert {one["verdict"] for one in document["cheats"]} == {"right", "wrong"}

    def test_it_stands_alone(self, run: Command) -> None:
        assert run("score audit run.trec --scorer mine.py:rr") == 2
        assert "--scorer with runs, judgements or another audit" in run.err
        assert "--sd with --scorer" in run.refused("score audit --scorer mine.py:rr --sd 0.3")

    @pytest.mark.parametrize(
        ("words", "lacking"),
        [
            ((), "no runs and no judgements"),
            (("run.trec",), "no judgements"),
            (("--qrels", "qrels.txt"), "no runs"),
        ],
    )
    def test_without_it_runs_and_judgements_are_needed(
        self, run: Command, words: tuple[str, ...], lacking: str
    ) -> None:
        assert lacking in run.refused("score audit", *words)


@pytest.mark.usefixtures("project")
class TestEvaluate:
    @pytest.mark.parametrize("zipped", [False, True])
    @pytest.mark.parametrize("name", [*RUN_FILES, *TRUTH_FILES])
    def test_every_format_of_runs_and_judgements(
        self, project: Path, run: Command, name: str, zipped: bool
    ) -> None:
        file = name + ".gz" if zipped else name
        content = (RUN_FILES | TRUTH_FILES)[name].encode()
        save(project / file, gzip.compress(content) if zipped else content)
        files = ("run.trec", file) if name in TRUTH_FILES else (file, "qrels.txt")
        document = run.json("score run", files[0], "--qrels", files[1], *AVERAGE_PRECISION)
        assert run.err == ""
        assert document["metrics"]["AP"]["mean"] == pytest.approx(MEAN)
        assert document["per_query"] == {q: {"AP": pytest.approx(ap)} for q, ap in AP.items()}

    @pytest.mark.slow
    def test_the_folder_of_a_run_and_a_dataset(self, run: Command) -> None:
        measured = run.json(
            "bench --retriever own.yaml --dataset data --rounds 1 --warm-up 0 --out saved --k 3"
        )["metrics"]
        names = list(measured)
        document = run.json("score run --run saved --dataset data --metrics", *names)
        assert document["tie_rule"] == "as saved"
        assert document["metrics"] == measured
        tag = Path("saved/run.trec").read_text("utf-8").split()[-1]
        run("score run saved --dataset data --format trec")
        assert run.err == ""
        assert run.out.split()[:3] == ["runid", "all", tag]

    def test_the_table_shows_what_the_figures_mean(self, run: Command) -> None:
        assert run("score run --run run.trec --qrels qrels.txt --per-query") == 0
        for text in (
            "run.trec against qrels.txt",
            "nDCG@10",
            "Judged@10",
            "Convention trec: NIST trec_eval",
            "Ties: score in single precision desc, id desc.",
            "Queries: 4 evaluated, 1 missing from the run, 1 unknown but in the run.",
            "95 % intervals (Gaffke's bound and Clopper-Pearson)",
            "! 1 query to score not in the run",
            "! 1 query of the run unknown, not scored: other",
            "Worst queries by nDCG@10",
            "질문",
        ):
            assert text in run.unwrapped
        assert run.out.index(" q3 ") < run.out.index(" q1 ")

    @pytest.mark.parametrize("name", CONVENTIONS)
    def test_every_convention(self, run: Command, name: str) -> None:
        arguments = f"score run --run run.trec --qrels qrels.txt --convention {name}"
        assert run(arguments) == 0
        assert f"Convention {name}: {CONVENTIONS[name].source}." in run.unwrapped
        document = run.json(arguments)
        assert document["convention"] == name
        left_out = CONVENTIONS[name].missing == "left out"
        assert document["counts"]["evaluated"] == (3 if left_out else 4)
        assert document["counts"]["missing"] == 1
        first = next(iter(document["metrics"]))
        expected = {
            "trec": "nDCG@10",
            "scienceqa": "AP(norm=hits)@3",
            "mala2025": "AP(norm=hits)@3",
            "piaf": "Success",
            "tutorial": "R@10",
            "blog": "RR@10",
        }
        assert first == expected[name]

    def test_unanswerable_queries_are_reported_apart(self, project: Path, run: Command) -> None:
        unanswerable(project)
        arguments = "score run --run run.trec --dataset data"
        assert run(arguments) == 0
        assert "Of 6 unanswerable queries" in run.unwrapped
        assert run(arguments, "-v") == 0
        assert "Abstention" in run.out
        assert "Queries: 8 evaluated, 1 missing from the run, 6 unanswerable," in run.unwrapped
        document = run.json(arguments)
        assert document["counts"] == {
            **{"evaluated": 8, "missing": 1, "unanswerable": 6},
            **{"unjudged_queries": 0, "unknown_queries": 1},
        }
        assert document["abstention"]["run"]["n"] == 14
        assert document["abstention"]["threshold"]["n_dev"] == 7

    def test_the_threshold_is_chosen_on_the_queries_of_a_file(
        self, project: Path, run: Command
    ) -> None:
        unanswerable(project)
        (project / "dev.txt").write_text("\ufeffu1\r\nu2\r\n\r\na0 \na1\n", encoding="utf-8")
        arguments = "score run --run run.trec --dataset data --dev dev.txt"
        threshold = run.json(arguments)["abstention"]["threshold"]
        assert (threshold["n_dev"], threshold["n_rest"]) == (4, 10)
        assert threshold["threshold"] == 1.5

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ("u1\nnobody\na1\n", "1 dev query that this run does not know: nobody"),
            ("\n \n", "no ids; accepted: ids of queries, one a line"),
            ("u1\nu2\n", "0 to choose a threshold on and 8 to report it on"),
            ("q1\n", "leave --dev out"),  # every query has an answer
        ],
    )
    def test_queries_that_cannot_be_chosen_on(
        self, project: Path, run: Command, content: str, says: str
    ) -> None:
        if "leave" not in says:
            unanswerable(project)
        save(project / "dev.txt", content)
        code = run("score run --run run.trec --dataset data --dev dev.txt")
        assert says in run.unwrapped + run.err
        assert code == (0 if says in run.unwrapped else 2)
        assert code == 0 or run.out == ""

    def test_a_split_of_the_dataset(self, project: Path, run: Command) -> None:
        rows = "query-id\tcorpus-id\tscore\nq2\td1\t1\n"
        (project / "data/qrels/dev.tsv").write_text(rows, encoding="utf-8")
        document = run.json("score run --run run.trec --dataset data --split dev --metrics RR")
        assert document["metrics"]["RR"]["mean"] == 0.5
        assert document["counts"]["unjudged_queries"] == 3

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--run", "nope", "--qrels", "qrels.txt"), "nope: no such file"),
            (("--run", "run.trec", "--qrels", "nope"), "nope: no such file"),
            (("--run", "run.trec"), "one of the arguments --qrels --dataset is required"),
            (("--run", "run.trec", "--qrels", "q", "--dataset", "d"), "not allowed with argument"),
            (("--qrels", "qrels.txt"), "no run\n  accepted: TREC text, BEIR table, JSON"),
            (("--run", "run.trec", "--dataset", "nope"), "nope"),
            (("--run", "data", "--qrels", "qrels.txt"), "a folder without summary.json"),
            (
                ("--run", "run.trec", "--qrels", "qrels.txt", "--convention", "mala"),
                "did you mean mala2025?",
            ),
            (
                (*("--run", "nope", "--qrels", "nope", "--convention", "scienceqa"),
                 *("--metrics", "nDCG@3")),
                "metric 'nDCG@3' under the convention scienceqa",
            ),
            (
                (*("--run", "run.trec", "--qrels", "qrels.txt", "--convention", "scienceqa"),
                 *("--metrics", "AP@10")),
                "accepted: AP@3",
            ),
            (("--run", "run.trec", "--qrels", "qrels.txt", "--metrics", "nDGC@3"), "nDCG"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_scored_exits_with_2_and_an_empty_stdout(
        self, run: Command, arguments: tuple[str, ...], says: str
    ) -> None:
        assert says in run.refused("score run", *arguments)

    def test_nothing_to_judge_is_neither_right_nor_wrong(self, project: Path, run: Command) -> None:
        (project / "alien.trec").write_text("zz Q0 d1 1 1 t\n", encoding="utf-8")
        arguments = "score run --run alien.trec --qrels qrels.txt"
        document = run.json(f"{arguments} --convention mala2025", code=4)
        assert document["metrics"]["AP(norm=hits)@3"]["mean"] is None
        assert "nothing could be judged" in run.err
        assert run(arguments) == 4  # zeros that say nothing of the run


@pytest.mark.usefixtures("systems")
class TestAudit:
    @pytest.fixture
    def systems(self, project: Path) -> Path:
        """late finds both documents of q1, but first the wrong one; early only one, at once."""
        runs = {"late": ["d2", "d1", "d3"], "early": ["d1", "d2"]}
        for name, found in runs.items():
            answers = {"q1": found, "q2": ["d2"], "q3": ["d3"], "질문": ["문서"]}
            (project / f"{name}.json").write_text(json.dumps(answers), encoding="utf-8")
        return project

    def test_one_table_and_the_reason_of_each_change(self, run: Command) -> None:
        assert run("score audit late.json early.json --qrels qrels.txt") == 0
        assert run.out.count("The same rankings under each convention") == 1
        starts = [line.split()[:2] for line in run.out.splitlines()]
        assert ["AP(norm=hits)@3", "scienceqa"] in starts
        # (1/2 + 2/3) / 2 and 1/2 divided by R; 7/12 and 1 divided by hits; of four queries.
        assert (
            "AP: late is 0.0208 ahead of early under trec but 0.1042 behind under scienceqa and "
            "mala2025, because AP is divided by the hits found, not by all relevant ones (only "
            "query q1 matters)."
        ) in run.unwrapped
        assert run.err == ""

    def test_json(self, run: Command) -> None:
        document = run.json(
            "score audit late.json early.json --dataset data --conventions mala2025 trec --k 5"
        )
        assert (document["systems"], document["base"]) == (["late", "early"], "mala2025")
        assert [row["metric"] for row in document["rows"]][:3] == [
            *("AP(norm=hits)@3", "AP@5", "nDCG(ideal=returned)@3"),
        ]
        first = document["turns"][0]
        assert (first["a"], first["b"], first["convention"]) == ("early", "late", "trec")
        assert first["causes"][0]["rules"] == [
            {"name": "definition", "mala2025": "AP(norm=hits)", "trec": "AP"}
        ]

    def test_one_system(self, run: Command) -> None:
        assert run("score audit late.json --qrels qrels.txt") == 0
        assert "because" not in run.out
        assert "best of its row" not in run.out

    @pytest.mark.slow
    def test_twenty_seven_systems_in_eighty_columns(
        self, run: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        runs = ["late.json", "early.json"] * 13 + ["run.trec"]
        assert run("score audit", *runs, "--qrels", "qrels.txt") == 0
        assert run.out.count("The same rankings under each convention") == 1
        heads = [line.split()[2:] for line in run.out.splitlines() if "  convention  " in line]
        assert sorted(map(len, heads))[-1] < 27 == len({name for head in heads for name in head})
        rows = [line for line in run.out.splitlines() if line.startswith(" ")]
        assert max(map(len, rows)) <= 80

    def test_nothing_that_any_convention_can_judge(self, systems: Path, run: Command) -> None:
        (systems / "alien.json").write_text('{"zz": ["d1"]}', encoding="utf-8")
        arguments = "score audit alien.json --qrels qrels.txt"
        assert run(f"{arguments} --conventions mala2025 scienceqa") == 4
        assert "nothing could be judged under any convention" in run.err
        assert "alien: 4 of 4 judged queries not in the run" in run.out
        assert run(arguments) == 0

    def test_queries_without_relevant_documents(self, systems: Path, run: Command) -> None:
        with (systems / "qrels.txt").open("a", encoding="utf-8") as file:
            file.write("q4 0 d1 0\n")
        assert run("score audit late.json early.json --qrels qrels.txt") == 0
        said = "! late, early: not scored under piaf: 1 query without a relevant document"
        assert said in run.unwrapped

    def test_queries_of_a_dataset_that_nothing_answers(self, project: Path, run: Command) -> None:
        unanswerable(project)
        rows = [
            row for row in run.json("score audit run.trec --dataset data")["rows"] if row["metric"]
        ]
        n = {row["convention"]: row["n"]["run"] for row in rows}
        # Eight have an answer, q3 is not in the run; u0 of the other six is not, either.
        assert n == {
            **dict.fromkeys(("trec", "piaf"), 8),
            **dict.fromkeys(("tutorial", "blog"), 14),
            **dict.fromkeys(("scienceqa", "mala2025"), 7 + 5),
        }

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("late.json", "--k", "0"), "k 0"),
            (("late.json", "--k", "x"), "invalid int value"),
            (("late.json", "nope"), "nope: no such file"),
            (("late.json", "--conventions", "trac"), "did you mean trec or tutorial?"),
            ((), "no runs"),
        ],
    )
    def test_wrong_input_exits_with_2(
        self, run: Command, arguments: tuple[str, ...], says: str
    ) -> None:
        assert says in run.refused("score audit", *arguments, "--qrels", "qrels.txt")

    def test_judgements_are_needed(self, run: Command) -> None:
        assert "--qrels FILE or --dataset NAME" in run.refused("score audit late.json")


PASSAGE = "Seoul is the capital of Korea. 서울은 수도이다."
OTHER = "Nothing is said here."


@pytest.fixture
def gold(project: Path) -> Path:
    def question(name: str, *answers: tuple[str, int]) -> dict[str, Any]:
        golds = [{"text": text, "answer_start": start} for text, start in answers]
        return {
            "id": name, "question": "?", "answers": golds, "is_impossible": not golds
        }  # fmt: skip

    questions = [question("capital", ("Seoul", 0)), question("수도", ("서울", 31))]
    paragraphs = [
        {"context": PASSAGE, "qas": questions},
        {"context": OTHER, "qas": [question("none")]},
    ]
    document = {"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}
    texts = {"capital": "the Seoul", "수도": "서울은", "none": ""}
    here = paragraph_id(PASSAGE)
    spans: list[dict[str, Any]] = [
        {"id": "capital", "answers": [
            {"text": "capital", "document": here, "start": 13, "end": 20, "score": 2},
            {"text": "Seoul", "document": here, "start": 0, "end": 5, "score": 1},
        ]},
        {"id": "수도", "answers": [
            {"text": "서울은", "document": here, "start": 31, "end": 34, "score": 1},
        ]},
        {"id": "none", "answers": [{"text": ""}]},
    ]  # fmt: skip
    retrieved = {"capital": [here], "수도": [paragraph_id(OTHER)]}
    jsons = {"gold.json": document, "texts.json": texts, "reader_run.json": retrieved}
    files = {name: json.dumps(content) for name, content in jsons.items()}
    return save_all(project, files | {"spans.jsonl": json_lines(spans)})


@pytest.mark.usefixtures("gold")
class TestReader:
    def test_texts(self, run: Command) -> None:
        arguments = "score reader --gold gold.json --predictions texts.json"
        document = run.json(arguments)
        assert document["metrics"]["exact"]["mean"] == pytest.approx(200 / 3)
        char_f1 = document["metrics"]["char_f1"]["mean"]
        assert char_f1 == pytest.approx(100 * (2 * 5 / (8 + 5) + 2 * 2 / (3 + 2) + 1) / 3)
        assert "reader_top1_accuracy" not in document["metrics"]
        assert document["warnings"] == []
        assert run(arguments) == 0
        assert "texts.json: texts of first answers on 3 questions, in percent" in run.out
        assert "no span metrics: the answers have no offsets" in run.out

    def test_spans(self, run: Command) -> None:
        arguments = "score reader --gold gold.json --predictions spans.jsonl"
        document = run.json(f"{arguments} --per-question")
        means = {name: entry["mean"] for name, entry in document["metrics"].items()}
        assert means["exact"] == pytest.approx(100 / 3)
        assert means["reader_top1_accuracy"] == pytest.approx(2 / 3)
        assert means["reader_topk_accuracy"] == 1.0
        assert means["reader_topk_em_has_answer"] == 0.5
        assert means["reader_top1_no_answer_accuracy"] == 1.0
        assert set(document["per_question"]) == {"capital", "수도", "none"}
        assert run(f"{arguments} --format markdown") == 0
        assert "**spans.jsonl: answer spans on 3 questions, k = 2, fractions from 0 to 1**" in (
            run.out
        )

    def test_questions_whose_document_was_retrieved(self, run: Command) -> None:
        arguments = (
            "score reader --gold gold.json --predictions spans.jsonl --denominator "
            "retrieved --run reader_run.json"
        )
        document = run.json(arguments)
        assert document["denominator"] == "retrieved"
        assert document["metrics"]["reader_top1_accuracy"]["n"] == 2
        assert document["metrics"]["reader_top1_accuracy"]["mean"] == 0.5
        assert run(arguments) == 0
        assert "Denominator retrieved" in run.out
        assert "1 not retrieved" in run.out

    def test_warnings_are_shown(self, gold: Path, run: Command) -> None:
        (gold / "few.json").write_text('{"capital": "Seoul", "zz": "x"}', encoding="utf-8")
        arguments = "score reader --gold gold.json --predictions few.json"
        assert run(arguments) == 0
        assert "\n  !  " in run.out
        assert len(run.json(arguments)["warnings"]) == 2

    def test_no_question_that_counts(self, gold: Path, run: Command) -> None:
        document = json.loads((gold / "gold.json").read_text(encoding="utf-8"))
        del document["data"][0]["paragraphs"][1]
        (gold / "gold.json").write_text(json.dumps(document), encoding="utf-8")
        (gold / "nothing.json").write_text('{"capital": ["x"]}', encoding="utf-8")
        code = run(
            "score reader --gold gold.json --predictions spans.jsonl "
            "--denominator retrieved --run nothing.json"
        )
        assert code == 4
        assert "not defined: 0 questions" in run.out
        assert "nothing could be judged" in run.err

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--predictions", "texts.json"), "required: --gold"),
            (("--gold", "nope", "--predictions", "texts.json"), "nope: no such file"),
            (("--gold", "gold.json", "--predictions", "nope"), "nope: no such file"),
            (("--gold", "texts.json", "--predictions", "texts.json"), "texts.json"),
            (
                (*("--gold", "gold.json", "--predictions", "texts.json"),
                 *("--denominator", "retrieved")),
                "--denominator retrieved without --run",
            ),
            (
                (*("--gold", "gold.json", "--predictions", "texts.json"),
                 *("--run", "reader_run.json")),
                "--denominator all with --run",
            ),
            (
                ("--gold", "gold.json", "--predictions", "texts.json", "--denominator", "some"),
                "invalid choice",
            ),
        ],
    )  # fmt: skip
    def test_wrong_input_exits_with_2(
        self, run: Command, arguments: tuple[str, ...], says: str
    ) -> None:
        assert says in run.refused("score reader", *arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "run", "--run", "run.trec", "--dataset", "data"),
        ("score", "audit", "run.trec", "--qrels", "qrels.txt"),
        ("score", "reader", "--gold", "gold.json", "--predictions", "texts.json"),
    ],
)
@pytest.mark.usefixtures("gold")
def test_the_work_is_done_without_what_only_retrievers_need(arguments: tuple[str, ...]) -> None:
    code = f"from retrieval_bench.cli import main\nassert main({list(arguments)!r}) == 0"
    heavy = ("torch", "faiss", "langchain", "langchain_core", "numba")
    assert loads(code, "numpy", "retrieval_bench_retrievers", *heavy) == {"numpy"}


def test_map_of_whole_lists_is_told_apart_from_that_of_bench_and_compare(
    here: Path, run: Command
) -> None:
    (here / "q").write_text("q1 0 a 1\n")
    (here / "r").write_text("q1 Q0 b 1 2.0 x\nq1 Q0 a 2 1.0 x\n")
    assert run("score run r --qrels q") == 0
    told = "Of whole lists: MAP, MRR. `bench` and `compare` cut them at k: MAP@10, MRR@10."
    assert told in run.unwrapped
    assert run("score run r --qrels q --metrics AP@10 Bpref nDCG") == 0
    assert "Of whole lists" not in run.out


def test_the_tail_of_a_recall_is_told_beside_its_mean(project: Path, run: Command) -> None:
    exact = "".join(f"q{at} 0 d{doc} 1\n" for at in range(20) for doc in range(10))
    found = "".join(
        f"q{at} Q0 d{doc} {doc + 1} {9 - doc} x\n" for at in range(20) for doc in range(9 - at % 2)
    )
    save_all(project, {"exact-10.qrels": exact, "engine.run": found})
    line = "score run engine.run --qrels exact-10.qrels"
    document = run.json(f"{line} --metrics nDCG@10 R@10 --tail 0.9")
    (of,) = document["tails"].values()
    assert of["mean"] == document["metrics"]["R@10"]["mean"] == pytest.approx(0.85)
    assert of["tail"] == 0.5
    assert of["tail_ci95"] == pytest.approx([0.2720, 0.7280], abs=1e-4)
    assert run(f"{line} --metrics R@10 --tail 0.9") == 0
    assert "queries with recall@10 0.9 0.5000 [0.272, 0.728]" in run.unwrapped
    save_all(project, {"other.qrels": "x 0 d 1\n"})
    assert run("score run engine.run --qrels other.qrels --metrics R@10 --tail 0.9") == 4
    assert "queries with" not in run.unwrapped
    assert "accepted: --tail with a recall" in run.refused(f"{line} --metrics nDCG@10 --tail 0.9")
    assert "at most 1" in run.refused(f"{line} --metrics R@10 --tail 90")
    assert "--format trec" in run.refused(f"{line} --metrics R@10 --tail 0.9 --format trec")
