"""Utility at equal epsilon: strict releases with and without a center, beside what costs nothing.

Half of each table is the reference, the other half is released. Each line is a mean over several
splits and several released draws of theta, of one set from one draw: mean overlap of the 95 %
intervals of the analyst's coefficients (of the mean, where there are no predictors), its standard
error, and its share of the overlap that the model reaches without epsilon (a posterior draw and the
simulation of one set from it bring 0.71 by themselves); the overlap of five sets that are simulated
from one draw, which cost no more than one, combined; error of the mean with its deviation from
release to release, of the 90 % and 99 % quantiles, distance of the two-way table of outcome and
first predictor, CPU seconds of a fit. Chains are short (2 x 250): a release would take longer ones.

    python -m benchmarks guarantees
    python -c "from benchmarks.guarantees import run; run(epsilons=(1, 4), names=('income',))"
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from statsmodels.datasets import randhie

import pyhybrid as ph
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import open_session
from pyhybrid.models.design import read_design

EPSILONS = (0.5, 1.0, 2.0, 4.0)
_ALL_AT = 1.0  # the epsilon at which everything is compared
_SPLITS = (1, 2, 3)
_WITHOUT_EPSILON = ("unweighted", "reference alone", "20 % lower alone")
MECHANISMS = (*_WITHOUT_EPSILON, "centered", "centered, 20 % lower", "private calibration",
              "clipped by size", "histogram")  # fmt: skip
_DRAWS, _SETS = 6, 5  # draws of theta of one fit; sets from each
_RIGHT = "lncoins + idp + fmde + physlm + disea + hlthf + hlthp"
_PEOPLE = 4000  # of the RAND regressions, in each half
_OPTIONS: dict[str, Any] = {
    "engine": "embedded",
    "settings": ph.SamplerSettings(chains=2, warmup=150, draws=100, parallel_chains=1),
    "on_not_converged": "warn",
}
_INCOME = os.environ.get("PYHYBRID_CE", "ce_2015_february.csv")
"""Consumer Expenditure Survey, interview of February 2015, as a CSV file."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, its model, what an analyst fits to it, and public bins of its outcome."""

    model: Any
    table: Callable[[], pd.DataFrame]
    analyst: str  # family of a generalized linear model
    bins: tuple[float, float, int]

    @property
    def outcome(self) -> str:
        """The column that is synthesized."""
        return self.model.formula.split("~")[0].strip()


def _visits() -> pd.DataFrame:
    return randhie.load_pandas().data.astype({"mdvis": "int64"})


def _some_visits() -> pd.DataFrame:
    return _visits().sample(2 * _PEOPLE, random_state=1)


def _consumers() -> pd.DataFrame:
    own = pd.read_csv(_INCOME)
    return own.assign(
        age=(own["AGE"] - 50) / 10, size=own["FAM_SIZE"] - 2.5, earners=own["NO_EARNR"] - 1.0,
        female=(own["SEX"] == "F") * 1.0, college=(own["EDUCA"] >= 5) * 1.0,
        share=(own["FOODCQ"] / own["TOTEXPCQ"]).clip(0, 1),
    )  # fmt: skip


CASES = {
    "visits": Case(model=ph.NegativeBinomial("mdvis ~ 1"), table=_visits, analyst="poisson",
                   bins=(0, 99, 100)),
    "food share": Case(model=ph.Beta("share ~ 1", decimals=4), analyst="gaussian",
                       table=lambda: _consumers().dropna(subset=["share"]), bins=(0, 1, 50)),
    "visits, 7 predictors": Case(
        model=ph.NegativeBinomial(f"mdvis ~ {_RIGHT}", prior="normal"), table=_some_visits,
        analyst="poisson", bins=(0, 99, 100)),
    "any visit, 7 predictors": Case(
        model=ph.Bernoulli(f"any_visit ~ {_RIGHT}", levels=(0, 1)), analyst="binomial",
        table=lambda: _some_visits().assign(any_visit=lambda t: (t["mdvis"] > 0) * 1),
        bins=(0, 1, 2)),
    "income": Case(
        model=ph.NormalRegression("FINCBTAX ~ age + I(age^2) + size + earners + female + college",
                                  transform="asinh", unit=10_000, decimals=0, prior="normal"),
        table=_consumers, analyst="gaussian", bins=(-50_000, 550_000, 120)),
}  # fmt: skip


def run(
    epsilons: Sequence[float] = EPSILONS,
    names: Sequence[str] = tuple(CASES),
    splits: Sequence[int] = _SPLITS,
    mechanisms: Sequence[str] = MECHANISMS,
) -> None:
    """Print one line for each table, mechanism and epsilon."""
    head = {"table": -25, "mechanism": -24, "epsilon": 8, "overlap": 9, "error": 7, "share": 7,
            "5 sets": 8, "mean": 8, "+-": 6, "90 %": 8, "99 %": 8,
            "two-way": 9, "CPU s": 7}  # fmt: skip
    print("".join(f"{text:{'<' if wide < 0 else '>'}{abs(wide)}}" for text, wide in head.items()))
    for name in names:
        reached = float("nan")
        for what, epsilon in _lines(epsilons, mechanisms):
            started = time.process_time()
            try:
                found = np.array([row for split in splits
                                  for row in _rows(CASES[name], what, epsilon, split)])  # fmt: skip
            except (ph.PyhybridError, np.linalg.LinAlgError) as why:
                print(f"{name:<25}{what:<24}{epsilon or '-':>8}  {why!s:.60}", flush=True)
                continue
            took = (time.process_time() - started) / len(splits)
            mean, deviation = found.mean(axis=0), found.std(axis=0, ddof=1)
            error = deviation[0] / len(found) ** 0.5
            if what == "unweighted":
                reached = mean[0]
            print(f"{name:<25}{what:<24}{epsilon or '-':>8}{mean[0]:>9.2f}"
                  f"{error:>7.2f}{mean[0] / reached:>7.2f}{mean[1]:>8.2f}"
                  f"{mean[2]:>8.1%}{deviation[2]:>6.1%}{mean[3]:>8.1%}{mean[4]:>8.1%}"
                  f"{mean[5]:>9.3f}{took:>7.1f}", flush=True)  # fmt: skip


def _lines(epsilons: Sequence[float], mechanisms: Sequence[str]) -> list[tuple[str, float]]:
    """Names and epsilons; 0 for what has none. Only `centered` is taken at every epsilon."""
    found: list[tuple[str, float]] = []
    for what in mechanisms:
        if what in _WITHOUT_EPSILON:
            found.append((what, 0.0))
        else:
            found += [(what, e) for e in epsilons if what == "centered" or e == _ALL_AT]
    return found


def _rows(case: Case, what: str, epsilon: float, split: int) -> list[tuple[float, ...]]:
    """What is measured, for each released draw of one split."""
    table = case.table().reset_index(drop=True)
    order = np.random.default_rng(split).permutation(len(table))
    old, new = (table.iloc[part].reset_index(drop=True) for part in np.array_split(order, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [_measures(case, new, sets) for sets in _made(case, what, epsilon, split, old, new)]


def _made(
    case: Case, what: str, epsilon: float, seed: int, old: pd.DataFrame, new: pd.DataFrame
) -> Iterable[list[pd.DataFrame]]:
    """Several sets of each of some releases."""
    model, options = case.model, {**_OPTIONS, "seed": seed}
    if what == "histogram":
        return _from_histogram(case, epsilon, new)
    if "lower" in what:
        old = _drifted(old, case.outcome)
    if what.startswith("centered") or "alone" in what:
        frozen = ph.calibrate(model, old, epsilon=epsilon or 1, **options)
        if "alone" in what:  # the reference's posterior: nothing of the new outcomes
            return _simulated(model.bind(new), frozen.draws, new, seed)
        mechanism: Any = ph.Censored(calibration=frozen, check_modes=False)
    elif what == "private calibration":
        public = None if _kind(model) == "intercept" else "public"
        bought = ph.calibrate_privately(model, new, epsilon=epsilon, predictors=public, **options)
        mechanism = ph.Censored(calibration=bought, check_modes=False)
    elif what == "clipped by size":
        exact = model.bind(new).grid_form is not None
        mechanism = ph.Censored(
            model, epsilon=epsilon, inner=ph.Unweighted(model), center=None, check_modes=False,
            sampling="exact" if exact else "chains",
        )  # fmt: skip
    else:
        mechanism = ph.Unweighted(model)
    session = open_session(model.bind(new), **options)
    fit = mechanism.fit(session).fit
    draws = fit.draws if fit.exact is None else fit.exact.released_draws(_DRAWS, relation="remove")
    return _simulated(session.bound, draws, new, seed)


def _simulated(bound: Any, draws: Any, new: pd.DataFrame, seed: int) -> list[list[pd.DataFrame]]:
    rng = np.random.default_rng(seed)
    chosen = rng.choice(draws.n_draws, _DRAWS, replace=False)
    return [[joined(new, bound.replicate(draws, int(k), rng)) for _ in range(_SETS)]
            for k in chosen]  # fmt: skip


def _from_histogram(case: Case, epsilon: float, new: pd.DataFrame) -> list[list[pd.DataFrame]]:
    low, high, n_bins = case.bins
    own = ph.PerturbedHistogram(
        column=case.outcome, lower=low, upper=high, n_bins=n_bins, epsilon=epsilon
    )
    clipped = new.assign(**{case.outcome: new[case.outcome].clip(low, high)})
    return [[own.release(clipped).synthetic[0]] * 2 for _ in range(_DRAWS)]


def _kind(model: Any) -> str:
    return "intercept" if model.formula.split("~")[1].strip() == "1" else "predictors"


def _drifted(table: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """A reference whose outcome is 20 % lower."""
    values, rng = table[outcome], np.random.default_rng(1)
    if pd.api.types.is_integer_dtype(values.dtype) and values.min() >= 0:
        return table.assign(**{outcome: rng.binomial(values, 0.8)})
    return table.assign(**{outcome: (0.8 * values).round(4).astype(values.dtype)})


def _measures(case: Case, data: pd.DataFrame, sets: Sequence[pd.DataFrame]) -> tuple[float, ...]:
    """Overlap of one set and of all combined; of the first, relative errors and distance."""
    own, *others = (_estimates(case, table) for table in (data, *sets))
    ends = _ends(*own)
    one = np.mean(ph.interval_overlap(ends, _ends(*others[0])))
    q, v = np.array([each[0] for each in others]), np.array([each[1] for each in others])
    combined = _ends(q.mean(axis=0), v.mean(axis=0) + q.var(axis=0, ddof=1) / len(q))
    pooled = np.mean(ph.interval_overlap(ends, combined))
    y, z = (table[case.outcome].to_numpy(dtype=float) for table in (data, sets[0]))
    errors = [z.mean() / y.mean() - 1]
    for level in (0.9, 0.99):
        at = np.quantile(y, level)
        errors.append((np.quantile(z, level) - at) / max(abs(at), 1e-9))
    return (float(one), float(pooled), *errors, _two_way(case, data, sets[0]))


def _ends(estimates: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """95 % intervals, shape (2, K)."""
    half = 1.96 * np.sqrt(variances)
    return np.array([estimates - half, estimates + half])


def _estimates(case: Case, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The analyst's coefficients and their variances, each (K,); quasi-likelihood scale."""
    family = {"poisson": sm.families.Poisson, "binomial": sm.families.Binomial,
              "gaussian": sm.families.Gaussian}[case.analyst]()  # fmt: skip
    design = read_design(case.model.formula, table)
    y = np.arcsinh(design.y / 10_000) if case.model.formula.startswith("FINCBTAX") else design.y
    scale = None if case.analyst == "binomial" else "X2"
    fitted = sm.GLM(y, design.X, family=family).fit(scale=scale)
    return np.asarray(fitted.params), np.asarray(fitted.bse) ** 2


def _two_way(case: Case, data: pd.DataFrame, made: pd.DataFrame) -> float:
    """Total variation of outcome fifths by halves of the first predictor."""
    outcome = case.outcome
    first = read_design(case.model.formula, data).predictors[:1]
    edges = np.unique(np.quantile(data[outcome], [0.2, 0.4, 0.6, 0.8]))
    tables = []
    for table in (data, made):
        place = np.searchsorted(edges, table[outcome].to_numpy(dtype=float), side="right")
        half = (table[first[0]] > data[first[0]].median()).to_numpy() * 1 if first else 0 * place
        counts = np.bincount(2 * place + half, minlength=2 * (edges.size + 1))
        tables.append(counts / counts.sum())
    return float(np.abs(tables[0] - tables[1]).sum() / 2)
