"""Measures of utility and disclosure risk on data frames, for synthetic data from anywhere.

Every function takes the data, one synthetic set or a sequence of m, and reconciles columns, dtypes,
category levels and missing values first (`measures.reconcile`). All results are confidential:
functions of the data.
"""

from __future__ import annotations

from pyhybrid.measures.matching import (
    AttributeRisk,
    ReplicatedUniques,
    attribute_risk,
    matching_risk,
    replicated_uniques,
)
from pyhybrid.measures.pooling import Pooled, pool

__all__ = [
    "AttributeRisk",
    "Pooled",
    "ReplicatedUniques",
    "attribute_risk",
    "matching_risk",
    "pool",
    "replicated_uniques",
]
