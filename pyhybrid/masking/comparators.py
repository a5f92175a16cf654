"""Comparators with the interface of `MaskedImputation`: synthesis of keys without masks.

Keys are synthesized in sequence, each from a model of the true keys given predictors and the true
earlier keys, evaluated at the synthetic earlier ones; parameters are plugged in, as is usual for
partially synthetic data [R03], or with `proper` refitted to a resample of the records for each set.
Not differentially private.

References
----------
Reiter (2005), J. Official Statistics 21:441-462 (CART); [R03] Reiter (2003).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count, check_flag
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.masking.columns import BoundKeys, Column, KeySynthesis, Values, bind_keys
from pyhybrid.masking.families import draw_levels
from pyhybrid.masking.release import MaskedRelease, masked_release

Draw = Callable[[FloatArray, np.random.Generator], Values]
"""Draws a key given the design of the columns before it."""


@dataclass(frozen=True, kw_only=True)
class _SequentialComparator(KeySynthesis, ABC):
    """What both have in common; parameters as in `MaskedImputation`. With `proper` each set has
    models fitted to as many records drawn with replacement, again if a level does not occur."""

    proper: bool = False
    _method: ClassVar[str]  # what releases say they were made by, but for `proper`

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self.proper, "proper")

    @abstractmethod
    def _fitted(self, column: Column, known: FloatArray, seed: int) -> Draw:
        """A model of one key given the columns before it."""

    def release(self, df: pd.DataFrame, *, seed: int | None = None) -> MaskedRelease:
        """Release sets as `MaskedImputation.release` does; keys and predictors must be complete."""
        bound = bind_keys(self, df)
        for column in (*bound.keys, *bound.incomplete):
            if column.missing.any():
                raise InvalidInput(
                    f"{type(self).__name__} needs complete columns: {column.name!r} has missing "
                    "values; leave it out, or use MaskedImputation"
                )
        source = streams(seed)
        resampled = ", models of a resample for each set" if self.proper else ""
        method = self._method.format(self) + resampled
        ones = np.ones((bound.n_records, 1))
        known = np.hstack([ones, *(c.encoded(c.values) for c in bound.complete)])
        rng = source.generator("comparator")
        models: list[Draw] = []
        tables = []
        for _ in range(self.n_synthetic):
            if self.proper or not models:
                models = self._models(bound, known, rng)
            design, drawn = known, {}
            for column, draw in zip(bound.keys, models, strict=True):
                drawn[column.name] = draw(design, rng)
                design = np.hstack([design, column.encoded(drawn[column.name])])
            tables.append(bound.released(df, drawn))
        return masked_release(
            tables,
            df,
            method=method,
            masks=dict.fromkeys(self.keys, "no mask"),
            settings={"method": method, **bound.described()},
            streams=source,
        )

    def _models(self, bound: BoundKeys, known: FloatArray, rng: np.random.Generator) -> list[Draw]:
        """A model of each key given what comes before it."""
        rows = np.arange(bound.n_records)
        leveled = [column for column in bound.keys if column.n_levels]
        while self.proper:
            rows = rng.integers(bound.n_records, size=bound.n_records)
            if all(len(np.unique(c.values[rows])) == c.n_levels for c in leveled):
                break
        models, design = [], known[rows]
        for column in bound.keys:
            of_rows = replace(column, values=column.values[rows])
            models.append(self._fitted(of_rows, design, int(rng.integers(2**31 - 1))))
            design = np.hstack([design, column.encoded(of_rows.values)])
        return models


@dataclass(frozen=True, kw_only=True)
class CartSynthesis(_SequentialComparator):
    """Sequential trees: a value of the leaf that the record falls in, drawn at random.

    Attributes
    ----------
    min_leaf : int, default 5
        Fewest records of a leaf. Released values of continuous keys are values of the data.
    min_split : int, default 2
        Fewest records of a node that may be split; rpart, and with it synthpop, takes three times
        min_leaf.
    """

    min_leaf: int = 5
    min_split: int = 2
    _method = "sequential CART, leaves of at least {0.min_leaf} records, without masks"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.min_leaf, "min_leaf")
        check_count(self.min_split, "min_split", at_least=2)

    def _fitted(self, column: Column, known: FloatArray, seed: int) -> Draw:
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        kind = DecisionTreeRegressor if column.kind == "continuous" else DecisionTreeClassifier
        tree = kind(
            min_samples_leaf=self.min_leaf, min_samples_split=self.min_split, random_state=seed
        )
        leaf_of = tree.fit(known, column.values).apply(known)
        order = np.argsort(leaf_of, kind="stable")
        leaves, first, sizes = np.unique(leaf_of[order], return_index=True, return_counts=True)

        def draw(design: FloatArray, rng: np.random.Generator) -> Values:
            leaf = np.searchsorted(leaves, tree.apply(design))
            return np.asarray(column.values[order[first[leaf] + rng.integers(sizes[leaf])]])

        return draw


@dataclass(frozen=True, kw_only=True)
class ParametricSynthesis(_SequentialComparator):
    """Normal regressions for continuous keys, (multinomial) logit models for all others."""

    _method = "sequential normal and logit models, without masks"

    def _fitted(self, column: Column, known: FloatArray, seed: int) -> Draw:
        if column.kind == "continuous":
            from statsmodels.regression.linear_model import OLS

            fit = OLS(column.values, known).fit()
            slopes, sd = np.asarray(fit.params), float(np.sqrt(fit.scale))
            return lambda design, rng: design @ slopes + sd * rng.standard_normal(len(design))
        from sklearn.linear_model import LogisticRegression

        # A penalty too small to matter, but for separated levels, which it keeps finite.
        model = LogisticRegression(C=100.0, max_iter=2000, fit_intercept=False)
        model.fit(known, column.values)

        def draw(design: FloatArray, rng: np.random.Generator) -> Values:
            with np.errstate(divide="ignore"):
                return draw_levels(np.log(model.predict_proba(design)), rng)

        return draw
