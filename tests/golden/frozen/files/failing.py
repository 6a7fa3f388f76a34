"""A service that refuses the first call of a question, and one question in any case."""

CALLS: list[str] = []


def search(text: str, k: int) -> list[str]:
    """Of the documents of the dataset beside this file."""
    CALLS.append(text)
    if text == "green":
        raise ValueError("cannot")
    if text == "apples" and CALLS.count(text) == 1:
        raise ConnectionError("refused")
    return ["d1"][:k]
