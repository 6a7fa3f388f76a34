"""A program that keeps its documents in a file, and acknowledges a write before or after they are
there: ``python durable_program.py FILE [early]``. Only the standard library, so that it starts
fast."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Answer each line of stdin; with ``early`` every fifth write stays in memory alone."""
    path, early = Path(sys.argv[1]), sys.argv[2:] == ["early"]
    held: dict[str, str] = {}
    path.touch()
    for line in path.read_text("utf-8").splitlines():
        try:
            name, text = json.loads(line)
        except ValueError:  # it was killed amid this line, and acknowledged nothing
            continue
        held.pop(name, None)
        if text is not None:
            held[name] = text
    n = 0
    with path.open("a", encoding="utf-8") as file:
        for line in sys.stdin:
            row = json.loads(line)
            if "k" in row:
                asked = set(row["text"].split())
                shared = [(-len(asked & set(of.split())), name) for name, of in held.items()]
                hits = [{"id": name, "score": -n} for n, name in sorted(shared) if n]
                say({"id": row["id"], "hits": hits[: row["k"]]})
                continue
            name, text = row.get("put", row.get("drop")), row.get("text")
            held.pop(name, None)
            if text is not None:
                held[name] = text
            n += 1
            if not early or n % 5:
                file.write("\n" + json.dumps([name, text]) + "\n")
                file.flush()
                os.fsync(file.fileno())
            say({})


def say(message: object) -> None:
    """A line, at once."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
