"""Say of each fault, or of those whose names hold the given words, which tests catch it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.mutants.running import copied, judged
from tests.mutants.table import MUTANTS


def main(words: list[str]) -> int:
    """Give 0 where all are caught, 1 where one is not, 2 where there is none of that name."""
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.name for word in words)]
    if not chosen:
        print(
            f"no fault is named {' '.join(words)}; there are:",
            *(m.name for m in MUTANTS),
            sep="\n  ",
        )
        return 2
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        project = copied(Path(folder))
        for mutant in chosen:
            caught = judged(project, mutant)
            missed += len(caught) < 2
            print(f"{'caught' if len(caught) >= 2 else 'MISSED'}  {mutant.name}", flush=True)
            print("".join(f"        {test}\n" for test in caught), end="", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} are caught by two tests or more")
    return int(missed > 0)


sys.exit(main(sys.argv[1:]))
