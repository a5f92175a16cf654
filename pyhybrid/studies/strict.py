"""Studies F, G and H: truncated and censored mechanisms and the perturbed histogram.

Censor_w clips the likelihood under RE-WEIGHTED weights, one step of [V25] eq. 2.1 at k = 0.95;
Weighted-e truncates plain Lipschitz weights. So the counts of records at the cap come nearest to
the published ones.

The studies take M = epsilon / 2, as the paper does. [C25] says that one draw costs epsilon = 2 M
if one record is replaced. A posterior draw depends on the data through the sum of the clipped terms
and through the constant that normalizes it. If a record leaves, the sum moves by at most M, and so
does the logarithm of the constant: 2 M, under relation "remove". If a record is replaced, its term
moves from one end of [-M, M] to the other: by 2 M where log-densities take both signs, so that the
loss reaches 4 M; where no density exceeds 1 all terms lie in [-M, 0], and 2 M is enough. Beta
densities exceed 1. A release says which relation it is for.

The salaries of study G are simulated: the survey of [C25] cannot be shipped. They are skewed on
[0, 1] and have the paper's predictors: gender, nine age groups, weeks worked. In the second setting
they have the printed quantiles, and the rounding and zeros of such answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp, ndtri

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.fitting.session import FitSession
from pyhybrid.measures.estimates import STATISTICS
from pyhybrid.mechanisms import (
    Censored,
    GivenWeights,
    LipschitzWeighted,
    PseudoPosteriorMechanism,
    Truncated,
    Unweighted,
)
from pyhybrid.models import Beta, BetaRegression, NegativeBinomial
from pyhybrid.privacy.histogram import histogram_counts, perturbed_probabilities
from pyhybrid.studies.claims import are_nearer, checking, is_nearer, listed, mean_of, row_of
from pyhybrid.studies.comparing.comparison import DATA
from pyhybrid.studies.comparing.curve import risk_utility_curve
from pyhybrid.studies.counts import LARGEST_SALARY, SURVEY, mixture_counts, survey_salaries
from pyhybrid.studies.measuring import (
    ACCOUNTING,
    BOUND,
    MAX_ECDF,
    SCORES,
    fits_and_sets,
    frame,
    measured,
    records_at_cap,
    score_sets,
    session_over,
    utility_rows,
)
from pyhybrid.studies.study import ROW, Found, Measured, Size, Study, claim, published_in

Mechanisms = dict[str, PseudoPosteriorMechanism]

EPSILONS = (5, 4, 3)

# --- F: Beta(0.5, 3) ------------------------------------------------------------------------------

_F, _MET = "n = 2000", "records at the cap"
_PRINTED = [f"printed {x}" for x in ("mean", "lowest", "highest", "sd", "q1", "median", "q3")]
# Of 100 databases [C25] table 1, by mechanism and epsilon.
_COUNTS = {
    line.synthesizer: [float(x) for x in re.findall(r"\d[\d.]*", line.shown)]
    for line in published_in("F") if line.quantity == _MET
}  # fmt: skip
_SCALED = {"Weighted-e at 4": 91, "Censor_w at 4": 144}  # down-scaled [C25] sec. 4.4
_SCALES, _SCALABLE = (0.925, 0.8), ("Weighted", "Weighted-e at 3", "Censor_w at 3")
_OTHERS = ("Censor_w", "PH")  # beside clipped scores
_BINS = 20  # of the perturbed histogram; [C25] prints no number


def beta_database(rng: np.random.Generator, n: int = 2000) -> pd.DataFrame:
    """Beta(0.5, 3) [C25 sec. 4]."""
    return frame(y=rng.beta(0.5, 3, n))


def strict_mechanisms(model: Beta | BetaRegression, epsilon: float) -> Mechanisms:
    """Weighted-e, Censor_uw and Censor_w of [C25] at one epsilon of a draw; no other modes are
    looked for, as on a wide grid each has one."""
    step = Reweighting.published(k=0.95)
    unweighted = Unweighted(model, accounting=ACCOUNTING)
    reweighted = LipschitzWeighted(model, reweighting=step, accounting=ACCOUNTING)
    by_chains: Any = {"sampling": "chains", "check_modes": False, "accounting": ACCOUNTING}
    how = {"epsilon": epsilon, **by_chains}
    return {
        "Weighted-e": Truncated(model, epsilon=epsilon, accounting=ACCOUNTING),
        "Censor_uw": Censored(model, inner=unweighted, **how),
        "Censor_w": Censored(model, inner=reweighted, **how),
    }


def _down_scaled(session: FitSession, epsilon: float, scale: float) -> Mechanisms:
    """Weighted-e and Censor_w over `scale` times the weights that they cap [C25] sec. 4.4."""
    mechanisms: Any = strict_mechanisms(Beta("y ~ 1"), epsilon)
    inner = mechanisms["Censor_w"].inner
    lower = LipschitzWeighted(inner.model, scale=scale, accounting=ACCOUNTING)
    alpha = scale * inner.final_weights(session)
    capped = GivenWeights(inner.model, alpha=alpha, accounting=ACCOUNTING)
    return {
        "Weighted-e": replace(mechanisms["Weighted-e"], inner=lower),
        "Censor_w": replace(mechanisms["Censor_w"], inner=capped),
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
        at_epsilon = strict_mechanisms(model, epsilon)
        mechanisms |= {f"{name} at {epsilon}": one for name, one in at_epsilon.items()}
    for epsilon, scale in ((4, 0.925), (4, 0.8), (3, 0.8)):
        for name, one in _down_scaled(session, epsilon, scale).items():
            mechanisms[_scaled_label(f"{name} at {epsilon}", scale)] = one
    lower = LipschitzWeighted(model, scale=0.8, accounting=ACCOUNTING)
    mechanisms[_scaled_label("Weighted", 0.8)] = lower
    y = data["y"]
    rows = utility_rows(DATA, y, y)
    for label, fit, (drawn,) in fits_and_sets(mechanisms, session):
        met = [Measured(label, _MET, records_at_cap(fit))] if " at " in label else []
        rows += [Measured(label, BOUND, fit.bounds.overall), *met, *utility_rows(label, y, drawn)]
    for epsilon in EPSILONS:
        histogram = histogram_draws(y, epsilon, streams.generator(f"PH {epsilon}"))
        (by_scores,) = score_sets(model, data, epsilon, streams.child(f"at {epsilon}"))
        rows += utility_rows(f"PH at {epsilon}", y, histogram)
        rows += utility_rows(f"{SCORES} at {epsilon}", y, by_scores)
    return rows


def _scaled_label(name: str, scale: float) -> str:
    return f"{name}, weights times {scale:g}"


def histogram_draws(
    y: pd.Series, epsilon: float, rng: np.random.Generator, lower: float = 0, upper: float = 1
) -> pd.Series:
    """Values as of `PerturbedHistogram`, with noise that a study can repeat and a release never
    has: floating-point Laplace noise from a seed protects nobody."""
    counts = histogram_counts(y.to_numpy(), lower=lower, upper=upper, n_bins=_BINS)
    shares = perturbed_probabilities(counts, rng.laplace(scale=2 / epsilon, size=_BINS))
    at = (rng.choice(_BINS, size=y.size, p=shares) + rng.random(y.size)) / _BINS
    return pd.Series(lower + (upper - lower) * at)


def _counted(summary: pd.DataFrame) -> pd.DataFrame:
    """Rows of records at the cap by mechanism and epsilon, with the printed numbers of table 1."""
    rows = {
        label: pd.concat([row_of(summary, _F, label, _MET), pd.Series(printed, _PRINTED)])
        for label, printed in _COUNTS.items()
    }
    table: pd.DataFrame = pd.DataFrame(rows).T.drop(columns=[*ROW], errors="ignore").astype(float)
    return table


def _of_published_spread(summary: pd.DataFrame) -> Found:
    rows = _counted(summary)
    ratios = rows["mc_error"] * rows["n"] ** 0.5 / rows["printed sd"]
    least = rows["lowest"]["Censor_w at 4"]
    text = f"{listed(ratios)}; the least of Censor_w at 4 is {least:.0f} (printed 0)"
    return text, bool(ratios.between(0.75, 4 / 3, inclusive="neither").all())


def _above_the_target(summary: pd.DataFrame) -> Found:
    largest = row_of(summary, _F, "Weighted-e at 3", BOUND)["highest"]
    return f"largest bound {largest:.2f}, M = 1.5", bool(largest > 1.5)


@checking
def _of_table_1(summary: pd.DataFrame, within: float, *names: str) -> Found:
    """Whether these columns of the counts are near the printed ones, in printed deviations."""
    rows = _counted(summary)
    printed = rows[[f"printed {name}" for name in names]].set_axis(names, axis=1)
    apart = (rows[[*names]] - printed).abs().div(rows["printed sd"], axis=0)
    off, far = apart.max(axis=1), apart.max(axis=1).idxmax()
    name = apart.loc[far].idxmax()
    text = f"the farthest, in deviations: {listed(off)}; {far}, {name}: "
    text += f"{rows.loc[far, name]:.0f} (printed {printed.loc[far, name]:.0f})"
    return text, bool((off < within).all())


def _one_scale(summary: pd.DataFrame) -> Found:
    shown, holds = [], []
    for scale in _SCALES:
        counts = {n: mean_of(summary, _F, _scaled_label(n, scale), _MET) for n in _SCALED}
        shown.append(f"weights times {scale:g}: {listed(counts, '.0f')}")
        holds.append(all(abs(counts[n] - value) < 0.25 * value for n, value in _SCALED.items()))
    return "; ".join(shown), any(holds)


_closest = partial(are_nearer, setting=_F, to_data=True)
_WITH_TARGET = ("Censor_w", "Censor_uw", "Weighted-e")
_AT_5 = ("Weighted", *(f"{name} at 5" for name in (*_WITH_TARGET, "PH")))
_TO_ALL = [pair for pair in combinations(_AT_5, 2) if pair[0] in _AT_5[:2]]
_TO_SCALE = [(_scaled_label(name, 0.8), name) for name in _SCALABLE]
_AT_HAND = "Censor_w has it; [C25]'s supplement, which tells of 15th and 90th, was not at hand"
_NEAREST = (
    ("median", "median", " (fig. 5)", "PH, of 20 bins here, has the nearest"),
    ("q15", "15th percentile", "", _AT_HAND), ("q90", "90th percentile", "", ""),
)  # fmt: skip


@checking
def _at_each_epsilon(summary: pd.DataFrame, holds: Callable[[pd.DataFrame], Any]) -> Found:
    """Whether a statement holds of mean max-ECDFs by epsilon (rows) and synthesizer, among them
    Weighted, which has no epsilon."""
    names, weighted = (*_WITH_TARGET, "PH"), mean_of(summary, _F, "Weighted", MAX_ECDF)
    rows = {e: {n: mean_of(summary, _F, f"{n} at {e}", MAX_ECDF) for n in names}
            for e in EPSILONS}  # fmt: skip
    shown = "; ".join(f"{epsilon}: {listed(by, '.3f')}" for epsilon, by in rows.items())
    by = pd.DataFrame(rows).T.assign(Weighted=weighted)
    return f"max-ECDF: Weighted {weighted:.3f}; at {shown}", bool(np.all(holds(by)))


@checking
def _scaled_bounds(summary: pd.DataFrame, name: str, of: str) -> Found:
    """Bounds at falling scales of the weights: their means, or their deviations, fall."""
    scales = _SCALES if name == "Weighted-e at 4" else _SCALES[1:]
    rows = [row_of(summary, _F, label, BOUND)
            for label in (name, *(_scaled_label(name, s) for s in scales))]  # fmt: skip
    values = [r["mean"] if of == "mean" else r["mc_error"] * r["n"] ** 0.5 for r in rows]
    shown = dict(zip((1, *scales), values, strict=True))
    return f"weights times {listed(shown)}", values == sorted(values, reverse=True)


def replaced_and_removed(terms: FloatArray, *, cap: float) -> tuple[float, float]:
    """Largest privacy loss of one draw, nats, if a record is replaced, and if one is removed, by
    enumeration of all databases of two of v possible records, from unclipped `terms` (T, v) at T
    equally likely parameters."""
    clipped = np.clip(terms, -cap, cap)
    values = range(clipped.shape[1])

    def log_posterior(*records: int) -> FloatArray:
        total = clipped[:, records].sum(axis=1)
        return np.asarray(total - logsumexp(total))

    def loss(a: int, *others: int) -> float:
        return float(np.abs(log_posterior(a, others[0]) - log_posterior(a, *others[1:])).max())

    removed = max(loss(*pair) for pair in product(values, repeat=2))
    return max(loss(*triple) for triple in product(values, repeat=3)), removed


def _cost_of_a_cap(_: pd.DataFrame) -> Found:
    """A narrow density at one of two places against one at many: terms of both signs."""
    cap = 2.5
    terms = np.full((400, 2), -30.0)
    terms[0] = (-30.0, 30.0)
    terms[1:] = (30.0, -30.0)
    both, removed = replaced_and_removed(terms, cap=cap)
    below = replaced_and_removed(np.minimum(terms, 0.0), cap=cap)[0]
    text = (
        f"M = {cap:g}: removed {removed:.3f}, replaced {both:.3f}, replaced where no density "
        f"exceeds 1 {below:.3f}"
    )
    return text, both <= 2 * cap


STUDY_F = Study(
    name="F",
    title="Truncation, censoring and the perturbed histogram on Beta(0.5, 3)",
    source="[C25] sec. 4",
    settings=(_F,), measure=measure_f,
    quick=Size(replicates=5, options={"warmup": 500}),
    paper=Size(replicates=100, options={"warmup": 500}),
    published=published_in("F"),
    compared={
        MAX_ECDF: [(f"{SCORES} at {e}", f"{name} at {e}") for e in EPSILONS for name in _OTHERS],
        "avg-ECDF": _TO_SCALE, "median": _TO_ALL, "q15": [*_TO_SCALE, *_TO_ALL], "q90": _TO_ALL,
    },
    claims=(
        claim("spread of counts", _of_published_spread),
        claim("ends of counts", _of_table_1(2, "lowest", "highest"), fewest=100),
        claim("quartiles of counts", _of_table_1(0.6, "q1", "median", "q3")),
        claim("above the target", _above_the_target),
        claim("one scale", _one_scale),
        *(
            claim("scaled bounds", _scaled_bounds(name, of), does=does, name=name, of=of)
            for name in ("Weighted-e at 4", *_SCALABLE[:2])
            for of, does in (("mean", "lowers"), ("deviation", "concentrates"))
        ),
        *(
            claim("scores beside the strict",
                  is_nearer(*(f"{name} at {e}" for name in (SCORES, *_OTHERS)), setting=_F),
                  where="", others=f"Censor_w and PH at {e}")
            for e in EPSILONS
        ),
        claim("lowest with a target",
              _at_each_epsilon(lambda by: by["Censor_w"] <= by[[*_WITH_TARGET]].min(axis=1))),
        claim("lowest of all",
              _at_each_epsilon(lambda by: by["Weighted"] < by[[*_WITH_TARGET, "PH"]].min(axis=1))),
        claim("histogram is worst",
              _at_each_epsilon(lambda by: by[[*_WITH_TARGET]].T.lt(by["PH"]).sum() >= 2)),
        *(
            claim("nearest estimands", _closest(_AT_5, _AT_5[1:], by=[of]), what=what,
                  figure=figure, note=note)
            for of, what, figure, note in _NEAREST
        ),
        *(
            claim("down-scaled", _closest(pair, by=[of]), what=what, name=pair[1], figure=figure)
            for of, what, figure in (("avg-ECDF", "avg-ECDF", "sec. 4.4"),
                                     ("q15", "15th percentile", "fig. 8"))
            for pair in _TO_SCALE
        ),
        claim("cost of a cap", _cost_of_a_cap, fewest=1),
    ),
)  # fmt: skip

# --- G: salaries ----------------------------------------------------------------------------------

_SMOOTH = "salary, simulated"
_REPORTED = "salary of table 2's quantiles, rounded and with zeros"
# With this share of zeros the bound of LW is the published one; distances are not looked at.
_ZEROS = 0.1
_MEDIAN, _Q15, _Q90 = 80_000.0, 51_000.0, 150_000.0
"""Of the survey's salaries, in dollars [C25] table 2."""
_RATIO = "over the data's"
_ORDER = ("Weighted", "Censor_w", "Weighted-e", "Censor_uw")  # from the nearest, as published
_AGES = ("18-24", "25-29", "30-34", "35-39", "40-44", "45-49", "50-54", "55-64", "65+")
_BY_AGE = np.array([-0.6, -0.3, -0.1, 0.0, 0.1, 0.15, 0.15, 0.1, -0.1])


def simulated_salaries(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """SIMULATED salaries on [0, 1] with gender, age groups and weeks worked; 0.15 of the records
    earn far less than their predictors say, as in a survey. Mean near 0.18, deviation near 0.14."""
    gender, age = rng.integers(0, 2, n), rng.integers(0, len(_AGES), n)
    weeks = np.where(rng.random(n) < 0.7, 52, rng.integers(1, 52, n))
    eta = -1.55 + 0.2 * gender + _BY_AGE[age] + 0.015 * (weeks - 40)
    mean, precision = 1 / (1 + np.exp(-eta)), 9.0
    regular = rng.beta(precision * mean, precision * (1 - mean))
    salary = np.where(rng.random(n) < 0.15, rng.beta(0.35, 4.0, n), regular)
    salary, genders = np.clip(salary, 1e-6, 1 - 1e-6), np.array(["f", "m"])
    return frame(salary=salary, gender=genders[gender], age=np.array(_AGES)[age], weeks=weeks)


def reported_salaries(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """SIMULATED salaries of table 2's quantiles as people report them: half rounded to 10,000,
    three in ten to 5,000, a tenth 0 (0.001 on [0, 1]); ranks and predictors of
    `simulated_salaries`."""
    table = simulated_salaries(rng, n)
    z, kind = rng.standard_normal(n), rng.random(n)
    below = math.log(_Q15 / _MEDIAN) / ndtri(0.15)
    above = math.log(_Q90 / _MEDIAN) / ndtri(0.90)
    amounts = _MEDIAN * np.exp(np.where(z < 0, below, above) * z)
    amounts = np.where(kind < 0.5, np.round(amounts, -4), amounts)
    amounts = np.where((kind >= 0.5) & (kind < 0.8), 5_000 * np.round(amounts / 5_000), amounts)
    amounts = np.where(rng.random(n) < _ZEROS, 0.0, amounts)
    rank = table["salary"].rank(method="first").to_numpy().astype(int) - 1
    table["salary"] = np.clip(np.sort(amounts)[rank] / LARGEST_SALARY, 1e-3, 1 - 1e-3)
    return table


def measure_g(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds and utility of one synthetic set at epsilon 5."""
    rng, n = streams.generator("data"), int(options["records"])
    if setting == SURVEY:
        data = survey_salaries(options["data"]).sample(frac=1, random_state=rng).head(n)
        largest = max(LARGEST_SALARY, data["salary"].max() + 1)
        data["salary"] = np.clip(data["salary"] / largest, 1e-3, 1 - 1e-3)
        data = data.reset_index(drop=True)
    else:
        data = (simulated_salaries if setting == _SMOOTH else reported_salaries)(rng, n)
    model, y = BetaRegression("salary ~ gender + age + weeks"), data["salary"]
    session = session_over(model, data, streams, options)
    weighted = LipschitzWeighted(model, accounting=ACCOUNTING)
    mechanisms: Mechanisms = {"Weighted": weighted, **strict_mechanisms(model, 5)}
    rows = utility_rows(DATA, y, y)
    real = {row.quantity: row.value for row in rows}
    sets = {"PH": histogram_draws(y, 5, streams.generator("PH"))}
    (sets[SCORES],) = score_sets(model, data, 5, streams)
    for name, fit, (drawn,) in fits_and_sets(mechanisms, session):
        rows.append(Measured(name, BOUND, fit.bounds.overall))
        sets[name] = drawn
    for name, values in sets.items():
        of_set = utility_rows(name, y, values)
        estimands = {of.quantity: of.value for of in of_set if of.quantity in STATISTICS}
        ratios = {f"{of} {_RATIO}": value / real[of] for of, value in estimands.items()}
        rows += [*of_set, *measured(name, ratios)]
    return rows


STUDY_G = Study(
    name="G",
    title="Beta regression of salaries at epsilon 5",
    source="[C25] sec. 5",
    settings=(_SMOOTH, _REPORTED), measure=measure_g,
    data_setting=SURVEY,
    read_data=survey_salaries,
    quick=Size(replicates=2, options={"records": 1000, "warmup": 400, "draws": 400}),
    paper=Size(replicates=20, options={"records": 1000}),
    published=published_in("G"),
    compared={MAX_ECDF: [*pairwise(_ORDER), *product([SCORES], _OTHERS)]},
    claims=(
        claim("order of distances", are_nearer(*pairwise(_ORDER))),
        claim("scores beside the strict", is_nearer(SCORES, *_OTHERS), where="",
              others=" and ".join(_OTHERS)),
    ),
)  # fmt: skip

# --- H: posteriors, and the risk-utility curve ----------------------------------------------------

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
    moments = ("mean of phi", "standard deviation of phi")
    rows = measured("prior", dict(zip(moments, (0.5, np.sqrt(1 / 12)), strict=True)))  # Beta(1, 1)
    for name, mechanism in mechanisms.items():
        phi = mechanism.fit(session).fit.draws.flat("phi")
        rows += measured(name, dict(zip(moments, (phi.mean(), phi.std()), strict=True)))
    return rows


def _curve(streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    y = mixture_counts(1000, streams.generator("data"))
    table = risk_utility_curve(
        NegativeBinomial("y ~ 1"),
        frame(y=y.astype(np.int64)),
        scales=options["scales"],
        shifts=[0.0],
        n_synthetic=20,
        seed=streams.entropy,
        engine=options["engine"],
        settings=SamplerSettings(parallel_chains=1),
        on_not_converged="warn",
    ).table
    rows = []
    for _, row in table.iterrows():
        scale = "" if row["mechanism"] == "Unweighted" else f" at scale {row['scale']:g}"
        numbers = {BOUND: row["lipschitz_bound"], MAX_ECDF: row["max_ecdf"]}
        rows += measured(f"{row['mechanism']}{scale}", numbers)
    return rows


def _distorted(summary: pd.DataFrame) -> Found:
    """By 2 standard errors, as if from different databases."""
    shown, moved = [], []
    for what in ("mean", "standard deviation"):
        plain, censored = (
            row_of(summary, _POSTERIOR, name, f"{what} of phi")
            for name in ("posterior", "censored posterior")
        )
        error = math.hypot(plain["mc_error"], censored["mc_error"])
        shown.append(f"{what} {plain['mean']:.4f} to {censored['mean']:.4f} ± {error:.1g}")
        moved.append(True if abs(censored["mean"] - plain["mean"]) > 2 * error else None)
    return ", ".join(shown), True if True in moved else None


def _vector_beats_scalar(summary: pd.DataFrame) -> Found:
    rows = summary[(summary["setting"] == _CURVE) & (summary["quantity"] == MAX_ECDF)]
    means = rows.groupby(rows["synthesizer"].str[:2])["mean"].mean().reindex(["LW", "SW"])
    return f"mean max-ECDF over scales: {listed(means, '.4f')}", bool(means["LW"] < means["SW"])


STUDY_H = Study(
    name="H",
    title="Censored posteriors, and vector against scalar weights at equal bounds",
    source="[C25] fig. 1; [S22] fig. 7",
    settings=(_POSTERIOR, _CURVE), measure=measure_h,
    quick=Size(replicates=2, options={"scales": [1.0, 0.7]}),
    paper=Size(replicates=20, options={"scales": [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]}),
    claims=(claim("censoring distorts", _distorted),
            claim("vector beats scalar", _vector_beats_scalar)),
)  # fmt: skip
