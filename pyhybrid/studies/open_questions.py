"""Studies K and L: what [C25] leaves open (its discussion), on many databases.

K: other weights within the censoring. Each mechanism clips the same likelihood at the same M; only
the weights that enter differ: Lipschitz weights (re-weighted, as study F has them), count weights,
or none. Beside them stand the perturbed histogram and clipped scores, at the same epsilon.

L: how alike two periods must be. Weights and cap are calibrated once, on a reference database, and
used on new ones whose mean, spread or mixture has drifted; both ways of clipping, the size of a
term as in [C25], and its movement from the reference's center.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.randomness import Streams
from pyhybrid.mechanisms import (
    Censored,
    CountWeighted,
    LipschitzWeighted,
    PseudoPosteriorMechanism,
    Unweighted,
)
from pyhybrid.mechanisms.censored.calibration import calibrate
from pyhybrid.models import Beta, NegativeBinomial, Poisson
from pyhybrid.studies.claims import checking, is_nearer, listed, mean_of, means_of, row_of
from pyhybrid.studies.comparing.comparison import DATA
from pyhybrid.studies.measuring import (
    ACCOUNTING,
    BOUND,
    MAX_ECDF,
    SCORES,
    fits_and_sets,
    frame,
    measured,
    records_at_cap,
    sampler_of,
    score_sets,
    session_over,
    utility_rows,
)
from pyhybrid.studies.strict import beta_database, histogram_draws, strict_mechanisms
from pyhybrid.studies.study import Found, Measured, Size, Study, claim

_MET = "% of records at the cap"

# --- K: other weights within the censoring --------------------------------------------------------

_BETA, _COUNTS = "Beta(0.5, 3), n = 2000, epsilon 4", "Poisson(100), n = 1000, epsilon 7"
_EPSILON_OF = {_BETA: 4, _COUNTS: 7}
_RANGE = {_BETA: (0, 1), _COUNTS: (40, 160)}  # of the histogram
_RADIUS = {_BETA: (0.05, "absolute"), _COUNTS: (0.1, "relative")}
_UNWEIGHTED, _LIPSCHITZ, _COUNT = "Censor_uw", "Censor_w", "Censor_cw"
_HISTOGRAM = "PH"
_BESIDE = (_LIPSCHITZ, _COUNT, _HISTOGRAM)  # clipped scores


def _inside(setting: str, model: Any) -> dict[str, PseudoPosteriorMechanism]:
    """The three censored mechanisms at the setting's epsilon."""
    published: Any = strict_mechanisms(model, _EPSILON_OF[setting])
    radius, kind = _RADIUS[setting]
    counted = CountWeighted(model, radius=radius, kind=kind, accounting=ACCOUNTING)
    of_paper = {name: published[name] for name in (_UNWEIGHTED, _LIPSCHITZ)}
    return {**of_paper, _COUNT: replace(published[_UNWEIGHTED], inner=counted)}


def measure_k(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Records at the cap, bounds and utility of one synthetic set."""
    rng, model = streams.generator("data"), Beta("y ~ 1") if setting == _BETA else Poisson("y ~ 1")
    table = beta_database(rng) if setting == _BETA else frame(y=rng.poisson(100, 1000))
    session, y = session_over(model, table, streams, options), table["y"]
    rows = utility_rows(DATA, y, y)
    for name, fit, (drawn,) in fits_and_sets(_inside(setting, model), session):
        met = 100 * records_at_cap(fit) / len(table)
        rows += measured(name, {BOUND: fit.bounds.overall, _MET: met})
        rows += utility_rows(name, y, drawn)
    epsilon, rng = _EPSILON_OF[setting], streams.generator(_HISTOGRAM)
    rows += utility_rows(_HISTOGRAM, y, histogram_draws(y, epsilon, rng, *_RANGE[setting]))
    return rows + utility_rows(SCORES, y, *score_sets(model, table, epsilon, streams))


_OVER = {_LIPSCHITZ: "Lipschitz weights", _UNWEIGHTED: "weights of 1"}


@checking
def _nearer(summary: pd.DataFrame, better: str, worse: str, setting: str) -> Found:
    """Which is nearer; of count weights, with the mean, and the records at the cap."""
    shown, holds = is_nearer(better, worse, setting=setting)(summary)
    if better == _COUNT:
        shown += f"; mean {listed(means_of(summary, setting, (DATA, better), 'mean'), '.3g')}"
        shown += f"; {mean_of(summary, setting, better, _MET):.0f} % of its records at the cap"
    return shown, holds


STUDY_K = Study(
    name="K",
    title="Count weights within the censoring",
    source="left open by [C25] sec. 6",
    settings=(_BETA, _COUNTS), measure=measure_k,
    quick=Size(replicates=3, options={"warmup": 400, "draws": 500}),
    paper=Size(replicates=20, options={"warmup": 500}),
    compared={MAX_ECDF: [*product([_COUNT], _OVER), *product([SCORES], _BESIDE)]},
    claims=tuple(
        claim(words, _nearer(better, worse, setting),
              where=f"{setting.partition(', n')[0]}: ", others=named)
        for words, better, others in (
            ("count weights within", _COUNT, _OVER),
            ("scores beside the strict", SCORES, dict(zip(_BESIDE, _BESIDE, strict=True))),
        )
        for setting in (_BETA, _COUNTS)
        for worse, named in others.items()
    ),
)  # fmt: skip

# --- L: two periods -------------------------------------------------------------------------------

_N, _MEAN, _SIZE, _EPSILON = 1000, 20.0, 4.0, 7.0


def _counts(rng: np.random.Generator, mean: float = 1.0, size: float = 1.0,
            other: float = 0.0) -> FloatArray:  # fmt: skip
    """Negative binomial counts, their mean and size so many times those of the reference, and a
    share of `other` records that come at twice the mean."""
    at = _MEAN * mean * np.where(rng.random(_N) < other, 2.0, 1.0)
    return rng.poisson(rng.gamma(_SIZE * size, at / (_SIZE * size))).astype(float)


_DRIFTS: Mapping[str, Mapping[str, float]] = {
    "none": {},
    "mean + 10 %": {"mean": 1.1},
    "mean + 25 %": {"mean": 1.25},
    "mean + 50 %": {"mean": 1.5},
    "mean - 25 %": {"mean": 0.75},
    "size halved": {"size": 0.5},
    "a tenth at twice the mean": {"other": 0.1},
    "a third at twice the mean": {"other": 1 / 3},
}
_BY_SIZE, _BY_MOVEMENT, _LOCAL = "clipped by size", "clipped by movement", "weights, not strict"


def measure_l(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Records at the cap and utility of one synthetic set of the drifted database."""
    rng, model = streams.generator("data"), NegativeBinomial("y ~ 1")
    reference, table = frame(y=_counts(rng)), frame(y=_counts(rng, **_DRIFTS[setting]))
    how: Any = {"engine": options["engine"], "settings": sampler_of(options)}
    mechanisms: dict[str, PseudoPosteriorMechanism] = {}
    for name, center in ((_BY_SIZE, False), (_BY_MOVEMENT, True)):
        calibration = calibrate(
            model, reference, epsilon=_EPSILON, center=center, holds_no_released_record=True,
            seed=streams.engine_seed(name), on_not_converged="warn", **how,
        )  # fmt: skip
        mechanisms[name] = Censored(calibration=calibration, sampling="chains", check_modes=False)
    mechanisms[_LOCAL] = LipschitzWeighted(model, accounting=ACCOUNTING)
    mechanisms["Unweighted"] = Unweighted(model, accounting=ACCOUNTING)
    session, y = session_over(model, table, streams, options), table["y"]
    rows = utility_rows(DATA, y, y)
    for name, fit, (drawn,) in fits_and_sets(mechanisms, session):
        if fit.censored is not None:
            rows.append(Measured(name, _MET, 100 * float(fit.censored.mean())))
        rows += utility_rows(name, y, drawn)
        rows.append(Measured(name, _OFF, 100 * abs(float(drawn.mean() / y.mean()) - 1)))
    return rows


_OFF, _FAR = "mean off, %", 5.0
_BEYOND = ("mean + 50 %", "mean - 25 %", "a third at twice the mean")


@checking
def _keeps_the_mean(summary: pd.DataFrame, name: str, setting: str) -> Found:
    """Whether the mean is off by less than 5 %."""
    row = row_of(summary, setting, name, _OFF)
    met = mean_of(summary, setting, name, _MET)
    text = f"{row['mean']:.1f} % ± {row['mc_error']:.1g}; {met:.0f} % of records at the cap"
    clear = abs(row["mean"] - _FAR) > 2 * row["mc_error"]
    return text, bool(row["mean"] < _FAR) if clear else None


STUDY_L = Study(
    name="L",
    title="Calibrated on one period, used on another, at epsilon 7",
    source="left open by [C25] sec. 6",
    settings=tuple(_DRIFTS), measure=measure_l,
    quick=Size(replicates=1, options={"warmup": 400, "draws": 500}),
    paper=Size(replicates=10, options={"warmup": 500}),
    compared={MAX_ECDF: [(_BY_MOVEMENT, _BY_SIZE)]},
    claims=(
        *(
            claim("mean kept under drift", _keeps_the_mean(name, setting), drift=setting, name=name,
                  beyond=setting in _BEYOND)
            for name, settings in ((_BY_SIZE, ["none"]), (_BY_MOVEMENT, _DRIFTS))
            for setting in settings
        ),
        claim("nearer by movement", is_nearer(_BY_MOVEMENT, _BY_SIZE)),
    ),
)  # fmt: skip
