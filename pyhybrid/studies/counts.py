"""Studies A to D: bounds, vector weights and their re-weighting on counts.

Re-weighting does not always help. Its weights are min(1, k Delta / f_i), whatever weights it began
with (0 stays 0): they fall with the size f_i of a record's log-likelihood. On the real visits of
study D a third of the values are 0 and likely. Count weights had kept even those at 0.33;
re-weighting takes them to 0.82, all larger values gain less, and the mean, which CW has too low
already, falls further from the data. Efficiency, a measure of slack, rises nevertheless.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams
from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.measures.estimates import STATISTICS, Estimates, summaries
from pyhybrid.mechanisms import (
    CountWeighted,
    LipschitzWeighted,
    ScalarWeighted,
    Truncated,
    Unweighted,
)
from pyhybrid.models import NegativeBinomial, Poisson
from pyhybrid.privacy.weights import reweight
from pyhybrid.studies.claims import checking, falls, is_nearer, listed, means_of, row_of
from pyhybrid.studies.comparing.comparison import DATA, outcome_estimates
from pyhybrid.studies.measuring import (
    ACCOUNTING,
    BOUND,
    SCORES,
    estimand_rows,
    fits_and_sets,
    frame,
    measured,
    read_columns,
    score_sets,
    session_over,
)
from pyhybrid.studies.study import LESS, Found, Measured, Size, Study, claim, published_in

SURVEY = "salary, the survey of 2017"
"""Setting of studies that are run on the survey's file."""
LARGEST_SALARY = 509_000
"""Of the survey of [V25] sec. 3, in dollars."""
_STEP = Reweighting.published(k=0.95)
_RECORDS = (100, 400, 1600, 6400)
_SIZES = tuple(f"n = {n}" for n in _RECORDS)
_CAP = 3.5
_MU, _DEVIATION = "posterior mean of mu", "posterior deviation of mu"
_AT_ZERO = "share of weights at 0"
_ABOVE, _FACTORS = "bound above M times ", (1.0, 1.05, 1.1)
_MANY = 100  # databases that a statement about the largest of them, or a share of 0.05, needs


# --- Databases and mechanisms ---------------------------------------------------------------------


def mixture_counts(n: int, rng: np.random.Generator) -> FloatArray:
    """0.2 NB(mean 100, phi 5) + 0.8 NB(100, 20), shape (n,) [V25 sec. 2]."""
    phi = np.where(rng.random(n) < 0.2, 5.0, 20.0)
    return rng.poisson(rng.gamma(phi, 100 / phi)).astype(float)


def salaries(n: int, rng: np.random.Generator) -> FloatArray:
    """SIMULATED, gamma, whole dollars: published mean 107,609, sd 69,718, at most 509,000."""
    mean, sd = 107_609.0, 69_718.0
    shape = (mean / sd) ** 2
    values = rng.gamma(shape, mean / shape, size=4 * n)
    return np.round(values[values <= LARGEST_SALARY][:n])


_SALARY_FILE = "the public-use file of the Survey of Doctorate Recipients 2017 as CSV"
_IN_FILE = {
    "salary": ("SALARY",), "gender": ("GENDER",), "age": ("AGEGRP", "AGEGR", "AGE"),
    "weeks": ("WKSWK", "WKSWKGR"),
}  # fmt: skip
_NO_ANSWER = 9_000_000  # codes of salaries that were not asked for, or not told, are above


def survey_salaries(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Salary (dollars), gender, age group (text) and weeks of those who told their salary."""
    table = read_columns(path, _IN_FILE, _SALARY_FILE)
    for name in ("salary", "weeks"):
        table[name] = pd.to_numeric(table[name], errors="coerce")
    table = table[table["salary"].between(0, _NO_ANSWER)].dropna()
    if len(table) < 100:
        raise InvalidInput(f"data {path} must hold 100 salaries or more: {len(table)} are told")
    told: pd.DataFrame = table.astype({"gender": str, "age": str}).reset_index(drop=True)
    return told


def candidates(model: NegativeBinomial) -> dict[str, Any]:
    """The papers' five synthesizers (one step, k = 0.95)."""
    counted: Any = {"accounting": ACCOUNTING}
    stepped = {"reweighting": _STEP, **counted}
    return {
        "Unweighted": Unweighted(model, **counted),
        "LW": LipschitzWeighted(model, **counted),
        "CW": CountWeighted(model, **counted),
        "LW_final": LipschitzWeighted(model, **stepped),
        "CW_final": CountWeighted(model, **stepped),
    }


# --- Measures -------------------------------------------------------------------------------------


def measure_a(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds of Unweighted, Weighted and Weighted-M on y ~ Poisson(100); whether that of Weighted-M
    is above M, and above M with each factor of safety."""
    n = int(setting.removeprefix("n = "))
    data = frame(y=streams.generator("data").poisson(100, n))
    model = Poisson("y ~ 1")
    session = session_over(model, data, streams, options)
    synthesizers = {
        "Unweighted": Unweighted(model, accounting=ACCOUNTING),
        "Weighted": LipschitzWeighted(model, accounting=ACCOUNTING),
        "Weighted-M": Truncated(model, cap=_CAP, accounting=ACCOUNTING),
    }
    rows = []
    for name, mechanism in synthesizers.items():
        fit = mechanism.fit(session).fit
        mu, at_zero = np.exp(fit.draws.flat("beta")).mean(), (fit.alpha == 0).mean()
        rows += measured(name, {BOUND: fit.bounds.overall, _AT_ZERO: at_zero, _MU: mu})
    above = {f"{_ABOVE}{factor:g}": fit.bounds.overall > factor * _CAP for factor in _FACTORS}
    return [*rows, *measured(name, above)]


def measure_b(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds and one synthetic set's estimates, Unweighted and LW, n = 1000."""
    rng, n = streams.generator("data"), 1000
    poisson = setting == "Poisson(100)"
    y = rng.poisson(100, n).astype(float) if poisson else mixture_counts(n, rng)
    model: Any = (Poisson if poisson else NegativeBinomial)("y ~ 1")
    session = session_over(model, frame(y=y.astype(int)), streams, options)
    compared = {name: candidates(model)[name] for name in ("Unweighted", "LW", "LW_final")}
    rows = estimand_rows(DATA, summaries(y))
    for name, fit, (drawn,) in fits_and_sets(compared, session):
        rows.append(Measured(name, BOUND, fit.bounds.overall))
        rows += estimand_rows(name, summaries(drawn))
    return rows


def measure_c(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds and 95 % intervals on one mixture database."""
    y = mixture_counts(1000, streams.generator("data"))
    return _compared(y, streams, options)


def measure_d(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """The same on salaries, and on real visits, with means over 20 sets of clipped scores at the
    epsilon of a draw by LW, 2 Delta."""
    rng = streams.generator("data")
    if setting == SURVEY:
        told = survey_salaries(options["data"])["salary"].to_numpy(dtype=float)
        y = rng.choice(told, min(1000, told.size), replace=False)
    elif setting.startswith("salary"):
        y = salaries(1000, rng)
    else:
        from statsmodels.datasets import randhie

        visits = randhie.load_pandas().data["mdvis"].to_numpy(dtype=float)
        y = rng.choice(visits, 1000, replace=False)
    rows = _compared(y, streams, options)
    (bound,) = (row.value for row in rows if row[:2] == ("LW", BOUND))
    sets = score_sets(
        NegativeBinomial("y ~ 1"), frame(y=y.astype(np.int64)), 2 * bound, streams, 20
    )
    means = np.mean([summaries(drawn) for drawn in sets], axis=0)
    return [*rows, *estimand_rows(SCORES, means)]


def _compared(y: FloatArray, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """The candidates, and one weight for all records (SW) at the bound of LW, 20 sets each."""
    model = NegativeBinomial("y ~ 1")
    session = session_over(model, frame(y=y.astype(np.int64)), streams, options)
    mechanisms = candidates(model)
    bound = mechanisms["LW"].fit(session).fit.bounds.overall
    mechanisms["SW"] = ScalarWeighted(model, target_bound=bound, accounting=ACCOUNTING)

    def estimated(name: str, sets: Sequence[pd.Series]) -> tuple[Estimates, list[Measured]]:
        rng = session.streams.generator(f"estimates/{name}")
        found = outcome_estimates(session.bound, sets, rng)
        parts = {"": found.estimate, " lower": found.lower, " upper": found.upper}
        return found, [row for end in parts for row in estimand_rows(name, parts[end], end)]

    data, rows = estimated(DATA, [session.bound.table["y"]])
    for name, fit, sets in fits_and_sets(mechanisms, session, 20):
        mu, bounds = np.exp(fit.draws.flat("beta")), fit.bounds
        of_fit = {BOUND: bounds.overall, "efficiency": bounds.efficiency, _MU: mu.mean(),
                  _DEVIATION: mu.std()}  # fmt: skip
        found, estimates = estimated(name, sets)
        apart = (found.lower + found.upper - data.lower - data.upper) / 2
        rows += [*measured(name, of_fit), *estimates, *estimand_rows(name, apart, f" {LESS}")]
    return rows


# --- Claims ---------------------------------------------------------------------------------------


def _drifts(summary: pd.DataFrame) -> Found:
    names = ("Unweighted", "Weighted", "Weighted-M")
    first, last = (means_of(summary, n, names, BOUND) for n in (_SIZES[0], _SIZES[-1]))
    drift = {name: last[name] - first[name] for name in names}
    holds = drift["Unweighted"] > 2 * drift["Weighted"] > 0
    return f"from n = 100 to 6400: {listed(drift, '+.2f')}", holds


def _by_size(summary: pd.DataFrame, synthesizer: str, quantity: str) -> pd.DataFrame:
    """Rows of study A from n = 100 to 6,400, with the deviation among databases."""
    rows = pd.DataFrame([row_of(summary, size, synthesizer, quantity) for size in _SIZES])
    table: pd.DataFrame = rows.assign(deviation=rows["mc_error"] * rows["n"] ** 0.5)
    return table


def _shown(values: Any, form: str = ".2f") -> str:
    return "n = 100 to 6400: " + ", ".join(f"{value:{form}}" for value in values)


def _contracts(summary: pd.DataFrame) -> Found:
    rows = _by_size(summary, "Weighted-M", BOUND)
    spread = rows["highest"] - rows["lowest"]
    return f"range, {_shown(spread)}", bool(spread.iloc[-1] < spread.iloc[0])


@checking
def _slopes(summary: pd.DataFrame, lowest: float, highest: float, *names: str) -> Found:
    """Whether slopes of deviations of posterior means of mu over databases, by n on logarithmic
    scales, are within limits."""
    by = {name: np.log(_by_size(summary, name, _MU)["deviation"]) for name in names}
    slopes = {name: np.polyfit(np.log(_RECORDS), log, 1)[0] for name, log in by.items()}
    return f"slope: {listed(slopes)}", all(lowest < x < highest for x in slopes.values())


@checking
def _over_the_cap(summary: pd.DataFrame, *factors: float) -> Found:
    """Whether no bound of Weighted-M exceeds these multiples of M, by size."""
    largest = np.asarray(_by_size(summary, "Weighted-M", BOUND)["highest"]) / _CAP
    return f"largest over M, {_shown(largest, '.3f')}", bool((largest <= factors).all())


def _delta_of_a_factor(summary: pd.DataFrame) -> Found:
    shares = {f: _by_size(summary, "Weighted-M", f"{_ABOVE}{f:g}") for f in _FACTORS}
    shown = [f"factor {f:g}: {_shown(rows['mean'], '.3f')}" for f, rows in shares.items()]
    rows = pd.concat([shares[1.1][:2], shares[1.05][2:]])
    above = rows["mean"] * rows["n"]
    limits = betaincinv(above + 1, rows["n"] - above, 0.95)  # Clopper and Pearson's
    return "; ".join(shown), bool((limits < 0.05).all())


def _few_down_weighted(summary: pd.DataFrame) -> Found:
    of_root = _by_size(summary, "Weighted-M", _AT_ZERO)["mean"].to_numpy() * np.sqrt(_RECORDS)
    text = f"records at weight 0 over the root of n, {_shown(of_root, '.1f')}"
    return text, bool(of_root[-1] < 2 * of_root[0])


def _utility_lost(summary: pd.DataFrame) -> Found:
    rows = _by_size(summary, "Weighted-M", _MU)
    text = f"posterior mean of mu less 100, {_shown(rows['mean'] - 100)}"
    return text, falls(rows.iloc[-1], rows.iloc[0], to=100)


def _near_the_data(summary: pd.DataFrame) -> Found:
    shown, apart = [], []
    for setting in STUDY_B.settings:
        means = {s: means_of(summary, setting, (DATA, "LW", "LW_final"), s) for s in STATISTICS}
        for name in ("LW", "LW_final"):
            ratios = {statistic: by[name] / by[DATA] for statistic, by in means.items()}
            apart += [abs(ratio - 1) for ratio in ratios.values()]
            shown.append(f"{setting}, {name} over the data: {listed(ratios, '.3f')}")
    return "; ".join(shown), max(apart) < 0.03


def _rises(summary: pd.DataFrame) -> Found:
    names = ("LW", "LW_final", "CW", "CW_final")
    efficiency = means_of(summary, str(summary["setting"].iloc[0]), names, "efficiency")
    holds = efficiency["LW_final"] > efficiency["LW"] and efficiency["CW_final"] > efficiency["CW"]
    return f"mean by-record bound over the largest: {listed(efficiency)}", holds


def _kept(summary: pd.DataFrame) -> Found:
    shown, kept = [], []
    for setting in summary["setting"].unique():
        bounds = means_of(summary, setting, ("LW", "LW_final", "CW", "CW_final"), BOUND)
        bounds = {name: bound for name, bound in bounds.items() if not np.isnan(bound)}
        shown.append(f"{setting}: {listed(bounds)}")
        pairs = [(name, f"{name}_final") for name in ("LW", "CW") if name in bounds]
        kept += [bounds[after] <= bounds[before] + _STEP.tolerance for before, after in pairs]
    return "; ".join(shown), all(kept)


@checking
def _on_salary(summary: pd.DataFrame, better: str, worse: str, *statistics: str) -> Found:
    """Whether `better` is nearer to the data's salaries by each of the statistics."""
    setting = SURVEY if SURVEY in set(summary["setting"]) else STUDY_D.settings[0]
    return is_nearer(better, worse, by=statistics, setting=setting, to_data=True)(summary)


def _all_higher(_: pd.DataFrame) -> Found:
    """Equation 2.1 on three records, one of them at the bound."""
    alpha, by_record = np.full(3, 0.5), np.array([1.0, 0.5, 0.25])
    after = reweight(alpha, by_record, k=0.95)
    return f"0.5 to {', '.join(f'{value:g}' for value in after)}", bool((after > alpha).all())


def _seldom_above(summary: pd.DataFrame) -> Found:
    row = row_of(summary, "Poisson(100)", "LW_final", BOUND)
    text = f"mean {row['mean']:.2f}, from {row['lowest']:.2f} to {row['highest']:.2f}"
    return text, bool(row["mean"] + 1.64 * row["mc_error"] * row["n"] ** 0.5 <= _CAP)


_comes_back = is_nearer("CW_final", "CW", by=["mean"], to_data=True)
_scores_are_nearer = is_nearer(SCORES, "LW", by=["mean", "q90"], to_data=True)

# --- Studies --------------------------------------------------------------------------------------

_kept_bound = claim("bound kept", _kept, tolerance=_STEP.tolerance)

STUDY_A = Study(
    name="A",
    title="Bounds of Poisson(100) counts as the sample grows",
    source="[S22] sec. 4.4",
    settings=_SIZES, measure=measure_a,
    quick=Size(replicates=15), paper=Size(replicates=400),
    published=published_in("A"),
    claims=(
        claim("bounds drift", _drifts),
        claim("bounds contract", _contracts),
        claim("root of n", _slopes(-0.55, -0.45, "Unweighted", "Weighted")),
        claim("slower than the root of n", _slopes(-0.45, np.inf, "Weighted-M")),
        claim("slightly above M", _over_the_cap(1.05, 1.05, 1.05, 1.05), fewest=_MANY),
        claim("factors of safety", _over_the_cap(1.10, 1.10, 1.05, 1.05), fewest=_MANY),
        claim("delta of a factor", _delta_of_a_factor, fewest=_MANY),
        claim("few down-weighted", _few_down_weighted),
        claim("utility lost", _utility_lost),
    ),
)  # fmt: skip

STUDY_B = Study(
    name="B",
    title="Bounds and estimates of Poisson and over-dispersed counts",
    source="[V25] app. D",
    settings=("Poisson(100)", "mixture"), measure=measure_b,
    quick=Size(replicates=8), paper=Size(replicates=100),
    published=published_in("B"),
    claims=(claim("near the data", _near_the_data), _kept_bound,
            claim("seldom above", _seldom_above)),
)  # fmt: skip

STUDY_C = Study(
    name="C",
    title="Re-weighting on over-dispersed counts",
    source="[V25] sec. 2",
    settings=("one database",), measure=measure_c,
    quick=Size(replicates=6), paper=Size(replicates=20),
    published=published_in("C"),
    compared={"mean": [("CW_final", "CW")]},
    claims=(claim("efficiency rises", _rises), _kept_bound, claim("mean comes back", _comes_back),
            claim("all weights higher", _all_higher, fewest=1)),
)  # fmt: skip

STUDY_D = Study(
    name="D",
    title="Re-weighting on salaries (simulated) and visits (real)",
    source="[V25] sec. 3",
    settings=("salary, simulated", "visits, RAND"), measure=measure_d,
    data_setting=SURVEY,
    read_data=survey_salaries,
    compared={key: [("CW_final", "CW"), ("LW", "SW"), (SCORES, "LW")] for key in STATISTICS},
    quick=Size(replicates=1), paper=Size(replicates=10),
    claims=(
        claim("efficiency rises", _rises),
        _kept_bound,
        claim("scores beside LW", _scores_are_nearer),
        claim("mean comes back on other data", _comes_back),
        claim("across the board", _on_salary("CW_final", "CW", *STATISTICS)),
        claim("vector weights on salary", _on_salary("LW", "SW", "mean", "q90")),
    ),
)  # fmt: skip
