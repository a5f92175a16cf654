"""HTML reports of utility and disclosure risk of synthetic sets from anywhere. CONFIDENTIAL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyhybrid.measures.models import ModelUtility
from pyhybrid.measures.summaries import MEASURES, RiskSummary, UtilitySummary
from pyhybrid.reports import figures, page, verdicts
from pyhybrid.reports.columns import column_section
from pyhybrid.reports.verdicts import Judged

_MOST_DRAWN, _MOST_PAIRS, _MOST_COLUMNS, _MOST_TERMS = 5, 15, 30, 30


def utility_report(summary: UtilitySummary, facts: Sequence[str] = ()) -> str:
    """One HTML file on synthetic sets, with `facts` below its title. Confidential."""
    measures = page.section(
        "utility", tables=[measure_table(summary.overall())],
        n=len(summary.tables.real), m=len(summary.tables.synthetic),
    )  # fmt: skip
    folded = [measures, *(model_section(fit, "Inference") for fit in summary.models)]
    sections = [verdicts.utility_verdict(summary), _distributions(summary), _pairs(summary),
                *(replace(part, folded=True) for part in folded)]  # fmt: skip
    return _whole_page("Utility of synthetic data", sections, facts)


def risk_report(summary: RiskSummary, facts: Sequence[str] = ()) -> str:
    """One HTML file on synthetic sets, with `facts` below its title. Confidential."""
    matching, correct = summary.matching, summary.matching.correct_by_record
    table, lacking = measure_table(summary.overall()), correct is None
    by_record = matching.by_record if correct is None else correct
    drawn = figures.plot_matching_risk({"synthetic": by_record})
    sections = [
        verdicts.risk_verdict(summary),
        page.section(
            "risk", tables=[table], keys=summary.keys, n=matching.n_targets, lacking=lacking
        ),
        page.section("risk by record", figures=[drawn], lacking=lacking),
    ]
    return _whole_page("Disclosure risk of synthetic data", sections, facts)


def _whole_page(title: str, sections: Sequence[page.Section], facts: Sequence[str]) -> str:
    return page.render_page(title, sections, confidential=True, advice=page.NOTHING, facts=facts)


def measure_table(overall: Mapping[str, float]) -> page.Table:
    """A row for each measure, with both ends of its scale and its meaning."""
    about = {MEASURES[name.split(",")[0]].about for name in overall}
    ends = {"utility": ("As good as the data", "Useless"), "risk": ("No risk", "Data as they are")}
    rows: list[list[page.Cell]] = []
    for name, value in overall.items():
        measure, judged = MEASURES[name.split(",")[0]], Judged(name, value)
        text = f"{measure.definition} Range: {measure.range}; {measure.direction}."
        rows.append([judged.label, judged.cell, measure.at_best, measure.at_worst, text])
    header = ["Measure", "Synthetic", *ends[about.pop()], "What it is"]
    return page.Table(caption=page.sentence("utility", "table"), header=header, rows=rows)


def _distributions(summary: UtilitySummary) -> page.Section:
    """The columns of numbers that changed, the worst first and drawn."""
    distances, tables = summary.columns.distances, summary.tables
    changed = (distances["max_ecdf"] > 0) | (distances.iloc[:, 3] != distances.iloc[:, 4])
    same = [str(name) for name in distances["column"][~changed]]
    if not changed.any():
        return page.section("columns", same=same)
    worst = distances[changed].sort_values("max_ecdf", ascending=False, kind="stable")
    header = ["Column", "max-ECDF", "avg-ECDF", "missing, data", "missing, synthetic"]
    rows: list[list[page.Cell]] = [
        [str(row[0]), Judged("max_ecdf", row[1]).cell, *map(page.number_text, row[2:])]
        for row in worst.head(_MOST_COLUMNS).to_numpy().tolist()
    ]
    parts = [
        column_section(name, tables.real[name], [table[name] for table in tables.synthetic])
        for name in list(worst["column"])[:_MOST_DRAWN]
    ]
    table = page.Table(header=header, rows=rows, numbers=True)
    return page.section("columns", tables=[table], parts=parts, same=same)


def _pairs(summary: UtilitySummary) -> page.Section:
    tables = summary.one_and_two_way
    shown = tables.one_way.sort_values("ratio", ascending=False)["column"][:_MOST_COLUMNS]
    names = [name for name in tables.one_way["column"] if name in set(shown)]
    pairs = tables.two_way.head(_MOST_PAIRS)[["first", "second", "ratio", "total_variation"]]
    pairs = pairs[pairs["total_variation"] > 0]
    drawn, measure = figures.plot_pairs(tables.matrix().loc[names, names]), MEASURES["table_ratio"]
    worst = [page.frame_table(pairs)] if len(pairs) else []
    return page.section("pairs", figures=[drawn], tables=worst, measure=measure)


def model_section(fit: ModelUtility, heading: str) -> page.Section:
    """Forest plot and table of an analyst's model: coefficients of data and sets, their overlap and
    standardized difference."""
    varied = fit.table[fit.table["upper"] > fit.table["lower"]].rename(index=plain_term)
    drawn = [figures.plot_forest(varied[:_MOST_TERMS], "synthetic")] if len(varied) else []
    judged = ("interval_overlap", "standardised_difference")
    rows: list[list[page.Cell]] = [
        [plain_term(term), page.interval_text(row, ""), page.interval_text(row, "synthetic_"),
         *(Judged(name, float(row[name])).cell for name in judged)]
        for term, row in fit.table.iterrows()
    ]  # fmt: skip
    header = ["Term", "Data", "Synthetic", "Interval overlap", "Standardized difference"]
    data, *sets = (f"{n:,}" for n in fit.n_used)
    return page.section(
        "model", figures=drawn, tables=[page.Table(header=header, rows=rows, numbers=True)],
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
