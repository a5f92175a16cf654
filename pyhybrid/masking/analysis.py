"""An analyst's model on the data beside its combined fit on a masked release; matching risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.errors import InvalidInput
from pyhybrid.masking.release import NESTED, MaskedRelease
from pyhybrid.measures.arrays.matching import MatchingRisk
from pyhybrid.measures.tables.combining import pool
from pyhybrid.measures.tables.intervals import (
    ModelUtility,
    _check_terms,
    _fit,
    _t_interval,
    _table,
    model_utility,
)
from pyhybrid.measures.tables.matching import matching_risk
from pyhybrid.measures.tables.reconcile import reconcile_tables

__all__ = ["masked_utility", "naming_share", "release_risk"]


def masked_utility(
    release: MaskedRelease,
    df: pd.DataFrame,
    formula: str,
    *,
    model: str = "ols",
    categorical: Sequence[str] = (),
    level: float = 0.95,
) -> ModelUtility:
    """`pyhybrid.model_utility` by the release's own rule, that of nested imputations among them.

    Where keys have missing values the model of the data uses the records without.

    Parameters
    ----------
    release : MaskedRelease
    df : DataFrame
        The confidential data.
    formula, model, categorical, level
        As in `pyhybrid.model_utility`.
    """
    if release.rule != NESTED:
        return model_utility(
            df, release.synthetic, formula, model=model, categorical=categorical,
            rule=release.rule if len(release.synthetic) > 1 else "single", level=level,
        )  # fmt: skip
    tables = reconcile_tables(df, release.synthetic, categorical=categorical)
    names = ["the data", *tables.names]
    fits: list[Any] = [
        _fit(table, formula, model, {}, name)
        for table, name in zip((tables.real, *tables.synthetic), names, strict=True)
    ]
    for fit, name in zip(fits[1:], tables.names, strict=True):
        _check_terms(fits[0], fit, name)
    r = release.n_per_imputation
    nests = [fits[k : k + r] for k in range(1, len(fits), r)]
    pooled = pool(nests, rule=NESTED)
    combined = pooled.combined
    table = _table(
        fits[0], _t_interval(fits[0], level), combined.estimate, combined.interval(level)
    )
    return ModelUtility(
        table=table,
        mean_overlap=float(table["interval_overlap"].mean()),
        mean_difference=float(table["standardised_difference"].mean()),
        formula=formula,
        model=model,
        rule=NESTED,
        n_used=tuple(int(fit.nobs) for fit in fits),
        pooled=pooled,
    )


def release_risk(
    release: MaskedRelease | None, df: pd.DataFrame, *, keys: Sequence[str], radius: Any = None
) -> MatchingRisk:
    """Matching risk on the keys; of the data published as they are if `release` is None."""
    sets = [df] if release is None else release.synthetic
    return matching_risk(df, sets, keys=keys, radius=radius, rows_correspond=True)


def naming_share(risk: MatchingRisk) -> float:
    """Share of targets that the intruder names correctly, in [0, 1]: mean of T_il / c_il."""
    if risk.correct_by_record is None:
        raise InvalidInput("rows of the sets must correspond to those of the data")
    return float(np.mean(risk.correct_by_record))
