"""BM25 over science-mini, answering as Elasticsearch does; its port goes into a file."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import perf_counter

from retrieval_bench import load_dataset
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench_retrievers.lexical.bm25 import BM25

ENGINE = BM25()
ENGINE.index(load_dataset("science-mini").documents or ())


class Handler(BaseHTTPRequestHandler):
    """One search for each POST."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer with the hits for ``query.match.text``."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        begin = perf_counter()
        found = ENGINE.search(Query("q", asked["query"]["match"]["text"]), asked["size"])
        assert isinstance(found, Ranking)
        hits = [{"_id": doc_id, "_score": score} for doc_id, score in found]
        took = round((perf_counter() - begin) * 1e3, 3)
        content = json.dumps({"took": took, "hits": {"hits": hits}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    Path(sys.argv[1]).write_text(str(server.server_address[1]), encoding="utf-8")
    server.serve_forever()
