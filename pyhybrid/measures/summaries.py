"""All measures of utility, or of risk, in one call: their definitions, summaries, and JSON.

Tables, reports and JSON print a measure from its definition, so that no number stands without its
meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_choice, number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import generator_of
from pyhybrid.measures.matching import (
    AttributeRisk,
    MatchingRisk,
    Radius,
    ReplicatedUniques,
    attribute_risk,
    matching_risk,
    replicated_uniques,
)
from pyhybrid.measures.models import MODEL_RULES, SINGLE, ModelUtility, model_utility
from pyhybrid.measures.propensity import PropensityUtility, propensity_utility
from pyhybrid.measures.reconcile import Tables, is_numeric, reconcile_tables
from pyhybrid.measures.utility import (
    ColumnUtility,
    TableUtility,
    column_utility,
    table_utility,
)
from pyhybrid.running.tasks import Progress

_LESS, _MORE = "smaller is more useful", "larger is more useful"
_SAFER, _RISKIER = "larger is safer", "smaller is safer"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure of utility or disclosure risk.

    Attributes
    ----------
    title : str
        As tables call it.
    about : {"utility", "risk"}
    definition : str
        One line.
    range : str
    direction : str
        Which way is better: more useful, or safer.
    at_best : str
        Value of perfect data: as good as the data (utility), or without risk (risk).
    at_worst : str
        Value of useless data (utility), or of the data published as they are (risk).
    """

    title: str
    about: str
    definition: str
    range: str
    direction: str
    at_best: str
    at_worst: str


def _of(about: str, *rest: str) -> Measure:
    """A measure from its other fields in their order."""
    names = (field.name for field in fields(Measure) if field.name != "about")
    return Measure(about=about, **dict(zip(names, rest, strict=True)))


_utility, _risk = partial(_of, "utility"), partial(_of, "risk")

MEASURES = {
    "max_ecdf": _utility(
        "max-ECDF",
        "Largest gap between the distribution functions of a column in data and synthetic set.",
        "[0, 1]", _LESS, "0", "1: the values do not overlap",
    ),
    "avg_ecdf": _utility(
        "avg-ECDF",
        "Mean squared gap between the distribution functions over all pooled values.",
        "[0, 1]", _LESS, "0", "1/3: the values do not overlap, sets of equal size",
    ),
    "estimates": _utility(
        "estimate",
        "Mean or percentile with a 95 % interval by resampling; of m sets, averaged quantile by "
        "quantile (Wasserstein barycenter).",
        "unit of the column", "near the data is more useful", "that of the data", "any",
    ),
    "total_variation": _utility(
        "total variation",
        "Half the sum of absolute differences of the shares in the cells of a table.",
        "[0, 1]", _LESS, "0", "1: no cell in common",
    ),
    "table_ratio": _utility(
        "table ratio",
        "Voas-Williamson distance of two tables over its expectation for two "
        "samples of one population.",
        "from 0", _LESS, "0; about 1 for a second sample", "in the order of n",
    ),
    "pmse": _utility(
        "pMSE",
        "Mean squared distance of the propensities of being synthetic from the share of synthetic "
        "rows.",
        "[0, 1/4] for sets as large as the data", _LESS, "0", "1/4: every row can be recognized",
    ),
    "pmse_ratio": _utility(
        "pMSE ratio",
        "pMSE over its expectation if data and synthetic rows differ by chance alone.",
        "from 0", _LESS, "0; about 1 for a second sample", "1/4 over the expectation: large",
    ),
    "pmse_standardised": _utility(
        "standardized pMSE",
        "pMSE less its expectation under chance, in standard deviations under chance.",
        "any number", _LESS, "about 0 for a second sample; below for a copy", "large",
    ),
    "specks": _utility(
        "SPECKS",
        "Kolmogorov-Smirnov distance of the propensities of data and synthetic rows.",
        "[0, 1]", _LESS, "0", "1: every row can be recognized",
    ),
    "interval_overlap": _utility(
        "interval overlap",
        "Overlap of the confidence intervals of a coefficient from data and synthetic sets, as a "
        "share of their lengths.",
        "up to 1, negative for disjoint intervals", _MORE, "1", "0 or below: disjoint",
    ),
    "standardised_difference": _utility(
        "standardized difference",
        "Distance of a coefficient from that of the data, in standard errors of the data.",
        "from 0", _LESS, "0", "2 and more: outside the interval of the data",
    ),
    "mean_error": _utility(
        "error of the mean",
        "Distance of the mean of the synthetic sets from that of the data, as a share of the "
        "latter; of the column's deviation where the mean is near 0.",
        "from 0", _LESS, "0", "in the order of 1",
    ),
    "matching_risk": _risk(
        "matching risk I",
        "1/c with c the synthetic records that match a target on the keys, 0 for none, averaged "
        "over sets and targets: the intruder's confidence, whether right or wrong.",
        "[0, 1]", _RISKIER, "0: nothing matches", "1 if all records are unique on the keys",
    ),
    "expected_match_risk": _risk(
        "expected match risk",
        "Expected number of targets identified correctly when the intruder picks a match at "
        "random.",
        "[0, n]", _RISKIER, "0", "number of distinct records on the keys",
    ),
    "true_match_rate": _risk(
        "true match rate",
        "Share of targets whose only match is their own record.",
        "[0, 1]", _RISKIER, "0", "share of records that are unique on the keys",
    ),
    "false_match_rate": _risk(
        "false match rate",
        "Share of single matches that are another's record; 0 if there is no single match.",
        "[0, 1]", _SAFER, "1: single matches mislead", "0",
    ),
    "n_unique_matches": _risk(
        "targets with one match",
        "Targets that exactly one synthetic record matches, true or false; average over the sets.",
        "[0, n]", _RISKIER, "0", "records that are unique on the keys",
    ),
    "n_no_match": _risk(
        "targets without a match",
        "Targets that no synthetic record matches; average over the sets.",
        "[0, n]", _SAFER, "n", "0",
    ),
    "attribute_risk": _risk(
        "attribute risk",
        "Share of a target's matches whose sensitive value lies within the radius of the target's.",
        "[0, 1]", _RISKIER, "that of records outside the data", "1 if keys determine the value",
    ),
    "attribute_baseline": _risk(
        "without the keys",
        "Attribute risk of an intruder who knows no key: share of all synthetic records within "
        "the radius.",
        "[0, 1]", _RISKIER, "the same as with the keys", "below that with the keys",
    ),
    "attribute_holdout": _risk(
        "records outside the data",
        "Attribute risk of records that were not used for the synthesis: what is learned of "
        "anybody.",
        "[0, 1]", "to compare with", "the same as of the data", "below that of the data",
    ),
    "replicated_uniques": _risk(
        "replicated uniques",
        "Share of records alone with their keys in the data that are alone with the same keys in "
        "the synthetic set; equality, no radius.",
        "[0, 1]", _RISKIER, "0", "share of records that are unique on the keys",
    ),
}  # fmt: skip
"""Every measure by name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class UtilitySummary:
    """Utility of m synthetic sets. Confidential: functions of the data.

    Attributes
    ----------
    columns : ColumnUtility
        Estimates and distances of distribution functions, column by column.
    logistic, cart : PropensityUtility
        pMSE and SPECKS by logistic regression on main effects and by CART.
    one_and_two_way : TableUtility
    models : tuple of ModelUtility
        One for each formula.
    n, n_sets : int
        Records of the data; m.
    tables : Tables
        What was compared.
    """

    columns: ColumnUtility
    logistic: PropensityUtility
    cart: PropensityUtility
    one_and_two_way: TableUtility
    models: tuple[ModelUtility, ...]
    n: int
    n_sets: int
    tables: Tables

    def overall(self) -> dict[str, float]:
        """One number for each measure, by names such as "pmse, logistic"; averages over sets."""
        numbers: dict[str, float] = {}
        for part in (self.logistic, self.cart):
            for measure in ("pmse", "pmse_ratio", "pmse_standardised", "specks"):
                value = getattr(part, measure.removeprefix("pmse_"))
                numbers[f"{measure}, {part.classifier}"] = float(value)
        distances = self.columns.distances
        if len(distances):
            for measure in ("max_ecdf", "avg_ecdf"):
                numbers[f"{measure}, worst column"] = float(distances[measure].max())
        one, two = self.one_and_two_way.one_way, self.one_and_two_way.two_way
        numbers["table_ratio, worst column"] = float(one["ratio"].max())
        numbers["total_variation, worst column"] = float(one["total_variation"].max())
        if len(two):
            numbers["table_ratio, worst pair"] = float(two["ratio"].max())
            numbers["table_ratio, mean of pairs"] = float(two["ratio"].mean())
        for number, fit in enumerate(self.models, start=1):
            numbers[f"interval_overlap, mean of model {number}"] = fit.mean_overlap
            numbers[f"standardised_difference, mean of model {number}"] = fit.mean_difference
        return numbers

    def __repr__(self) -> str:
        return f"<UtilitySummary of {number_of(self.n_sets, 'set')} against {self.n} records>"


@dataclass(frozen=True, kw_only=True, eq=False)
class RiskSummary:
    """Disclosure risk of m synthetic sets. Confidential: functions of the data.

    Attributes
    ----------
    matching : MatchingRisk
    attributes : mapping of str to AttributeRisk
        By sensitive column.
    uniques : ReplicatedUniques
    keys : tuple of str
    """

    matching: MatchingRisk
    attributes: dict[str, AttributeRisk]
    uniques: ReplicatedUniques
    keys: tuple[str, ...]

    def overall(self) -> dict[str, float]:
        """One number for each measure; those that need corresponding rows only where they do."""
        matching = self.matching
        numbers: dict[str, float] = {"matching_risk": matching.mean_risk}
        for name in ("expected_match_risk", "true_match_rate", "false_match_rate",
                     "n_unique_matches", "n_no_match"):  # fmt: skip
            value = getattr(matching, name)
            if value is not None:
                numbers[name] = float(value)
        for column, risk in self.attributes.items():
            numbers[f"attribute_risk, {column}"] = risk.overall
            numbers[f"attribute_baseline, {column}"] = risk.baseline
            if risk.holdout is not None:
                numbers[f"attribute_holdout, {column}"] = risk.holdout
        numbers["replicated_uniques"] = self.uniques.share
        return numbers

    def __repr__(self) -> str:
        return f"<RiskSummary on {', '.join(self.keys)}: {self.matching!r}>"


@bar_in_notebooks
def utility_summary(
    real: Any,
    synthetic: Any,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    formulas: Sequence[str] = (),
    model: str = "ols",
    rule: str | None = None,
    interactions: bool = False,
    n_permutations: int = 20,
    weights: str | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
) -> UtilitySummary:
    """Every utility measure of m synthetic sets from anywhere.

    Parameters
    ----------
    real, synthetic, columns, categorical, interactions, n_permutations, weights, rng, progress
        As in `pyhybrid.measures.propensity_utility`.
    formulas : sequence of str
        Analyst's models, each fitted to data and sets; see `pyhybrid.measures.model_utility`.
    model : str, default "ols"
        Of statsmodels, for all formulas.
    rule : str, optional
        As in `pyhybrid.measures.model_utility`; if omitted "partially_synthetic", and "single" for
        m = 1.
    """
    tables = reconcile_tables(
        real, synthetic, columns=columns, categorical=categorical, weights=weights
    )
    generator = generator_of(rng)
    m = len(tables.synthetic)
    chosen = rule or (SINGLE if m == 1 else "partially_synthetic")
    check_choice(chosen, "rule", MODEL_RULES)
    return UtilitySummary(
        models=tuple(
            model_utility(tables, None, formula, model=model, rule=chosen) for formula in formulas
        ),
        columns=column_utility(tables, n_resamples=None, rng=generator),
        logistic=propensity_utility(tables, interactions=interactions),
        cart=propensity_utility(
            tables,
            classifier="cart",
            n_permutations=n_permutations,
            rng=generator,
            progress=progress,
        ),
        one_and_two_way=table_utility(tables),
        n=len(tables.real),
        n_sets=m,
        tables=tables,
    )


def risk_summary(
    real: Any,
    synthetic: Any,
    *,
    keys: Sequence[str],
    radius: Radius = None,
    kind: str | Mapping[str, str] = "absolute",
    sensitive: Mapping[str, float | None] | Sequence[str] = (),
    holdout: Any = None,
    rows_correspond: bool | None = None,
) -> RiskSummary:
    """Every risk measure of m synthetic sets from anywhere.

    Parameters
    ----------
    real, synthetic, keys, radius, kind
        As in `pyhybrid.measures.matching_risk`; `radius` names keys only, `kind` sensitive columns,
        too.
    sensitive : sequence of str, or mapping of str to number or None
        Columns whose attribute risk is computed, with the radius within which a value counts as
        learned; without one, values must be equal.
    holdout : DataFrame, optional
        As in `pyhybrid.measures.attribute_risk`.
    rows_correspond : bool, optional
        As in `pyhybrid.measures.matching_risk`.

    Notes
    -----
    Risk takes no design weights: it is that of the records in the file, one each. Who stands for
    many is in the file no less.

    Raises
    ------
    InvalidInput
        For a holdout without a sensitive column, and as the single measures do.
    """
    within = dict(sensitive) if isinstance(sensitive, Mapping) else dict.fromkeys(sensitive)
    if holdout is not None and not within:
        raise InvalidInput("holdout is for attribute risk: name at least one sensitive column")

    def kinds_of(columns: Sequence[str]) -> str | dict[str, str]:
        if not isinstance(kind, Mapping):
            return kind
        return {column: kind[column] for column in columns if column in kind}

    matching = matching_risk(
        real,
        synthetic,
        keys=keys,
        radius=radius,
        kind=kinds_of(keys),
        rows_correspond=rows_correspond,
    )
    if isinstance(radius, Mapping) or radius is None:
        radii = dict(radius or {})
    else:
        radii = {key: radius for key in keys if is_numeric(real[key])}
    attributes = {
        column: attribute_risk(
            real,
            synthetic,
            sensitive=column,
            keys=keys,
            radius=radii if reach is None else {**radii, column: reach},
            kind=kinds_of([*keys, column]),
            holdout=holdout,
        )
        for column, reach in within.items()
    }
    uniques = replicated_uniques(real, synthetic, keys=keys)
    return RiskSummary(matching=matching, attributes=attributes, uniques=uniques, keys=tuple(keys))


def utility_as_dict(summaries: Mapping[str, UtilitySummary]) -> dict[str, Any]:
    """Utility of one or more versions, by name, as dicts, lists, text, finite numbers and null."""
    return _as_dict("utility", summaries, _utility_fields)


def risk_as_dict(summaries: Mapping[str, RiskSummary]) -> dict[str, Any]:
    """Risk of one or more versions, as `utility_as_dict`; risks of single records are left out."""
    return _as_dict("risk", summaries, _risk_fields)


def _as_dict(
    about: str, summaries: Mapping[str, Any], fields_of: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    names = dict.fromkeys(
        name.split(",")[0] for summary in summaries.values() for name in summary.overall()
    )
    return {
        "confidential": True,
        "about": about,
        "definitions": {name: asdict(MEASURES[name]) for name in names},
        "versions": {name: fields_of(summary) for name, summary in summaries.items()},
    }


def _utility_fields(summary: UtilitySummary) -> dict[str, Any]:
    return {
        "n": summary.n,
        "n_synthetic": summary.n_sets,
        "measures": {name: _plain(value) for name, value in summary.overall().items()},
        "columns": _records(summary.columns.distances),
        "estimates": _records(summary.columns.estimates),
        "propensities": {
            part.classifier: _records(part.by_set.reset_index())
            for part in (summary.logistic, summary.cart)
        },
        "one_way": _records(summary.one_and_two_way.one_way),
        "two_way": _records(summary.one_and_two_way.two_way),
        "models": [
            {
                "formula": fit.formula,
                "model": fit.model,
                "rule": fit.rule,
                "n_used": list(fit.n_used),
                "terms": _records(fit.table.reset_index()),
            }
            for fit in summary.models
        ],
    }


def _risk_fields(summary: RiskSummary) -> dict[str, Any]:
    matching = summary.matching
    return {
        "n": matching.n_targets,
        "n_synthetic": matching.n_sets,
        "keys": list(summary.keys),
        "measures": {name: _plain(value) for name, value in summary.overall().items()},
        "by_set": {name: [_plain(v) for v in values] for name, values in matching.by_set.items()},
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.to_dict(orient="records")
    return [{str(key): _plain(value) for key, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    """The value as JSON knows it; null for a number that is not finite (means of 1e308)."""
    number = value.item() if hasattr(value, "item") else value
    return None if isinstance(number, float) and not math.isfinite(number) else number
