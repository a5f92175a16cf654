"""What studies measure on one database: a session over it, fits, synthetic sets and their rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule, SamplerSettings
from pyhybrid.fitting.session import FitSession, PosteriorFit, open_session
from pyhybrid.measures.estimates import STATISTICS, avg_ecdf, max_ecdf, summaries
from pyhybrid.mechanisms import ClippedScores, PseudoPosteriorMechanism
from pyhybrid.models.base import Model
from pyhybrid.studies.comparing.curve import sets_without_charge
from pyhybrid.studies.study import Measured

ACCOUNTING = "lipschitz"
"""The papers' own: epsilon is twice the Lipschitz bound. Every mechanism of a study counts so."""
BOUND, MAX_ECDF = "Lipschitz bound", "max-ECDF"
"""Names of quantities."""
SCORES = "clipped scores"
"""Name of a synthesizer that no paper has."""


def frame(**columns: Any) -> pd.DataFrame:
    """A table of columns."""
    table: pd.DataFrame = pd.DataFrame(columns)
    return table


def read_columns(
    path: str | os.PathLike[str], names: Mapping[str, Sequence[str]], what: str
) -> pd.DataFrame:
    """Columns of a CSV file, each under its name here, from the first of its names in files. A file
    that cannot be read, or lacks a column, is refused with `what` it must be."""
    try:
        table = pd.read_csv(path, low_memory=False)
        there = {name: [c for c in in_files if c in table] for name, in_files in names.items()}
        lacks = [name for name, columns in there.items() if not columns]
        if lacks:
            raise ValueError(f"it lacks {', '.join(lacks)}")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"data {path} must be {what}: {str(error).splitlines()[0]}") from None
    return frame(**{name: table[columns[0]] for name, columns in there.items()})


def sampler_of(options: Mapping[str, Any]) -> SamplerSettings:
    """Chains, on one core unless told."""
    own = {of.name: options[of.name] for of in fields(SamplerSettings) if of.name in options}
    return SamplerSettings(**{"parallel_chains": 1, **own})


def session_over(
    model: Model, df: pd.DataFrame, streams: Streams, options: Mapping[str, Any]
) -> FitSession:
    """A session; whether chains converged is in its diagnostics."""
    rhat, ess = options.get("rhat", 1.01), options.get("ess_per_chain", 100)
    return open_session(
        model.bind(df),
        seed=streams.entropy,
        engine=options["engine"],
        settings=sampler_of(options),
        rule=ConvergenceRule(rhat=rhat, ess_per_chain=ess),
        on_not_converged="warn",
    )


def fits_and_sets(
    mechanisms: Mapping[str, PseudoPosteriorMechanism], session: FitSession, n_sets: int = 1
) -> Iterator[tuple[str, PosteriorFit, list[pd.Series]]]:
    """The fit of each mechanism, and the outcome in sets as a release of it has them."""
    outcome = session.bound.synthesized[0]
    for name, mechanism in mechanisms.items():
        fit = mechanism.fit(session).fit
        sets = sets_without_charge(session, mechanism, fit, n_sets)
        yield name, fit, [table[outcome] for table in sets]


@dataclass(frozen=True, kw_only=True, eq=False)
class _RepeatableScores(ClippedScores):
    """Clipped scores with noise that a study can repeat and a release never has: floating-point
    noise from a seed protects nobody."""

    rng: np.random.Generator

    def _with_noise(self, sums: Any, sensitivity: int, mu: float) -> FloatArray:
        noise: FloatArray = self.rng.normal(scale=sensitivity / mu, size=len(sums))
        return np.asarray(sums) + noise


def score_sets(
    model: Any, table: pd.DataFrame, epsilon: float, streams: Streams, n_sets: int = 1
) -> list[pd.Series]:
    """Outcomes of sets by clipped scores, at delta 1e-6."""
    rng = streams.generator(SCORES)
    asked = {"decimals": 9, "prior": "normal"}
    how: Any = {name: asked[name] for name in asked.keys() & model.__dataclass_fields__.keys()}
    scores = _RepeatableScores(replace(model, **how), epsilon=epsilon, delta=1e-6, rng=rng)
    bound = scores.bind(table)
    fit, rows = scores.fit(bound, streams.child(SCORES)), bound.design.recoded(table)
    return [scores.replicate(rows, fit.draw(rng), rng)[scores.outcome] for _ in range(n_sets)]


def records_at_cap(fit: PosteriorFit) -> float:
    """Of a truncation, those of weight 0 but the riskiest, which has it by the Lipschitz map."""
    return float((fit.alpha == 0).sum() - 1 if fit.censored is None else fit.censored.sum())


def measured(synthesizer: str, values: Mapping[str, Any]) -> list[Measured]:
    """Numbers of one synthesizer by quantity."""
    return [Measured(synthesizer, quantity, float(value)) for quantity, value in values.items()]


def estimand_rows(synthesizer: str, values: FloatArray, end: str = "") -> list[Measured]:
    """Numbers (4,) of the papers' estimands, with an `end` of the quantities' names."""
    quantities = (f"{statistic}{end}" for statistic in STATISTICS)
    return measured(synthesizer, dict(zip(quantities, values, strict=True)))


def utility_rows(name: str, data: pd.Series, synthetic: pd.Series) -> list[Measured]:
    """Distances of distribution functions [C25] sec. 4.3, and the papers' estimands."""
    real, released = data.to_numpy(), synthetic.to_numpy()
    distances = {MAX_ECDF: max_ecdf(real, released), "avg-ECDF": avg_ecdf(real, released)}
    return [*measured(name, distances), *estimand_rows(name, summaries(released))]
