"""The page of docs about notebooks, run by Jupyter's own client in a kernel of its own."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.installed import foreign
from tests.pages import blocks

pytestmark = pytest.mark.slow

PACKAGES = ("ipykernel==7.4.0", "nbclient==0.11.0", "ipywidgets==8.1.8")
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient

book = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(book, timeout=120, kernel_name="python3").execute()
nbformat.write(book, sys.argv[1])
"""


def notebook(sources: list[str]) -> dict[str, Any]:
    """Return a notebook of code cells."""
    cells = [
        {"cell_type": "code", "id": f"cell-{n}", "metadata": {}, "source": text, "outputs": []}
        for n, text in enumerate(sources)
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}


def test_jupyter_runs_the_page_and_shows_its_frames_and_its_figure(tmp_path: Path) -> None:
    page = ROOT / "docs" / "notebook.md"
    sources = [one.text for one in blocks(page) if one.language == "python"]
    path = tmp_path / "page.ipynb"
    path.write_text(json.dumps(notebook(["%matplotlib inline", *sources])))
    python = foreign(tmp_path / "env", *PACKAGES)
    done = subprocess.run(
        [python, "-c", EXECUTE, path],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": f"{python.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    cells = json.loads(path.read_text())["cells"][1:]
    outputs = [one for cell in cells for one in cell["outputs"]]
    shown = [one["data"] for one in outputs if one["output_type"] == "execute_result"]
    assert "moa-lite" in "".join(shown[0]["text/html"])
    assert "image/png" in shown[-1]
    assert len(shown) == len(sources)
