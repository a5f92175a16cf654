"""Utility at equal epsilon: strict releases with and without a center, beside what costs nothing.

Half of each table is the reference, the other half is released; one set from one draw. By table and
epsilon, of the released half and its synthetic copy: mean overlap of the 95 % intervals of the
analyst's coefficients (of the mean, where there are no predictors), error of the mean, of the 90 %
and 99 % quantiles, distance of the two-way table of outcome and first predictor, CPU seconds.
Chains are short (2 x 250): a release would take longer ones.

    python -m benchmarks guarantees
    python -c "from benchmarks.guarantees import run; run(epsilons=(1, 4), names=('income',))"
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from statsmodels.datasets import randhie

import pyhybrid as ph
from pyhybrid.models.design import read_design

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_RIGHT = "lncoins + idp + fmde + physlm + disea + hlthf + hlthp"
_PEOPLE = 4000  # of the RAND regressions, in each half
_OPTIONS: dict[str, Any] = {
    "engine": "embedded",
    "seed": 1,
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
    epsilons: tuple[float, ...] = EPSILONS


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
        analyst="poisson", bins=(0, 99, 100), epsilons=(1.0,)),
    "any visit, 7 predictors": Case(
        model=ph.Bernoulli(f"any_visit ~ {_RIGHT}", levels=(0, 1)), analyst="binomial",
        table=lambda: _some_visits().assign(any_visit=lambda t: (t["mdvis"] > 0) * 1),
        bins=(0, 1, 2), epsilons=(1.0,)),
    "income": Case(
        model=ph.NormalRegression("FINCBTAX ~ age + I(age^2) + size + earners + female + college",
                                  transform="asinh", unit=10_000, decimals=0, prior="normal"),
        table=_consumers, analyst="gaussian", bins=(-50_000, 550_000, 120), epsilons=(1.0,)),
}  # fmt: skip


def run(epsilons: Sequence[float] | None = None, names: Sequence[str] = tuple(CASES)) -> None:
    """Print one line for each table, mechanism and epsilon."""
    print(f"{'table':<25}{'mechanism':<26}{'epsilon':>8}{'overlap':>9}{'mean':>8}{'90 %':>8}"
          f"{'99 %':>8}{'two-way':>9}{'CPU s':>8}")  # fmt: skip
    for name in names:
        case = CASES[name]
        table = case.table().reset_index(drop=True)
        order = np.random.default_rng(1).permutation(len(table))
        old, new = (table.iloc[part].reset_index(drop=True) for part in np.array_split(order, 2))
        for what, epsilon, make in _mechanisms(case, old, new, epsilons or case.epsilons):
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = _measures(case, new, make())
                except (ph.PyhybridError, np.linalg.LinAlgError) as error:
                    print(f"{name:<25}{what:<26}{epsilon:>8}  {error!s:.60}", flush=True)
                    continue
            took = time.process_time() - started
            print(f"{name:<25}{what:<26}{epsilon:>8}{found[0]:>9.2f}"
                  + "".join(f"{100 * own:>7.1f}%" for own in found[1:4])
                  + f"{found[4]:>9.3f}{took:>8.1f}", flush=True)  # fmt: skip


def _mechanisms(
    case: Case, old: pd.DataFrame, new: pd.DataFrame, epsilons: Sequence[float]
) -> list[tuple[str, str, Callable[[], pd.DataFrame]]]:
    """Name, epsilon and how one set is made."""
    model, outcome = case.model, case.model.formula.split("~")[0].strip()
    drifted = _drifted(old, outcome)
    plain = ph.Unweighted(model)

    def released(mechanism: Any) -> pd.DataFrame:
        return mechanism.release(new, **_OPTIONS).synthetic[0]

    def centered(reference: pd.DataFrame, epsilon: float) -> pd.DataFrame:
        frozen = ph.calibrate(model, reference, epsilon=epsilon, **_OPTIONS)
        return released(ph.Censored(calibration=frozen, check_modes=False))

    def bought(epsilon: float) -> pd.DataFrame:
        alone = "predictors" not in _kind(model)
        how = {"histogram": case.bins} if alone else {"predictors": "public"}
        made = ph.calibrate_privately(model, new, epsilon=epsilon, **how, **_OPTIONS)
        return released(ph.Censored(calibration=made, check_modes=False))

    def alone(reference: pd.DataFrame) -> pd.DataFrame:
        """The reference's posterior at the new predictors: nothing of the new outcomes."""
        frozen = ph.calibrate(model, reference, epsilon=1, n_draws=50, **_OPTIONS)
        return (
            model.bind(new).replicate(frozen.draws, 7, np.random.default_rng(1)).combine_first(new)
        )

    def by_size(epsilon: float) -> pd.DataFrame:
        mechanism = ph.Censored(model, epsilon=epsilon, inner=plain, center=None, check_modes=False)
        exact = model.bind(new).grid_form is not None
        return released(replace(mechanism, sampling="exact" if exact else "chains"))

    def histogram(epsilon: float) -> pd.DataFrame:
        low, high, n_bins = case.bins
        own = ph.PerturbedHistogram(column=outcome, lower=low, upper=high, n_bins=n_bins,
                                    epsilon=epsilon)  # fmt: skip
        return own.release(new.assign(**{outcome: new[outcome].clip(low, high)})).synthetic[0]

    found: list[tuple[str, str, Callable[[], pd.DataFrame]]] = [
        ("unweighted, no epsilon", "-", lambda: released(plain)),
        ("LW, local", "-", lambda: released(ph.LipschitzWeighted(model))),
        ("reference alone", "0", lambda: alone(old)),
        ("reference 20 % lower alone", "0", lambda: alone(drifted)),
    ]
    for e in epsilons:
        found += [
            ("centered", f"{e:g}", lambda e=e: centered(old, e)),
            ("centered, 20 % lower", f"{e:g}", lambda e=e: centered(drifted, e)),
            ("private calibration", f"{e:g}", lambda e=e: bought(e)),
            ("clipped by size", f"{e:g}", lambda e=e: by_size(e)),
            ("perturbed histogram", f"{e:g}", lambda e=e: histogram(e)),
        ]
    return found


def _kind(model: Any) -> str:
    return "intercept" if model.formula.split("~")[1].strip() == "1" else "predictors"


def _drifted(table: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """A reference whose outcome is 20 % lower."""
    values, rng = table[outcome], np.random.default_rng(1)
    if pd.api.types.is_integer_dtype(values.dtype) and values.min() >= 0:
        return table.assign(**{outcome: rng.binomial(values, 0.8)})
    return table.assign(**{outcome: (0.8 * values).round(4).astype(values.dtype)})


def _measures(case: Case, data: pd.DataFrame, made: pd.DataFrame) -> tuple[float, ...]:
    """Overlap, relative errors of mean and quantiles, two-way distance."""
    outcome = case.model.formula.split("~")[0].strip()
    own, other = (_intervals(case, table) for table in (data, made))
    overlap = float(np.mean(ph.interval_overlap(own.T, other.T)))
    y, z = (table[outcome].to_numpy(dtype=float) for table in (data, made))
    errors = [z.mean() / y.mean() - 1]
    for q in (0.9, 0.99):
        level = np.quantile(y, q)
        errors.append((np.quantile(z, q) - level) / max(abs(level), 1e-9))
    return (overlap, *errors, _two_way(case, data, made))


def _intervals(case: Case, table: pd.DataFrame) -> np.ndarray:
    """95 % intervals of the analyst's coefficients, shape (K, 2); quasi-likelihood scale."""
    family = {"poisson": sm.families.Poisson, "binomial": sm.families.Binomial,
              "gaussian": sm.families.Gaussian}[case.analyst]()  # fmt: skip
    design = read_design(case.model.formula, table)
    y = np.arcsinh(design.y / 10_000) if case.model.formula.startswith("FINCBTAX") else design.y
    scale = None if case.analyst == "binomial" else "X2"
    return np.asarray(sm.GLM(y, design.X, family=family).fit(scale=scale).conf_int())


def _two_way(case: Case, data: pd.DataFrame, made: pd.DataFrame) -> float:
    """Total variation of outcome fifths by halves of the first predictor."""
    outcome = case.model.formula.split("~")[0].strip()
    first = read_design(case.model.formula, data).predictors[:1]
    edges = np.unique(np.quantile(data[outcome], [0.2, 0.4, 0.6, 0.8]))
    tables = []
    for table in (data, made):
        place = np.searchsorted(edges, table[outcome].to_numpy(dtype=float), side="right")
        half = (table[first[0]] > data[first[0]].median()).to_numpy() * 1 if first else 0 * place
        counts = np.bincount(2 * place + half, minlength=2 * (edges.size + 1))
        tables.append(counts / counts.sum())
    return float(np.abs(tables[0] - tables[1]).sum() / 2)
