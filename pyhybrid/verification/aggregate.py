r"""Verification of an estimate by subsample and aggregate, with noise from OpenDP.

The n records are dealt at random into B blocks, whatever their values are. Each block gives its own
estimate of the number asked for; its difference from the synthetic data's is moved into
[-reach, reach]; the mean of the B differences gets Laplace noise. One record is in one block: with
it, without it or with other values, one difference changes, by at most 2 reach, and the mean by at
most 2 reach / B:

.. math:: \text{scale} = 2\,\text{reach} / (B\,\epsilon).

The charge is strict, for any data and any estimator: a block whose estimate fails counts as one
that differs by `reach`. No block sees what another holds, not by a dtype or a level either: types
are public, and each entry is read by itself (`pyhybrid.verification.queries`).

**What the interval holds.** The noise is the only thing that it knows of: it holds the mean over
the blocks of the differences, moved into the reach, with the probability that it states, whatever
the data are. That is not the difference of all records: blocks differ in size, a quantile or a
coefficient of 100 records is biased, and reach cuts. Where the noise is small beside that, an
interval of 95 % holds the difference of all records less often: of 2,000 normal records, 2,000
repetitions each, for a mean in 20 blocks .95 at epsilon 1, .95 at 4, .92 at 10, in 100 blocks .95,
.78, .43; for a 90 % quantile in 20 blocks .95, .83, .46. Few blocks and a small epsilon keep what
is asked and what is answered together.

**Reach.** A block's estimate varies about sqrt(B) times as much as that of all records. With the
tolerance about two standard errors, a reach of (1 + sqrt(B)) tolerances leaves nearly all blocks
unclipped, and the noise has a scale of about 2 tolerance / (sqrt(B) epsilon).

References
----------
[NRS07] Nissim, Raskhodnikova, Smith (2007). Smooth sensitivity and sampling in private data
analysis, STOC, sec. 4. [S11] Smith (2011). Privacy-preserving statistical estimation with optimal
convergence rates, STOC. Verification servers: Barrientos, Bolton, Balmat, Reiter et al. (2018),
Annals of Applied Statistics 12:1124-1156.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_positive,
    did_you_mean,
    in_memory,
    not_a_frame,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import html_rows
from pyhybrid.fitting.session import read_units
from pyhybrid.measures.tables.reconcile import each_in_memory, synthetic_sets
from pyhybrid.models.columns.kinds import Kind
from pyhybrid.primitives.laplace import LaplaceAnswer, laplace_mean
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import RELATIONS
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.verification.queries import (
    ColumnTypes,
    Query,
    Share,
    coerced,
    column_types,
    read_query,
)

_FEWEST_BLOCKS, _MOST_BLOCKS, _RECORDS = 10, 100, 100
_SURE = 0.9  # the probability that counts as an answer


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Verification(LaplaceAnswer):
    """A private answer to whether an estimate holds; all of it may be published.

    Attributes
    ----------
    value : float
        Confidential estimate less the synthetic one, by blocks, with noise.
    sensitivity, scale : float
        Of the mean over blocks, and of its Laplace noise.
    query : str
        What was asked.
    synthetic : float
        The estimate from the synthetic sets (their average).
    tolerance, reach : float
        Both public, in the unit of the estimate.
    blocks : int
        B.
    """

    value: float
    query: str
    synthetic: float
    tolerance: float
    reach: float
    blocks: int

    def _repr_html_(self) -> str:
        rows = {
            "asked": self.query,
            "synthetic estimate": f"{self.synthetic:.4g}",
            "difference, with noise": f"{self.value:.4g}",
            "tolerance": f"{self.tolerance:.4g}",
            "within": "yes" if self.within else "no",
            "probability that it is within": f"{self.probability:.3f}",
            "privacy loss": self.charge.cost,
        }
        return html_rows("Verification", rows)

    @property
    def within(self) -> bool:
        """True if the noisy difference is within the tolerance."""
        return abs(self.value) <= self.tolerance

    @property
    def probability(self) -> float:
        """Probability that the difference without noise is within the tolerance.

        Given the noisy one, with every difference in [-reach, reach] as likely as any other; in
        [0, 1]. It speaks of the noise alone, not of what blocks lose against all records.
        """
        ends = np.array([-self.reach, -self.tolerance, self.tolerance, self.reach])
        low, left, right, high = (_laplace_cdf((end - self.value) / self.scale) for end in ends)
        return float((right - left) / (high - low)) if high > low else float(self.within)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Holds the difference without noise with this probability, in (0, 1).

        That is the mean over the blocks, each moved into the reach: what blocks lose against all
        records is not in it; see the module for how much that is.
        """
        half = self.margin(confidence)
        low, high = np.clip([self.value - half, self.value + half], -self.reach, self.reach)
        return float(low), float(high)

    def summary(self) -> str:
        """In words, for the analyst."""
        low, high = self.interval()
        p = self.probability
        found = "it holds" if p >= _SURE else "it does not hold" if p <= 1 - _SURE else (
            "undecided, as the noise is too large; a larger tolerance or epsilon decides"
        )  # fmt: skip
        return (
            f"{self.query}: {self.synthetic:g} in the synthetic data. It is within "
            f"{self.tolerance:g} of that in the confidential data with probability {p:.2f}: "
            f"{found}. Confidential less synthetic, mean over {self.blocks} blocks, with noise: "
            f"{self.value:.4g}; without noise in [{low:.4g}, {high:.4g}] with probability 0.95. "
            f"Strict epsilon {self.charge.epsilon:g}, {self.charge.relation} one "
            f"{self.charge.unit or 'record'}."
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "query": self.query,
            "within": self.within,
            "probability": self.probability,
            "difference": float(self.value),
            "interval_95": list(self.interval()),
            "synthetic": self.synthetic,
            "tolerance": self.tolerance,
            "reach": self.reach,
            "blocks": self.blocks,
            "noise_scale": self.scale,
            "charge": self.charge.public(),
        }


def verify(
    release: Any,
    data: Any,
    query: Query | str,
    *,
    tolerance: float,
    epsilon: float,
    relation: str = "remove",
    unit: str | None = None,
    blocks: int | None = None,
    reach: float | None = None,
    types: Mapping[str, Kind | Mapping[str, Any]] | None = None,
    ledger: Ledger | None = None,
) -> Verification:
    """Verify that an estimate from synthetic data holds in the confidential data, within tolerance.

    Parameters
    ----------
    release : Release, DataFrame or sequence of DataFrame
        Synthetic sets as they are published, also some that were made elsewhere. The estimate is
        their average, and columns are of the types that they have.
    data : DataFrame, or a table that stays where it is
        Confidential records. Not modified. Of what `pyhybrid.sources.open_source` takes, the
        columns of the query, of all rows, up to 5,000,000; synthetic sets may be such tables, too.
    query : Query or str
        `Mean`, `Share`, `Quantile`, `Coefficient`, an object of your own that meets `Query`, or a
        text as on the command line, e.g. ``"mean:income"`` (see `read_query`).
    tolerance : float
        Above 0, in the unit of the estimate; public. About twice the standard error of the
        synthetic analysis is sensible: with a far smaller one, the noise dominates.
    epsilon : float
        Above 0, nats.
    relation : {"remove", "replace"}
        What the charge states; the noise is the same, as one block changes under either.
    unit : str, optional
        Column of persons or households: all rows of one go into one block, and epsilon protects all
        of them. One row if omitted.
    blocks : int, optional
        B, at least 10. By default n / 100, from 10 to 100; n is public.
    reach : float, optional
        Above the tolerance; (1 + sqrt(B)) tolerances if omitted. Public.
    types : mapping of str to Kind, optional
        Of columns that differ in kind from the synthetic sets: numbers for `ph.Real()` and the
        like, levels for `ph.Nominal(levels=...)`; never read from the data. An entry that is no
        number, or none of the levels, is missing in its own block.
    ledger : Ledger, optional
        The answer's charge is entered before the answer is returned.

    Raises
    ------
    InvalidInput
        For an unknown column, a query that the synthetic sets do not answer, fewer records in a
        block than the estimate needs, or a tolerance, reach or epsilon out of range. No error
        depends on confidential values.
    BudgetExceeded
        If the ledger has less left; no answer is given.
    EngineUnavailable
        If OpenDP is not installed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> real = pd.DataFrame({"y": np.arange(5000) % 10})
    >>> answer = verify(real, real, "mean:y", tolerance=0.5, epsilon=5)
    >>> answer.within, answer.charge.epsilon
    (True, 5.0)
    """
    asked = read_query(query) if isinstance(query, str) else query
    if not isinstance(asked, Query):
        raise InvalidInput(f"query must be a Query, or its text: found {type(query).__name__}")
    check_choice(relation, "relation", RELATIONS)
    accepted = check_positive(tolerance, "tolerance")
    eps = check_positive(epsilon, "epsilon")
    data = in_memory(data, columns=[*asked.columns, *([] if unit is None else [unit])])
    _check_table(data, asked)
    made = release.synthetic if isinstance(release, Release) else release
    sets = synthetic_sets(each_in_memory(made, columns=asked.columns))
    for place, table in enumerate(sets, start=1):
        _check_columns(table, asked, f"synthetic set {place}")
    named = {asked.column: (asked.level,)} if isinstance(asked, Share) else {}
    read = column_types(sets, types, named)
    synthetic = _of_synthetic(sets, asked, read)
    of, n_units = _units(data, unit)
    count = _checked_blocks(blocks, n_units, asked)
    far = (1 + math.sqrt(count)) * accepted if reach is None else check_positive(reach, "reach")
    if far <= accepted:
        raise InvalidInput(f"reach must be above the tolerance, {accepted:g}: found {far:g}")
    differences = _by_block(data, asked, read, _dealt(of, n_units, count), count) - synthetic
    differences = np.clip(np.where(np.isfinite(differences), differences, far), -far, far)
    noisy = laplace_mean(differences, lower=-far, upper=far, epsilon=eps, clamp=True)
    answer = Verification(
        value=float(noisy.value),
        sensitivity=noisy.sensitivity,
        scale=noisy.scale,
        query=asked.text,
        synthetic=synthetic,
        tolerance=accepted,
        reach=far,
        blocks=count,
        charge=_charge(eps, relation, unit),
    )
    if ledger is not None:
        ledger.add(answer)
    return answer


def _charge(epsilon: float, relation: str, unit: str | None) -> PrivacyCharge:
    whose = "" if unit is None else f", and which of them belong to one {' '.join(unit.split())}"
    return PrivacyCharge.strict(
        mechanism="verify",
        epsilon=epsilon,
        relation=relation,
        unit=unit,
        assumes=(
            "Query, tolerance, reach and the number of blocks were fixed without looking at the "
            "data.",
            "Columns are read record by record, as numbers or as levels that the synthetic sets "
            "have or that were declared; the synthetic sets are taken as published.",
        ),
        not_covered=(f"The number of records{whose}.", "How long the answer took."),
    )


def _laplace_cdf(z: float) -> float:
    return float(0.5 * math.exp(z)) if z < 0 else float(1 - 0.5 * math.exp(-z))


def _check_table(data: Any, query: Query) -> None:
    if not isinstance(data, pd.DataFrame):
        raise not_a_frame(data)
    if data.empty:
        raise InvalidInput("data must have at least one row")
    if not data.columns.is_unique:
        raise InvalidInput("column names of data must be unique: some occur more than once")
    _check_columns(data, query, "data")


def _check_columns(table: pd.DataFrame, query: Query, name: str) -> None:
    for column in query.columns:
        if column not in table.columns:
            near = did_you_mean(column, table.columns)
            raise InvalidInput(f"{query.text} needs the column {column!r}: {name} has none{near}")


def _of_synthetic(sets: Sequence[pd.DataFrame], query: Query, types: ColumnTypes) -> float:
    """The average over the sets: post-processing."""
    for column in query.columns:
        if column not in types:
            raise InvalidInput(
                f"{query.text} needs the type of {column!r}: it holds dates, or values of unlike "
                "types; declare it, types={...}"
            )
    found = [_number_of(query, coerced(table, types), said=(InvalidInput,)) for table in sets]
    if not np.isfinite(found).all():
        raise InvalidInput(f"{query.text} must be estimable from every synthetic set: it is not")
    return float(np.mean(found))


def _units(data: pd.DataFrame, unit: str | None) -> tuple[npt.NDArray[np.intp], int]:
    """Unit of each row (n,), and how many there are."""
    if unit is None:
        return np.arange(len(data), dtype=np.intp), len(data)
    of = read_units(data, unit, ()).of
    return of, int(of.max()) + 1


def _checked_blocks(blocks: int | None, n: int, query: Query) -> int:
    if blocks is None:
        count = min(_MOST_BLOCKS, max(_FEWEST_BLOCKS, n // max(_RECORDS, query.smallest)))
    else:
        count = check_count(blocks, "blocks", at_least=_FEWEST_BLOCKS)
    if n // count < query.smallest:
        raise InvalidInput(
            f"a block must hold at least {query.smallest} records for {query.text}: {n} in {count} "
            f"blocks are {n // count} each; give fewer blocks, {_FEWEST_BLOCKS} at least"
        )
    return count


def _dealt(of: npt.NDArray[np.intp], n_units: int, count: int) -> npt.NDArray[np.intp]:
    """Block of each row (n,). Each unit's is drawn by itself: one more or less moves no other."""
    return np.random.default_rng().integers(count, size=n_units)[of]


def _by_block(
    data: pd.DataFrame, query: Query, types: ColumnTypes, block: npt.NDArray[np.intp], count: int
) -> FloatArray:
    """The estimate of each block (B,), from its own records alone; NaN where there is none."""
    found = np.full(count, np.nan)
    for place in range(count):
        own = data[block == place]
        if len(own):
            found[place] = _number_of(query, coerced(own, types))
    return found


def _number_of(query: Query, table: pd.DataFrame, said: tuple[type[Exception], ...] = ()) -> float:
    """The number; NaN for one that fails, but for errors in `said`. An error, or a warning, would
    tell of the block's values, without noise; what is wrong with the query itself the synthetic
    sets, whose errors are said, have shown before."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(query.of(table))
    except said:
        raise
    except Exception:
        return math.nan
