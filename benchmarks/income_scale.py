"""Why a normal regression of the February CE income misses the mean, and what keeps it.

Least squares on asinh(income / unit), and the mean that its back-transform has: with normal
residuals (what the model simulates), with the regression's own residuals in their place, and with
those of records whose fitted values are alike. Where the second is right the shape of the residuals
is what is wrong; where only the third is, their shape and spread change along the fit. Beside it a
probability of no income with a Gamma regression of the rest, whose score equation keeps the mean of
the ratio of outcome and fit, not the mean of the outcome, where its mean is misspecified, and a log
link with the Poisson score equation, which keeps the mean. Errors are means over the splits of
`guarantees`: of its references, on which a unit may be chosen, and of the halves released.

    python -m benchmarks income_scale
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.stats import skew

from benchmarks.guarantees import CASES, INCOMES, halves
from pyhybrid.models.formula.design import read_design

__all__ = ["back_transformed", "run"]

_UNITS = (5000, 10_000, 20_000, 30_000, 50_000)
_BLOCKS = 50  # of records with like fitted values


def run() -> None:
    """Print one line for each model: error of the mean, in per cent."""
    rows = {}
    for split in range(1, CASES["income"].splits + 1):
        for half, table in zip(("reference", "released"), halves("income", split), strict=True):
            design = read_design(INCOMES, table)
            for name, own in _errors(np.asarray(design.y), np.asarray(design.X)).items():
                rows[name, half, split] = own
    found = pd.DataFrame(rows).T.groupby(level=[0, 1], sort=False).mean()
    print(found.round(2).to_string(na_rep="-"))


def _errors(y: np.ndarray, X: np.ndarray) -> dict[str, dict[str, float]]:
    found = {f"asinh, unit {u:,}": back_transformed(y, X, u) for u in _UNITS}
    none = sm.GLM((y <= 0) * 1.0, X, family=sm.families.Binomial()).fit().mu
    log = sm.families.links.Log()
    above = y > 0
    gamma = sm.GLM(y[above], X[above], family=sm.families.Gamma(log)).fit()
    fitted = (1 - none) * np.exp(X @ gamma.params)
    found["no income, Gamma of the rest"] = {"model": _off(fitted.mean(), y)}
    poisson = sm.GLM(np.maximum(y, 0), X, family=sm.families.Poisson()).fit()
    found["log link, Poisson score"] = {"model": _off(poisson.mu.mean(), y)}
    return found


def back_transformed(y: np.ndarray, X: np.ndarray, unit: float) -> dict[str, float]:
    """Errors of the mean in per cent, by where the residuals come from, and their skewness."""
    fit = sm.OLS(np.arcsinh(y / unit), X).fit()
    at, residual = fit.fittedvalues, fit.resid
    normal = np.sinh(at) * np.exp(fit.scale / 2)  # E sinh(m + s Z)
    own = np.sinh(at) * np.cosh(residual).mean() + np.cosh(at) * np.sinh(residual).mean()
    like = np.empty(y.size)
    for block in np.array_split(np.argsort(at), min(_BLOCKS, y.size)):
        like[block] = (np.sinh(at[block]) * np.cosh(residual[block]).mean()
                       + np.cosh(at[block]) * np.sinh(residual[block]).mean())  # fmt: skip
    names = ("model", "own residuals", "of like fitted values")
    errors = (_off(unit * each.mean(), y) for each in (normal, own, like))
    return {**dict(zip(names, errors, strict=True)), "skewness": float(skew(residual))}


def _off(mean: float, y: np.ndarray) -> float:
    return float(100 * (mean / y.mean() - 1))
