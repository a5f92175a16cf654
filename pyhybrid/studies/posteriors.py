"""Study H: what censoring does to a posterior, and the risk-utility curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.randomness import Streams
from pyhybrid.engines import SamplerSettings
from pyhybrid.mechanisms import Censored, LipschitzWeighted, Unweighted
from pyhybrid.models import Beta, NegativeBinomial
from pyhybrid.studies.comparing.curve import risk_utility_curve
from pyhybrid.studies.fits import ACCOUNTING, fitted, session_over
from pyhybrid.studies.local_bounds import mixture_counts
from pyhybrid.studies.strict import beta_database
from pyhybrid.studies.study import Claim, Measured, Size, Study, mean_of

__all__ = ["STUDY_H"]

_POSTERIOR, _CURVE = "posterior of phi, n = 2000", "risk-utility curve, n = 1000"


def measure_h(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Posterior mean and deviation of phi; or distances of LW and SW at equal bounds."""
    if setting == _CURVE:
        return _curve(streams, options)
    model = Beta("y ~ 1")
    session = session_over(model, beta_database(streams.generator("data")), streams, options)
    mechanisms = {
        "posterior": Unweighted(model, accounting=ACCOUNTING),
        "weighted posterior": LipschitzWeighted(model, accounting=ACCOUNTING),
        "censored posterior": Censored(
            model, epsilon=5, inner=Unweighted(model), accounting=ACCOUNTING
        ),
    }
    rows = [
        Measured("prior", "mean of phi", 0.5),  # Beta(1, 1)
        Measured("prior", "standard deviation of phi", float(np.sqrt(1 / 12))),
    ]
    for name, mechanism in mechanisms.items():
        phi = fitted(mechanism, session).draws.flat("phi")
        rows.append(Measured(name, "mean of phi", float(phi.mean())))
        rows.append(Measured(name, "standard deviation of phi", float(phi.std())))
    return rows


def _curve(streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    y = mixture_counts(1000, streams.generator("data"))
    table = risk_utility_curve(
        NegativeBinomial("y ~ 1"),
        pd.DataFrame({"y": y.astype(np.int64)}),
        scales=options["scales"],
        shifts=[0.0],
        n_synthetic=20,
        accounting=ACCOUNTING,
        seed=streams.entropy,
        engine=options["engine"],
        settings=SamplerSettings(parallel_chains=1),
        on_not_converged="warn",
    ).table
    rows = []
    for _, row in table.iterrows():
        scale = "" if row["mechanism"] == "Unweighted" else f" at scale {row['scale']:g}"
        for column, name in (("lipschitz_bound", "Lipschitz bound"), ("max_ecdf", "max-ECDF")):
            rows.append(Measured(f"{row['mechanism']}{scale}", name, float(row[column])))
    return rows


def _between_prior_and_posterior(summary: pd.DataFrame) -> tuple[str, bool]:
    mean, spread = (
        {
            name: mean_of(summary, _POSTERIOR, f"{name} posterior".strip(), f"{what} of phi")
            for name in ("", "weighted", "censored")
        }
        for what in ("mean", "standard deviation")
    )
    shown = ", ".join(f"{name or 'plain'} {mean[name]:.4f} ({spread[name]:.4f})" for name in mean)
    near = abs(mean["censored"] - mean[""]) < 5 * spread["censored"]
    return f"mean (deviation): {shown}", bool(near and spread["censored"] >= 0.9 * spread[""])


def _vector_beats_scalar(summary: pd.DataFrame) -> tuple[str, bool]:
    own = summary[(summary["setting"] == _CURVE) & (summary["quantity"] == "max-ECDF")]
    name = own["synthesizer"]
    found = {
        kind: float(own.loc[name.str.startswith(kind), "mean"].mean()) for kind in ("LW", "SW")
    }
    shown = ", ".join(f"{kind} {value:.4f}" for kind, value in found.items())
    return f"mean max-ECDF over scales: {shown}", found["LW"] < found["SW"]


STUDY_H = Study(
    name="H",
    title="Censored posteriors, and vector against scalar weights at equal bounds",
    source="[C25] fig. 1; [S22] fig. 7",
    settings=(_POSTERIOR, _CURVE),
    measure=measure_h,
    quick=Size(replicates=2, options={"scales": [1.0, 0.7]}),
    paper=Size(replicates=20, options={"scales": [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]}),
    claims=(
        Claim(text="the censored posterior stays near the posterior, somewhat wider",
              check=_between_prior_and_posterior),
        Claim(text="LW is nearer to the data than SW at equal bounds (real income in the paper)",
              check=_vector_beats_scalar),
    ),
)  # fmt: skip
