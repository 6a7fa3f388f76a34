"""Rules as ``doctor`` sees them: how many there are, and which of them nothing can meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Dataset, Ranking
from retrieval_bench_rules.facts import beyond, few
from retrieval_bench_rules.matching import forms
from retrieval_bench_rules.metrics import DEFINED
from retrieval_bench_rules.rules import Rule


def look_at_rules(
    data: Dataset, k: int, answers: Iterable[Ranking | None]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Facts on the rules of a dataset, and warnings; where there is a corpus, every rule is held
    against documents until one meets it.

    Args:
        k: hits that are asked for.
        answers: to some queries.
    """
    rules: dict[str, Sequence[Rule]] = {
        query.id: data.qrels[query.id].rules  # type: ignore[attr-defined]
        for query in data.evaluated
    }
    slots = [rule for of in rules.values() for rule in of if not rule.forbidden]
    bans = [rule for of in rules.values() for rule in of if rule.forbidden]
    early = sum(rule.within is not None for rule in slots)
    facts = [
        f"Truth is by rule: {counted(len(slots), 'slot')} to fill"
        + f", {early:,} of them at an early rank" * bool(early)
        + f"; {counted(len(bans), 'rule')} for what must not come" * bool(bans)
        + ".",
        f"Defined are {', '.join(DEFINED)}; nDCG, AP and others need documents that are judged.",
    ]
    warnings = beyond(rules, k)
    nothing = [query_id for query_id, of in rules.items() if all(rule.forbidden for rule in of)]
    if nothing:
        warnings.append(
            f"{counted(len(nothing), 'query')} with `forbid` and no `expect` ({few(nothing)}): "
            "SlotR, AllSlots, Success and RR count 0 for each of them. Say what must come, or give "
            "such queries a split of their own."
        )
    never = [f"{query_id}: {r.label}" for query_id, of in rules.items() for r in of if r.never]
    if never:
        warnings.append(
            f"{counted(len(never), 'rule')} that no text can meet: {few(never)}. White space of "
            "any kind is one blank in texts: write one blank."
        )
    unmet, harmless = _unmet(data, rules)
    if harmless:
        facts.append(
            f"{counted(len(harmless), 'rule')} of `forbid` that no document of the corpus meets: "
            f"{few(harmless)}. That may be what is wanted; if not, look at the spelling."
        )
    if unmet:
        warnings.append(
            f"{counted(len(unmet), 'rule')} that no document of the corpus meets, by its text and "
            f"its id: {few(unmet)}. Look at the spelling; where a retriever returns texts or "
            "sources of its own, those decide."
        )
    if data.documents is None and any(rule.reads_text for rule in (*slots, *bans)):
        facts.append("There is no corpus: phrases are looked for in the texts that hits come with.")
        came = [answer for answer in answers if answer]
        if came and not any(text is not None for answer in came for text in answer.texts or ()):
            warnings.append(
                "No hit of these answers came with a text: no phrase can be looked for. Let the "
                "retriever return texts, or name the documents in dataset.yaml."
            )
    return tuple(facts), tuple(warnings)


def _unmet(data: Dataset, rules: Mapping[str, Sequence[Rule]]) -> tuple[list[str], list[str]]:
    """The slots that no document can fill, with their queries, and what must not come and cannot;
    none without a corpus."""
    if data.documents is None:
        return [], []
    of_rule: dict[Rule, list[str]] = {}
    for query_id, of in rules.items():
        for rule in of:
            of_rule.setdefault(rule, []).append(query_id)
    open_ = list(of_rule)
    for document in data.documents:
        if not open_:
            break
        text = forms(document.contents)
        open_ = [rule for rule in open_ if not rule.holds(document.id, document.id, text)]
    slots, bans = (
        sorted(f"{query_id}: {rule.label}" for rule in of for query_id in of_rule[rule])
        for of in ([r for r in open_ if not r.forbidden], [r for r in open_ if r.forbidden])
    )
    return slots, bans
