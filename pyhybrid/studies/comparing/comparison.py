"""Several mechanisms on one data set, with their fits shared, side by side.

A comparison is made for the data owner: everything in it but the synthetic tables and the charges
is confidential. It computes every candidate on the confidential data; which one is then published
is a choice made by looking at them, and no charge covers that choice. To publish several, release
each anew: the fits of one comparison share their random numbers, and epsilons add only for releases
whose random numbers are independent.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count, check_draws_released
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import html_table
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.fitting.session import FitProgress, FitSession, PosteriorFit, open_session
from pyhybrid.measures.arrays.estimates import Estimates
from pyhybrid.mechanisms import PseudoPosteriorMechanism
from pyhybrid.privacy.cap import Cap
from pyhybrid.releases.release import Release
from pyhybrid.running.tasks import first_failure, run_tasks
from pyhybrid.studies.comparing.means import means_of, moved_away, moved_away_text
from pyhybrid.studies.comparing.outcome import Outcome, outcome_of

__all__ = ["DATA", "NOT_COVERED", "Comparison", "compare", "synthetic_means"]

DATA = "data"
"""Name of the confidential data among the sources of estimates."""

NOT_COVERED = (
    "Every candidate was computed on the confidential data. Which of them is published, if chosen "
    "by looking at this comparison, is a choice that no epsilon here covers. To publish several, "
    "release each anew: these share their random numbers, and epsilons add only where they do not."
)

_RECORDS_SIMULATED = 10_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Releases of several mechanisms over one model and one data set. Confidential.

    Publishing the release that looks best is a choice made by looking at the confidential data:
    the guarantee of its charge does not cover it. To publish several, release each anew: these
    share their random numbers, and epsilons add (`pyhybrid.compose`) only where they do not.

    Attributes
    ----------
    releases : dict of str to Release
        By name, in the order given.
    table : DataFrame
        One row per mechanism: mechanism, lipschitz_bound (nats), epsilon (of all its sets, nats),
        kind, relation, n_synthetic, n_draws_released, efficiency (mean by-record bound over the
        overall one), effective_sample_size of the weights, (sum alpha)^2 / sum alpha^2, refits
        and refits_saved of the re-weighting, and of each statistic its estimate with the ends of
        its 95 % interval (``mean``, ``mean_lower``, ``mean_upper``, ...). An outcome of levels has
        the shares of its most frequent ones in their place (``share of no``, ...), one with missing
        values their share, too (``share missing``).
    estimates : DataFrame
        Tidy: statistic, source, estimate, lower, upper. Sources are the data ("data") and the
        mechanisms; see `pyhybrid.measures.arrays.estimates.estimates` for how sets are combined.
    outcome : str
        The synthesized column that the estimates are of.
    moved_away : tuple of str
        Mechanisms whose re-weighting took the mean further from the data than it was before.
    fits_made, fits_saved : int
        Fits of the shared session; fits that as many separate releases would have made beyond it.
    session : FitSession
        Data and fits, for further releases without new fits.
    """

    releases: dict[str, Release]
    table: pd.DataFrame
    estimates: pd.DataFrame
    outcome: str
    moved_away: tuple[str, ...]
    fits_made: int
    fits_saved: int
    session: FitSession = field(repr=False)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.releases)} on {self.outcome!r}>"

    def _repr_html_(self) -> str:
        """Charges alone: bounds and estimates are in `table` and `estimates`, confidential."""
        rows = [
            (name, each.charge.cost, each.charge.kind, f"{each.charge.n_synthetic} sets")
            for name, each in self.releases.items()
        ]
        header = ("mechanism", "privacy loss", "kind", "")
        return html_table(f"Comparison on {self.outcome}", header, rows)


def compare(
    mechanisms: Mapping[str, PseudoPosteriorMechanism],
    df: pd.DataFrame,
    *,
    n_synthetic: int = 20,
    n_draws_released: int | None = None,
    seed: int | None = None,
    engine: str | Engine = "auto",
    settings: SamplerSettings | None = None,
    rule: ConvergenceRule | None = None,
    on_not_converged: str = "raise",
    progress: FitProgress | None = None,
    workers: int = 1,
    executor: Executor | None = None,
) -> Comparison:
    """Release by each mechanism and set charges, bounds, weights and estimates side by side.

    All mechanisms share one session: a fit that several of them need, above all the unweighted
    one, is made once, and all fits use the same engine seed, so that differences between
    mechanisms are not noise of the sampler. Re-weighting leaves less slack below the bound, but
    need not bring estimates nearer: a warning names the candidates whose mean it took further from
    the data.

    Comparing several candidates on the confidential data and publishing one of them is a choice
    that the guarantee does not cover; to publish several, release each anew.

    Parameters
    ----------
    mechanisms : mapping of str to PseudoPosteriorMechanism
        Candidates by a name of your own, all over the same model.
    df : DataFrame
        Confidential records. Not modified.
    n_synthetic : int, default 20
        m, of each mechanism.
    n_draws_released : int, optional
        1 or `n_synthetic` (the default), as in `PseudoPosteriorMechanism.release`.
    seed, engine, settings, rule, on_not_converged, progress
        See `pyhybrid.fitting.session.FitOptions`.
    workers : int, default 1
        Processes that work on mechanisms at once; does not change the results.
    executor : Executor, optional
        In place of `workers`, e.g. of a Dask client; it is not shut down.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidInput
        For no mechanism, other than mechanisms, unlike models, or what a release refuses.
    EngineUnavailable, SamplingError, NotConverged
        As a release of any of the mechanisms would.

    References
    ----------
    [V25] sec. 2 and 3; [S22] sec. 5.2.
    """
    model = _checked_model(mechanisms)
    m = check_count(n_synthetic, "n_synthetic")
    drawn = check_draws_released(n_draws_released, m)
    session = open_session(
        model.bind(df),
        seed=seed,
        engine=engine,
        settings=settings,
        rule=rule,
        on_not_converged=on_not_converged,
        progress=progress,
    )
    check_count(workers, "workers")
    if workers > 1 or executor is not None:
        asked = _released_in_parallel(session, mechanisms, m, drawn, workers, executor)
    else:
        asked = {
            name: _released(_Task(session=session, mechanism=each, n_synthetic=m, n_drawn=drawn))
            for name, each in mechanisms.items()
        }
    return _compared(session, asked)


def synthetic_means(comparison: Comparison, *, n_draws: int | None = None) -> dict[str, FloatArray]:
    """Mean of the outcome in synthetic sets simulated from many posterior draws, by mechanism.

    Of an outcome of levels: the share of the first of those that are compared.

    Its distribution is that of the mean of one released set: the posterior of the mean, with the
    noise of n simulated records added. For figures; nothing of it is released.

    Parameters
    ----------
    comparison : Comparison
    n_draws : int, optional
        Draws of each mechanism, spread evenly over the kept ones; 400 if omitted, down to 100 for
        many records.

    Returns
    -------
    dict of str to ndarray, shape (n_draws,)
    """
    session = comparison.session
    wanted = min(400, max(100, _RECORDS_SIMULATED // session.bound.n))
    wanted = wanted if n_draws is None else check_count(n_draws, "n_draws")
    return {
        name: means_of(session, release.fit, wanted, comparison.outcome)[:, 0]
        for name, release in comparison.releases.items()
        if release.fit is not None
    }


def _checked_model(mechanisms: Any) -> Any:
    """The model that all mechanisms share."""
    if not isinstance(mechanisms, Mapping) or not mechanisms:
        example = "{'LW': ph.LipschitzWeighted(model)}"
        raise InvalidInput(f"mechanisms must be a mapping of at least one name, e.g. {example}")
    models = []
    for name, mechanism in mechanisms.items():
        if not isinstance(name, str) or not name or name == DATA:
            raise InvalidInput(
                f"names of mechanisms must be text other than 'data': found {name!r}"
            )
        if not isinstance(mechanism, PseudoPosteriorMechanism):
            raise InvalidInput(
                f"mechanisms[{name!r}] must be a mechanism: found {type(mechanism).__name__}"
            )
        models.append((name, mechanism.model))
    first, model = models[0]
    for name, other in models[1:]:
        if other != model:
            raise InvalidInput(
                f"all mechanisms must be over one model: {first!r} has {model}, {name!r} {other}"
            )
    return model


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    """One mechanism and the session whose fits it may use."""

    session: FitSession
    mechanism: PseudoPosteriorMechanism
    n_synthetic: int
    n_drawn: int
    name: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Released:
    """The release of one mechanism, the fits it asked for, and the session that made them."""

    release: Release
    asked: set[tuple[Any, ...]]
    session: FitSession


def _released(task: _Task) -> _Released:
    """Runs in any process."""
    own = _recording(task.session)
    release = task.mechanism.release_from(
        own, n_synthetic=task.n_synthetic, n_draws_released=task.n_drawn
    )
    whole = {fit for fit in own.asked if len(fit[0]) == 8 * own.bound.n}  # not of fewer records
    return _Released(release=release, asked=whole, session=own)


def _released_in_parallel(
    session: FitSession,
    mechanisms: Mapping[str, PseudoPosteriorMechanism],
    n_synthetic: int,
    n_drawn: int,
    workers: int,
    executor: Executor | None,
) -> dict[str, _Released]:
    """The same releases; each worker starts from the unweighted fit, which nearly all need."""
    session.unweighted()
    chains = max(1, (os.cpu_count() or 1) // workers) if executor is None else None
    sent = replace(
        session, progress=None, settings=replace(session.settings, parallel_chains=chains)
    )
    tasks, before = [], Counter[str]()
    for name, each in mechanisms.items():  # of equal mechanisms each takes draws of its own
        stream = each.stream()
        store = replace(session.store, released={stream: (n_drawn,) * before[stream]})
        own = replace(sent, store=store)
        before[stream] += 1
        tasks.append(
            _Task(session=own, mechanism=each, n_synthetic=n_synthetic, n_drawn=n_drawn, name=name)
        )
    found, failures = {}, []
    for ended in run_tasks(_released, tasks, workers=workers, executor=executor):
        if ended.result is None:
            failures.append(ended)
        else:
            found[ended.task.name] = ended.result
            session.take_fits(ended.result.session)
        if session.progress is not None:
            session.progress("mechanisms", len(found) + len(failures), len(tasks))
    if failures:
        raise first_failure(failures, "mechanisms")
    return {name: found[name] for name in mechanisms}


def _compared(session: FitSession, released: Mapping[str, _Released]) -> Comparison:
    releases = {name: each.release for name, each in released.items()}
    alone = sum(len(each.asked) for each in released.values())
    column = session.bound.synthesized[0]
    outcome = outcome_of(session.bound)
    found = {DATA: _estimates(session, outcome, DATA, [session.bound.table[column]])}
    for name, release in releases.items():
        sets = [each[column] for each in release.synthetic]
        found[name] = _estimates(session, outcome, name, sets)
    moved = moved_away(session, releases, column)
    if moved:
        text = moved_away_text(moved, column, levels=bool(outcome.shares))
        warnings.warn(text, stacklevel=3)
    return Comparison(
        releases=releases,
        table=pd.DataFrame([_row(name, each, found[name]) for name, each in releases.items()]),
        estimates=_tidy(found),
        outcome=column,
        moved_away=moved,
        fits_made=session.n_fits,
        fits_saved=max(0, alone - session.n_fits),
        session=session,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _RecordingSession(FitSession):
    """The same session, with a record of the fits that one mechanism asks for."""

    asked: set[tuple[Any, ...]] = field(default_factory=set, repr=False)

    def fit(
        self, alpha: FloatArray, *, cap: float | Cap | None = None, **options: Any
    ) -> PosteriorFit:
        own = None if cap is None else Cap.of(cap).key
        self.asked.add((np.asarray(alpha, dtype=np.float64).tobytes(), own))
        return super().fit(alpha, cap=cap, **options)

    def exact_fit(self, alpha: FloatArray, *, cap: Cap, **options: Any) -> PosteriorFit:
        self.asked.add((np.asarray(alpha, dtype=np.float64).tobytes(), cap.key, "exact"))
        return super().exact_fit(alpha, cap=cap, **options)


def _recording(session: FitSession) -> _RecordingSession:
    shared = {f.name: getattr(session, f.name) for f in fields(session)}  # fits are shared, too
    return _RecordingSession(**shared)


def _estimates(
    session: FitSession, outcome: Outcome, source: str, columns: list[pd.Series]
) -> Estimates:
    return outcome.estimates(columns, session.streams.generator(f"estimates/{source}"))


def _row(name: str, release: Release, found: Estimates) -> dict[str, Any]:
    charge, alpha = release.charge, release.confidential.alpha
    assert release.fit is not None
    steps = release.reweighted.steps if release.reweighted is not None else ()
    row: dict[str, Any] = {
        "mechanism": name,
        "lipschitz_bound": charge.bound,
        "epsilon": charge.epsilon,
        "delta": charge.delta,
        "accounting": charge.accounting,
        "epsilon_range": charge.epsilon_range,
        "epsilon_lipschitz": charge.epsilon_lipschitz,
        "kind": charge.kind,
        "relation": charge.relation,
        "n_synthetic": charge.n_synthetic,
        "n_draws_released": charge.n_draws_released,
        "efficiency": release.fit.bounds.efficiency,
        "effective_sample_size": float(alpha.sum() ** 2 / (alpha @ alpha)),
        "refits": sum(step.refitted for step in steps),
        "refits_saved": sum(not step.refitted for step in steps),
    }
    for place, statistic in enumerate(found.statistics):
        row[statistic] = found.estimate[place]
        row[f"{statistic}_lower"] = found.lower[place]
        row[f"{statistic}_upper"] = found.upper[place]
    return row


def _tidy(found: Mapping[str, Estimates]) -> pd.DataFrame:
    rows = [
        {
            "statistic": statistic,
            "source": source,
            "estimate": each.estimate[place],
            "lower": each.lower[place],
            "upper": each.upper[place],
        }
        for place, statistic in enumerate(found[DATA].statistics)
        for source, each in found.items()
    ]
    tidy: pd.DataFrame = pd.DataFrame(rows)
    return tidy
