"""WordNet from its own files: the synonyms of an English word.

Reads the database files of the project (wndb(5WN)): ``index.POS`` leads from a lemma to byte
offsets in ``data.POS``, where the words of each sense stand; ``POS.exc`` lists irregular forms and
may be missing. Debian's package wordnet-base, a WordNet distribution and the data of nltk (a folder
or its zip) all hold these files, and nothing else is needed to read them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from retrieval_bench.core.errors import ConfigError, DataError, MissingDependencyError
from retrieval_bench.core.installed.modules import user_path

INSTALL = (
    "apt install wordnet-base (Debian, Ubuntu), or: python -m nltk.downloader wordnet; "
    "or name the folder of its files"
)
"""What to do where there is no WordNet."""

# Parts of speech in the order in which the senses of a word are listed, each with its regular
# endings and what they become (morphy(7WN)).
_PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
        ("men", "man"), ("ies", "y"),
    ),
    "verb": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}  # fmt: skip

_SYSTEM = ("/usr", "/usr/local")

_FILES = tuple(f"{kind}.{part}" for kind in ("index", "data") for part in _PARTS)
_MARKER = re.compile(r"\((?:a|p|ip)\)$")
_HEX = re.compile(rb"[0-9a-fA-F]{2}")
_VERSION = re.compile(rb"WordNet (\d+\.\d+)")
_ACCEPTED = f"a folder (or nltk's wordnet.zip) with {_FILES[0]}, {_FILES[4]} and the other parts"


def find_wordnet(given: str | Path | None = None) -> Path:
    """The folder, or zip, that holds the files of WordNet; nothing is read yet.

    Looked for in ``given`` alone, else where ``WNSEARCHDIR`` and ``WNHOME`` (WordNet's own
    variables) say, in Debian's folder, and in the data folders of nltk (``NLTK_DATA`` first).

    Raises:
        ConfigError: nothing of WordNet in ``given``.
        MissingDependencyError: there is none; the message has the line that installs it.
    """
    if given is not None:
        folder = next((place for place in _within(user_path(given)) if _has_all(place)), None)
        if folder is None:
            raise ConfigError(
                f"no WordNet in {str(given)!r}", where="wordnet", accepted=_ACCEPTED, fix=INSTALL
            )
        return folder
    places = list(dict.fromkeys(_usual_places()))
    for place in places:
        if _has_all(place):
            return place
    raise MissingDependencyError(
        "query expansion needs WordNet, and there is none",
        where="looked at " + ", ".join(str(place) for place in places[:4]) + " and nltk's folders",
        accepted=_ACCEPTED,
        fix=f"{INSTALL}; or switch it off with expansion: false",
    )


class WordNet:
    """The words of each sense, looked up by any form of an English word.

    The index and the senses are held in memory, about 60 MB; may be used by several threads.

    Raises:
        DataError: files that are missing or not as WordNet writes them.
    """

    def __init__(self, place: Path) -> None:
        try:
            files = dict(_read(place))
        except (OSError, BadZipFile) as problem:
            raise _damaged(place, f"cannot be read: {problem}") from None
        missing = [name for name in _FILES if name not in files]
        if missing:
            raise _damaged(place, f"without {', '.join(missing)}")
        self._place = place
        self._index = {part: _lines(files[f"index.{part}"]) for part in _PARTS}
        self._data = {part: files[f"data.{part}"] for part in _PARTS}
        self._irregular = {part: _irregular(files.get(f"{part}.exc", b"")) for part in _PARTS}
        hashed = sha256()
        for name in _FILES:
            hashed.update(files[name])
        self._hash = hashed.hexdigest()

    def synonyms(self, word: str, limit: int) -> list[str]:
        """Return at most ``limit`` other words with a meaning of ``word``, in the order of WordNet:
        nouns, verbs, adjectives, adverbs; of each the frequent senses first.

        Source of the order: WordNet sorts the senses of a word by how often they occur in text that
        was tagged with them.
        """
        asked = word.lower()
        lemmas = {part: self._lemmas(asked.replace(" ", "_"), part) for part in _PARTS}
        known = {asked, *(lemma.replace("_", " ") for of in lemmas.values() for lemma in of)}
        synonyms: list[str] = []
        for part, of_part in lemmas.items():
            for lemma in of_part:
                for name in self._words(lemma, part):
                    if len(synonyms) >= limit:
                        return synonyms
                    if name.lower() not in known:
                        known.add(name.lower())
                        synonyms.append(name)
        return synonyms

    def describe(self) -> dict[str, Any]:
        """Version and hash of the files, for the manifest."""
        version = _VERSION.search(self._data["noun"][:4096])
        return {"version": version[1].decode() if version else None, "sha256": self._hash}

    def _lemmas(self, form: str, part: str) -> list[str]:
        """The entries of the index that ``form`` may be a form of."""
        irregular = self._irregular[part].get(form)
        if irregular is None:
            irregular = [
                form[: -len(end)] + new
                for end, new in _PARTS[part]
                if form.endswith(end) and len(form) > len(end)
            ]
        index = self._index[part]
        return [lemma for lemma in dict.fromkeys([form, *irregular]) if lemma in index]

    def _words(self, lemma: str, part: str) -> Iterator[str]:
        """The words of all senses of ``lemma``."""
        fields = self._index[part][lemma].split()
        try:
            # pos, senses, n pointers, n symbols, senses again, how many are tagged, offsets
            offsets = [int(field) for field in fields[5 + int(fields[2]) :]]
        except (ValueError, IndexError):
            raise self._wrong(f"index.{part}", f"the entry of {lemma!r}") from None
        data = self._data[part]
        for offset in offsets:
            line = data[offset : data.find(b"\n", offset)].split(b" ")
            if len(line) < 4 or line[0] != b"%08d" % offset or not _HEX.fullmatch(line[3]):
                raise self._wrong(f"data.{part}", f"no sense of {lemma!r} at byte {offset}")
            for name in line[4 : 4 + 2 * int(line[3], 16) : 2]:
                yield _MARKER.sub("", name.decode("utf-8", "replace")).replace("_", " ")

    def _wrong(self, name: str, what: str) -> DataError:
        return _damaged(self._place, f"{name}: {what}")


def _lines(index: bytes) -> dict[str, bytes]:
    """Lemma -> the rest of its line; lines that begin with a blank are the licence."""
    entries = (line.partition(b" ") for line in index.splitlines() if line[:1].strip())
    return {lemma.decode("utf-8", "replace"): rest for lemma, _, rest in entries}


def _irregular(exceptions: bytes) -> dict[str, list[str]]:
    rows = (line.split() for line in exceptions.decode("utf-8", "replace").splitlines())
    return {row[0]: row[1:] for row in rows if row}


def _usual_places() -> Iterator[Path]:
    environ = os.environ
    if environ.get("WNSEARCHDIR"):
        yield Path(environ["WNSEARCHDIR"])
    if environ.get("WNHOME"):
        yield Path(environ["WNHOME"]) / "dict"
    yield from (Path(root, "share", "wordnet") for root in _SYSTEM)
    nltk = [Path(root) for root in environ.get("NLTK_DATA", "").split(os.pathsep) if root]
    nltk.append(Path("~/nltk_data").expanduser())
    nltk += [Path(sys.prefix, *inner, "nltk_data") for inner in ((), ("share",), ("lib",))]
    nltk += [Path(root, inner, "nltk_data") for root in _SYSTEM for inner in ("share", "lib")]
    for root in nltk:
        yield root / "corpora" / "wordnet"
        yield root / "corpora" / "wordnet.zip"


def _within(given: Path) -> Iterable[Path]:
    """``given``, and where a distribution or nltk has the files below it."""
    nltk = given / "corpora"
    return (given, given / "dict", nltk / "wordnet", nltk / "wordnet.zip")


def _has_all(place: Path) -> bool:
    try:
        if place.is_file():
            return place.suffix == ".zip"
        return all((place / name).is_file() for name in _FILES)
    except OSError:
        return False


def _read(place: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file of WordNet that is there."""
    names = (*_FILES, *(f"{part}.exc" for part in _PARTS))
    if place.is_dir():
        for name in names:
            if (place / name).is_file():
                yield name, (place / name).read_bytes()
        return
    with ZipFile(place) as archive:
        for member in archive.namelist():
            name = member.rpartition("/")[2]
            if name in names:
                yield name, archive.read(member)


def _damaged(place: Path, what: str) -> DataError:
    return DataError(
        f"WordNet: {what}",
        where=str(place),
        accepted="the files as WordNet's authors published them",
        fix=INSTALL,
    )
