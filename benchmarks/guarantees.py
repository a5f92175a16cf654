"""Utility at equal epsilon: strict releases with and without a center, beside what costs nothing.

Half of each table is the reference, the other half is released. A line of results/guarantees.csv is
one split: means over six released draws of theta of the overlap of the 95 % intervals of the
analyst's coefficients (of the mean, where there are no predictors) in one set from one draw, and in
five sets from one draw, which cost no more than one, combined; relative errors of the mean and of
the 90 % and 99 % quantiles; distance of the two-way table of outcome and first predictor; CPU
seconds. It is kept as soon as it is measured and not measured again: delete it to do so. Printed
are means over splits; `share` is the overlap's share of what the model reaches without epsilon in
the same splits (a posterior draw and the simulation of one set from it bring 0.71 by themselves),
with its standard error from split to split. Chains are short (2 x 250), and at other epsilons than
1 not continued where they have not converged: a release would take longer ones. All epsilons are
strict but those of LW, CW and scalar weights, the largest scale whose local charge at delta 1e-6 is
within epsilon, and of weights by budget, whose draws are those of a release, or "not corrected".

    python -m benchmarks guarantees
    python -c "from benchmarks.guarantees import figure; figure()"
    python -c "from benchmarks.guarantees import run; run(epsilons=(1, 4), names=('income',))"
"""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from statsmodels.datasets import anes96, fair, randhie

import pyhybrid as ph
from pyhybrid.core.randomness import streams
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import open_session
from pyhybrid.models.formula.design import read_design

EPSILONS = (1.0, 0.25, 0.5, 2.0, 4.0, 8.0)
STORED = Path(__file__).parent / "results" / "guarantees.csv"
FIGURE = Path(__file__).parent.parent / "docs" / "pages" / "images" / "equal_epsilon.png"
_WITHOUT_EPSILON = ("unweighted", "reference alone", "20 % lower alone")
MECHANISMS = (*_WITHOUT_EPSILON, "centered", "centered, 20 % lower", "private calibration",
              "clipped by size", "histogram", "LW", "LW by deviation", "LW, reciprocal", "CW",
              "scalar", "budget", "budget, not corrected")  # fmt: skip
_DEAR = ("centered, 20 % lower", "private calibration", "clipped by size")  # by chains
_FOR_COMPARISON = ("income, unit 10,000",)
_DRAWS, _SETS = 6, 5  # draws of theta of one fit; sets from each
_SCALES = (1.0, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05)  # of LW
_RIGHT = "lncoins + idp + fmde + physlm + disea + hlthf + hlthp"
_PEOPLE = 4000  # of the RAND regressions, in each half
_OPTIONS: dict[str, Any] = {
    "engine": "embedded",
    "settings": ph.engines.SamplerSettings(chains=2, warmup=150, draws=100, parallel_chains=1),
    "on_not_converged": "warn",
}
_LONGER = ph.engines.SamplerSettings(
    chains=2, warmup=200, draws=500, parallel_chains=1
)  # of LW's charge
_INCOME = os.environ.get("PYHYBRID_CE", "ce_2015_february.csv")
"""Consumer Expenditure Survey, interview of February 2015, as a CSV file."""
INCOMES = "FINCBTAX ~ age + I(age^2) + size + earners + female + college"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, its model, what an analyst fits to it, and public bins of its outcome."""

    model: Any
    table: Callable[[], pd.DataFrame]
    analyst: str  # family of a generalized linear model
    bins: tuple[float, float, int]
    splits: int = 2  # without epsilon; of centers and budgets at epsilon 1

    @property
    def outcome(self) -> str:
        """The column that is synthesized."""
        return self.model.formula.split("~")[0].strip()


def _visits() -> pd.DataFrame:
    return randhie.load_pandas().data.astype({"mdvis": "int64"})


def _some_visits() -> pd.DataFrame:
    return _visits().sample(2 * _PEOPLE, random_state=1)


def _marriages() -> pd.DataFrame:
    return fair.load_pandas().data


def _consumers() -> pd.DataFrame:
    own = pd.read_csv(_INCOME)
    return own.assign(
        age=(own["AGE"] - 50) / 10, size=own["FAM_SIZE"] - 2.5, earners=own["NO_EARNR"] - 1.0,
        female=(own["SEX"] == "F") * 1.0, college=(own["EDUCA"] >= 5) * 1.0,
        share=(own["FOODCQ"] / own["TOTEXPCQ"]).clip(0, 1),
    )  # fmt: skip


def _income(unit: int) -> Case:
    return Case(
        model=ph.NormalRegression(INCOMES, transform="asinh", unit=unit, decimals=0,
                                  prior="normal"),
        table=_consumers, analyst="gaussian", bins=(-50_000, 550_000, 120), splits=4,
    )  # fmt: skip


CASES = {
    "visits": Case(model=ph.NegativeBinomial("mdvis ~ 1"), table=_visits, analyst="poisson",
                   bins=(0, 99, 100), splits=8),
    "food share": Case(model=ph.Beta("share ~ 1", decimals=4), analyst="gaussian", splits=8,
                       table=lambda: _consumers().dropna(subset=["share"]), bins=(0, 1, 50)),
    "income": _income(20_000),
    "income, unit 10,000": _income(10_000),
    "any visit, 7 predictors": Case(
        model=ph.Bernoulli(f"any_visit ~ {_RIGHT}", levels=(0, 1)), analyst="binomial",
        table=lambda: _some_visits().assign(any_visit=lambda t: (t["mdvis"] > 0) * 1),
        bins=(0, 1, 2), splits=4),
    "visits, 7 predictors": Case(
        model=ph.NegativeBinomial(f"mdvis ~ {_RIGHT}", prior="normal"), table=_some_visits,
        analyst="poisson", bins=(0, 99, 100), splits=4),
    "marriages, 5 predictors": Case(
        model=ph.NormalRegression("rate_marriage ~ age + yrs_married + children + religious + educ",
                                  decimals=0),
        table=_marriages, analyst="gaussian", bins=(0, 6, 6), splits=4),
    "television, 3 predictors": Case(
        model=ph.NegativeBinomial("TVnews ~ age + educ + income"), analyst="poisson",
        table=lambda: anes96.load_pandas().data.astype({"TVnews": "int64"}), bins=(0, 8, 8)),
}  # fmt: skip


def run(
    epsilons: Sequence[float] = EPSILONS,
    names: Sequence[str] = tuple(CASES),
    mechanisms: Sequence[str] = MECHANISMS,
    file: Path = STORED,
) -> None:
    """Measure what `file` has not, and print one line for each table, mechanism and epsilon."""
    known = pd.read_csv(file) if file.is_file() else pd.DataFrame(columns=["table"])
    for name, what, epsilon, split in _lines(epsilons, names, mechanisms):
        same = (known["table"] == name) & (known["table"] != "")
        for column, value in (("mechanism", what), ("epsilon", epsilon), ("split", split)):
            same &= known.get(column) == value
        if same.any():
            continue
        row = {"table": name, "mechanism": what, "epsilon": epsilon, "split": split,
               **_row(name, what, epsilon, split)}  # fmt: skip
        known = pd.concat([known, pd.DataFrame([row])], ignore_index=True)
        known.to_csv(file, index=False, float_format="%.5g")
    print(summary(known).to_string(index=False, na_rep="-"))


def _lines(
    epsilons: Sequence[float], names: Sequence[str], mechanisms: Sequence[str]
) -> list[tuple[str, str, float, int]]:
    """Table, mechanism, epsilon (0 for what has none) and split of each line, the goal's first."""
    lines = []
    for epsilon, name, what in itertools.product((0.0, *epsilons), names, mechanisms):
        if (what in _WITHOUT_EPSILON) == (epsilon == 0):
            splits = range(1, 1 + _splits(name, what, epsilon))
            lines += [(name, what, epsilon, split) for split in splits]
    return sorted(lines, key=_turn)


def _turn(line: tuple[str, str, float, int]) -> tuple[bool, ...]:
    name, what, epsilon, _ = line
    by_chains = _kind(CASES[name].model) != "intercept"
    return epsilon > 0 and what != "centered", epsilon not in (0, 1), by_chains and what in _DEAR


def _splits(name: str, what: str, epsilon: float) -> int:
    """Most where the goal is, none of the rest for the model that is there for comparison."""
    if what == "unweighted" or (what in ("centered", "budget") and epsilon == 1):
        return CASES[name].splits
    if name in _FOR_COMPARISON:
        return 0
    if what == "budget, not corrected":
        return CASES[name].splits if epsilon == 1 else 0
    return 2 if what in _WITHOUT_EPSILON else 1


def summary(known: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits that were released, with the share of the overlap that is reached
    without epsilon."""
    plain = known[known["mechanism"] == "unweighted"].set_index(["table", "split"])["overlap"]
    rows = []
    for (name, what, epsilon), own in known.groupby(["table", "mechanism", "epsilon"], sort=False):
        own = own[own["overlap"].notna()] if own["overlap"].notna().any() else own
        beside = plain.reindex([(name, split) for split in own["split"]]).to_numpy()
        overlap = own["overlap"].to_numpy()
        share, k = overlap.mean() / beside.mean(), len(own)
        off = (overlap - share * beside) / beside.mean()
        rows.append({
            "table": name, "mechanism": what, "epsilon": epsilon or np.nan, "splits": k,
            "overlap": overlap.mean(), "share": share,
            "se": off.std(ddof=1) / k**0.5 if k > 1 else np.nan,
            "5 sets": own["pooled"].mean(), "mean %": 100 * own["mean_error"].mean(),
            "se %": 100 * own["mean_error"].std(ddof=1) / k**0.5 if k > 1 else np.nan,
            "90 %": 100 * own["q90_error"].mean(), "99 %": 100 * own["q99_error"].mean(),
            "two-way": own["two_way"].mean(), "CPU s": own["cpu_seconds"].mean(),
        })  # fmt: skip
    found = pd.DataFrame(rows).sort_values(["table", "mechanism", "epsilon"], kind="stable")
    digits = {"overlap": 2, "share": 2, "se": 2, "5 sets": 2, "mean %": 1, "se %": 1, "90 %": 1,
              "99 %": 1, "two-way": 3, "CPU s": 1}  # fmt: skip
    return found.round(digits)


_MEASURES = ("overlap", "pooled", "mean_error", "q90_error", "q99_error", "two_way")


_SHOWN = {"centered": "C0", "budget": "C1", "scalar": "C2", "LW by deviation": "C3", "LW": "C4",
          "LW, reciprocal": "C5", "CW": "C6", "histogram": "C7"}  # fmt: skip
_LABELS = {"centered": "center (strict)", "LW": "Lipschitz (LW)", "CW": "count (CW)",
           "histogram": "histogram (strict)"}  # fmt: skip
_DRAWN = ("visits", "visits, 7 predictors", "any visit, 7 predictors", "marriages, 5 predictors",
          "television, 3 predictors")  # fmt: skip


def figure(file: Path = FIGURE, known: Path = STORED) -> None:
    """Draw the share of the overlap without epsilon against epsilon, by table and mechanism."""
    import matplotlib.pyplot as plt

    found = summary(pd.read_csv(known))
    found = found[found["epsilon"].isin((1, 2, 4))]
    figure, axes = plt.subplots(2, 3, figsize=(8.6, 5.4), sharey=True, layout="constrained")
    *panels, last = axes.flat
    for axis, table in zip(panels, _DRAWN, strict=True):
        for what, color in _SHOWN.items():
            own = found[(found["table"] == table) & (found["mechanism"] == what)]
            strict = "-" if what in ("centered", "histogram") else "--"
            axis.plot(own["epsilon"], own["share"].clip(lower=-0.05), strict, color=color,
                      marker="o", markersize=4, label=_LABELS.get(what, what))  # fmt: skip
        axis.set_title(table, fontsize=10)
        axis.set_xscale("log")
        axis.set_xticks([1, 2, 4], ["1", "2", "4"], minor=False)
        axis.set_xticks([], minor=True)
        axis.set_ylim(-0.08, 1.2)
        axis.set_xlabel("epsilon")
    figure.supylabel("share of the overlap without epsilon", fontsize=10)
    last.legend(*axes[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
    last.set_axis_off()
    figure.savefig(file, dpi=110)


def _row(name: str, what: str, epsilon: float, split: int) -> dict[str, Any]:
    """Means over the released draws of one split; empty, with the reason, where nothing came."""
    case, started = CASES[name], time.process_time()
    old, new = halves(name, split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = np.array([_measures(case, new, sets)
                              for sets in _made(name, what, epsilon, split, old, new)])  # fmt: skip
            row: dict[str, Any] = dict(zip(_MEASURES, found.mean(axis=0), strict=True))
            row["mean_sd"], row["why_not"] = found[:, 2].std(ddof=1), ""
        except (ph.PyhybridError, np.linalg.LinAlgError) as why:
            row = {**dict.fromkeys((*_MEASURES, "mean_sd"), np.nan), "why_not": f"{why!s:.80}"}
    return {**row, "cpu_seconds": time.process_time() - started}


@lru_cache(maxsize=8)
def halves(name: str, split: int) -> list[pd.DataFrame]:
    """The reference, and what is released."""
    table = CASES[name].table().reset_index(drop=True)
    order = np.random.default_rng(split).permutation(len(table))
    return [table.iloc[part].reset_index(drop=True) for part in np.array_split(order, 2)]


def _made(
    name: str, what: str, epsilon: float, seed: int, old: pd.DataFrame, new: pd.DataFrame
) -> Iterable[list[pd.DataFrame]]:
    """Several sets of each of some releases."""
    case = CASES[name]
    model, options = case.model, {**_OPTIONS, "seed": seed}
    if epsilon not in (0, 1):
        options["settings"] = replace(_OPTIONS["settings"], max_draws=_OPTIONS["settings"].draws)
    if what == "histogram":
        return _from_histogram(case, epsilon, new)
    if what.startswith("centered") or "alone" in what:
        frozen = _calibrated(name, seed, "lower" in what)
        if "alone" in what:  # the reference's posterior: nothing of the new outcomes
            return _simulated(model.bind(new), frozen.draws, new=new, seed=seed)
        frozen = replace(frozen, cap=epsilon / 2, epsilon=epsilon)
        mechanism: Any = ph.Censored(calibration=frozen, check_modes=False)
    elif what == "private calibration":
        public = None if _kind(model) == "intercept" else "public"
        bought = ph.mechanisms.calibrate_privately(
            model, new, epsilon=epsilon, predictors=public, **options
        )
        mechanism = ph.Censored(calibration=bought, check_modes=False)
    elif what == "clipped by size":
        exact = model.bind(new).grid_form is not None
        mechanism = ph.Censored(
            model, epsilon=epsilon, inner=ph.Unweighted(model), center=None, check_modes=False,
            sampling="exact" if exact else "chains",
        )  # fmt: skip
    elif what.startswith("budget"):
        draws, correct = _budget(name, seed, epsilon)
        correct = correct if what == "budget" else None
        return _simulated(model.bind(new), draws, correct, new=new, seed=seed)
    elif what in _SCALED:
        return _simulated(model.bind(new), _scaled(what, name, seed, epsilon), new=new, seed=seed)
    else:
        mechanism = ph.Unweighted(model)
    session = open_session(model.bind(new), **options)
    fit = mechanism.fit(session).fit
    draws = fit.draws if fit.exact is None else fit.exact.released_draws(_DRAWS, relation="remove")
    return _simulated(session.bound, draws, new=new, seed=seed)


@lru_cache(maxsize=16)
def _calibrated(name: str, split: int, lower: bool) -> Any:
    """The reference's calibration; its cap does not enter what is frozen."""
    case, (old, _) = CASES[name], halves(name, split)
    table = _drifted(old, case.outcome) if lower else old
    return ph.calibrate(
        case.model, table, epsilon=1, **_OPTIONS, seed=split, holds_no_released_record=True
    )


_SCALED: dict[str, Callable[[Any, int, float], Any]] = {
    "LW": lambda model, n, scale: ph.LipschitzWeighted(model, scale=scale),
    "LW by deviation": lambda model, n, scale: ph.LipschitzWeighted(
        model, scale=scale, risk="deviation"
    ),
    "LW, reciprocal": lambda model, n, scale: ph.LipschitzWeighted(
        model, scale=scale, transform="reciprocal"
    ),
    "CW": lambda model, n, scale: ph.CountWeighted(model, scale=scale),
    "scalar": lambda model, n, scale: ph.GivenWeights(model, alpha=np.full(n, scale)),
}


@lru_cache(maxsize=8)
def _weighted_session(name: str, split: int) -> tuple[Any, dict[tuple[str, float], float]]:
    """A session over the released half, and the charges found in it, by mechanism and scale."""
    _, new = halves(name, split)
    options = {**_OPTIONS, "settings": _LONGER, "seed": split}
    return open_session(CASES[name].model.bind(new), **options), {}


def _scaled(what: str, name: str, split: int, epsilon: float) -> Any:
    """Draws under the largest scale whose local charge is within epsilon."""
    session, charged = _weighted_session(name, split)
    for scale in _SCALES:
        mechanism = _SCALED[what](CASES[name].model, session.bound.n, scale)
        if (what, scale) not in charged:
            path = mechanism.fit(session)
            charge = mechanism.charge_of(session, path, n_synthetic=1, n_draws_released=1)
            charged[what, scale] = charge.epsilon
        if charged[what, scale] <= epsilon:
            return mechanism.fit(session).fit.draws
    raise ph.InvalidInput(f"scale {_SCALES[-1]} costs {charged[what, _SCALES[-1]]}")


def _budget(name: str, split: int, epsilon: float) -> tuple[Any, Any]:
    """Draws by budget, if they cost no more than epsilon, and how a release corrects its own."""
    _, new = halves(name, split)
    options = {"engine": "embedded", "seed": split, "on_not_converged": "warn"}
    session = open_session(CASES[name].model.bind(new), **options)
    mechanism = ph.BudgetWeighted(CASES[name].model, epsilon=epsilon)
    path = mechanism.fit(session)
    charge = mechanism.charge_of(session, path, n_synthetic=1, n_draws_released=1)
    if charge.epsilon > epsilon:
        raise ph.InvalidInput(f"costs {charge.epsilon}")
    return path.fit.draws, mechanism.correction(session, None)


def _simulated(
    bound: Any, draws: Any, correct: Any = None, *, new: pd.DataFrame, seed: int
) -> list[list[pd.DataFrame]]:
    """Sets from some draws, each of which is released, and corrected, alone."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(draws.n_draws, _DRAWS, replace=False)
    released = [draws.part(chosen[[place]]) for place in range(_DRAWS)]
    if correct is not None:
        own = [streams(seed).child(f"release {place}") for place in range(_DRAWS)]
        released = [correct(*each) for each in zip(released, own, strict=True)]
    return [[joined(new, bound.replicate(draw, 0, rng)) for _ in range(_SETS)]
            for draw in released]  # fmt: skip


def _from_histogram(case: Case, epsilon: float, new: pd.DataFrame) -> list[list[pd.DataFrame]]:
    low, high, n_bins = case.bins
    own = ph.PerturbedHistogram(
        column=case.outcome, lower=low, upper=high, n_bins=n_bins, epsilon=epsilon
    )
    clipped = new.assign(**{case.outcome: new[case.outcome].clip(low, high)})
    return [[own.release(clipped).synthetic[0]] * 2 for _ in range(_DRAWS)]


def _kind(model: Any) -> str:
    return "intercept" if model.formula.split("~")[1].strip() == "1" else "predictors"


def _drifted(table: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """A reference whose outcome is 20 % lower."""
    values, rng = table[outcome], np.random.default_rng(1)
    if pd.api.types.is_integer_dtype(values.dtype) and values.min() >= 0:
        return table.assign(**{outcome: rng.binomial(values, 0.8)})
    return table.assign(**{outcome: (0.8 * values).round(4).astype(values.dtype)})


def _measures(case: Case, data: pd.DataFrame, sets: Sequence[pd.DataFrame]) -> tuple[float, ...]:
    """Overlap of one set and of all combined; of the first, relative errors and distance."""
    own, *others = (_estimates(case, table) for table in (data, *sets))
    ends = _ends(*own)
    one = np.mean(ph.measures.interval_overlap(ends, _ends(*others[0])))
    q, v = np.array([each[0] for each in others]), np.array([each[1] for each in others])
    combined = _ends(q.mean(axis=0), v.mean(axis=0) + q.var(axis=0, ddof=1) / len(q))
    pooled = np.mean(ph.measures.interval_overlap(ends, combined))
    y, z = (table[case.outcome].to_numpy(dtype=float) for table in (data, sets[0]))
    errors = [z.mean() / y.mean() - 1]
    for level in (0.9, 0.99):
        at = np.quantile(y, level)
        errors.append((np.quantile(z, level) - at) / max(abs(at), 1e-9))
    return (float(one), float(pooled), *errors, _two_way(case, data, sets[0]))


def _ends(estimates: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """95 % intervals, shape (2, K)."""
    half = 1.96 * np.sqrt(variances)
    return np.array([estimates - half, estimates + half])


def _estimates(case: Case, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The analyst's coefficients and their variances, each (K,); quasi-likelihood scale."""
    family = {"poisson": sm.families.Poisson, "binomial": sm.families.Binomial,
              "gaussian": sm.families.Gaussian}[case.analyst]()  # fmt: skip
    design = read_design(case.model.formula, table)
    y = np.arcsinh(design.y / 10_000) if case.model.formula.startswith("FINCBTAX") else design.y
    scale = None if case.analyst == "binomial" else "X2"
    fitted = sm.GLM(y, design.X, family=family).fit(scale=scale)
    return np.asarray(fitted.params), np.asarray(fitted.bse) ** 2


def _two_way(case: Case, data: pd.DataFrame, made: pd.DataFrame) -> float:
    """Total variation of outcome fifths by halves of the first predictor."""
    outcome = case.outcome
    first = read_design(case.model.formula, data).predictors[:1]
    edges = np.unique(np.quantile(data[outcome], [0.2, 0.4, 0.6, 0.8]))
    tables = []
    for table in (data, made):
        place = np.searchsorted(edges, table[outcome].to_numpy(dtype=float), side="right")
        half = (table[first[0]] > data[first[0]].median()).to_numpy() * 1 if first else 0 * place
        counts = np.bincount(2 * place + half, minlength=2 * (edges.size + 1))
        tables.append(counts / counts.sum())
    return float(np.abs(tables[0] - tables[1]).sum() / 2)
