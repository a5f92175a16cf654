"""Sampling of records by a survey: design weights, strata, clusters; estimates that use them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from pyhybrid.core.checks import (
    FloatArray,
    check_count,
    check_fraction,
    check_positive,
    did_you_mean,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.arrays.estimates import check_weights

_FAR_OFF = 0.1
_LARGEST = 1e15
"""Of a weight: beyond it sums and shares leave what floats can hold."""


@dataclass(frozen=True, kw_only=True)
class SurveyDesign:
    """How the records of a table were sampled.

    Parameters
    ----------
    weights : str
        Column of design weights: how many members of the population a record stands for; above 0.
    strata, clusters : str, optional
        Columns of strata and of primary sampling units. A cluster's code is read within its
        stratum.
    unit : str, optional
        Column that says whose rows they are, e.g. the household: the unit of privacy of mechanisms
        with this design, and the cluster if `clusters` is omitted.
    population : float, optional
        The number of members of the population, if it is public. Weights w are then normalized by
        it, n w / population, a function of the own record. If omitted they are normalized by their
        sum over the sample, which all records enter: no charge is then strict.
    largest : float, optional
        Public bound: normalized weights above it are set to it, so that no record counts for more.
        Only with `population`: normalized by their sum, all others would move with any record.
    calibrated : bool, default False
        True if weights were raked or calibrated after sampling: they are then functions of other
        records, too, and no charge is strict.

    References
    ----------
    Hu, Savitsky, Williams (2022), private tabular survey data products, J. Survey Statistics and
    Methodology; Savitsky, Toth (2016), Electronic J. Statistics 10:1677-1708, for the pseudo
    posterior under normalized weights.
    """

    weights: str
    strata: str | None = None
    clusters: str | None = None
    unit: str | None = None
    population: float | None = None
    largest: float | None = None
    calibrated: bool = False

    def __post_init__(self) -> None:
        for name in ("weights", "strata", "clusters", "unit"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name != "weights"):
                raise InvalidInput(f"{name} of a survey must be the name of a column: {value!r}")
        for name in ("population", "largest"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name)
        if self.largest is not None and self.population is None:
            raise InvalidInput(
                "largest of a survey must come with population, the public number that its weights "
                "stand for: normalized by their sum, weights of others move when a record leaves, "
                "but not those at this bound"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the design names."""
        named = (self.weights, self.strata, self.clusters, self.unit)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def reads_others(self) -> tuple[str, ...]:
        """What makes a record's weight depend on other records; empty if nothing does."""
        found = []
        if self.population is None:
            found.append(f"survey weights {self.weights}, normalized by their sum")
        if self.calibrated:
            found.append(f"survey weights {self.weights}, calibrated on other records")
        return tuple(found)

    def describe(self) -> dict[str, Any]:
        """Public settings."""
        return asdict(self)

    def read(self, table: pd.DataFrame) -> SurveyRecords:
        """The design of each record.

        Raises
        ------
        InvalidInput
            For a column that is not there; weights that are missing, not numbers, or not above 0; a
            stratum with a single cluster; a unit with rows in two strata.
        """
        if not isinstance(table, pd.DataFrame) or table.empty:
            raise InvalidInput("a survey's table must be a DataFrame with at least one row")
        self.check_columns(table)
        weight = design_weights(table[self.weights], self.weights)
        stratum = _codes(table, self.strata)
        clusters = self.clusters or self.unit
        cluster = np.arange(len(table)) if clusters is None else _codes(table, clusters)
        cluster = pd.factorize(stratum * (int(cluster.max()) + 1) + cluster)[0].astype(np.intp)
        if self.unit is not None and self.strata is not None:
            unit = _codes(table, self.unit)
            if len(np.unique(np.column_stack([unit, stratum]), axis=0)) > unit.max() + 1:
                raise InvalidInput(
                    f"all rows of a unit {self.unit!r} must be in one stratum {self.strata!r}: one "
                    "has rows in two"
                )
        pairs = np.unique(np.column_stack([stratum, cluster]), axis=0)
        if self.strata is not None and (np.bincount(pairs[:, 0]) < 2).any():
            raise InvalidInput(
                f"every stratum of {self.strata!r} must have at least two clusters, for a "
                "variance: one has a single one; merge strata"
            )
        return SurveyRecords(weight=weight, stratum=stratum, cluster=cluster)

    def check_columns(self, table: pd.DataFrame) -> None:
        """Raise InvalidInput for a column that is not there."""
        for name in self.columns:
            if name not in table.columns:
                raise InvalidInput(
                    f"survey column {name!r} must be a column of the data"
                    f"{did_you_mean(name, table.columns)}"
                )

    def normalized(self, table: pd.DataFrame) -> FloatArray:
        """Weights that average about 1, shape (n,): n w / population, no larger than `largest`."""
        weight = design_weights(table[self.weights], self.weights)
        total = float(weight.sum()) if self.population is None else self.population
        if not _FAR_OFF < weight.sum() / total < 1 / _FAR_OFF:
            warnings.warn(
                f"population must be the number of members that the weights {self.weights!r} "
                "stand for together: they add up to less than a tenth of it, or to more than ten "
                "times as much, so that each record counts for far too little or too much",
                stacklevel=2,
            )
        scaled = weight * (weight.size / total)
        return scaled if self.largest is None else np.minimum(scaled, self.largest)

    def scale_without(self, table: pd.DataFrame, unit_of: npt.NDArray[np.intp]) -> FloatArray:
        """Factor of all other normalized weights when a unit leaves, (n_units,).

        1 where the population is given: the number of records is public.
        """
        weight = design_weights(table[self.weights], self.weights)
        own, rows = (np.bincount(unit_of, weights=of) for of in (weight, np.ones(weight.size)))
        if self.population is not None:
            return np.ones(own.size)
        left = np.maximum(weight.sum() - own, np.finfo(np.float64).tiny)
        return np.asarray((weight.size - rows) / weight.size * weight.sum() / left)


@dataclass(frozen=True, kw_only=True, eq=False)
class SurveyRecords:
    """The design of n records: weights above 0; codes of strata and of clusters, which differ
    between strata, (n,). Confidential."""

    weight: FloatArray
    stratum: npt.NDArray[np.intp]
    cluster: npt.NDArray[np.intp]

    def __repr__(self) -> str:
        return f"<SurveyRecords of {self.weight.size} records, confidential>"


@dataclass(frozen=True, kw_only=True)
class DesignEstimate:
    """A design-based estimate; its interval by Student's t with `degrees` clusters less strata."""

    estimate: float
    standard_error: float
    lower: float
    upper: float
    degrees: int


def survey_mean(values: Any, records: SurveyRecords, *, level: float = 0.95) -> DesignEstimate:
    r"""Weighted mean with its design-based interval.

    The ratio of two weighted totals, linearized; clusters are taken as drawn with replacement
    within strata, so that

    .. math:: v = \sum_h \frac{m_h}{m_h - 1} \sum_c (z_{hc} - \bar z_h)^2, \qquad
              z_{hc} = \sum_{i \in c} w_i (y_i - \bar y_w) / \sum_j w_j.

    Parameters
    ----------
    values : array_like, shape (n,)
        Numbers, without missing ones; of a share, 0 and 1.
    records : SurveyRecords
        `SurveyDesign.read` of the same records.
    level : float, default 0.95
        Of the interval, in (0, 1).

    References
    ----------
    Wolter (2007), Introduction to variance estimation, ch. 6.
    """
    y = np.asarray(values, dtype=np.float64)
    if y.shape != records.weight.shape or not np.isfinite(y).all():
        raise InvalidInput(
            f"values must be {records.weight.size} finite numbers, one per record of the design"
        )
    check_fraction(level, "level")
    share = records.weight / records.weight.sum()
    mean = float(share @ y)
    cluster, of = np.unique(records.cluster, return_inverse=True)
    z = np.bincount(of, weights=share * (y - mean))
    stratum = np.zeros(cluster.size, dtype=np.intp)
    stratum[of] = records.stratum
    count = np.bincount(stratum)
    check_count(int(count[count > 0].min()), "clusters of a stratum", at_least=2)
    middle = (np.bincount(stratum, weights=z) / np.maximum(count, 1))[stratum]
    variance = float(((count / np.maximum(count - 1, 1))[stratum] * (z - middle) ** 2).sum())
    degrees = int(cluster.size - (count > 0).sum())
    error = variance**0.5
    half = float(stdtrit(degrees, (1 + level) / 2)) * error
    return DesignEstimate(
        estimate=mean, standard_error=error, lower=mean - half, upper=mean + half, degrees=degrees
    )


def design_weights(column: pd.Series, name: str) -> FloatArray:
    """A column of design weights (n,), each from 1e-15 to 1e15; others are refused."""
    try:
        weight = np.asarray(column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise InvalidInput(f"survey weights {name!r} must be numbers") from None
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))
    if wrong.size:
        raise InvalidInput(
            f"survey weights {name!r} must be above 0 and not missing: {wrong.size} of "
            f"{weight.size} are not"
        )
    if weight.size and (weight.max() > _LARGEST or weight.min() < 1 / _LARGEST):
        raise InvalidInput(f"survey weights {name!r} must be from {1 / _LARGEST:g} to {_LARGEST:g}")
    return weight


def _codes(table: pd.DataFrame, name: str | None) -> npt.NDArray[np.intp]:
    if name is None:
        return np.zeros(len(table), dtype=np.intp)
    try:
        codes = pd.factorize(table[name])[0]
    except TypeError:
        raise InvalidInput(
            f"survey column {name!r} must hold values that can be compared"
        ) from None
    if (codes < 0).any():
        raise InvalidInput(f"survey column {name!r} must not be missing: {(codes < 0).sum()} are")
    return np.asarray(codes, dtype=np.intp)


Weights: TypeAlias = str | SurveyDesign | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampled:
    """Design weights (n,) of a table, None if all are 1, and codes of its clusters (n,), None
    without a design. Confidential for the data."""

    weights: FloatArray | None
    clusters: npt.NDArray[np.intp] | None

    def __repr__(self) -> str:
        return "<Sampled: design weights, confidential>"


def read_sampled(
    real: pd.DataFrame, sets: Sequence[pd.DataFrame], names: Sequence[str], weights: Weights
) -> tuple[Sampled, ...]:
    """Weights and clusters of the data and of each set, 1 + m; empty without `weights`."""
    if weights is None:
        return ()
    if not isinstance(weights, (str, SurveyDesign)):
        raise InvalidInput(
            "weights must name a column or be a SurveyDesign: found "
            f"{type(weights).__name__}; put weights that are no column into one"
        )
    if isinstance(weights, str) and weights not in real.columns:
        raise InvalidInput(f"weights must name a column of the data: {weights!r} is not one")
    read = []
    for table, name in zip([real, *sets], ["the data", *names], strict=True):
        try:
            read.append(_read(table, weights, is_data=table is real))
        except InvalidInput as error:
            raise InvalidInput(f"{error} (in {name})") from None
    return tuple(read)


def _read(table: pd.DataFrame, weights: Weights, *, is_data: bool) -> Sampled:
    column = weights.weights if isinstance(weights, SurveyDesign) else str(weights)
    if isinstance(weights, SurveyDesign) and (is_data or set(weights.columns) <= {*table.columns}):
        records = weights.read(table)
        return Sampled(weights=check_weights(records.weight, len(table)), clusters=records.cluster)
    own: Any = design_weights(table[column], column) if column in table.columns else None
    clusters = np.arange(len(table)) if isinstance(weights, SurveyDesign) else None
    return Sampled(weights=check_weights(own, len(table)), clusters=clusters)
