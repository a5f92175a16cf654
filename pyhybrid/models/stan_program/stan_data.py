"""The data block of a user's program: from a table, a mapping or function, and a formula.

The function of the table sees the outcome and the declared predictors, nothing else: no other
column, no row labels, no notes on the table. Other values may stand in the place of all that is
confidential; see `pyhybrid.models.stan_program.data_leak_checks`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.programs import declared_names
from pyhybrid.models.columns.surrogate_values import OtherValues
from pyhybrid.models.formula.design import Design
from pyhybrid.models.stan_program.own_program import OwnProgram

__all__ = ["Replaced", "data_block", "handed_over", "kinds_of"]

_NO_CAP = 1e300
_FROM_PYHYBRID = frozenset({"weights", "use_cap", "cap"})


@dataclass(frozen=True, kw_only=True, eq=False)
class Replaced:
    """What stands in the place of confidential values.

    Attributes
    ----------
    other : OtherValues, optional
        None leaves all values as they are.
    records : ndarray of bool, shape (n,), optional
        Records whose values are replaced; all if omitted.
    rest : bool, default True
        Also entries of a data mapping that have not one value per record.
    differ : bool, default True
        See `OtherValues.instead_of`; False for what is released.
    """

    other: OtherValues | None = None
    records: npt.NDArray[np.bool_] | None = None
    rest: bool = True
    differ: bool = True

    def values(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """`values`, one per record, with those of the chosen records replaced."""
        if self.other is None:
            return values
        made = self.other.instead_of(values, differ=self.differ)
        if self.records is None:
            return made
        chosen = self.records.reshape(-1, *(1,) * (values.ndim - 1))
        return np.where(chosen, made, values)


def handed_over(table: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """A copy of these columns of `table`, in its order, without row labels and notes."""
    shown: pd.DataFrame = table[[name for name in table.columns if name in columns]].reset_index(
        drop=True
    )
    shown.attrs = {}
    return shown


def kinds_of(model: OwnProgram, table: pd.DataFrame) -> str:
    """Kinds of confidential numbers: "f" reals, "i" whole ones, "fi" both."""
    values = [_numbers(table[model.outcome])]
    if isinstance(model.data, Mapping):
        values += [np.asarray(v) for name, v in model.data.items() if name not in model.public]
    return "".join(sorted({"i" if each.dtype.kind in "iub" else "f" for each in values}))


def _numbers(values: pd.Series) -> npt.NDArray[Any]:
    """The outcome as plain integers or floats, whatever pandas keeps it in."""
    whole = pd.api.types.is_integer_dtype(values.dtype)
    return np.asarray(values.to_numpy(dtype=np.int64 if whole else np.float64))


def data_block(
    model: OwnProgram,
    table: pd.DataFrame,
    design: Design | None,
    *,
    predictors: tuple[str, ...],
    alpha: FloatArray,
    cap: float | None = None,
    replaced: Replaced | None = None,
) -> dict[str, Any]:
    """Data block under weights `alpha` (n,), censored at `cap` if given.

    `table` is the confidential one, or has earlier columns of a sequence synthesized.

    Raises
    ------
    InvalidInput
        If the function of the table returns no mapping, reads a column that is not declared, or
        fails on other values.
    """
    how = Replaced() if replaced is None else replaced
    n, declared = len(table), declared_names(model.source, "data")
    shown = handed_over(table, (*predictors, model.outcome))
    if how.other is None:
        shown[model.outcome] = table[model.outcome].reset_index(drop=True)
    else:
        instead = how.values(_numbers(table[model.outcome]))
        shown[model.outcome] = pd.Series(instead).astype(table[model.outcome].dtype)
    if callable(model.data):
        given = _called(model.data, shown, table, quiet=how.other is not None)
    else:
        given = {name: _entry(model, name, v, how, n) for name, v in model.data.items()}
    if design is not None:
        X = design.matrix_of(table)
        given = {name: v for name, v in (("K", X.shape[1]), ("X", X)) if name in declared} | given
    own = {
        "n": n,
        "y": shown[model.outcome].to_numpy(),
        "use_cap": int(cap is not None),
        "cap": cap if cap is not None else (0.0 if "use_cap" in declared else _NO_CAP),
    }
    known = {name: own[name] for name in declared if name in own}
    kept = {name: known[name] for name in ("use_cap", "cap") if name in known}
    return {**known, **given, "weights": alpha} | kept


def _called(
    function: Any, shown: pd.DataFrame, table: pd.DataFrame, *, quiet: bool
) -> dict[str, Any]:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore" if quiet else None):
            if quiet:
                warnings.simplefilter("ignore")
            given = function(shown)
    except (KeyError, AttributeError) as error:
        name = error.name if isinstance(error, AttributeError) else (*error.args, None)[0]
        if name in shown.columns or name not in table.columns:
            if quiet:
                raise InvalidInput("data fails on other values of the outcome") from None
            raise
        raise InvalidInput(
            f"data must read the outcome and declared predictors alone: it reads column {name!r}, "
            "which is not among its predictors; name it in predictors="
        ) from None
    except Exception:
        if quiet:
            raise InvalidInput("data fails on other values of the outcome") from None
        raise
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"data must return a mapping of names to values: found {type(given).__name__}"
        )
    return dict(given)


def _entry(model: OwnProgram, name: str, value: Any, how: Replaced, n: int) -> Any:
    """An entry of a data mapping; what is not declared public counts as confidential."""
    if name in model.public or name in _FROM_PYHYBRID or how.other is None:
        return value
    array = np.asarray(value)
    if array.ndim and array.shape[0] == n:
        return how.values(array)
    if name == "n" and array.ndim == 0:
        return value
    return how.other.instead_of(array, differ=how.differ) if how.rest else value
