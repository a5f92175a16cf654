"""Studies A and B: from local to global bounds of count data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.randomness import Streams
from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.measures.arrays.estimates import STATISTICS, summaries
from pyhybrid.mechanisms import LipschitzWeighted, Truncated, Unweighted
from pyhybrid.models import NegativeBinomial, Poisson
from pyhybrid.studies.fits import ACCOUNTING, bound_row, fitted, session_over
from pyhybrid.studies.study import Claim, Measured, Published, Size, Study, mean_of

__all__ = ["STUDY_A", "STUDY_B", "mixture_counts"]

_BOUND = "Lipschitz bound"
_STEP = Reweighting.published(k=0.95)
_SIZES = (100, 400, 1600, 6400)


def mixture_counts(n: int, rng: np.random.Generator) -> FloatArray:
    """0.2 NB(mean 100, phi 5) + 0.8 NB(100, 20), shape (n,) [V25 sec. 2]."""
    phi = np.where(rng.random(n) < 0.2, 5.0, 20.0)
    return rng.poisson(rng.gamma(phi, 100 / phi)).astype(float)


def measure_a(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds of Unweighted, Weighted and Weighted-M on y ~ Poisson(100)."""
    n = int(setting.removeprefix("n = "))
    data = pd.DataFrame({"y": streams.generator("data").poisson(100, n)})
    model = Poisson("y ~ 1")
    session = session_over(model, data, streams, options)
    synthesizers = {
        "Unweighted": Unweighted(model, accounting=ACCOUNTING),
        "Weighted": LipschitzWeighted(model, accounting=ACCOUNTING),
        "Weighted-M": Truncated(model, cap=3.5, accounting=ACCOUNTING),
    }
    rows = []
    for name, each in synthesizers.items():
        fit = fitted(each, session)
        rows += [
            bound_row(name, fit),
            Measured(name, "share of weights at 0", float((fit.alpha == 0).mean())),
            Measured(name, "posterior mean of mu", float(np.exp(fit.draws.flat("beta")).mean())),
        ]
    return rows


def measure_b(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds and one synthetic set's estimates, Unweighted and LW, n = 1000."""
    rng, n = streams.generator("data"), 1000
    poisson = setting == "Poisson(100)"
    y = rng.poisson(100, n).astype(float) if poisson else mixture_counts(n, rng)
    model: Poisson | NegativeBinomial = (Poisson if poisson else NegativeBinomial)("y ~ 1")
    session = session_over(model, pd.DataFrame({"y": y.astype(int)}), streams, options)
    rows = [
        Measured("data", name, float(value))
        for name, value in zip(STATISTICS, summaries(y), strict=True)
    ]
    for name, mechanism in {
        "Unweighted": Unweighted(model, accounting=ACCOUNTING),
        "LW": LipschitzWeighted(model, accounting=ACCOUNTING),
        "LW_final": LipschitzWeighted(model, reweighting=_STEP, accounting=ACCOUNTING),
    }.items():
        rows.append(bound_row(name, fitted(mechanism, session)))
        release = mechanism.release_from(session, n_synthetic=1, n_draws_released=1)
        found = summaries(release.synthetic[0]["y"].to_numpy(dtype=float))
        rows += [Measured(name, s, float(v)) for s, v in zip(STATISTICS, found, strict=True)]
    return rows


def _drifts(summary: pd.DataFrame) -> tuple[str, bool]:
    drift = {
        name: mean_of(summary, "n = 6400", name, _BOUND) - mean_of(summary, "n = 100", name, _BOUND)
        for name in ("Unweighted", "Weighted", "Weighted-M")
    }
    found = ", ".join(f"{name} {value:+.2f}" for name, value in drift.items())
    return f"from n = 100 to 6400: {found}", drift["Unweighted"] > 2 * drift["Weighted"] > 0


def _contracts(summary: pd.DataFrame) -> tuple[str, bool]:
    bounds = summary[summary["quantity"] == _BOUND]
    row = bounds[bounds["synthesizer"] == "Weighted-M"].set_index("setting")
    spread = (row["highest"] - row["lowest"])[[f"n = {n}" for n in _SIZES]]
    shown = ", ".join(f"{value:.2f}" for value in spread)
    return f"range over databases, n = 100 to 6400: {shown}", bool(spread.iloc[-1] < spread.iloc[0])


def _near_the_data(summary: pd.DataFrame) -> tuple[str, bool]:
    """Mean estimands over databases: every one within 3 % of the data's."""
    shown, apart = [], []
    for setting in STUDY_B.settings:
        for name in ("LW", "LW_final"):
            ratios = [
                mean_of(summary, setting, name, s) / mean_of(summary, setting, "data", s)
                for s in STATISTICS
            ]
            apart += [abs(ratio - 1) for ratio in ratios]
            told = ", ".join(f"{s} {r:.3f}" for s, r in zip(STATISTICS, ratios, strict=True))
            shown.append(f"{setting}, {name} over the data: {told}")
    return "; ".join(shown), max(apart) < 0.03


def _no_higher_bound(summary: pd.DataFrame) -> tuple[str, bool]:
    """Re-weighted bounds, within the tolerance of the published step."""
    found = {
        setting: [mean_of(summary, setting, name, _BOUND) for name in ("LW", "LW_final")]
        for setting in STUDY_B.settings
    }
    shown = "; ".join(f"{name}: LW {a:.2f}, LW_final {b:.2f}" for name, (a, b) in found.items())
    return shown, all(b <= a + _STEP.tolerance for a, b in found.values())


STUDY_A = Study(
    name="A",
    title="Bounds of Poisson(100) counts as the sample grows",
    source="[S22] sec. 4.4",
    settings=tuple(f"n = {n}" for n in _SIZES),
    measure=measure_a,
    quick=Size(replicates=15),
    paper=Size(replicates=400),
    published=(
        Published(
            setting="n = 6400", synthesizer="Weighted-M", quantity=_BOUND,
            shown="contracts onto 3.5", low=3.4, high=3.6,
        ),
    ),
    claims=(
        Claim(text="Unweighted bounds drift up with n, Weighted much less", check=_drifts),
        Claim(text="Weighted-M bounds contract as n grows", check=_contracts),
    ),
)  # fmt: skip

STUDY_B = Study(
    name="B",
    title="Bounds and estimates of Poisson and over-dispersed counts",
    source="[V25] app. D",
    settings=("Poisson(100)", "mixture"),
    measure=measure_b,
    quick=Size(replicates=8),
    paper=Size(replicates=100),
    published=(
        Published(
            setting="Poisson(100)", synthesizer="LW", quantity=_BOUND, shown="near 3.5",
            low=3.3, high=3.8, note="read off a figure",
        ),
        Published(
            setting="mixture", synthesizer="LW", quantity=_BOUND, shown="near 6",
            low=5.5, high=6.5, note="read off a figure",
        ),
    ),
    claims=(
        Claim(text="estimands of LW are near those of the data", check=_near_the_data),
        Claim(text="re-weighting does not raise the bound by more than its tolerance",
              check=_no_higher_bound),
    ),
)  # fmt: skip
