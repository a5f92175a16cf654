"""Study I: masking by data augmentation against CART and parametric synthesis.

In the spirit of [J22]: a probit regression of a kept outcome on two keys and a kept covariate,
where the association models are wrong: the continuous key is skewed, with a spread that varies, and
enters the outcome on the probit scale. Three kept columns have nothing to do with it.

In the second setting, the course's key case [JC], the outcome is collected after synthesis: no
association model can use it, and only masks carry what the keys say about it. In the third, values
of the continuous key are missing, more often where a kept covariate is large. In the fourth each
risk subgroup has masks of its own.

A normal regression for the skewed key pulls masked values toward a wrong mean: the coefficient of x
is then biased toward 0. The Gaussian copula takes the key's own margin, and its bias is smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule
from pyhybrid.masking import (
    CartSynthesis,
    GaussianMask,
    GibbsSettings,
    MaskedImputation,
    MixtureMask,
    ParametricSynthesis,
    risk_subgroups,
)
from pyhybrid.masking.imputation import masked_utility, naming_share, release_risk
from pyhybrid.measures import model_utility
from pyhybrid.mechanisms import LipschitzWeighted
from pyhybrid.mechanisms.sequential import SequentialSynthesis
from pyhybrid.models import Bernoulli, NormalRegression
from pyhybrid.studies.claims import checking, listed, means_of, nearer, of_means, row_of
from pyhybrid.studies.measuring import ACCOUNTING, frame, measured
from pyhybrid.studies.study import Found, Measured, Size, Study, claim

_SETTING, _AFTER = "n = 1000", "n = 1000, outcome collected after synthesis"
_MISSING, _SUBGROUPS = "n = 1000, a fifth of x missing", "n = 1000, masks by risk subgroup"
FORMULA, KEYS, RADIUS = "y ~ x + b + z1", ["x", "b"], {"x": 0.05}
TRUE = np.array([0.2, 0.8, -0.6, 0.3])
_TERMS = ("x", "b", "z1")
_NAMED, _ERROR = "records named correctly", "squared error of the coefficients"
_OVERLAP, _APART = "overlap of 95 % intervals", "standardized difference"
_COVERED = "coverage of 95 % intervals"
_COMPARATORS = {"CART": CartSynthesis, "normal + logit": ParametricSynthesis}
_PUBLISHED, _STRONGEST = "DA-MI, s2/K = 0.05, a = 6", "DA-MI, s2/K = 1, a = 1.5"
_COPULA = "DA-MI by a copula, s2/K = 0.05, a = 6"
_OFF, _COPULA_OFF = "DA-MI, masks off", "DA-MI by a copula, masks off"
_FEW, _MANY = "DA-MI, s2/K = 0.05, a = 6, 3 sets", "DA-MI, s2/K = 0.05, a = 6, 20 sets"
_WEIGHTS = "Lipschitz weights"
_ONE_MASK, _BY_GROUP = "DA-MI, one mask for all", "DA-MI, a stronger mask for records at risk"
_COMPLETE = "complete records, not masked"
_COPIES = 20
# variance / copies and separation, from near the data to the association model alone.
_STRENGTHS: dict[str, tuple[float, float] | None] = {
    f"DA-MI, s2/K = {variance:g}, a = {a:g}": (variance, a)
    for variance, a in ((0.03, 6.0), (0.05, 6.0), (0.1, 3.0), (0.2, 3.0), (1.0, 1.5))
} | {_OFF: None}
_MASKS = (*(name for name, strength in _STRENGTHS.items() if strength), _COPULA)
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
    return frame(y=y.astype(int), x=x, b=b, **{f"z{j + 1}": z[:, j] for j in range(4)})


def measure_i(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Errors, coverage and risk of every method on one database."""
    data = masked_database(streams.generator("data"))
    seed = streams.engine_seed("masking")
    if setting == _MISSING:
        return _missing(data, streams.generator("missing"), seed)
    if setting == _SUBGROUPS:
        return _by_subgroup(data, seed)
    seen = data.drop(columns="y") if setting == _AFTER else data
    return _side_by_side(data, seen, seed, options["engine"])


def _imputation(n_synthetic: int = 5, **changes: Any) -> MaskedImputation:
    how: Any = {"settings": SHORT_CHAINS, "on_not_converged": "warn", **changes}
    return MaskedImputation(keys=KEYS, n_synthetic=n_synthetic, **how)


def _masks(strength: tuple[float, float] | None) -> Any:
    """Masks of (variance / copies, separation)."""
    if strength is None:
        return {}
    return {
        "x": GaussianMask(copies=_COPIES, variance=_COPIES * strength[0]),
        "b": MixtureMask(separation=strength[1]),
    }


def _side_by_side(data: pd.DataFrame, seen: pd.DataFrame, seed: int, engine: str) -> list[Measured]:
    """All strengths, a copula, 3 and 20 sets, and the comparators."""
    base = _imputation()
    fit, published = base.fit(seen, seed=seed), _masks(_STRENGTHS[_PUBLISHED])
    releases: dict[str, Any] = {
        name: base.with_masks(_masks(strength)).release_from(fit)
        for name, strength in _STRENGTHS.items()
    }
    copula = _imputation(association="copula")
    margins = copula.fit(seen, seed=seed)
    releases[_COPULA] = copula.with_masks(published).release_from(margins)
    releases[_COPULA_OFF] = copula.release_from(margins)
    for name, m in ((_FEW, 3), (_MANY, 20)):
        releases[name] = _imputation(m, masks=published).release(seen, seed=seed)
    for name, comparator in _COMPARATORS.items():
        releases[name] = comparator(keys=KEYS, n_synthetic=5).release(seen, seed=seed)
    rows = []
    for name, masked in releases.items():
        release = replace(masked, synthetic=[t.assign(y=data["y"]) for t in masked.synthetic])
        utility = _utility(release, data)
        rows += _judged(name, release, utility, data)
    rows += [*_measured("the data", utility, ""), Measured("the data", _NAMED, _named(None, data))]
    return rows if seen is not data else [*rows, *_by_weights(data, seed, engine)]


def _utility(release: Any, data: pd.DataFrame) -> pd.DataFrame:
    return masked_utility(release, data, FORMULA, model="probit").table


def _judged(name: str, release: Any, utility: pd.DataFrame, data: pd.DataFrame) -> list[Measured]:
    whole = {
        _OVERLAP: utility["interval_overlap"].mean(),
        _APART: utility["standardised_difference"].mean(),
        _NAMED: _named(release, data),
    }
    return [*_measured(name, utility, "synthetic_"), *measured(name, whole)]


def _by_weights(data: pd.DataFrame, seed: int, engine: str) -> list[Measured]:
    """The same keys drawn from posteriors weighted by risk, and what that costs as published."""
    others = " + ".join(data.columns.drop(KEYS))
    steps = [
        LipschitzWeighted(NormalRegression(f"x ~ {others}"), accounting=ACCOUNTING),
        LipschitzWeighted(Bernoulli(f"b ~ x + {others}"), accounting=ACCOUNTING),
    ]
    release = SequentialSynthesis(steps).release(
        data, n_synthetic=5, refits=0, seed=seed, engine=engine, on_not_converged="warn"
    )
    rule = "partially_synthetic"
    utility = model_utility(data, release.synthetic, FORMULA, rule=rule, model="probit").table
    rows = _judged(_WEIGHTS, release, utility, data)
    return [*rows, Measured(_WEIGHTS, "epsilon of a set", release.charge.epsilon / 5)]


def _missing(data: pd.DataFrame, rng: np.random.Generator, seed: int) -> list[Measured]:
    """Nested imputation and synthesis [R04] beside the complete records."""
    seen = data.copy()
    seen.loc[rng.random(len(data)) < 1 / (1 + np.exp(1.6 - data["z1"])), "x"] = np.nan
    published = _masks(_STRENGTHS[_PUBLISHED])
    nested = partial(_imputation, 2, masks=published, n_imputations=5)
    rows = []
    for name, imputation in {_PUBLISHED: nested(), _COPULA: nested(association="copula")}.items():
        utility = _utility(imputation.release(seen, seed=seed), seen)
        rows += _measured(name, utility, "synthetic_")
    return [*rows, *_measured(_COMPLETE, utility, "")]


def _by_subgroup(data: pd.DataFrame, seed: int) -> list[Measured]:
    """One mask for all records, and masks that are stronger only where few others match."""
    groups = risk_subgroups(data, KEYS, 10, RADIUS)
    weak, strong = _masks((0.02, 6.0)), _masks((1.0, 1.5))
    by_group = {key: {"low": weak[key], "medium": strong[key], "high": strong[key]} for key in KEYS}
    releases = {
        _ONE_MASK: _imputation(masks=_masks((0.05, 6.0))).release(data, seed=seed),
        _BY_GROUP: _imputation(masks=by_group, subgroups=groups).release(data, seed=seed),
    }
    return [
        row
        for name, release in releases.items()
        for row in _judged(name, release, _utility(release, data), data)
    ]


def _named(release: Any, data: pd.DataFrame) -> float:
    return float(naming_share(release_risk(release, data, keys=KEYS, radius=RADIUS)))


def _measured(name: str, table: pd.DataFrame, prefix: str) -> list[Measured]:
    error = table[prefix + "estimate"].to_numpy() - TRUE
    lower, upper = table[prefix + "lower"].to_numpy(), table[prefix + "upper"].to_numpy()
    covered = (lower <= TRUE) & (upper >= TRUE)
    by_term = {f"error of {term}": of for term, of in zip(_TERMS, error[1:], strict=True)}
    return measured(name, {**by_term, _ERROR: (error[1:] ** 2).mean(), _COVERED: covered.mean()})


@checking
def _better_at_equal_risk(summary: pd.DataFrame, other: str) -> Found:
    """The best mask that is no riskier than a comparator, against it; none may be."""
    risk = means_of(summary, _SETTING, (*_MASKS, other), _NAMED)
    error = means_of(summary, _SETTING, _MASKS, _ERROR)
    as_safe = [name for name in _MASKS if risk[name] <= 1.25 * risk[other]]
    if not as_safe:
        least = min(risk[name] for name in _MASKS)
        return f"{other} names {risk[other]:.4f}, no mask is as safe: {least:.4f}", None
    best = min(as_safe, key=lambda name: error[name])
    shown, holds = nearer(summary, _SETTING, best, [other], _ERROR)
    return f"{shown} (names {risk[other]:.4f})", holds


def _only_masks_carry(summary: pd.DataFrame) -> Found:
    names = ("the data", _PUBLISHED, *_COMPARATORS)
    errors = means_of(summary, _AFTER, names, "error of x")
    slope = {name: TRUE[1] + error for name, error in errors.items()}
    others = max(slope[name] for name in _COMPARATORS)
    holds = slope[_PUBLISHED] > 0.8 * slope["the data"] and others < 0.5 * slope["the data"]
    return f"coefficient of x: {listed(slope)}", bool(holds)


def _more_sets(summary: pd.DataFrame) -> Found:
    named = means_of(summary, _SETTING, (_FEW, _MANY), _NAMED)
    errors = means_of(summary, _SETTING, ("the data", _FEW, _MANY), _ERROR)
    roots = ", ".join(f"{error**0.5:.4f}" for error in errors.values())
    shown, holds = nearer(summary, _SETTING, _MANY, [_FEW], _ERROR)
    return f"{shown}; RMSE of data, 3 and 20 sets {roots}; named {listed(named, '.3f')}", holds


@checking
def _weights_beside(summary: pd.DataFrame, mask: str, within: float) -> Found:
    """Whether weights that name at most `within` times as many as a mask are farther off."""
    named = means_of(summary, _SETTING, (mask, _WEIGHTS), _NAMED)
    shown, holds = nearer(summary, _SETTING, mask, [_WEIGHTS], _ERROR)
    epsilon = row_of(summary, _SETTING, _WEIGHTS, "epsilon of a set")
    shown += f"; named {listed(named, '.4f')}; epsilon of a set {epsilon['mean']:.0f}"
    shown += f"; {epsilon['n']:.0f} databases"
    return shown, holds and named[_WEIGHTS] < within * named[mask]


def _subgroups_protect(summary: pd.DataFrame) -> Found:
    of_both = partial(means_of, summary, _SUBGROUPS, (_ONE_MASK, _BY_GROUP))
    risk, error = ([*of_both(quantity).values()] for quantity in (_NAMED, _ERROR))
    shown = f"{risk[0]:.4f} to {risk[1]:.4f}; RMSE {error[0] ** 0.5:.3f} to {error[1] ** 0.5:.3f}"
    return f"records named correctly: {shown}", risk[1] < risk[0] and error[1] <= 1.1**2 * error[0]


STUDY_I = Study(
    name="I",
    title="Masking by data augmentation: coefficients against re-identification risk",
    source="[J22], [JC]",
    settings=(_SETTING, _AFTER, _MISSING, _SUBGROUPS), measure=measure_i,
    quick=Size(replicates=30), paper=Size(replicates=200),
    compared={_ERROR: [(_MANY, _FEW), *product((_STRONGEST, _OFF), [_WEIGHTS]),
                       *product(_MASKS, _COMPARATORS)]},
    claims=(
        *(claim("better at equal risk", _better_at_equal_risk(x), other=x) for x in _COMPARATORS),
        claim("only masks carry", _only_masks_carry),
        claim("risk falls", of_means(_SETTING, _STRENGTHS, _NAMED, "from weak to no masks",
                                     lambda *risk: all(np.diff(risk) < 0))),
        claim("copula mends", of_means(
            _SETTING, (_PUBLISHED, _COPULA, "CART"), "error of x", "bias of the coefficient of x",
            lambda normal, copula, _: abs(copula) < abs(normal), "+.3f")),
        claim("more sets", _more_sets),
        *(
            claim("weights beside masks", _weights_beside(mask, at), than=than, within=f"{at:g}")
            for mask, at, than in (
                (_STRONGEST, 1.0, "fewer records than the strongest mask"),
                (_OFF, 1.05, "as few records as the association model alone, masks off"),
            )
        ),
        claim("missing keys covered", of_means(
            _MISSING, (_PUBLISHED, _COPULA, _COMPLETE), _COVERED, "coverage",
            lambda normal, copula, _: min(normal, copula) > 0.9)),
        claim("subgroups protect", _subgroups_protect),
    ),
)  # fmt: skip
