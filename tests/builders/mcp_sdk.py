"""The toy's search behind the SDK of Python, on stdio or at a port: ``mcp_sdk.py [PORT]``."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

from mcp.server import MCPServer

_SPEC = importlib.util.spec_from_file_location("toy", Path(__file__).with_name("mcp_toy.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
toy = importlib.util.module_from_spec(_SPEC)
sys.modules["toy"] = toy
_SPEC.loader.exec_module(toy)
server = MCPServer("sdk", version="1.0")


@server.tool()  # type: ignore[untyped-decorator]
def search(query: str, limit: int = 10) -> list[dict[str, Any]]:
    """Searches the documents."""
    hits = toy.found(toy.DOCS, query, limit)
    return [{"id": doc_id, "score": score, "text": toy.DOCS[doc_id]} for doc_id, score in hits]


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
