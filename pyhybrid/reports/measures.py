"""HTML reports of utility and disclosure risk of synthetic sets from anywhere. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyhybrid.measures.models import ModelUtility
from pyhybrid.measures.summaries import MEASURES, RiskSummary, UtilitySummary
from pyhybrid.measures.utility import DATA
from pyhybrid.reports import figures
from pyhybrid.reports.page import (
    NOTHING,
    Cell,
    Section,
    Table,
    interval_text,
    number_text,
    render_page,
    section,
    sentence,
)
from pyhybrid.reports.verdicts import judged_cell, measure_label, risk_verdict, utility_verdict

_MOST_PANELS, _MOST_PAIRS, _MOST_COLUMNS = 9, 15, 30
_NAMES = {"mean": "mean", "median": "median", "q15": "15th perc.", "q90": "90th perc."}


def utility_report(summaries: Mapping[str, UtilitySummary], facts: Sequence[str] = ()) -> str:
    """One HTML file on one or more synthetic versions, by name, of the same data, with `facts`
    below its title. Confidential."""
    overall = {name: found.overall() for name, found in summaries.items()}
    sets = {name: found.n_sets for name, found in summaries.items()}
    first = next(iter(summaries.values()))
    opening = section("utility", tables=[measure_table(overall)], n=first.n, sets=sets)
    pictures: list[Section] = []
    parts = [opening]
    for name, found in summaries.items():
        mark = f": {name}" if len(summaries) > 1 else ""
        shown = _distributions(found, mark)
        pictures += [*shown[:1], _pairs(found, mark)]
        estimates = shown[1:]
        parts += [*estimates, _propensities(found, mark), *(_model(f, mark) for f in found.models)]
    folded = (replace(each, folded=True) for each in parts)
    sections = [utility_verdict(summaries), *pictures, *folded]
    title = "Utility of synthetic data"
    return render_page(title, sections, confidential=True, advice=NOTHING, facts=facts)


def risk_report(summaries: Mapping[str, RiskSummary], facts: Sequence[str] = ()) -> str:
    """One HTML file on one or more synthetic versions of the same data, with `facts` below its
    title. Confidential."""
    first = next(iter(summaries.values()))
    overall = {name: found.overall() for name, found in summaries.items()}
    correct = {name: found.matching.correct_by_record for name, found in summaries.items()}
    told = {name: values for name, values in correct.items() if values is not None}
    lacking = [name for name in correct if name not in told]
    shown = {name: found.matching.by_record for name, found in summaries.items()}
    figure = figures.plot_matching_risk(shown if lacking else told)
    n = first.matching.n_targets
    sections = [
        risk_verdict(summaries),
        section("risk", tables=[measure_table(overall)], keys=first.keys, n=n, lacking=lacking),
        section("risk by record", figures=[figure], lacking=lacking),
    ]
    title = "Disclosure risk of synthetic data"
    return render_page(title, sections, confidential=True, advice=NOTHING, facts=facts)


def measure_table(overall: Mapping[str, Mapping[str, float]], caption: str = "") -> Table:
    """Measures in rows, versions in columns, each with both ends of its scale and its meaning."""
    about = {MEASURES[name.split(",")[0]].about for each in overall.values() for name in each}
    ends = {"utility": ("As good as the data", "Useless"), "risk": ("No risk", "Data as they are")}
    best, worst = ends[about.pop()]
    return Table(
        caption=caption or sentence("utility", "table"),
        header=["Measure", *overall, best, worst, "What it is"],
        rows=measure_rows(overall),
    )


def measure_rows(overall: Mapping[str, Mapping[str, float]]) -> list[list[Cell]]:
    """Cells of `measure_table`."""
    rows: list[list[Cell]] = []
    explained: set[str] = set()
    for name in dict.fromkeys(name for each in overall.values() for name in each):
        key = name.split(",")[0]
        measure = MEASURES[key]
        values = [judged_cell(name, each.get(name)) for each in overall.values()]
        text = f"{measure.definition} Range: {measure.range}; {measure.direction}."
        if key in explained:
            text = f"{measure.direction[0].upper()}{measure.direction[1:]}."
        explained.add(key)
        rows.append([measure_label(name), *values, measure.at_best, measure.at_worst, text])
    return rows


def _distributions(found: UtilitySummary, mark: str) -> list[Section]:
    distances = found.columns.distances
    if distances.empty:
        return []
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


def _propensities(found: UtilitySummary, mark: str) -> Section:
    parts = {"logistic regression": found.logistic, "classification tree": found.cart}
    rows = [
        [f"{name}, set {place}", *(number_text(row[key]) for key in _SHOWN), str(row["null"])]
        for name, part in parts.items()
        for place, row in part.by_set.iterrows()
    ]
    header = ["Classifier", "pMSE", "chance mean", "chance sd", "ratio", "standardized", "chance"]
    figure = figures.plot_propensities({name: part.propensities for name, part in parts.items()})
    table = Table(header=header, rows=rows, numbers=True)
    return section("propensities", figures=[figure], tables=[table], mark=mark)


_SHOWN = ("pmse", "null_mean", "null_sd", "ratio", "standardised")


def _pairs(found: UtilitySummary, mark: str) -> Section:
    tables = found.one_and_two_way
    shown = tables.one_way.sort_values("ratio", ascending=False)["column"][:_MOST_COLUMNS]
    names = [name for name in tables.one_way["column"] if name in set(shown)]
    rows = [
        [f"{row.first} and {row.second}", *map(number_text, (row.ratio, row.total_variation))]
        for row in tables.two_way.head(_MOST_PAIRS).itertuples(index=False)
        if row.total_variation > 0
    ]
    table = Table(header=["Pair", "Table ratio", "Total variation"], rows=rows, numbers=True)
    return section(
        "pairs",
        figures=[figures.plot_pairs(tables.matrix().loc[names, names])],
        tables=[table] if rows else [],
        mark=mark, measure=MEASURES["table_ratio"],
    )  # fmt: skip


def _model(fit: ModelUtility, mark: str) -> Section:
    figure = figures.plot_intervals(fit.intervals(), reference=DATA)
    data, *sets = (f"{n:,}" for n in fit.n_used)
    return section(
        "model", figures=[figure], tables=[model_table(fit)], mark=mark, fit=fit, data=data,
        sets=sets, rule=fit.rule.replace("_", " "), alike=set(sets) == {data},
    )  # fmt: skip


def model_table(
    fit: ModelUtility, synthetic: str = "Synthetic", shown: Callable[[str], str] = str
) -> Table:
    """Coefficients of data and sets, under the heading `synthetic`, their overlap and standardized
    difference; `shown` returns a term as people write it."""
    rows = [
        [
            shown(str(term)),
            interval_text(row, ""),
            interval_text(row, "synthetic_"),
            judged_cell("interval_overlap", row["interval_overlap"]),
            judged_cell("standardised_difference", row["standardised_difference"]),
        ]
        for term, row in fit.table.iterrows()
    ]
    caption = sentence("model", "table")
    header = ["Term", "Data", synthetic, "Interval overlap", "Standardized difference"]
    return Table(caption=caption, header=header, rows=rows, numbers=True)
