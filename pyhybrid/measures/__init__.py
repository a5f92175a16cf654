"""Measures of utility and disclosure risk on data frames, for synthetic data from anywhere.

Every function takes the data, one synthetic set or a sequence of m, and reconciles columns, dtypes,
category levels and missing values first (`measures.reconcile`). All results are confidential:
functions of the data.
"""

from __future__ import annotations

from pyhybrid.measures.summaries import (
    MEASURES,
    Measure,
    RiskSummary,
    UtilitySummary,
    risk_summary,
    utility_summary,
)
from pyhybrid.measures.tables.distributions import (
    ColumnUtility,
    TableUtility,
    column_utility,
    table_utility,
)
from pyhybrid.measures.tables.matching import (
    AttributeRisk,
    ReplicatedUniques,
    attribute_risk,
    matching_risk,
    replicated_uniques,
)
from pyhybrid.measures.tables.models import ModelUtility, Pooled, model_utility, pool
from pyhybrid.measures.tables.propensity import PropensityUtility, propensity_utility

__all__ = [
    "MEASURES",
    "AttributeRisk",
    "ColumnUtility",
    "Measure",
    "ModelUtility",
    "Pooled",
    "PropensityUtility",
    "ReplicatedUniques",
    "RiskSummary",
    "TableUtility",
    "UtilitySummary",
    "attribute_risk",
    "column_utility",
    "matching_risk",
    "model_utility",
    "pool",
    "propensity_utility",
    "replicated_uniques",
    "risk_summary",
    "table_utility",
    "utility_summary",
]
