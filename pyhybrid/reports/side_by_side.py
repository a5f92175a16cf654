"""Epsilon, risk, utility and inference of a release on one page of its report. CONFIDENTIAL.

The work is bounded, so that a report costs seconds whatever n and m are: risks are computed on at
most 10,000 records, classifiers see at most 4,000, and of m sets the first few count. The page says
so where it applies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from pyhybrid.core.checks import IntArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.matching import attribute_risk, matching_risk
from pyhybrid.measures.models import SINGLE, ModelUtility, model_utility
from pyhybrid.measures.propensity import propensity_utility
from pyhybrid.measures.reconcile import Tables, is_numeric, reconcile_tables
from pyhybrid.measures.summaries import MEASURES
from pyhybrid.measures.utility import column_utility, table_utility
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.releases.release import Release
from pyhybrid.reports.figures import plot_forest
from pyhybrid.reports.measures import measure_rows, model_table
from pyhybrid.reports.page import Section, Table, section, sentence
from pyhybrid.reports.verdicts import judged_cell

_MOST_TARGETS, _MOST_ROWS, _MOST_FITTED = 10_000, 4_000, 20_000
_MOST_SETS, _PERMUTATIONS, _MOST_TERMS = 3, 10, 60
_WITHIN = 0.1
_FEW_COLUMNS = 2
_BY_COLUMN = ("max_ecdf", "avg_ecdf", "attribute_risk", "attribute_baseline")

_DISTANCES = ("max_ecdf", "avg_ecdf")
_OF_RISK, _OF_UTILITY = ["No risk", "Data as they are"], ["As good as the data", "Useless"]
_RISKS = ("expected_match_risk", "true_match_rate", "n_no_match")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Columns:
    """What the page compares: synthesized columns, and predictors that were kept."""

    synthesized: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def all(self) -> list[str]:
        return [*self.kept, *self.synthesized]


def side_by_side(releases: Mapping[str, Release], data: pd.DataFrame) -> list[Section]:
    """What is guaranteed, risked, kept and inferred, of each release of the same columns of the
    same records in a column of its own, and regression coefficients beside those of the data."""
    first = next(iter(releases.values()))
    own = [each.decisions for each in releases.values()]
    gone = {*first.synthesized, *(c for each in own for c in (*each.drop, *each.ids))}
    kept = tuple(c for c in first.predictors if c not in gone and c in data.columns)
    columns = _Columns(synthesized=first.synthesized, kept=kept)
    bounded = min(len(data), _MOST_TARGETS)
    sets = min(_MOST_SETS, max(len(each.synthetic) for each in releases.values()))
    tables, left_out, drawn = [_privacy(releases)], [], []
    for part in (_risk, _utility):
        try:
            tables += part(releases, data, columns)
        except InvalidInput as error:
            left_out.append([f"Not computed: {error}."])
    try:
        fits = _fits(releases, data, columns)
        tables += _inference(fits)
        drawn = [coefficients_section(fits)]
    except InvalidInput as error:
        left_out.append([f"Not computed: {error}."])
    shown = section(
        "side by side", tables=tables, columns=columns, within=100 * _WITHIN, bounded=bounded,
        sets=sets, classified=min(len(data), _MOST_ROWS), fewer=bounded < len(data),
    )  # fmt: skip
    return [replace(shown, paragraphs=[*shown.paragraphs, *left_out]), *drawn]


def _privacy(releases: Mapping[str, Release]) -> Table:
    charges = [release.charge for release in releases.values()]
    about = {"asymptotic local": "local", "strict": "strict"}
    kinds = [
        sentence("side by side, epsilon", about[kind]) if kind in about else kind
        for kind in dict.fromkeys(charge.kind for charge in charges)
    ]
    epsilon = sentence("side by side, epsilon", "epsilon")
    whose = (f"{c.kind}, {c.relation} {c.protected}" for c in charges)
    rows = [
        ["epsilon", *(epsilon_text(c.epsilon) for c in charges), "0", "no limit", epsilon],
        ["kind, relation", *whose, "strict", "none", f"{'; '.join(kinds)}."],
    ]
    header = ["Measure", *releases, *_OF_RISK, "What it is"]
    return Table(caption="Epsilon: what is guaranteed.", header=header, rows=rows)


def _risk(releases: Mapping[str, Release], data: pd.DataFrame, columns: _Columns) -> list[Table]:
    rows = _sample(len(data), _MOST_TARGETS)
    real = data[columns.all].iloc[rows]
    near = [column for column in columns.synthesized if is_numeric(real[column])]
    found = {}
    versions = {name: each.synthetic[:_MOST_SETS] for name, each in releases.items()}
    for name, sets in {**versions, "the data themselves": [data]}.items():
        synthetic = [table[columns.all].iloc[rows] for table in sets]
        risk = matching_risk(
            real,
            synthetic,
            keys=columns.all,
            radius=dict.fromkeys(near, _WITHIN),
            kind=dict.fromkeys(near, "relative"),
            rows_correspond=True,
        )
        found[name] = {"matching_risk": risk.mean_risk}
        own = {measure: getattr(risk, measure) for measure in _RISKS}
        found[name] |= {
            measure: float(value) for measure, value in own.items() if value is not None
        }
        for column in near if columns.kept else ():  # for one who knows the others
            of = attribute_risk(
                real,
                synthetic,
                sensitive=column,
                keys=columns.kept,
                radius={column: _WITHIN},
                kind={column: "relative"},
            )
            found[name][f"attribute_risk, {column}"] = of.overall
            found[name][f"attribute_baseline, {column}"] = of.baseline
    return _measures(sentence("side by side, epsilon", "risk"), found, _OF_RISK)


def _utility(releases: Mapping[str, Release], data: pd.DataFrame, columns: _Columns) -> list[Table]:
    found = {}
    for name, release in releases.items():
        sets = release.synthetic[:_MOST_SETS]
        tables = reconcile_tables(data, sets, columns=columns.all)
        rows = _sample(len(data), _MOST_ROWS)
        few = _part(tables, rows, list(tables.real.columns))
        logistic = propensity_utility(few)
        cart = propensity_utility(few, classifier="cart", n_permutations=_PERMUTATIONS, rng=1)
        numbers = {"pmse_ratio, logistic": logistic.ratio, "pmse_ratio, cart": cart.ratio}
        own = [c for c in columns.synthesized if tables.is_number(c)]
        if own:
            part = _part(tables, np.arange(len(data)), own)
            distances = column_utility(part, n_resamples=100, rng=1).distances
            for column, row in distances.set_index("column").iterrows():
                numbers |= {f"{name}, {column}": float(row[name]) for name in _DISTANCES}
        pairs = table_utility(tables).two_way
        if len(pairs):
            worst = pairs.iloc[0]
            label = f"table_ratio, {worst['first']} and {worst['second']}"
            numbers["table_ratio, worst pair" if len(releases) > 1 else label] = worst["ratio"]
        found[name] = numbers
    return _measures("Utility: how near the synthetic sets are to the data.", found, _OF_UTILITY)


def _fits(
    releases: Mapping[str, Release], data: pd.DataFrame, columns: _Columns
) -> dict[str, ModelUtility]:
    """The linear model of the first synthesized column of numbers, on data and sets."""
    rows = _sample(len(data), _MOST_FITTED)
    found = {}
    for name, release in releases.items():
        sets = [table[columns.all].iloc[rows] for table in release.synthetic]
        tables = reconcile_tables(data[columns.all].iloc[rows], sets)
        outcome = next((c for c in columns.synthesized if tables.is_number(c)), None)
        if outcome is None:
            raise InvalidInput("a linear model needs a synthesized column of numbers")
        rule = SINGLE if len(sets) == 1 else "partially_synthetic"
        found[name] = model_utility(tables, None, _formula(tables, outcome, columns), rule=rule)
    return found


def _inference(fits: Mapping[str, ModelUtility]) -> list[Table]:
    found = {
        name: {
            "interval_overlap, mean": fit.mean_overlap,
            "interval_overlap, worst": float(fit.table["interval_overlap"].min()),
            "standardised_difference, worst": float(fit.table["standardised_difference"].max()),
        }
        for name, fit in fits.items()
    }
    rules = {
        "one set as if it were data" if fit.rule == SINGLE else "combined by [R03]"
        for fit in fits.values()
    }
    formula = plain_formula(next(iter(fits.values())).formula)
    caption = sentence("side by side, epsilon", "inference", formula=formula, rules=sorted(rules))
    return _measures(caption, found, _OF_UTILITY)


def _formula(tables: Tables, outcome: str, columns: _Columns) -> str:
    """Main effects of the other columns, as long as their terms are not too many."""
    terms, width = [], 0
    for column in columns.all:
        number = tables.is_number(column)
        width += 1 if number else len(tables.real[column].cat.categories) - 1
        varied = tables.real[column].nunique() > 1
        if column != outcome and varied and width <= _MOST_TERMS:
            terms.append(f"Q({column!r})")
    return f"Q({outcome!r}) ~ {' + '.join(terms) or '1'}"


def _measures(caption: str, found: Mapping[str, dict[str, float]], ends: list[str]) -> list[Table]:
    """A row for each measure; measures of many columns apart, with a row for each column."""
    header = ["Measure", *found, *ends, "What it is"]
    names = dict.fromkeys(name for each in found.values() for name in each)
    of_columns = [name for name in names if name.split(", ")[0] in _BY_COLUMN]
    columns = list(dict.fromkeys(name.partition(", ")[2] for name in of_columns))
    if len(columns) <= _FEW_COLUMNS:
        return [Table(caption=caption, header=header, rows=measure_rows(found))]
    rest = {
        version: {name: value for name, value in each.items() if name not in of_columns}
        for version, each in found.items()
    }
    measures = list(dict.fromkeys(name.partition(", ")[0] for name in of_columns))
    meaning = " ".join(
        f"{MEASURES[key].title}: {MEASURES[key].definition} {MEASURES[key].direction.capitalize()}."
        for key in measures
    )
    rows = [
        [
            column if len(found) == 1 else f"{column}, {version}",
            *(judged_cell(key, each.get(f"{key}, {column}")) for key in measures),
        ]
        for column in columns
        for version, each in found.items()
    ]
    whole = Table(caption=caption, header=header, rows=measure_rows(rest))
    header = ["Column", *(MEASURES[key].title for key in measures)]
    about = f"A row for each column. {meaning}"
    by_column = Table(caption=about, header=header, rows=rows, numbers=True)
    return [whole, by_column]


def _sample(n: int, most: int) -> IntArray:
    """Places of at most `most` of n records, the same ones each time, in their order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(1).choice(n, most, replace=False))


def _part(tables: Tables, rows: IntArray, columns: Sequence[str]) -> Tables:
    whole = (tables.real, *tables.synthetic)
    real, *sets = (table[columns].iloc[rows].reset_index(drop=True) for table in whole)
    return Tables(real=real, synthetic=tuple(sets), names=tables.names)


_MOST_DRAWN = 30


def coefficients_section(fits: Mapping[str, ModelUtility]) -> Section:
    """Forest plot of a model in all releases, and the table of the first, that of the report."""
    name, first = next(iter(fits.items()))
    varied = first.table["upper"] > first.table["lower"]
    terms = list(first.table.index[varied])[:_MOST_DRAWN]
    figures = []
    if terms:
        tables = {key: fit.table.loc[terms].rename(index=plain_term) for key, fit in fits.items()}
        figures = [plot_forest(tables)]
    return section(
        "coefficients",
        figures=figures,
        tables=[model_table(first, name, plain_term)],
        formula=plain_formula(first.formula), terms=len(terms), more=int(varied.sum()) - len(terms),
    )  # fmt: skip


def plain_formula(formula: str) -> str:
    """The formula as people write it, names that need no quotes without them."""
    return re.sub(r"Q\('([A-Za-z_]\w*)'\)", r"\1", formula)


def plain_term(term: str) -> str:
    """A term as people write it: "region = west" for "Q('region')[T.west]" or C(region)[T.west]."""
    plain = re.sub(r"\bC\((\w+)\)(?=\[T\.)", r"\1", plain_formula(str(term)))
    return re.sub(r"\[T\.(.*?)\]", r" = \1", plain)
