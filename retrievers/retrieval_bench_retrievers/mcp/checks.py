"""Parameters of the target ``mcp``: which go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.mcp.messages import WHERE


def check_one_place(program: Mapping[str, Any], url: Mapping[str, Any]) -> None:
    """Refuse parameters of a program beside those of a URL."""
    given = [
        [name for name, value in params.items() if value is not None] for params in (program, url)
    ]
    if "command" not in given[0] and "url" not in given[1]:
        what = "neither command nor url"
    elif all(given):
        what = f"{', '.join(given[0])} beside {', '.join(given[1])}"
    else:
        return
    raise ConfigError(
        what,
        where=WHERE,
        accepted="command, and with it cwd and env; or url, and with it headers, ca, verify",
        fix="for example command: [npx, tsx, server.ts], or url: http://localhost:8000/mcp",
    )
