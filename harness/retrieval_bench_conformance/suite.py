"""The conformance class itself, and how to run it without pytest."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from unittest import SkipTest

from retrieval_bench.core.errors import ConfigError, check_known
from retrieval_bench_conformance.checks_index import CorpusChecks, LifeChecks
from retrieval_bench_conformance.checks_results import (
    CutChecks,
    FilterChecks,
    OddQueryChecks,
    RepeatChecks,
    ResultChecks,
)
from retrieval_bench_conformance.checks_writes import WriteChecks


class RetrieverConformance(
    ResultChecks,
    CutChecks,
    FilterChecks,
    RepeatChecks,
    OddQueryChecks,
    CorpusChecks,
    LifeChecks,
    WriteChecks,
):
    """Every promise of :class:`.Retriever` as a test; subclass it with a name that
    starts with ``Test``, and pytest runs one check per promise::

        class TestMine(RetrieverConformance):
            def make(self) -> Retriever:
                return MyRetriever()

    Instead of ``make``, ``target`` and ``params`` as in a config do, and have the parameters
    checked too. ``documents``, ``queries`` and ``filters`` may be overridden, the checks may not:
    what a retriever cannot keep stands in ``xfails`` with its reason, and fails as soon as it is
    kept.

    What ``capabilities`` changes:

    * ``external``: only checks that neither index nor need to know the corpus are run; those on
      ids and corpus size when ``documents`` is overridden.
    * ``exact`` False: two builds, two orders of the corpus and two cuts need half of their
      documents in common; ties need no order; a document is among the first five for its own text.
      One index still gives one answer: the same call twice, a batch and a loaded index stay strict.
    * ``has_scores`` False: scores are not looked at, lists are compared as they are.
    * ``filters`` True: each query is asked again with each of ``filters``.
    * ``writes`` True, and not ``external``: documents are added, replaced and deleted; each write
      may take ``patience_s`` to show. What is external is never written to.
    * ``score_tolerance``: how far apart, relative to the largest score of both rankings, scores
      may be that should be equal, and documents that may trade places.

    One instance over the corpus serves all checks that only read; it is closed at the end, while
    the others come and go beside it.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._instances = {}
        cls._answers = {}
        where = f"{cls.__module__}.{cls.__qualname__}"
        for name, given in cls.xfails.items():
            what, fix = f"unknown check {name!r} in xfails", "correct the name"
            check_known(name, CHECKS, what, where=where, fix=fix)
            if not isinstance(given, str) or not given.strip():
                raise ConfigError(
                    f"no reason for {name!r} in xfails",
                    where=where,
                    accepted="a sentence that says why the promise cannot be kept",
                    fix="write the reason",
                )
        for name, check in CHECKS.items():
            if inspect.unwrap(getattr(cls, name)) is not check:
                raise ConfigError(
                    f"the check {name!r} is overridden",
                    where=where,
                    accepted="the checks as they are; documents(), queries() and filters() may be "
                    "overridden",
                    fix=f'if the promise cannot be kept: xfails = {{"{name}": "the reason"}}',
                )
            reason = cls.xfails.get(name)
            setattr(cls, name, check if reason is None else _expected_to_fail(check, reason))


CHECKS: dict[str, Callable[[RetrieverConformance], None]] = {
    name: check
    for name, check in inspect.getmembers(RetrieverConformance, inspect.isfunction)
    if name.startswith("test_")
}
"""All checks by name."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Outcome of one check; ``reason`` is the text of the failure, of the skip, or of the xfail."""

    status: Literal["passed", "failed", "skipped", "xfailed"]
    reason: str = ""


def run_checks(suite: type[RetrieverConformance]) -> dict[str, CheckResult]:
    """The result of every check by name, without pytest; for notebooks and for testing the checks.

    A check of ``xfails`` that is kept counts as failed. What ``close`` raises at the end is the
    result of "teardown_class".
    """
    results = {name: _run(suite, name) for name in CHECKS}
    try:
        suite.teardown_class()
    except Exception as problem:
        results["teardown_class"] = CheckResult("failed", _tell(problem))
    return results


def _run(suite: type[RetrieverConformance], name: str) -> CheckResult:
    expected = suite.xfails.get(name)
    try:
        CHECKS[name](suite())
    except SkipTest as reason:
        return CheckResult("skipped", str(reason))
    except Exception as problem:
        if expected is not None:
            return CheckResult("xfailed", expected)
        return CheckResult("failed", _tell(problem))
    if expected is not None:
        return CheckResult("failed", f"kept, though xfails says: {expected}")
    return CheckResult("passed")


def _tell(problem: Exception) -> str:
    told = isinstance(problem, AssertionError) and str(problem)
    return told or f"{type(problem).__name__}: {problem}"


def _expected_to_fail(check: Callable[..., None], reason: str) -> Callable[..., None]:
    @functools.wraps(check)
    def marked(self: RetrieverConformance) -> None:
        check(self)

    try:
        import pytest
    except ImportError:  # run_checks does without; only pytest itself reads the mark
        return marked
    expected: Callable[..., None] = pytest.mark.xfail(reason=reason, strict=True)(marked)
    return expected
