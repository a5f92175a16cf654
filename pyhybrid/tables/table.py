"""A table to be synthesized as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhybrid.tables.plan import MOST_COEFFICIENTS, Plan, plan_of
from pyhybrid.tables.table_spec import DescribedTable

__all__ = ["Table"]


@dataclass(frozen=True, repr=False)
class Table(DescribedTable):
    """A table with confidential columns.

    Parameters
    ----------
    df : DataFrame
        Confidential records, one row each. Not modified.
    sensitive : sequence of str
        Columns to synthesize.
    id : str, optional
        Column that names each row once; it is released as running numbers.
    drop : sequence of str
        Columns that are not released, and that nothing reads.
    keep : sequence of str
        Columns to release as they are also where they look risky. All others that are not
        sensitive are kept, too, unless `Release.save` asks for a decision. Kept columns are the
        first predictors.
    types : mapping of str to Kind
        What columns can hold, e.g. ``{"income": ph.SemiContinuous(lower=0, unit=20_000)}``. A
        column of logicals says so itself; for all other sensitive columns a strict charge needs a
        type, here or from `reference`. Categories are none: ``astype("category")`` takes them from
        the records.
    rules : sequence of str
        That every row meets, e.g. ``"wage <= income"``, or ``"age < 16 -> income == 0"`` for a
        structural zero; see `pyhybrid.models.formula.row_rules`.
    order : "auto" or sequence of str
        In which sensitive columns are synthesized; "auto" by their kinds, few levels first.
    reference : DataFrame, optional
        Public or historical records that types may be read from. Their own records are not
        protected by releases of `df`.
    holds_no_released_record : bool, default False
        The owner's word that the reference holds none of the records of `df`, without which types
        that are read from it make no charge strict.

    Raises
    ------
    InvalidInput
        For names that are no columns, columns that are said to be two things, an id that names a
        row twice, columns without any value or with one only, values that are none of the declared
        levels (the row is named), and rules that no row meets.

    Examples
    --------
    >>> table = ph.Table(df, sensitive=["voted", "income"], id="person", keep=["age", "sex"])
    >>> print(table.plan())
    """

    def plan(
        self,
        *,
        split: str | Mapping[str, float] = "equal",
        most_coefficients: int = MOST_COEFFICIENTS,
    ) -> Plan:
        """Which model, which predictors, in which order; see `pyhybrid.tables.plan.plan_of`."""
        return plan_of(self, split=split, most_coefficients=most_coefficients)
