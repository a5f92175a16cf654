"""Summaries as plain values for JSON, each measure with its definition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from pyhybrid.measures.definitions import MEASURES
from pyhybrid.measures.summaries import RiskSummary, UtilitySummary
from pyhybrid.measures.tables.intervals import ModelUtility

__all__ = ["risk_as_dict", "utility_as_dict"]


def utility_as_dict(summaries: Mapping[str, UtilitySummary]) -> dict[str, Any]:
    """Utility of one or more versions, by name, as dicts, lists, text, finite numbers and null."""
    return {
        "confidential": True,
        "about": "utility",
        "definitions": _definitions(*(found.overall() for found in summaries.values())),
        "versions": {name: _utility(found) for name, found in summaries.items()},
    }


def risk_as_dict(summaries: Mapping[str, RiskSummary]) -> dict[str, Any]:
    """Risk of one or more versions, as `utility_as_dict`; risks of single records are left out."""
    return {
        "confidential": True,
        "about": "risk",
        "definitions": _definitions(*(found.overall() for found in summaries.values())),
        "versions": {name: _risk(found) for name, found in summaries.items()},
    }


def _definitions(*overall: Mapping[str, float]) -> dict[str, Any]:
    names = dict.fromkeys(name.split(",")[0] for each in overall for name in each)
    return {name: asdict(MEASURES[name]) for name in names}


def _utility(found: UtilitySummary) -> dict[str, Any]:
    return {
        "n": found.n,
        "n_synthetic": found.n_sets,
        "measures": {name: _plain(value) for name, value in found.overall().items()},
        "columns": _records(found.columns.distances),
        "estimates": _records(found.columns.estimates),
        "propensities": {
            part.classifier: _records(part.by_set.reset_index())
            for part in (found.logistic, found.cart)
        },
        "one_way": _records(found.one_and_two_way.one_way),
        "two_way": _records(found.one_and_two_way.two_way),
        "models": [_model(fit) for fit in found.models],
    }


def _model(fit: ModelUtility) -> dict[str, Any]:
    return {
        "formula": fit.formula,
        "model": fit.model,
        "rule": fit.rule,
        "n_used": list(fit.n_used),
        "terms": _records(fit.table.reset_index()),
    }


def _risk(found: RiskSummary) -> dict[str, Any]:
    matching = found.matching
    return {
        "n": matching.n_targets,
        "n_synthetic": matching.n_sets,
        "keys": list(found.keys),
        "measures": {name: _plain(value) for name, value in found.overall().items()},
        "by_set": {name: [_plain(v) for v in values] for name, values in matching.by_set.items()},
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.to_dict(orient="records")
    return [{str(key): _plain(value) for key, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    """The value as JSON knows it; null for a number that is not finite (means of 1e308)."""
    own = value.item() if hasattr(value, "item") else value
    return None if isinstance(own, float) and not math.isfinite(own) else own
