"""The command ``label start``: judging on a page of this machine, or as one file."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from retrieval_bench.cli.console import OK, put, put_document, say
from retrieval_bench.cli.options import command
from retrieval_bench_labels.commands.label import LABELS_FILE, opened

if TYPE_CHECKING:
    from retrieval_bench_labels.judge.judging import Judging
    from retrieval_bench_labels.judge.server import LabelServer


_START = f"""
{LABELS_FILE}
--who NAME  who judges (default: your login name; the page asks)
--offline FILE  write the page with its documents as one HTML file, for somebody who is not here;
    `label import` reads what it saves
--port N  of the loopback address (default: that of the last time)
--no-browser  print the URL only, and open no browser
"""


@command(_START)
def run_start(options: argparse.Namespace) -> int:
    """Judge, one document after the other."""
    from retrieval_bench_labels.judge.judging import Judging, checked_name

    judging = Judging(opened(options))
    if options.offline is not None and options.who is None:
        return _write(options, judging, "")  # somebody else opens it
    who = checked_name(options.who) if options.who is not None else _login()
    judging.check_person(who)
    if options.offline is not None:
        return _write(options, judging, who)
    return _serve(options, judging, who)


def _login() -> str:
    """The login name, empty where there is none that can be used."""
    import getpass

    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench_labels.judge.judging import checked_name

    try:
        return checked_name(getpass.getuser())
    except (OSError, KeyError, ImportError, ConfigError):
        return ""


def _write(options: argparse.Namespace, judging: Judging, who: str) -> int:
    from retrieval_bench.reports.file import check_place, write_page
    from retrieval_bench_labels.judge.offline import OfflinePage, offline_page

    check_place(options.offline, "page")
    write_page(options.offline, offline_page(judging.pool, judging.store, who), "page")
    if options.format == "json":
        put_document(OfflinePage(str(options.offline), who))
        return OK
    put(
        f"{options.offline} holds the page for {who or 'whoever opens it'}. It needs no network.\n"
        "next:  retrieval-bench label import FILE, with the file that the page saves\n"
    )
    return OK


def _serve(options: argparse.Namespace, judging: Judging, who: str) -> int:
    from retrieval_bench_labels.judge.judging import progress_sentence
    from retrieval_bench_labels.judge.server import open_server

    server = open_server(judging, options.port, who, tell=_told)
    with server, _terminated_as_interrupted(), suppress(KeyboardInterrupt):  # how this ends
        _announce(options, server)
        server.serve_forever()
    if options.format != "json" and not options.quiet:
        progress = progress_sentence(judging.progress(who))
        put(f"\nEvery answer is kept. {progress}\nnext:  retrieval-bench label status\n")
    return OK


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """`kill` ends it as Ctrl-C does; only the main thread is told."""
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _told(text: str) -> None:
    say(f"retrieval-bench: {text}")


def _announce(options: argparse.Namespace, server: LabelServer) -> None:
    from retrieval_bench_labels.judge.judging import progress_sentence
    from retrieval_bench_labels.judge.server import ServedPage

    if options.format == "json":
        put_document(ServedPage(server.url, server.port))
    elif options.quiet:
        put(f"{server.url}\n")
    else:
        put(
            f"Judge here: {server.url}\n"
            f"  {progress_sentence(server.judging.progress())}\n"
            "  i  Only this machine can open it, and only with the whole URL.\n"
            "  i  Each answer is saved at once; a question counts once all of its documents are\n"
            "     judged. Stop with Ctrl-C.\n"
        )
    if not options.no_browser and _has_display():
        _open(server.url)


def _open(url: str) -> None:
    """Open a browser, unless it is one that would take the terminal."""
    import webbrowser

    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        if type(browser) is not webbrowser.GenericBrowser:
            browser.open(url)


def _has_display() -> bool:
    """Return whether somebody sits here who would see a browser."""
    if sys.stdout is None or not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ:
        return False
    return sys.platform in ("win32", "darwin") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
