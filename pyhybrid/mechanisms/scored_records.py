"""Records that clipped scores are summed over: a data frame, or a table that stays where it is.

Predictors are public: information, clip and center come from them, of a large table from a sample.
Each look at the outcomes is a sum of whole numbers, over one batch or over many, on the workers of
a cluster if there is one; noise is added once, by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import SourceFailed
from pyhybrid.models.formula.design import Design, read_design
from pyhybrid.models.formula.terms import parse_formula
from pyhybrid.models.formula.values import with_columns
from pyhybrid.models.scoring import Scoring
from pyhybrid.privacy.scores import (
    STEPS_OF_CLIP,
    ScoringDesign,
    clip_scores,
    finite_rows,
    whole_scores,
)
from pyhybrid.sources.source import SAMPLED, IntArray, Parts, Source

PARTS = STEPS_OF_CLIP
"""Of one count, for discrete noise."""
_AT_ONCE = 2_048  # records whose scores stay in the processor's cache
_MOST_LEVELS = 1_000  # of a column of numbers that may be a factor


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoredTable:
    """A table joined to a model for clipped scores. Confidential.

    I, G, b and C come from `public` rows: the same as those of scores, or, where predictors were
    synthesized before, those of the synthetic table."""

    table: pd.DataFrame
    scoring: Scoring
    public: Scoring
    outcome: FloatArray  # (n,), on the scale of the likelihood, NaN where a record has none
    design: Design
    unit: npt.NDArray[np.intp]  # (n,), from 0
    weights: FloatArray | None  # (n,), of surveys, of mean 1

    @property
    def sample(self) -> ScoredTable:
        """Records whose predictors stand for all: these."""
        return self

    @property
    def n_records(self) -> int:
        return len(self.unit)

    @property
    def n_units(self) -> int:
        """Number of units of privacy."""
        return int(self.unit.max()) + 1

    def by_unit(self, values: FloatArray) -> FloatArray:
        """Sums (n_units, d) of what the records of a unit have (n, d), 0 where it is not finite."""
        values = finite_rows(values)
        if self.n_units == len(self.unit):
            return values
        sums = np.zeros((self.n_units, values.shape[1]))
        np.add.at(sums, self.unit, values)
        return sums

    def sets_by_unit(self, values: FloatArray) -> FloatArray:
        """The same of several simulated sets (R, n, d), (R, n_units, d)."""
        if self.n_units == self.n_records:
            return values
        return np.stack([self.by_unit(of_set) for of_set in values])

    def scores(self, theta: FloatArray) -> FloatArray:
        """Scores (n_units, d) at theta (d,), those of records times survey weights."""
        scores = self.scoring.scores(theta, self.outcome)
        return self.by_unit(scores if self.weights is None else scores * self.weights[:, None])

    def public_rows(self, kept: npt.NDArray[np.intp]) -> ScoredTable:
        """What is public of these rows."""
        return replace(
            self,
            table=pd.DataFrame(),
            public=self.public.rows(kept),
            unit=pd.factorize(self.unit[kept])[0],
            weights=None if self.weights is None else self.weights[kept],
        )

    def bin_counts(self, bin_of: Callable[[FloatArray], FloatArray], n_bins: int) -> IntArray:
        """Outcomes in each bin, in parts of one: the records of a unit share one count."""
        return counted_bins(
            self.outcome, bin_of, n_bins, PARTS // np.bincount(self.unit)[self.unit]
        )

    def score_sum(self, theta: FloatArray, design: ScoringDesign) -> IntArray:
        """Sum of clipped scores at theta (d,), in steps of the clip."""
        return summed_scores(self.scores(theta), design)


def counted_bins(
    outcome: FloatArray,
    bin_of: Callable[[FloatArray], FloatArray],
    n_bins: int,
    parts: IntArray | None = None,
) -> IntArray:
    """Outcomes in each bin, each of `PARTS` or of its own `parts` (n,)."""
    bins, counts = bin_of(outcome), np.zeros(n_bins, dtype=np.int64)
    known = np.isfinite(bins)
    np.add.at(counts, bins[known].astype(np.intp), PARTS if parts is None else parts[known])
    return counts


def summed_scores(scores: FloatArray, design: ScoringDesign) -> IntArray:
    """Clipped scores in whole steps, summed over records."""
    total = np.zeros(scores.shape[1], dtype=np.int64)
    for first in range(0, len(scores), _AT_ONCE):
        clipped = clip_scores(scores[first : first + _AT_ONCE], design.whitening, design.clip)
        total += whole_scores(clipped, design.clip).sum(axis=0)
    return total


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoredSource:
    """A source joined to a model; what `ScoredTable` is of a data frame. Each record is a unit."""

    source: Source
    model: Any
    sample: ScoredTable  # predictors of a sample of the records, without outcomes
    n_units: int
    checksums: set[int] = field(default_factory=set)  # of outcomes: one, unless the table changed

    @property
    def n_records(self) -> int:
        return self.n_units

    def bin_counts(self, bin_of: Callable[[FloatArray], FloatArray], n_bins: int) -> IntArray:
        outcome = self.sample.design.outcome
        return self._summed(partial(_bins_of_batch, bin_of, n_bins), [outcome])

    def score_sum(self, theta: FloatArray, design: ScoringDesign) -> IntArray:
        whole = self.sample.design  # whose rows no worker needs
        columns = [whole.outcome, *whole.predictors]
        coding = replace(whole, X=whole.X[:0], offset=whole.offset[:0], y=whole.y[:0])
        return self._summed(partial(_scores_of_batch, coding, theta, design), columns)

    def _summed(self, of_batch: Callable[..., Parts], columns: list[str]) -> IntArray:
        total, (n, checksum) = self.source.sums(partial(of_batch, self.model), columns).parts
        self.checksums.add(int(checksum))
        if int(n) != self.n_units or len(self.checksums) > 1:
            raise SourceFailed(
                "the table must not change while it is read: it did; nothing was released"
            )
        return np.asarray(total)


def bind_source(model: Any, source: Source) -> ScoredSource:
    """Join a model to a source: codes the predictors by a sample of them, to which records with
    all their levels, and with missing values, are added."""
    parsed = parse_formula(model.formula, source.columns)
    outcome, names = parsed.outcome, [*parsed.predictors]
    source, n = source.with_numbers(names), source.count()
    sample = source.sample(names, SAMPLED) if names else pd.DataFrame(index=range(min(n, SAMPLED)))
    days = {name for f in parsed.factors if "days" in f.calls for name in f.columns}
    days -= {name for f in parsed.factors if "days" not in f.calls for name in f.columns}
    coded = pd.concat([sample, *_beside(source, sample, days)], ignore_index=True)
    design = read_design(
        model.formula, without_outcome(coded, outcome), any_rank=True, one_value=True
    )
    scoring = model.scoring(design.recoded(without_outcome(sample, outcome)))
    records = ScoredTable(
        table=sample,
        scoring=scoring,
        public=scoring,
        outcome=np.full(len(sample), np.nan),
        design=design,
        unit=np.arange(len(sample)),
        weights=None,
    )
    return ScoredSource(source=source, model=model, sample=records, n_units=n)


def without_outcome(table: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """The table with zeros in the place of the outcome, so that nothing of it reaches a coding."""
    zeros = pd.Series(np.zeros(len(table)), index=table.index)
    return with_columns(table, {outcome: zeros})


def _beside(source: Source, sample: pd.DataFrame, days: Collection[str]) -> list[pd.DataFrame]:
    """Records like the first of the sample, with levels that it lacks, or a missing value; `days`
    are columns of dates that are read as numbers."""
    first, rows = sample.iloc[:1], []
    for name in sample.columns:
        number = pd.api.types.is_numeric_dtype(sample[name])
        if name not in days and (not number or sample[name].nunique() <= _MOST_LEVELS):
            levels = source.distinct(name)
            repeated = first.loc[first.index.repeat(len(levels))]
            rows.append(repeated.assign(**{name: levels}).reset_index(drop=True))
    for name in source.has_missing([*sample.columns]):
        rows.append(first.assign(**{name: None}))
    return [part.astype(sample.dtypes.to_dict(), errors="ignore") for part in rows]


def _bins_of_batch(
    bin_of: Callable[[FloatArray], FloatArray], n_bins: int, model: Any, batch: pd.DataFrame
) -> Parts:
    outcome = model.outcome_numbers(batch.iloc[:, 0])
    return Parts((counted_bins(outcome, bin_of, n_bins), _seen(outcome)))


def _scores_of_batch(
    design: Design, theta: FloatArray, clip: ScoringDesign, model: Any, batch: pd.DataFrame
) -> Parts:
    matrix = design.recoded(without_outcome(batch, design.outcome))
    outcome = model.outcome_numbers(batch[design.outcome])
    scores = model.scoring(matrix).scores(theta, outcome)
    return Parts((summed_scores(finite_rows(scores), clip), _seen(outcome)))


def _seen(outcome: FloatArray) -> IntArray:
    """Number of records, and a checksum of their outcomes that does not depend on their order."""
    hashes = pd.util.hash_array(np.ascontiguousarray(outcome + 0.0).ravel())
    return np.array([len(outcome), hashes.sum().view(np.int64)])
