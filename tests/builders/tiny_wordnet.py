"""WordNet's files with a handful of senses, written as the real ones are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

Senses = Mapping[str, Sequence[Sequence[str]]]
"""Part of speech -> senses in the order of their frequency, each a list of words."""

SENSES: Senses = {
    "noun": [
        ["car", "auto", "automobile", "motorcar"],
        ["car", "railcar"],
        ["doctor", "physician", "MD"],
        ["goose"],
        ["fathead", "goose", "twat"],
        ["doctor", "Dr."],
        ["policeman", "officer"],
        ["new_world", "western_hemisphere"],
    ],
    "verb": [["run", "scat"], ["operate", "run"]],
    "adj": [["galore(ip)", "abundant"], ["good", "beneficial(a)"]],
    "adv": [["well", "good"]],
}

_TYPES = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_LICENCE = b"  1 This is a tiny WordNet 9.9 for tests, in the layout of the real one.  \n"


def write_wordnet(folder: Path, senses: Senses = SENSES) -> Path:
    """The files in ``folder``, with the irregular noun ``geese``; gives the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, kind in _TYPES.items():
        data = bytearray(_LICENCE)
        offsets: dict[str, list[int]] = {}
        for words in senses.get(part, ()):
            for word in words:
                offsets.setdefault(word.partition("(")[0].lower(), []).append(len(data))
            listed = " ".join(f"{word} 0" for word in words)
            line = f"{len(data):08d} 03 {kind} {len(words):02x} {listed} 001 @ 00000000 {kind} 0000"
            data += f"{line} | a meaning  \n".encode()
        index = bytearray(_LICENCE)
        for lemma, at in sorted(offsets.items()):
            places = " ".join(f"{offset:08d}" for offset in at)
            index += f"{lemma} {kind} {len(at)} 2 @ ~ {len(at)} 1 {places}  \n".encode()
        (folder / f"data.{part}").write_bytes(data)
        (folder / f"index.{part}").write_bytes(index)
    (folder / "noun.exc").write_text("geese goose\n", encoding="utf-8")
    return folder
