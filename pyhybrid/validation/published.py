"""The papers' own programs, by each engine at hand, beside ours: `validate_published`.

Both sample one posterior, on a part of the data of the studies. Compared are 2 Delta, means of
parameters, of the ingredients of bounds and of predictions, in Monte Carlo standard errors, and the
log_lik that the program writes at the same theta. 2 Delta is a maximum over draws: its error is
that of the maxima of 20 blocks of draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import NotConverged, SamplingError
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.fitting.session import FitProgress, FitSession, PosteriorFit, open_session
from pyhybrid.models import (
    Beta,
    BetaRegression,
    BoundModel,
    MixtureRegression,
    NegativeBinomial,
    Poisson,
)
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weights import weights_from_lipschitz
from pyhybrid.running.tasks import named_progress
from pyhybrid.studies.income import ce_incomes, simulated_incomes
from pyhybrid.studies.strict import beta_database, simulated_salaries
from pyhybrid.validation.comparison import ERRORS, MONTE_CARLO, Row, compare
from pyhybrid.validation.posterior import ingredients, log_lik_tolerance, scalar_rows

PART = "published program"
RECORDS = 80
SETTINGS = SamplerSettings(warmup=500, draws=1000, adapt_delta=0.95)
_RULE = ConvergenceRule(rhat=1.05, ess_per_chain=20, divergent_share=0.1)
_BLOCKS = 20
_PREDICTED = 100  # draws of a chain that predictions are made from
_SIDES = ("published", "ours")


def study_cases(
    rng: np.random.Generator, income: str | None = None, records: int = RECORDS
) -> dict[str, tuple[Any, pd.DataFrame]]:
    """The default model of each published program, and part of a study's data: RAND visits (D),
    Beta(0.5, 3) (F), simulated salaries (G), incomes (E) of the CE file at `income`, or
    simulated."""
    from statsmodels.datasets import randhie

    visits = randhie.load_pandas().data
    visits = visits.iloc[rng.choice(len(visits), records, replace=False)].reset_index(drop=True)
    incomes = simulated_incomes(rng, records) if income is None else ce_incomes(income)
    if len(incomes) > records:
        incomes = incomes.iloc[rng.choice(len(incomes), records, replace=False)]
    mixture = MixtureRegression("FINCBTAX ~ SEX", n_components=2, transform="log", unit=10_000)
    return {
        "poisson": (Poisson("mdvis ~ lncoins"), visits),
        "negative_binomial": (NegativeBinomial("mdvis ~ lncoins"), visits),
        "beta": (Beta("y ~ 1"), beta_database(rng, records)),
        "beta_regression": (BetaRegression("salary ~ gender"), simulated_salaries(rng, records)),
        "normal_mixture": (mixture, incomes.reset_index(drop=True)),
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One program by one engine: its fits without weights and with those of ours."""

    session: FitSession
    fits: tuple[PosteriorFit, PosteriorFit]

    def scalars(self, fit: PosteriorFit, rng: np.random.Generator) -> dict[str, FloatArray]:
        """Numbers of each draw whose means are compared, shape (chains, draws) each."""
        bound: Any = self.session.bound
        chains, length = fit.draws.divergent.shape

        def predicted(draw: int) -> Any:
            """One replicate: the printed program's own, or made of our draws."""
            if "y_rep" in fit.draws.variables:
                return bound.model.from_support(fit.draws.flat("y_rep")[draw], bound.decimals)
            return bound.drawn(fit.draws, draw, rng, bound.design)

        within = np.linspace(0, length - 1, min(_PREDICTED, length)).astype(int)
        means = [
            [np.asarray(predicted(chain * length + draw), np.float64).mean() for draw in within]
            for chain in range(chains)
        ]
        return {**ingredients(bound, fit), "mean of predictions": np.array(means)}


def published_rows(
    cases: Mapping[str, tuple[Any, pd.DataFrame]],
    engines: Sequence[Engine],
    source: Streams,
    settings: SamplerSettings | None,
    progress: FitProgress | None,
) -> Iterator[tuple[list[Row], list[Side]]]:
    """Rows and what was run, of each program."""
    for name, (model, table) in cases.items():
        make = partial(side_of, source=source, settings=settings, progress=progress)
        ours = make(model.bind(table), engine=engines[0])
        rows, sides = [], [ours]
        for engine in engines:
            part = f"{PART}: {name} by {engine.name}"
            try:
                printed = make(
                    replace(model, program="published").bind(table),
                    engine=engine,
                    alpha=ours.fits[1].alpha,
                )
            except (NotConverged, SamplingError) as error:
                nan, what = float("nan"), "fits; the default program has the same posterior"
                values = {"python": nan, "r": nan, "difference": float("inf")}
                rows.append(_row(part, f"{what}: {error}", **values))
                continue
            rows += compare_sides(part, printed, ours, source)
            sides.append(printed)
        yield rows, sides


def side_of(
    bound: BoundModel,
    *,
    engine: Engine,
    source: Streams,
    settings: SamplerSettings | None,
    progress: FitProgress | None,
    rule: ConvergenceRule = _RULE,
    alpha: FloatArray | None = None,
) -> Side:
    """The fits of `bound` by `engine`, under weights `alpha` (n,), or Lipschitz weights; engines
    may share Stan's random numbers, and each has a seed of its own."""
    title = f"{bound.program.name} by {engine.name}"
    session = open_session(
        bound,
        seed=source.engine_seed(title),
        engine=engine,
        settings=settings or replace(SETTINGS, adapt_delta=None if alpha is None else 0.95),
        rule=rule,
        progress=named_progress(progress, title),
    )
    plain = session.unweighted()
    if alpha is None:
        alpha = weights_from_lipschitz(plain.bounds.by_record)
    return Side(session=session, fits=(plain, session.fit(alpha, label="weighted fit")))


def log_lik_matrix(log_lik: LogLik) -> FloatArray:
    """Log-likelihood of all records at all draws, shape (S, n)."""
    return np.concatenate([f for _, f in log_lik.blocks()], axis=1)[:, log_lik.row_of]


def compare_sides(part: str, printed: Side, ours: Side, source: Streams) -> Iterator[Row]:
    """Rows of one program by one engine; 2 Delta first, as the papers charge it."""
    rng = source.generator(part)
    fits = list(zip(("unweighted", "weighted"), printed.fits, ours.fits, strict=True))
    for name, one, two in fits:
        yield _bound_row(part, f"2 Delta, {name}", printed, one, ours, two)
    for name, one, two in fits:
        pair = printed.scalars(one, rng), ours.scalars(two, rng)
        yield from scalar_rows(part, *pair, sides=_SIDES, of=f", {name}")
    for name, one, _ in fits:
        bound = printed.session.bound
        yield compare(
            part,
            f"log_lik of the same theta, {name}",
            one.draws.flat("log_lik"),
            one.alpha * log_lik_matrix(bound.log_lik(one.draws)),
            tolerance=log_lik_tolerance(one.draws, bound),
            sides=_SIDES,
        )


def _bound_row(
    part: str, quantity: str, printed: Side, one: PosteriorFit, ours: Side, two: PosteriorFit
) -> Row:
    """2 Delta of both, in standard errors of the mean of the maxima of blocks of draws."""
    maxima = []
    for side, fit in ((printed, one), (ours, two)):
        largest = side.session.bound.log_lik(fit.draws).largest_by_draw(fit.alpha)
        maxima.append(np.array([2 * block.max() for block in np.array_split(largest, _BLOCKS)]))
    apart = abs(maxima[0].mean() - maxima[1].mean())
    error = np.sqrt(sum(values.var(ddof=1) for values in maxima) / _BLOCKS)
    values = {"python": 2 * one.bounds.overall, "r": 2 * two.bounds.overall}
    return _row(part, quantity, difference=float(apart / error), **values)


def _row(part: str, quantity: str, **values: Any) -> Row:
    return Row(
        part=part, quantity=quantity, tolerance=MONTE_CARLO, unit=ERRORS, sides=_SIDES, **values
    )
