"""``label judge``: a model is asked for what it has not judged."""

from __future__ import annotations

import argparse
from pathlib import Path

from retrieval_bench.cli.console import OK, UNDECIDED, output_kept_clean, show, working
from retrieval_bench.cli.options import command, refuse
from retrieval_bench_labels.commands.label import LABELS_FILE, opened

_JUDGE = f"""
judge JUDGE  FILE.py:function, called with a question and a document; a YAML file with url, model
    and headers of an endpoint in the layout of OpenAI's chat completions; or a file of its labels
--who NAME [required]  its name: labels of one name are of one model and one prompt
--prompted QUERY ...  ids of queries that stand in its prompt: there it is no second opinion
--workers N [1]  calls at a time (default: 1)
--max-cost MONEY  make no call that might spend more, by what calls have cost until now
--again N [0]  ask about N documents a second time (default: 0)
{LABELS_FILE}
"""


@command(_JUDGE)
def run_judge(options: argparse.Namespace) -> int:
    """Ask a judge, or take over its labels."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.core.progress import Phase, Step
    from retrieval_bench_judges.asking import ask_judge
    from retrieval_bench_judges.judges import judge_of
    from retrieval_bench_judges.tables.judge import asked_tables
    from retrieval_bench_labels.judge.judging import checked_name

    for name, given, least in (("workers", options.workers, 1), ("again", options.again, 0)):
        if given < least:
            raise ConfigError(
                f"--{name} {given}", accepted=f"a whole number from {least}", fix="such as 4"
            )
    store, who = opened(options), checked_name(options.who)
    named = Path(options.judge)
    if named.is_file() and named.suffix not in (".yaml", ".yml"):
        return _imported(options, who)
    with output_kept_clean():
        source = judge_of(options.judge, store.pool().guidelines)
    with working(options) as bars, bars.phase(Phase(Step.READING, who)) as task:
        made = ask_judge(
            store,
            who,
            source,
            workers=options.workers,
            max_cost=options.max_cost,
            prompted=options.prompted or (),
            again=options.again,
            task=task,
        )
    show(options, made, lambda: asked_tables(made))
    return UNDECIDED if made.left else OK


def _imported(options: argparse.Namespace, who: str) -> int:
    from retrieval_bench.data import load_dataset
    from retrieval_bench_judges.record import JudgeRecord
    from retrieval_bench_labels.exchange.importing import import_labels
    from retrieval_bench_labels.label import Kind
    from retrieval_bench_labels.tables.labelling import import_tables

    refuse(
        options,
        "workers max_cost again",
        "with a file of labels",
        accepted="FILE.py:function or the YAML file of an endpoint, which are asked",
        fix="leave it out",
    )
    with output_kept_clean():
        store = opened(options)
        pool, record = store.pool(), JudgeRecord(store.path, who)
        facts = {"prompted": options.prompted or ()}
        record.describe(facts)
        data = load_dataset(pool.source or pool.dataset, pool.split)
        made = import_labels(store, Path(options.judge), data, who=who, kind=Kind.MODEL)
    record.describe(facts)
    show(options, made, lambda: import_tables(made, str(store.path)))
    return OK
