"""Where an engine is: a URI, which may hold a password, and what may be shown of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import ConfigError

EMBEDDED = "embedded"
"""In place of a URI: an engine of the harness's own."""
_SECRET = re.compile("(?i)pass|secret|token|key")


@dataclass(frozen=True, slots=True)
class Address:
    """A URI.

    Attributes:
        uri: as given; never to be shown.
        shown: the same without a password.
        parts: of ``uri``.
    """

    uri: str = field(repr=False)
    shown: str
    parts: SplitResult = field(repr=False)

    @property
    def path(self) -> Path:
        """The folder of an engine in this process; a first part of ``.`` starts at the current
        one."""
        here = f"{self.parts.netloc}/" if self.parts.netloc == "." else ""
        return Path(here + unquote(self.parts.path).removeprefix("/" * bool(here)))

    @property
    def host(self) -> str:
        """The host of a server; empty for a folder."""
        return "" if self.parts.netloc == "." else self.parts.hostname or ""

    @property
    def password(self) -> str | None:
        """The password without URL escapes; None where there is none."""
        return None if self.parts.password is None else unquote(self.parts.password)

    @classmethod
    def embedded(cls, folder: str = "") -> Address:
        """The address of an engine that the harness starts itself, in ``folder`` where it runs in
        this process."""
        return cls(EMBEDDED, EMBEDDED, SplitResult("", "", folder, "", ""))

    @classmethod
    def parse(cls, uri: str, schemes: Sequence[str], where: str) -> Address:
        """Parse ``SCHEME:///FOLDER`` or ``SCHEME://USER:PASSWORD@HOST:PORT/NAME``; the password is
        masked from now on.

        Raises:
            ConfigError: it is none of ``schemes``. The message does not repeat it.
        """
        try:
            parts = urlsplit(uri)
            fit = parts.scheme in schemes and bool(parts.netloc or parts.path.strip("/"))
            fit = fit and _ports_fit(parts) and not _may_hide_a_secret(uri, parts)
        except ValueError:  # no number for a port, a bracket that is not closed
            fit = False
        if not fit:
            named = " or ".join(f"{part}://" for part in schemes)
            raise ConfigError(
                "uri: this is no address of the engine",
                where=where,
                accepted=f"{EMBEDDED}, {named}HOST:PORT, or {schemes[0]}:///FOLDER for an engine "
                "in this process",
                fix="correct the address: a key stands as :KEY@ before the host, and special "
                "characters of a password or a folder are written as %XX",
            )
        shown = _shown(uri, parts)
        if shown != uri:
            secrets.mask(uri, shown)
        if parts.password:
            secrets.mask(unquote(parts.password), "***")
        return cls(uri, shown, parts)


def _ports_fit(parts: SplitResult) -> bool:
    """Whether they are numbers above 0; only PostgreSQL takes several hosts, with one each.

    Raises:
        ValueError: one is no number.
    """
    hosts = parts.netloc.rpartition("@")[2]
    several = hosts.split(",") if parts.scheme.startswith("postgres") else [hosts]
    return all(urlsplit(f"//{host}").port != 0 for host in several)


def _may_hide_a_secret(uri: str, parts: SplitResult) -> bool:
    """Whether a key may stand where nobody looks for one: it would be shown, or taken for a folder.

    Only databases have users without a password, no host, and a query.
    """
    if "#" in uri or (parts.netloc and "@" in f"{parts.path}?{parts.query}"):
        return True
    if parts.scheme.startswith(("postgres", "mysql")):
        return False
    no_host = bool(parts.netloc) and not parts.hostname
    return "?" in uri or no_host or (parts.username is not None and not parts.password)


def _shown(uri: str, parts: SplitResult) -> str:
    """The address with ``***`` for its password, and for those in its query."""
    query = "&".join(
        f"{name}=***" if _SECRET.search(unquote(name)) else f"{name}{sign}{value}"
        for name, sign, value in (pair.partition("=") for pair in parts.query.split("&"))
    )
    user, at, host = parts.netloc.rpartition("@")
    user = f"{user.partition(':')[0]}:***" if parts.password else user
    if (user, query) == (parts.netloc.rpartition("@")[0], parts.query):
        return uri
    return f"{parts.scheme}://{user}{at}{host}{parts.path}{'?' * bool(query)}{query}"
