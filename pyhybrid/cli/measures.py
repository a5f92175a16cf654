"""`pyhybrid utility` and `risk`: synthetic data from anywhere against the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.markup import escape

from pyhybrid.cli import options as opt
from pyhybrid.cli.console import frame_table, note, progress_bars, show
from pyhybrid.cli.options import check_once, names_of, read_table
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures import MEASURES, risk_summary, utility_summary
from pyhybrid.measures.summaries import RiskSummary, UtilitySummary
from pyhybrid.running.files import check_new_file, write_files


def utility(
    real: Path,
    synthetic: list[Path],
    *,
    columns: list[str] | None = None,
    categorical: list[str] | None = None,
    formula: list[str] | None = None,
    model: str = "ols",
    rule: str | None = None,
    permutations: int = 20,
    weights: str | None = None,
    seed: int = 1,
    html: Path | None = None,
    read: list[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Compute the summary, and show, write or print it."""
    if html is not None:
        check_new_file(html, overwrite=overwrite)
    data, sets = read_table(real, read=read).frame, _read_sets(synthetic, read)
    compared = None if columns is None else names_of(columns, data)
    if compared is None:  # a release may have dropped some
        shared = [str(name) for name, column in data.items()
                  if column.notna().any() and all(name in table for table in sets)]  # fmt: skip
        gone = [str(name) for name in data if str(name) not in shared]
        if gone and shared:
            what = "not compared, as they have no values, or not all sets have them"
            note(f"{what}: {', '.join(gone)}")
            compared = shared
    with progress_bars() as progress:
        summary = utility_summary(
            data, sets, columns=compared, categorical=names_of(categorical, data),
            formulas=formula or (), model=model, rule=rule, n_permutations=permutations,
            weights=weights, rng=seed, progress=progress,
        )  # fmt: skip
    _finish("Utility", summary, (real, data), html, overwrite)


def risk(
    real: Path,
    synthetic: list[Path],
    *,
    key: list[str],
    sensitive: list[str] | None = None,
    holdout: Path | None = None,
    rows_correspond: bool | None = None,
    html: Path | None = None,
    read: list[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Compute the summary, and show, write or print it."""
    if html is not None:
        check_new_file(html, overwrite=overwrite)
    data, sets = read_table(real, read=read).frame, _read_sets(synthetic, read)
    keys = read_keys(key, "--key", data.columns)
    hidden = read_keys(sensitive or (), "--sensitive", data.columns)
    summary = risk_summary(
        data, sets, keys=list(keys), rows_correspond=rows_correspond,
        kind={name: of["kind"] for name, of in {**keys, **hidden}.items() if "kind" in of},
        radius={name: of["radius"] for name, of in keys.items() if "radius" in of},
        sensitive={column: of.get("radius") for column, of in hidden.items()},
        holdout=None if holdout is None else read_table(holdout, read=read).frame,
    )  # fmt: skip
    _finish("Disclosure risk", summary, (real, data), html, overwrite)


def read_keys(
    given: Sequence[str], option_name: str, columns: Iterable[Any]
) -> dict[str, dict[str, Any]]:
    """Columns and their settings, of an option that may be repeated: ``COLUMN``, or
    ``COLUMN:radius=2,kind=relative``, or several without settings and with commas between."""
    known, keys = list(columns), []
    for text in given:
        name, _, rest = text.rpartition(":")
        settings: dict[str, Any] = dict(opt.pairs(rest)) if "=" in rest else {}
        unknown = settings.keys() - {"radius", "kind"}
        if unknown:
            found = min(unknown)
            raise InvalidInput(f"{option_name} {text!r} takes radius and kind: found {found!r}")
        if "radius" in settings:
            what = f"radius of {option_name} {name!r}"
            settings["radius"] = opt.converted(settings["radius"], float, what)
        names = [name] if settings else names_of([text], known)  # which may hold a colon
        keys += [(column, settings) for column in names]
    check_once([column for column, _ in keys], option_name)
    return dict(keys)


def _read_sets(paths: Sequence[Path], read: Sequence[str] | None) -> list[pd.DataFrame]:
    """The synthetic sets; a folder stands for those of a release."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = path / "public" if (path / "public").is_dir() else path
        sets = [file for file in inside.glob("synthetic_*") if file.suffix in (".csv", ".parquet")]
        if not sets:
            raise InvalidInput(f"{path} must be a file or a release: it has no synthetic_*.csv")
        files += sorted(sets, key=lambda file: (len(file.name), file.name))
    return [read_table(path, read=read).frame for path in files]


def _finish(
    title: str,
    summary: UtilitySummary | RiskSummary,
    table: tuple[Path, pd.DataFrame],
    html: Path | None,
    overwrite: bool,
) -> None:
    """Write the page if it is asked for, and show the numbers with their definitions."""
    from pyhybrid.reports.measures import risk_report, utility_report
    from pyhybrid.reports.page import facts_of_table
    from pyhybrid.reports.verdicts import Judged

    if html is not None:
        page: Any = utility_report if isinstance(summary, UtilitySummary) else risk_report
        text = page(summary, facts_of_table(table[0].name, *table[1].shape))
        write_files({html: text}, private=True, overwrite=overwrite)
    judged = [Judged(name, value) for name, value in summary.overall().items()]
    rows = [(measure.label, measure.value) for measure in judged]
    shown = pd.DataFrame(rows, columns=["measure", "synthetic"])
    show(frame_table(f"{title} (confidential)", shown), "")
    for key in dict.fromkeys(measure.measure.split(",")[0] for measure in judged):
        about = MEASURES[key]
        direction = f"{about.direction.capitalize()}. Range: {about.range}."
        show(escape(f"{about.title}: {about.definition} {direction}"))
    if html is not None:
        show(f"written: {escape(str(html))} (confidential)")
    show(
        "CONFIDENTIAL: every number here was computed from the confidential data and is covered by "
        "no epsilon; publish none of it."
    )
