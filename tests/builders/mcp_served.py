"""The target ``mcp`` over the toy server, on whichever way it is asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from retrieval_bench_retrievers.mcp.mcp import MCP
from tests.builders import mcp_toy
from tests.builders.mcp_http import mcp_service
from tests.builders.mcp_toy import MODERN, Toy

ARGUMENTS = {"query": "{text}", "limit": "{k}"}
READ = {"hits": "structuredContent.result", "id": "id", "score": "score"}


def program(era: str = MODERN, fault: str = "", *more: str) -> list[str]:
    """The command of the toy."""
    return [sys.executable, "-P", mcp_toy.__file__, era, fault, *more]


@contextmanager
def serving(era: str, way: str, fault: str = "", **given: Any) -> Iterator[MCP]:
    """The retriever over a toy server: ``stdio``, ``json`` or ``events``."""
    params = {"tool": "search", "arguments": ARGUMENTS, **READ, **given}
    if way == "stdio":
        with closing(MCP(command=program(era, fault), **params)) as made:
            yield made
        return
    with (
        mcp_service(Toy(era, fault), events=way == "events") as running,
        closing(MCP(url=running.url, **params)) as made,
    ):
        yield made
