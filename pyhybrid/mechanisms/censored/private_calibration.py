r"""A center that is estimated privately from the records, where there is no reference.

**Histogram.** For an intercept alone, values drawn from a perturbed histogram on public bins are a
reference like any other: all that `calibrate` does with them is post-processing.

**Rounds.** A first, public theta is far away. Each round clips about the theta before it and
releases one draw at an epsilon of its own, about which the next one clips; the charges add up. Far
from the center terms move a lot, and clipping all of them would leave little information. A round
therefore takes the records at a weight of `records` / n, as if they were few. Its draw is less
precise, and hardly clipped. The next round has a center that is as near as so many records allow,
and takes more. With too many records clipping holds the draw at the center before it; with too few
for so many parameters the draw itself is far off. `usual_rounds` avoids both.

What clipping removes is read from rows that the model itself draws at the center (outcomes
drawn anew for the design, as often as there are records), which costs nothing: see
`pyhybrid.mechanisms.censored.center`.

References
----------
Chaudhuri, Hsu (2011), Sample complexity bounds for differentially private learning, COLT: privacy
of outcomes ("labels") where the predictors are public.

A center at a given theta, with rows that the model itself draws there: no record is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_choice, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import streams
from pyhybrid.fitting.session import FitSession, PosteriorFit, open_session
from pyhybrid.mechanisms.censored.calibration import Calibration, calibrate, categorical_levels
from pyhybrid.mechanisms.censored.censored import Censored
from pyhybrid.mechanisms.censored.center import REGION, Center, at_points
from pyhybrid.mechanisms.perturbed_histogram import PerturbedHistogram, bins_of
from pyhybrid.models.base import Model
from pyhybrid.models.families.regression import BoundRegression, frozen_rows
from pyhybrid.primitives import laplace_counts
from pyhybrid.privacy.censoring import FrozenRows, cap_of_epsilon
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, RELATIONS, add_epsilons, shown
from pyhybrid.privacy.histogram import perturbed_probabilities

_HISTOGRAM_SHARE = 0.25  # of epsilon
_MECHANISM = "calibrate_privately"
_SHARES = (0.1, 0.1, 0.2)
_MOVED = (8.0, 2.0, 0.6)  # nats that a term may move by before it is clipped
_PER_PARAMETER = (10.0, 40.0, 200.0)  # records at least
_STARTED = frozenset(
    ("poisson", "negative_binomial", "beta", "beta_regression", "normal_regression", "bernoulli")
)
_DRAWN = 10_000  # rows at most that the model draws
_STEP = 1e-3  # of coordinates, for the information at a point
_ANYWHERE = 1e6  # standard deviations: no region
_LIMITS = dict.fromkeys(("beta", "beta_regression"), (1e-10, 1 - 1e-10))


@dataclass(frozen=True, kw_only=True)
class Round:
    """One draw that is released on the way to the center.

    Attributes
    ----------
    share : float
        Of epsilon, in (0, 1).
    records : float
        The records count as so many at most: their weight is records / n, or 1.
    """

    share: float
    records: float

    def __post_init__(self) -> None:
        check_positive(self.share, "share")
        check_positive(self.records, "records")


def usual_rounds(
    n: int, n_parameters: int, *, epsilon: float, relation: str = "remove"
) -> tuple[Round, ...]:
    """Three rounds, of a tenth, a tenth and a fifth of epsilon, for `n` records (public), that
    leave terms whole that move by up to 8, 2 and 0.6 nats: what wasted least on five data sets."""
    caps = [cap_of_epsilon(share * epsilon, relation=relation) for share in _SHARES]
    records = [
        max(n * cap / moved, least * n_parameters)
        for cap, moved, least in zip(caps, _MOVED, _PER_PARAMETER, strict=True)
    ]
    return tuple(Round(share=s, records=k) for s, k in zip(_SHARES, records, strict=True))


@bar_in_notebooks
def calibrate_privately(
    model: Model,
    df: Any,
    *,
    epsilon: float,
    relation: str = "remove",
    predictors: str | None = None,
    histogram: tuple[float, float, int] | None = None,
    rounds: Sequence[Round] | None = None,
    start: Mapping[str, Any] | None = None,
    region: float = REGION,
    **options: Any,
) -> Calibration:
    """Buy theta_ref from the records that are to be released.

    Parameters
    ----------
    model : Model
        A built-in one.
    df : DataFrame
        The confidential records.
    epsilon : float
        Of the calibration and of one released draw together, nats. A release from it states both:
        with m draws the release's part m times. Each release from one calibration states all of
        it, so that a ledger counts the calibration again with the next.
    relation : {"remove", "replace"}
    predictors : {"public"}, optional
        Needed where the model has predictors, which a release publishes as they are: they, and with
        them the number of records, are then taken as public. Neighbors differ in the outcome of one
        record; where a record is left out, its predictors stay. The charge says so.
    histogram : (lower, upper, n_bins), optional
        Of an intercept alone: public ends and number of bins of a perturbed histogram of the
        outcome, as in `pyhybrid.PerturbedHistogram`, in the place of rounds. It costs a quarter.
    rounds : sequence of Round, optional
        Public, chosen without looking at the data; shares add up to less than 1. If omitted,
        `usual_rounds`: 40 % of epsilon.
    start : mapping, optional
        A public theta for the first round, by the names of the likelihood's parameters; if omitted
        coefficients of 0 and sizes of 1 or 2.
    region : float, default 10
        As in `calibrate`, for every round but the first.
    **options
        As in `calibrate`. With `seed` the calibration can be repeated by whoever knows it.

    Returns
    -------
    Calibration
        With `bought`, what it cost.

    Raises
    ------
    InvalidInput
        For predictors that are not declared public, wrong rounds, or a model without a center.

    Examples
    --------
    >>> made = ph.mechanisms.calibrate_privately(model, df, epsilon=1, predictors="public")
    >>> ph.Censored(calibration=made).release(df).charge.epsilon
    1.0
    """
    check_positive(epsilon, "epsilon")
    check_choice(relation, "relation", RELATIONS)
    bound = model.bind(df)
    if not isinstance(bound, BoundRegression) or not bound.takes_center:
        raise InvalidInput("calibrate_privately needs a built-in model, whose terms have a center")
    if bound.data_dependent:
        raise InvalidInput(
            f"a calibration needs columns coded record by record: {bound.data_dependent[0]} "
            "depends on all records; compute it beforehand with fixed constants"
        )
    if bound.predictors and predictors != "public":
        raise InvalidInput(
            "predictors='public' must be given: a center is bought at the predictors of the "
            "records, which a release publishes as they are; where they are not public, calibrate "
            "on other records"
        )
    if histogram is not None:
        if bound.predictors:
            raise InvalidInput("a histogram goes with an intercept alone: give rounds")
        return _from_histogram(model, bound, epsilon, relation, histogram, region, options)
    if rounds is None:
        values = _start(bound, start)
        size = sum(np.size(own) for own in values.values())
        rounds = usual_rounds(bound.n, size, epsilon=epsilon, relation=relation)
    if not rounds or sum(each.share for each in rounds) >= 1:
        raise InvalidInput(
            "rounds must be given, and their shares add up to less than 1: the release has the rest"
        )
    session = open_session(bound, **options)
    return _from_rounds(session, epsilon, relation, rounds, start, region)


def _from_histogram(
    model: Model,
    bound: BoundRegression,
    epsilon: float,
    relation: str,
    histogram: tuple[float, float, int],
    region: float,
    options: dict[str, Any],
) -> Calibration:
    """A calibration on values from noisy counts."""
    lower, upper, n_bins = histogram
    (column,) = bound.synthesized
    spent = _HISTOGRAM_SHARE * epsilon
    decimals = None if bound.density_above_one else 0
    PerturbedHistogram(
        column=column, lower=lower, upper=upper, n_bins=n_bins, epsilon=spent, decimals=decimals
    )  # checks
    cells = bins_of(bound.table[column], lower, upper, n_bins, decimals)
    noisy = laplace_counts(cells.place, n_categories=n_bins, epsilon=spent, relation=relation)
    # Counts that noise alone explains are 0: kept, they would be a long tail of n_bins * noise.
    floor = noisy.scale * np.log(n_bins)
    counts = (
        np.where(noisy.value > floor, noisy.value, 0)
        if (noisy.value > floor).any()
        else noisy.value
    )
    shares = perturbed_probabilities(counts, np.zeros(n_bins))
    rng = streams(options.get("seed")).generator("values of a private calibration")
    table = cells.draw(shares, rng).reset_index(drop=True)
    calibration = calibrate(
        model,
        table,
        epsilon=epsilon - spent,
        relation=relation,
        region=region,
        public=True,
        **options,
    )
    bought = replace(
        noisy.charge,
        mechanism=_MECHANISM,
        assumes=(
            "Range and number of the histogram's bins were fixed without the data, and the number "
            "of records is public.",
        ),
    )
    return replace(calibration, bought=bought)


def _from_rounds(
    session: FitSession,
    epsilon: float,
    relation: str,
    rounds: Sequence[Round],
    start: Mapping[str, Any] | None,
    region: float,
) -> Calibration:
    """One released draw after the other."""
    bound = session.bound
    assert isinstance(bound, BoundRegression)
    values = _start(bound, start)
    spent = [float(shown(each.share) * shown(epsilon)) for each in rounds]
    fits: list[PosteriorFit] = []
    known = 0.0  # records that the center was drawn from
    for place, each in enumerate(rounds, start=1):
        weight = min(1.0, each.records / bound.n)
        random = session.streams.child(f"round {place}")  # each draw has random numbers of its own
        center = center_of_model(bound, values, weight, known, region, random.generator("rows"))
        cap = cap_of_epsilon(spent[place - 1], relation=relation)
        mechanism = Censored(
            calibration=_calibration(bound, center, weight, cap, relation, None),
            relation=relation,
            check_modes=False,
        )
        path = mechanism.fit(replace(session, streams=random))
        fits.append(path.fit)
        if path.fit.exact is not None:
            draws, chosen = path.fit.exact.released_draws(1, relation=relation), 0
        else:
            draws = path.fit.draws
            chosen = int(random.generator("draw").integers(draws.n_draws))
        values = {name: draws.flat(name)[chosen] for name in bound.likelihood_parameters}
        known = weight * bound.n
    bought = _bought(bound, fits, spent, relation)
    rest = float(shown(epsilon) - sum(shown(each) for each in spent))
    center = center_of_model(
        bound, values, 1.0, known, region, session.streams.generator("rows of the release")
    )
    cap = cap_of_epsilon(rest, relation=relation)
    return _calibration(bound, center, 1.0, cap, relation, bought)


def _bought(
    bound: BoundRegression, fits: Sequence[PosteriorFit], spent: Sequence[float], relation: str
) -> PrivacyCharge:
    """The charge of all rounds, of which each fit was drawn from once."""
    exact = all(fit.exact is not None for fit in fits)
    how = "exactly, on a grid" if exact else "by chains, which approximate it"
    assumes = [
        f"The center was drawn in {len(fits)} rounds from censored posteriors of these records "
        f"({how}), each at an epsilon of its own; starts, weights and shares of the rounds were "
        "fixed without looking at the data."
    ]
    public = "The number of records" if not bound.predictors else "Predictors of all records"
    assumes.append(
        f"{public} and their order are public: neighbors differ in the outcome of one record, and "
        "where a record is left out the rest of it stays."
    )
    charge = PrivacyCharge.strict(
        mechanism=_MECHANISM, epsilon=add_epsilons(spent), relation=relation, assumes=tuple(assumes)
    )
    if all(fit.converged for fit in fits):
        return charge
    draws = min(fit.draws.n_draws for fit in fits)
    return replace(charge, kind=ASYMPTOTIC_LOCAL, n_draws=draws, converged=False)


def _calibration(
    bound: BoundRegression,
    center: Center,
    weight: float,
    cap: float,
    relation: str,
    bought: PrivacyCharge | None,
) -> Calibration:
    return Calibration(
        model=bound.model,
        draws=at_points({name: values[None] for name, values in center.parameters.items()}),
        lowest=0.0,
        highest=0.0,
        scale=0.0,
        shift=weight,
        cap=cap,
        relation=relation,
        censored=0.0,
        levels=categorical_levels(bound),
        columns=bound.design_columns,
        program_sha256=bound.program.sha256,
        center=center,
        bought=bought,
    )


def _start(bound: BoundRegression, given: Mapping[str, Any] | None) -> dict[str, FloatArray]:
    """The public theta of the first round."""
    K = len(bound.design_columns)
    usual = {"beta": np.zeros(K), "phi": 1.0, "sigma": 1.0, "lambda": 2.0}
    if bound.program.name == "beta":
        usual["phi"] = 0.5
    names = bound.likelihood_parameters
    theta = usual if given is None else given
    if not set(names) <= set(theta) or (given is None and bound.program.name not in _STARTED):
        raise InvalidInput(
            f"start must be given for this model: numbers for {', '.join(names)}, chosen without "
            "looking at the data"
        )
    return {name: np.asarray(theta[name], dtype=np.float64) for name in names}


def center_of_model(
    bound: BoundRegression,
    values: Mapping[str, FloatArray],
    weight: float,
    known: float,
    region: float,
    rng: np.random.Generator,
) -> Center:
    """A center at `values`, with the rows of this `weight` that the model draws there, and their
    spread; `known` records were what `values` were drawn from, 0 for a guess: no region."""
    frozen = _rows_of_model(bound, values, weight, rng)
    form = bound.grid_form
    sd: dict[str, float] = {}
    if form is not None and known:
        at = {n: float(own[0]) for n, own in form.coordinates(_as_draws(values)).items()}
        names = list(at)
        points = {n: np.array([at[n] + _STEP * sign * (n == moved)
                               for moved in names for sign in (1, -1)]) for n in names}  # fmt: skip
        draws = at_points(form.parameters(points))
        rows = bound.frozen_log_lik(frozen, draws)
        f = np.hstack(list(rows.make()))[:, rows.row_of]
        slopes = (f[0::2] - f[1::2]) / (2 * _STEP)
        covariance = np.linalg.inv(slopes @ slopes.T / frozen.n * known)
        sd = {n: float(np.sqrt(covariance[i, i])) for i, n in enumerate(names)}
    reach = region * np.sqrt(frozen.n / known) if known else _ANYWHERE
    return Center(
        parameters={name: np.asarray(own, dtype=np.float64) for name, own in values.items()},
        sd=sd,
        region=region if sd else float(reach),
        public=True,
        frozen=frozen,
    )


def _rows_of_model(
    bound: BoundRegression,
    values: Mapping[str, FloatArray],
    weight: float,
    rng: np.random.Generator,
) -> FrozenRows:
    """Outcomes that the model draws at the predictors of the records, which are public."""
    design = bound.design
    if bound.predictors and bound.n <= _DRAWN:
        places = np.arange(bound.n)
    elif bound.predictors:
        places = np.sort(rng.choice(bound.n, _DRAWN, replace=False))
    else:
        places = np.zeros(_DRAWN, dtype=np.intp)  # one row is as good as another
    X, offset = design.X[places], design.offset[places]
    y = bound.model.draw_outcome(dict(values), X, rng, offset)
    y = np.clip(y, *_LIMITS.get(bound.program.name, (-np.inf, np.inf)))
    drawn = replace(design, y=y, X=X, offset=offset)
    f = bound.model.log_lik(_as_draws(values), y, X, offset)[0]
    if not np.isfinite(f).all():
        raise InvalidInput("start must be a parameter at which the model can draw outcomes")
    return frozen_rows(drawn, np.full(y.size, weight), f)


def _as_draws(values: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    return {name: np.asarray(theta, dtype=np.float64)[None] for name, theta in values.items()}
