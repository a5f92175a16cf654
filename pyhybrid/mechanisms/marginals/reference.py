"""Records of a reference in the cells that are measured: what is known of effects without noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from pyhybrid.core.checks import FloatArray, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.censored.reference_records import shares_records
from pyhybrid.mechanisms.marginals.chain import predictors_of
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.mechanisms.marginals.effects import Known
from pyhybrid.mechanisms.marginals.predictors import ALONE, PARTS, Predictor, of_public

__all__ = ["Reference", "reference_of"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reference:
    """A reference table, and its public predictors in the cells of the data's.

    Attributes
    ----------
    table : DataFrame
    weight : float
        Power of its likelihood, in (0, 1].
    public : mapping of str to Predictor
    """

    table: pd.DataFrame
    weight: float
    public: Mapping[str, Predictor]

    def counts(self, column: str, domain: ColumnDomain) -> FloatArray:
        """Weighted counts of a column's cells, shape (K,)."""
        own = domain.places(self.table[column])
        return self.weight * np.bincount(own, minlength=domain.n_cells).astype(np.float64)

    def known(self, column: str, reads: Sequence[str], domain: Mapping[str, ColumnDomain]) -> Known:
        """Its records in the cells of a column and of its predictors."""
        names = [column, *(name for name in reads if name not in self.public and name != ALONE)]
        places = {name: domain[name].places(self.table[name]) for name in names}
        own = predictors_of(reads, self.public, places, domain, len(self.table))
        whole = sparse.csr_array(sparse.hstack([each.cells for each in own], format="csr"))
        return Known(outcome=places[column], cells=whole / PARTS, weight=self.weight)


def reference_of(
    table: Any,
    weight: float,
    df: pd.DataFrame,
    domain: Mapping[str, ColumnDomain],
    given: Sequence[str],
) -> tuple[Reference, dict[str, Predictor]]:
    """The reference, and the data's public predictors, coded together.

    Raises
    ------
    InvalidInput
        For a reference that lacks a column, has values outside of their domain, or shares more
        records with the data than chance explains.
    """
    if not isinstance(table, pd.DataFrame):
        raise InvalidInput(f"reference must be a DataFrame: found {type(table).__name__}")
    synthesized = [name for name in domain if name not in given]
    for name in (*synthesized, *given):
        if name not in table.columns:
            raise InvalidInput(
                f"reference must have the column {name!r}: it has not"
                f"{did_you_mean(name, table.columns)}"
            )
    if not len(table):
        raise InvalidInput("reference must have rows: it has none")
    if shares_records(table, df, [*synthesized, *given]):
        raise InvalidInput(
            "reference must be other records than those to be released: it shares more of them "
            "than chance explains, and what is read from it costs no epsilon"
        )
    both = {name: _together(df[name], table[name], domain.get(name)) for name in given}
    made = Reference(
        table=table.reset_index(drop=True),
        weight=weight,
        public={name: _part(own, slice(len(df), None)) for name, own in both.items()},
    )
    for name in synthesized:
        try:
            domain[name].places(made.table[name])
        except InvalidInput as error:
            raise InvalidInput(f"reference: {error}") from None
    return made, {name: _part(own, slice(0, len(df))) for name, own in both.items()}


def _together(one: pd.Series, other: pd.Series, domain: ColumnDomain | None) -> Predictor:
    if one.dtype != other.dtype and not _numbers(one, other):
        one, other = one.astype(object), other.astype(object)
    both: pd.Series = pd.concat([one, other], ignore_index=True)
    both.name = one.name
    return of_public(both, domain)


def _numbers(*columns: pd.Series) -> bool:
    return all(pd.api.types.is_numeric_dtype(each.dtype) for each in columns)


def _part(predictor: Predictor, rows: slice) -> Predictor:
    return replace(predictor, cells=sparse.csr_array(predictor.cells[rows]))
