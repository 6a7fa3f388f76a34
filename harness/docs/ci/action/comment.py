"""Put the answer on the change request: one comment, which later runs update.

``comment.py ANSWER.md NAME`` reads what GitHub Actions or GitLab CI set in the environment, and a
``TOKEN`` that may write comments. Without one, or where it may not write (forks), it says so and
ends well: whether the change passes is not its business, and the answer stands in the job, too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

LONGEST = 60_000
"""Characters of a comment; GitHub takes 65,536."""
_AT_ONCE = 100


class Place(NamedTuple):
    """Comments on a change request.

    Attributes:
        comments: address of all of them.
        one: address that one has below, by its id.
        change: the verb that changes one.
        headers: of every request.
    """

    comments: str
    one: str
    change: str
    headers: Mapping[str, str]


def place(token: str) -> Place | None:
    """Where comments on this change go; None outside of a change request."""
    get = os.environ.get
    if event := get("GITHUB_EVENT_PATH"):
        number = json.loads(Path(event).read_text("utf-8")).get("pull_request", {}).get("number")
        top = f"{get('GITHUB_API_URL')}/repos/{get('GITHUB_REPOSITORY')}/issues"
        known = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        there = f"{top}/{number}/comments"
        return Place(there, f"{top}/comments", "PATCH", known) if number else None
    if number := get("CI_MERGE_REQUEST_IID"):
        top = f"{get('CI_API_V4_URL')}/projects/{get('CI_PROJECT_ID')}"
        notes = f"{top}/merge_requests/{number}/notes"
        return Place(notes, notes, "PUT", {"PRIVATE-TOKEN": token})
    return None


def put(where: Place, body: str, mark: str) -> str:
    """Write ``body`` over the comment that begins with ``mark``, or as a new one; what was done."""
    for comment in _all(where):
        if str(comment["body"]).startswith(mark):
            _ask(where, where.change, f"{where.one}/{comment['id']}", {"body": body})
            return "updated"
    _ask(where, "POST", where.comments, {"body": body})
    return "written"


def _all(where: Place) -> Iterator[Any]:
    for page in count(1):
        comments = _ask(where, "GET", f"{where.comments}?per_page={_AT_ONCE}&page={page}")
        yield from comments
        if len(comments) < _AT_ONCE:
            return


def _ask(where: Place, verb: str, address: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    headers = {**where.headers, "Content-Type": "application/json"}
    with urlopen(Request(address, content, headers, method=verb), timeout=30) as answer:
        return json.load(answer)


def main(answer: str, name: str) -> str:
    """Do it, and say what was done."""
    token = os.environ.get("TOKEN", "")
    try:
        where = place(token)
        if where is None or not token:
            why = "no token" if where else "no change request"
            return f"no comment ({why}): the answer stands in the job"
        mark = f"<!-- retrieval-bench: {name.replace('>', '')} -->"
        text = Path(answer).read_text("utf-8")
        if len(text) > LONGEST:
            text = f"{text[:LONGEST]}\n\n... the rest stands in the job"
        return "comment " + put(where, f"{mark}\n{text}", mark)
    except Exception as problem:  # refused, not reached, cut off, in no form that is known
        return f"no comment ({type(problem).__name__}: {problem}): the answer stands in the job"


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:3])}\n")
