"""Several mechanisms on one data set, with their fits shared, side by side.

A comparison is made for the data owner: everything in it but the synthetic tables and the charges
is confidential. It computes every candidate on the confidential data; which one is then published
is a choice made by looking at them, and no charge covers that choice. To publish several, release
each anew: the fits of one comparison share their random numbers, and epsilons add only for releases
whose random numbers are independent.

Estimated are mean and percentiles of numbers, shares of levels: the places that levels have in a
model are codes, and their mean and percentiles say nothing. Missing values are left out of the
estimates of numbers, and have a share of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count, check_draws_released
from pyhybrid.core.errors import InvalidInput, PyhybridError
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.measures.estimates import Estimates, estimates
from pyhybrid.mechanisms import ClippedScores, PseudoPosteriorMechanism
from pyhybrid.models.base import BoundModel
from pyhybrid.releases.release import Release
from pyhybrid.running.tasks import named_progress

DATA = "data"
"""Name of the confidential data among the sources of estimates."""

NOT_COVERED = (
    "Every candidate was computed on the confidential data. Which of them is published, if chosen "
    "by looking at this comparison, is a choice that no epsilon here covers. To publish several, "
    "release each anew: these share their random numbers, and epsilons add only where they do not."
)

_MOST_LEVELS = 6


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Releases of several mechanisms over one model and one data set. Confidential.

    Attributes
    ----------
    releases : dict of str to Release
        By name, in the order given. To publish several, release each anew (`compare`).
    table : DataFrame
        One row per mechanism: its charge (epsilon of all sets, nats), Lipschitz bound, efficiency
        (mean by-record bound over the overall one), effective_sample_size of the weights,
        (sum alpha)^2 / sum alpha^2 (these three NaN without a fit), and refits of the re-weighting.
    estimates : DataFrame
        Tidy: statistic, source (the data, "data", or a mechanism), estimate, lower, upper, of mean
        and percentiles, or of levels the shares of the most frequent ones, `share of no`, ...; see
        `pyhybrid.measures.estimates.estimates` for how sets are combined.
    outcome : str
        The synthesized column that the estimates are of.
    session : FitSession
        Data and fits, for further releases without new fits.
    refused : dict of str to str
        Candidates that could not be released, with the reason.
    """

    releases: dict[str, Release]
    table: pd.DataFrame
    estimates: pd.DataFrame
    outcome: str
    session: FitSession = field(repr=False)
    refused: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.releases)} on {self.outcome!r}>"


@bar_in_notebooks
def compare(
    mechanisms: Mapping[str, PseudoPosteriorMechanism | ClippedScores],
    df: Any,
    *,
    n_synthetic: int = 20,
    n_draws_released: int | None = None,
    refits: int = 0,
    **options: Any,
) -> Comparison:
    """Release by each mechanism and set charges, bounds, weights and estimates side by side.

    All mechanisms with fits share one session: a fit that several of them need, above all the
    unweighted one, is made once, and all fits use the same engine seed, so that mechanisms do not
    differ by noise of the sampler. Publishing one of several candidates is a choice that the
    guarantee does not cover; to publish several, release each anew.

    Parameters
    ----------
    mechanisms : mapping of str to PseudoPosteriorMechanism or ClippedScores
        Candidates by a name of your own, all over the same model, declared for `ClippedScores`.
    df : DataFrame
        Confidential records. Not modified.
    n_synthetic : int, default 20
        m, of each mechanism.
    n_draws_released : int, optional
        1 or `n_synthetic` (the default), as in `PseudoPosteriorMechanism.release`.
    refits : int, default 0
        As of a release, where it is 10. 0 takes weights as fixed, as the papers do: a release costs
        that or more.
    **options
        seed, engine, settings, rule, on_not_converged, progress of
        `pyhybrid.fitting.session.FitOptions`.

    Raises
    ------
    InvalidInput
        For no mechanism, other than mechanisms, and unlike models.
    PyhybridError
        The first candidate's, if all are refused; others go on without one that is.

    References
    ----------
    [V25] sec. 2 and 3; [S22] sec. 5.2.
    """
    _check_alike(mechanisms)
    fitted = [m for m in mechanisms.values() if isinstance(m, PseudoPosteriorMechanism)]
    m = check_count(n_synthetic, "n_synthetic")
    drawn = check_draws_released(n_draws_released, m)
    bound = fitted[0].bind(df) if fitted else next(iter(mechanisms.values())).model.bind(df)
    session = open_session(bound, **options)
    releases, refused = {}, dict[str, PyhybridError]()
    for name, mechanism in mechanisms.items():
        try:
            releases[name] = mechanism.release_from(
                replace(session, progress=named_progress(session.progress, name)),
                n_synthetic=m,
                n_draws_released=drawn,
                refits=refits,
            )
        except PyhybridError as error:
            refused[name] = error
    if not releases:
        raise next(iter(refused.values()))
    column = session.bound.synthesized[0]
    columns = {DATA: [session.bound.table[column]]}
    columns |= {name: [t[column] for t in release.synthetic] for name, release in releases.items()}
    tidy = []
    for source, sets in columns.items():
        rng = session.streams.generator(f"estimates/{source}")
        of = outcome_estimates(session.bound, sets, rng)
        numbers = {end: getattr(of, end) for end in ("estimate", "lower", "upper")}
        tidy.append(pd.DataFrame({"statistic": of.statistics, "source": source, **numbers}))
    return Comparison(
        releases=releases,
        table=pd.DataFrame([_row(name, one) for name, one in releases.items()]),
        estimates=pd.concat(tidy).sort_index(kind="stable", ignore_index=True),
        outcome=column,
        session=session,
        refused={name: str(error) for name, error in refused.items()},
    )


def _check_alike(mechanisms: Any) -> None:
    """Refuse what are no mechanisms over one model and one column of survey weights."""
    if not isinstance(mechanisms, Mapping) or not mechanisms:
        example = "{'LW': ph.LipschitzWeighted(model)}"
        raise InvalidInput(f"mechanisms must be a mapping of at least one name, e.g. {example}")
    over = {}
    for name, mechanism in mechanisms.items():
        if not isinstance(name, str) or name == DATA:
            raise InvalidInput(f"names of mechanisms must be text other than 'data': {name!r}")
        if not isinstance(mechanism, PseudoPosteriorMechanism | ClippedScores):
            raise InvalidInput(
                f"mechanisms[{name!r}] must be a mechanism over a model: found "
                f"{type(mechanism).__name__}"
            )
        design = mechanism.weights if isinstance(mechanism, ClippedScores) else mechanism.design
        over[name] = mechanism.model, design
    first, *others = over
    for name in others:
        if over[name] != over[first]:
            raise InvalidInput(
                f"all mechanisms must be over one model and design: {first!r} has "
                f"{over[first][0]}, {name!r} {over[name][0]}"
            )


_OF_CHARGE = (
    "epsilon", "epsilon_published", "delta", "accounting", "epsilon_range", "epsilon_lipschitz",
    "kind", "relation", "n_synthetic", "n_draws_released",
)  # fmt: skip


def _row(name: str, release: Release) -> dict[str, Any]:
    charge, alpha, fit = release.charge, release.confidential.alpha, release.fit
    steps = release.reweighted.steps if release.reweighted is not None else ()
    return {
        "mechanism": name,
        "lipschitz_bound": np.nan if fit is None else charge.bound,
        **{fact: getattr(charge, fact) for fact in _OF_CHARGE},
        "efficiency": np.nan if fit is None else fit.bounds.efficiency,
        "effective_sample_size": float(alpha.sum() ** 2 / (alpha @ alpha)) if fit else np.nan,
        "refits": len(steps),
    }


def outcome_estimates(
    bound: BoundModel, columns: Sequence[pd.Series], rng: np.random.Generator
) -> Estimates:
    """Estimates with intervals of the outcome of `bound`, from one column or those of m sets: mean
    and percentiles of numbers, shares of levels, and the share missing if the data have some."""
    values = [bound.numbers_of(column) for column in columns]

    def share(name: str, holds: Callable[[FloatArray], Any]) -> Estimates:
        sets = [np.asarray(holds(numbers), dtype=np.float64) for numbers in values]
        return replace(estimates(sets, statistics=("mean",), rng=rng), statistics=(name,))

    parts = [share(name, partial(np.equal, code)) for name, code in shown_levels(bound).items()]
    if not parts:
        parts = [estimates([present(numbers) for numbers in values], rng=rng)]
    if np.isnan(bound.outcome).any():
        parts.append(share("share missing", np.isnan))
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("estimate", "lower", "upper", "resampled")
    }
    return replace(parts[0], statistics=sum((part.statistics for part in parts), ()), **joined)


def shown_levels(bound: BoundModel) -> dict[str, int]:
    """Codes of the 6 most frequent levels of the outcome by "share of LEVEL"; none of numbers."""
    if bound.levels is None:
        return {}
    levels = bound.levels.values
    counts = np.bincount(present(bound.outcome).astype(np.intp), minlength=len(levels))
    chosen = sorted(np.argsort(-counts, kind="stable")[:_MOST_LEVELS].tolist())
    return {f"share of {levels[code]}": code for code in chosen}


def present(values: FloatArray) -> FloatArray:
    """Values that are not missing; InvalidInput if all are."""
    kept = values[~np.isnan(values)]
    if not kept.size:
        raise InvalidInput("the outcome must have a value in each set: one set has none")
    return np.asarray(kept)
