"""`pyhybrid utility` and `risk`: synthetic data from anywhere against the data."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import check_outputs, note, progress_bars, show, table_of
from pyhybrid.cli.options import check_once, names_of, options
from pyhybrid.cli.tables import read_table
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures import MEASURES, risk_summary, utility_summary
from pyhybrid.measures.summaries import as_dict
from pyhybrid.running.files import write_files
from pyhybrid.running.tasks import named_progress

_NOTE = (
    "CONFIDENTIAL: every number here was computed from the confidential data and is covered by no "
    "epsilon; publish none of it."
)


@options
def utility(
    real: Path,
    synthetic: list[Path],
    versus: list[Path] | None = None,
    columns: list[str] | None = None,
    categorical: list[str] | None = None,
    formula: list[str] | None = None,
    model: str = "ols",
    rule: str | None = None,
    interactions: bool = False,
    permutations: int = 20,
    weights: str | None = None,
    seed: int = 1,
    json_out: str | None = None,
    html: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Measure the utility of synthetic data from anywhere: pMSE, ECDFs, models. Confidential.

    Options:
    columns: Columns to compare; with commas between, repeatable. [default: all]
    categorical: Columns of numbers that are codes; with commas between, repeatable.
    formula: An analyst's model, e.g. 'income ~ age + C(region)'; repeatable.
    model: Model of statsmodels: ols, logit, poisson, negativebinomial, ...
    rule: partially_synthetic, fully_synthetic, multiple_imputation or single.
        [default: partially_synthetic; single for one set]
    interactions: Include products of columns in the logistic pMSE.
    permutations: Permutations for the null expectation of CART.
    weights: Column of survey weights.
    seed: Seed of resamples and permutations.
    overwrite: Replace files that exist.
    """
    check_outputs(json_out, html, overwrite=overwrite)
    data, versions = _read_versions(real, synthetic, versus or ())
    compared = _shared(data, versions) if columns is None else names_of(columns, data)
    with progress_bars() as progress:
        found = {
            name: utility_summary(
                data,
                sets,
                columns=compared,
                categorical=names_of(categorical, data),
                formulas=formula or (),
                model=model,
                rule=rule,
                interactions=interactions,
                n_permutations=permutations,
                weights=weights,
                rng=seed,
                progress=named_progress(progress, name) if len(versions) > 1 else progress,
            )
            for name, sets in versions.items()
        }
    table = real.name, data
    _finish("utility", found, json_out, html, overwrite, table)


def _shared(data: pd.DataFrame, versions: Mapping[str, list[pd.DataFrame]]) -> list[str] | None:
    """Columns with values in the data that all sets have, as a release may have dropped some; None
    if these are all."""
    tables = [data, *(each for own in versions.values() for each in own)]
    gone = [name for name in data.columns if data[name].isna().all()
            or not all(name in each.columns for each in tables)]  # fmt: skip
    left = [str(name) for name in data.columns if name not in gone]
    if not gone or not left:
        return None
    note(f"not compared, as they have no values, or not all sets have them: {', '.join(gone)}")
    return left


@options
def risk(
    real: Path,
    synthetic: list[Path],
    key: list[str],
    sensitive: list[str] | None = None,
    holdout: Path | None = None,
    rows_correspond: bool | None = None,
    versus: list[Path] | None = None,
    json_out: str | None = None,
    html: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Measure the disclosure risk of synthetic data from anywhere, by matching. Confidential.

    Options:
    key: Columns that the intruder knows: sex,region or age:radius=2; a radius that is a share of
        the value is followed by ,kind=relative; repeatable.
    sensitive: Columns that the intruder wants to learn: voted,sex or income:radius=1000;
        repeatable.
    holdout: Records that were not used for the synthesis, to compare.
    rows_correspond: Row i of a set is the synthetic version of row i of REAL.
        [default: if a column is the same in every row]
    overwrite: Replace files that exist.
    """
    check_outputs(json_out, html, overwrite=overwrite)
    data, versions = _read_versions(real, synthetic, versus or ())
    named = read_keys(key, "--key", data.columns)
    hidden = read_keys(sensitive or (), "--sensitive", data.columns)
    check_once([name for name, _ in named], "--key")
    outside = None if holdout is None else read_table(holdout).frame
    found = {
        name: risk_summary(
            data,
            sets,
            keys=[name for name, _ in named],
            radius={name: settings["radius"] for name, settings in named if "radius" in settings},
            kind={name: own["kind"] for name, own in [*named, *hidden] if "kind" in own},
            sensitive={column: settings.get("radius") for column, settings in hidden},
            holdout=outside,
            rows_correspond=rows_correspond,
        )
        for name, sets in versions.items()
    }
    _finish("risk", found, json_out, html, overwrite, (real.name, data))


def read_keys(
    given: Sequence[str], option: str, columns: Iterable[Any]
) -> list[tuple[str, dict[str, Any]]]:
    """Columns and their settings, of an option that may be repeated: one of each, or several
    without settings and with commas between."""
    known = list(columns)
    texts = [[text] if "=" in text else names_of([text], known) for text in given]
    return [parse_key(name, option) for own in texts for name in own]


def parse_key(text: str, option: str) -> tuple[str, dict[str, Any]]:
    """Column and settings of ``COLUMN`` or ``COLUMN:radius=2,kind=relative``."""
    name, _, rest = text.rpartition(":")
    if "=" not in rest:  # a column may have a colon in its name
        name, rest = text, ""
    settings: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in ("radius", "kind"):
            raise InvalidInput(f"{option} {text!r} takes radius and kind: found {key!r}")
        try:
            settings[key] = float(value) if key == "radius" else value
        except ValueError:
            raise InvalidInput(
                f"radius of {option} {name!r} must be a number: found {value!r}"
            ) from None
    return name, settings


def _read_versions(
    real: Path, synthetic: Sequence[Path], versus: Sequence[Path]
) -> tuple[pd.DataFrame, dict[str, list[pd.DataFrame]]]:
    """The data, and the sets of each version; a folder stands for the sets of a release."""
    versions = {
        name: [read_table(path).frame for path in _sets(paths)]
        for name, paths in {"synthetic": synthetic, "versus": versus}.items()
        if paths
    }
    return read_table(real).frame, versions


def _sets(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = path / "public" if (path / "public").is_dir() else path
        sets = [own for own in inside.glob("synthetic_*") if own.suffix in (".csv", ".parquet")]
        if not sets:
            raise InvalidInput(f"{path} must be a file or a release: it has no synthetic_*.csv")
        files += sorted(sets, key=lambda each: (len(each.name), each.name))
    return files


def _finish(
    about: str,
    found: Mapping[str, Any],
    json_out: str | None,
    html: Path | None,
    overwrite: bool,
    table: tuple[str, pd.DataFrame],
) -> None:
    """Write the files that are asked for, and show the numbers with their definitions."""
    text = json.dumps(as_dict(found), indent=2, allow_nan=False) + "\n"
    contents = {}
    if html is not None:
        from pyhybrid.reports import measures as pages
        from pyhybrid.reports.opening import facts_of_table

        page_of: Any = pages.utility_report if about == "utility" else pages.risk_report
        contents[html] = page_of(found, facts_of_table(table[0], *table[1].shape))
    if json_out is not None and json_out != "-":
        contents[Path(json_out)] = text
    write_files(contents, private=True, overwrite=overwrite)
    if json_out == "-":
        print(text, end="")
        print(_NOTE, file=sys.stderr)
        return
    overall = {name: each.overall() for name, each in found.items()}
    show(*_tables(about, overall))
    show(*(f"written: {escape(str(path))} (confidential)" for path in contents), _NOTE)


_TITLES = {
    "utility": ("Utility", "as the data", "useless"),
    "risk": ("Disclosure risk", "no risk", "data as they are"),
}


def _tables(about: str, overall: Mapping[str, Mapping[str, float]]) -> list[Table]:
    """The measures by version with both ends of their scales, and their definitions."""
    from pyhybrid.reports.page import number_text
    from pyhybrid.reports.verdicts import measure_label

    names = list(dict.fromkeys(name for each in overall.values() for name in each))
    title, *best = _TITLES[about]
    ends = (*best, "range")
    rows = []
    for name in names:
        measure = MEASURES[name.split(",")[0]]
        values = [number_text(each[name]) if name in each else "–" for each in overall.values()]
        texts = (measure.at_best, measure.at_worst, measure.range)
        rows.append([escape(measure_label(name)), *values, *map(escape, texts)])
    header = ("measure", *overall, *ends)
    table = table_of(f"{title} (confidential)", header, rows, left=ends, simple=True)
    definitions = Table(box=None, show_header=False, pad_edge=False)
    definitions.add_column("", no_wrap=True)
    definitions.add_column("", overflow="fold")
    for key in dict.fromkeys(name.split(",")[0] for name in names):
        text = f"{MEASURES[key].definition} {MEASURES[key].direction.capitalize()}."
        definitions.add_row(escape(MEASURES[key].title), escape(text))
    return [table, definitions]
