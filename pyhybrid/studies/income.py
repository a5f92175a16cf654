"""Study E: log family income by a finite mixture of regressions, over six pairs (c, g).

The paper's year is not ours: with the February file of the Consumer Expenditure Survey ("data") or
with simulated incomes, order and proportions must agree, not digits. One normal component stands
beside the mixture: its tails are thinner, so that bounds are larger and as published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.comparing.curve_points import scalar_fit
from pyhybrid.errors import InvalidInput
from pyhybrid.mechanisms import CountWeighted, LipschitzWeighted
from pyhybrid.models import MixtureRegression
from pyhybrid.randomness import Streams
from pyhybrid.studies.fits import ACCOUNTING, bound_row, fitted, session_over
from pyhybrid.studies.study import Claim, Measured, Size, Study, mean_of

__all__ = ["CE_FORMULA", "PUBLISHED_BOUNDS", "STUDY_E", "ce_incomes", "simulated_incomes"]

CE_FORMULA = (
    "FINCBTAX ~ SEX + age + I(age**2) + EDUCA + REGION + BLS_URBN + MARITAL + CUTENURE"
    " + FAM_SIZE + NO_EARNR + spending"
)
_CODES = ("EDUCA", "REGION", "BLS_URBN", "MARITAL", "CUTENURE")
_FORMULA = "FINCBTAX ~ SEX + age + I(age**2) + NO_EARNR"
_NORMAL, _MIXTURE, _BOUND = "one normal component", "mixture", "Lipschitz bound"
_SCALAR, _COUNTS = "EM at the bound of LW (0.7, 0)", "CW"
# Bounds only: a looser rule than a release's, which these mixtures meet without a second try. There
# is one database, so that its chains run side by side.
_LOOSE = {"rhat": 1.05, "ess_per_chain": 15, "parallel_chains": 2}
PUBLISHED_BOUNDS = {
    (0.7, 0.0): 10.10, (0.6, 0.0): 8.16, (0.6, -0.1): 7.30,
    (0.5, 0.0): 6.09, (0.5, -0.1): 5.71, (0.5, -0.3): 2.25,
}  # fmt: skip


def ce_incomes(path: str | Path) -> pd.DataFrame:
    """Positive incomes of the February CE file, with predictors of the order of 1.

    Constants are fixed, not computed from the data; a missing code is a level of its own.
    """
    try:
        table = pd.read_csv(path)
        table = table[table["FINCBTAX"] > 0].reset_index(drop=True)
        codes = {name: table[name].fillna(0).astype(int).astype(str) for name in _CODES}
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInput(f"data {path} must be the February CE file: {error}") from None
    incomes: pd.DataFrame = pd.DataFrame(
        {
            "FINCBTAX": table["FINCBTAX"],
            "SEX": table["SEX"],
            **codes,
            "age": (table["AGE"] - 50) / 20,
            "FAM_SIZE": table["FAM_SIZE"] - 2.0,
            "NO_EARNR": table["NO_EARNR"] - 1.0,
            "spending": np.log1p(table["TOTEXPCQ"].clip(lower=0)) - 8,
        }
    )
    return incomes


def simulated_incomes(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """SIMULATED incomes: log-normal given age, sex and earners; a sixth of them far lower."""
    age, sex = (rng.integers(20, 80, n) - 50) / 20, rng.integers(0, 2, n)
    earners = rng.integers(0, 3, n) - 1.0
    center = 10.4 - 0.25 * age**2 + 0.1 * sex + 0.45 * earners
    low = rng.random(n) < 1 / 6
    log_income = np.where(low, rng.normal(center - 1.5, 1.3, n), rng.normal(center, 0.6, n))
    incomes: pd.DataFrame = pd.DataFrame(
        {
            "FINCBTAX": np.maximum(np.exp(log_income).round(), 1.0),
            "SEX": np.array(["1", "2"])[sex],
            "age": age,
            "NO_EARNR": earners,
        }
    )
    return incomes


def measure_e(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Bounds of Unweighted, of LW at each pair, of CW, and of one weight at that of LW (0.7, 0)."""
    rng, n = streams.generator("data"), int(options["records"])
    path = options.get("data")
    if path is None:
        table, formula = simulated_incomes(rng, n or 6208), _FORMULA
    else:
        table, formula = ce_incomes(path), CE_FORMULA
        if n:
            table = table.iloc[rng.choice(len(table), min(n, len(table)), replace=False)]
            table = table.reset_index(drop=True)
    components = 1 if setting == _NORMAL else int(options["components"])
    model = MixtureRegression(
        formula, n_components=components, transform="log", unit=10_000, min_sd=0.01
    )
    session = session_over(model, table, streams, options)
    unweighted = session.unweighted()
    fits = {
        (scale, shift): fitted(
            LipschitzWeighted(model, scale=scale, shift=shift, accounting=ACCOUNTING), session
        )
        for scale, shift in PUBLISHED_BOUNDS
    }
    scalar, _ = scalar_fit(session, fits[0.7, 0.0], unweighted.bounds.overall)
    return [
        bound_row("Unweighted", unweighted),
        *(bound_row(_label(pair), fit) for pair, fit in fits.items()),
        bound_row(_SCALAR, scalar),
        bound_row(_COUNTS, fitted(CountWeighted(model, accounting=ACCOUNTING), session)),
    ]


def _label(pair: tuple[float, float]) -> str:
    return f"LW ({pair[0]:g}, {pair[1]:g})"


def _bounds(summary: pd.DataFrame, setting: str, names: Sequence[str]) -> list[float]:
    return [mean_of(summary, setting, name, _BOUND) for name in names]


def _proportional(summary: pd.DataFrame) -> tuple[str, bool]:
    """Logarithms of our bounds on those published: correlation and slope of the line, both near 1.

    Bounds of another year are another multiple of the published ones, and a power near 1 of them.
    """
    published = np.log(list(PUBLISHED_BOUNDS.values()))
    shown, holds = [], []
    for setting in summary["setting"].unique():
        ours = _bounds(summary, setting, [_label(pair) for pair in PUBLISHED_BOUNDS])
        slope = float(np.polyfit(published, np.log(ours), 1)[0])
        together = float(np.corrcoef(published, np.log(ours))[0, 1])
        numbers = ", ".join(f"{value:.2f}" for value in ours)
        shown.append(f"{setting}: {numbers} (correlation {together:.3f}, slope {slope:.2f})")
        holds.append(together > 0.95 and 0.75 < slope < 4 / 3)
    return "; ".join(shown), all(holds)


def _same_order(summary: pd.DataFrame) -> tuple[str, bool]:
    shown, holds = [], []
    for setting in summary["setting"].unique():
        ours = _bounds(summary, setting, [_label(pair) for pair in PUBLISHED_BOUNDS])
        shown.append(f"{setting}: " + ", ".join(f"{value:.2f}" for value in ours))
        holds.append(ours == sorted(ours, reverse=True))
    return "; ".join(shown), all(holds)


def _order_of_weights(summary: pd.DataFrame) -> tuple[str, bool]:
    """Pairs from the highest weights to the lowest: at every r, c (1 - r) + g falls along them."""
    pairs = sorted(PUBLISHED_BOUNDS, key=lambda pair: (pair[0] + pair[1], pair[1]), reverse=True)
    names = [_label(pair) for pair in pairs]
    shown, holds = [], []
    for setting in summary["setting"].unique():
        ours = _bounds(summary, setting, names)
        told = (f"{name} {value:.2f}" for name, value in zip(names, ours, strict=True))
        shown.append(f"{setting}: {', '.join(told)}")
        holds.append(ours == sorted(ours, reverse=True))
    return "; ".join(shown), all(holds)


def _several_times(summary: pd.DataFrame) -> tuple[str, bool]:
    shown, holds = [], []
    for setting in summary["setting"].unique():
        plain, weighted = _bounds(summary, setting, ["Unweighted", _label((0.7, 0.0))])
        shown.append(f"{setting}: {plain:.1f} to {weighted:.1f}")
        holds.append(plain > 2 * weighted)
    return "; ".join(shown), all(holds)


def _alike(summary: pd.DataFrame) -> tuple[str, bool]:
    """Bounds of CW and EM beside LW's: CW within half and twice of it, as published."""
    shown, holds = [], []
    for setting in summary["setting"].unique():
        lw, scalar, counts = _bounds(summary, setting, [_label((0.7, 0.0)), _SCALAR, _COUNTS])
        shown.append(f"{setting}: LW {lw:.2f}, EM {scalar:.2f}, CW {counts:.2f}")
        holds.append(lw / 2 < counts < 2 * lw)
    return "; ".join(shown), all(holds)


STUDY_E = Study(
    name="E",
    title="Family income by a finite mixture: bounds over scale and shift",
    source="[S22] sec. 5",
    settings=(_NORMAL, _MIXTURE),
    measure=measure_e,
    takes_data=True,
    quick=Size(
        replicates=1,
        options={"records": 150, "components": 2, "warmup": 250, "draws": 150, **_LOOSE},
    ),
    paper=Size(
        replicates=1,
        options={"records": 0, "components": 5, "warmup": 500, "draws": 500, **_LOOSE},
    ),
    claims=(
        Claim(text="bounds of the six pairs, 10.10, 8.16, 7.30, 6.09, 5.71, 2.25 as published: "
              "proportional to them", check=_proportional,
              note="another year of the survey: shape and order count, not digits"),
        Claim(text="bounds fall from (0.7, 0) to (0.5, -0.3) in the published order",
              check=_same_order,
              note="no record weighs more under (0.6, -0.1) than under (0.5, 0), as "
              "0.6 (1 - r) - 0.1 = 0.5 (1 - r) - 0.1 r: the two change places unless the "
              "posterior moves; weights c (1 - r + g) were tried, too, and do not explain it"),
        Claim(text="bounds fall as weights do, from (0.7, 0) to (0.5, -0.3)",
              check=_order_of_weights, note="by the definition of the map, not stated in [S22]"),
        Claim(text="the unweighted bound is several times that of LW (0.7, 0): 78.7 to 10.1",
              check=_several_times),
        Claim(text="EM (10.2) and CW (11.17) have bounds like LW's (10.10)", check=_alike,
              note="EM is set to LW's bound; the radius of CW is not printed: 0.2 here"),
    ),
)  # fmt: skip
