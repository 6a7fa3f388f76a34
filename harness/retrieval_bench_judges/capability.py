"""Judges add ``label judge``, and ``compare --judged-by``: people's labels with a model's."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_judges"
_CLAIMS = "retrieval_bench.comparison.claims"

CAPABILITY = Capability(
    rank=110,
    stands_on=("retrieval_bench_labels",),
    commands={
        "label judge": Command(
            f"{_PACKAGE}.commands.judge:run_judge",
            "ask a model for what it has not judged",
            (
                "judge.py:grade --who mine",
                "judge.yaml --who small-judge --workers 4 --max-cost 2",
                "graded.txt --who gpt-5",
            ),
            after="label status",
        )
    },
    keys={"labels": f"{_PACKAGE}.fit:FitOfJudges"},
    services={"show judges": f"{_PACKAGE}.tables.judged_by:judge_tables"},
    options={"compare": f"{_PACKAGE}.commands.judged_by:JUDGED_BY"},
    claims={"compare --judged-by": f"{_CLAIMS}:QUALITY"},
    documents={
        "asked": Document("label judge", f"{_PACKAGE}.asking:Asked"),
        "judged_by": Document("compare --judged-by", f"{_PACKAGE}.judged_by:JudgedComparison"),
    },
)
