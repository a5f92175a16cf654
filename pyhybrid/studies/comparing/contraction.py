"""From local to global: does the bound of one database hold for others of its kind?

A local epsilon is twice the Lipschitz bound Delta of one database. [S22] sec. 4 shows that the
bounds of all databases contract onto one as n grows, if of the order of the root of n records are
down-weighted (assumption 4). For a mechanism and data of one's own both can be looked at: databases
are simulated from draws of its posterior, and subsets of growing size are fitted anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_count
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import streams
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitOptions
from pyhybrid.mechanisms import PseudoPosteriorMechanism
from pyhybrid.studies.comparing.curve import sets_without_charge

FACTORS = (1.0, 1.05, 1.1)
"""Factors of safety [S22] sec. 4.5."""
_QUARTERS = 4  # sizes, each a quarter of the next, as in [S22] sec. 4.4
_SMALLEST = 20
_COUNTS = ("reduced", "removed")


@dataclass(frozen=True, kw_only=True, eq=False)
class Contraction:
    """Lipschitz bounds of simulated databases of growing size. Confidential.

    Attributes
    ----------
    databases : DataFrame
        A row for each: n, lipschitz_bound (nats), reduced (n_A, records of weight below 1), removed
        (the sum of 1 - alpha) and converged.
    bound : float
        Delta of the data themselves, nats: half the local epsilon of one draw.
    n : int
        Records of the data.
    """

    databases: pd.DataFrame
    bound: float
    n: int

    @property
    def table(self) -> pd.DataFrame:
        """By n: number of databases, mean, standard deviation and largest of their bounds, the
        share of databases whose bound is above 1, 1.05 and 1.1 times that of the data (the delta of
        the (epsilon, delta)-pDP of [S22] definition 4 with this factor of safety), reduced and
        removed over the root of n, which assumption 4 wants bounded, and the share converged."""
        each = self.databases
        shares = {f"delta at {f:g}": each["lipschitz_bound"] > f * self.bound for f in FACTORS}
        shares |= {f"{name} / sqrt n": each[name] / each["n"] ** 0.5 for name in _COUNTS}
        shares["converged"] = each["converged"]
        bounds = each.groupby("n")["lipschitz_bound"].agg(["size", "mean", "std", "max"])
        bounds.columns = pd.Index(["databases", "mean", "sd", "largest"])
        means = pd.DataFrame(shares).groupby(each["n"]).mean()
        table: pd.DataFrame = bounds.join(means).reset_index()
        return table

    @property
    def rate(self) -> float:
        """Slope of the logarithm of the bounds' standard deviation on that of n: -1/2 if they
        contract at the rate of theorem 2, 0 if they do not contract."""
        table = self.table
        return float(np.polyfit(np.log(table["n"]), np.log(table["sd"]), 1)[0])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n:,}" for n in self.table["n"])
        return f"<Contraction over databases of {sizes} records, bound {self.bound:.3g}>"


@bar_in_notebooks
def contraction(
    mechanism: PseudoPosteriorMechanism,
    df: pd.DataFrame,
    *,
    sizes: Sequence[int] | None = None,
    replicates: int = 20,
    **options: Any,
) -> Contraction:
    """Whether the local bound of a mechanism on your data may be called global.

    A parametric bootstrap: `replicates` databases of each size are simulated from draws of the
    mechanism's posterior, the kept columns those of rows chosen at random, and the mechanism
    is fitted to each, weights, re-weighting and all. It costs that many fits, and shows databases
    of the kind that the model describes: what it misses about the data, it misses about them.

    Parameters
    ----------
    mechanism : PseudoPosteriorMechanism
        Such as ``ph.LipschitzWeighted(model)``.
    df : DataFrame
        Confidential records.
    sizes : sequence of int, optional
        Records of the databases, at most those of `df`; n/64, n/16, n/4 and n, if 20 or more.
    replicates : int, default 20
        Databases of each size. Shares are multiples of 1 / replicates; if none of them exceeds, the
        share is below 3 / replicates with 95 % confidence.
    **options
        seed, engine, settings, rule, on_not_converged, progress of
        `pyhybrid.fitting.session.FitOptions`. Databases that do not converge are counted.

    Raises
    ------
    InvalidInput
        For fewer than two sizes, or one below 2 or above the number of records.
    EngineUnavailable, SamplingError, NotConverged
        If a fit fails; NotConverged of `df` alone.

    References
    ----------
    [S22] sec. 4: definition 4, assumption 4, theorem 2, fig. 1.
    """
    chosen = FitOptions(**options)
    random = streams(chosen.seed)
    n = len(df)
    if sizes is None:
        sizes = [n // 4**k for k in range(_QUARTERS) if n // 4**k >= _SMALLEST]
    sizes = sorted({check_count(size, "sizes", at_least=2) for size in sizes})
    if len(sizes) < 2 or sizes[-1] > n:
        raise InvalidInput(
            f"sizes must be two or more different numbers of at most {n} records: found {sizes}"
        )
    m = check_count(replicates, "replicates", at_least=2)
    session = chosen.session(mechanism.model.bind(df), random.child("data"))
    fit = mechanism.fit(session).fit
    columns = sets_without_charge(session, mechanism, fit, m * len(sizes))
    lenient = replace(chosen, on_not_converged="warn", progress=None)
    rows = []
    report = chosen.progress or (lambda *_: None)
    for done, synthetic in enumerate(columns):
        report("simulated databases", done, len(columns))
        size, apart = sizes[done // m], random.child(f"database {done}")
        kept = np.sort(apart.generator("rows").choice(n, size, replace=False))
        table = joined(session.bound.table, synthetic).iloc[kept].reset_index(drop=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # not converged: counted
            refit = mechanism.fit(lenient.session(mechanism.model.bind(table), apart)).fit
        reduced, removed = int((refit.alpha < 1).sum()), float((1 - refit.alpha).sum())
        rows.append({"n": size, "lipschitz_bound": refit.bounds.overall, "reduced": reduced,
                     "removed": removed, "converged": refit.converged})  # fmt: skip
    report("simulated databases", len(columns), len(columns))
    return Contraction(databases=pd.DataFrame(rows), bound=fit.bounds.overall, n=n)
