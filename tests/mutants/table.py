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
        "core/units/collapsing.py",
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
        "retrieval_bench_modes/sequential.py",
        "self._needed = np.log(2 / alpha)",
        "self._needed = np.log(0.5 / alpha)",
        *("modes/test_sequential.py", "modes/test_until_decided.py", "labels"),
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
        *("score/test_run_files.py", "kernel/data/test_trec.py"),
    ),
    _of_harness(
        "a percentage is a hundredth of itself",
        "core/figures.py",
        "signed(None if share is None else 100 * share, 1,",
        "signed(None if share is None else share, 1,",
        "kernel/reports/test_differences.py",
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
    # Programs.
    _of_retrievers(
        "a program that was too slow goes on, and its late answer is that to the next query",
        "programs/child.py",
        """        except BaseException:
            self.kill()
            raise
""",
        """        except BaseException:
            raise
""",
        *("retrievers/test_child.py", "retrievers/test_command.py"),
    ),
    _of_retrievers(
        "an answer to another query counts",
        "programs/lines.py",
        "if given != query.id and (shape.echoes or (isinstance(given, str) and given in asked)):",
        "if False:",
        "retrievers/test_command.py",
    ),
    # Truth by rule.
    _of_harness(
        "what is forbidden counts as found",
        "retrieval_bench_rules/rules.py",
        "EARLY, SLOT, FORBIDDEN = 2, 1, -1",
        "EARLY, SLOT, FORBIDDEN = 2, 1, 1",
        *("rules/test_slots.py", "rules/test_rules.py"),
    ),
    _of_harness(
        "a slot is filled at whatever rank",
        "retrieval_bench_rules/slots.py",
        "if rule.within is None or rank <= rule.within",
        "if rule.within is None or rank <= rule.within + 9",
        *("rules/test_slots.py", "cli/test_rules.py"),
    ),
    _of_harness(
        "the text of a document stands for the one that came",
        "retrieval_bench_rules/slots.py",
        "text = texts.of(doc_id) if given is None else forms(given)",
        "text = texts.of(doc_id)",
        *("rules/test_slots.py", "cli/test_rules.py"),
    ),
    _of_harness(
        "rankings are the same where texts changed",
        "retrieval_bench_regress/baseline.py",
        "what = list(doc_ids) if slots is None else [list(doc_ids), slots]",
        "what = list(doc_ids)",
        *("cli/test_rules.py", "regress/test_regress.py"),
    ),
    # A model's labels beside people's.
    _of_harness(
        "residuals keep the leverage of their query",
        "retrieval_bench_judges/estimate.py",
        "residuals = residuals / np.maximum(1 - leverage, ROUNDING)",
        "residuals = residuals / 1.0",
        "judges/test_estimate.py",
    ),
    _of_harness(
        "the slope follows a judge that says the opposite",
        "retrieval_bench_judges/estimate.py",
        "np.clip(ratio, 0.0, 1.0)",
        "ratio",
        "judges/test_estimate.py",
    ),
    _of_harness(
        "the model counts whatever it narrows",
        "retrieval_bench_judges/estimate.py",
        "narrow = with_judge.half_width() < GAIN * alone.half_width()",
        "narrow = with_judge.half_width() < 9 * alone.half_width()",
        *("judges/test_estimate.py", "judges/test_verdicts.py"),
    ),
    _of_harness(
        "a single query may bend the slope",
        "retrieval_bench_judges/estimate.py",
        "steady = with_judge.leverage <= LEVERAGE",
        "steady = with_judge.leverage <= 1 / LEVERAGE",
        "judges/test_estimate.py",
    ),
    _of_harness(
        "a judge that errs nowhere is believed",
        "retrieval_bench_judges/estimate.py",
        "seen &= (np.abs(people - judged) > ROUNDING).sum(axis=-1) >= DIFFER",
        "seen &= (np.abs(people - judged) > ROUNDING).sum(axis=-1) >= 0",
        "judges/test_estimate.py",
    ),
    _of_harness(
        "what is alike everywhere does not count",
        "retrieval_bench_judges/evidence.py",
        "counts[name] / len(asked)",
        "counts[name] / len(of)",
        "judges",
    ),
    _of_harness(
        "a model's labels stand among people's",
        "retrieval_bench_judges/evidence.py",
        "settled(label for label in labels if label.kind is not Kind.MODEL)",
        "settled(labels)",
        "judges",
    ),
    _of_harness(
        "a model alone decides a pool",
        "retrieval_bench_labels/grades.py",
        "return [label for label in labels if label.kind is not Kind.MODEL]",
        "return list(labels)",
        *("judges/test_fit.py", "labels/test_queue.py", "cli/test_judged_by.py"),
    ),
    _of_harness(
        "an alarm rings for what is underrated",
        "retrieval_bench_judges/alarms.py",
        "chances[table[:, 0].sum() :].sum()",
        "chances[: table[:, 0].sum() + 1].sum()",
        "judges",
    ),
    _of_harness(
        "twins hide what both alone returned",
        "retrieval_bench_judges/alarms.py",
        "_overlap(own, lists[b]) >= TWINS",
        "_overlap(own, lists[b]) >= 2 * TWINS",
        "judges/test_fit.py",
    ),
)
