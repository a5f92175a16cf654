"""`pyhybrid report` and `pyhybrid open`: the owner's pages of a release."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from pyhybrid.cli.console import note, show
from pyhybrid.cli.options import read_table
from pyhybrid.core.errors import InvalidInput
from pyhybrid.releases.release import Release
from pyhybrid.running.files import check_new_file, write_files

_PAGE = Path("confidential", "report.html")


def report(
    release: Path,
    *,
    data: Path | None = None,
    out: Path | None = None,
    read: list[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Print the path of the report, or write it anew."""
    if data is None:
        show(str(_page_of(release)))
        return
    from pyhybrid.reports.release import release_report

    target = release / _PAGE if out is None else out
    check_new_file(target, overwrite=overwrite, what="report")
    loaded, frame = Release.load(release), read_table(data, read=read).frame
    write_files({target: release_report(loaded, frame, table=data.name)}, private=True)
    show(f"{target}: the report, confidential")


def open(release: Path) -> None:
    """Open the page in a browser."""
    page = _page_of(release)
    if not webbrowser.open(page.resolve().as_uri()):
        note("no browser was found: open the file yourself")
    show(str(page))


def _page_of(release: Path) -> Path:
    page = release / _PAGE
    if not (release / "public").is_dir():
        missing = "is no release" if release.exists() else "does not exist"
        raise InvalidInput(f"{release} must be the folder of a release (--out): it {missing}")
    if not page.is_file():
        how = f"pyhybrid report {release} --data TABLE makes one"
        raise InvalidInput(f"{release} must have a report: it has none; {how}")
    return page
