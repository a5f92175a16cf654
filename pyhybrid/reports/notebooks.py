"""The papers' studies as notebooks: executed and rendered to one HTML file without references."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from base64 import b64decode
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from pyhybrid.core.checks import check_choice
from pyhybrid.core.errors import InvalidInput, PyhybridError
from pyhybrid.reports.page import filled
from pyhybrid.running.tasks import Progress

SIZES = ("quick", "paper")
_PACKAGE = Path(__file__).resolve().parent.parent
# No warnings, and no word of rpy2 on the way it was built.
_CALM = {"PYTHONWARNINGS": "ignore", "RPY2_CFFI_MODE": "ABI"}


class NotebookFailed(PyhybridError):
    """A cell of a notebook raised; the message has the cell and the error."""


def notebook_names() -> list[str]:
    """Names of the notebooks that come with pyhybrid."""
    return sorted(path.stem for path in _folder().glob("*.ipynb"))


def find_notebook(name: str) -> Path:
    """The file of a notebook by its name or its number: ``02_reweighting``, ``2``, ``02``."""
    names = notebook_names()
    numbers = {each[:2].lstrip("0"): each for each in names}
    named = check_choice(numbers.get(name.lstrip("0"), name), "notebook", names)
    return _folder() / f"{named}.ipynb"


def render_notebook(
    path: str | os.PathLike[str], *, size: str = "quick", progress: Progress | None = None
) -> str:
    """Execute a notebook in a folder of its own and return it as HTML, images inlined. It reads the
    `size` of its studies from PYHYBRID_SIZE; `progress` counts its cells."""
    check_choice(size, "size", SIZES)
    try:
        import nbclient
        import nbformat
        from nbconvert import HTMLExporter
    except ImportError as error:
        raise PyhybridError(
            f"notebooks need the extra 'report' ({error}): pip install 'pyhybrid[report]'"
        ) from None
    source = Path(path)
    try:
        notebook = nbformat.read(source, as_version=4)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{source} must be a notebook: {error}") from None
    with tempfile.TemporaryDirectory(prefix="pyhybrid-") as folder:
        client = nbclient.NotebookClient(
            notebook, timeout=None, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        manager = client.create_kernel_manager()
        manager.transport, manager.ip = "ipc", f"{folder}/kernel"  # no open port
        if progress is not None:
            total, done = len(notebook.cells), iter(range(1, len(notebook.cells) + 1))
            client.on_cell_complete = lambda **_: progress(source.stem, next(done), total)
        failures = nbclient.exceptions.CellExecutionError, nbclient.exceptions.DeadKernelError
        try:
            client.execute(env={**_CALM, **os.environ, "PYHYBRID_SIZE": size})
        except failures as error:
            why = f"{error.ename}: {error.evalue}" if isinstance(error, failures[0]) else error
            raise NotebookFailed(f"{source.name}: {why}") from None
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if png := output.get("data", {}).get("image/png"):
                alt = cell.metadata.get("alt", source.stem)
                words = Image.open(BytesIO(b64decode(png))).info.get("Description", alt)
                output.metadata["image/png"] = {"alt": words}
    exporter: Any = HTMLExporter(template_name="basic")
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    body, _ = exporter.from_notebook_node(notebook)
    first = notebook.cells[0].source.splitlines() if notebook.cells else []
    title = first[0].lstrip("# ") if first else "Notebook"
    return filled("notebook_template.html", title=title, body=body, cells=digest(notebook.cells))


def digest(cells: Iterable[Mapping[str, Any]]) -> str:
    """The sha256 of the cells' sources, by which a page is known to be that of its notebook."""
    sources = ["".join(cell["source"]) for cell in cells]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def _folder() -> Path:
    packaged = _PACKAGE / "notebooks"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "notebooks"
