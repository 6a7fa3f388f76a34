"""Unanswerable queries: was nothing returned where nothing should be?

"Abstain" (an empty list) is the positive class, a query that no document answers is where it is
right. The order in which queries are given changes nothing. What other programs returned is looked
at in :mod:`retrieval_bench_score.outcomes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from retrieval_bench.core.as_json.document import Documented


@dataclass(frozen=True, slots=True)
class Abstention(Documented):
    """Counts of right and wrong empty lists, and what follows from them.

    Attributes:
        true_empty: unanswerable, empty list.
        false_empty: answerable, empty list.
        false_return: unanswerable, hits.
        true_return: answerable, hits (of any quality).
    """

    KEYS = (
        "n_answerable n_unanswerable true_empty false_empty false_return true_return precision "
        "recall f1 undefined"
    )

    true_empty: int
    false_empty: int
    false_return: int
    true_return: int

    @property
    def n_answerable(self) -> int:
        """Queries that some document answers."""
        return self.false_empty + self.true_return

    @property
    def n_unanswerable(self) -> int:
        """Queries that no document answers."""
        return self.true_empty + self.false_return

    @property
    def precision(self) -> float | None:
        """The precision of the empty lists, the share that is right; None when there is no empty
        list."""
        return _ratio(self.true_empty, self.true_empty + self.false_empty)

    @property
    def recall(self) -> float | None:
        """The recall of the unanswerable queries, the share with an empty list; None when there are
        none."""
        return _ratio(self.true_empty, self.n_unanswerable)

    @property
    def f1(self) -> float | None:
        """2 TE / (2 TE + FE + FR): the harmonic mean of precision and recall, and 0 where only
        wrong decisions were made; None when there is neither an empty list nor a query that needs
        one."""
        return _ratio(
            2 * self.true_empty, 2 * self.true_empty + self.false_empty + self.false_return
        )

    @property
    def undefined(self) -> Mapping[str, str]:
        """The reason why a figure is None, by its name."""
        no_list, no_query = "no empty list", "0 unanswerable queries"
        reasons = {
            "precision": (self.precision, no_list),
            "recall": (self.recall, no_query),
            "f1": (self.f1, f"{no_query}, {no_list}"),
        }
        return {name: f"not defined: {why}" for name, (v, why) in reasons.items() if v is None}


def abstention(answerable: ArrayLike, returned: ArrayLike) -> Abstention:
    """Count right and wrong empty lists.

    Args:
        answerable: bool (queries,), whether some document answers.
        returned: int (queries,), number of hits.
    """
    right = np.asarray(answerable, dtype=bool)
    empty = np.asarray(returned) == 0
    return Abstention(
        true_empty=int(np.count_nonzero(empty & ~right)),
        false_empty=int(np.count_nonzero(empty & right)),
        false_return=int(np.count_nonzero(~empty & ~right)),
        true_return=int(np.count_nonzero(~empty & right)),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
