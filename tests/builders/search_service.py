"""A search service in 30 lines, bm25s behind the standard library's server, a thread a connection:
``python -P search_service.py CORPUS.jsonl PORT`` needs nothing else."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import bm25s

rows = [json.loads(line) for line in Path(sys.argv[1]).read_text("utf-8").splitlines()]
index = bm25s.BM25(k1=0.9, b=0.4)
texts = [f"{row['title']} {row['text']}" for row in rows]
index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)


class Search(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = bm25s.tokenize(asked["query"], show_progress=False, return_ids=False)
        hits, scores = index.retrieve(words, k=asked["k"], show_progress=False)
        found = zip(hits[0], scores[0], strict=True)
        answer = [{"id": rows[hit]["_id"], "score": float(score)} for hit, score in found]
        body = json.dumps({"hits": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: a line a call would take longer than the search."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Search).serve_forever()
