r"""Simulation-based calibration of the built-in models, and posteriors by quadrature.

If theta is drawn from the prior, y from p(y | theta), and L independent draws from the posterior of
y, then the rank of any function of (theta, y) among its values at the draws is uniform on 0..L.

The priors have tails so heavy (half-Cauchy, half-t_3, Pareto of index 1.5) that much of what they
give are data that no table holds. Two conditionings keep the ranks uniform:

- theta is drawn from the prior restricted to a region A. The posterior under that prior is the full
  posterior restricted to A, so that draws of the engine outside A are left out: those that remain
  are draws of it. A is defined by the same function for both.
- data sets are rejected by rules that look at y alone (an outcome that does not vary, values that
  the model would move from the ends of its interval). p(theta | y) is the same for all that remain.

A third of the records has weight 0 and outcomes that are noise: they must not matter. Weights
between 0 and 1 make no posterior of a joint density, so that no rank is uniform; they are held
against quadrature.

Talts and others (2018), arXiv:1804.06788; Modrák and others (2023), Bayesian Analysis, rank the
log-likelihood.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from pyhybrid.engines import Draws, StanProgram, engine_by_name
from pyhybrid.fitting.exact import frozen_draws
from pyhybrid.models.families.published import PUBLISHED

N = 30
X_VALUES = np.tile([-1.0, 0.0, 1.0], N // 3)
DESIGN = np.column_stack([np.ones(N), X_VALUES])
CORNERS = np.array([[1.0, -1.0], [1.0, 1.0]])  # a linear predictor is extreme at one of them
L_DRAWS = 31
SETTINGS = ph.engines.SamplerSettings(chains=2, warmup=400, draws=400, parallel_chains=1)
Values = Mapping[str, FloatArray]  # (S, *dims) each


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """A model with its prior, its data and what is ranked, written down a second time. `prior(rng,
    size)` draws; `inside` says which draws are in A (S,); `outcome(rng, theta)` is y (n,) of one
    draw; `usable(y)` looks at y alone; `ranked` are functions of draws, (S,) each."""

    model: Any
    prior: Callable[[np.random.Generator, int], Values]
    inside: Callable[[Values], Any]
    outcome: Callable[[np.random.Generator, Values], FloatArray]
    usable: Callable[[FloatArray], bool]
    ranked: Mapping[str, Callable[[Values], FloatArray]]
    noise: tuple[float, ...] = (0.0, 40.0)


def _half_t(rng: np.random.Generator, *size: int) -> FloatArray:
    return np.abs(rng.standard_t(3, size))


def _coefficients(rng: np.random.Generator, size: int, eta: float) -> FloatArray:
    """beta (size, 2): half-t scales and a correlation that is LKJ(eta) for two coefficients."""
    scale, z = _half_t(rng, size, 2), rng.standard_normal((size, 2))
    rho = 2 * rng.beta(eta, eta, size) - 1
    z[:, 1] = rho * z[:, 0] + np.sqrt(1 - rho**2) * z[:, 1]
    return scale * z


def _normal_coefficients(rng: np.random.Generator, size: int) -> FloatArray:
    """beta (size, 2) under prior="normal" with scales 1.5 and, of the slope, 0.8."""
    return rng.standard_normal((size, 2)) * [1.5, 0.8]


def _level_contrasts(rng: np.random.Generator, size: int) -> FloatArray:
    """beta (size, 2, 2): three levels' independent coefficients, less those of the first."""
    own = rng.standard_normal((size, 2, 3)) * np.array([1.5, 0.8])[:, None] / np.sqrt(2)
    return np.asarray(own[..., 1:] - own[..., :1])


def _level(rng: np.random.Generator, t: Values) -> FloatArray:
    """By Gumbel noise, which the model's own replicates do not use."""
    utility = np.column_stack([np.zeros(N), DESIGN @ t["beta"]]) + rng.gumbel(size=(N, 3))
    return utility.argmax(axis=1).astype(float)


def _ordinal_prior(rng: np.random.Generator, size: int) -> Values:
    threshold = np.sort(1.5 * rng.standard_normal((size, 2)), axis=1)
    slope = 0.8 * rng.standard_normal(size)
    return {"threshold": threshold, "beta": np.column_stack([-threshold[:, 0], slope])}


_NORMAL: Any = {"prior": "normal", "prior_scale_intercept": 1.5, "prior_scale": 0.8}


def _eta(draws: Values) -> FloatArray:
    return draws["beta"] @ CORNERS.T


def _within(values: FloatArray, low: float, high: float) -> Any:
    return ((values >= low) & (values <= high)).reshape(len(values), -1).all(axis=1)


def _varies(y: FloatArray) -> bool:
    return bool(np.ptp(y) > 0)


def _open(y: FloatArray) -> bool:
    return bool(np.ptp(y) > 0 and y.min() > 1e-9 and y.max() < 1 - 1e-9)


def _pareto(rng: np.random.Generator, size: int) -> FloatArray:
    return 0.1 * (1 + rng.pareto(1.5, size))


_BETA = {"intercept": lambda d: d["beta"][:, 0], "slope": lambda d: d["beta"][:, 1]}


def _beta_draws(rng: np.random.Generator, t: Values) -> FloatArray:
    eta, size = DESIGN @ t["beta"], t["lambda"]
    return rng.beta(size * special.expit(eta), size * special.expit(-eta))


def _mixture_prior(rng: np.random.Generator, size: int, c: int) -> Values:
    scale, rho = _half_t(rng, size, 2), rng.uniform(-1, 1, size)
    z = rng.standard_normal((size, 2, c))
    z[:, 1] = rho[:, None] * z[:, 0] + np.sqrt(1 - rho**2)[:, None] * z[:, 1]
    share = rng.gamma(1, size=size)[:, None] / c
    # Gammas of small shape underflow: log G(a) = log G(a + 1) + log(U) / a.
    log_gamma = np.log(rng.gamma(share + 1, size=(size, c))) + np.log(rng.random((size, c))) / share
    return {
        "beta": scale[:, :, None] * z, "sigma": _half_t(rng, size, c),
        "log_proportion": log_gamma - special.logsumexp(log_gamma, axis=1, keepdims=True),
    }  # fmt: skip


def _mixture_outcome(rng: np.random.Generator, theta: Values) -> FloatArray:
    k = rng.choice(theta["sigma"].size, size=N, p=np.exp(theta["log_proportion"]))
    return rng.normal((DESIGN * theta["beta"][:, k].T).sum(axis=1), theta["sigma"][k])


def _mixture_inside(d: Values) -> Any:
    eta = np.einsum("ck,skj->scj", CORNERS, d["beta"])
    return _within(eta, -8, 8) & _within(d["sigma"], 0.1, 8)


def _density_at(point: float) -> Callable[[Values], FloatArray]:
    """Log density of a mixture at (y, x) = (point, 0): does not depend on labels."""

    def density(d: Values) -> FloatArray:
        own = stats.norm.logpdf(point, d["beta"][:, 0], d["sigma"]) + d["log_proportion"]
        return np.asarray(special.logsumexp(own, axis=1))

    return density


MODELS: dict[str, Calibrated] = {
    "poisson": Calibrated(
        model=ph.Poisson("y ~ x"), prior=lambda rng, size: {"beta": _coefficients(rng, size, 6)},
        inside=lambda d: _within(_eta(d), -1, 5),
        outcome=lambda rng, t: rng.poisson(np.exp(DESIGN @ t["beta"])).astype(float),
        usable=_varies, ranked=_BETA,
    ),
    "negative_binomial": Calibrated(
        model=ph.NegativeBinomial("y ~ x"),
        prior=lambda rng, size: {
            "beta": _coefficients(rng, size, 6), "phi": 1 / np.abs(5 * rng.standard_cauchy(size)),
        },
        inside=lambda d: _within(_eta(d), -1, 5) & _within(d["phi"], 0.1, 50),
        outcome=lambda rng, t: rng.poisson(
            rng.gamma(t["phi"], np.exp(DESIGN @ t["beta"]) / t["phi"])
        ).astype(float),
        usable=_varies, ranked={**_BETA, "phi": lambda d: d["phi"]},
    ),
    "beta": Calibrated(
        model=ph.Beta("y ~ 1"),
        prior=lambda rng, size: {"phi": rng.random(size), "lambda": _pareto(rng, size)},
        inside=lambda d: _within(d["phi"], 0.1, 0.9) & _within(d["lambda"], 1, 50),
        outcome=lambda rng, t: rng.beta(
            t["lambda"] * t["phi"], t["lambda"] * (1 - t["phi"]), size=N
        ),
        usable=_open, ranked={"phi": lambda d: d["phi"], "lambda": lambda d: d["lambda"]},
        noise=(0.0, 1.0),
    ),
    "beta_regression": Calibrated(
        model=ph.BetaRegression("y ~ x"),
        prior=lambda rng, size: {"beta": _coefficients(rng, size, 6), "lambda": _pareto(rng, size)},
        inside=lambda d: _within(_eta(d), -2, 2) & _within(d["lambda"], 1, 50),
        outcome=_beta_draws, usable=_open, ranked={**_BETA, "lambda": lambda d: d["lambda"]},
        noise=(0.0, 1.0),
    ),
    "normal": Calibrated(
        model=ph.NormalRegression("y ~ x"),
        prior=lambda rng, size: {"beta": _coefficients(rng, size, 1), "sigma": _half_t(rng, size)},
        inside=lambda d: _within(_eta(d), -8, 8) & _within(d["sigma"], 0.1, 8),
        outcome=lambda rng, t: rng.normal(DESIGN @ t["beta"], t["sigma"]), usable=_varies,
        ranked={**_BETA, "sigma": lambda d: d["sigma"]},
    ),
    "bernoulli": Calibrated(
        model=ph.Bernoulli("y ~ x", prior_scale_intercept=1.5, prior_scale=0.8),
        prior=lambda rng, size: {"beta": _normal_coefficients(rng, size)},
        inside=lambda d: _within(_eta(d), -4, 4),
        outcome=lambda rng, t: (rng.random(N) < special.expit(DESIGN @ t["beta"])).astype(float),
        usable=_varies, ranked=_BETA, noise=(0.0, 1.0),
    ),
    "categorical": Calibrated(
        model=ph.Categorical("y ~ x", levels=(0, 1, 2), prior_scale_intercept=1.5, prior_scale=0.8),
        prior=lambda rng, size: {"beta": _level_contrasts(rng, size)},
        inside=lambda d: _within(np.einsum("ck,skl->scl", CORNERS, d["beta"]), -4, 4),
        outcome=_level, usable=lambda y: np.unique(y).size > 1,
        ranked={
            **{f"intercept {c + 2}": lambda d, c=c: d["beta"][:, 0, c] for c in range(2)},
            "slope 2 less slope 3": lambda d: d["beta"][:, 1, 0] - d["beta"][:, 1, 1],
        },
        noise=(0.0, 1.0, 2.0),
    ),
    "ordinal": Calibrated(
        model=ph.Ordinal("y ~ x", levels=(0, 1, 2), prior_scale_intercept=1.5, prior_scale=0.8),
        prior=lambda rng, size: _ordinal_prior(rng, size),
        inside=lambda d: _within(d["threshold"], -4, 4) & _within(d["beta"], -4, 4),
        outcome=lambda rng, t: np.searchsorted(
            t["threshold"], t["beta"][1] * X_VALUES + rng.logistic(size=N)
        ).astype(float),
        usable=lambda y: np.unique(y).size > 1,
        ranked={
            "slope": lambda d: d["beta"][:, 1], "threshold 1": lambda d: d["threshold"][:, 0],
            "step": lambda d: d["threshold"][:, 1] - d["threshold"][:, 0],
        },
        noise=(0.0, 1.0, 2.0),
    ),
    "mixture": Calibrated(
        model=ph.MixtureRegression("y ~ x", n_components=2),
        prior=lambda rng, size: _mixture_prior(rng, size, 2), inside=_mixture_inside,
        outcome=_mixture_outcome, usable=_varies,
        ranked={
            "mean": lambda d: (np.exp(d["log_proportion"]) * d["beta"][:, 0]).sum(axis=1),
            "log density at -1": _density_at(-1.0), "log density at 0.5": _density_at(0.5),
            "largest share": lambda d: d["log_proportion"].max(axis=1),
        },
    ),
}  # fmt: skip
# The same models under their other prior.
MODELS["negative_binomial, normal prior"] = replace(
    MODELS["negative_binomial"], model=ph.NegativeBinomial("y ~ x", **_NORMAL),
    prior=lambda rng, size: {
        "beta": _normal_coefficients(rng, size), "phi": 1 / np.abs(5 * rng.standard_cauchy(size)),
    },
)  # fmt: skip
MODELS["normal, normal prior"] = replace(
    MODELS["normal"], model=ph.NormalRegression("y ~ x", **_NORMAL),
    prior=lambda rng, size: {"beta": _normal_coefficients(rng, size), "sigma": _half_t(rng, size)},
)  # fmt: skip
MODELS["bernoulli, published prior"] = replace(
    MODELS["bernoulli"], model=ph.Bernoulli("y ~ x", prior="published"),
    prior=lambda rng, size: {"beta": _coefficients(rng, size, 6)},
)  # fmt: skip
MODELS["lognormal"] = replace(
    MODELS["normal, normal prior"], model=ph.LogNormal("y ~ x", **_NORMAL), noise=(0.001, 40.0),
    outcome=lambda rng, t: np.exp(rng.normal(DESIGN @ t["beta"], t["sigma"])),
)  # fmt: skip
MODELS["gamma"] = Calibrated(
    model=ph.Gamma("y ~ x", **_NORMAL),
    prior=lambda rng, size: {
        "beta": _normal_coefficients(rng, size), "shape": rng.exponential(size=size),
    },
    inside=lambda d: _within(_eta(d), -4, 4) & _within(d["shape"], 0.3, 8),
    outcome=lambda rng, t: rng.gamma(t["shape"], np.exp(DESIGN @ t["beta"]) / t["shape"]),
    usable=lambda y: bool(np.ptp(y) > 0 and y.min() > 1e-100),
    ranked={**_BETA, "shape": lambda d: d["shape"]}, noise=(0.001, 29.0),
)  # fmt: skip
# The same priors by the papers' own programs.
MODELS |= {
    f"{name}, published": replace(case, model=replace(case.model, program="published"))
    for name, case in MODELS.items()
    if name in PUBLISHED or name == "mixture"
}


def simulate(case: Calibrated, rng: np.random.Generator) -> tuple[Values, FloatArray, FloatArray]:
    """theta (1, *dims each) from the prior within A, y (n,) and weights (n,) of 0 and 1."""
    while True:
        drawn = case.prior(rng, 400)
        with np.errstate(all="ignore"):
            chosen = np.flatnonzero(case.inside(drawn))
        for place in chosen[:1]:
            theta = {name: values[place] for name, values in drawn.items()}
            y = case.outcome(rng, theta)
            alpha = (np.arange(N) % 5 < 3).astype(float)
            if case.usable(y[alpha > 0]):
                y = np.where(alpha > 0, y, rng.choice(case.noise, N))
                return {name: values[None] for name, values in theta.items()}, y, alpha


def fitted(
    model: Any, y: FloatArray, alpha: FloatArray, seed: int, program: StanProgram | None = None,
    settings: Any = SETTINGS, cap: float | None = None, wrong: float = 1.0,
) -> tuple[Any, Draws]:  # fmt: skip
    """The bound model and draws; `wrong` multiplies the weights that the program is given."""
    columns = {"x": np.resize(X_VALUES, y.size)}
    bound = model.bind(pd.DataFrame({"y": y, **columns}))
    draws = engine_by_name("embedded").sample(
        program or bound.program, bound.stan_data(wrong * alpha, cap=cap), seed=seed,
        settings=settings,
    )  # fmt: skip
    return bound, draws


def ranks(
    case: Calibrated, *, n_simulations: int, seed: int, wrong: float = 1.0,
    program: StanProgram | None = None, settings: Any = SETTINGS,
) -> dict[str, FloatArray]:  # fmt: skip
    """Ranks (M,) on 0..L_DRAWS of each quantity and of the log-likelihood."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[int]] = {}
    for _ in range(n_simulations):
        theta, y, alpha = simulate(case, rng)
        tried = settings
        for attempt in range(3):  # more draws if few of them are in A; y and theta stay
            bound, draws = fitted(
                case.model, y, alpha, int(rng.integers(2**31)), program, tried, wrong=wrong
            )
            sample = {name: draws.flat(name) for name in theta}
            with np.errstate(all="ignore"):
                kept = np.flatnonzero(case.inside(sample))
            if kept.size >= 4 * L_DRAWS:
                break
            tried = replace(tried, draws=tried.draws * 4 ** (attempt + 1))
        assert kept.size >= L_DRAWS, "the posterior is hardly ever in the region of the prior"
        kept = kept[np.linspace(0, kept.size - 1, L_DRAWS).astype(int)]
        thinned = {name: values[kept] for name, values in sample.items()}
        used = (alpha > 0).astype(float)

        def log_lik(values: Values, b: Any = bound, u: Any = used) -> FloatArray:
            return b.log_lik(frozen_draws(values, None)).total(u)  # type: ignore[no-any-return,arg-type]

        for name, quantity in {**case.ranked, "log-likelihood": log_lik}.items():
            found.setdefault(name, []).append(int((quantity(thinned) < quantity(theta)[0]).sum()))
    return {name: np.array(values) for name, values in found.items()}


@dataclass(frozen=True, kw_only=True)
class Uniformity:
    """Chi-square over 8 bins; largest gap of the ranks' ECDF beside its 1 - 1e-6 band (DKW)."""

    p_value: float
    gap: float
    band: float

    @property
    def holds(self) -> bool:
        return self.p_value > 1e-6 and self.gap <= self.band


def uniformity(found: FloatArray) -> Uniformity:
    """Of ranks (M,) on 0..L_DRAWS."""
    counts = np.bincount(found.astype(int) * 8 // (L_DRAWS + 1), minlength=8)
    steps = np.cumsum(np.bincount(found.astype(int), minlength=L_DRAWS + 1)) / found.size
    gap = np.abs(steps - np.arange(1, L_DRAWS + 2) / (L_DRAWS + 1)).max()
    return Uniformity(
        p_value=float(stats.chisquare(counts).pvalue), gap=float(gap),
        band=float(np.sqrt(np.log(2 / 1e-6) / (2 * found.size))),
    )  # fmt: skip
