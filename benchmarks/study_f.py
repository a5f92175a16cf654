"""Study F [C25 sec. 4]: Beta(0.5, 3), n = 2000, epsilon 5, 4, 3; published ranges beside ours."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks.measure import line
from pyhybrid.engines import SamplerSettings, engine_by_name
from pyhybrid.fitting import FitSession, open_session

EPSILONS = (5, 4, 3)
MODEL = ph.Beta("y ~ 1")
SETTINGS = SamplerSettings(warmup=500, parallel_chains=1)
# Means over 100 databases and, for Censor_uw, their range, as published.
PUBLISHED = {
    "Weighted-e": {5: (29, None), 4: (195, None), 3: (573, None)},
    "Censor_uw": {5: (247, (196, 296)), 4: (419, (340, 481)), 3: (809, (737, 888))},
    "Censor_w": {5: (110, None), 4: (408, None), 3: (741, None)},
}


@dataclass(frozen=True)
class Row:
    """One synthesizer on one database: its bound, records truncated or censored, modes."""

    database: int
    synthesizer: str
    epsilon: int
    bound: float
    n_met: int
    n_elsewhere: int


def database(seed: int, n: int = 2000) -> pd.DataFrame:
    """One simulated database."""
    return pd.DataFrame({"y": np.random.default_rng(1000 + seed).beta(0.5, 3, n)})


def one(seed: int) -> list[Row]:
    """All synthesizers on one database; one session, so that fits are shared."""
    session = open_session(MODEL.bind(database(seed)), seed=seed, engine="embedded",
                           settings=SETTINGS, on_not_converged="warn")  # fmt: skip
    rows = [_row(seed, "Unweighted", 0, ph.Unweighted(MODEL), session)]
    rows.append(_row(seed, "Weighted", 0, ph.LipschitzWeighted(MODEL), session))
    for epsilon in EPSILONS:
        rows.append(
            _row(seed, "Weighted-e", epsilon, ph.Truncated(MODEL, epsilon=epsilon), session)
        )
        plain = ph.Censored(MODEL, epsilon=epsilon, inner=ph.Unweighted(MODEL))
        rows.append(_row(seed, "Censor_uw", epsilon, plain, session))
        rows.append(_row(seed, "Censor_w", epsilon, ph.Censored(MODEL, epsilon=epsilon), session))
    return rows


def _row(seed: int, name: str, epsilon: int, mechanism: ph.Unweighted, session: FitSession) -> Row:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = mechanism.fit(session).fit
    if name == "Weighted-e":
        # Records beyond the cap, not counting the riskiest one, to which LW gives 0 anyway.
        n_met = int((fit.alpha == 0).sum()) - 1
    else:
        n_met = int(fit.censored.sum()) if fit.censored is not None else 0
    return Row(seed, name, epsilon, fit.bounds.overall, n_met, fit.diagnostics.n_elsewhere or 0)


def table(n_databases: int, workers: int) -> pd.DataFrame:
    """Rows of all databases."""
    found = []
    with ProcessPoolExecutor(workers) as pool:
        for place, rows in enumerate(pool.map(one, range(n_databases)), start=1):
            found += rows
            print(f"  database {place} of {n_databases}", end="\r", flush=True)
    return pd.DataFrame(found)


def run(n_databases: int = 20, workers: int = 2) -> None:
    """Print bounds and counts beside the published ones."""
    print(f"Study F, {n_databases} databases, n = 2000")
    started = time.perf_counter()
    rows = table(n_databases, workers)
    line(f"{n_databases} databases, {workers} processes", time.perf_counter() - started)
    for (name, epsilon), own in rows.groupby(["synthesizer", "epsilon"], sort=False):
        bounds = f"bound {own['bound'].min():.2f} to {own['bound'].max():.2f}"
        counts = ""
        if name in PUBLISHED:
            mean, span = PUBLISHED[name][epsilon]
            met = own["n_met"]
            counts = (
                f"; met the cap: {met.mean():.0f} ({met.min()} to {met.max()}), published {mean}"
            )
            counts += f" ({span[0]} to {span[1]})" if span else ""
            counts += f"; chains elsewhere {own['n_elsewhere'].sum()}"
        print(f"  {name:<11} epsilon {epsilon or '-':<2} {bounds}{counts}")
    _histogram()
    _sums()


def _sums() -> None:
    """The beta likelihood through three sums, against record by record."""
    bound = MODEL.bind(database(0))
    engine = engine_by_name("embedded")
    times = []
    # A cap that nothing meets takes the record-by-record path to the same posterior.
    for cap in (None, 1e9):
        data = bound.stan_data(np.ones(bound.n), cap=cap)
        draws = engine.sample(bound.program, data, seed=1, settings=SETTINGS)
        times.append(draws.provenance.seconds)
    line("unweighted beta fit, through its sufficient statistics", times[0])
    line("the same, record by record", times[1], f"ratio {times[1] / times[0]:,.0f}")


def _histogram() -> None:
    """The sixth synthesizer needs no fit: its epsilon is what it was given."""
    for epsilon in EPSILONS:
        mechanism = ph.PerturbedHistogram(column="y", lower=0, upper=1, n_bins=20, epsilon=epsilon)
        charge = mechanism.release(database(0)).charge
        print(f"  {'PH':<11} epsilon {epsilon}  {charge.kind}, {charge.relation} one record")


if __name__ == "__main__":
    run(*(int(value) for value in sys.argv[1:]))
