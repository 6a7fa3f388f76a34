"""One grade of a pair from what several people, models and datasets said of it.

People come before datasets, datasets before models: a model's label counts only where nobody else
said anything. Of several people the grade that most of them gave counts; where there is none, the
middle one, of two middle ones the lower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from retrieval_bench.core.as_json.document import plain
from retrieval_bench.core.errors import counted
from retrieval_bench_labels.label import Kind, Label, Pair

ORDER = (Kind.PERSON, Kind.DATASET, Kind.MODEL)
"""Whose word counts before whose."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The grade of a pair.

    Attributes:
        grade: how relevant the document is.
        kind: of those whose word it is.
        who: their names.
        given: the grades that they gave, in the order of ``who``.
    """

    grade: int
    kind: Kind
    who: tuple[str, ...]
    given: tuple[int, ...]

    @property
    def disputed(self) -> bool:
        """True if two of them differ and no third has settled it."""
        return len(set(self.given)) > 1 and len(self.given) < 3


def by_people(labels: Iterable[Label]) -> list[Label]:
    """The labels that verdicts rest on, people's and the dataset's. A model's stand beside them:
    nothing in them says how wrong they are."""
    return [label for label in labels if label.kind is not Kind.MODEL]


def settled(labels: Iterable[Label]) -> dict[Pair, Settled]:
    """The grade of each pair that anyone graded, in the order of their first labels."""
    of_pairs: dict[Pair, list[Label]] = {}
    for label in labels:
        if label.grade is not None:
            of_pairs.setdefault(label.pair, []).append(label)
    return {pair: _settled(said) for pair, said in of_pairs.items()}


def _settled(said: list[Label]) -> Settled:
    # As nearly all are, and all are settled anew for each question that is asked.
    if len(said) == 1 and (only := said[0].grade) is not None:
        return Settled(only, said[0].kind, (said[0].who,), (only,))
    kind = next(kind for kind in ORDER if any(label.kind is kind for label in said))
    own = [label for label in said if label.kind is kind]
    given = tuple(label.grade for label in own if label.grade is not None)
    grade, times = Counter(sorted(given)).most_common(1)[0]
    if 2 * times <= len(given):
        grade = sorted(given)[(len(given) - 1) // 2]
    return Settled(grade, kind, tuple(label.who for label in own), given)


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """One judge.

    Attributes:
        kind: "person", "model" or "dataset".
        judgements: that count.
    """

    kind: str
    judgements: int


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose judgements figures rest on.

    Attributes:
        judges: name -> kind and how many pairs have their grade from there.
    """

    judges: Mapping[str, tuple[Kind, int]]

    @classmethod
    def of(cls, grades: Iterable[Settled]) -> Whose:
        """Of settled grades; a pair that several people graded is counted for each of them."""
        counts = Counter((who, grade.kind) for grade in grades for who in grade.who)
        ranked = sorted(counts.items(), key=lambda item: (ORDER.index(item[0][1]), -item[1]))
        return cls({who: (kind, n) for (who, kind), n in ranked})

    @property
    def mixed(self) -> bool:
        """True if they are of several kinds."""
        return len({kind for kind, _ in self.judges.values()}) > 1

    @property
    def sentence(self) -> str:
        """Such as "Judged by anna (person, 120 judgements) and gpt (model, 31 judgements)."."""
        if not self.judges:
            return "Nothing is judged."
        parts = [
            f"{who} ({kind.value}, {counted(n, 'judgement')})"
            for who, (kind, n) in self.judges.items()
        ]
        listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
        return f"Judged by {listed}."

    def as_dict(self) -> dict[str, JudgedBy]:
        """Name -> kind and number of judgements."""
        judges = {who: JudgedBy(kind.value, n) for who, (kind, n) in self.judges.items()}
        return dict(plain(judges))
