"""Fixtures of all tests."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import optional
from tests.builders.quiet.sitecustomize import quieten

# Other tools compile for minutes what they then run for seconds; their figures are the same.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")

# A shell lets what it starts in the background ignore Ctrl-C, and so would every process of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("gate", max_examples=25, deadline=None)  # of `make check`
settings.register_profile("all", max_examples=50, deadline=None)
settings.load_profile("all")

ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--skipped-before",
        metavar="FILE",
        help=f"run only what an earlier run skipped, by its .pytest_cache/v/{optional.SKIPPED}",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Of a run of what was skipped, files in which nothing was skipped are not even imported."""
    if (earlier := config.getoption("--skipped-before")) and collection_path.suffix == ".py":
        files = {config.rootpath / name.partition("::")[0] for name in _skipped(Path(earlier))}
        return collection_path not in files or None
    return None


@cache
def _skipped(earlier: Path) -> frozenset[str]:
    return frozenset(json.loads(earlier.read_text(encoding="utf-8")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests whose packages are missing; let tests that encode collections, install or simulate
    take longer before they are ended. Files that take long come first, so that of several processes
    none is left alone with one at the end."""
    if earlier := config.getoption("--skipped-before"):
        skipped = _skipped(Path(earlier))
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in skipped])
        items[:] = [item for item in items if item.nodeid in skipped]
    for item in items:
        packages = [name for marker in item.iter_markers("needs") for name in marker.args]
        packages += optional.DENSE if item.get_closest_marker("dense") else ()
        if reason := optional.missing(packages):
            item.add_marker(pytest.mark.skip(reason=reason))
        if any(item.get_closest_marker(name) for name in ("realdata", "long", "install")):
            item.add_marker(pytest.mark.timeout(2400))
    # About sixty fast tests take as long as a slow one.
    weights = Counter[Path]()
    for item in items:
        slow = any(item.get_closest_marker(name) for name in ("slow", "dense", "long", "realdata"))
        weights[item.path] += 60 if slow else 1
    items.sort(key=lambda item: -weights[item.path])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """End with what was skipped, and what would add it; keep the names for `--skipped-before`."""
    skipped = [
        (report.nodeid, report.longrepr[2].removeprefix("Skipped: "))
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    ]
    if cache := getattr(terminalreporter.config, "cache", None):
        cache.set(optional.SKIPPED, sorted(name for name, _ in skipped))
    reasons = [reason for _, reason in skipped]
    for line in optional.summary(reasons):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def bench_data() -> Path:
    """The folder of real data; tests that need it are skipped, with the reason, where it is not."""
    given = os.environ.get("BENCH_DATA")
    if not given:
        pytest.skip("BENCH_DATA is not set: no real data on this machine")
    folder = (ROOT / given).resolve()
    if not folder.is_dir():
        pytest.fail(f"BENCH_DATA names {given}, which is no folder")  # not a reason to be green
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def hardly_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured without a word about its warm-up has none, which is seconds of computing in
    each such test: for tests that do not look at times."""
    from retrieval_bench.measure.protocol import Protocol

    made = Protocol.__init__

    def make(protocol: Protocol, *given: Any, **named: Any) -> None:
        made(protocol, *given, **{"warm_up_s": 0.0} | named)

    monkeypatch.setattr(Protocol, "__init__", make)
    if optional.installed("retrieval_bench_tune"):
        monkeypatch.setattr("retrieval_bench_tune.price.WARM_UP_S", 0.0)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits before a failed call is made again: for tests that look at what comes of it."""
    from retrieval_bench.core.calls import failures

    monkeypatch.setattr(failures, "_FIRST_WAIT_S", 0.0)


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is as wide as in a pipe, however wide the terminal of the tests is: readline, which a
    worker loads, tells its width to all."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def _quiet_machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No warning depends on what the machine is and does; tests of such warnings make them up."""
    if request.path.stem not in ("test_disturbances", "test_observers"):
        quieten(monkeypatch.setattr)
    if optional.installed("retrieval_bench_doctor"):
        monkeypatch.setattr("retrieval_bench_doctor.doctor._WATCHED_S", 0.0)


@pytest.fixture(autouse=True, scope="module")
def _only_new_garbage(request: pytest.FixtureRequest) -> Iterator[None]:
    """A measured run looks for garbage several times: not among the objects of all test modules,
    and it need not count them to know that they are frozen."""
    gc.collect()
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        if request.path.stem != "test_runner":
            patch.setattr("retrieval_bench.measure.runner._frozen", lambda: True)
        yield


@pytest.fixture(autouse=True)
def _own_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test imports from its own folder is gone for the next one, which may have a module of
    the same name."""
    base = str(tmp_path_factory.getbasetemp())
    # Fixtures of wider scope were made before, and may have left their folders.
    path = [entry for entry in sys.path if not entry.startswith(base)]
    sys.path[:], before = path, set(sys.modules)
    yield
    for name in sys.modules.keys() - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(base):
            del sys.modules[name]
    sys.path[:] = path


@pytest.fixture(autouse=True)
def _own_cache(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No test writes to the user's cache, but those on real data, whose vectors take minutes."""
    if request.node.get_closest_marker("realdata") is None:
        base = tmp_path_factory.getbasetemp() / "cache"
        monkeypatch.setenv("RETRIEVAL_BENCH_CACHE", str(base))


@pytest.fixture(autouse=True)
def _one_encodes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Of tests that encode real collections one runs at a time: side by side they would encode the
    same texts twice, on half of the cores each; one after the other finds the vectors kept."""
    if not all(request.node.get_closest_marker(name) for name in ("realdata", "dense")):
        yield
        return
    import fcntl

    # The folder that is shared by the processes that tests run in.
    with (tmp_path_factory.getbasetemp().parent / "encoding.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
