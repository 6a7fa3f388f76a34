"""A service over HTTP whose documents can be written."""

from __future__ import annotations

from urllib.parse import unquote

from retrieval_bench.core.types import Document
from tests.builders.service import Reply, Request, searching


class Store:
    """A service that adds, deletes and searches."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}

    def __call__(self, request: Request) -> Reply:
        name = unquote(request.path.rpartition("/")[2])
        if request.method == "PUT":
            self.documents[name] = Document(name, request.body["text"])
        elif request.method == "DELETE":
            return Reply({}, 200 if self.documents.pop(name, None) else 404)
        else:
            return searching([*self.documents.values()])(request)
        return Reply({})
