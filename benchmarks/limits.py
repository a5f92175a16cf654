"""Where the Gaussian limit sets in: what is charged against what is true, and against refits.

First conjugate models, whose posteriors with and without a record are known: the epsilon that is
charged at delta 1e-6 from 4,000 draws beside the exact one, and how often it falls below the exact
one over many sets of draws. Then four data sets, refitted without each of the three records that
most is told about. The tables of a run are `benchmarks/limits.csv` and `limits_coverage.csv`.

    python -m benchmarks limits
    python -c "from benchmarks.limits import coverage; print(coverage(1000).to_string())"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import gamma, norm
from statsmodels.datasets import randhie

import pyhybrid as ph
from pyhybrid.fitting.session import open_session
from pyhybrid.privacy.gaussian_limit import gaussian_limit
from pyhybrid.privacy.local_account import local_account
from pyhybrid.privacy.log_lik import LogLik

_SIZES = (20, 60, 200, 600, 2000, 6000, 20_000)
_DELTA = 1e-6
_DRAWS, _POINTS = 4000, 400_000
_REPEATED = 400  # sets of draws
_FILE = Path(__file__).with_name("limits.csv")


def run(file: Path | None = _FILE) -> None:
    """Print the tables; the first two go to `file` and beside it, if given."""
    exact = pd.DataFrame([row for n in _SIZES for row in exact_rows(n)])
    covered = coverage()
    for table in (exact, covered):
        print(table.to_string(index=False, float_format="{:.4g}".format))
    if file is not None:
        exact.round(6).to_csv(file, index=False)
        covered.round(6).to_csv(file.with_stem(f"{file.stem}_coverage"), index=False)
    rows = [row for name, (model, df) in data_sets().items() for row in refit_rows(name, model, df)]
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.4g}".format))


def exact_rows(n: int, seed: int = 1) -> list[dict[str, Any]]:
    """Charged and exact epsilon for the largest record of n, in two conjugate models."""
    rng = np.random.default_rng(seed)
    return [{"n": n, "model": name, **_row(*model, rng)} for name, *model in conjugate(n, rng)]


def conjugate(
    n: int, rng: np.random.Generator
) -> Iterator[tuple[str, np.ndarray, Any, Any, Callable[[Any, Any], Any]]]:
    """Name, records (the first tells most), posteriors with and without it, log-likelihood."""
    for z in (15.0, 60.0):
        y = rng.poisson(5, n).astype(float)
        y[0] = z
        a, b = 0.5 + y.sum(), 0.1 + n
        rate = gamma(a, scale=1 / b), gamma(a - z, scale=1 / (b - 1))
        yield f"Poisson(5) and one of {z:g}", y, *rate, lambda t, v: v * np.log(t) - t
    x = rng.normal(0, 1, n)
    x[0] = 4.0
    wide = norm(x.sum() / (n + 0.01), (n + 0.01) ** -0.5)
    other = norm(x[1:].sum() / (n - 0.99), (n - 0.99) ** -0.5)
    yield "N(0, 1) and one of 4", x, wide, other, lambda t, v: -((v - t) ** 2) / 2


def coverage(n_draws: int = _DRAWS, repeated: int = _REPEATED, seed: int = 1) -> pd.DataFrame:
    """Epsilon of the Gaussian limit over the exact one, in `repeated` sets of draws.

    Where the limit holds; `without_margin` leaves out the standard error of the skewness.
    """
    rows = []
    for n in _SIZES:
        rng = np.random.default_rng(seed)
        for name, values, own, other, term in conjugate(n, rng):
            sets = term(own.rvs((n_draws, repeated), random_state=rng), values[0])
            limit = gaussian_limit(sets, chains=4)
            exact = exact_epsilon(own, other)
            before = limit.mu.upper_by_record * (1 + 0.8 * np.abs(limit.skewness))
            ratio, without = (
                np.array([ph.epsilon_of_mu(mu, _DELTA) for mu in each[limit.holds]]) / exact
                for each in (limit.mu_charged, before)
            )
            rows.append({"n": n, "model": name, "holds": limit.holds.mean(), **_spread(ratio),
                         "below_without_margin": _below(without)})  # fmt: skip
    return pd.DataFrame(rows)


def _spread(ratio: np.ndarray) -> dict[str, float]:
    if not ratio.size:
        return dict.fromkeys(("below", "lowest", "mean", "largest"), np.nan)
    return {"below": _below(ratio), "lowest": ratio.min(), "mean": ratio.mean(),
            "largest": ratio.max()}  # fmt: skip


def _below(ratio: np.ndarray) -> float:
    return float(np.mean(ratio < 1)) if ratio.size else np.nan


def _row(
    values: np.ndarray,
    own: Any,
    other: Any,
    term: Callable[[Any, Any], Any],
    rng: np.random.Generator,
) -> dict[str, Any]:
    draws = own.rvs(_DRAWS, random_state=rng)
    distinct, place = np.unique(values, return_inverse=True)
    matrix = term(draws[:, None], distinct)
    account = local_account(
        LogLik(make=lambda: (matrix,), row_of=place), np.ones(values.size), n_draws=_DRAWS, chains=4
    )
    gaussian = ph.epsilon_of_mu(account.mu, _DELTA)
    released_only = np.abs(np.diff(matrix[:2], axis=0)).max()
    return {
        "mu": account.mu,
        "limit_holds": account.limit_holds,
        "gaussian": gaussian,
        "range": account.loss_range,
        "charged": gaussian if account.limit_holds else account.loss_to(_DELTA, otherwise=np.inf),
        "exact": exact_epsilon(own, other),
        "two_draws_only": released_only,
    }


def exact_epsilon(own: Any, other: Any, delta: float = _DELTA, n_points: int = _POINTS) -> float:
    """Epsilon at delta between two distributions with densities, the larger of both directions."""

    def one_way(p: Any, q: Any) -> float:
        levels = (np.arange(n_points) + 0.5) / n_points
        # Equal masses of p, and the tails of it in more detail.
        deep = np.geomspace(1e-16, 0.5 / n_points, 20_000)
        edges = np.unique(np.concatenate([[0.0], deep, levels]))
        edges = np.concatenate([p.ppf(edges), p.isf(edges[::-1])])
        points = np.unique(edges[np.isfinite(edges)])
        middle = (points[1:] + points[:-1]) / 2
        mass, loss = np.diff(p.cdf(points)), p.logpdf(middle) - q.logpdf(middle)
        upper = middle > p.median()
        mass[upper] = -np.diff(p.sf(points))[upper]

        def delta_at(epsilon: float) -> float:
            return float((mass * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())

        return 0.0 if delta_at(0.0) <= delta else float(
            brentq(lambda e: delta_at(e) - delta, 0.0, float(loss.max()))
        )  # fmt: skip

    return max(one_way(own, other), one_way(other, own))


def data_sets() -> dict[str, tuple[Any, pd.DataFrame]]:
    """Four data sets, the ones of guarantees, with their models."""
    rng = np.random.default_rng(7)
    visits = randhie.load_pandas().data
    few = visits.sample(4000, random_state=1).reset_index(drop=True)
    plain = rng.poisson(100, 1000)
    mixed = np.concatenate([rng.poisson(100, 900), rng.negative_binomial(5, 5 / 105, 100)])
    formula = "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg"
    return {
        "RAND visits": (ph.NegativeBinomial("mdvis ~ 1"), visits[["mdvis"]].astype("int64")),
        "Poisson(100)": (ph.Poisson("y ~ 1"), pd.DataFrame({"y": plain})),
        "Poisson, NB outliers": (ph.NegativeBinomial("y ~ 1"), pd.DataFrame({"y": mixed})),
        "RAND, 7 predictors": (ph.NegativeBinomial(formula), few.astype({"mdvis": "int64"})),
    }


def refit_rows(name: str, model: Any, df: pd.DataFrame, k: int = 2) -> list[dict[str, Any]]:
    """Charged before and found by refits, unweighted and LW."""
    session = open_session(model.bind(df), engine="embedded", seed=1)
    rows = []
    for mechanism in (ph.Unweighted(model), ph.LipschitzWeighted(model)):
        for each in mechanism.leave_one_out(session, k=k).each:
            loss = each.loss
            rows.append(
                {
                    "data": name,
                    "mechanism": mechanism.name,
                    "mu": each.mu,
                    "refit mu": loss.mu_without,
                    "distance": loss.moved,
                    "delta at 2 mu": loss.delta(2 * each.mu),
                    "formula": ph.arrays.delta_of_mu(each.mu, 2 * each.mu),
                    "range": each.loss_range,
                    "largest loss": loss.largest,
                    "anew": np.nan if each.anew is None else each.anew.moved,
                }
            )
    return rows
