"""Perturbed histogram (PH): synthetic values from noisy counts in given bins, without a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_count, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitProgress, check_rows_per_unit
from pyhybrid.mechanisms.marginals.domain import ColumnDomain, IntArray
from pyhybrid.mechanisms.mechanism import Made, NoiseMechanism, check_columns, check_unit_of_noise
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.support import check_decimals, of_steps
from pyhybrid.models.formula.terms import sides_of
from pyhybrid.models.formula.values import first_row
from pyhybrid.primitives import laplace_counts
from pyhybrid.primitives.laplace import check_bounds
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import CHANGED, RELATIONS, epsilon_text
from pyhybrid.privacy.histogram import in_steps, perturbed_probabilities

_LARGEST_WHOLE = 2**53  # floats beyond it skip whole numbers


@dataclass(frozen=True, kw_only=True)
class PerturbedHistogram(NoiseMechanism):
    r"""Draw synthetic values from a histogram with Laplace(2 / epsilon) noise on its counts.

    The range is cut into equal bins, and each count gets discrete Laplace noise from OpenDP;
    negative counts become 0, and counts are normalized to probabilities. A synthetic value is
    uniform within a bin drawn with them. Only the counts read the data: all that follows is
    post-processing. `NoisyMarginals` does so for levels.

    The guarantee is strict, without a sampler. n is public; type and decimals of what is released
    are declared. Under ``remove`` the sensitivity is 1 and not 2. Associations with other columns
    are lost.

    Parameters
    ----------
    column : str
        The column to synthesize.
    lower, upper : float
        Public range of the column, both ends included: from a codebook, never from the data.
    n_bins : int
        Number of bins B >= 2, public; at most the numbers of so many `decimals` in range.
    epsilon : float
        Of the noisy histogram, which all sets come from, above 0, nats.
    unit : str, optional
        Column of persons or other units: epsilon protects all rows of a unit.
    rows_per_unit : int, optional
        With `unit`: rows of a unit at most, public and given, never counted. The noise has
        `rows_per_unit` times the scale.
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
    relation: str = "replace"
    decimals: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InvalidInput(f"column must be the name of a column: found {self.column!r}")
        check_choice(self.relation, "relation", RELATIONS)
        check_bounds(self.lower, self.upper)
        check_count(self.n_bins, "n_bins", at_least=2)
        check_decimals(self.decimals)
        if self.form_decimals is not None:
            self._check_grid(self.form_decimals)
        check_positive(self.epsilon, "epsilon")
        check_unit_of_noise(self.unit, self.rows_per_unit)

    def _check_grid(self, decimals: int) -> None:
        """Refuse ends that are no numbers of so many decimals, and bins that hold none."""
        ends = in_steps(np.array([self.lower, self.upper]), 10.0**-decimals)
        if (ends != np.rint(ends)).any() or np.abs(ends).max() > _LARGEST_WHOLE:
            raise InvalidInput(
                f"lower and upper must be numbers of {decimals} decimals (whole numbers of 0), at "
                f"most {_LARGEST_WHOLE} steps from 0: found {self.lower:g} and {self.upper:g}"
            )
        if self.n_bins > ends[1] - ends[0] + 1:
            raise InvalidInput(
                f"n_bins must be at most the number of values of {decimals} decimals in range: "
                f"found {self.n_bins}"
            )

    @property
    def domain(self) -> ColumnDomain:
        """Bins that hold equally many numbers of the declared decimals, but for one; bins of equal
        width of real numbers."""
        low, high, n = self.lower, self.upper, self.n_bins
        if self.form_decimals is None:
            return ColumnDomain(bins=(*(low + k * (high - low) / n for k in range(n)), high))
        step = 10.0**-self.form_decimals
        start, end = (int(edge) for edge in in_steps(np.array([low, high]), step))
        first = [start - (-k * (end - start + 1) // n) for k in range(1, n)]
        inner = of_steps(np.array(first, dtype=np.float64), step).tolist()
        # The last bin is closed: alone in it, the upper end would leave it without width.
        last = high if inner[-1] < high else high + step / 2
        return ColumnDomain(bins=(low, *inner, last), step=step)

    @property
    def form_decimals(self) -> int | None:
        """Decimals of released numbers, given or declared by the range's ends; None of reals."""
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
        return (self.column,)

    def describe(self) -> dict[str, Any]:
        given = {name: value for name, value in vars(self).items() if value is not None}
        return {"mechanism": self.name, **given}

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        return {self.column: self.domain.form}

    def _made(self, df: pd.DataFrame, m: int, progress: FitProgress | None) -> Made:
        check_columns(df, (self.column,))
        missing = df[self.column].isna().to_numpy()
        if missing.any():
            raise InvalidInput(
                f"outcome {self.column!r} must not be missing: {first_row(df.index, missing)} is; "
                "drop or impute such rows before synthesis"
            )
        domain, random = self.domain, streams()
        place = domain.places(df[self.column])
        check_rows_per_unit(df, self.unit, self.rows_per_unit, (self.column,))
        shares, tables = self._noisy_shares(place), []
        for number in range(m):
            rng = random.generator(f"histogram/{number + 1}")
            cells = rng.choice(domain.n_cells, size=len(df), p=shares)
            values = domain.values(cells, rng.random(len(df)), name=self.column, index=df.index)
            tables.append(joined(df, values.to_frame()))
            if progress is not None:
                progress("synthetic data", number + 1, m)
        record = self._record(
            df,
            self._charge(m),
            random,
            noise=f"discrete Laplace of scale {CHANGED[self.relation]} / "
            f"{epsilon_text(self.epsilon / (self.rows_per_unit or 1))} on each count",
        )
        return Made(record=record, tables=tables)

    def _noisy_shares(self, place: IntArray) -> FloatArray:
        """Probabilities of the cells, shape (B,); the only step that looks at the data."""
        n, epsilon = self.domain.n_cells, self.epsilon / (self.rows_per_unit or 1)
        noisy = laplace_counts(place, n_categories=n, epsilon=epsilon, relation=self.relation)
        return perturbed_probabilities(noisy.value, np.zeros(n))

    def _charge(self, m: int) -> PrivacyCharge:
        decimals = self.form_decimals
        numbers = "real" if decimals is None else f"of {decimals} decimals"
        return PrivacyCharge.strict(
            mechanism=self.name,
            epsilon=self.epsilon,
            relation=self.relation,
            n_synthetic=m,
            unit=self.unit,
            facts={
                "columns": [self.column],
                "public_rows": True,
                "chosen": "range, bins, epsilon",
                "refused": "values out of range",
                "assumes": [
                    "The range and the number of bins were fixed without looking at the data.",
                    "The number of records is public.",
                    f"Released values are numbers, {numbers}: declared, and not read from the "
                    "column.",
                ],
            },
        )
