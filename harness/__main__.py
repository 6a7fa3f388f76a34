"""``python -m harness`` is the command ``retrieval-bench``."""

import sys

from harness.cli import command

sys.exit(command())
