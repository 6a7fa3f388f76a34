"""The command ``fetch``: the only one that downloads a dataset, after it has told what that is."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import BAD_INPUT, OK, output_kept_clean, say, show
from retrieval_bench.cli.options import SPLIT, command

_FETCH = f"""
dataset, --dataset ir_datasets:NAME [needed]  a name of ir_datasets, such as
    ir_datasets:beir/scifact/test
{SPLIT}
--download  fetch it; without, nothing is downloaded
"""


@command(_FETCH)
def run_fetch(options: argparse.Namespace) -> int:
    """Get a dataset of ir_datasets onto this machine."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench_exchange.formats.irds import (
        PREFIX,
        Fetched,
        irds_facts,
        is_irds,
        licence_text,
        load_irds,
        size_text,
    )
    from retrieval_bench_exchange.tables.export import fetch_tables

    if not is_irds(options.dataset):
        raise ConfigError(
            f"dataset {options.dataset!r}",
            where="--dataset",
            accepted=f"{PREFIX}NAME, such as {PREFIX}beir/scifact/test",
            fix="other datasets are folders: nothing is to be fetched",
        )
    facts = irds_facts(options.dataset, options.split)
    wanted = options.download and not facts.complete
    if wanted and facts.missing:
        source, licence = ", ".join(facts.missing), licence_text(facts)
        say(f"fetching {size_text(facts)} from {source}; licence: {licence}")
    fingerprint = None
    if wanted or facts.complete:
        with output_kept_clean():
            data = load_irds(options.dataset, options.split, download=wanted)
        fingerprint = data.fingerprint
    document = Fetched(facts, wanted, fingerprint)
    show(options, document, lambda: fetch_tables(facts, fingerprint, fetched=wanted))
    if fingerprint is None:
        if facts.missing:
            say("retrieval-bench: nothing was fetched: add --download to do it")
        if facts.by_hand:
            say("retrieval-bench: nobody may hand on the files to put in place: see the page")
        return BAD_INPUT
    return OK
