"""The papers' studies as notebooks: executed and rendered to one HTML file without references."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyhybrid.core.checks import check_choice
from pyhybrid.core.errors import InvalidInput, PyhybridError
from pyhybrid.running.tasks import Progress

if TYPE_CHECKING:
    from nbformat import NotebookNode

__all__ = ["SIZES", "NotebookFailed", "find_notebook", "notebook_names", "render_notebook"]

SIZES = ("quick", "paper")
_PACKAGE = Path(__file__).resolve().parent.parent
# No warnings, and no word of rpy2 on the way it was built.
_CALM = {"PYTHONWARNINGS": "ignore", "RPY2_CFFI_MODE": "ABI"}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2, h3 { line-height: 1.25; } h2 { margin-top: 2.5rem; } .anchor-link { display: none; }
pre { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; margin: 0; }
.input_area { background: #f5f6f8; border-left: 3px solid #b8c2cc; padding: .6rem .8rem;
  margin: 1rem 0 .5rem; }
.output_area { margin: .5rem 0; overflow-x: auto; }
.output_stderr pre { color: #8a4b00; } img { max-width: 100%; height: auto; }
table { border-collapse: collapse; border: 0; font-size: 14px; }
th, td { padding: .2rem .7rem; text-align: left; border: 0; border-bottom: 1px solid #ddd;
  vertical-align: top; }
table.numbers thead th, table.numbers td { text-align: right; }
table.words thead th { text-align: left; }
.prompt { display: none; }
.k, .kn, .kc { color: #00507a; font-weight: 600; } .s1, .s2, .sa { color: #7a3e00; }
.c1 { color: #5a6570; font-style: italic; } .mi, .mf { color: #5b2a86; }
@media print { body { max-width: none; margin: 0; } .input_area { break-inside: avoid; } }
"""


class NotebookFailed(PyhybridError):
    """A cell of a notebook raised; the message has the cell and the error."""


def notebook_names() -> list[str]:
    """Names of the notebooks that come with pyhybrid."""
    return sorted(path.stem for path in _folder().glob("*.ipynb"))


def find_notebook(name: str) -> Path:
    """The file of a notebook by its name or its number: ``02_reweighting``, ``2``, ``02``.

    Raises
    ------
    InvalidInput
        For another name.
    """
    names = notebook_names()
    number = name.zfill(2) if name.isdigit() else ""
    named = [each for each in names if each == name or (number and each.startswith(f"{number}_"))]
    if not named:
        raise InvalidInput(f"notebook must be one of {', '.join(names)}: found {name!r}")
    return _folder() / f"{named[0]}.ipynb"


def render_notebook(
    path: str | os.PathLike[str],
    *,
    size: str = "quick",
    progress: Progress | None = None,
) -> str:
    """Execute a notebook in a folder of its own and return it as HTML, images inlined.

    Parameters
    ----------
    path : path
        An .ipynb file.
    size : {"quick", "paper"}
        Of its studies; the notebook reads it from PYHYBRID_SIZE.
    progress : callable, optional
        Called with (name, cells done, cells in all).

    Raises
    ------
    InvalidInput
        For a file that is no notebook, or an unknown size.
    NotebookFailed
        If a cell raises.
    PyhybridError
        If nbconvert, nbclient or ipykernel are missing.
    """
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
        _count_cells(client, source.stem, progress)
        try:
            client.execute(env={**_CALM, **os.environ, "PYHYBRID_SIZE": size})
        except nbclient.exceptions.CellExecutionError as error:
            raise NotebookFailed(f"{source.name}: {error.ename}: {error.evalue}") from None
        except nbclient.exceptions.DeadKernelError as error:
            raise NotebookFailed(f"{source.name}: {error}") from None
    exporter: Any = HTMLExporter(template_name="basic")
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    body, _ = exporter.from_notebook_node(notebook)
    return _page(_title(notebook), _aligned(body))


def _folder() -> Path:
    packaged = _PACKAGE / "notebooks"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "notebooks"


def _count_cells(client: Any, name: str, progress: Progress | None) -> None:
    if progress is None:
        return
    total, done = len(client.nb.cells), iter(range(1, len(client.nb.cells) + 1))
    client.on_cell_complete = lambda **_: progress(name, next(done), total)


def _aligned(body: str) -> str:
    """Mark data frames: those of numbers alone are set to the right, those with words are not."""

    def marked(table: re.Match[str]) -> str:
        words = re.search(r"<td>(?!NaN<|inf<|-inf<)[^<]*[A-Za-z]{2}", table.group())
        kind = "words" if words else "numbers"
        return table.group().replace('class="', f'class="{kind} ', 1)

    return re.sub(r'<table [^>]*class=".*?</table>', marked, body, flags=re.DOTALL)


def _title(notebook: NotebookNode) -> str:
    first = notebook.cells[0].source.splitlines() if notebook.cells else []
    return first[0].lstrip("# ") if first else "Notebook"


def _page(title: str, body: str) -> str:
    from html import escape

    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
