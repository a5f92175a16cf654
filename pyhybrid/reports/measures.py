"""HTML reports of utility and disclosure risk of synthetic sets from anywhere, and the same
measures in the report of a release. CONFIDENTIAL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures import risk_summary, utility_summary
from pyhybrid.measures.models import ModelUtility
from pyhybrid.measures.summaries import MEASURES, RiskSummary, UtilitySummary
from pyhybrid.measures.utility import DATA
from pyhybrid.releases.release import Release
from pyhybrid.reports import figures
from pyhybrid.reports.page import (
    NOTHING,
    Cell,
    Marked,
    Section,
    Table,
    frame_table,
    interval_text,
    number_text,
    render_page,
    rendered,
    section,
    sentence,
)
from pyhybrid.reports.verdicts import (
    POOR,
    is_number,
    judged_cell,
    measure_label,
    risk_verdict,
    utility_verdict,
)

_MOST_PANELS, _MOST_PAIRS, _MOST_COLUMNS, _MOST_TERMS = 9, 15, 30, 30
_NAMES = {"mean": "mean", "median": "median", "q15": "15th perc.", "q90": "90th perc."}
_ROWS, _SETS, _PERMUTATIONS = 4_000, 3, 10  # of a release: so its report costs seconds
_WITHIN, _FEW_LEVELS, _PREDICTORS = 0.1, 12, 8


def utility_report(summaries: Mapping[str, UtilitySummary], facts: Sequence[str] = ()) -> str:
    """One HTML file on one or more synthetic versions, by name, of the same data, with `facts`
    below its title. Confidential."""
    overall = {name: found.overall() for name, found in summaries.items()}
    sets = {name: found.n_sets for name, found in summaries.items()}
    first = next(iter(summaries.values()))
    pictures: list[Section] = []
    parts = [section("utility", tables=[measure_table(overall)], n=first.n, sets=sets)]
    for name, found in summaries.items():
        mark = f": {name}" if len(summaries) > 1 else ""
        drawn, *estimates = _distributions(found, mark)
        pictures += [drawn, _pairs(found, mark)]
        parts += [*estimates, _propensities(found, mark)]
        parts += [model_section(fit, f"Inference{mark}") for fit in found.models]
    folded = (replace(part, folded=True) for part in parts)
    sections = [utility_verdict(summaries), *pictures, *folded]
    title = "Utility of synthetic data"
    return render_page(title, sections, confidential=True, advice=NOTHING, facts=facts)


def risk_report(summaries: Mapping[str, RiskSummary], facts: Sequence[str] = ()) -> str:
    """One HTML file on one or more synthetic versions of the same data, with `facts` below its
    title. Confidential."""
    first = next(iter(summaries.values()))
    overall = {name: found.overall() for name, found in summaries.items()}
    lacking = [k for k, found in summaries.items() if found.matching.correct_by_record is None]
    shown: dict[str, Any] = {
        name: found.matching.by_record if lacking else found.matching.correct_by_record
        for name, found in summaries.items()
    }
    n = first.matching.n_targets
    sections = [
        risk_verdict(summaries),
        section("risk", tables=[measure_table(overall)], keys=first.keys, n=n, lacking=lacking),
        section("risk by record", figures=[figures.plot_matching_risk(shown)], lacking=lacking),
    ]
    title = "Disclosure risk of synthetic data"
    return render_page(title, sections, confidential=True, advice=NOTHING, facts=facts)


def measures_section(release: Release, data: pd.DataFrame) -> list[Section]:
    """Risk and utility of a release, whose tables hold all columns of the data, and a linear model
    on data and sets, from at most 4,000 records and 3 sets; the bullet of the first names what is
    POOR."""
    hidden = {*release.decisions.drop, *release.decisions.ids, *release.synthesized}
    kept = [c for c in release.predictors if c not in hidden and c in data.columns]
    columns = [*kept, *release.synthesized]
    n = len(data)
    rows = np.sort(np.random.default_rng(1).choice(n, min(n, _ROWS), replace=False))
    real = data[columns].iloc[rows]
    sets = [table[columns].iloc[rows] for table in release.synthetic[:_SETS]]
    near = [name for name in release.synthesized if is_number(real[name])]
    tables, models, left_out = [], list[Section](), []
    try:
        risk = risk_summary(
            real, sets, keys=columns, radius=dict.fromkeys(near, _WITHIN),
            kind=dict.fromkeys(near, "relative"), rows_correspond=True,
        )  # fmt: skip
        tables.append(measure_table({"synthetic": risk.overall()}, "Risk: what an intruder finds."))
        formulas = _formulas(real, near, columns)
        found = utility_summary(
            real, sets, columns=columns, formulas=formulas, n_permutations=_PERMUTATIONS, rng=1
        )
        tables.append(
            measure_table({"synthetic": found.overall()}, "Utility: how near the sets are.")
        )
        models = [model_section(fit, "Regression coefficients") for fit in found.models]
    except InvalidInput as error:
        left_out.append([f"Not computed: {error}."])
    poor = [str(row[0]) for table in tables for row in table.rows
            if any(isinstance(cell, Marked) and cell.word == POOR for cell in row)]  # fmt: skip
    shown = section(
        "risk and utility", bullets=rendered("risk and utility", "wrong", poor=poor),
        tables=tables, synthesized=release.synthesized, kept=kept,
        within=100 * _WITHIN, rows=len(rows), sets=len(sets), fewer=len(rows) < n,
    )  # fmt: skip
    return [replace(shown, paragraphs=[*shown.paragraphs, *left_out]), *models]


def _formulas(data: pd.DataFrame, numbers: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The first synthesized column of numbers by the main effects of others; none without one."""
    varied = [name for name in numbers if data[name].nunique() > 1]
    if not varied:
        return []
    terms = [
        f"Q({name!r})"
        for name in columns
        if name != varied[0]
        and data[name].nunique() > 1
        and (is_number(data[name]) or data[name].nunique() <= _FEW_LEVELS)
    ]
    return [f"Q({varied[0]!r}) ~ {' + '.join(terms[:_PREDICTORS]) or '1'}"]


def measure_table(overall: Mapping[str, Mapping[str, float]], caption: str = "") -> Table:
    """Measures in rows, versions in columns, each with both ends of its scale and its meaning."""
    about = {MEASURES[name.split(",")[0]].about for values in overall.values() for name in values}
    ends = {"utility": ("As good as the data", "Useless"), "risk": ("No risk", "Data as they are")}
    rows: list[list[Cell]] = []
    explained: set[str] = set()
    for name in dict.fromkeys(name for values in overall.values() for name in values):
        key = name.split(",")[0]
        measure = MEASURES[key]
        cells = [judged_cell(name, values.get(name)) for values in overall.values()]
        text = f"{measure.definition} Range: {measure.range}; {measure.direction}."
        if key in explained:
            text = f"{measure.direction[0].upper()}{measure.direction[1:]}."
        explained.add(key)
        rows.append([measure_label(name), *cells, measure.at_best, measure.at_worst, text])
    return Table(
        caption=caption or sentence("utility", "table"),
        header=["Measure", *overall, *ends[about.pop()], "What it is"],
        rows=rows,
    )


def _distributions(found: UtilitySummary, mark: str) -> list[Section]:
    """Distribution functions of the columns of numbers that changed, and their estimates."""
    distances = found.columns.distances
    if distances.empty:
        return [section("columns", mark=mark, same=[])]
    moved = distances[(distances["max_ecdf"] > 0) | (distances.iloc[:, 3] != distances.iloc[:, 4])]
    same = [str(name) for name in distances["column"] if name not in set(moved["column"])]
    if moved.empty:
        return [section("columns", mark=mark, same=same)]
    worst = moved.sort_values("max_ecdf", ascending=False, kind="stable")
    names = list(worst["column"])[:_MOST_PANELS]
    tables = found.tables
    drawn = {
        name: (
            tables.real[name].dropna().to_numpy(),
            [table[name].dropna().to_numpy() for table in tables.synthetic],
        )
        for name in names
    }
    header = ["Column", "max-ECDF", "avg-ECDF", "missing, data", "missing, synthetic"]
    rows: list[list[Cell]] = [
        [str(row[0]), judged_cell("max_ecdf", row[1]), *map(number_text, row[2:])]
        for row in worst.to_numpy().tolist()
    ]
    chosen = found.columns.estimates
    chosen = chosen[chosen["column"].isin(names[:5])]
    titles = chosen["column"] + "\n" + chosen["statistic"].map(_NAMES)
    intervals = figures.plot_intervals(chosen.assign(statistic=titles), reference=DATA)
    return [
        section(
            "columns",
            figures=[figures.plot_ecdfs(drawn)],
            tables=[Table(header=header, rows=rows[:_MOST_COLUMNS], numbers=True)],
            mark=mark, same=same, names=names, most=_MOST_PANELS,
        ),
        section("estimates", figures=[intervals], mark=mark, measure=MEASURES["estimates"]),
    ]  # fmt: skip


_OF_SET = ["pmse", "null_mean", "null_sd", "ratio", "standardised", "null"]


def _propensities(found: UtilitySummary, mark: str) -> Section:
    parts = {"logistic regression": found.logistic, "classification tree": found.cart}
    sets = pd.concat({name: part.by_set[_OF_SET] for name, part in parts.items()})
    shown = sets.rename_axis(["classifier", "set"]).reset_index()
    return section("propensities", tables=[frame_table(shown)], mark=mark)


def _pairs(found: UtilitySummary, mark: str) -> Section:
    tables = found.one_and_two_way
    shown = tables.one_way.sort_values("ratio", ascending=False)["column"][:_MOST_COLUMNS]
    names = [name for name in tables.one_way["column"] if name in set(shown)]
    pairs = tables.two_way.head(_MOST_PAIRS)[["first", "second", "ratio", "total_variation"]]
    pairs = pairs[pairs["total_variation"] > 0]
    return section(
        "pairs",
        figures=[figures.plot_pairs(tables.matrix().loc[names, names])],
        tables=[frame_table(pairs)] if len(pairs) else [],
        mark=mark, measure=MEASURES["table_ratio"],
    )  # fmt: skip


def model_section(fit: ModelUtility, heading: str) -> Section:
    """Forest plot and table of an analyst's model: coefficients of data and sets, their overlap and
    standardized difference."""
    varied = fit.table[fit.table["upper"] > fit.table["lower"]].rename(index=plain_term)
    drawn = [figures.plot_forest({"synthetic": varied[:_MOST_TERMS]})] if len(varied) else []
    rows = [
        [
            plain_term(term),
            interval_text(row, ""),
            interval_text(row, "synthetic_"),
            judged_cell("interval_overlap", row["interval_overlap"]),
            judged_cell("standardised_difference", row["standardised_difference"]),
        ]
        for term, row in fit.table.iterrows()
    ]
    header = ["Term", "Data", "Synthetic", "Interval overlap", "Standardized difference"]
    data, *sets = (f"{n:,}" for n in fit.n_used)
    return section(
        "model", figures=drawn, tables=[Table(header=header, rows=rows, numbers=True)],
        heading=heading, fit=fit, formula=plain_formula(fit.formula), data=data, sets=sets,
        rule=fit.rule.replace("_", " "), alike=set(sets) == {data}, terms=len(varied),
    )  # fmt: skip


def plain_formula(formula: str) -> str:
    """The formula as people write it, names that need no quotes without them."""
    return re.sub(r"Q\('([A-Za-z_]\w*)'\)", r"\1", formula)


def plain_term(term: object) -> str:
    """A term as people write it: "region = west" for "Q('region')[T.west]" or C(region)[T.west]."""
    plain = re.sub(r"\bC\((\w+)\)(?=\[T\.)", r"\1", plain_formula(str(term)))
    return re.sub(r"\[T\.(.*?)\]", r" = \1", plain)
