"""Perturbed histogram (PH): synthetic values from noisy counts in given bins, without a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.checks import FloatArray, check_count, check_draws_released, check_positive
from pyhybrid.errors import InvalidInput
from pyhybrid.fitting.exposed import exposed_columns
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitProgress
from pyhybrid.fitting.units import read_units
from pyhybrid.mechanisms.charge_of_fit import public_sentences, unsynthesized_sentence
from pyhybrid.models.decimals import in_dtype_of
from pyhybrid.models.design import row_label
from pyhybrid.primitives import laplace_counts
from pyhybrid.primitives.checks import check_bounds
from pyhybrid.primitives.library import NoiseProvenance, opendp_version
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.epsilon import epsilon_text
from pyhybrid.privacy.histogram import perturbed_probabilities
from pyhybrid.randomness import Streams, streams
from pyhybrid.releases.data_mark import data_mark
from pyhybrid.releases.record import Confidential, ReleaseRecord
from pyhybrid.releases.release import Release

__all__ = ["PerturbedHistogram"]

_LARGEST_WHOLE = 2**53  # floats beyond it skip whole numbers
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PerturbedHistogram:
    r"""Draw synthetic values from a histogram whose counts got Laplace(2 / epsilon) noise.

    The range is cut into equal bins and each count gets noise from OpenDP; negative ones become 0,
    the rest are normalized to probabilities. A synthetic value is uniform within a bin drawn with
    them. Only the counts touch the data: all that follows is post-processing.

    The guarantee is strict: it holds for every database of the stated range, at any n, without a
    sampler. The relation is ``replace``, with n public: replacing a record lowers one count by 1
    and raises another, a sensitivity of 2. Each column is drawn by itself: its associations with
    other columns are lost.

    Outcomes of an integer dtype come from bins of whole numbers, and counts stay whole numbers
    with noise, so that it is the discrete Laplace distribution of the same scale.

    Parameters
    ----------
    column : str
        The column to synthesize.
    lower, upper : float
        Public range of the column, both ends included: from a codebook, never from the data.
    n_bins : int
        Number of bins B >= 2, public; for an integer column at most the whole numbers in range.
    epsilon : float
        Of one noisy histogram, above 0, nats.
    unit : str, optional
        Column that says whose rows they are: epsilon is that of all rows of a unit.
    rows_per_unit : int, optional
        With `unit`: rows of a unit at most, public and given, never counted. The noise has
        `rows_per_unit` times the scale.

    Raises
    ------
    InvalidInput
        For a range, bin count or epsilon that is missing or wrong.

    References
    ----------
    [C25] supplement 1; Wasserman, Zhou (2010), JASA 105:375-389.

    Examples
    --------
    >>> mechanism = PerturbedHistogram(column="age", lower=0, upper=110, n_bins=11, epsilon=1.0)
    >>> mechanism.release(pd.DataFrame({"age": [31, 52, 52, 18]})).charge.epsilon
    1.0
    """

    column: str
    lower: float = None  # type: ignore[assignment]
    upper: float = None  # type: ignore[assignment]
    n_bins: int = None  # type: ignore[assignment]
    epsilon: float = None  # type: ignore[assignment]
    unit: str | None = None
    rows_per_unit: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InvalidInput(f"column must be the name of a column: found {self.column!r}")
        check_bounds(self.lower, self.upper)
        if self.n_bins is None or isinstance(self.n_bins, str):
            raise InvalidInput(
                f"n_bins must be a whole number: found {self.n_bins!r}; it is never read from the "
                "data: give it, it is part of the guarantee"
            )
        check_count(self.n_bins, "n_bins", at_least=2)
        check_positive(self.epsilon, "epsilon")
        if (self.unit is None) != (self.rows_per_unit is None):
            raise InvalidInput(
                "unit and rows_per_unit must be given together: noise for a unit is scaled by the "
                "rows that it can have at most, which are never counted in the data"
            )
        if self.rows_per_unit is not None:
            check_count(self.rows_per_unit, "rows_per_unit")

    @classmethod
    def for_formula(cls, formula: str, **options: Any) -> PerturbedHistogram:
        """The mechanism for the outcome of a formula without predictors, ``"y ~ 1"``."""
        outcome, _, predictors = (part.strip() for part in formula.partition("~"))
        if not outcome or predictors != "1":
            raise InvalidInput(
                f"a perturbed histogram takes no predictors: the formula must be "
                f"'{outcome or 'y'} ~ 1', found {formula!r}"
            )
        return cls(column=outcome.strip("`"), **options)

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return type(self).__name__

    @property
    def synthesizes(self) -> tuple[str, ...]:
        """Columns that a release replaces."""
        return (self.column,)

    def describe(self) -> dict[str, Any]:
        """Public settings of the mechanism."""
        return {"mechanism": self.name, **asdict(self)}

    def release(
        self,
        df: pd.DataFrame,
        *,
        n_synthetic: int = 1,
        n_draws_released: int = 1,
        seed: int | None = None,
        progress: FitProgress | None = None,
    ) -> Release:
        """Count, add noise, charge and draw.

        Parameters
        ----------
        df : DataFrame
            Confidential records. Not modified.
        n_synthetic : int, default 1
            m, the number of synthetic data sets.
        n_draws_released : int, default 1
            Noisy histograms the sets are drawn from: 1 (at the price of one, as drawing from a
            released histogram is post-processing) or `n_synthetic`, at epsilon each.
        seed : int, optional
            OpenDP takes its noise from the operating system and cannot be seeded: a seed is
            refused.
        progress : callable, optional
            See `pyhybrid.fitting.session.open_session`.

        Returns
        -------
        Release
            Without `diagnostics` and `fit`: nothing is sampled that could fail to converge.

        Raises
        ------
        InvalidInput
            For a missing column, an outcome that is missing, not numeric or out of range (its row
            is named), or a seed.
        EngineUnavailable
            If OpenDP is not installed.
        """
        m = check_count(n_synthetic, "n_synthetic")
        released = check_draws_released(n_draws_released, m)
        if seed is not None:
            raise InvalidInput(
                f"seed must not be given to {self.name}: noise from OpenDP cannot be seeded, as "
                "whoever could reproduce it could subtract it"
            )
        bins = self._bins(df)
        self._check_rows(df)
        random = streams()
        shares = [self._noisy_shares(bins.place) for _ in range(released)]
        tables = []
        for place in range(m):
            values = bins.draw(
                shares[place % released], len(df), random.generator(f"histogram/{place + 1}")
            )
            tables.append(joined(df, in_dtype_of(values, df[self.column]).to_frame()))
            if progress is not None:
                progress("synthetic data", place + 1, m)
        return self._release(df, tables, released, random)

    def _bins(self, df: pd.DataFrame) -> _Bins:
        """The records' bins, after all checks of the column."""
        if not isinstance(df, pd.DataFrame) or len(df) == 0:
            raise InvalidInput(f"data must be a DataFrame with rows: found {type(df).__name__}")
        if list(df.columns).count(self.column) != 1:
            known = ", ".join(str(c) for c in df.columns[:20])
            raise InvalidInput(f"column {self.column!r} must be in the data, once: found {known}")
        twice = df.columns[df.columns.duplicated()]
        if len(twice):
            raise InvalidInput(f"column names must be unique: {twice[0]!r} occurs more than once")
        outcome = df[self.column]
        y = _outcome(outcome, self.lower, self.upper)
        if not pd.api.types.is_integer_dtype(outcome.dtype):
            return _Bins(y, self.lower, self.upper, self.n_bins, whole=False)
        if self.lower % 1 or self.upper % 1:
            raise InvalidInput(
                f"lower and upper must be whole numbers for {self.column!r} of dtype "
                f"{outcome.dtype}: found {self.lower:g} and {self.upper:g}"
            )
        if max(abs(self.lower), abs(self.upper)) > _LARGEST_WHOLE:
            raise InvalidInput(
                f"lower and upper must be at most {_LARGEST_WHOLE} in size for {self.column!r} of "
                f"dtype {outcome.dtype}: found {self.lower:g} and {self.upper:g}"
            )
        if self.n_bins > self.upper - self.lower + 1:
            raise InvalidInput(
                f"n_bins must be at most the number of whole numbers from {self.lower:g} to "
                f"{self.upper:g}: found {self.n_bins}"
            )
        return _Bins(y, self.lower, self.upper, self.n_bins, whole=True)

    def _check_rows(self, df: pd.DataFrame) -> None:
        """No unit has more rows than the noise is made for."""
        if self.unit is None or self.rows_per_unit is None:
            return
        units = read_units(df, self.unit, (self.column,))
        beyond = pd.Series(units.of).groupby(units.of).cumcount() >= self.rows_per_unit
        if beyond.any():
            label = row_label(df.index, int(np.flatnonzero(beyond)[0]))
            raise InvalidInput(
                f"units must have at most rows_per_unit={self.rows_per_unit} rows: {label} is one "
                f"more of its {self.unit!r}; keep as many by a rule that looks at one unit alone"
            )

    @property
    def _epsilon_of_a_row(self) -> float:
        return float(self.epsilon) / (self.rows_per_unit or 1)

    def _noisy_shares(self, place: IntArray) -> FloatArray:
        """Probabilities of the bins, shape (B,); the only step that looks at the data."""
        noisy = laplace_counts(
            place, n_categories=self.n_bins, epsilon=self._epsilon_of_a_row, relation="replace"
        )
        return perturbed_probabilities(noisy.value, np.zeros(self.n_bins))

    def _release(
        self, df: pd.DataFrame, tables: list[pd.DataFrame], released: int, random: Streams
    ) -> Release:
        charge = PrivacyCharge.strict(
            mechanism=self.name,
            epsilon=self.epsilon,
            relation="replace",
            n_synthetic=len(tables),
            n_draws_released=released,
            unit=self.unit,
            assumes=(
                "The range and the number of bins were fixed without looking at the data.",
                "The number of records is public, and so are the type of the column and whether "
                "it holds whole numbers: the same for every possible record.",
            ),
            not_covered=(
                unsynthesized_sentence((self.column,)),
                *public_sentences(self.unit),
                "Choices made by looking at the confidential data: range, bins, epsilon, and "
                "which of several releases was kept.",
                "Other releases from the same data: their epsilons add up.",
                "Whether anything was released is itself an answer: values out of range are "
                "refused.",
            ),
        )
        record = ReleaseRecord(
            charge=charge,
            diagnostics=None,
            settings=self.describe(),
            synthesized=(self.column,),
            predictors=(),
            provenance=NoiseProvenance(
                library="OpenDP",
                version=opendp_version(),
                noise=f"discrete Laplace of scale 2 / {epsilon_text(self._epsilon_of_a_row)} "
                "on each count",
            ),
            seeded=False,
            exposed=exposed_columns(df, (self.column,)),
            confidential=Confidential(
                labels=df.index,
                alpha=np.empty(0),
                lipschitz=np.empty(0),
                lipschitz_bound=charge.bound,
                entropy=random.entropy,
                data=data_mark(df),
            ),
        )
        return Release.of(record, tables)


class _Bins:
    """Equal bins of a range, of real or of whole numbers; `place` (n,) is each record's bin."""

    def __init__(self, y: FloatArray, low: float, high: float, n_bins: int, *, whole: bool) -> None:
        self.whole, self.n_bins, self.low = whole, n_bins, low
        self.width = high - low + 1 if whole else high - low
        if whole:  # bin b holds the integers from first[b] to first[b + 1] - 1
            edges = [int(low) - (-b * int(self.width) // n_bins) for b in range(n_bins + 1)]
            self.first = np.array(edges, dtype=np.int64)
            self.place = np.searchsorted(self.first, y, side="right") - 1
        else:
            self.place = np.floor((y - low) / self.width * n_bins).astype(np.int64)
        self.place = np.minimum(self.place, n_bins - 1)

    def draw(self, shares: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """n values, each uniform within a bin drawn with probabilities `shares` (B,)."""
        chosen = rng.choice(self.n_bins, size=n, p=shares)
        if self.whole:
            return rng.integers(self.first[chosen], self.first[chosen + 1]).astype(np.float64)
        values = self.low + (chosen + rng.random(n)) / self.n_bins * self.width
        return np.clip(values, self.low, self.low + self.width)


def _outcome(values: pd.Series, low: float, high: float) -> FloatArray:
    """Outcome as finite floats within [low, high], shape (n,)."""
    name = values.name
    dtype = values.dtype
    numeric = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    if not numeric or pd.api.types.is_complex_dtype(dtype):
        raise InvalidInput(f"outcome {name!r} must be numeric: found {dtype}")
    missing = np.flatnonzero(values.isna())
    if missing.size:
        raise InvalidInput(
            f"outcome {name!r} must not be missing: {row_label(values.index, int(missing[0]))} is; "
            "drop or impute such rows before synthesis"
        )
    y: FloatArray = values.to_numpy(dtype=np.float64)
    outside = np.flatnonzero(~((y >= low) & (y <= high)))
    if outside.size:
        raise InvalidInput(
            f"outcome {name!r} must lie in [{low:g}, {high:g}]: "
            f"{row_label(values.index, int(outside[0]))} does not; the range is part of the "
            "guarantee, so change such values by a rule that does not look at the others"
        )
    return y
