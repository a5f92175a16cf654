"""Studies F and G: truncated and censored mechanisms and the perturbed histogram."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

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
from pyhybrid.studies.fits import bound_row, fitted, session_over
from pyhybrid.studies.study import Claim, Measured, Published, Size, Study, mean_of

__all__ = ["EPSILONS", "STUDY_F", "STUDY_G", "beta_database"]

EPSILONS = (5, 4, 3)
_F, _G, _BOUND, _MET = "n = 2000", "salary, simulated", "Lipschitz bound", "records at the cap"
_ONE_CHAIN = "single chains in the paper, several here; see the modes found"
# Means over 100 databases; what counts as agreement is their range, where it is published.
_COUNTS = {
    "Weighted-e": {5: (29, 0, 160), 4: (195, 100, 300), 3: (573, 450, 700)},
    "Censor_uw": {5: (247, 196, 296), 4: (419, 340, 481), 3: (809, 737, 888)},
    "Censor_w": {5: (110, 90, 130), 4: (408, 350, 470), 3: (741, 660, 820)},
}
_G_PUBLISHED = {
    "Weighted": (2.62, 0.0656), "Weighted-e": (2.61, 0.1020), "Censor_w": (2.50, 0.0968),
    "Censor_uw": (2.50, 0.1350), "PH": (None, 0.1310),
}  # fmt: skip


def beta_database(rng: np.random.Generator, n: int = 2000) -> pd.DataFrame:
    """Beta(0.5, 3) [C25 sec. 4]."""
    table: pd.DataFrame = pd.DataFrame({"y": rng.beta(0.5, 3, n)})
    return table


def measure_f(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds, records at the cap and chains in other modes, for three epsilons."""
    data, model = beta_database(streams.generator("data")), Beta("y ~ 1")
    session = session_over(model, data, streams, options)
    rows = [
        bound_row("Unweighted", fitted(Unweighted(model, accounting="lipschitz"), session)),
        bound_row("Weighted", fitted(LipschitzWeighted(model, accounting="lipschitz"), session)),
    ]
    for epsilon in EPSILONS:
        mechanisms: dict[str, PseudoPosteriorMechanism] = {
            "Weighted-e": Truncated(model, accounting="lipschitz", epsilon=epsilon),
            "Censor_uw": Censored(
                model, epsilon=epsilon, inner=Unweighted(model, accounting="lipschitz")
            ),
            "Censor_w": Censored(model, epsilon=epsilon),
        }
        for name, mechanism in mechanisms.items():
            fit, label = fitted(mechanism, session), f"{name} at {epsilon}"
            # The riskiest record has weight 0 by the Lipschitz map already.
            met = (fit.alpha == 0).sum() - 1 if fit.censored is None else fit.censored.sum()
            rows += [bound_row(label, fit), Measured(label, _MET, float(met))]
            if fit.diagnostics is not None and fit.diagnostics.n_elsewhere is not None:
                elsewhere = float(fit.diagnostics.n_elsewhere)
                rows.append(Measured(label, "chains in other modes", elsewhere))
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
    mechanisms: dict[str, PseudoPosteriorMechanism] = {
        "Weighted": LipschitzWeighted(model, accounting="lipschitz"),
        "Weighted-e": Truncated(model, accounting="lipschitz", epsilon=5),
        "Censor_w": Censored(model, epsilon=5),
        "Censor_uw": Censored(model, epsilon=5, inner=Unweighted(model, accounting="lipschitz")),
    }
    rows = []
    for name, mechanism in mechanisms.items():
        rows.append(bound_row(name, fitted(mechanism, session)))
        release = mechanism.release_from(session, n_synthetic=1, n_draws_released=1)
        rows.append(_distance(name, data["salary"], release.synthetic[0]["salary"]))
    drawn = _histogram_draws(data["salary"], 5, streams.generator("PH"))
    return [*rows, _distance("PH", data["salary"], drawn)]


def _distance(name: str, data: pd.Series, synthetic: pd.Series) -> Measured:
    return Measured(name, "max-ECDF", max_ecdf(data.to_numpy(), synthetic.to_numpy()))


def _fewer_at_larger_epsilon(summary: pd.DataFrame) -> tuple[str, bool]:
    counts = {
        name: [mean_of(summary, _F, f"{name} at {e}", _MET) for e in EPSILONS] for name in _COUNTS
    }
    shown = "; ".join(f"{k} {', '.join(f'{v:.0f}' for v in vs)}" for k, vs in counts.items())
    return f"at 5, 4, 3: {shown}", all(vs[0] <= vs[1] <= vs[2] for vs in counts.values())


STUDY_F = Study(
    name="F",
    title="Truncation, censoring and the perturbed histogram on Beta(0.5, 3)",
    source="[C25] sec. 4",
    settings=(_F,),
    measure=measure_f,
    quick=Size(replicates=3, options={"warmup": 500}),
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
                setting=_F, synthesizer=f"{name} at {epsilon}", quantity=_MET, shown=str(mean),
                low=low, high=high, note=_ONE_CHAIN if name == "Censor_w" else "",
            )
            for name, by_epsilon in _COUNTS.items()
            for epsilon, (mean, low, high) in by_epsilon.items()
        ),
    ),
    claims=(Claim(text="fewer records meet a larger cap", check=_fewer_at_larger_epsilon),),
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
