"""All utility measures, or all risk measures, of synthetic sets in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_choice
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import generator_of
from pyhybrid.measures.arrays.matching import MatchingRisk
from pyhybrid.measures.tables.contingency import TableUtility, tables_of_tables
from pyhybrid.measures.tables.estimates import ColumnUtility, columns_of_tables
from pyhybrid.measures.tables.intervals import MODEL_RULES, SINGLE, ModelUtility, model_of_tables
from pyhybrid.measures.tables.matching import (
    AttributeRisk,
    Radius,
    ReplicatedUniques,
    attribute_risk,
    matching_risk,
    replicated_uniques,
)
from pyhybrid.measures.tables.propensity import PropensityUtility, propensity_of_tables
from pyhybrid.measures.tables.reconcile import Tables, is_numeric, reconcile_tables
from pyhybrid.measures.tables.sampled import Weights
from pyhybrid.running.tasks import Progress

__all__ = ["RiskSummary", "UtilitySummary", "risk_summary", "utility_summary"]


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
        for place, fit in enumerate(self.models, start=1):
            numbers[f"interval_overlap, mean of model {place}"] = fit.mean_overlap
            numbers[f"standardised_difference, mean of model {place}"] = fit.mean_difference
        return numbers

    def __repr__(self) -> str:
        return f"<UtilitySummary of {self.n_sets} set(s) against {self.n} records>"


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
        found = self.matching
        numbers: dict[str, float] = {"matching_risk": found.mean_risk}
        for name in ("expected_match_risk", "true_match_rate", "false_match_rate",
                     "n_unique_matches", "n_no_match"):  # fmt: skip
            value = getattr(found, name)
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


def utility_summary(
    real: pd.DataFrame,
    synthetic: Any,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    formulas: Sequence[str] = (),
    model: str = "ols",
    rule: str | None = None,
    interactions: bool = False,
    n_permutations: int = 20,
    weights: Weights = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
) -> UtilitySummary:
    """Every utility measure of m synthetic sets from anywhere.

    Parameters
    ----------
    real, synthetic, columns, categorical, interactions, n_permutations, weights, rng, progress
        As in `pyhybrid.propensity_utility`; a SurveyDesign gives models design-based intervals.
    formulas : sequence of str
        Analyst's models, each fitted to data and sets; see `pyhybrid.model_utility`.
    model : str, default "ols"
        Of statsmodels, for all formulas.
    rule : str, optional
        As in `pyhybrid.model_utility`; if omitted "partially_synthetic", and "single" for m = 1.
    """
    tables = reconcile_tables(
        real, synthetic, columns=columns, categorical=categorical, weights=weights
    )
    return summary_of_tables(
        tables,
        formulas=formulas,
        model=model,
        rule=rule,
        interactions=interactions,
        n_permutations=n_permutations,
        rng=generator_of(rng),
        progress=progress,
    )


def summary_of_tables(
    tables: Tables,
    *,
    formulas: Sequence[str],
    model: str,
    rule: str | None,
    interactions: bool,
    n_permutations: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> UtilitySummary:
    """`utility_summary` on tables that are reconciled already."""
    m = len(tables.synthetic)
    chosen = rule or (SINGLE if m == 1 else "partially_synthetic")
    check_choice(chosen, "rule", MODEL_RULES)
    return UtilitySummary(
        models=tuple(
            model_of_tables(tables, formula, model=model, rule=chosen) for formula in formulas
        ),
        columns=columns_of_tables(tables, rng=rng),
        logistic=propensity_of_tables(tables, classifier="logistic", interactions=interactions),
        cart=propensity_of_tables(
            tables, classifier="cart", n_permutations=n_permutations, rng=rng, progress=progress
        ),
        one_and_two_way=tables_of_tables(tables),
        n=len(tables.real),
        n_sets=m,
        tables=tables,
    )


def risk_summary(
    real: pd.DataFrame,
    synthetic: Any,
    *,
    keys: Sequence[str],
    radius: Radius = None,
    kind: str | Mapping[str, str] = "absolute",
    sensitive: Mapping[str, float | None] | Sequence[str] = (),
    holdout: pd.DataFrame | None = None,
    rows_correspond: bool | None = None,
) -> RiskSummary:
    """Every risk measure of m synthetic sets from anywhere.

    Parameters
    ----------
    real, synthetic, keys, radius, kind
        As in `pyhybrid.matching_risk`; `radius` names keys only, `kind` sensitive columns, too.
    sensitive : sequence of str, or mapping of str to number or None
        Columns whose attribute risk is computed, with the radius within which a value counts as
        learned; without one, values must be equal.
    holdout : DataFrame, optional
        As in `pyhybrid.attribute_risk`.
    rows_correspond : bool, optional
        As in `pyhybrid.matching_risk`.

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
    own = {k: v for k, v in kind.items() if k in keys} if isinstance(kind, Mapping) else kind
    matching = matching_risk(
        real, synthetic, keys=keys, radius=radius, kind=own, rows_correspond=rows_correspond
    )
    return RiskSummary(
        matching=matching,
        attributes={
            column: attribute_risk(
                real,
                synthetic,
                sensitive=column,
                keys=keys,
                radius=_with(radius, keys, real, column, reach),
                kind=_kinds_for(kind, keys, column),
                holdout=holdout,
            )
            for column, reach in within.items()
        },
        uniques=replicated_uniques(real, synthetic, keys=keys),
        keys=tuple(keys),
    )


def _with(
    radius: Radius, keys: Sequence[str], real: pd.DataFrame, column: str, reach: float | None
) -> dict[str, float]:
    """Radii of the keys and of the sensitive column, by name."""
    if isinstance(radius, Mapping):
        radii = dict(radius)
    else:
        numbers = [key for key in keys if is_numeric(real[key])]
        radii = {} if radius is None else dict.fromkeys(numbers, radius)
    return radii if reach is None else {**radii, column: reach}


def _kinds_for(
    kind: str | Mapping[str, str], keys: Sequence[str], column: str
) -> str | dict[str, str]:
    if isinstance(kind, Mapping):
        return {name: each for name, each in kind.items() if name in (*keys, column)}
    return kind
