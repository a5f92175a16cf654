"""Measures of utility and disclosure risk on data frames, for synthetic data from anywhere.

Every function takes the data, one synthetic set or a sequence of m, and reconciles columns, dtypes,
category levels and missing values first (`measures.reconcile`). All results are confidential:
functions of the data.
"""

from __future__ import annotations

from pyhybrid.measures.combining import (
    Combined,
    combine_fully_synthetic,
    combine_multiple_imputation,
    combine_nested,
    combine_noise_aware,
    combine_partially_synthetic,
)
from pyhybrid.measures.estimates import Estimates, avg_ecdf, estimates, max_ecdf
from pyhybrid.measures.matching import (
    AttributeRisk,
    MatchingRisk,
    attribute_risk,
    match_counts,
    matching_risk,
)
from pyhybrid.measures.models import ModelUtility, Pooled, model_utility, pool
from pyhybrid.measures.propensity import PropensityUtility, pmse, propensity_utility
from pyhybrid.measures.summaries import (
    MEASURES,
    Measure,
    RiskSummary,
    UtilitySummary,
    risk_summary,
    utility_summary,
)
from pyhybrid.measures.utility import (
    ColumnUtility,
    TableUtility,
    column_utility,
    interval_overlap,
    standardised_difference,
    table_utility,
)

__all__ = [
    "MEASURES",
    "AttributeRisk",
    "ColumnUtility",
    "Combined",
    "Estimates",
    "MatchingRisk",
    "Measure",
    "ModelUtility",
    "Pooled",
    "PropensityUtility",
    "RiskSummary",
    "TableUtility",
    "UtilitySummary",
    "attribute_risk",
    "avg_ecdf",
    "column_utility",
    "combine_fully_synthetic",
    "combine_multiple_imputation",
    "combine_nested",
    "combine_noise_aware",
    "combine_partially_synthetic",
    "estimates",
    "interval_overlap",
    "match_counts",
    "matching_risk",
    "max_ecdf",
    "model_utility",
    "pmse",
    "pool",
    "propensity_utility",
    "risk_summary",
    "standardised_difference",
    "table_utility",
    "utility_summary",
]
