"""Studies F and G: truncated and censored mechanisms and the perturbed histogram.

Censor_w clips the likelihood under RE-WEIGHTED weights, one step of [V25] eq. 2.1 at k = 0.95;
Weighted-e truncates plain Lipschitz weights. Only so do the published counts of records at the cap
appear.

[C25] says that one draw costs epsilon = 2 M if one record is replaced. A posterior draw depends on
the data through the sum of the clipped terms and through the constant that normalizes it. If a
record leaves, the sum moves by at most M, and so does the logarithm of the constant: 2 M, under
relation "remove". If a record is replaced, its term moves from one end of [-M, M] to the other: by
2 M where log-densities take both signs, so that the loss reaches 4 M; where no density exceeds 1
all terms lie in [-M, 0], and 2 M is enough. Beta densities exceed 1. `replaced_and_removed`
enumerates both losses exactly. The studies take M = epsilon / 2 as the paper does; a release
says which relation it is for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from pyhybrid.checks import FloatArray
from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.measures.arrays.estimates import max_ecdf
from pyhybrid.mechanisms import (
    Censored,
    LipschitzWeighted,
    PseudoPosteriorMechanism,
    Truncated,
    Unweighted,
)
from pyhybrid.models import Beta, BetaRegression
from pyhybrid.privacy.histogram import histogram_counts, perturbed_probabilities
from pyhybrid.randomness import Streams
from pyhybrid.studies.fits import ACCOUNTING, bound_row, fitted, session_over
from pyhybrid.studies.study import Claim, Measured, Published, Size, Study, mean_of

__all__ = [
    "EPSILONS",
    "STUDY_F",
    "STUDY_G",
    "beta_database",
    "replaced_and_removed",
    "strict_mechanisms",
]

Mechanisms = dict[str, PseudoPosteriorMechanism]

EPSILONS = (5, 4, 3)
_F, _G, _BOUND, _MET = "n = 2000", "salary, simulated", "Lipschitz bound", "records at the cap"
_DATABASES = 100  # of the paper's study F
# Means over 100 databases, with the smallest and the largest count.
_COUNTS = {
    "Weighted-e": {5: (29, 0, 166), 4: (195, 0, 364), 3: (573, 400, 684)},
    "Censor_uw": {5: (247, 196, 296), 4: (419, 340, 481), 3: (809, 737, 888)},
    "Censor_w": {5: (110, 0, 341), 4: (408, 0, 549), 3: (741, 655, 831)},
}
_QUARTILES = {5: (0, 0, 260), 4: (404, 425, 440), 3: (715, 741, 763)}  # of Censor_w
_G_PUBLISHED = {
    "Weighted": (2.62, 0.0656), "Weighted-e": (2.61, 0.1020), "Censor_w": (2.50, 0.0968),
    "Censor_uw": (2.50, 0.1350), "PH": (None, 0.1310),
}  # fmt: skip


def beta_database(rng: np.random.Generator, n: int = 2000) -> pd.DataFrame:
    """Beta(0.5, 3) [C25 sec. 4]."""
    table: pd.DataFrame = pd.DataFrame({"y": rng.beta(0.5, 3, n)})
    return table


def strict_mechanisms(model: Beta | BetaRegression, epsilon: float) -> Mechanisms:
    """Weighted-e, Censor_uw and Censor_w of [C25] at one epsilon of a released draw.

    No other modes are looked for: on a wide grid each of these censored posteriors has one.
    """
    unweighted = Unweighted(model, accounting=ACCOUNTING)
    reweighted = LipschitzWeighted(
        model, reweighting=Reweighting.published(k=0.95), accounting=ACCOUNTING
    )
    inner = {"Censor_uw": unweighted, "Censor_w": reweighted}
    return {
        "Weighted-e": Truncated(model, epsilon=epsilon, accounting=ACCOUNTING),
        **{
            name: Censored(
                model,
                epsilon=epsilon,
                inner=each,
                sampling="chains",
                check_modes=False,
                accounting=ACCOUNTING,
            )
            for name, each in inner.items()
        },
    }


def measure_f(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds and records at the cap, for three epsilons."""
    data, model = beta_database(streams.generator("data")), Beta("y ~ 1")
    session = session_over(model, data, streams, options)
    rows = [
        bound_row("Unweighted", fitted(Unweighted(model, accounting=ACCOUNTING), session)),
        bound_row("Weighted", fitted(LipschitzWeighted(model, accounting=ACCOUNTING), session)),
    ]
    for epsilon in EPSILONS:
        for name, mechanism in strict_mechanisms(model, epsilon).items():
            fit, label = fitted(mechanism, session), f"{name} at {epsilon}"
            # The riskiest record has weight 0 by the Lipschitz map already.
            met = (fit.alpha == 0).sum() - 1 if fit.censored is None else fit.censored.sum()
            rows += [bound_row(label, fit), Measured(label, _MET, float(met))]
        drawn = _histogram_draws(data["y"], epsilon, streams.generator(f"PH {epsilon}"))
        rows.append(_distance(f"PH at {epsilon}", data["y"], drawn))
    return rows


def _histogram_draws(y: pd.Series, epsilon: float, rng: np.random.Generator) -> pd.Series:
    """What `PerturbedHistogram` releases, with noise that a study can repeat and a release never
    has: floating-point Laplace noise from a seed protects nobody."""
    bins = 20
    counts = histogram_counts(y.to_numpy(), lower=0, upper=1, n_bins=bins)
    shares = perturbed_probabilities(counts, rng.laplace(scale=2 / epsilon, size=bins))
    return pd.Series((rng.choice(bins, size=y.size, p=shares) + rng.random(y.size)) / bins)


def simulated_salaries(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """SIMULATED salaries on [0, 1] with gender, age group and weeks worked as predictors."""
    gender, age = rng.integers(0, 2, n), rng.integers(0, 4, n)
    weeks = np.where(rng.random(n) < 0.7, 52, rng.integers(1, 52, n))
    eta = -2.2 + 0.25 * gender + np.array([-0.4, 0.0, 0.2, 0.1])[age] + 0.02 * (weeks - 40)
    mean = 1 / (1 + np.exp(-eta))
    salary = np.clip(rng.beta(4 * mean, 4 * (1 - mean)), 1e-6, 1 - 1e-6)
    groups = np.array(["18-34", "35-49", "50-64", "65+"])[age]
    table: pd.DataFrame = pd.DataFrame(
        {"salary": salary, "gender": np.array(["f", "m"])[gender], "age": groups, "weeks": weeks}
    )
    return table


def measure_g(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds and the largest difference of distribution functions at epsilon 5."""
    data = simulated_salaries(streams.generator("data"), int(options["records"]))
    model = BetaRegression("salary ~ gender + age + weeks")
    session = session_over(model, data, streams, options)
    mechanisms: Mechanisms = {
        "Weighted": LipschitzWeighted(model, accounting=ACCOUNTING),
        **strict_mechanisms(model, 5),
    }
    rows = []
    for name, mechanism in mechanisms.items():
        rows.append(bound_row(name, fitted(mechanism, session)))
        release = mechanism.release_from(session, n_synthetic=1, n_draws_released=1)
        rows.append(_distance(name, data["salary"], release.synthetic[0]["salary"]))
    drawn = _histogram_draws(data["salary"], 5, streams.generator("PH"))
    return [*rows, _distance("PH", data["salary"], drawn)]


def replaced_and_removed(terms: FloatArray, *, cap: float) -> tuple[float, float]:
    """Largest privacy loss of one draw if a record is replaced, and if one is removed, in nats.

    By enumeration of all databases of two records over a finite set of possible ones and a finite
    set of parameters with equal prior weights: nothing is sampled and nothing bounded.

    Parameters
    ----------
    terms : ndarray, shape (T, v)
        Log-density of each possible record at each parameter, unclipped.
    cap : float
        M, nats.
    """
    clipped = np.clip(terms, -cap, cap)
    values = range(clipped.shape[1])

    def log_posterior(records: Sequence[int]) -> FloatArray:
        total = clipped[:, list(records)].sum(axis=1)
        return np.asarray(total - logsumexp(total))

    pairs = list(product(values, values))
    kept = {pair: log_posterior(pair) for pair in pairs}
    removed = max(
        float(np.abs(kept[first, second] - log_posterior([first])).max()) for first, second in pairs
    )
    replaced = max(
        float(np.abs(kept[first, second] - kept[first, other]).max())
        for first, second in pairs
        for other in values
    )
    return replaced, removed


def _cost_of_a_cap(_: pd.DataFrame) -> tuple[str, bool]:
    """A narrow density at one of two places against one at many: terms of both signs."""
    cap = 2.5
    terms = np.full((400, 2), -30.0)
    terms[0] = (-30.0, 30.0)
    terms[1:] = (30.0, -30.0)
    both, removed = replaced_and_removed(terms, cap=cap)
    below = replaced_and_removed(np.minimum(terms, 0.0), cap=cap)[0]
    found = (
        f"M = {cap:g}: removed {removed:.3f}, replaced {both:.3f}, replaced where no density "
        f"exceeds 1 {below:.3f}"
    )
    return found, both <= 2 * cap


def _distance(name: str, data: pd.Series, synthetic: pd.Series) -> Measured:
    return Measured(name, "max-ECDF", max_ecdf(data.to_numpy(), synthetic.to_numpy()))


def _fewer_at_larger_epsilon(summary: pd.DataFrame) -> tuple[str, bool]:
    counts = {
        name: [mean_of(summary, _F, f"{name} at {e}", _MET) for e in EPSILONS] for name in _COUNTS
    }
    shown = "; ".join(f"{k} {', '.join(f'{v:.0f}' for v in vs)}" for k, vs in counts.items())
    return f"at 5, 4, 3: {shown}", all(vs[0] <= vs[1] <= vs[2] for vs in counts.values())


def _of_published_size(summary: pd.DataFrame) -> tuple[str, bool]:
    """Means within 3 standard errors of the published ones.

    Both means err, over n and 100 databases. No count with mean m in [low, high] has a larger
    variance than (m - low)(high - m).
    """
    shown, holds = [], True
    for name, by_epsilon in _COUNTS.items():
        means = []
        for epsilon, (mean, low, high) in by_epsilon.items():
            label = f"{name} at {epsilon}"
            row = (summary["synthesizer"] == label) & (summary["quantity"] == _MET)
            n, ours = int(summary.loc[row, "n"].iloc[0]), mean_of(summary, _F, label, _MET)
            error = math.sqrt((mean - low) * (high - mean) * (1 / n + 1 / _DATABASES))
            holds = holds and abs(ours - mean) <= 3 * error
            means.append(f"{ours:.0f} to {mean}")
        shown.append(f"{name} {', '.join(means)}")
    return f"at 5, 4, 3: {'; '.join(shown)}", holds


def _spread(name: str, epsilon: int) -> str:
    mean, low, high = _COUNTS[name][epsilon]
    between = _QUARTILES[epsilon] if name == "Censor_w" else ()
    return f"{mean} ({', '.join(str(value) for value in (low, *between, high))})"


STUDY_F = Study(
    name="F",
    title="Truncation, censoring and the perturbed histogram on Beta(0.5, 3)",
    source="[C25] sec. 4",
    settings=(_F,),
    measure=measure_f,
    quick=Size(replicates=5, options={"warmup": 500}),
    paper=Size(replicates=100, options={"warmup": 500}),
    published=(
        Published(
            setting=_F, synthesizer="Unweighted", quantity=_BOUND, shown="7.5 to 15", low=7.5,
            high=15,
        ),
        Published(
            setting=_F, synthesizer="Weighted", quantity=_BOUND, shown="2 to 3.5", low=2, high=3.5
        ),
        *(
            Published(
                setting=_F, synthesizer=f"{name} at {epsilon}", quantity=_MET,
                shown=_spread(name, epsilon), low=low, high=high,
            )
            for name, by_epsilon in _COUNTS.items()
            for epsilon, (_, low, high) in by_epsilon.items()
        ),
    ),
    claims=(
        Claim(text="fewer records meet a larger cap", check=_fewer_at_larger_epsilon),
        Claim(text="mean counts are the published ones, within 3 standard errors",
              check=_of_published_size,
              note="Censor_w's come with re-weighted weights; plain Lipschitz weights inside the "
              "censoring gave 11, 78, 436 over 40 databases"),
        Claim(text="one draw costs 2 M if a record is replaced", check=_cost_of_a_cap,
              note="2 M is the cost of a record that leaves; where densities exceed 1, as Beta's "
              "do, replacing one costs up to 4 M: enumerated at M = 2.5"),
    ),
)  # fmt: skip

STUDY_G = Study(
    name="G",
    title="Beta regression of salaries at epsilon 5",
    source="[C25] sec. 5",
    settings=(_G,),
    measure=measure_g,
    quick=Size(replicates=1, options={"records": 300, "warmup": 400, "draws": 400}),
    paper=Size(replicates=10, options={"records": 1000}),
    published=tuple(
        Published(
            setting=_G, synthesizer=name, quantity=quantity, shown=str(value),
            low=value * (1 - slack), high=value * (1 + slack), one_database=True,
            note="simulated data: the paper's cannot be shipped",
        )
        for name, values in _G_PUBLISHED.items()
        for quantity, value, slack in zip((_BOUND, "max-ECDF"), values, (0.05, 0.3), strict=True)
        if value is not None
    ),
)  # fmt: skip
