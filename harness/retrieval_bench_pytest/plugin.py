"""What pytest loads in every project in which this is installed: a marker, an option, a fixture.

So nothing else is imported before a test asks for the fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from retrieval_bench_pytest.measured import Retrieval

_MARKER = (
    "retrieval(retriever, dataset=..., split=..., k=..., overrides=..., policy=..., "
    "baselines=..., undecided=...): what the fixture `retrieval` measures"
)
_OPTION = "--retrieval-undecided"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what `can't tell` means to a test."""
    group = parser.getgroup("retrieval-bench")
    group.addoption(
        _OPTION,
        choices=("warn", "fail"),
        default="warn",
        help="what a test of retrieval does that can't tell (default: warn)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def retrieval(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Retrieval:
    """The retriever that the marker of the test names, measured when it is first asked about, and
    once for all tests, also under xdist."""
    from retrieval_bench_pytest.measured import Retrieval, Subject

    marker = request.node.get_closest_marker("retrieval")
    subject = Subject.of(marker and marker.args, marker and marker.kwargs)
    records = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):  # of xdist: its folder stands in the session's
        records = records.parent
    undecided = subject.undecided or request.config.getoption(_OPTION)
    folder = request.config.rootpath
    return Retrieval(subject, folder, records, fails=undecided == "fail")
