"""The faults: what may never break in what people decide by, and where it is done."""

from __future__ import annotations

from dataclasses import dataclass

_HARNESS = "harness/"
_RETRIEVERS = "retrievers/retrieval_bench_retrievers/"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault.

    Attributes:
        name: what would be wrong.
        file: where, from the top of the project.
        before: text that stands there exactly once.
        after: what the fault makes of it.
        tests: files or folders of tests that are to see it.
    """

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


def _tests(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"tests/{name}" for name in names)


def _of_harness(name: str, file: str, before: str, after: str, *tests: str) -> Mutant:
    folder = "" if file.startswith("retrieval_bench_") else "retrieval_bench/"
    return Mutant(name, _HARNESS + folder + file, before, after, _tests(tests))


def _of_retrievers(name: str, file: str, before: str, after: str, *tests: str) -> Mutant:
    return Mutant(name, _RETRIEVERS + file, before, after, _tests(tests))


MUTANTS = (
    # The order of hits.
    _of_harness(
        "ties come by document id descending",
        "core/ranking.py",
        'order = np.argsort(-scores[candidates], kind="stable")[:k]',
        'order = np.argsort(scores[candidates], kind="stable")[::-1][:k]',
        *("kernel/core/test_ranking.py", "retrievers/test_hybrid.py", "retrievers/test_bm25.py"),
    ),
    _of_harness(
        "of a ranking's tied hits, the order of the engine stays",
        "core/ranking.py",
        "if any(keys[i] > keys[i + 1] for i in tied):",
        "if False:",
        *("kernel/core/test_ranking.py", "kernel/measure/test_runner.py"),
    ),
    _of_harness(
        "a document may be returned twice",
        "core/ranking.py",
        "    if len(set(ids)) != len(ids):\n",
        "    if len(set(ids)) > len(ids):\n",
        *("kernel/core/test_ranking.py", "retrievers/test_callable.py", "retrievers/test_http.py"),
        *("retrievers/test_langchain.py", "kernel/measure/test_runner.py"),
    ),
    _of_harness(
        "of a unit's hits the last counts",
        "core/as_judged/units.py",
        "        if first.setdefault(unit_of.get(doc_id, doc_id), at) == at and",
        "        first[unit_of.get(doc_id, doc_id)] = at\n        if True and",
        "kernel/core/test_units.py",
    ),
    # Metrics and means.
    _of_harness(
        "the first rank is discounted, too",
        "metrics/measures.py",
        "np.log2(np.arange(2.0, int(ranks.max(initial=0)) + 2))",
        "np.log2(np.arange(3.0, int(ranks.max(initial=0)) + 3))",
        "kernel/metrics",
    ),
    _of_harness(
        "AP is divided by the hits that were found",
        "metrics/measures.py",
        'if norm == "hits" else run.n_relevant(rel)',
        'if norm != "hits" else run.n_relevant(rel)',
        "kernel/metrics",
    ),
    _of_harness(
        "precision is divided by the length of the list",
        "metrics/measures.py",
        "return np.asarray(hits / float(cut))",
        "return ratio(hits, np.minimum(cut, run.lengths))",
        "kernel/metrics",
    ),
    _of_harness(
        "queries without an answer in the corpus are in the means",
        "core/types.py",
        "tuple(q for q in self.queries if q.answerable and q.id in self.qrels)",
        "tuple(q for q in self.queries if q.id in self.qrels)",
        *("kernel/data/test_data_build.py", "project/test_api.py"),
    ),
    _of_harness(
        "queries that failed are left out of the means",
        "experiment/experiment.py",
        "self._counts(query) and one != NOT_RUN",
        'self._counts(query) and one == "ok"',
        *("project/test_api.py", "kernel/experiment", "cli/test_cli.py"),
    ),
    # Statistics.
    _of_harness(
        "Holm without its maximum",
        "stats/resampling.py",
        "np.minimum(1.0, np.maximum.accumulate(steps))",
        "np.minimum(1.0, steps)",
        *("kernel/stats/test_stats.py", "kernel/comparison/test_comparison.py"),
    ),
    _of_harness(
        "a percentile is one value off",
        "stats/percentiles.py",
        "value = float(quantiles(ordered, level / 100))",
        "value = float(quantiles(ordered[:-1], level / 100))",
        *("kernel/stats/test_percentiles.py", "kernel/runs/test_latency.py"),
    ),
    _of_harness(
        "too few values give a percentile all the same",
        "stats/percentiles.py",
        "    if n >= needed:\n        return None\n",
        "    if n:\n        return None\n",
        *("kernel/stats/test_percentiles.py", "kernel/runs/test_latency.py"),
    ),
    _of_harness(
        "a betting interval is as narrow as one look allows",
        "stats/sequential.py",
        "self._needed = np.log(2 / alpha)",
        "self._needed = np.log(0.5 / alpha)",
        *("kernel/stats/test_sequential.py", "modes/test_until_decided.py", "labels"),
    ),
    # Comparisons.
    _of_harness(
        "better and worse change places",
        "comparison/pairs/verdicts.py",
        "Verdict.BETTER if delta.difference > 0 else Verdict.WORSE",
        "Verdict.BETTER if delta.difference < 0 else Verdict.WORSE",
        "kernel/comparison",
    ),
    _of_harness(
        "a pair counts as decided by its p before Holm",
        "comparison/pairs/verdicts.py",
        "if delta.difference and delta.p < 1 - delta.level:",
        "if delta.difference and delta.p < QUALITY_ALPHA:",
        "kernel/comparison",
    ),
    _of_harness(
        "a ratio of times is upside down",
        "comparison/pairs/speed.py",
        "Verdict.BETTER if delta.ratio < 1 else Verdict.WORSE",
        "Verdict.BETTER if delta.ratio > 1 else Verdict.WORSE",
        *("kernel/comparison/test_latency_ratio.py", "kernel/comparison/test_recommendation.py"),
    ),
    _of_harness(
        "times of different machines are compared",
        "comparison/pairs/speed.py",
        '        return "measured on different machines"\n',
        '        return ""\n',
        "kernel/comparison/test_latency_ratio.py",
    ),
    _of_harness(
        "other judgements are compared",
        "comparison/pairs/comparability.py",
        'for what in ("split", "fingerprint"):',
        'for what in ("split",):',
        *("kernel/comparison/test_comparability.py", "kernel/comparison/test_comparison.py"),
    ),
    _of_harness(
        "a verdict stands although it rests on failures",
        "comparison/pairs/verdicts.py",
        "if delta.verdict.open or delta.verdict is answered.verdict:",
        "if True:",
        "kernel/comparison",
    ),
    # Gates.
    _of_harness(
        "a gate takes a drop for a rise",
        "retrieval_bench_regress/quality_gates.py",
        "if shown and -difference > gate.limit:",
        "if shown and difference > gate.limit:",
        "regress",
    ),
    _of_harness(
        "a duet confirms without Holm's correction",
        "retrieval_bench_duet/decision.py",
        "corrected = holm(np.array([seen[name].p_worse for name in self.signs]))",
        "corrected = np.array([seen[name].p_worse for name in self.signs])",
        "duet/test_duet_decision.py",
    ),
    _of_harness(
        "an undecided duet ends with 0",
        "retrieval_bench_duet/commands/duet.py",
        '{"PASS": OK, "INCONCLUSIVE": UNDECIDED}',
        '{"PASS": OK, "INCONCLUSIVE": OK}',
        *("cli/test_dueting.py", "duet"),
    ),
    _of_harness(
        "an undecided gate ends with 0",
        "retrieval_bench_regress/gate.py",
        "Undecided.INCONCLUSIVE: 3",
        "Undecided.INCONCLUSIVE: 0",
        *("regress", "cli/test_regressing.py"),
    ),
    # Measuring.
    _of_harness(
        "calls of the warm-up are among the measured ones",
        "measure/recorder.py",
        "        if self.first_ns[at] < 0:\n",
        "        self._keep(at, 0, 0, elapsed, failure)\n        if self.first_ns[at] < 0:\n",
        "kernel/measure/test_runner.py",
    ),
    _of_harness(
        "a call that failed gives an answer's time",
        "measure/attempts.py",
        "        open_.spent_ns += elapsed + round(open_.wait_s * 1e9)\n",
        "        open_.spent_ns += 0\n",
        "kernel/measure/test_attempts.py",
    ),
    # What is written and shown.
    _of_harness(
        "a secret is written out",
        "core/secrets.py",
        "return with_text(value, pattern.sub(lambda match: put[match[0]], value))",
        "return value",
        *("kernel/core/test_secrets.py", "kernel/runs"),
    ),
    _of_harness(
        "scores of a run file no longer fall",
        "data/formats/trec_runs.py",
        "return doc_ids, _strictly_falling(values)",
        "return doc_ids, values",
        *("kernel/runs", "kernel/data/test_trec.py"),
    ),
    _of_harness(
        "a percentage is a hundredth of itself",
        "core/figures.py",
        "signed(None if share is None else 100 * share, 1,",
        "signed(None if share is None else share, 1,",
        *("regress/test_history.py", "kernel/reports/test_differences.py"),
    ),
    _of_harness(
        "in the table of a comparison a difference has the wrong sign",
        "reports/tables/brief.py",
        "    sign = 1 if delta.b == name else -1\n",
        "    sign = 1\n",
        "kernel/reports",
    ),
    _of_harness(
        "recall that is not overstated is said to be, and the other way round",
        "retrieval_bench_labels/tables/labelling.py",
        "completeness.share_found < 0.9",
        "completeness.share_found >= 0.9",
        *("labels", "cli/test_labelling.py"),
    ),
    # Retrieving.
    _of_retrievers(
        "in a fusion the last hits weigh most",
        "hybrid/fusion.py",
        "np.divide(weight[:, None], ranks + (k + base - 1), out=parts",
        "np.divide(ranks + (k + base - 1), weight[:, None], out=parts",
        *("retrievers/test_fusion.py", "retrievers/test_hybrid.py"),
    ),
)
