"""Perturbed histogram (PH): synthetic values from noisy counts in given bins, without a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_draws_released,
    check_positive,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitProgress, check_rows_per_unit
from pyhybrid.mechanisms.mechanism import Made, NoiseMechanism, check_columns, check_unit_of_noise
from pyhybrid.models.columns.form import Form, OutcomeLevels, check_levels_given, level_places
from pyhybrid.models.columns.support import check_decimals, of_steps, snapped
from pyhybrid.models.formula.terms import sides_of
from pyhybrid.models.formula.values import first_row, is_number
from pyhybrid.primitives import laplace_counts
from pyhybrid.primitives.laplace import check_bounds
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import RELATIONS, epsilon_text
from pyhybrid.privacy.histogram import in_steps, perturbed_probabilities

IntArray = npt.NDArray[np.int64]
_LARGEST_WHOLE = 2**53  # floats beyond it skip whole numbers
_NOISE = {"replace": 2, "remove": 1}  # counts that a neighbor changes


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundHistogram:
    """Public cells of a column joined to its table, `place` (n,) the cell of each record.
    Confidential. `values` draws a value from each of some cells (n,)."""

    n_cells: int
    place: IntArray
    column: pd.Series
    values: Callable[[IntArray, np.random.Generator], npt.NDArray[Any]]
    form: Form | None = None

    def draw(self, shares: FloatArray, rng: np.random.Generator) -> pd.DataFrame:
        """The column in its declared form, each value from a cell drawn by `shares` (B,)."""
        chosen = rng.choice(self.n_cells, size=self.place.size, p=shares)
        values = self.values(chosen, rng)
        column = pd.Series(values, index=self.column.index, name=self.column.name)
        return (column if self.form is None else self.form.cast(column)).to_frame()

    def __repr__(self) -> str:
        return f"<Histogram of {self.column.name!r}, {self.n_cells} cells>"


@dataclass(frozen=True, kw_only=True)
class PerturbedHistogram(NoiseMechanism):
    r"""Draw synthetic values from a histogram with Laplace(2 / epsilon) noise on its counts.

    The range is cut into equal bins, or the levels of a categorical column are declared, and each
    count gets discrete Laplace noise from OpenDP; negative counts become 0, and counts are
    normalized to probabilities. A synthetic value is a level drawn with them, or uniform within
    such a bin. Only the counts read the data: all that follows is post-processing.

    The guarantee is strict: it holds for every database of the stated range or levels, at any n,
    without a sampler. n is public; type and decimals of what is released are declared. Under
    ``replace`` a record lowers one count by 1 and raises another, a sensitivity of 2; under
    ``remove`` it is 1, and the noise half as large. Each column is drawn by itself: its
    associations with other columns are lost.

    Parameters
    ----------
    column : str
        The column to synthesize.
    lower, upper : float
        Public range of the column, both ends included: from a codebook, never from the data.
    n_bins : int
        Number of bins B >= 2, public; at most the numbers of so many `decimals` in range.
    epsilon : float
        Of one noisy histogram, above 0, nats.
    unit : str, optional
        Column of persons or other units: epsilon protects all rows of a unit.
    rows_per_unit : int, optional
        With `unit`: rows of a unit at most, public and given, never counted. The noise has
        `rows_per_unit` times the scale.
    levels : tuple, optional
        In place of `lower`, `upper` and `n_bins`: the public levels of a column of texts, logicals,
        categories or codes, two or more.
    relation : {"replace", "remove"}
    decimals : int, optional
        Of released values, 0 to 15: 0 for whole numbers. If omitted, values are whole where `lower`
        and `upper` are whole numbers more than 1 apart, and no fewer than `n_bins` of them; real
        numbers otherwise.

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
    levels: tuple[Any, ...] | None = None
    relation: str = "replace"
    decimals: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InvalidInput(f"column must be the name of a column: found {self.column!r}")
        check_choice(self.relation, "relation", RELATIONS)
        self._check_cells()
        check_positive(self.epsilon, "epsilon")
        check_unit_of_noise(self.unit, self.rows_per_unit)

    def _check_cells(self) -> None:
        if self.levels is not None:
            ranged = (self.lower, self.upper, self.n_bins, self.decimals)
            if any(setting is not None for setting in ranged):
                raise InvalidInput(
                    "levels must be given in place of lower, upper, n_bins and decimals"
                )
            if isinstance(self.levels, str) or len(self.levels) < 2:
                raise InvalidInput("levels must be a tuple of two values or more")
            object.__setattr__(self, "levels", check_levels_given(self.levels, len(self.levels)))
            return
        check_bounds(self.lower, self.upper)
        if self.n_bins is None or isinstance(self.n_bins, str):
            raise InvalidInput(
                f"n_bins must be a whole number: found {self.n_bins!r}; it is never read from the "
                "data: give it, it is part of the guarantee"
            )
        check_count(self.n_bins, "n_bins", at_least=2)
        check_decimals(self.decimals)
        if self.form_decimals is not None:
            check_grid(self.lower, self.upper, self.n_bins, self.form_decimals)

    @property
    def form_decimals(self) -> int | None:
        """Decimals of released numbers, given or declared by the ends of the range; None of
        reals."""
        if self.decimals is not None:
            return self.decimals
        whole = self.lower % 1 == 0 and self.upper % 1 == 0
        between = self.upper - self.lower
        return 0 if whole and between > 1 and between + 1 >= self.n_bins else None

    @classmethod
    def for_formula(cls, formula: str, **options: Any) -> PerturbedHistogram:
        """The mechanism for the outcome of a formula without predictors, ``"y ~ 1"``."""
        outcome, predictors = sides_of(formula)
        if not outcome or predictors != "1":
            raise InvalidInput(
                f"a perturbed histogram takes no predictors: the formula must be "
                f"'{outcome or 'y'} ~ 1', found {formula!r}"
            )
        return cls(column=outcome, **options)

    @property
    def synthesizes(self) -> tuple[str, ...]:
        """Columns that a release replaces."""
        return (self.column,)

    def at_epsilon(
        self, epsilon: float, n_draws_released: int | None, m: int
    ) -> PerturbedHistogram:
        """The epsilon of one histogram is a part of it."""
        return replace(self, epsilon=epsilon / (n_draws_released or 1))

    def describe(self) -> dict[str, Any]:
        """Public settings of the mechanism."""
        settings = {name: value for name, value in asdict(self).items() if value is not None}
        return {"mechanism": self.name, **settings}

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Form of the column."""
        decimals = self.form_decimals if self.levels is None else None
        return {self.column: Form(levels=self.levels, decimals=decimals)}

    def _draws_released(self, n_draws_released: int | None, m: int) -> int:
        return check_draws_released(1 if n_draws_released is None else n_draws_released, m)

    def _made(
        self, df: pd.DataFrame, m: int, n_draws_released: int, progress: FitProgress | None
    ) -> Made:
        bound, random = self.bind(df), streams()
        shares = [self._noisy_shares(bound.place) for _ in range(n_draws_released)]
        tables = []
        for place in range(m):
            rng = random.generator(f"histogram/{place + 1}")
            tables.append(joined(df, bound.draw(shares[place % n_draws_released], rng)))
            if progress is not None:
                progress("synthetic data", place + 1, m)
        charge = self._charge(m, n_draws_released)
        record = self._record(
            df,
            charge,
            random,
            settings=self.describe(),
            synthesized=(self.column,),
            predictors=(),
            noise=f"discrete Laplace of scale {_NOISE[self.relation]} / "
            f"{epsilon_text(self._epsilon_of_a_row)} on each count",
        )
        return Made(record=record, tables=tables)

    def bind(self, df: pd.DataFrame) -> BoundHistogram:
        """Check `df` and find each record's cell; see `release`."""
        check_columns(df, (self.column,))
        column = df[self.column]
        if self.levels is not None:
            _check_present(column)
            known = np.empty(len(self.levels), dtype=object)
            known[:] = self.levels
            place = level_places(column, str(column.name), OutcomeLevels(values=self.levels))
            bound = BoundHistogram(
                n_cells=len(self.levels),
                place=place.astype(np.int64),
                column=column,
                values=lambda cells, rng: known[cells],
                form=self.forms(df)[self.column],
            )
        else:
            bound = bins_of(column, self.lower, self.upper, self.n_bins, self.form_decimals)
        check_rows_per_unit(df, self.unit, self.rows_per_unit, (self.column,))
        return bound

    @property
    def _epsilon_of_a_row(self) -> float:
        return float(self.epsilon) / (self.rows_per_unit or 1)

    def _noisy_shares(self, place: IntArray) -> FloatArray:
        """Probabilities of the cells, shape (B,); the only step that looks at the data."""
        n_cells = self.n_bins if self.levels is None else len(self.levels)
        noisy = laplace_counts(
            place, n_categories=n_cells, epsilon=self._epsilon_of_a_row, relation=self.relation
        )
        return perturbed_probabilities(noisy.value, np.zeros(n_cells))

    def _charge(self, m: int, n_draws_released: int) -> PrivacyCharge:
        fixed, form = "levels were", "the declared levels, in a type that is no function of data."
        if self.levels is None:
            fixed, decimals = "range and the number of bins were", self.form_decimals
            numbers = "real" if decimals is None else f"of {decimals} decimals"
            form = f"numbers, {numbers}: declared, and not read from the column."
        return PrivacyCharge.strict(
            mechanism=self.name,
            epsilon=self.epsilon,
            relation=self.relation,
            n_synthetic=m,
            n_draws_released=n_draws_released,
            unit=self.unit,
            facts={
                "columns": [self.column],
                "public_rows": True,
                "chosen": "range, bins, epsilon",
                "refused": "values out of range",
                "assumes": [
                    f"The {fixed} fixed without looking at the data.",
                    "The number of records is public.",
                    f"Released values are {form}",
                ],
            },
        )


def bins_of(
    outcome: pd.Series, low: float, high: float, n_bins: int, decimals: int | None
) -> BoundHistogram:
    """Equal bins of [low, high], of numbers of so many decimals, or reals (None)."""
    y = _outcome(outcome, low, high, decimals)
    if decimals is None:
        width = high - low
        place = np.floor(in_steps(y - low, width / n_bins)).astype(np.int64)

        def uniform(cells: IntArray, rng: np.random.Generator) -> FloatArray:
            values = low + (cells + rng.random(cells.size)) / n_bins * width
            return np.clip(values, low, low + width)

        return BoundHistogram(
            n_cells=n_bins, place=np.minimum(place, n_bins - 1), column=outcome, values=uniform
        )
    step = 10.0**-decimals
    start, end = (int(edge) for edge in in_steps(np.array([low, high]), step))
    # Bin b holds the steps from first[b] to first[b + 1] - 1, counted from 0.
    edges = [start - (-b * (end - start + 1) // n_bins) for b in range(n_bins + 1)]
    first = np.array(edges, dtype=np.int64)
    steps = np.rint(in_steps(y, step))  # what is between two is rounded
    place = np.searchsorted(first, steps, side="right") - 1

    def of_bins(cells: IntArray, rng: np.random.Generator) -> FloatArray:
        return of_steps(rng.integers(first[cells], first[cells + 1]).astype(np.float64), step)

    return BoundHistogram(
        n_cells=n_bins,
        place=np.minimum(place, n_bins - 1),
        column=outcome,
        values=of_bins,
        form=Form(decimals=decimals),
    )


def check_grid(low: float, high: float, n_bins: int, decimals: int) -> None:
    """Raise InvalidInput unless each of the bins of [low, high] holds a number of `decimals`."""
    ends = in_steps(np.array([low, high]), 10.0**-decimals)
    if (ends != np.rint(ends)).any():
        raise InvalidInput(
            f"lower and upper must be whole numbers for decimals=0, and numbers of {decimals} "
            f"decimals for decimals={decimals}: found {low:g} and {high:g}"
        )
    if np.abs(ends).max() > _LARGEST_WHOLE:
        raise InvalidInput(
            f"lower and upper must be at most {_LARGEST_WHOLE} in size, in steps of {decimals} "
            f"decimals: found {low:g} and {high:g}"
        )
    if n_bins > ends[1] - ends[0] + 1:
        raise InvalidInput(
            f"n_bins must be at most the number of values of {decimals} decimals from {low:g} to "
            f"{high:g}: found {n_bins}"
        )


def _outcome(values: pd.Series, low: float, high: float, decimals: int | None) -> FloatArray:
    """Outcome as finite floats within [low, high], but for rounding, shape (n,)."""
    name = values.name
    if not is_number(values) or pd.api.types.is_complex_dtype(values.dtype):
        raise InvalidInput(f"outcome {name!r} must be numeric: found {values.dtype}")
    _check_present(values)
    y: FloatArray = values.to_numpy(dtype=np.float64)
    if decimals is not None:
        y = snapped(y, 10.0**-decimals)
    outside = ~((y >= low) & (y <= high))
    if outside.any():
        raise InvalidInput(
            f"outcome {name!r} must lie in [{low:g}, {high:g}]: {first_row(values.index, outside)} "
            "does not; the range is part of the guarantee, so change such values by a rule that "
            "does not look at the others"
        )
    return y


def _check_present(values: pd.Series) -> None:
    missing = values.isna().to_numpy()
    if missing.any():
        raise InvalidInput(
            f"outcome {str(values.name)!r} must not be missing: {first_row(values.index, missing)} "
            "is; drop or impute such rows before synthesis"
        )
