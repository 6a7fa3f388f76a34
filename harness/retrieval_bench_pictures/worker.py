"""Drawing in a process of its own: texts of Vega-Lite in, texts of SVG out.

Its V8 reserves some 70 GB of address space, and ends its process where a limit refuses them.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from retrieval_bench.measure.parent import end_with


def main(given: dict[str, Any]) -> None:
    """Draw ``given["specs"]`` by Vega-Lite ``given["version"]``; print a JSON list on one line."""
    if not end_with(given["parent"]):
        return
    import vl_convert

    version = given["version"]
    drawn = [vl_convert.vegalite_to_svg(spec, vl_version=version) for spec in given["specs"]]
    sys.stdout.write(json.dumps(drawn) + "\n")
