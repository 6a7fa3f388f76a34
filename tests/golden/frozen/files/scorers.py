"""Metric code of a user, which counts a hit as often as it stands in the list."""


def share_found(
    run: dict[str, dict[str, float]], judgements: dict[str, dict[str, int]]
) -> dict[str, float]:
    """Relevant hits over relevant documents, for each query of the run."""
    return {
        query: sum(judgements[query].get(document, 0) > 0 for document in scores)
        / max(1, sum(grade > 0 for grade in judgements[query].values()))
        for query, scores in run.items()
        if query in judgements
    }
