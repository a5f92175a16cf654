"""Study I: masking by data augmentation against CART and parametric synthesis.

In the spirit of [J22]: a probit regression of a kept outcome on two keys and a kept covariate,
where the association models are wrong: the continuous key is skewed, with a spread that varies, and
enters the outcome on the probit scale. Three kept columns have nothing to do with it.

In the second setting, the course's key case [JC], the outcome is collected after synthesis: no
association model can use it, and only masks carry what the keys say about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.engines import ConvergenceRule
from pyhybrid.masking import (
    CartSynthesis,
    GaussianMask,
    MaskedImputation,
    MixtureMask,
    ParametricSynthesis,
)
from pyhybrid.masking.analysis import masked_utility, naming_share, release_risk
from pyhybrid.masking.chains import GibbsSettings
from pyhybrid.randomness import Streams
from pyhybrid.studies.study import Claim, Measured, Size, Study, mean_of

__all__ = ["FORMULA", "KEYS", "RADIUS", "SHORT_CHAINS", "STUDY_I", "TRUE", "masked_database"]

_SETTING, _AFTER = "n = 1000", "n = 1000, outcome collected after synthesis"
FORMULA, KEYS, RADIUS = "y ~ x + b + z1", ["x", "b"], {"x": 0.05}
TRUE = np.array([0.2, 0.8, -0.6, 0.3])
_TERMS = ("x", "b", "z1")
_NAMED, _ERROR = "records named correctly", "squared error of the coefficients"
_OVERLAP, _APART = "overlap of 95 % intervals", "standardized difference"
_PUBLISHED = "DA-MI, s2/K = 0.05, a = 6"
_COPIES = 20
# variance / copies and separation, from near the data to the association model alone.
_STRENGTHS: dict[str, tuple[float, float] | None] = {
    "DA-MI, s2/K = 0.03, a = 6": (0.03, 6.0),
    _PUBLISHED: (0.05, 6.0),
    "DA-MI, s2/K = 0.1, a = 3": (0.1, 3.0),
    "DA-MI, s2/K = 0.2, a = 3": (0.2, 3.0),
    "DA-MI, s2/K = 1, a = 1.5": (1.0, 1.5),
    "DA-MI, masks off": None,
}
SHORT_CHAINS = GibbsSettings(
    chains=2, warmup=50, draws=60, sweeps=15, rule=ConvergenceRule(rhat=1.1, ess_per_chain=10)
)


def masked_database(rng: np.random.Generator, n: int = 1000) -> pd.DataFrame:
    """One simulated database: outcome y, keys x (continuous) and b (binary), z1 to z4 kept."""
    z = rng.normal(size=(n, 4))
    spread = 0.5 + 0.7 * (z[:, 1] > 0)
    x = 0.4 * z[:, 0] + spread * (rng.exponential(size=n) - 1)
    b = (0.6 * x + 0.4 * z[:, 0] + rng.normal(size=n) > 0).astype(int)
    y = np.column_stack([np.ones(n), x, b, z[:, 0]]) @ TRUE + rng.normal(size=n) > 0
    table: pd.DataFrame = pd.DataFrame(
        {"y": y.astype(int), "x": x, "b": b} | {f"z{j + 1}": z[:, j] for j in range(4)}
    )
    return table


def measure_i(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Errors, coverage and risk of every method on one database."""
    data = masked_database(streams.generator("data"))
    seen = data.drop(columns="y") if setting == _AFTER else data
    seed, m = streams.engine_seed("masking"), 5
    base = MaskedImputation(
        keys=KEYS, n_synthetic=m, settings=SHORT_CHAINS, on_not_converged="warn"
    )
    fit = base.fit(seen, seed=seed)
    releases: dict[str, Any] = {}
    for name, strength in _STRENGTHS.items():
        masks: Any = {}
        if strength is not None:
            masks = {
                "x": GaussianMask(copies=_COPIES, variance=_COPIES * strength[0]),
                "b": MixtureMask(separation=strength[1]),
            }
        releases[name] = base.with_masks(masks).release_from(fit)
    releases["CART"] = CartSynthesis(keys=KEYS, n_synthetic=m).release(seen, seed=seed)
    parametric = ParametricSynthesis(keys=KEYS, n_synthetic=m)
    releases["normal + logit"] = parametric.release(seen, seed=seed)
    rows = []
    for name, made in releases.items():
        release = replace(made, synthetic=[t.assign(y=data["y"]) for t in made.synthetic])
        found = masked_utility(release, data, FORMULA, model="probit").table
        rows += _measured(name, found, "synthetic_")
        rows.append(Measured(name, _OVERLAP, float(found["interval_overlap"].mean())))
        rows.append(Measured(name, _APART, float(found["standardised_difference"].mean())))
        rows.append(Measured(name, _NAMED, _named(release, data)))
    rows += _measured("the data", found, "")
    return [*rows, Measured("the data", _NAMED, _named(None, data))]


def _named(release: Any, data: pd.DataFrame) -> float:
    return float(naming_share(release_risk(release, data, keys=KEYS, radius=RADIUS)))


def _measured(name: str, table: pd.DataFrame, prefix: str) -> list[Measured]:
    error = table[prefix + "estimate"].to_numpy() - TRUE
    lower, upper = table[prefix + "lower"].to_numpy(), table[prefix + "upper"].to_numpy()
    covered = (lower <= TRUE) & (upper >= TRUE)
    return [
        *(
            Measured(name, f"error of {t}", float(e))
            for t, e in zip(_TERMS, error[1:], strict=True)
        ),
        Measured(name, _ERROR, float((error[1:] ** 2).mean())),
        Measured(name, "coverage of 95 % intervals", float(covered.mean())),
    ]


def _better_at_equal_risk(summary: pd.DataFrame) -> tuple[str, bool]:
    """The safest mask that is no riskier than a comparator, against it."""
    risk = {name: mean_of(summary, _SETTING, name, _NAMED) for name in _STRENGTHS}
    shown, holds = [], []
    for other in ("CART", "normal + logit"):
        limit = mean_of(summary, _SETTING, other, _NAMED)
        as_safe = [name for name in _STRENGTHS if risk[name] <= 1.25 * limit]
        best = min(as_safe, key=lambda name: mean_of(summary, _SETTING, name, _ERROR), default=None)
        ours = mean_of(summary, _SETTING, best or "", _ERROR) ** 0.5
        theirs = mean_of(summary, _SETTING, other, _ERROR) ** 0.5
        shown.append(f"{other} {theirs:.3f} (named {limit:.3f}), {best} {ours:.3f}")
        holds.append(bool(best and ours < theirs))
    return "RMSE at no more than 1.25 of its risk: " + "; ".join(shown), all(holds)


def _risk_falls(summary: pd.DataFrame) -> tuple[str, bool]:
    risk = [mean_of(summary, _SETTING, name, _NAMED) for name in _STRENGTHS]
    shown = ", ".join(f"{value:.3f}" for value in risk)
    return f"from strong to no masks: {shown}", all(np.diff(risk) < 0)


def _only_masks_carry(summary: pd.DataFrame) -> tuple[str, bool]:
    """Coefficient of x where the outcome came later."""
    names = ("the data", _PUBLISHED, "CART", "normal + logit")
    found = {n: TRUE[1] + mean_of(summary, _AFTER, n, "error of x") for n in names}
    ours, others = found[_PUBLISHED], [found[name] for name in names[2:]]
    shown = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    return f"coefficient of x: {shown}", bool(
        ours > 0.8 * found["the data"] and max(others) < 0.5 * found["the data"]
    )


STUDY_I = Study(
    name="I",
    title="Masking by data augmentation: coefficients against re-identification risk",
    source="[J22], [JC]",
    settings=(_SETTING, _AFTER),
    measure=measure_i,
    quick=Size(replicates=30),
    paper=Size(replicates=200),
    claims=(
        Claim(text="coefficients are nearer to the truth than with CART and norm + logit at "
              "comparable risk", check=_better_at_equal_risk),
        Claim(text="of an outcome collected after synthesis only masks keep the association",
              check=_only_masks_carry),
        Claim(text="risk falls as K/s2 and a fall", check=_risk_falls),
    ),
)  # fmt: skip
