r"""The reference of a censored mechanism: theta_ref, its region, and digests of its records.

A record's term is clipped less its value at theta_ref, c_i = log p(x_i | theta_ref): clipping then
starts where a term has moved by M, and not where it has the size M. theta_ref is public, or comes
from a reference whose own records no charge of the new release covers.

**The excess.** Clipping removes what long tails contribute: a posterior of clipped terms moves
towards a likelihood with shorter ones, and under a small cap it ends in another mode. What is
removed on average is a function of theta that the reference can estimate:

.. math:: e(\theta) = \frac{1}{n_0} \sum_{j \in reference} g_j(\theta) - clip(g_j(\theta)),
   \quad g_j = \alpha_j (f_j(\theta) - f_j(\theta_{ref}))

It is frozen, and moves the center of every new term: :math:`h_i = clip(g_i + e)`. Where the new
records are like those of the reference, their sum has nearly the expectation of the sum without
clipping. What is subtracted from f_i is still a function of the own record and of frozen
quantities, so that h_i ranges over 2 M whatever e is: leaving a record out costs 2 M and replacing
it 4 M, as without the excess. (Added after clipping, it would move with the number of records.)

**The region.** Far away, where nearly every term is clipped, the records have no information and a
mode may be anywhere. Chains stay where the log-likelihood of the reference falls by at most half
the square of `region`, the ellipsoid of so many posterior standard deviations about theta_ref.
Beyond, the log density falls by ten nats for each that the reference's own falls, a frozen prior
that costs nothing. A grid ends there. A truth outside costs accuracy, not privacy;
`Calibration.drift` says how far it is.

**Shared records.** The program also looks for released records that are in the reference. A
calibration keeps a digest of each of its records under a key of its own. Records of another
database coincide with them by chance, often so where values are few; what chance explains is
computed from how often each record occurs in both databases together:

If both were drawn from one population, any split of the pooled records into parts of n_0 and n_1 is
as likely as any other. A record that occurs t times in all is then found c_1 times in the new data,
c_1 hypergeometric, and min(c_1, t - c_1) of its occurrences coincide. The sum over distinct records
has a mean and a variance under chance alone; records are shared if it is more than 3 standard
deviations above its mean, or if the two databases hold exactly the same records. Ten records that
occur in both and nowhere twice in one are found among any number of others. Two databases with few
distinct records are told apart by their other columns, or not at all: a part of a binary column is
what any other column of its kind would be. This is a help, and no charge depends on it: the owner
has to confirm that the reference holds no released record.

Of pairs of databases of 400 records that share half of them in one column, so many are found: of
1,000 equally likely values 1.00, 100 of them .94, counts about 100 .31, about 5 .01, binary .04.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_flag, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Draws
from pyhybrid.fitting.exact import frozen_draws
from pyhybrid.models.base import BoundModel
from pyhybrid.models.composite.steps import BoundParts
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.models.grid import Axis, GridForm, ParameterGrid
from pyhybrid.privacy.censoring import Cap, FrozenTerms
from pyhybrid.releases.data_fingerprint import normalized

REGION = 10.0
"""Half width of the default region, in posterior standard deviations of the reference."""
_SIZES = {1: 20_000, 2: 500}  # points of an axis, by the number of axes
_NODES = {1: 401, 2: 81}  # of the excess, which is smooth
_MOST_FROZEN = 10_000  # records
_STANDARD_DEVIATIONS = 3.0
_FAR = 40.0  # standard deviations, beyond which nothing is left of a law of counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Center:
    """theta_ref, and where the grid around it ends."""

    parameters: Mapping[str, FloatArray]  # of the likelihood, shape (*dims) each
    sd: Mapping[str, float]  # of the grid's coordinates under the reference; empty without a grid
    region: float  # half width of the grid, in these
    public: bool  # True if the reference is public
    frozen: FrozenTerms | None = field(default=None, repr=False)  # of the excess and the region

    def __post_init__(self) -> None:
        check_positive(self.region, "region")
        check_flag(self.public, "public")
        for name, values in self.parameters.items():
            if not np.isfinite(values).all():
                raise InvalidInput(f"center must be finite: {name!r} is not")
        for name, sd in self.sd.items():
            check_positive(sd, f"standard deviation of {name!r}")

    def __repr__(self) -> str:
        return f"<Center of {', '.join(self.parameters)}, region {self.region:g}>"

    def log_lik(self, bound: BoundModel) -> FloatArray:
        """c_i of the records of `bound`, each a function of its own record, shape (n,), nats."""
        return log_lik_at(bound, self.parameters)

    def grid(self, form: GridForm) -> ParameterGrid | None:
        """The grid within the region; None if the reference's spread is not known."""
        if set(self.sd) != {axis.name for axis in form.axes}:
            return None
        size = _SIZES[len(form.axes)]
        at = form.coordinates({name: values[None] for name, values in self.parameters.items()})
        axes = []
        for axis in form.axes:
            middle, half = float(at[axis.name][0]), self.region * self.sd[axis.name]
            ends = {"lower": middle - half, "upper": middle + half}
            axes.append(Axis(name=axis.name, size=size, **ends))
        return ParameterGrid(axes=tuple(axes))

    def excess_on(
        self, bound: BoundModel, form: GridForm, grid: ParameterGrid, cap: Cap
    ) -> FloatArray | None:
        """e at the candidates of a grid, shape (C,), nats, from nodes; None without frozen rows."""
        if self.frozen is None:
            return None
        from scipy.interpolate import CubicSpline, RectBivariateSpline  # slow to import

        assert isinstance(bound, BoundRegression)
        k = _NODES[len(grid.axes)]
        nodes = [np.linspace(axis.lower, axis.upper, k) for axis in grid.axes]
        mesh = np.meshgrid(*nodes, indexing="ij")
        at = {axis.name: each.ravel() for axis, each in zip(form.axes, mesh, strict=True)}
        draws = at_points(form.parameters(at))
        lost = cap.excess(bound.frozen_log_lik(self.frozen, draws)).reshape([k] * len(nodes))
        points = [axis.points for axis in grid.axes]
        if len(nodes) == 1:
            return np.asarray(CubicSpline(nodes[0], lost)(points[0]))
        return np.asarray(RectBivariateSpline(*nodes, lost)(*points).ravel())

    def cap(self, bound: BoundModel, size: float) -> Cap:
        """The clip of the records of `bound` to [-size, size] about this center."""
        return Cap(
            below=size,
            above=size,
            reference=self.log_lik(bound),
            frozen=self.frozen,
            region=self.region,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types, without the frozen rows."""
        return {
            "parameters": {name: np.asarray(v).tolist() for name, v in self.parameters.items()},
            "sd": dict(self.sd),
            "region": self.region,
            "public": self.public,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], frozen: FrozenTerms | None = None) -> Center:
        """Inverse of `as_dict`, with the frozen rows."""
        return cls(
            parameters={name: np.array(own, dtype=np.float64)
                        for name, own in fields["parameters"].items()},
            sd={str(name): float(sd) for name, sd in fields["sd"].items()},
            region=fields["region"],
            public=fields["public"],
            frozen=frozen,
        )  # fmt: skip


def at_points(values: Mapping[str, FloatArray]) -> Draws:
    """Points (S, *dims), which no engine made, as draws."""
    provenance: Any = None
    return frozen_draws(values, provenance)


def log_lik_at(bound: BoundModel, parameters: Mapping[str, FloatArray]) -> FloatArray:
    """Log-likelihood of the records at one point, shape (n,)."""
    names = bound.likelihood_parameters
    if set(parameters) != set(names):
        raise InvalidInput(
            f"center must have the parameters of the likelihood, {', '.join(names)}: found "
            f"{', '.join(sorted(parameters)) or 'none'}"
        )
    try:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return bound.log_lik(at_points({n: parameters[n][None] for n in names})).highest
    except InvalidInput:
        raise
    except (ValueError, IndexError):
        raise InvalidInput(
            "center must have the shapes of the model's parameters, such as one number in a list "
            "for each column of the design: it has others"
        ) from None


def center_of_draws(bound: BoundModel, draws: Draws, *, region: float, public: bool) -> Center:
    """Posterior mean of `draws`, of each parameter or its logarithm; where that fits worse than
    most draws do, as where components change labels, the draw that fits best."""
    form, values = bound.grid_form, {n: draws.flat(n) for n in bound.likelihood_parameters}
    if form is not None:
        at = form.coordinates(values)
        mean = form.parameters({name: points.mean(keepdims=True) for name, points in at.items()})
        return Center(
            parameters={name: points[0] for name, points in mean.items()},
            sd={name: float(points.std(ddof=1)) for name, points in at.items()},
            region=region,
            public=public,
        )
    middle = {name: _mean(draws_of) for name, draws_of in values.items()}
    total = bound.log_lik(draws).total(np.ones(bound.n))
    if not log_lik_at(bound, middle).sum() >= np.median(total):
        best = int(np.argmax(np.where(np.isnan(total), -np.inf, total)))
        middle = {name: np.asarray(draws_of[best]) for name, draws_of in values.items()}
    return Center(parameters=middle, sd={}, region=region, public=public)


def with_frozen_rows(
    center: Center, bound: BoundModel, alpha: FloatArray, rng: np.random.Generator
) -> Center:
    """The center with the records of `bound`, under weights `alpha` (n,), as its frozen rows, at
    most 10,000 at random. A program of the user's own takes none."""
    if not isinstance(bound, BoundRegression | BoundParts):
        return center
    terms = center.log_lik(bound)
    usable = np.flatnonzero(np.isfinite(terms))
    if not usable.size:
        raise InvalidInput("the reference must have records with a finite log-likelihood")
    if usable.size > _MOST_FROZEN:
        usable = np.sort(rng.choice(usable, _MOST_FROZEN, replace=False))
    return replace(center, frozen=bound.frozen(alpha, terms, usable))


def given_center(values: Mapping[str, float | Sequence[float]]) -> Center:
    """A public theta_ref of the user's, without a region."""
    try:
        parameters = {str(name): np.array(at, dtype=np.float64) for name, at in values.items()}
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(
            "center must be numbers by the names of the likelihood's parameters, such as "
            "{'beta': [0.7], 'phi': 1.2}"
        ) from None
    return Center(parameters=parameters, sd={}, region=REGION, public=True)


def _mean(values: FloatArray) -> FloatArray:
    """Over draws (S, *dims); geometric where all are above 0."""
    positive = np.all(values > 0, axis=0)
    log = np.log(np.where(positive, values, 1.0)).mean(axis=0)
    return np.asarray(np.where(positive, np.exp(log), values.mean(axis=0)))


Digests = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReferenceRecords:
    """Keyed digests of a reference's records, ascending: `of_model` (n,) of outcome and predictors,
    `of_row` (n,) of all `columns`. Confidential, and so is the key."""

    key: str = field(repr=False)
    columns: tuple[str, ...]
    of_model: Digests
    of_row: Digests

    def __repr__(self) -> str:
        return f"<ReferenceRecords: digests of {self.of_model.size} records>"

    def shared_with(self, bound: BoundModel) -> bool:
        """True if `bound` has more of the reference's records than chance explains."""
        times = getattr(bound, "times", None)
        if more_alike_than_by_chance(self.of_model, _of_model(bound, self.key), times):
            return True
        return _columns(bound.table) == self.columns and more_alike_than_by_chance(
            self.of_row, _digests(bound.table, self.columns, self.key), times
        )


def reference_records(bound: BoundModel) -> ReferenceRecords:
    """Digests of the records of `bound`, under a new key."""
    key, columns = secrets.token_hex(16), _columns(bound.table)
    return ReferenceRecords(
        key=key,
        columns=columns,
        of_model=np.sort(_of_model(bound, key)),
        of_row=np.sort(_digests(bound.table, columns, key)),
    )


def more_alike_than_by_chance(
    one: Digests, other: Digests, times: FloatArray | None = None
) -> bool:
    """True if two sets of records (n_0,) and (n_1,) share more than chance explains; those of the
    second each stand for so many `times` alike (n_1,), 1 if omitted."""
    if not one.size or not other.size:
        return False
    from scipy import stats  # slow to import

    records, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    in_one = np.bincount(place[: one.size], minlength=records.size)
    others = np.bincount(place[one.size :], weights=times, minlength=records.size)
    in_other = others.astype(np.int64)
    if np.array_equal(in_one, in_other):
        return True
    shared = int(np.minimum(in_one, in_other).sum())
    mean, variance, n_other = 0.0, 0.0, int(in_other.sum())
    in_both, records_of = np.unique(in_one + in_other, return_counts=True)
    for t, n_records in zip(in_both.tolist(), records_of.tolist(), strict=True):
        law = stats.hypergeom(one.size + n_other, t, n_other)
        middle, far = float(law.mean()), _FAR * (1 + float(law.std()))
        found = np.arange(max(0, int(middle - far)), min(t, int(middle + far)) + 1)
        chance, alike = law.pmf(found), np.minimum(found, t - found)
        own_mean = float(chance @ alike)
        mean += n_records * own_mean
        variance += n_records * float(chance @ (alike - own_mean) ** 2)
    return shared - mean > _STANDARD_DEVIATIONS * math.sqrt(max(variance, 0.0))


def shares_records(one: pd.DataFrame, other: pd.DataFrame, columns: Sequence[str]) -> bool:
    """True if two tables share more records, in these columns, than chance explains."""
    key = secrets.token_hex(16)
    digests = [_digests(table, columns, key) for table in (one, other)]
    return more_alike_than_by_chance(digests[0], digests[1])


def _of_model(bound: BoundModel, key: str) -> Digests:
    return _digests(bound.table, [*bound.synthesized, *bound.predictors], key)


def _columns(table: pd.DataFrame) -> tuple[str, ...]:
    return tuple(sorted(str(name) for name in table.columns))


def _digests(table: pd.DataFrame, columns: Sequence[str], key: str) -> Digests:
    """One digest for each record, of the columns given, shape (n,)."""
    secret = bytes.fromhex(key)

    def digest(content: bytes) -> bytes:
        return hashlib.blake2b(content, key=secret, digest_size=8).digest()

    place = {str(name): i for i, name in enumerate(table.columns)}
    coded = np.empty((len(table), len(columns)), dtype=np.uint64)
    for i, name in enumerate(columns):
        values = normalized(table.iloc[:, place[name]])
        distinct, code = np.unique(values, return_inverse=True)
        texts = [each.tobytes() if values.dtype.kind == "f" else str(each).encode()
                 for each in distinct]  # fmt: skip
        hashed = np.frombuffer(b"".join(map(digest, texts)), dtype=np.uint64)
        coded[:, i] = hashed[code]
    rows = b"".join(digest(row.tobytes()) for row in coded)
    return np.frombuffer(rows, dtype=np.uint64)
