"""Noisy marginals: RAND visits given seven predictors, a survey table of ten columns, 10^6 rows.

Overlap is that of quasi-Poisson intervals, mean over the coefficients: of single sets, and of 20
sets combined by the rule that knows of the noise. Two-way distance is the total variation distance
of pairs of cut columns, mean over the pairs. CPU seconds, n sets included.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from statsmodels.datasets import randhie

import pyhybrid as ph
from benchmarks.measure import line

_PREDICTORS = ["lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthp"]
_VISITS = {"mdvis": ph.mechanisms.ColumnDomain(bins=(0, 1, 2, 3, 4, 6, 8, 11, 16, 24, 40, 80))}
_SURVEY = Path("../shared/data/ce_2015_february.csv")
_COLUMNS = ["REGION", "BLS_URBN", "CUTENURE", "FAM_SIZE", "AGE", "EDUCA", "SEX", "MARITAL",
            "FINCBTAX", "TOTEXPCQ"]  # fmt: skip


def run() -> None:
    """Print all three."""
    print("Noisy marginals: strict, pure epsilon, replace")
    for epsilon in (1.0, 4.0, 8.0):
        _visits(epsilon)
    if _SURVEY.exists():
        for epsilon in (1.0, 4.0):
            _survey(epsilon)
    else:
        print(f"  the survey table is left out: no {_SURVEY}")
    _million()


def _visits(epsilon: float, repeats: int = 5) -> None:
    data = randhie.load_pandas().data[["mdvis", *_PREDICTORS]].astype({"mdvis": "int64"})
    own = _quasi_poisson(data)
    found = []
    for _ in range(repeats):
        started = time.process_time()
        mechanism = ph.NoisyMarginals(domain=_VISITS, given=_PREDICTORS, epsilon=epsilon)
        sets = mechanism.release(data, n_synthetic=20).synthetic
        seconds = time.process_time() - started
        fits = [_quasi_poisson(each) for each in sets]
        pooled = ph.measures.pool(fits, rule="noise_aware").combined.interval().T
        alone = [_overlap(own.conf_int().to_numpy(), fit.conf_int().to_numpy()) for fit in fits]
        started = time.process_time()
        mode = ph.NoisyMarginals(
            domain=_VISITS, given=_PREDICTORS, epsilon=epsilon, noise_aware=False
        ).release(data, n_synthetic=20)
        near = (
            ph.measures.pool([_quasi_poisson(each) for each in mode.synthetic])
            .combined.interval()
            .T
        )
        found.append((
            np.mean(alone),
            _overlap(own.conf_int().to_numpy(), pooled),
            _overlap(own.conf_int().to_numpy(), near),
            np.mean([_distance(data, each, _VISITS) for each in sets]),
            seconds,
        ))  # fmt: skip
    single, aware, naive, distance, seconds = np.mean(found, axis=0)
    line(f"RAND visits, epsilon {epsilon:g}: 20 sets", seconds,
         f"overlap {single:.2f} alone, {aware:.2f} noise-aware, {naive:.2f} of modes; two-way "
         f"distance {distance:.4f}")  # fmt: skip


def _survey(epsilon: float) -> None:
    """Domains are those of the table itself: right for a benchmark, wrong for a release."""
    data = pd.read_csv(_SURVEY)[_COLUMNS]
    domain = ph.mechanisms.reference_domain(data, _COLUMNS, n_bins=10)
    started = time.process_time()
    sets = ph.NoisyMarginals(domain=domain, epsilon=epsilon).release(data, n_synthetic=5).synthetic
    seconds = time.process_time() - started
    distance = np.mean([_distance(data, each, domain) for each in sets])
    line(f"CE, ten columns, all synthesized, epsilon {epsilon:g}: 5 sets", seconds,
         f"two-way distance {distance:.3f}")  # fmt: skip


def _million(n: int = 1_000_000) -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"age": rng.integers(18, 90, n), "sex": rng.choice(["f", "m"], n)})
    data["region"] = rng.choice(list("abcdefgh"), n)
    data["visits"] = np.minimum(rng.poisson(data["age"] / 20 + 2 * (data["region"] == "a")), 60)
    data["owner"] = rng.random(n) < data["age"] / 100
    domain = {
        "region": ph.mechanisms.ColumnDomain(levels=tuple("abcdefgh")),
        "visits": ph.mechanisms.ColumnDomain(bins=(0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 61)),
        "owner": ph.mechanisms.ColumnDomain(levels=(False, True)),
    }
    started = time.process_time()
    made = ph.NoisyMarginals(domain=domain, given=["age", "sex"], epsilon=1.0).release(data)
    seconds = time.process_time() - started
    line("10^6 rows, counts and categories, three columns, epsilon 1: 1 set", seconds,
         f"two-way distance {_distance(data, made.synthetic[0], domain):.4f}")  # fmt: skip


def _quasi_poisson(data: pd.DataFrame) -> sm.regression.linear_model.RegressionResults:
    model = sm.GLM(data["mdvis"], sm.add_constant(data[_PREDICTORS]), family=sm.families.Poisson())
    return model.fit(scale="X2")


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Mean over coefficients of the overlap of intervals (p, 2)."""
    return float(np.mean(ph.measures.interval_overlap(one.T, other.T)))


def _distance(
    one: pd.DataFrame, other: pd.DataFrame, domain: Mapping[str, ph.mechanisms.ColumnDomain]
) -> float:
    """Mean total variation distance over the pairs of columns, public ones by quintile."""
    cut = [{name: _places(frame, one, name, domain) for name in one} for frame in (one, other)]
    found = []
    for a, b in itertools.combinations(one.columns, 2):
        if a in domain or b in domain:
            tables = [np.unique(1000 * own[a] + own[b], return_counts=True) for own in cut]
            shares = [pd.Series(count / len(one), index=cells) for cells, count in tables]
            found.append(0.5 * shares[0].sub(shares[1], fill_value=0).abs().sum())
    return float(np.mean(found))


def _places(
    frame: pd.DataFrame,
    data: pd.DataFrame,
    name: str,
    domain: Mapping[str, ph.mechanisms.ColumnDomain],
) -> np.ndarray:
    if name in domain:
        return domain[name].places(frame[name])
    if not pd.api.types.is_numeric_dtype(data[name].dtype):
        return pd.factorize(frame[name], sort=True)[0]
    edges = np.unique(np.quantile(data[name], [0.2, 0.4, 0.6, 0.8]))
    return np.searchsorted(edges, frame[name], side="right")


if __name__ == "__main__":
    run()
