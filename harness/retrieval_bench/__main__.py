"""The command `retrieval-bench`, as `python -m retrieval_bench`."""

import sys

from retrieval_bench.cli import command

sys.exit(command())
