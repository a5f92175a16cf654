"""The mask strength that meets a matching-risk target with the least loss, and the curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_count, check_fraction, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking.analysis import masked_utility, naming_share, release_risk
from pyhybrid.masking.evidence import KeyMasks, weakened
from pyhybrid.masking.release import MaskedRelease
from pyhybrid.measures.tables.intervals import ModelUtility
from pyhybrid.running.tasks import Progress

__all__ = ["TunedMask", "coefficient_loss", "tune_mask"]

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
Loss = Callable[[pd.DataFrame, MaskedRelease], float]


class Tunable(Protocol):
    """What can be tuned: masks on keys, one fit for all of them, and releases from it."""

    @property
    def keys(self) -> Sequence[str]:
        """Columns to replace."""

    @property
    def masks(self) -> KeyMasks:
        """Mask of each key."""

    def fit(
        self, df: pd.DataFrame, *, seed: int | None = None, progress: Progress | None = None
    ) -> Any:
        """What every mask can be applied to."""

    def release_from(self, fit: Any, *, progress: Progress | None = None) -> MaskedRelease:
        """A release with these masks."""

    def with_masks(self, masks: KeyMasks) -> Tunable:
        """The same with other masks."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TunedMask:
    """Mask strengths with their risk and loss, and the one chosen. Confidential.

    Attributes
    ----------
    imputation : Tunable
        The `MaskedImputation` with the masks chosen.
    factor : float
        Log densities of the given masks are divided by it: a Gaussian mask's variance is
        multiplied, a separation divided by its square root; inf is masks off.
    risk, loss : float
        Of the release with these masks.
    target_risk : float
    data_risk : float
        Risk of the data published as they are.
    table : DataFrame
        factor, risk, mean_match (mean of I_i, by whichever record), loss, meets_target; by factor.
    """

    imputation: Tunable
    factor: float
    risk: float
    loss: float
    target_risk: float
    data_risk: float
    table: pd.DataFrame
    _fit: Any = field(repr=False)

    def __repr__(self) -> str:
        return f"<TunedMask: factor {self.factor:g}, confidential>"

    def release(self) -> MaskedRelease:
        """The release that was measured, from the same fit."""
        return self.imputation.release_from(self._fit)


def tune_mask(
    imputation: Tunable,
    df: pd.DataFrame,
    *,
    target_risk: float,
    formula: str | None = None,
    model: str = "ols",
    categorical: Sequence[str] = (),
    loss: Loss | None = None,
    radius: float | Mapping[str, float] | None = None,
    factors: Sequence[float] = FACTORS,
    refinements: int = 3,
    seed: int | None = None,
    progress: Progress | None = None,
) -> TunedMask:
    """Weaken or strengthen all masks together until the risk meets a target; keep the least loss.

    One fit serves every strength, and all releases share random numbers, so that curves are smooth.
    Between the strongest mask factor that misses the target and the first that meets it the step
    is halved `refinements` times, on the log scale.

    Parameters
    ----------
    imputation : Tunable
        A `MaskedImputation` with masks to start from.
    df : DataFrame
        The confidential data.
    target_risk : float
        Largest acceptable share of records whose own row an intruder who knows the keys names
        correctly, in (0, 1]: expected match risk over n.
    formula, model, categorical
        Of the analysis whose coefficients give the loss, as in `model_utility`: the mean over
        coefficients of the standardized difference, or of its own Monte Carlo error, sqrt(b/m)
        in standard errors of the data's, where that is larger, so that luck is no merit. It
        falls with n_synthetic.
    loss : callable, optional
        In place of a formula: takes the data and a release, returns a number, smaller is better.
    radius : number, or mapping of key to number, optional
        Of a match, as in `pyhybrid.matching_risk`.
    factors : sequence of float
        Strengths to try, above 0, in rising order.
    refinements : int, default 3
    seed : int, optional
    progress : callable, optional
        As in `MaskedImputation.release`; of the fit.

    Raises
    ------
    InvalidInput
        If no mask is given, neither or both of formula and loss are, or the target cannot be met
        even with masks off.

    Notes
    -----
    Choosing a mask by looking at the data is itself not covered by anything.
    """
    target = check_fraction(target_risk, "target_risk")
    check_count(refinements, "refinements", at_least=0)
    grid = [check_positive(f, "each of factors") for f in factors]
    if not grid or grid != sorted(set(grid)):
        raise InvalidInput("factors must rise, at least one")
    if not any(mask is not None for mask in imputation.masks.values()):
        raise InvalidInput("tuning needs a mask to start from: masks is empty")
    if (formula is None) == (loss is None):
        raise InvalidInput("give either a formula or a loss")

    def measured(data: pd.DataFrame, release: MaskedRelease) -> float:
        assert formula is not None
        return coefficient_loss(
            masked_utility(release, data, formula, model=model, categorical=categorical)
        )

    fit = imputation.fit(df, seed=seed, progress=progress)
    keys = list(imputation.keys)
    data_risk = naming_share(release_risk(None, df, keys=keys, radius=radius))
    rows: dict[float, dict[str, Any]] = {}

    def look(factor: float) -> bool:
        release = _at(imputation, factor).release_from(fit)
        risk = release_risk(release, df, keys=keys, radius=radius)
        share = naming_share(risk)
        rows[factor] = {
            "factor": factor,
            "risk": share,
            "mean_match": risk.mean_risk,
            "loss": (loss or measured)(df, release),
            "meets_target": share <= target,
        }
        return share <= target

    for factor in (*grid, np.inf):
        look(factor)
    _refine(look, rows, refinements)
    table = pd.DataFrame([rows[factor] for factor in sorted(rows)])
    meeting = table[table["meets_target"]]
    if meeting.empty:
        raise InvalidInput(
            f"target_risk {target:g} must be one that masks can meet: with masks off the risk is "
            f"{rows[np.inf]['risk']:.3g}; use fewer or coarser keys, or a smaller radius"
        )
    best = meeting.loc[meeting["loss"].idxmin()]
    return TunedMask(
        imputation=_at(imputation, float(best["factor"])),
        factor=float(best["factor"]),
        risk=float(best["risk"]),
        loss=float(best["loss"]),
        target_risk=target,
        data_risk=data_risk,
        table=table,
        _fit=fit,
    )


def coefficient_loss(found: ModelUtility) -> float:
    """Mean over coefficients of the larger of standardized difference and Monte Carlo error."""
    difference = found.table["standardised_difference"].to_numpy()
    if found.pooled is None:
        return float(difference.mean())
    from scipy import stats  # slow to import

    half = (found.table["upper"] - found.table["lower"]).to_numpy() / 2
    error = half / stats.norm.ppf(0.975)
    noise = np.sqrt(found.pooled.combined.between / found.pooled.n_sets) / error
    return float(np.maximum(difference, noise).mean())


def _at(imputation: Tunable, factor: float) -> Tunable:
    masks = {} if np.isinf(factor) else weakened(imputation.masks, factor)
    return imputation.with_masks(masks)


def _refine(look: Callable[[float], bool], rows: Mapping[float, Any], steps: int) -> None:
    """Halve the gap between the last finite factor that misses the target and the next one."""
    finite = sorted(f for f in rows if np.isfinite(f))
    missed = [f for f in finite if not rows[f]["meets_target"]]
    if not missed or missed[-1] == finite[-1]:
        return
    low = missed[-1]
    high = finite[finite.index(low) + 1]
    for _ in range(steps):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if look(middle) else (middle, high)
