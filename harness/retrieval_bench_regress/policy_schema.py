"""The JSON Schema of ``policy.yaml``."""

from __future__ import annotations

import re
from typing import Any

from retrieval_bench.core.as_json.document import DIALECT
from retrieval_bench.metrics.definitions import DEFINITIONS
from retrieval_bench.metrics.names import ALIASES, of_slots
from retrieval_bench_duet.decision import GATES
from retrieval_bench_regress.policy import OF_WRITES, Rise, Undecided


def policy() -> dict[str, Any]:
    """The schema: limits by gate and by metric, and what undecided means."""
    low = {*ALIASES, *map(str.lower, of_slots())}
    other = {re.sub("[a-z]", lambda c: f"[{c[0]}{c[0].upper()}]", name) for name in low}
    known_names = sorted({*DEFINITIONS, *of_slots(), *other})
    names = "|".join(sorted(known_names, key=len, reverse=True))
    drop = {
        "description": "largest acceptable drop of the mean, such as -0.01",
        "type": "number",
        "exclusiveMinimum": -1,
        "exclusiveMaximum": 0,
    }
    share = {
        "description": "largest acceptable slow-down or rise, such as 5%",
        "type": "string",
        "pattern": r"^\s*\d+(\.\d+)?\s*%\s*$",
    }
    known = {"anyOf": [{"enum": [*GATES, *OF_WRITES]}, {"pattern": rf"^({names})([_(@.].*)?$|:"}]}
    words = {"undecided": Undecided, "rise": Rise}
    meanings = {
        "undecided": "what an undecided gate means for the whole",
        "rise": "whether a figure that rose on these queries passes, or is tested",
    }
    return {
        "$schema": DIALECT,
        "description": "By how much a figure may get worse.",
        "type": "object",
        "properties": {
            "limits": {
                "description": "by gate of latency or writes, or by metric",
                "type": "object",
                "minProperties": 1,
                "properties": dict.fromkeys((*GATES, *OF_WRITES), share),
                "propertyNames": known,
                "additionalProperties": drop,
                "examples": [{"p50": "5%", "nDCG@10": -0.01}],
            },
            **{
                name: {"description": meanings[name], "enum": [item.value for item in kind]}
                for name, kind in words.items()
            },
        },
        "required": ["limits"],
        "additionalProperties": False,
    }
