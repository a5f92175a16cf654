"""The papers' own programs, by each engine at hand, beside ours: `validate --published`.

Both sample one posterior, on a part of the data of the studies. What is compared is computed on 20
blocks of each fit: draws far enough apart to count as independent, as many of both. The spread of
the blocks is the Monte Carlo error of every quantity, of bounds and weights, too, which are maxima
over draws. Of several numbers, the largest difference is that which one number would have with the
same probability (Bonferroni): it can be read as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import NotConverged, SamplingError
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.fitting.session import FitProgress, FitSession, PosteriorFit, open_session
from pyhybrid.measures.estimates import STATISTICS, summaries
from pyhybrid.mechanisms import GivenWeights
from pyhybrid.models import Beta, BetaRegression, MixtureRegression, NegativeBinomial, Poisson
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weights import lipschitz_weights, reweight, weights_from_lipschitz
from pyhybrid.running.tasks import named_progress
from pyhybrid.studies.income import ce_incomes, simulated_incomes
from pyhybrid.studies.strict import beta_database, simulated_salaries
from pyhybrid.validation.agreement.posterior import ingredients, log_lik_tolerance
from pyhybrid.validation.agreement.validation import ERRORS, MONTE_CARLO, Row, Speed, compare

PART = "published program"
RECORDS = 80
SETTINGS = SamplerSettings(warmup=500, draws=1000, adapt_delta=0.95)
_RULE = ConvergenceRule(rhat=1.05, ess_per_chain=20, divergent_share=0.1)
_BLOCKS, _SETS = 20, 20
_ENDS = (0.05, 0.5, 0.95)
_STATISTICS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "means": lambda x: x.mean(axis=0),
    "deviations": lambda x: x.std(axis=0, ddof=1),
    "quantiles": lambda x: np.quantile(x, _ENDS, axis=0).ravel(),
}


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
class _Side:
    """One program by one engine: its fits without weights and with those of ours, and the papers'
    estimands (20, 4) of its release."""

    session: FitSession
    fits: tuple[PosteriorFit, PosteriorFit]
    estimands: FloatArray

    @property
    def effective(self) -> float:
        """Effective draws of the worst quantity of the fits, bulk or tail."""
        told = [fit.diagnostics for fit in self.fits if fit.diagnostics is not None]
        return min(min(d.min_ess_bulk, d.min_ess_tail) for d in told)

    def speed(self, program: str, text: str) -> Speed:
        """Seconds and effective draws of both fits."""
        told = [fit.diagnostics for fit in self.fits if fit.diagnostics is not None]
        return Speed(
            program=program,
            text=text,
            engine=self.session.engine.name,
            seconds=sum(fit.draws.provenance.seconds for fit in self.fits),
            effective=sum(d.min_ess_bulk for d in told),
            divergent=sum(d.n_divergent for d in told),
        )


def published_rows(
    cases: Mapping[str, tuple[Any, pd.DataFrame]],
    engines: Sequence[Engine],
    source: Streams,
    settings: SamplerSettings | None,
    progress: FitProgress | None,
) -> Iterator[tuple[list[Row], list[Speed], list[_Side]]]:
    """Rows, speeds and what was run, of each program."""
    for name, (model, table) in cases.items():
        make = partial(side_of, table=table, source=source, settings=settings, progress=progress)
        ours = make(model, engine=engines[0])
        speeds, rows, sides = [ours.speed(name, "default")], [], [ours]
        for engine in engines:
            part = f"{PART}: {name} by {engine.name}"
            try:
                printed = make(
                    replace(model, program="published"), engine=engine, alpha=ours.fits[1].alpha
                )
            except (NotConverged, SamplingError) as error:
                rows.append(_failed(part, str(error)))
                continue
            rows += compare_sides(part, printed, ours, source)
            speeds.append(printed.speed(name, "published"))
            sides.append(printed)
        yield rows, speeds, sides


def side_of(
    model: Any,
    *,
    table: pd.DataFrame,
    engine: Engine,
    source: Streams,
    settings: SamplerSettings | None,
    progress: FitProgress | None,
    alpha: FloatArray | None = None,
) -> _Side:
    title = f"{model.program_name}, {model.program}, by {engine.name}"
    bound = model.bind(table)
    if engine.name != "embedded":  # what is compiled once is no part of the seconds
        data, short = bound.stan_data(np.ones(bound.n)), SamplerSettings(warmup=20, draws=4)
        engine.sample(bound.program, data, seed=1, settings=short)
    session = open_session(
        bound,
        seed=source.engine_seed(title),
        engine=engine,
        settings=settings or replace(SETTINGS, adapt_delta=None if alpha is None else 0.95),
        rule=_RULE,
        progress=named_progress(progress, title),
    )
    plain = session.unweighted()
    if alpha is None:
        alpha = weights_from_lipschitz(plain.bounds.by_record)
    mechanism = GivenWeights(model, alpha=alpha, accounting="lipschitz")
    weighted = mechanism.fit(session).fit
    release = mechanism.release_from(session, n_synthetic=_SETS, n_draws_released=_SETS, refits=0)
    column = bound.synthesized[0]
    made = [summaries(one[column].to_numpy(dtype=float)) for one in release.synthetic]
    return _Side(session=session, fits=(plain, weighted), estimands=np.array(made))


def unweighted_log_lik(side: _Side) -> FloatArray:
    """Unweighted log-likelihood (S, n) of the fit without weights."""
    return _matrix(side.session.bound.log_lik(side.fits[0].draws))


def _matrix(log_lik: LogLik) -> FloatArray:
    return np.concatenate([f for _, f in log_lik.blocks()], axis=1)[:, log_lik.row_of]


def compare_sides(part: str, printed: _Side, ours: _Side, source: Streams) -> Iterator[Row]:
    """Rows of one program by one engine; 2 Delta first, as the papers charge it."""
    n_draws = int(min(printed.effective, ours.effective)) // _BLOCKS * _BLOCKS
    both = [
        [_Blocks.of(side, k, n_draws, source.generator(f"{part}/{s}/{k}")) for k in (0, 1)]
        for s, side in enumerate((printed, ours))
    ]
    row = partial(_row, part)
    for k, name in enumerate(("2 Delta, unweighted", "2 Delta_alpha,x, weighted")):
        shown = [2 * side.fits[k].bounds.overall for side in (printed, ours)]
        yield row(name, [b[k].each(lambda f: 2 * np.abs(f).max()) for b in both], shown)
    yield row("weights", [b[0].each(lipschitz_weights) for b in both])
    again = [b[1].each(partial(_reweighted, printed.fits[1].alpha)) for b in both]
    yield row("re-weighted weights", again)
    names = ", ".join(STATISTICS)
    estimands = [printed.estimands, ours.estimands]
    yield row(f"estimands of {_SETS} released sets: {names}", estimands)
    for name in both[0][0].scalars:
        for statistic, of in _STATISTICS.items():
            values = [np.hstack([b.of_scalars(name, of) for b in pair]) for pair in both]
            yield row(f"{name}: {statistic}", values)
    yield from _log_lik_rows(part, printed)


def _reweighted(alpha: FloatArray, weighted_log_lik: FloatArray) -> FloatArray:
    """Weights of the papers' one step, from by-record bounds of a block."""
    return reweight(alpha, np.abs(weighted_log_lik).max(axis=0))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Blocks:
    """A fit at blocks of draws: alpha f (block, b, n), and scalars (block, b, k) by name."""

    log_lik: FloatArray
    scalars: Mapping[str, FloatArray]

    @classmethod
    def of(cls, side: _Side, k: int, n_draws: int, rng: np.random.Generator) -> _Blocks:
        bound, fit = side.session.bound, side.fits[k]
        chains, length = fit.draws.divergent.shape
        within = np.linspace(0, length - 1, n_draws // chains).astype(int)
        places = (np.arange(chains)[:, None] * length + within).ravel()
        matrix = _matrix(bound.log_lik(fit.draws).at(places))
        grouped: dict[str, list[FloatArray]] = {}
        for label, values in ingredients(bound, fit).items():
            grouped.setdefault(label.partition("[")[0], []).append(values.ravel()[places])
        scalars = {name: np.column_stack(columns) for name, columns in grouped.items()}
        scalars["predictions"] = np.array([_predicted(side, k, int(s), rng) for s in places])
        shape = _BLOCKS, n_draws // _BLOCKS
        return cls(
            log_lik=(matrix * fit.alpha).reshape(*shape, -1),
            scalars={name: values.reshape(*shape, -1) for name, values in scalars.items()},
        )

    def each(self, function: Callable[[FloatArray], Any]) -> FloatArray:
        """A function of alpha f, of each block: (20, k)."""
        return np.array([np.atleast_1d(function(block)) for block in self.log_lik])

    def of_scalars(self, name: str, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The same of scalars."""
        return np.array([function(block) for block in self.scalars[name]])


def _predicted(side: _Side, k: int, draw: int, rng: np.random.Generator) -> FloatArray:
    """The papers' estimands of one replicate: the printed program's own, or made of ours."""
    bound: Any = side.session.bound
    draws = side.fits[k].draws
    if "y_rep" in draws.variables:
        return summaries(bound.model.from_support(draws.flat("y_rep")[draw], bound.decimals))
    return summaries(bound.drawn(draws, draw, rng, bound.design))


def _log_lik_rows(part: str, printed: _Side) -> Iterator[Row]:
    """What the printed program writes, which is weighted, against numpy at the same theta."""
    bound = printed.session.bound
    for name, fit in zip(("unweighted", "weighted"), printed.fits, strict=True):
        ours = _matrix(bound.log_lik(fit.draws))
        yield compare(
            part,
            f"log_lik of the same theta, {name}",
            fit.draws.flat("log_lik"),
            fit.alpha * ours,
            tolerance=log_lik_tolerance(fit.draws, bound),
            sides=_SIDES,
        )


_SIDES = ("published", "ours")


def _row(
    part: str, quantity: str, values: Sequence[FloatArray], shown: Sequence[float] = ()
) -> Row:
    """Values of blocks of both, (20, k) each: the number furthest apart, in standard errors."""
    means, variances = ([f(x) for x in values] for f in (_mean, _variance_of_mean))
    error = np.sqrt(sum(variances))
    apart = np.abs(means[0] - means[1])
    still = error <= 1e-12 * (1 + np.abs(means[0]))
    with np.errstate(divide="ignore", invalid="ignore"):
        size = len(values[0]) - 1
        freedom = sum(variances) ** 2 / sum(v**2 / size for v in variances)
        ratio = np.where(
            still, np.where(apart > 1e-9 * (1 + np.abs(means[0])), np.inf, 0.0), apart / error
        )
    log_p = np.log(2) + scipy.stats.t.logsf(ratio, np.where(still, size, freedom))
    worst = int(np.argmin(log_p))
    adjusted = min(0.0, float(log_p[worst]) + np.log(apart.size))
    told = shown or (means[0][worst], means[1][worst])
    return Row(
        part=part,
        quantity=quantity,
        python=float(told[0]),
        r=float(told[1]),
        difference=float(abs(scipy.stats.norm.ppf(np.exp(adjusted) / 2)))
        if adjusted > -600
        else float(np.inf),
        tolerance=MONTE_CARLO,
        unit=ERRORS,
        numbers=apart.size,
        sides=_SIDES,
    )


def _mean(values: FloatArray) -> FloatArray:
    return np.asarray(values.mean(axis=0))


def _variance_of_mean(values: FloatArray) -> FloatArray:
    return np.asarray(values.var(axis=0, ddof=1) / len(values))


def _failed(part: str, error: str) -> Row:
    return Row(
        part=part,
        quantity=f"fits; the default program has the same posterior: {error}",
        python=float("nan"),
        r=float("nan"),
        difference=float("inf"),
        tolerance=MONTE_CARLO,
        unit=ERRORS,
        sides=_SIDES,
    )
