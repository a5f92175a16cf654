"""What the published bounds of study E [S22 sec. 5] are bounds of: each reading, tried.

The posterior of one normal regression of log income is drawn directly (flat prior, weighted least
squares): no chain, a second for all pairs. Then, on the February CE file,

1. the pairs (c, g) on 200 resamples of the paper's size: how far bounds are apart from sample to
   sample, how often they stand in the published order, and how well they follow the published ones
   as printed and with the labels of (0.6, -0.1) and (0.5, 0) exchanged; before that, the pairs as
   weights c (1 - r + g);
2. one weight for all (EM), and CW by what its balls are around;
3. incomes of 0 and below, taken as 1 dollar;
4. mixtures of two to five components at their EM fits: the largest |log-density| of a record, that
   under its likeliest component, and under one drawn by the proportions;
5. chains of the mixture of five that start with all records in one component.

    python -m benchmarks income_bounds
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy.special import logsumexp

import pyhybrid as ph
from benchmarks.mixture import FILE, MODEL, incomes
from pyhybrid.engines import SamplerSettings, engine_by_name
from pyhybrid.models.families import normal_mixture as rough
from pyhybrid.studies.income import PUBLISHED_BOUNDS, ce_incomes

_PUBLISHED = np.array(list(PUBLISHED_BOUNDS.values()))
_EXCHANGED = _PUBLISHED[[0, 1, 3, 2, 4, 5]]
_N, _RESAMPLES = 6208, 200
_START_RECORDS = 1000


def run(resamples: int = _RESAMPLES) -> None:
    """Print each reading beside the published bounds."""
    table = incomes()
    if table is None:
        return
    regression = _Regression.of(table)
    rng = np.random.default_rng(1)
    print("one normal component, drawn directly; published: unweighted 78.7, then")
    print(f"  {'(c, g)':<34}" + "".join(f"{pair!s:>13}" for pair in PUBLISHED_BOUNDS))
    _row("published", _PUBLISHED)
    unweighted, own = regression.bounds(rng)
    _row(f"positive incomes ({unweighted:.1f})", own)
    _row("the same, weights c (1 - r + g)", regression.bounds(rng, inside=True)[1])
    _resampled(regression, resamples)
    _one_weight_and_counts(regression, unweighted, own[0], rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.csv"
        pd.read_csv(FILE).assign(FINCBTAX=lambda t: t["FINCBTAX"].clip(lower=1)).to_csv(path)
        at_one, low = _Regression.of(ce_incomes(path)).bounds(rng)
    _row(f"incomes <= 0 as 1 dollar ({at_one:.1f})", low)
    _components(regression, rng)
    _collapsed(table)


class _Regression:
    """Log income on its predictors."""

    def __init__(self, y: np.ndarray, X: np.ndarray) -> None:
        self.y, self.X = y, X

    @classmethod
    def of(cls, table: pd.DataFrame) -> _Regression:
        design = replace(MODEL, n_components=1).bind(table).design
        return cls(design.y, design.X)

    def risks(self, alpha: np.ndarray, rng: np.random.Generator, draws: int = 2000) -> np.ndarray:
        """max_s |f_si| under draws from the alpha-weighted posterior, shape (n,)."""
        root = np.sqrt(alpha)[:, None]
        upper = np.linalg.qr(self.X * root, mode="r")
        center = np.linalg.lstsq(self.X * root, self.y * root[:, 0], rcond=None)[0]
        error = self.y - self.X @ center
        freedom = alpha.sum() - self.X.shape[1]
        variance = (alpha @ error**2) / rng.chisquare(freedom, draws)
        moved = np.linalg.solve(upper, rng.standard_normal((self.X.shape[1], draws)))
        z = (error[:, None] - self.X @ (moved * np.sqrt(variance))) ** 2 / variance
        return np.asarray(np.abs(np.log(2 * np.pi * variance) + z).max(axis=1) / 2)

    def bound(self, alpha: np.ndarray, rng: np.random.Generator, draws: int = 2000) -> float:
        return float((alpha * self.risks(alpha, rng, draws)).max())

    def bounds(
        self, rng: np.random.Generator, draws: int = 2000, *, inside: bool = False
    ) -> tuple[float, np.ndarray]:
        """Unweighted, and of LW at the six pairs; `inside`: the shift is scaled, too."""
        f = self.risks(np.ones(self.y.size), rng, draws)
        r = (f - f.min()) / (f.max() - f.min())
        weights = [
            np.clip(c * (1 - r + g) if inside else c * (1 - r) + g, 0, 1)
            for c, g in PUBLISHED_BOUNDS
        ]
        return float(f.max()), np.array([self.bound(alpha, rng, draws) for alpha in weights])


def _row(label: str, values: Any) -> None:
    print(f"  {label:<34}" + "".join(f"{value:>13.2f}" for value in values), flush=True)


def _resampled(regression: _Regression, resamples: int) -> None:
    rows = []
    for seed in range(resamples):
        rng = np.random.default_rng(seed)
        chosen = rng.choice(regression.y.size, _N)
        unweighted, own = _Regression(regression.y[chosen], regression.X[chosen]).bounds(rng, 500)
        rows.append([unweighted, *own])
    found = np.array(rows)
    summaries: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "mean": lambda x: x.mean(axis=0), "deviation": lambda x: x.std(axis=0),
        "smallest": lambda x: x.min(axis=0), "largest": lambda x: x.max(axis=0),
    }  # fmt: skip
    for name, of in summaries.items():
        values = of(found)
        _row(f"{resamples} resamples, {name} ({values[0]:.1f})", values[1:])
    own = found[:, 1:]
    _row("published, deviations from the mean", (_PUBLISHED - own.mean(axis=0)) / own.std(axis=0))
    _row("the same, labels exchanged", (_EXCHANGED - own.mean(axis=0)) / own.std(axis=0))
    logs = np.log(own)
    for name, other in (("as printed", _PUBLISHED), ("labels exchanged", _EXCHANGED)):
        order = np.argsort(-other)
        kept = (np.diff(own[:, order], axis=1) < 0).all(axis=1).mean()
        together = np.mean([np.corrcoef(each, np.log(other))[0, 1] for each in logs])
        print(f"  {name}: this order in {kept:.1%} of the resamples, correlation {together:.3f}")


def _one_weight_and_counts(
    regression: _Regression, unweighted: float, target: float, rng: np.random.Generator
) -> None:
    ones = np.ones(regression.y.size)
    scalar = regression.bound(target / unweighted * ones, rng)
    print(f"one weight for LW's {target:.2f}: its refit {scalar:.2f} (x {scalar / target:.2f}; "
          "published 10.2 to 10.1, x 1.01)")  # fmt: skip
    dollars = np.exp(regression.y) * 10_000  # y is in units of 10,000
    print(
        "CW (0.7, 0) over LW (0.7, 0) by radius .15, .20, .25, .30; published 11.17 to 10.1, 1.11"
    )
    for name, values in (("income", dollars), ("log income", np.log(np.round(dollars)))):
        found = []
        for radius in (0.15, 0.2, 0.25, 0.3):
            risk = ph.radius_risk(values, radius=radius)
            found.append(regression.bound(ph.count_weights(risk, scale=0.7), rng) / target)
        print(f"  balls around {name:<12}" + "".join(f"{value:>8.2f}" for value in found))


def _components(regression: _Regression, rng: np.random.Generator) -> None:
    y, X = regression.y, regression.X
    print(
        "EM fits: shares, deviations; largest |f|, under the likeliest and under a random component"
    )
    for number in range(1, 6):
        fit = rough.rough_mixture(y, X, np.ones(y.size), number)
        used = fit.size > 0
        share, sd = fit.size[used] / fit.size.sum(), fit.sd[used]
        own = (
            -np.log(sd)
            - 0.5 * np.log(2 * np.pi)
            - ((y[:, None] - X @ fit.center[:, used]) / sd) ** 2 / 2
        )
        density = logsumexp(np.log(share) + own, axis=1)
        likeliest = (np.log(share) + own).argmax(axis=1)
        drawn = rng.choice(share.size, y.size, p=share)
        sizes = (np.abs(density), *(np.abs(own[np.arange(y.size), z]) for z in (likeliest, drawn)))
        print(f"  {number}: {share.round(2)} {sd.round(2)}; "
              + ", ".join(f"{size.max():.1f}" for size in sizes))  # fmt: skip


def _one_of(number: int) -> Callable[..., rough.RoughMixture]:
    """A rough fit that leaves all components but one empty."""
    kept = rough.rough_mixture

    def collapsed(y: np.ndarray, X: np.ndarray, weight: np.ndarray, _: int) -> rough.RoughMixture:
        one, empty = kept(y, X, weight, 1), (0, number - 1)
        return replace(
            one,
            center=np.pad(one.center, ((0, 0), empty)),
            information=np.pad(one.information, (empty, (0, 0), (0, 0))),
            sd=np.pad(one.sd, empty, constant_values=1.0),
            size=np.pad(one.size, empty),
        )

    return collapsed


def _collapsed(table: pd.DataFrame) -> None:
    bound = MODEL.bind(table.sample(_START_RECORDS, random_state=1))
    with mock.patch(
        "pyhybrid.models.families.normal_mixture.rough_mixture", _one_of(MODEL.n_components)
    ):
        data = bound.stan_data(np.ones(bound.n))
    settings = SamplerSettings(chains=2, warmup=100, draws=100, adapt_delta=0.7, parallel_chains=1)
    draws = engine_by_name("embedded").sample(bound.program, data, seed=1, settings=settings)
    parameters = {name: draws.flat(name) for name in MODEL.parameters}
    f = np.abs(MODEL.log_lik(parameters, bound.design.y, bound.design.X))
    share = np.exp(parameters["log_proportion"]).reshape(2, -1, MODEL.n_components).mean(axis=1)
    one = _Regression(bound.design.y, bound.design.X).bounds(np.random.default_rng(1))[0]
    print(f"chains started in one component, {_START_RECORDS} records, where one has {one:.1f}: "
          f"{f.max():.1f}; shares {np.sort(share)[:, ::-1].round(2).tolist()}")  # fmt: skip


if __name__ == "__main__":
    run()
