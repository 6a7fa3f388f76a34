"""The JSON documents: what each command prints with ``--format json``.

:data:`DOCUMENTS` names them, and the type of each. What :func:`schema_of` gives is made from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from retrieval_bench.approximate.swept import Sweep
from retrieval_bench.cli.console import SCHEMA_VERSION
from retrieval_bench.cli.problem import Error
from retrieval_bench.comparison.analysis import Compared
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.explain.ledger import Ledger
from retrieval_bench.comparison.explain.losses import Losses
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.as_json.schemas import schema
from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.data.export import Exported, ExportedRun
from retrieval_bench.data.formats.irds import Fetched
from retrieval_bench.data.saved.folders import Kept
from retrieval_bench.data.stores import LoadedDataset
from retrieval_bench.duets.result import DuetResult, PrintedDuet
from retrieval_bench.duets.selftest import SelfTest
from retrieval_bench.experiment.doctor.doctor import Diagnosis
from retrieval_bench.experiment.doctor.probing import Probe
from retrieval_bench.experiment.index_once import KeptIndex
from retrieval_bench.experiment.planned_run import PlannedRun, Plans
from retrieval_bench.labels.decide.status import LabelStatus, Pooled
from retrieval_bench.labels.exchange.exporting import ExportedLabels
from retrieval_bench.labels.exchange.importing import Imported
from retrieval_bench.labels.exchange.questions import Asked
from retrieval_bench.labels.judge.offline import OfflinePage
from retrieval_bench.labels.judge.server import ServedPage
from retrieval_bench.load.load import LoadResult
from retrieval_bench.measure.tutorial import Tutorial
from retrieval_bench.regression.gate import Regression
from retrieval_bench.regression.history.history import History
from retrieval_bench.regression.loads import ComparedLoads
from retrieval_bench.regression.regress import BaselineResult
from retrieval_bench.reports.finish import Finished
from retrieval_bench.reports.page.report import Report
from retrieval_bench.reports.page.verify import Verification
from retrieval_bench.reports.tables.share.catalog import Catalog
from retrieval_bench.reports.tables.share.schema import NamedDocument
from retrieval_bench.reports.tables.understand.diff_document import DiffDocument
from retrieval_bench.reproduction.check import Papers
from retrieval_bench.runs import records as runs
from retrieval_bench.scoring.answers.outcomes import Outcomes
from retrieval_bench.scoring.answers.question_answering import QuestionAnswering
from retrieval_bench.scoring.answers.submission import Submission
from retrieval_bench.scoring.audit import Audit
from retrieval_bench.scoring.cheats import ScorerAudit
from retrieval_bench.scoring.published_table import TableAudit
from retrieval_bench.scoring.score import ReaderDetails
from retrieval_bench.scoring.scorecard import ScoreDetails
from retrieval_bench.shards.encode import EncodedCorpus
from retrieval_bench.tuning.tuned import Tuning


@dataclass(frozen=True, slots=True)
class Listing(Documented):
    """All documents.

    Attributes:
        documents: each with its name, and what prints it.
    """

    documents: Sequence[NamedDocument]


class Entry(NamedTuple):
    """A document.

    Attributes:
        command: that prints it.
        kinds: the types of what it shows: one of these.
        version: its ``schema_version``.
    """

    command: str
    kinds: tuple[Any, ...]
    version: int = SCHEMA_VERSION


DOCUMENTS: Mapping[str, Entry] = {
    "bench": Entry("bench", (Finished,), runs.SCHEMA_VERSION),
    "plan": Entry("bench --dry-run", (PlannedRun, Plans)),
    "probe": Entry("bench --probe", (Probe,), Probe.schema_version),
    "tutorial": Entry("bench --protocol tutorial", (Tutorial,)),
    "sweep": Entry("bench --sweep", (Sweep,), Sweep.schema_version),
    "compare": Entry("compare", (Compared,)),
    "load": Entry("load", (LoadResult,), LoadResult.schema_version),
    "loads": Entry("compare LOAD LOAD", (ComparedLoads,), ComparedLoads.schema_version),
    "diff": Entry("explain", (DiffDocument,)),
    "parts": Entry("explain --by stage", (Ledger,)),
    "losses": Entry("explain --by loss", (Losses,)),
    "tune": Entry("tune", (Tuning,)),
    "doctor": Entry("doctor", (Diagnosis,)),
    "selftest": Entry("doctor --selftest", (SelfTest,)),
    "baseline": Entry("baseline", (BaselineResult,), BaselineResult.schema_version),
    "regress": Entry("regress", (Regression,), Regression.schema_version),
    "duet": Entry("duet", (PrintedDuet,), DuetResult.schema_version),
    "evaluate": Entry("score run", (ScoreDetails,)),
    "audit": Entry("score audit", (Audit,)),
    "scorer": Entry("score audit --scorer", (ScorerAudit,)),
    "table": Entry("score audit --table", (TableAudit,)),
    "reader": Entry("score reader", (ReaderDetails,)),
    "qa": Entry("score qa", (QuestionAnswering,)),
    "outcomes": Entry("score outcomes", (Outcomes,)),
    "report": Entry("report", (Report, Comparison)),
    "verify": Entry("report --verify", (Verification,)),
    "list": Entry("data list", (Catalog,)),
    "fetch": Entry("data fetch", (Fetched,)),
    "export": Entry("data export", (Exported, ExportedRun)),
    "loaded": Entry("data load", (LoadedDataset,)),
    "index": Entry("data index", (KeptIndex,)),
    "encoded": Entry("data encode", (EncodedCorpus,)),
    "cache": Entry("data cache", (Kept,)),
    "schemas": Entry("data schema", (Listing,)),
    "history": Entry("data history", (History,), History.schema_version),
    "pool": Entry("label pool", (Pooled,)),
    "status": Entry("label status", (LabelStatus,)),
    "started": Entry("label start", (OfflinePage, ServedPage)),
    "imported": Entry("label import", (Imported,)),
    "exported": Entry("label export", (ExportedLabels,)),
    "questions": Entry("label questions", (Asked,)),
    "submit": Entry("lab submit", (Submission,)),
    "reproduce": Entry("lab reproduce", (Papers,)),
    "error": Entry("COMMAND", (Error,)),
}
"""Every JSON document by its name."""


def listing() -> Listing:
    """All documents, by name."""
    named_documents = [
        NamedDocument(name, entry.command, entry.version) for name, entry in DOCUMENTS.items()
    ]
    return Listing(named_documents)


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of a document.

    Raises:
        ConfigError: there is no document of this name.
    """
    entry = DOCUMENTS.get(name)
    if entry is None:
        raise ConfigError(
            f"JSON document {name!r}",
            where="retrieval-bench data schema",
            accepted=near_names(name, DOCUMENTS),
            fix="name one; without a name all are listed",
        )
    return schema(entry.kinds, f"retrieval-bench {entry.command} --format json", entry.version)
