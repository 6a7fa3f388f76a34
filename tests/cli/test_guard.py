"""The console command: no exit code lies, whatever a retriever does to its process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.cli.process import _Watch, guarded
from tests.builders.files import save
from tests.builders.marks import also

BAD = """
import asyncio, os, signal, sys, threading, time
from retrieval_bench import Retriever


class PanicError(BaseException):
    pass


def act(how):
    secret = os.environ.get("MY_API_KEY", "")
    if how == "os_exit":
        os._exit(0)
    if how == "sys_exit":
        raise SystemExit(0)
    if how == "cancelled":
        raise asyncio.CancelledError(f"token {secret}")
    if how == "panic":
        raise PanicError(f"token {secret}")
    if how == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "fork":
        os.fork()
    if how == "chdir":
        os.chdir("/")
    if how == "bytes":
        os.system(r"printf '\\000\\001'; printf '\\000\\001' >&2")
        os._exit(9)
    if how == "value":
        raise ValueError("no answer")
    if how == "long":
        raise RuntimeError("x" * 1975 + secret + "y" * 100)
    if how == "logged":
        import concurrent.futures
        def fail(_):
            raise RuntimeError(f"token {secret}")
        future = concurrent.futures.Future()
        future.add_done_callback(fail)
        future.set_result(1)
    if how == "wait":
        print("waiting", file=sys.stderr, flush=True)
        time.sleep(60)
    if how == "stubborn":
        print("waiting", file=sys.stderr, flush=True)
        while True:
            try:
                time.sleep(60)
            except BaseException:
                pass
    if how == "thread":
        def fail():
            raise RuntimeError(f"token {secret}")
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()


class Bad(Retriever):
    def __init__(self, how="", where="search"):
        self.how, self.where = how, where
        self.at("init")

    def at(self, where):
        if where == self.where:
            act(self.how)

    def index(self, documents):
        self.at("index")
        self.ids = sorted(document.id for document in documents)

    def search(self, query, k):
        self.at("search")
        return [(doc_id, 1.0) for doc_id in self.ids][:k]

    def close(self):
        self.at("close")

    def describe(self):
        return 5 if self.how == "five" else {}


def rule(turns):
    os.chdir("/")
    return turns[-1]["content"]


def data(split):
    from retrieval_bench import load_dataset

    found = load_dataset("./data", split)
    os.chdir("/")
    return found
"""

QUICK = ("--dataset", "data", "--profile", "smoke", "--warm-up", "0", "--timeout", "5",
         "--no-pictures")  # fmt: skip
NOT_SO_LONG = 60
BUSY = re.compile(r"retrieval-bench: (launch 1 of 1: )?(index|search)ing.* Bad \.\.\.\n")


@pytest.fixture
def bad(project: Path) -> Path:
    return save(project / "bad.py", BAD).parent


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "retrieval_bench", *arguments]


def wait_for(process: subprocess.Popen[str]) -> None:
    """Read what it says until its retriever waits: before that only what it is busy with."""
    assert process.stderr is not None
    while (line := process.stderr.readline()) != "waiting\n":
        assert BUSY.fullmatch(line)


def started(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def ended(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=NOT_SO_LONG,
        env=os.environ | environment,
    )


def bench(how: str, where: str = "search", *more: str, **env: str) -> Any:
    retriever = ("--retriever", "bad.py:Bad", "--set", f"how={how}", f"where={where}")
    return ended("bench", *retriever, *QUICK, *more, **env)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "where"),
    [
        *(("os_exit", "init"), ("segv", "search"), ("os_exit", "close")),
        *also(("os_exit", "index"), ("os_exit", "search")),
        *also(("segv", "init"), ("segv", "index"), ("segv", "close")),
    ],
)
def test_a_process_that_was_ended_is_no_success(bad: Path, how: str, where: str) -> None:
    done = bench(how, where)
    assert done.returncode == 4
    told = " ".join(done.stderr.split())
    assert "ended before its work was done" in told
    assert ("exit code 0" if how == "os_exit" else "killed by SIGSEGV") in told
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("compare", "--retrievers", "bad.py:Bad", "bm25"),
        ("regress", "--retriever", "bad.py:Bad"),
        *also(
            (("baseline", "--retriever", "bad.py:Bad"),),
            (("lab", "submit", "--retriever", "bad.py:Bad"),),
        ),
    ],
    ids=lambda words: words[0],
)
def test_no_command_passes_where_a_retriever_ends_the_process(
    bad: Path, words: tuple[str, ...]
) -> None:
    source = bad / "bad.py"
    source.write_text(BAD.replace('how=""', 'how="os_exit"').replace('"search"', '"init"', 1))
    done = ended(*words, "--dataset", "data")
    assert done.returncode == 4, done.stderr
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["panic", "fork", *also("sys_exit", "cancelled")])
def test_what_close_raises_costs_no_result(bad: Path, how: str) -> None:
    done = bench(how, "close", "--format", "json", "--out", "kept")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run_id"]
    assert (bad / "kept" / "summary.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "where"),
    [
        *(("cancelled", "init"), ("panic", "index"), ("thread", "index"), ("panic", "close")),
        *also(("panic", "init"), ("thread", "init"), ("cancelled", "index")),
        *also(("cancelled", "close"), ("thread", "close")),
    ],
)
def test_no_traceback_shows_a_secret(bad: Path, how: str, where: str) -> None:
    secret = "s3cret-and-long-enough"
    done = bench(how, where, "--debug", MY_API_KEY=secret)
    assert done.returncode == (0 if how == "thread" or where == "close" else 2)
    assert secret not in done.stdout + done.stderr
    assert "${MY_API_KEY}" in done.stderr


@pytest.mark.slow
def test_a_module_that_raises_no_exception_when_imported_is_bad_input(bad: Path) -> None:
    (bad / "broken.py").write_text("import asyncio\nraise asyncio.CancelledError('gone')\n")
    done = ended("bench", "--retriever", "broken.py:X", *QUICK)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("where", ["init", "search", *also("index", "close")])
def test_a_retriever_that_changes_the_folder_takes_no_run_with_it(bad: Path, where: str) -> None:
    done = bench("chdir", where)
    assert done.returncode == 0, done.stderr
    assert len(list((bad / "results" / "runs").glob("*/summary.json"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("whole_group", [True, *also(False)])
def test_ctrl_c_counts_once(bad: Path, *, whole_group: bool) -> None:
    words = ("--retriever", "bad.py:Bad", "--set", "how=wait", *QUICK[:-3], "--no-pictures")
    process = started("bench", *words, "--timeout", "60", start_new_session=True)
    wait_for(process)
    if whole_group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=NOT_SO_LONG)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_the_third_ctrl_c_kills_what_answers_none(bad: Path) -> None:
    words = ("--retriever", "bad.py:Bad", "--set", "how=stubborn", *QUICK)
    process = started("bench", *words)
    wait_for(process)
    sent = 0
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        sent += 1
        with suppress(subprocess.TimeoutExpired):  # who was not awake counted two for one
            process.wait(0.3 if sent % 3 else 10)
    _, err = process.communicate(timeout=NOT_SO_LONG)
    assert sent >= 3
    assert process.returncode == 130
    assert "interrupted" in err


def test_it_is_the_third_that_kills() -> None:
    watch = _Watch(0, 0, 0)
    for at in (1, 2, 3):
        watch._on_told(bytes([signal.SIGINT]))
        assert (watch.kill_at is not None) is (at == 3)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, *also(signal.SIGTERM)])
def test_nothing_goes_on_when_the_command_is_ended(bad: Path, number: signal.Signals) -> None:
    words = ("--retriever", "bad.py:Bad", "--set", "how=wait", *QUICK[:-3], "--no-pictures")
    process = started("bench", *words, "--timeout", "60")
    wait_for(process)
    process.send_signal(number)
    process.communicate(timeout=NOT_SO_LONG)  # the child holds the pipes, too
    assert process.returncode == -number


@pytest.mark.slow
def test_closed_streams_are_nobodys_pipe(bad: Path) -> None:
    words = ["--retriever", "bad.py:Bad", "--set", "how=bytes", *QUICK, "--out", "kept"]
    line = " ".join(command("bench", *words)) + " >&- 2>&-"
    assert subprocess.run(["bash", "-c", line], check=False, timeout=NOT_SO_LONG).returncode == 4
    assert not (bad / "kept").exists()


@pytest.mark.slow
def test_a_measurement_in_launches_that_is_told_to_end_says_so(bad: Path) -> None:
    words = "bench bad.py:Bad --set how=wait --dataset data --launches 1 --no-pictures"
    process = started(*words.split())
    wait_for(process)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=NOT_SO_LONG)
    assert process.returncode == 128 + signal.SIGTERM
    assert BUSY.sub("", err) == ""  # which one process may say after another one waits


@pytest.mark.slow
@pytest.mark.parametrize("how", ["long", "logged"])
def test_no_part_of_a_secret_is_shown_or_kept(bad: Path, how: str) -> None:
    secret = "s3cret-and-long-enough-to-be-cut"
    done = bench(how, "search", "--out", "kept", MY_API_KEY=secret)
    kept = (bad / "kept" / "summary.json").read_text(encoding="utf-8")
    assert "s3cret" not in done.stdout + done.stderr + kept


@pytest.mark.slow
def test_the_loop_of_the_notebook_stops_at_a_failure_and_at_a_fork(bad: Path) -> None:
    words = ("bench", "--retriever", "bad.py:Bad", "--dataset", "data", "--protocol", "tutorial")
    done = ended(*words, "--set", "how=value")
    assert done.returncode == 2
    assert "a search failed with ValueError: no answer" in done.stderr
    forked = ended(*words, "--set", "how=fork")
    assert forked.returncode == 0
    assert forked.stdout.count("timed as in a tutorial") == 1


@pytest.mark.slow
def test_a_description_that_is_none_costs_no_run(bad: Path) -> None:
    done = bench("five", "nowhere", "--out", "kept")
    assert done.returncode == 0, done.stderr
    assert "describe() of Bad failed with TypeError" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("bench", "--retriever", "bm25", "--dataset", "bad:data", "--out", "kept", *QUICK[2:]),
        *also((("compare", "--retrievers", "bm25", "own.yaml", "--dataset", "bad:data",
                "science-ko-mini", *QUICK[2:]),)),
        ("lab", "submit", "--retriever", "bm25", "--messages", "bad.py:rule", "--dataset", "./data",
         "--out", "kept"),
        ("tune", "--retriever", "./bad.py:Bad", "--set", "how=chdir", "where=index", "--folds", "2",
         "--grid", "where=[index,search]", "--dataset", "./data", "--out", "kept.yaml"),
        *also((("bench", "--retriever", "bm25", "--dataset", "data", "--cold", "1", *QUICK[2:]),)),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_paths_are_those_of_the_folder_that_the_user_stands_in(
    bad: Path, words: tuple[str, ...]
) -> None:
    done = ended(*words)
    assert done.returncode == 0, done.stderr
    for name in words:
        if name.startswith("kept"):
            assert (bad / name).exists()


@pytest.mark.slow
def test_runs_that_start_at_once_in_a_fresh_folder_are_all_kept(bad: Path) -> None:
    running = [started("bench", "--retriever", "bm25", *QUICK) for _ in range(3)]
    for process in running:
        _, err = process.communicate(timeout=NOT_SO_LONG)
        assert process.returncode == 0, err
    assert len(list((bad / "results" / "runs").glob("[!.]*"))) == len(running)


def test_bad_usage_and_help_need_no_child() -> None:
    done = ended("bench", "--nonsense")
    assert done.returncode == 2
    assert ended("--help").returncode == 0


@pytest.mark.slow
def test_a_folder_that_is_gone_is_bad_input(bad: Path) -> None:
    line = f"mkdir gone; cd gone; rmdir ../gone; {sys.executable} -P -m retrieval_bench data list"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, timeout=NOT_SO_LONG
    )
    assert done.returncode == 2
    assert "the current folder is gone" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="ulimit is of POSIX")
@pytest.mark.parametrize("kilobytes", [200_000, 250_000])
def test_too_little_address_space_is_told_before_libraries_hang(kilobytes: int) -> None:
    """Torture `vm250m`: loading the numeric libraries went on for ever, after measuring."""
    line = f"ulimit -v {kilobytes}; {sys.executable} -P -m retrieval_bench data list"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, timeout=NOT_SO_LONG
    )
    assert done.returncode == 2
    assert f"a limit leaves this process {kilobytes * 1_024 // 1_000_000} MB" in done.stderr


def test_where_no_process_can_be_started_nothing_was_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("os.fork", refused)
    assert guarded(lambda: 0) == 4
    assert "no process can be started" in capsys.readouterr().err
