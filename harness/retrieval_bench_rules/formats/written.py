"""YAML of cases, where a phrase is what is written: ``1.10``, ``12:30`` and ``010`` are no numbers,
though YAML reads them as 1.1, 750 and 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from retrieval_bench.core.config import UniqueKeyLoader

_TAG = "tag:yaml.org,2002:"
_TEXT = f"{_TAG}str"


class _AsWritten(UniqueKeyLoader):
    """Reads a number that prints otherwise than it is written, and a date, as text; filters keep
    their numbers."""

    def get_single_node(self) -> yaml.Node | None:
        """The document, with the tags that texts have."""
        node = super().get_single_node()
        self._read_as_written(node, set())
        return node

    def _read_as_written(self, node: yaml.Node | None, known: set[int]) -> None:
        if node is None or id(node) in known:
            return
        known.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                self._read_as_written(key, known)
                if key.value != "filter":
                    self._read_as_written(value, known)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                self._read_as_written(value, known)
        elif isinstance(node, yaml.ScalarNode) and not self._prints_back(node):
            node.tag = _TEXT

    def _prints_back(self, node: yaml.ScalarNode) -> bool:
        kind = node.tag.removeprefix(_TAG)
        if kind not in ("int", "float"):
            return kind != "timestamp"
        read = self.construct_yaml_int if kind == "int" else self.construct_yaml_float
        try:
            return bool(str(read(node)) == node.value)
        except ValueError:
            return False


def first_lines(text: str, names: Sequence[str]) -> list[int]:
    """The lines, from 1, in which the entries of a list begin: of the document, or of the one that
    stands in it under one of ``names``."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if isinstance(root, yaml.MappingNode):
        lists = [value for key, value in root.value if key.value in names]
        root = next((value for value in lists if isinstance(value, yaml.SequenceNode)), None)
    entries = root.value if isinstance(root, yaml.SequenceNode) else ()
    return [entry.start_mark.line + 1 for entry in entries]


def parse_as_written(text: str) -> Any:
    """The value of a YAML document.

    Raises:
        yaml.YAMLError: and others of ``YAML_FAULTS``: it is none.
    """
    return yaml.load(text, Loader=_AsWritten)
