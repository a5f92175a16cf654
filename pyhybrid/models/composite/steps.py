"""Steps by which an outcome is made: whether it is missing, 0 or below 0, and how large it is.

Each step has a model of its own, joined to the records that reach it. Predictors are coded with
those of all records: which of them reach a step is confidential and must not shape the coding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.engines.base import Draws
from pyhybrid.models.columns.form import Form
from pyhybrid.models.families.regression import (
    BoundRegression,
    Parameters,
    Positions,
    RegressionModel,
)
from pyhybrid.models.formula.design import Matrix
from pyhybrid.models.formula.values import with_columns

__all__ = [
    "Amount", "Constant", "Inflated", "Node", "Part", "PartsModel", "Replicate", "Step",
    "amounts_of", "decision", "inflated_of", "of_part", "outcome_of", "parts_of", "with_missing",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A model of one step, joined to the records that reach it. Confidential.

    Attributes
    ----------
    name : str
        Suffix of its parameters: ``beta_zero``.
    bound : BoundRegression
    at : ndarray of int, shape (k,)
        Positions of its records, ascending.
    """

    name: str
    bound: BoundRegression
    at: Positions

    def parameters(self, draws: Draws) -> Parameters:
        """Its parameters (S, *dims) by their own names."""
        return {
            name: draws.flat(f"{name}_{self.name}") for name in self.bound.likelihood_parameters
        }

    @cached_property
    def place_of(self) -> Positions:
        """Place of each record of the table among its own, shape (n,); -1 for none."""
        places = np.full(len(self.bound.table), -1, dtype=np.intp)
        places[self.at] = np.arange(self.at.size)
        return places


@dataclass(frozen=True, kw_only=True, eq=False)
class Constant:
    """All records that come here have one value; None is a missing one."""

    value: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Amount:
    """The value itself, `sign` times what the model gives, within limits before the sign."""

    part: Part
    sign: float = 1.0
    within: tuple[float, float] = (-np.inf, np.inf)

    @property
    def released_ends(self) -> tuple[float, float]:
        """Smallest and largest value that may be released, 0 for one next to it."""
        low, high = self.part.bound.model.declared_support or (-np.inf, np.inf)
        low, high = max(low, self.within[0]), min(high, self.within[1])
        low = 0.0 if 0 < low < np.finfo(np.float64).tiny else low
        return (low, high) if self.sign > 0 else (-high, -low)


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """A decision between two ways on, by a model of two levels: the second one is `yes`."""

    part: Part
    yes: Node
    no: Node


@dataclass(frozen=True, kw_only=True, eq=False)
class Inflated:
    """A count, or an extra zero: a mixture of both.

    `at_zero` (n,) tells the records of the table whose count is 0.
    """

    zero: Part
    count: Amount
    at_zero: npt.NDArray[np.bool_]


Node = Constant | Amount | Step | Inflated


class PartsModel(ABC):
    """A model of one outcome made of several."""

    @property
    @abstractmethod
    def models(self) -> dict[str, RegressionModel]:
        """The models of its parts, by name."""

    @property
    @abstractmethod
    def main(self) -> RegressionModel:
        """The model of the values."""

    @abstractmethod
    def tree(self, df: pd.DataFrame, at: Positions) -> Node:
        """The steps of the records at the positions `at` (k,)."""

    @property
    def name(self) -> str:
        """Name of the model."""
        return type(self).__name__

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Form of the outcome's column in a strict release: that of its values."""
        return self.main.forms(df)

    def describe(self) -> dict[str, Any]:
        """Public settings of all parts."""
        return {
            "model": self.name,
            "outcome": outcome_of(self.main),
            "formula": self.main.formula,
            **{name: model.describe() for name, model in self.models.items()},
        }


def outcome_of(model: RegressionModel) -> str:
    """The outcome that a formula names."""
    return model.formula.partition("~")[0].strip().strip("`")


def decision(
    df: pd.DataFrame, outcome: str, name: str, model: Any, at: Positions, yes: Any
) -> Part:
    """The part that says which of the records at `at` (k,) are `yes` (k,), by a Bernoulli model."""
    told = np.zeros(len(df), dtype=bool)
    told[at] = yes
    return Part(name=name, bound=model.bind(with_columns(df, {outcome: told}), at), at=at)


def of_part(draws: Draws, name: str) -> Draws:
    """The variables of one part, by their own names."""
    end = f"_{name}"
    own = {key.removesuffix(end): v for key, v in draws.variables.items() if key.endswith(end)}
    return replace(draws, variables=own)


@dataclass(frozen=True, kw_only=True, eq=False)
class Replicate:
    """One replicate while it is made: `values` (n,) are filled in, NaN where missing.

    `draws` and `matrices` are by part.
    """

    draws: Mapping[str, Draws]
    draw: int
    rng: np.random.Generator
    matrices: Mapping[str, Matrix]
    values: FloatArray

    def fill(self, node: Node, places: Positions) -> None:
        """Values of the records at `places` (k,), which come by this way."""
        if not places.size:
            return
        if isinstance(node, Constant):
            self.values[places] = np.nan if node.value is None else node.value
        elif isinstance(node, Amount):
            self.values[places] = node.sign * self._drawn(node.part, places, node.within)
        elif isinstance(node, Inflated):
            extra = self._drawn(node.zero, places) == 1
            self.values[places[extra]] = 0.0
            self.fill(node.count, places[~extra])
        else:
            decided = self._drawn(node.part, places) == 1
            self.fill(node.yes, places[decided])
            self.fill(node.no, places[~decided])

    def _drawn(
        self,
        part: Part,
        places: Positions,
        within: tuple[float, float] = (-np.inf, np.inf),
    ) -> FloatArray:
        name, own = part.name, part.bound
        return own.drawn(self.draws[name], self.draw, self.rng, self.matrices[name], places, within)


def with_missing(values: pd.Series, there: npt.NDArray[np.bool_], like: pd.Series) -> pd.Series:
    """`values` (k,) where they are `there` (n,), and elsewhere what `like` (n,) has for missing."""
    places = np.where(there, np.cumsum(there) - 1, -1)
    if values.dtype == object:
        gone = like[like.isna()]
        whole = np.full(len(like), gone.iloc[0] if len(gone) else None, dtype=object)
        whole[there] = values.to_numpy(dtype=object)
        objects: pd.Series = pd.Series(whole, index=like.index, name=like.name, dtype=object)
        return objects
    taken = pd.api.extensions.take(values.array, places, allow_fill=True)
    made: pd.Series = pd.Series(taken, index=like.index, name=like.name)
    return made


def parts_of(node: Node) -> Iterator[Part]:
    """All models, in the order of their steps."""
    if isinstance(node, Amount):
        yield node.part
    elif isinstance(node, Inflated):
        yield node.zero
        yield node.count.part
    elif isinstance(node, Step):
        yield node.part
        yield from parts_of(node.yes)
        yield from parts_of(node.no)


def amounts_of(node: Node) -> Iterator[Amount]:
    """Where values come from, those of the first sign first."""
    if isinstance(node, Amount):
        yield node
    elif isinstance(node, Inflated):
        yield node.count
    elif isinstance(node, Step):
        yield from amounts_of(node.no)
        yield from amounts_of(node.yes)


def inflated_of(node: Node) -> Inflated | None:
    """The mixture among the steps, if there is one."""
    if isinstance(node, Step):
        return inflated_of(node.no) or inflated_of(node.yes)
    return node if isinstance(node, Inflated) else None
