"""Study F: truncated and censored mechanisms and the perturbed histogram.

Censor_w clips the likelihood under RE-WEIGHTED weights, one step of [V25] eq. 2.1 at k = 0.95;
Weighted-e truncates plain Lipschitz weights. Only so do the published counts of records at the cap
appear.

The studies take M = epsilon / 2, as the paper does; `cost_of_a_cap` says what that costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.randomness import Streams
from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.fitting.session import FitSession
from pyhybrid.mechanisms import (
    Censored,
    GivenWeights,
    LipschitzWeighted,
    PseudoPosteriorMechanism,
    Truncated,
    Unweighted,
)
from pyhybrid.models import Beta, BetaRegression
from pyhybrid.privacy.histogram import histogram_counts, perturbed_probabilities
from pyhybrid.studies.cost_of_a_cap import COST_OF_A_CAP
from pyhybrid.studies.fits import ACCOUNTING, bound_row, fitted, session_over, utility_rows
from pyhybrid.studies.study import Claim, Measured, Published, Size, Study, mean_of

__all__ = [
    "EPSILONS",
    "STUDY_F",
    "beta_database",
    "histogram_draws",
    "strict_mechanisms",
]

Mechanisms = dict[str, PseudoPosteriorMechanism]

EPSILONS = (5, 4, 3)
_F, _BOUND, _MET, _APART = "n = 2000", "Lipschitz bound", "records at the cap", "max-ECDF"
_DATABASES = 100  # of the paper's study F
# Means over 100 databases, with the smallest and the largest count.
_COUNTS = {
    "Weighted-e": {5: (29, 0, 166), 4: (195, 0, 364), 3: (573, 400, 684)},
    "Censor_uw": {5: (247, 196, 296), 4: (419, 340, 481), 3: (809, 737, 888)},
    "Censor_w": {5: (110, 0, 341), 4: (408, 0, 549), 3: (741, 655, 831)},
}
_SCALED = {"Weighted-e": 91, "Censor_w": 144}  # at 4, down-scaled [C25] sec. 4.4
_SCALES = (0.925, 0.8)
_QUARTILES = {5: (0, 0, 260), 4: (404, 425, 440), 3: (715, 741, 763)}  # of Censor_w


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


def down_scaled(session: FitSession, epsilon: float, scale: float) -> Mechanisms:
    """Weighted-e and Censor_w over `scale` times the weights that they cap [C25] sec. 4.4."""
    made = strict_mechanisms(Beta("y ~ 1"), epsilon)
    truncated, censored = made["Weighted-e"], made["Censor_w"]
    assert isinstance(truncated, Truncated)
    assert isinstance(censored, Censored)
    assert censored.inner is not None
    model, alpha = censored.model, scale * censored.inner.final_weights(session)
    lower = LipschitzWeighted(model, scale=scale, accounting=ACCOUNTING)
    return {
        "Weighted-e": replace(truncated, inner=lower),
        "Censor_w": replace(
            censored, inner=GivenWeights(model, alpha=alpha, accounting=ACCOUNTING)
        ),
    }


def measure_f(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds, records at the cap and utility of one synthetic set, for three epsilons."""
    data, model = beta_database(streams.generator("data")), Beta("y ~ 1")
    session = session_over(model, data, streams, options)
    mechanisms: Mechanisms = {
        "Unweighted": Unweighted(model, accounting=ACCOUNTING),
        "Weighted": LipschitzWeighted(model, accounting=ACCOUNTING),
    }
    for epsilon in EPSILONS:
        made = strict_mechanisms(model, epsilon)
        mechanisms |= {f"{name} at {epsilon}": each for name, each in made.items()}
    for scale in _SCALES:
        scaled = down_scaled(session, 4, scale)
        mechanisms |= {_scaled_label(name, scale): each for name, each in scaled.items()}
    rows = utility_rows("data", data["y"], data["y"])
    for label, mechanism in mechanisms.items():
        fit = fitted(mechanism, session)
        rows.append(bound_row(label, fit))
        if label not in ("Unweighted", "Weighted"):
            # The riskiest record has weight 0 by the Lipschitz map already.
            met = (fit.alpha == 0).sum() - 1 if fit.censored is None else fit.censored.sum()
            rows.append(Measured(label, _MET, float(met)))
        release = mechanism.release_from(session, n_synthetic=1, n_draws_released=1)
        rows += utility_rows(label, data["y"], release.synthetic[0]["y"])
    for epsilon in EPSILONS:
        drawn = histogram_draws(data["y"], epsilon, streams.generator(f"PH {epsilon}"))
        rows += utility_rows(f"PH at {epsilon}", data["y"], drawn)
    return rows


def _scaled_label(name: str, scale: float) -> str:
    return f"{name} at 4, weights times {scale:g}"


def histogram_draws(y: pd.Series, epsilon: float, rng: np.random.Generator) -> pd.Series:
    """What `PerturbedHistogram` releases, with noise that a study can repeat and a release never
    has: floating-point Laplace noise from a seed protects nobody."""
    bins = 20
    counts = histogram_counts(y.to_numpy(), lower=0, upper=1, n_bins=bins)
    shares = perturbed_probabilities(counts, rng.laplace(scale=2 / epsilon, size=bins))
    return pd.Series((rng.choice(bins, size=y.size, p=shares) + rng.random(y.size)) / bins)


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


def _one_scale(summary: pd.DataFrame) -> tuple[str, bool]:
    """Whether one factor brings both counts at 4 to the published ones."""
    shown, holds = [], []
    for scale in _SCALES:
        found = {n: mean_of(summary, _F, _scaled_label(n, scale), _MET) for n in _SCALED}
        shown.append(
            f"{scale:g}: " + ", ".join(f"{name} {value:.0f}" for name, value in found.items())
        )
        holds.append(all(abs(found[n] - value) < 0.25 * value for n, value in _SCALED.items()))
    return "times " + "; ".join(shown), any(holds)


def _order_of_distances(summary: pd.DataFrame) -> tuple[str, bool]:
    """Censor_w nearer to the data than Censor_uw and Weighted-e, at every epsilon."""
    shown, holds = [], []
    for epsilon in EPSILONS:
        names = ("Censor_w", "Censor_uw", "Weighted-e", "PH")
        found = {n: mean_of(summary, _F, f"{n} at {epsilon}", _APART) for n in names}
        shown.append(f"{epsilon}: " + ", ".join(f"{n} {v:.3f}" for n, v in found.items()))
        holds.append(found["Censor_w"] < min(found["Censor_uw"], found["Weighted-e"]))
    return "max-ECDF at " + "; ".join(shown), all(holds)


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
              "censoring gave 11, 78, 436 over 40 databases. Errors are the largest that the "
              "published ranges allow; by our own spread Censor_w's are 1.4, 3.2, 3.7 errors off"),
        Claim(text="down-scaled at 4: Weighted-e 91, Censor_w 144 records at the cap, by one scale",
              check=_one_scale,
              note="no single scale fits both: Weighted-e's count asks for about 0.9, Censor_w's "
              "for about 0.8"),
        Claim(text="weights inside the censoring improve on censoring and on truncation alone",
              check=_order_of_distances),
        COST_OF_A_CAP,
    ),
)  # fmt: skip
