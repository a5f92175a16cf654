"""`pyhybrid utility` and `risk`: synthetic data from anywhere against the data."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from rich.markup import escape

from pyhybrid.cli.console import as_json, check_outputs, note, progress_bars, show, table_of
from pyhybrid.cli.options import (
    Data,
    Html,
    Json,
    Overwrite,
    Read,
    Synthetic,
    Versus,
    check_once,
    converted,
    names_of,
    option,
    pairs,
    read_table,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures import MEASURES, risk_summary, utility_summary
from pyhybrid.measures.summaries import as_dict
from pyhybrid.running.files import write_files
from pyhybrid.running.tasks import named_progress

_NOTE = (
    "CONFIDENTIAL: every number here was computed from the confidential data and is covered by no "
    "epsilon; publish none of it."
)


def utility(
    real: Data,
    synthetic: Synthetic,
    versus: Versus = None,
    columns: Annotated[
        list[str] | None,
        option("Columns to compare; with commas between, repeatable. [default: all]"),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        option("Columns of numbers that are codes; with commas between, repeatable."),
    ] = None,
    formula: Annotated[
        list[str] | None,
        option("An analyst's model, e.g. 'income ~ age + C(region)'; repeatable."),
    ] = None,
    model: Annotated[
        str, option("Model of statsmodels: ols, logit, poisson, negativebinomial, ...")
    ] = "ols",
    rule: Annotated[
        str | None,
        option(
            "partially_synthetic, fully_synthetic, multiple_imputation or single. [default: "
            "partially_synthetic; single for one set]"
        ),
    ] = None,
    permutations: Annotated[int, option("Permutations for the null expectation of CART.")] = 20,
    weights: Annotated[str | None, option("Column of survey weights.")] = None,
    seed: Annotated[int, option("Seed of resamples and permutations.")] = 1,
    json_out: Json = None,
    html: Html = None,
    read: Read = None,
    overwrite: Overwrite = False,
) -> None:
    """Compute the summary of each version, and show, write or print it."""
    check_outputs(json_out, html, overwrite=overwrite)
    data, versions = _read_versions(real, synthetic, versus or (), read)
    compared = _shared(data, versions) if columns is None else names_of(columns, data)
    with progress_bars() as progress:
        summaries = {
            name: utility_summary(
                data, sets, columns=compared, categorical=names_of(categorical, data),
                formulas=formula or (), model=model, rule=rule,
                n_permutations=permutations, weights=weights, rng=seed,
                progress=named_progress(progress, name) if len(versions) > 1 else progress,
            )
            for name, sets in versions.items()
        }  # fmt: skip

    _finish("utility", summaries, as_dict(summaries), (real, data), json_out, html, overwrite)


def _shared(data: pd.DataFrame, versions: Mapping[str, list[pd.DataFrame]]) -> list[str] | None:
    """Columns with values in the data that all sets have, as a release may have dropped some; None
    if these are all."""
    tables = [data, *(table for sets in versions.values() for table in sets)]
    gone = [name for name in data.columns if data[name].isna().all()
            or not all(name in table.columns for table in tables)]  # fmt: skip
    left = [str(name) for name in data.columns if name not in gone]
    if not gone or not left:
        return None
    note(f"not compared, as they have no values, or not all sets have them: {', '.join(gone)}")
    return left


def risk(
    real: Data,
    synthetic: Synthetic,
    key: Annotated[
        list[str],
        option(
            "Columns that the intruder knows: sex,region or age:radius=2; a radius that is a share "
            "of the value is followed by ,kind=relative; repeatable."
        ),
    ],
    sensitive: Annotated[
        list[str] | None,
        option(
            "Columns that the intruder wants to learn: voted,sex or income:radius=1000; repeatable."
        ),
    ] = None,
    holdout: Annotated[
        Path | None, option("Records that were not used for the synthesis, to compare.")
    ] = None,
    rows_correspond: Annotated[
        bool | None,
        option(
            "Row i of a set is the synthetic version of row i of REAL. [default: if a column is "
            "the same in every row]"
        ),
    ] = None,
    versus: Versus = None,
    json_out: Json = None,
    html: Html = None,
    read: Read = None,
    overwrite: Overwrite = False,
) -> None:
    """Compute the summary of each version, and show, write or print it."""
    check_outputs(json_out, html, overwrite=overwrite)
    data, versions = _read_versions(real, synthetic, versus or (), read)
    keys = read_keys(key, "--key", data.columns)
    hidden = read_keys(sensitive or (), "--sensitive", data.columns)
    outside = None if holdout is None else read_table(holdout, read=read).frame
    kinds = {name: own["kind"] for name, own in {**keys, **hidden}.items() if "kind" in own}
    summaries = {
        name: risk_summary(
            data, sets, keys=list(keys), kind=kinds, holdout=outside,
            radius={name: own["radius"] for name, own in keys.items() if "radius" in own},
            sensitive={column: own.get("radius") for column, own in hidden.items()},
            rows_correspond=rows_correspond,
        )
        for name, sets in versions.items()
    }  # fmt: skip
    _finish("risk", summaries, as_dict(summaries), (real, data), json_out, html, overwrite)


def read_keys(
    given: Sequence[str], option_name: str, columns: Iterable[Any]
) -> dict[str, dict[str, Any]]:
    """Columns and their settings, of an option that may be repeated: one of each, or several
    without settings and with commas between."""
    known = list(columns)
    texts = [[text] if "=" in text else names_of([text], known) for text in given]
    keys = [parse_key(name, option_name) for names in texts for name in names]
    check_once([name for name, _ in keys], option_name)
    return dict(keys)


def parse_key(text: str, option_name: str) -> tuple[str, dict[str, Any]]:
    """Column and settings of ``COLUMN`` or ``COLUMN:radius=2,kind=relative``."""
    name, _, rest = text.rpartition(":")
    if "=" not in rest:  # a column may have a colon in its name
        name, rest = text, ""
    settings: dict[str, Any] = dict(pairs(rest))
    unknown = settings.keys() - {"radius", "kind"}
    if unknown:
        raise InvalidInput(f"{option_name} {text!r} takes radius and kind: found {min(unknown)!r}")
    if "radius" in settings:
        what = f"radius of {option_name} {name!r}"
        settings["radius"] = converted(settings["radius"], float, what)
    return name, settings


def _read_versions(
    real: Path,
    synthetic: Sequence[Path],
    versus: Sequence[Path],
    read: Sequence[str] | None = None,
) -> tuple[pd.DataFrame, dict[str, list[pd.DataFrame]]]:
    """The data, and the sets of each version; a folder stands for the sets of a release."""
    versions = {
        name: [read_table(path, read=read).frame for path in _sets(paths)]
        for name, paths in {"synthetic": synthetic, "versus": versus}.items()
        if paths
    }
    return read_table(real, read=read).frame, versions


def _sets(paths: Sequence[Path]) -> list[Path]:
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
    return files


def _finish(
    about: str,
    summaries: Mapping[str, Any],
    plain: dict[str, Any],
    table: tuple[Path, pd.DataFrame],
    json_out: str | None,
    html: Path | None,
    overwrite: bool,
) -> None:
    """Write the files that are asked for, and show the numbers with their definitions."""
    from pyhybrid.reports import measures as pages
    from pyhybrid.reports.page import facts_of_table

    contents = {}
    if html is not None:
        page_of: Any = pages.utility_report if about == "utility" else pages.risk_report
        contents[html] = page_of(summaries, facts_of_table(table[0].name, *table[1].shape))
    if json_out not in (None, "-"):
        contents[Path(str(json_out))] = as_json(plain)
    write_files(contents, private=True, overwrite=overwrite)
    if json_out == "-":
        print(as_json(plain), end="")
        print(_NOTE, file=sys.stderr)
        return
    _show_measures(about, {name: summary.overall() for name, summary in summaries.items()})
    show(*(f"written: {escape(str(path))} (confidential)" for path in contents), _NOTE)


_TITLES = {"utility": "Utility", "risk": "Disclosure risk"}


def _show_measures(about: str, overall: Mapping[str, Mapping[str, float]]) -> None:
    """The measures by version, and their definitions."""
    from pyhybrid.reports.page import number_text
    from pyhybrid.reports.verdicts import measure_label

    names = list(dict.fromkeys(name for values in overall.values() for name in values))
    rows = [
        [
            escape(measure_label(name)),
            *(number_text(values[name]) if name in values else "–" for values in overall.values()),
        ]
        for name in names
    ]
    title = f"{_TITLES[about]} (confidential)"
    show(table_of(title, ("measure", *overall), rows, simple=True), "")
    for key in dict.fromkeys(name.split(",")[0] for name in names):
        measure = MEASURES[key]
        direction = f"{measure.direction.capitalize()}. Range: {measure.range}."
        show(escape(f"{measure.title}: {measure.definition} {direction}"))
