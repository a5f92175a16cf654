"""Writes the files of this folder: one of everything that later versions have to read.

Run it only to add a kind of file or a new format, into a folder of that format's name; files that
are here stay as they are. `python -m tests.stored.make_stored FOLDER`
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.engines import ConvergenceRule
from pyhybrid.masking import GibbsSettings
from tests.studies.test_studies import _study

OPTIONS: dict[str, Any] = {
    "seed": 1,
    "engine": "embedded",
    "settings": ph.engines.SamplerSettings(chains=2, warmup=200, draws=150),
    "on_not_converged": "warn",
}


def people() -> pd.DataFrame:
    """20 records with columns of several types."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "visits": pd.array(rng.poisson(4, 20), dtype="Int32"),
            "age": rng.integers(18, 90, 20),
            "region": pd.Categorical(rng.choice(["a", "b"], 20), categories=["b", "a"]),
            "note": rng.choice(["é", "a,b", ""], 20),
        },
        index=pd.Index([f"row {i}" for i in range(20)], name="label"),
    )


def make(folder: Path) -> None:
    """One of each."""
    table, model = people(), ph.Poisson("visits ~ age")
    ledger = ph.Ledger(folder / "survey.ledger", budget=500, kind="asymptotic local",
                       relation="remove", allow_unlike=True)  # fmt: skip
    release = ph.LipschitzWeighted(model).release(table, n_synthetic=2, **OPTIONS)
    release.save(folder / "release", ledger=ledger, report=False)
    ledger.add(ph.primitives.laplace_counts([0, 1, 1], n_categories=2, epsilon=0.5))
    censored = ph.Censored(model, epsilon=4, inner=ph.Unweighted(model), check_modes=False)
    censored.release(table, **OPTIONS).save(folder / "censored", report=False)
    steps = [ph.Unweighted(ph.Poisson("visits ~ 1")), ph.Unweighted(ph.Poisson("age ~ visits"))]
    ph.SequentialSynthesis(steps).release(table, **OPTIONS).save(folder / "sequential",
                                                                 report=False)  # fmt: skip
    histogram = ph.PerturbedHistogram(column="age", lower=0, upper=110, n_bins=11, epsilon=1)
    histogram.release(table).save(folder / "histogram", report=False)
    ph.calibrate(
        model, table, epsilon=4, n_draws=20, holds_no_released_record=True, **OPTIONS
    ).save(folder / "calibration")
    ph.studies.risk_utility_curve(
        ph.Poisson("visits ~ 1"), table, scales=[1.0], shifts=[0.0], n_synthetic=2,
        results=folder / "points.jsonl", **OPTIONS,
    )  # fmt: skip
    ph.studies.run_study(_study("a"), out=folder / "study", replicates=3, engine="embedded")
    gibbs = GibbsSettings(chains=2, warmup=40, draws=60, sweeps=5,
                          rule=ConvergenceRule(rhat=1.5, ess_per_chain=1))  # fmt: skip
    keys = ["age", "region"]
    imputation = ph.masking.MaskedImputation(
        keys=keys, masks=ph.masking.masks_by_type(table, keys), n_synthetic=2, settings=gibbs,
        on_not_converged="warn",
    )  # fmt: skip
    imputation.release(table, seed=1).save(folder / "masked", report=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    target = Path(sys.argv[1])
    target.mkdir(parents=True)
    make(target)
