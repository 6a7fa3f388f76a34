"""The JSON documents: what each command prints with ``--format json``.

:data:`DOCUMENTS` names them, and the type of each. What :func:`schema_of` gives is made from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from retrieval_bench.cli.console import SCHEMA_VERSION
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.as_json.schemas import schema
from retrieval_bench.core.errors import check_known
from retrieval_bench.reports.tables.share.catalog import NamedDocument


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
        types: of what it shows, one of these: ``module:Class``, separated by blanks.
        versioned: where its ``schema_version`` stands; empty where its type says it, or nobody.
    """

    command: str
    types: str
    versioned: str = ""

    @property
    def kinds(self) -> tuple[Any, ...]:
        """Its types."""
        return tuple(map(_named, self.types.split()))

    @property
    def version(self) -> int:
        """Its ``schema_version``."""
        if self.versioned:
            return int(_named(self.versioned))
        return int(getattr(self.kinds[0], "schema_version", SCHEMA_VERSION))


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"retrieval_bench.{module}"), name)


DOCUMENTS: Mapping[str, Entry] = {
    "bench": Entry("bench", "reports.finish:Finished", "runs.records:SCHEMA_VERSION"),
    "plan": Entry(
        "bench --dry-run", "experiment.planned_run:PlannedRun experiment.planned_run:Plans"
    ),
    "probe": Entry("bench --probe", "experiment.doctor.probing:Probe"),
    "tutorial": Entry("bench --protocol tutorial", "measure.tutorial:Tutorial"),
    "sweep": Entry("bench --sweep", "approximate.swept:Sweep"),
    "compare": Entry("compare", "comparison.analysis:Compared"),
    "load": Entry("load", "load.load:LoadResult"),
    "loads": Entry("compare LOAD LOAD", "regression.loads:ComparedLoads"),
    "diff": Entry("explain", "comparison.explain.differences:Differences"),
    "parts": Entry("explain --by stage", "comparison.explain.ledger:Ledger"),
    "losses": Entry("explain --by loss", "comparison.explain.losses:Losses"),
    "tune": Entry("tune", "tuning.tuned:Tuning"),
    "doctor": Entry("doctor", "experiment.doctor.doctor:Diagnosis"),
    "selftest": Entry("doctor --selftest", "duets.selftest:SelfTest"),
    "baseline": Entry("baseline", "regression.regress:BaselineResult"),
    "regress": Entry("regress", "regression.gate:Regression"),
    "duet": Entry("duet", "duets.result:PrintedDuet", "duets.result:SCHEMA_VERSION"),
    "evaluate": Entry("score run", "scoring.scorecard:ScoreDetails"),
    "audit": Entry("score audit", "scoring.audit:Audit"),
    "scorer": Entry("score audit --scorer", "scoring.cheats:ScorerAudit"),
    "table": Entry("score audit --table", "scoring.published_table:TableAudit"),
    "reader": Entry("score reader", "scoring.score:ReaderDetails"),
    "qa": Entry("score qa", "scoring.answers.question_answering:QuestionAnswering"),
    "outcomes": Entry("score outcomes", "scoring.answers.outcomes:Outcomes"),
    "report": Entry("report", "reports.page.report:Report comparison.comparison:Comparison"),
    "verify": Entry("report --verify", "reports.page.verify:Verification"),
    "list": Entry("data list", "reports.tables.share.catalog:Catalog"),
    "fetch": Entry("data fetch", "data.formats.irds:Fetched"),
    "export": Entry("data export", "data.export:Exported data.export:ExportedRun"),
    "loaded": Entry("data load", "data.stores:LoadedDataset"),
    "index": Entry("data index", "experiment.index_once:KeptIndex"),
    "encoded": Entry("data encode", "shards.encode:EncodedCorpus"),
    "cache": Entry("data cache", "data.saved.folders:Kept"),
    "schemas": Entry("data schema", "cli.documents:Listing"),
    "history": Entry("data history", "regression.history.history:History"),
    "pool": Entry("label pool", "labels.decide.status:Pooled"),
    "status": Entry("label status", "labels.decide.status:LabelStatus"),
    "started": Entry(
        "label start", "labels.judge.offline:OfflinePage labels.judge.server:ServedPage"
    ),
    "imported": Entry("label import", "labels.exchange.importing:Imported"),
    "exported": Entry("label export", "labels.exchange.exporting:ExportedLabels"),
    "questions": Entry("label questions", "labels.exchange.questions:Asked"),
    "submit": Entry("lab submit", "scoring.answers.submission:Submission"),
    "reproduce": Entry("lab reproduce", "reproduction.check:Papers"),
    "error": Entry("COMMAND", "cli.problem:Error"),
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
    fix = "name one; without a name all are listed"
    where = "retrieval-bench data schema"
    check_known(name, DOCUMENTS, f"JSON document {name!r}", where=where, fix=fix)
    entry = DOCUMENTS[name]
    return schema(entry.kinds, f"retrieval-bench {entry.command} --format json", entry.version)
