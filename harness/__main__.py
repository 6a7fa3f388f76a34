"""``python -m harness`` is the command ``retrieval-bench``."""

import sys

from harness.cli.guard import main

sys.exit(main())
