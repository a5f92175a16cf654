"""An analyst's model on the data beside its combined fit on a masked release; matching risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking.release import MaskedRelease
from pyhybrid.measures.arrays.matching import MatchingRisk
from pyhybrid.measures.tables.combining import NESTED
from pyhybrid.measures.tables.intervals import SINGLE, ModelUtility, model_utility
from pyhybrid.measures.tables.matching import matching_risk

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
    m = len(release.synthetic)
    nested = release.rule == NESTED
    return model_utility(
        df, release.synthetic, formula, model=model, categorical=categorical,
        rule=release.rule if m > 1 else SINGLE,
        n_imputations=release.n_imputations if nested else None, level=level,
    )  # fmt: skip


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
