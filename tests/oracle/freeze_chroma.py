"""Freezes what Chroma's own scorer says of the lists of ``tests.builders.chroma_lists``.

    python -m tests.oracle.freeze_chroma CHECKOUT DATA

CHECKOUT is a clone of its chunking_evaluation at commit d451fc4, DATA the folder with ``corpora``
and ``questions.csv``. Nothing of either is kept but the figures; packages that the scorer imports
and does not use for scores are replaced by empty modules.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from retrieval_bench.capabilities import named
from tests.builders.chroma_lists import CUTS, data_of, lists_of, summed_up

PACKAGE = "chunking_evaluation"
FROZEN = Path(__file__).with_name("chroma_scores.json")


def _scorer(checkout: Path) -> Any:
    for name in ("chromadb", "chromadb.utils", "tiktoken", "openai"):
        stub: Any = ModuleType(name)
        stub.__getattr__ = lambda _: MagicMock()
        sys.modules[name] = stub
    sys.path.insert(0, str(checkout / "src" if (checkout / "src").is_dir() else checkout))
    scorer = f"{PACKAGE}.evaluation_framework.base_evaluation:BaseEvaluation"
    return named(scorer)


def main(checkout: Path, folder: Path) -> None:
    """Write the figures beside this file."""
    data = data_of(folder)
    spans: Any = data.qrels
    rows = [
        {
            "corpus_id": spans[query.id].truth[0].doc_id,
            "references": [
                {"start_index": start, "end_index": end} for _, start, end in spans[query.id].truth
            ],
        }
        for query in data.queries
    ]
    kind = _scorer(checkout)
    scorer = kind.__new__(kind)
    scorer.questions_df = SimpleNamespace(iterrows=lambda: enumerate(rows))
    frozen: dict[str, dict[str, list[float]]] = {}
    for lists in lists_of(data):
        told = [[_metadata(place) for place in hits] for hits in lists.hits]
        for k in CUTS:
            iou, recall, precision = scorer._scores_from_dataset_and_retrievals(
                told, [k] * len(rows)
            )
            frozen[f"{lists.name} {k}"] = {
                name: summed_up(values)
                for name, values in (("SpanR", recall), ("SpanP", precision), ("SpanIoU", iou))
            }
        omega, _ = scorer._full_precision_score([_metadata(place) for place in lists.chunks])
        frozen[f"{lists.name} full"] = {"full precision": summed_up(omega)}
    FROZEN.write_text(json.dumps(frozen, indent=1) + "\n", encoding="utf-8")


def _metadata(place: Any) -> dict[str, Any]:
    doc_id, start, end = place
    return {"corpus_id": doc_id, "start_index": start, "end_index": end}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
