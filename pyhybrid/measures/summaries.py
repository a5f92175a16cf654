"""All measures of utility, or of risk, in one call: their definitions and summaries.

Tables and reports print a measure from its definition: no number stands without its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from pyhybrid.core.checks import check_choice, number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import generator_of
from pyhybrid.measures.matching import (
    AttributeRisk,
    Kind,
    MatchingRisk,
    Radius,
    attribute_risk,
    matching_risk,
)
from pyhybrid.measures.models import MODEL_RULES, SINGLE, ModelUtility, model_utility
from pyhybrid.measures.propensity import PropensityUtility, propensity_utility
from pyhybrid.measures.reconcile import Tables, is_numeric, reconcile_tables
from pyhybrid.measures.utility import ColumnUtility, TableUtility, column_utility, table_utility
from pyhybrid.running.tasks import Progress


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure of utility or disclosure risk: title in tables, definition, range, which way is
    more useful or safer, and its values of data as good as the data, or without risk (`at_best`),
    and of useless data, or of the data published as they are (`at_worst`)."""

    title: str
    about: str
    definition: str
    range: str
    direction: str
    at_best: str
    at_worst: str


_FILE = files("pyhybrid.measures").joinpath("measures.json")
MEASURES = {name: Measure(**how) for name, how in json.loads(_FILE.read_text("utf-8")).items()}
"""Every measure by name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class UtilitySummary:
    """Utility of m synthetic sets. Confidential: functions of the data.

    Attributes
    ----------
    columns : ColumnUtility
        Estimates and distances of distribution functions, column by column.
    logistic, cart : PropensityUtility
        pMSE by logistic regression on main effects and by CART.
    one_and_two_way : TableUtility
    models : tuple of ModelUtility
        One for each formula.
    tables : Tables
        What was compared.
    """

    columns: ColumnUtility
    logistic: PropensityUtility
    cart: PropensityUtility
    one_and_two_way: TableUtility
    models: tuple[ModelUtility, ...]
    tables: Tables

    def overall(self) -> dict[str, float]:
        """One number for each measure, by names such as "pmse, logistic"; averages over sets."""
        numbers: dict[str, Any] = {}
        for part in (self.logistic, self.cart):
            numbers[f"pmse, {part.classifier}"] = part.pmse
            numbers[f"pmse_ratio, {part.classifier}"] = part.ratio
            numbers[f"pmse_standardised, {part.classifier}"] = part.standardised
        distances = self.columns.distances
        if len(distances):
            for measure in ("max_ecdf", "avg_ecdf"):
                numbers[f"{measure}, worst column"] = distances[measure].max()
        one, two = self.one_and_two_way.one_way, self.one_and_two_way.two_way
        numbers["table_ratio, worst column"] = one["ratio"].max()
        numbers["total_variation, worst column"] = one["total_variation"].max()
        if len(two):
            numbers["table_ratio, worst pair"] = two["ratio"].max()
            numbers["table_ratio, mean of pairs"] = two["ratio"].mean()
        for number, fit in enumerate(self.models, start=1):
            numbers[f"interval_overlap, mean of model {number}"] = fit.mean_overlap
            differences = fit.table["standardised_difference"]
            numbers[f"standardised_difference, mean of model {number}"] = differences.mean()
        return {name: float(value) for name, value in numbers.items()}

    def __repr__(self) -> str:
        sets, n = number_of(len(self.tables.synthetic), "set"), len(self.tables.real)
        return f"<UtilitySummary of {sets} against {n} records>"


@dataclass(frozen=True, kw_only=True, eq=False)
class RiskSummary:
    """Disclosure risk of m synthetic sets: `matching` on `keys`, and `attributes` by sensitive
    column. Confidential: functions of the data."""

    matching: MatchingRisk
    attributes: dict[str, AttributeRisk]
    keys: tuple[str, ...]

    def overall(self) -> dict[str, float]:
        """One number for each measure; those that need corresponding rows only where they do."""
        matching = self.matching
        numbers: dict[str, float | None] = {"matching_risk": matching.mean_risk}
        for name in ("expected_match_risk", "true_match_rate", "false_match_rate",
                     "n_unique_matches", "n_no_match"):  # fmt: skip
            numbers[name] = getattr(matching, name)
        for column, risk in self.attributes.items():
            numbers[f"attribute_risk, {column}"] = risk.overall
            numbers[f"attribute_baseline, {column}"] = risk.baseline
            numbers[f"attribute_holdout, {column}"] = risk.holdout
        return {name: float(value) for name, value in numbers.items() if value is not None}


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
    n_permutations: int = 20,
    weights: str | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
) -> UtilitySummary:
    """Every utility measure of m synthetic sets from anywhere.

    Parameters
    ----------
    real, synthetic, columns, categorical, n_permutations, weights, rng, progress
        As in `pyhybrid.measures.propensity_utility`.
    formulas : sequence of str
        Analyst's models, each fitted to data and sets; see `pyhybrid.measures.model_utility`.
    model : str, default "ols"
        Of statsmodels, for all formulas.
    rule : str, optional
        As in `pyhybrid.measures.model_utility`; if omitted "partially_synthetic", and "single" for
        m = 1.
    """
    tables = reconcile_tables(real, synthetic, columns, categorical, weights)
    generator = generator_of(rng)
    chosen = rule or (SINGLE if len(tables.synthetic) == 1 else "partially_synthetic")
    check_choice(chosen, "rule", MODEL_RULES)
    permuted: dict[str, Any] = {"n_permutations": n_permutations, "progress": progress}
    return UtilitySummary(
        models=tuple(
            model_utility(tables, None, formula, model=model, rule=chosen) for formula in formulas
        ),
        columns=column_utility(tables, rng=generator),
        logistic=propensity_utility(tables),
        cart=propensity_utility(tables, classifier="cart", rng=generator, **permuted),
        one_and_two_way=table_utility(tables),
        tables=tables,
    )


def risk_summary(
    real: Any,
    synthetic: Any,
    *,
    keys: Sequence[str],
    radius: Radius = None,
    kind: Kind = "absolute",
    sensitive: Mapping[str, float | None] | Sequence[str] = (),
    holdout: Any = None,
    rows_correspond: bool | None = None,
) -> RiskSummary:
    """Every risk measure of m synthetic sets from anywhere.

    Risk takes no design weights: it is that of the records in the file, one each. Who stands for
    many is in the file no less.

    Parameters
    ----------
    real, synthetic, keys, radius, kind, rows_correspond, holdout
        As in `pyhybrid.measures.matching_risk` and `attribute_risk`; `kind` may name sensitive
        columns, too.
    sensitive : sequence of str, or mapping of str to number or None
        Columns whose attribute risk is computed, with the radius within which a value counts as
        learned; without one, values must be equal.
    """
    within = dict(sensitive) if isinstance(sensitive, Mapping) else dict.fromkeys(sensitive)
    if holdout is not None and not within:
        raise InvalidInput("holdout is for attribute risk: name at least one sensitive column")
    kinds = kind if isinstance(kind, Mapping) else dict.fromkeys([*keys, *within], kind)
    of_keys = {key: kinds[key] for key in keys if key in kinds}
    matching = matching_risk(
        real, synthetic, keys=keys, radius=radius, kind=of_keys, rows_correspond=rows_correspond
    )
    radii = radius or {}
    if not isinstance(radii, Mapping):
        radii = {key: radii for key in keys if is_numeric(real[key])}
    attributes = {}
    for column, reach in within.items():
        attributes[column] = attribute_risk(
            real, synthetic, sensitive=column, keys=keys, holdout=holdout,
            radius=radii if reach is None else {**radii, column: reach},
            kind={**of_keys, column: kinds.get(column, "absolute")},
        )  # fmt: skip
    return RiskSummary(matching=matching, attributes=attributes, keys=tuple(keys))
