"""(l) Regressions on columns as they come: the papers' program written plainly against ours.

A simulated survey of 4,406 people, K = 9 (age about 7.4 in tens of years, years of school, levels);
embedded engine and, where it is, CmdStan, 2 chains x (300 + 300), CPU seconds, worst effective
sample size of what the likelihood reads; "by hand": numeric columns standardized beforehand. Then
tree depths of 5 to 30 columns of location 50 and scale 10, the gradient of one log density against
one in numpy, and a default release.
"""

from __future__ import annotations

import resource
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import digamma, expit, gammaln

import pyhybrid as ph
from pyhybrid.engines import Draws, SamplerSettings, StanProgram, engine_by_name
from pyhybrid.engines.cmdstan import compiled_program
from pyhybrid.engines.embedded import EmbeddedEngine, ProgramAtPoints

COLUMNS = (5, 10, 20, 30)
SETTINGS = SamplerSettings(chains=2, warmup=300, draws=300, parallel_chains=1)
RIGHT = "chronic + age + school + health + gender + married + insurance"

_PRIOR = """
  L_beta ~ lkj_corr_cholesky(%d);
  sigma_beta ~ student_t(3, 0, 1);
  beta ~ multi_normal_cholesky(rep_vector(0, K), diag_pre_multiply(sigma_beta, L_beta));
"""
_PLAIN = """
data { int n; int K; %s matrix[n, K] X; }
parameters {
  vector[K] beta; vector<lower=0>[K] sigma_beta; cholesky_factor_corr[K] L_beta; %s
}
model { %s
  y ~ %s;
}
"""
_LOOP = """
data { int n; int K; %s vector[n] weights; matrix[n, K] X; }
parameters {
  vector[K] beta; vector<lower=0>[K] sigma_beta; cholesky_factor_corr[K] L_beta; %s
}
transformed parameters { vector[n] eta = X * beta; }
model { %s
  for (i in 1:n) target += weights[i] * %s;
}
generated quantities {
  vector[n] log_lik;
  for (i in 1:n) log_lik[i] = %s;
}
"""
_COUNTS, _REAL = "array[n] int y;", "vector[n] y;"
# Outcome's declaration, further parameters, eta of the LKJ prior, further priors, likelihood.
PUBLISHED = {
    "negative_binomial": (
        _COUNTS, "real<lower=0> reciprocal_phi;", 6, "reciprocal_phi ~ cauchy(0, 5);",
        "neg_binomial_2_log(X * beta, inv(reciprocal_phi))",
    ),
    "poisson": (_COUNTS, "", 6, "", "poisson_log(X * beta)"),
    "bernoulli": (_COUNTS, "", 6, "", "bernoulli_logit(X * beta)"),
    "beta_regression": (
        _REAL, "real<lower=0.1> lambda;", 6, "lambda ~ pareto(0.1, 1.5);",
        "beta_proportion(inv_logit(X * beta), lambda)",
    ),
    "normal": (
        _REAL, "real<lower=0> sigma;", 1, "sigma ~ student_t(3, 0, 1);",
        "normal(X * beta, sigma)",
    ),
}  # fmt: skip
MODELS: dict[str, tuple[Any, str]] = {
    "negative_binomial": (ph.NegativeBinomial, "visits"),
    "poisson": (ph.Poisson, "visits"),
    "bernoulli": (ph.Bernoulli, "seen"),
    "beta_regression": (ph.BetaRegression, "share"),
    "normal": (ph.NormalRegression, "score"),
}


def survey(n: int = 4406, seed: int = 1) -> pd.DataFrame:
    """The simulated survey, with an outcome for each model."""
    rng = np.random.default_rng(seed)
    table: pd.DataFrame = pd.DataFrame({
        "chronic": np.minimum(rng.poisson(1.54, n), 8),
        "age": np.round(np.clip(rng.gamma(4, 0.3, n) + 6.2, 6.6, 10.9), 1),
        "school": np.clip(np.round(rng.normal(10.3, 3.7, n)), 0, 18),
        "health": rng.choice(["average", "excellent", "poor"], n, p=[0.79, 0.08, 0.13]),
        "gender": rng.choice(["female", "male"], n, p=[0.6, 0.4]),
        "married": rng.choice(["no", "yes"], n),
        "insurance": rng.choice(["no", "yes"], n, p=[0.22, 0.78]),
    })  # fmt: skip
    eta = 0.17 * table["chronic"] + 0.026 * table["school"] + 0.2 * (table["insurance"] == "yes")
    eta += 0.3 * (table["health"] == "poor") - 0.11 * (table["gender"] == "male")
    mean, share = np.exp(0.9 + eta), expit(eta - 1)
    visits = rng.poisson(rng.gamma(1.2, mean / 1.2))
    return table.assign(
        visits=visits,
        seen=(visits > 0).astype(int),
        share=np.clip(rng.beta(5 * share, 5 * (1 - share)), 1e-6, 1 - 1e-6),
        score=rng.normal(eta, 0.9),
    )


def run(names: tuple[str, ...] = tuple(MODELS), whole: bool = True) -> None:
    """Sampler, gradient and release, for each model."""
    table = survey()
    print(f"(l) regressions, {len(table)} records, columns as they come, embedded engine")
    print(f"  {'program':<38}{'step':>7}{'depth':>7}{'CPU s':>8}{'ESS':>7}{'ESS/s':>8}{'ratio':>7}")
    for name in names:
        make, outcome = MODELS[name]
        base = None
        for prior in ("written plainly", "published", "normal"):
            first = prior == "written plainly"
            bound = make(
                f"{outcome} ~ {RIGHT}", prior="published" if first else prior
            ).bind(table)  # fmt: skip
            program = plain(name) if first else bound.program
            rate = _sampled(f"{name}, {prior}", bound, program, base)
            base = rate if first else base
            if not first and engine_by_name("cmdstan").status().available:
                _sampled(f"{name}, {prior}, CmdStan", bound, program, base, "cmdstan")
        bound = make(f"{outcome} ~ {RIGHT}", prior="published").bind(_by_hand(table))
        _sampled(f"{name}, published, by hand", bound, bound.program, base)
    for name in names:
        _depths(name)
    for name in names:
        make, outcome = MODELS[name]
        _gradient(name, make(f"{outcome} ~ {RIGHT}").bind(table))
    if whole:
        _release(table)


def columns(n: int, K: int) -> tuple[pd.DataFrame, str]:
    """The survey with K - 9 columns more, and the right-hand side of a formula of K columns."""
    table = survey(n)
    rng = np.random.default_rng(2)
    more = [f"x{k}" for k in range(K - 9)]
    return table.assign(**{x: rng.normal(50, 10, n).round(1) for x in more}), " + ".join(
        [RIGHT, *more]
    )


def _by_hand(table: pd.DataFrame) -> pd.DataFrame:
    """Numeric predictors standardized before they are modeled."""
    own = table[["chronic", "age", "school"]]
    return table.assign(**{name: (own[name] - own[name].mean()) / own[name].std() for name in own})


def own_settings(bound: Any, asked: SamplerSettings) -> SamplerSettings:
    """The settings under which a fit of the model is tried first."""
    first = bound.first_try
    return asked if first is None else asked.unless_asked(**first)


def wide(n: int, K: int, seed: int = 3) -> tuple[pd.DataFrame, str]:
    """The survey with normal columns about 50, and a right-hand side of K columns."""
    rng = np.random.default_rng(seed)
    names = [f"x{k}" for k in range(K - 1)]
    more = pd.DataFrame(rng.normal(50, 10, (n, K - 1)).round(1), columns=names)
    return pd.concat([survey(n), more], axis=1), " + ".join(names)


def _depths(name: str) -> None:
    """Mean tree depth under both priors, of few and many columns."""
    make, outcome = MODELS[name]
    for prior in ("published", "normal"):
        found = []
        for K in COLUMNS:
            table, right = wide(1000, K)
            bound = make(f"{outcome} ~ {right}", prior=prior).bind(table)
            draws = EmbeddedEngine().sample(
                bound.program, bound.stan_data(np.ones(bound.n)), seed=1,
                settings=own_settings(bound, SETTINGS),
            )  # fmt: skip
            found.append(f"{draws.treedepth.mean():.1f} ({draws.divergent.sum()})")
        print(f"  tree depth (divergent) at K = {COLUMNS}, {name}, {prior}: {', '.join(found)}",
              flush=True)  # fmt: skip


def _release(table: pd.DataFrame) -> None:
    model = ph.NegativeBinomial(f"visits ~ {RIGHT}")
    started, cpu = time.perf_counter(), time.process_time()
    ph.LipschitzWeighted(model).release(table, n_synthetic=3, seed=1, engine="embedded")
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"  a default release, negative binomial: {wall:.1f} s, {cpu:.1f} CPU s")


def plain(name: str) -> StanProgram:
    """The papers' program of a model, its likelihood in one vectorized statement."""
    return StanProgram(name="plain", text=_PLAIN % plain_parts(name))


def looped(name: str) -> StanProgram:
    """The papers' program of a model as published: a weighted term for each record in a loop."""
    data, parameters, prior, likelihood = plain_parts(name)
    density, arguments = likelihood.replace("X * beta", "eta[i]").split("(", 1)
    kind = "lpmf" if data.startswith("array") else "lpdf"
    term = f"{density}_{kind}(y[i] | {arguments}"
    return StanProgram(name="published", text=_LOOP % (data, parameters, prior, term, term))


def plain_parts(name: str) -> tuple[str, str, str, str]:
    """Outcome's declaration, further parameters, priors, likelihood of a model's program."""
    data, parameters, eta, priors, likelihood = PUBLISHED[name]
    return data, parameters, _PRIOR % eta + priors, likelihood


def plain_data(bound: Any) -> dict[str, Any]:
    """The data of the program written plainly: all records, each on its own."""
    y, X = bound.design.y, bound.design.X
    y = y if bound.density_above_one else y.astype(int)
    return {"n": y.size, "K": X.shape[1], "y": y, "X": X}


def _sampled(
    label: str, bound: Any, program: StanProgram, base: float | None, engine: str = "embedded"
) -> float:
    """Sample, print a line, and return effective draws per CPU second."""
    own = program.name != "plain"
    data = bound.stan_data(np.ones(bound.n)) if own else plain_data(bound)
    settings = own_settings(bound, SETTINGS) if own else SETTINGS
    draws, cpu = sampled_by(engine, program, data, settings)
    names = [n for n in (*bound.model.parameters, "reciprocal_phi") if n in draws.variables]
    worst = min(worst_ess(draws.variables[n]) for n in names)
    ratio = "" if base is None else f"{worst / cpu / base:.0f}"
    print(
        f"  {label:<38}{draws.step_size.min():>7.3f}{draws.treedepth.mean():>7.1f}{cpu:>8.1f}"
        f"{worst:>7.0f}{worst / cpu:>8.1f}{ratio:>7}",
        flush=True,
    )
    return worst / cpu


def sampled_by(
    engine: str, program: StanProgram, data: Any, settings: SamplerSettings
) -> tuple[Draws, float]:
    """Draws, and CPU seconds: CmdStan's are those of its chains alone."""
    outside = engine == "cmdstan"
    if outside:
        compiled_program(program)
    started = _seconds(outside)
    draws = engine_by_name(engine).sample(program, data, seed=1, settings=settings)
    return draws, _seconds(outside) - started


def _seconds(of_children: bool) -> float:
    """CPU seconds so far, of this process or of its children."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN if of_children else resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def worst_ess(values: Any) -> float:
    """Smallest bulk or tail effective sample size of chains (chains, draws, ...)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its next major version on import
        import arviz
    columns = values.reshape(*values.shape[:2], -1)
    kinds = ("bulk", "tail")
    return min(
        float(arviz.ess(columns[..., k], method=m)) for k in range(columns.shape[2]) for m in kinds
    )


def _gradient(name: str, bound: Any) -> None:
    """CPU milliseconds of one log density with its gradient: ours, in numpy, and of the programs
    as published and written plainly, whose tape has a term for each record."""
    whole = plain_data(bound)
    ours = _at_points(bound.program, bound.stan_data(np.ones(bound.n)))
    loop = _at_points(looped(name), whole | {"weights": np.ones(bound.n)}, repeats=10)
    one = _at_points(plain(name), whole, repeats=10)
    numpys = _in_numpy(name, bound)
    print(
        f"  gradient, {name:<20} {ours:>8.3f} ms, numpy {numpys:.3f}, ratio {ours / numpys:.2f}; "
        f"a loop {loop:.2f} ms, one statement {one:.2f} ms: {1e6 * loop / bound.n:.0f}, "
        f"{1e6 * one / bound.n:.0f} ns for a record, ours {1e6 * ours / bound.n:.0f}",
        flush=True,
    )


def _at_points(program: StanProgram, data: Any, repeats: int = 50) -> float:
    """CPU milliseconds of a gradient."""
    at = ProgramAtPoints(program, data)
    points = 0.1 * np.random.default_rng(1).normal(size=(repeats, at.n_unconstrained))
    at.log_density(points)
    started = time.process_time()
    at.log_density(points)
    return 1e3 * (time.process_time() - started) / repeats


def _in_numpy(name: str, bound: Any, repeats: int = 50) -> float:
    y, X = bound.design.y[bound.rows.first], bound.design.X[bound.rows.first]
    weight = bound.rows.frequency
    betas = 0.01 * np.random.default_rng(2).normal(size=(repeats, X.shape[1]))
    started = time.process_time()
    for beta in betas:
        _NUMPY[name](y, X, weight, beta, 1.2)
    return 1e3 * (time.process_time() - started) / repeats


def _negative_binomial(y: Any, X: Any, weight: Any, beta: Any, phi: float) -> Any:
    eta = X @ beta - np.log(phi)
    soft, odds = np.logaddexp(0, eta), expit(eta)
    value = weight @ (gammaln(y + phi) - gammaln(phi) - gammaln(y + 1) + y * eta - (y + phi) * soft)
    by_phi = digamma(y + phi) - digamma(phi) - soft + ((y + phi) * odds - y) / phi
    return value, X.T @ (weight * (y - (y + phi) * odds)), weight @ by_phi


def _poisson(y: Any, X: Any, weight: Any, beta: Any, _: float) -> Any:
    eta = X @ beta
    mu = np.exp(eta)
    return weight @ (y * eta - mu - gammaln(y + 1)), X.T @ (weight * (y - mu))


def _bernoulli(y: Any, X: Any, weight: Any, beta: Any, _: float) -> Any:
    eta = X @ beta
    return weight @ (y * eta - np.logaddexp(0, eta)), X.T @ (weight * (y - expit(eta)))


def _beta_regression(y: Any, X: Any, weight: Any, beta: Any, size: float) -> Any:
    mu = expit(X @ beta)
    a, b, logit = size * mu, size * (1 - mu), np.log(y) - np.log1p(-y)
    value = (a - 1) * np.log(y) + (b - 1) * np.log1p(-y) - gammaln(a) - gammaln(b) + gammaln(size)
    by_mu = logit - digamma(a) + digamma(b)
    by_size = mu * by_mu + np.log1p(-y) - digamma(b) + digamma(size)
    return weight @ value, X.T @ (weight * size * mu * (1 - mu) * by_mu), weight @ by_size


def _normal(y: Any, X: Any, weight: Any, beta: Any, sigma: float) -> Any:
    z = (y - X @ beta) / sigma
    total = weight @ (-np.log(sigma) - z**2 / 2)
    return total, X.T @ (weight * z) / sigma, weight @ (z**2 - 1) / sigma


_NUMPY = {
    "negative_binomial": _negative_binomial,
    "poisson": _poisson,
    "bernoulli": _bernoulli,
    "beta_regression": _beta_regression,
    "normal": _normal,
}
