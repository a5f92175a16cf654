"""HTML reports of utility and disclosure risk of synthetic sets from anywhere. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyhybrid.measures.definitions import MEASURES
from pyhybrid.measures.summaries import RiskSummary, UtilitySummary
from pyhybrid.measures.tables.estimates import DATA
from pyhybrid.measures.tables.intervals import ModelUtility
from pyhybrid.reports.figures.measures import (
    plot_ecdfs,
    plot_matching_risk,
    plot_pairs,
    plot_propensities,
)
from pyhybrid.reports.figures.mechanisms import plot_intervals
from pyhybrid.reports.page import (
    Cell,
    Marked,
    Section,
    Table,
    interval_text,
    number_text,
    picture_of,
    render_page,
)
from pyhybrid.reports.verdicts import measure_label, risk_verdict, utility_verdict, word_of

__all__ = ["CONFIDENTIAL", "judged_cell", "measure_label", "measure_rows", "risk_report",
           "utility_report"]  # fmt: skip

CONFIDENTIAL = (
    "Every number here was computed from the confidential data. None of it is covered by an "
    "epsilon, and none of it may be published as it is."
)
_ADVICE = "publish no part of this page"
_MOST_PANELS, _MOST_PAIRS, _MOST_COLUMNS = 9, 15, 30
_NAMES = {"mean": "mean", "median": "median", "q15": "15th perc.", "q90": "90th perc."}


def utility_report(summaries: Mapping[str, UtilitySummary]) -> str:
    """One HTML file on one or more synthetic versions of the same data. Confidential.

    Parameters
    ----------
    summaries : mapping of str to UtilitySummary
        By the name of the version.
    """
    overall = {name: found.overall() for name, found in summaries.items()}
    sets = "; ".join(
        f"{name}: {found.n_sets} set{'s' * (found.n_sets > 1)}" for name, found in summaries.items()
    )
    first = next(iter(summaries.values()))
    opening = f"{first.n:,} records of the data against {sets}. Numbers are averages over the sets."
    sections = [
        utility_verdict(summaries),
        Section(
            heading="All measures",
            paragraphs=[[CONFIDENTIAL], [opening]],
            tables=[measure_table(overall)],
        ),
    ]
    for name, found in summaries.items():
        mark = f": {name}" if len(summaries) > 1 else ""
        sections += [
            *_distributions(found, mark),
            _propensities(found, mark),
            _pairs(found, mark),
            *(_model(fit, mark) for fit in found.models),
        ]
    return render_page("Utility of synthetic data", sections, confidential=True, advice=_ADVICE)


def risk_report(summaries: Mapping[str, RiskSummary]) -> str:
    """One HTML file on one or more synthetic versions of the same data. Confidential."""
    first = next(iter(summaries.values()))
    opening = (
        f"Keys that the intruder knows: {', '.join(first.keys)}. Every record of the data is a "
        f"target: n = {first.matching.n_targets:,}."
    )
    overall = {name: found.overall() for name, found in summaries.items()}
    paragraphs = [[CONFIDENTIAL], [opening], *([text] for text in _unknown(summaries))]
    own = {name: found.matching.correct_by_record for name, found in summaries.items()}
    told = {name: values for name, values in own.items() if values is not None}
    known = len(told) == len(own)
    shown = told if known else {name: s.matching.by_record for name, s in summaries.items()}
    quantity = "names a target correctly, T/c" if known else "believes to have found a target, 1/c"
    picture = picture_of(
        plot_matching_risk(shown),
        alt="Histogram of the matching risk of the targets.",
        caption=f"Probability with which the intruder {quantity}, averaged over the sets. Targets "
        "far to the right are those to protect. The count axis is logarithmic above 10.",
    )
    sections = [
        risk_verdict(summaries),
        Section(heading="All measures", paragraphs=paragraphs, tables=[measure_table(overall)]),
        Section(heading="Matching risk by record", pictures=[picture]),
    ]
    title = "Disclosure risk of synthetic data"
    return render_page(title, sections, confidential=True, advice=_ADVICE)


def measure_table(overall: Mapping[str, Mapping[str, float]], caption: str = "") -> Table:
    """Measures in rows, versions in columns, each with both ends of its scale and its meaning."""
    about = {MEASURES[name.split(",")[0]].about for each in overall.values() for name in each}
    ends = {"utility": ("As good as the data", "Useless"), "risk": ("No risk", "Data as they are")}
    best, worst = ends[about.pop()]
    return Table(
        caption=caption or "At a glance. Each number with its value at both ends and its meaning.",
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


def judged_cell(name: str, value: float | None) -> Cell:
    """A value with its word, where the measure has limits."""
    if value is None:
        return "–"
    word, text = word_of(name, value), number_text(value)
    return Marked(text=text, word=word) if word else text


def _distributions(found: UtilitySummary, mark: str) -> list[Section]:
    distances = found.columns.distances
    if distances.empty:
        return []
    moved = distances[(distances["max_ecdf"] > 0) | (distances.iloc[:, 3] != distances.iloc[:, 4])]
    same = [str(name) for name in distances["column"] if name not in set(moved["column"])]
    unchanged = [[f"Distributed as in the data, and not shown: {', '.join(same)}."]] if same else []
    if moved.empty:
        return [Section(heading=f"Columns{mark}", paragraphs=unchanged)]
    worst = moved.sort_values("max_ecdf", ascending=False, kind="stable")
    names = list(worst["column"])[:_MOST_PANELS]
    tables = found.tables
    picture = picture_of(
        plot_ecdfs(
            {
                name: (
                    tables.real[name].dropna().to_numpy(),
                    [table[name].dropna().to_numpy() for table in tables.synthetic],
                )
                for name in names
            }
        ),
        alt=f"Distribution functions of {', '.join(names)}, data and synthetic sets.",
        caption=f"The columns of numbers with the largest max-ECDF, at most {_MOST_PANELS}.",
    )
    header = ["Column", "max-ECDF", "avg-ECDF", "missing, data", "missing, synthetic"]
    rows: list[list[Cell]] = [
        [str(row[0]), judged_cell("max_ecdf", row[1]), *map(number_text, row[2:])]
        for row in worst.to_numpy().tolist()
    ]
    table = Table(
        caption="Distances of the distribution functions (0 is best) and shares of missing values.",
        header=header,
        rows=rows[:_MOST_COLUMNS],
        numbers=True,
    )
    return [
        Section(heading=f"Columns{mark}", paragraphs=unchanged, pictures=[picture], tables=[table]),
        _estimates(found, names, mark),
    ]


def _estimates(found: UtilitySummary, names: Sequence[str], mark: str) -> Section:
    chosen = found.columns.estimates
    chosen = chosen[chosen["column"].isin(names[:5])]
    titles = chosen["column"] + "\n" + chosen["statistic"].map(_NAMES)
    picture = picture_of(
        plot_intervals(chosen.assign(statistic=titles), reference=DATA),
        alt="Estimates with 95 % intervals of data and synthetic sets.",
        caption=f"{MEASURES['estimates'].definition} Shaded: the interval of the data.",
    )
    return Section(heading=f"Estimates{mark}", pictures=[picture])


def _propensities(found: UtilitySummary, mark: str) -> Section:
    parts = {"logistic regression": found.logistic, "classification tree": found.cart}
    picture = picture_of(
        plot_propensities({name: part.propensities for name, part in parts.items()}),
        alt="Histograms of propensities of the data and the first synthetic set.",
        caption="First set. If the two lines lie on each other, the classifier cannot tell "
        "synthetic rows from the data. A tree spreads them by chance, too: read its ratio.",
    )
    rows = [
        [f"{name}, set {place}", *(number_text(row[key]) for key in _SHOWN), str(row["null"])]
        for name, part in parts.items()
        for place, row in part.by_set.iterrows()
    ]
    caption = (
        "pMSE of each set, its mean and standard deviation under chance, and what chance means: "
        "population, two samples of one population; paired, rows that keep some of their columns."
    )
    header = ["Classifier", "pMSE", "chance mean", "chance sd", "ratio", "standardized", "SPECKS",
              "chance"]  # fmt: skip
    table = Table(caption=caption, header=header, rows=rows, numbers=True)
    return Section(
        heading=f"Telling synthetic rows from the data{mark}", pictures=[picture], tables=[table]
    )


_SHOWN = ("pmse", "null_mean", "null_sd", "ratio", "standardised", "specks")


def _pairs(found: UtilitySummary, mark: str) -> Section:
    tables = found.one_and_two_way
    shown = tables.one_way.sort_values("ratio", ascending=False)["column"][:_MOST_COLUMNS]
    names = [name for name in tables.one_way["column"] if name in set(shown)]
    picture = picture_of(
        plot_pairs(tables.matrix().loc[names, names]),
        alt="Heat map of table ratios of all pairs of columns.",
        caption=f"{MEASURES['table_ratio'].definition} Single columns on the diagonal. Bright "
        "cells are relations that the synthesis has lost. Numbers are cut into five cells.",
    )
    rows = [
        [f"{row.first} and {row.second}", *map(number_text, (row.ratio, row.total_variation))]
        for row in tables.two_way.head(_MOST_PAIRS).itertuples(index=False)
        if row.total_variation > 0
    ]
    table = Table(
        caption="The worst pairs, of those that the synthesis has changed.",
        header=["Pair", "Table ratio", "Total variation"],
        rows=rows,
        numbers=True,
    )
    return Section(
        heading=f"Pairs of columns{mark}", pictures=[picture], tables=[table] if rows else []
    )


def _model(fit: ModelUtility, mark: str) -> Section:
    rule = fit.rule.replace("_", " ")
    text = (
        f"{fit.model}: {fit.formula}. Combined by the rule “{rule}”. Records without missing "
        f"values used: {_used(fit.n_used)}."
    )
    picture = picture_of(
        plot_intervals(fit.intervals(), reference=DATA),
        alt="Coefficients with 95 % intervals, data and synthetic sets.",
        caption="One panel for each term. Shaded: the interval of the data.",
    )
    return Section(
        heading=f"Inference{mark}",
        paragraphs=[[text]],
        pictures=[picture],
        tables=[model_table(fit)],
    )


def _used(n_used: Sequence[int]) -> str:
    """ "400 of the data, 398 and 399 of the sets"; all at once where they are as many."""
    data, *sets = n_used
    if set(sets) == {data}:
        return f"{data:,} of the data and of each set"
    return f"{data:,} of the data, {', '.join(f'{n:,}' for n in sets)} of the sets"


def model_table(
    fit: ModelUtility, synthetic: str = "Synthetic", shown: Callable[[str], str] = str
) -> Table:
    """Coefficients of data and sets, their overlap and standardized difference.

    Parameters
    ----------
    fit : ModelUtility
    synthetic : str
        Heading of the column of the sets.
    shown : callable
        Takes a term, returns it as people write it.
    """
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
    caption = (
        "Interval overlap: 1 is best, 0 or below is disjoint. Standardized difference: in standard "
        "errors of the data, 0 is best."
    )
    header = ["Term", "Data", synthetic, "Interval overlap", "Standardized difference"]
    return Table(caption=caption, header=header, rows=rows, numbers=True)


def _unknown(summaries: Mapping[str, RiskSummary]) -> list[str]:
    """What could not be computed, and why."""
    lacking = [name for name, s in summaries.items() if s.matching.correct_by_record is None]
    if not lacking:
        return [
            "True and false matches take row i of a set for the synthetic version of row i of the "
            "data, as in partial synthesis."
        ]
    return [
        f"{', '.join(lacking)}: rows of the sets do not correspond to rows of the data, so that it "
        "is not known which row is a target's own: no true and false match rates."
    ]
