"""Labels add the commands of ``label``, and the documents that these print."""

from retrieval_bench.capabilities import Capability, Command, Document

_COMMANDS = "retrieval_bench_labels.commands"
_PACKAGE = "retrieval_bench_labels"

CAPABILITY = Capability(
    rank=100,
    stands_on=("retrieval_bench_exchange", "retrieval_bench_modes", "retrieval_bench_score"),
    groups={"label": ("judge", "make judgements: pool, start, status, import, export")},
    commands={
        "label pool": Command(
            f"{_COMMANDS}.label:run_pool",
            "collect what is to be judged: what any system found, blind",
            (
                "@last",
                "bm25 hybrid --dataset my/folder",
                "bm25@latest other.run --dataset my/folder --depth 20",
            ),
        ),
        "label start": Command(
            f"{_COMMANDS}.start:run_start",
            "judge: on a page, or in a file for others",
            ("", "--who anna --no-browser", "--who ben --offline for-ben.html"),
        ),
        "label status": Command(
            f"{_COMMANDS}.label:run_status",
            "how much is judged, by whom, and what it shows",
            ("", "-v", "--labels results/labels/mine.sqlite --format json"),
        ),
        "label questions": Command(
            f"{_COMMANDS}.label:run_questions",
            "make questions: known items, or a sample of a log",
            (
                "mine.py:ask --dataset my/folder --out my/known-items",
                "log.csv --dataset my/folder --n 60 --out my/asked",
                "mine.py:ask --dataset my/folder --n 20 --seed 7 --out more",
            ),
        ),
        "label import": Command(
            f"{_COMMANDS}.label:run_import",
            "take over judgements that were made elsewhere",
            (
                "labels-anna.json",
                "qrels.txt --who gpt-5 --kind model",
                "questions.csv --who anna --from quotes",
            ),
        ),
        "label export": Command(
            f"{_COMMANDS}.label:run_export",
            "write the dataset with its new judgements",
            ("--out my/judged", "--to quepid --out for-quepid", "--out people --only person"),
        ),
    },
    documents={
        "pool": Document("label pool", f"{_PACKAGE}.decide.status:Pooled"),
        "status": Document("label status", f"{_PACKAGE}.decide.status:LabelStatus"),
        "started": Document(
            "label start",
            f"{_PACKAGE}.judge.offline:OfflinePage {_PACKAGE}.judge.server:ServedPage",
        ),
        "imported": Document("label import", f"{_PACKAGE}.exchange.importing:Imported"),
        "exported": Document("label export", f"{_PACKAGE}.exchange.exporting:ExportedLabels"),
        "questions": Document("label questions", f"{_PACKAGE}.exchange.questions:Asked"),
    },
)
