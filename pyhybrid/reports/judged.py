"""How good synthetic data are, in words: good, fair or poor, by limits that are written down here.

Every measure has two limits. Up to the first a value is good: about as far from the data as a
second sample of the same population. Beyond the second it is poor: chance alone does not explain
it, or an analyst would notice. Sources: standardized difference and interval overlap, intervals of
two samples of equal size (they differ by 3 standard errors of one of them in 3 % of cases);
ratios, Raab, Nowok, Dibben (2021), arXiv:2109.12717, who call up to 3 good and above 10 poor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.measures.arrays.combining import combine_partially_synthetic
from pyhybrid.measures.arrays.estimates import max_ecdf
from pyhybrid.measures.arrays.utility import interval_overlap, standardised_difference
from pyhybrid.measures.summaries import MEASURES
from pyhybrid.reports.levels import shares_of
from pyhybrid.reports.numbers import number_text

__all__ = [
    "FAIR",
    "GOOD",
    "LIMITS",
    "POOR",
    "Judged",
    "is_number",
    "judge_outcome",
    "judge_sets",
    "measure_label",
    "word_of",
]

GOOD, FAIR, POOR = "good", "fair", "POOR"

LIMITS: Mapping[str, tuple[float, float]] = {
    "interval_overlap": (0.7, 0.2),
    "standardised_difference": (1.0, 3.0),
    "mean_error": (0.02, 0.1),
    "max_ecdf": (0.05, 0.1),
    "total_variation": (0.05, 0.1),
    "pmse_ratio": (3.0, 10.0),
    "table_ratio": (3.0, 10.0),
}
"""The last good and the first poor value by measure."""

_NORMAL = 1.959963984540054  # half a 95 % interval, in standard errors
_MOST_SETS = 3


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A value of a measure of utility, and how good it is. Confidential.

    Attributes
    ----------
    measure : str
        Key of `pyhybrid.measures.summaries.MEASURES`.
    label : str
        What it is called, and of what it is.
    value : float
    word : {"good", "fair", "POOR"}
    """

    measure: str
    label: str
    value: float
    word: str

    @property
    def text(self) -> str:
        """The value as people write it: an error in percent, the others with two digits."""
        if self.measure == "mean_error":
            return f"{self.value:.1%}"
        return number_text(self.value) if abs(self.value) >= 100 else f"{self.value:.2f}"


def word_of(measure: str, value: float) -> str:
    """Good, fair or POOR; empty for a measure without limits or a value that is none.

    Parameters
    ----------
    measure : str
        Key of `LIMITS`; what follows a comma says what it is of, as in reports.
    """
    limits = LIMITS.get(measure.split(",")[0])
    if limits is None or np.isnan(value):
        return ""
    good, poor = limits
    sign = 1 if good < poor else -1
    if sign * value <= sign * good:
        return GOOD
    return POOR if sign * value > sign * poor else FAIR


def measure_label(name: str) -> str:
    """Title of a measure with what it is of: "pMSE, logistic" for "pmse, logistic"."""
    measure, _, rest = name.partition(",")
    return MEASURES[measure].title + (f",{rest}" if rest else "")


def judge_outcome(data: pd.Series, sets: Sequence[pd.Series]) -> tuple[Judged, ...]:
    """Measures of one synthesized column: of its mean and distribution, or of its shares.

    Parameters
    ----------
    data : Series
        The column in the confidential data.
    sets : sequence of Series
        The same column of each synthetic set.
    """
    if not is_number(data):
        shares = shares_of(data, {"": sets})
        distance = np.abs(shares.synthetic[""] - shares.data).sum(axis=1).mean() / 2
        return (_judged("total_variation", "total variation of shares", float(distance)),)
    return judge_sets(_values(data), [_values(each) for each in sets])


def judge_sets(data: FloatArray, sets: Sequence[FloatArray]) -> tuple[Judged, ...]:
    """`judge_outcome` of finite numbers: of their mean, and of the first sets' distribution."""
    if min(data.size, *(each.size for each in sets)) < 2:
        return ()
    found: list[Judged] = []
    error = float(data.std(ddof=1) / np.sqrt(data.size))
    mean, ends = _mean_of_sets(sets)
    if data.mean() != 0:
        off = abs(mean - data.mean()) / abs(data.mean())
        found.append(_judged("mean_error", "error of the mean", float(off)))
    if error > 0:
        gap = float(standardised_difference(data.mean(), mean, error))
        found.append(_judged("standardised_difference", "standardized difference", gap))
        own = data.mean() + _NORMAL * error * np.array([-1.0, 1.0])
        if ends[0] < ends[1]:
            overlap = float(interval_overlap(own, ends))
            found.append(_judged("interval_overlap", "interval overlap", overlap))
    distance = float(np.mean([max_ecdf(data, each) for each in sets[:_MOST_SETS]]))
    return (*found, _judged("max_ecdf", "max-ECDF", distance))


def _mean_of_sets(sets: Sequence[FloatArray]) -> tuple[float, FloatArray]:
    """Mean over the sets and its 95 % interval, shape (2,), by [R03]; of one set at its word."""
    means = [float(each.mean()) for each in sets]
    variances = [float(each.var(ddof=1)) / each.size for each in sets]
    if len(sets) == 1:
        half = _NORMAL * np.sqrt(variances[0])
        return means[0], means[0] + half * np.array([-1.0, 1.0])
    if max(variances) == 0:
        return float(np.mean(means)), np.array([np.mean(means), np.mean(means)])
    combined = combine_partially_synthetic(means, variances)
    return float(combined.estimate), combined.interval()


def _judged(measure: str, label: str, value: float) -> Judged:
    assert measure in MEASURES
    return Judged(measure=measure, label=label, value=value, word=word_of(measure, value))


def is_number(column: pd.Series) -> bool:
    """True for a column of numbers, of which means can be taken: no dates, no truth values."""
    kind = column.dtype
    return (
        pd.api.types.is_numeric_dtype(kind)
        and not pd.api.types.is_bool_dtype(kind)
        and not pd.api.types.is_complex_dtype(kind)
    )


def _values(column: pd.Series) -> FloatArray:
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(numbers[np.isfinite(numbers)])
