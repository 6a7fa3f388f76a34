"""The notebook of the guide runs from top to bottom, in Jupyter."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders.guide import guide_file

ROOT = Path(__file__).parents[2]
NOTEBOOK = guide_file("which-retriever.ipynb")


def test_it_is_kept_without_outputs_and_its_cells_are_python() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert not [cell for cell in cells if cell.get("outputs")]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 5
    for cell in code:
        compile(cell, NOTEBOOK.name, "exec")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.dense
@pytest.mark.needs("nbformat", "nbclient", "ipykernel")
def test_it_runs_from_top_to_bottom(tmp_path: Path) -> None:
    import nbclient
    import nbformat

    copy = tmp_path / NOTEBOOK.name
    shutil.copyfile(NOTEBOOK, copy)
    read: Any = nbformat.read  # without types where it is installed
    notebook = read(copy, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [
        kind
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        for kind in output.get("data", {})
    ]
    assert {"text/html", "image/svg+xml"} <= set(shown)
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "means.csv").is_file()
    texts = [o.get("text", "") for c in notebook.cells for o in c.get("outputs", ())]
    assert any(text.startswith("Use dense-light") for text in texts)
