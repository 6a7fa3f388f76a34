"""Servers made with the SDKs of Python and npm, where these are installed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.types import Query
from retrieval_bench_retrievers.mcp import http
from retrieval_bench_retrievers.mcp.mcp import MCP
from tests.builders import mcp_toy
from tests.builders.mcp_toy import DOCS, LEGACY, MODERN, found
from tests.builders.service import free_port

BUILDERS = Path(mcp_toy.__file__).parent
SDK = BUILDERS / "mcp_sdk.py"
QUERIES = ("cat ran", "the dog", "달린다 ran", "on a mat by the dog", "nothing of it")
CALL: dict[str, Any] = {"tool": "search", "arguments": {"query": "{text}", "limit": "{k}"}}
READ: dict[str, Any] = {"id": "id", "score": "score", "text": "text"}


@cache
def _npm() -> str:
    """Why npm's SDK cannot be tested; empty where it can."""
    node = shutil.which("node")
    if node is None:
        return "not for this machine: node is not there"
    asked = ["-e", "require('@modelcontextprotocol/sdk/server/mcp.js'); require('zod')"]
    there = subprocess.run([node, *asked], cwd=BUILDERS, capture_output=True, check=False)
    lacks = "not for this machine: NODE_PATH leads to no @modelcontextprotocol/sdk"
    return lacks if there.returncode else ""


def _same(retriever: MCP, version: str) -> None:
    for text in QUERIES:
        for k in (1, 3, 10):
            ranking = retriever.search(Query("q", text), k)
            assert list(ranking) == found(DOCS, text, k)
            assert list(ranking.texts or []) == [DOCS[one] for one in ranking.doc_ids]
    facts = retriever.describe()
    assert (facts["protocol"], facts["server"]["name"]) == (version, "sdk")


@pytest.mark.slow
@pytest.mark.needs("mcp")
@pytest.mark.parametrize(("protocol", "version"), [("auto", MODERN), (LEGACY, LEGACY)])
@pytest.mark.parametrize("hits", ["structuredContent.result", "json"])
def test_rankings_of_the_sdk_of_python_over_stdio(protocol: str, version: str, hits: str) -> None:
    command = [sys.executable, "-P", str(SDK)]
    with closing(MCP(command=command, protocol=protocol, hits=hits, **CALL, **READ)) as retriever:
        _same(retriever, version)


@contextmanager
def _served(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    port = free_port()
    command = [sys.executable, "-P", str(SDK), str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.needs("mcp")
def test_rankings_of_the_sdk_of_python_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_END_S", "_FIRST_END_S"):  # its streams do end
        monkeypatch.setattr(http, limit, 60)
    with _served(monkeypatch) as url:
        for protocol, version in (("auto", MODERN), (LEGACY, LEGACY)):
            given: dict[str, Any] = {"protocol": protocol, "hits": "structuredContent.result"}
            with closing(MCP(url=url, **given, **CALL, **READ)) as retriever:
                _same(retriever, version)
                # The older era answers with streams that end: one connection serves them all, and
                # another the notification of the handshake.
                assert retriever.describe()["connections_opened"] <= 2


@pytest.mark.slow
@pytest.mark.skipif(bool(_npm()), reason=_npm())
def test_rankings_of_the_sdk_of_npm() -> None:
    command = [str(shutil.which("node")), str(BUILDERS / "mcp_sdk.cjs")]
    env = {"TOY_DOCS": json.dumps(DOCS), "NODE_PATH": os.environ.get("NODE_PATH", "")}
    with closing(MCP(command=command, env=env, hits="json", **CALL, **READ)) as retriever:
        _same(retriever, LEGACY)
