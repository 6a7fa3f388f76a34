"""Pages adds ``report``, also from Python, and draws systems side by side."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_pages"
_CLAIMS = "retrieval_bench.comparison.claims"

CAPABILITY = Capability(
    rank=140,
    stands_on=("retrieval_bench_explain", "retrieval_bench_pictures"),
    commands={
        "report": Command(
            f"{_PACKAGE}.commands.report:run_report",
            "one HTML file: answer, tables, pictures, single queries",
            ("@last", "bm25 dense hybrid --dataset my/folder", "bm25@latest hybrid@latest"),
            heading="share",
        )
    },
    claims={"report": f"{_CLAIMS}:FIGURES"},
    documents={
        "report": Document(
            "report", f"{_PACKAGE}.report:Report retrieval_bench.comparison.comparison:Comparison"
        ),
        "verify": Document("report --verify", f"{_PACKAGE}.verify:Verification"),
    },
    names={"report": f"{_PACKAGE}.api:report"},
    services={
        "show tables in a notebook": f"{_PACKAGE}.html:render",
        "write LaTeX": f"{_PACKAGE}.latex:render",
        "write a report": f"{_PACKAGE}.report:write_report",
        "draw quality against time": f"{_PACKAGE}.pictures.of_comparison:front",
        "draw quality metric by metric": f"{_PACKAGE}.pictures.of_comparison:metrics",
    },
)
