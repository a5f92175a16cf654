"""From a table and a Wilkinson formula to an outcome and a design matrix, coded as R codes them.

Unordered categorical predictors get treatment contrasts against their first level, ordered ones
polynomial contrasts (`contr.poly`), logicals one column; rows are never dropped. Where a predictor
is missing, the terms that read it are 0, and the column `is.na(predictor)` is 1 (the
missing-indicator method): nothing is imputed, and a row is coded from its values alone. What a
formula may contain is in `pyhybrid.models.formula.terms`. Terms that compute something
from all records (a centering, a spline with knots from the data) are known by their text.
Refusals name rows, never values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_names, not_a_frame
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.coding import (
    Coded,
    Numbers,
    State,
    code_factor,
    takes_all_records,
)
from pyhybrid.models.formula.terms import Factor, Formula, parse_formula
from pyhybrid.models.formula.values import first_row, row_label

_INDEPENDENT = 1e-6  # of an indicator, not explained by other columns of the design
Positions = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """A design matrix (n, K) with the sum of offsets (n,), each column's name, which may hold a
    level, and term, which does not."""

    X: FloatArray
    offset: FloatArray
    columns: tuple[str, ...]
    terms: tuple[str, ...]

    def named(self, place: int) -> str:
        """How messages name a column: by its term, and by its place among the columns of the term
        rather than by its level, which is a value of the data."""
        term = self.terms[place]
        nth = f" (column {place - self.terms.index(term) + 1} of it)"
        return repr(term) + (nth if self.terms.count(term) > 1 else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Coding:
    """How the columns of a design were made, so that other tables are coded alike: `state` is what
    the factors took from the data, `spec` formulaic's record of contrasts and of columns left out,
    `missing` the predictors with missing values, `indicators` those of them with a column of their
    own. Confidential."""

    formula: Formula
    state: State
    spec: Any
    missing: tuple[str, ...] = ()
    indicators: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Coding of {self.formula.text!r}>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Design(Matrix):
    """Outcome and predictors of one regression; its matrix has full column rank. `y` (n,) is
    finite, `predictors` are the columns read, `data_dependent` the terms whose coding depends on
    all records."""

    outcome: str
    y: FloatArray
    predictors: tuple[str, ...]
    data_dependent: tuple[str, ...] = ()
    coding: Coding | None = field(default=None, repr=False)

    @property
    def has_offset(self) -> bool:
        """True if the formula has an ``offset()``."""
        return self.coding is not None and bool(self.coding.formula.offsets)

    def matrix_of(self, df: pd.DataFrame) -> FloatArray:
        return self.recoded(df).X

    def recoded(self, df: pd.DataFrame) -> Matrix:
        """Design matrix and offset of another table, coded as this one's; InvalidInput names the
        row of levels that the data did not have, of non-finite values, and of missing values in
        columns that had none."""
        assert self.coding is not None
        return _code_table(self.coding.formula, df, self.coding)[0]


def read_design(
    formula: str,
    df: pd.DataFrame,
    numbers_of: Callable[[pd.Series, str], FloatArray] | None = None,
    at: Positions | None = None,
    *,
    any_rank: bool = False,
    one_value: bool = False,
) -> Design:
    """Evaluate `formula` on `df`; no message holds a value of the data.

    `numbers_of` makes finite numbers (n,) of the outcome's column, given with its name and without
    missing values; without it the column must be numeric. With the positions `at` (k,) of some
    records the outcome is read from these alone, and may be constant there; the predictors are
    coded with those of all records, so that which ones were chosen does not change the coding, and
    their rank is that of all. With `any_rank` the columns may be combinations of others, or all
    zero: a proper prior on each coefficient makes up for it. With
    `one_value` the outcome may be the same for all records."""
    _check_table(df)
    parsed = parse_formula(formula, df)
    values = df[parsed.outcome] if at is None else df[parsed.outcome].iloc[at]
    y = _outcome(values, parsed.outcome, numbers_of or _numbers)
    if at is None and not one_value and np.ptp(y) == 0:
        raise InvalidInput(
            f"outcome {parsed.outcome!r} must vary: all {y.size} records have the same value"
        )
    matrix, coding = _code_table(parsed, df)
    _check_rank(matrix, any_rank=any_rank)
    dependent = sorted(f.text for f in parsed.factors if takes_all_records(f))
    if at is not None:
        matrix = replace(matrix, X=matrix.X[at], offset=matrix.offset[at])
    return Design(
        **vars(matrix), outcome=parsed.outcome, y=y, predictors=parsed.predictors,
        data_dependent=tuple(dependent), coding=coding,
    )  # fmt: skip


def check_formulas(df: Any, formulas: Iterable[str]) -> None:
    """Refuse a table or formulas that `read_design` would refuse by names alone."""
    _check_table(df)
    for formula in formulas:
        parse_formula(formula, df)


def _check_table(df: Any) -> None:
    if not isinstance(df, pd.DataFrame):
        raise not_a_frame(df)
    if df.shape[1] == 0 or len(df) == 0:
        raise InvalidInput(f"data must have rows and columns: found shape {df.shape}")
    if len(df) < 2:
        raise InvalidInput("data must have at least 2 records: found 1")
    check_names(df.columns, df.index.names)


def _outcome(
    values: pd.Series, name: str, numbers_of: Callable[[pd.Series, str], FloatArray]
) -> FloatArray:
    if values.isna().any():
        label = first_row(values.index, values.isna().to_numpy())
        raise InvalidInput(
            f"outcome {name!r} must not be missing: {label} is; "
            "drop or impute such rows before synthesis, or give the model missing=True"
        )
    return numbers_of(values, name)


def _numbers(values: pd.Series, name: str) -> FloatArray:
    kinds = pd.api.types
    real = kinds.is_numeric_dtype(values) and not kinds.is_complex_dtype(values)
    if not real or kinds.is_bool_dtype(values) or isinstance(values.dtype, pd.CategoricalDtype):
        instead = (
            "its values are numbers written as text, so make numbers of them by pd.to_numeric()"
            if _numbers_as_text(values)
            else "take the model categorical (ordinal if its levels have an order, bernoulli if "
            "there are two), or make numbers of it"
        )
        raise InvalidInput(f"outcome {name!r} must be numeric: found {values.dtype}; {instead}")
    y = values.to_numpy(dtype=np.float64)
    if not np.isfinite(y).all():
        label = first_row(values.index, ~np.isfinite(y))
        raise InvalidInput(f"outcome {name!r} must be finite: {label} is not")
    return y


def _numbers_as_text(values: pd.Series) -> bool:
    """True of text and objects that are all real numbers; categories and logicals are none."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return False
    objects = values.astype(object)
    if objects.map(lambda value: isinstance(value, (bool, np.bool_, complex))).any():
        return False
    try:
        return bool(pd.to_numeric(objects, errors="coerce").notna().all())
    except OverflowError:  # whole numbers that no float holds
        return False


def _check_rank(matrix: Matrix, *, any_rank: bool) -> None:
    """Refuse columns that are combinations of earlier ones, by pivoted QR of the scaled design."""
    from scipy.linalg import qr

    X = matrix.X
    with np.errstate(over="ignore"):
        size = np.sqrt((X**2).sum(axis=0))
    if not np.isfinite(size).all():
        raise InvalidInput("predictors must be small enough to square: rescale the large ones")
    if any_rank:
        return
    zero = np.flatnonzero(size == 0)
    if zero.size:
        raise InvalidInput(
            f"predictor {matrix.named(int(zero[0]))} must not be all zero: drop it, or a level "
            "that no record has"
        )
    constant = np.flatnonzero(np.ptp(X[:, 1:], axis=0) == 0) + 1
    if (X[:, 0] == 1).all() and constant.size:
        raise InvalidInput(
            f"predictor {matrix.named(int(constant[0]))} must vary: it is constant; leave it out"
        )
    triangle, order = qr(X / size, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > diagonal[0] * max(X.shape) * np.finfo(float).eps).sum())
    if rank < X.shape[1]:
        named = ", ".join(matrix.named(int(place)) for place in order[rank:])
        raise InvalidInput(
            f"the design must have full column rank: rank {rank} of {X.shape[1]} columns; "
            f"{named} is a combination of the others: leave it out"
        )


def _code_table(
    formula: Formula, df: pd.DataFrame, coding: Coding | None = None
) -> tuple[Matrix, Coding]:
    """Design matrix of `df`, and how it was made; `coding` is that of another table, which `df` is
    then coded by."""
    missing = _missing_predictors(formula, df, coding)
    state = {} if coding is None else dict(coding.state)
    present = {factor.text: _present(factor, df) for factor in formula.factors}
    coded = {factor.text: _factor_values(factor, df, state) for factor in formula.factors}
    for text, values in coded.items():
        _check_values(text, values, present[text], df.index)
    matrix, spec = _matrix(formula, coded, len(df), None if coding is None else coding.spec)
    infinite = np.argwhere(~np.isfinite(matrix.X))
    if infinite.size:  # a product of finite numbers
        label, named = row_label(df.index, int(infinite[0, 0])), matrix.named(int(infinite[0, 1]))
        raise InvalidInput(f"predictor {named} must be finite: {label} is not")
    if not np.isfinite(matrix.offset).all():  # a sum of finite numbers
        label = first_row(df.index, ~np.isfinite(matrix.offset))
        raise InvalidInput(f"the sum of the offsets must be finite: {label} is not")
    _zero_where_missing(matrix, spec, present)
    indicators = coding.indicators if coding else _independent_indicators(matrix.X, df[missing])
    matrix = _with_indicators(matrix, df, indicators)
    return matrix, Coding(
        formula=formula,
        state=state,
        spec=spec,
        missing=tuple(missing),
        indicators=indicators,
    )


def _missing_predictors(formula: Formula, df: pd.DataFrame, coding: Coding | None) -> list[str]:
    """Predictors with missing values. Refused are those of an offset, those without any value, and,
    where the table is coded as another, those that had no missing value there."""
    missing = [name for name in formula.predictors if df[name].isna().any()]
    in_offsets = {name for factor in formula.offsets for name in factor.columns.values()}
    for name in missing:
        label = first_row(df.index, df[name].isna().to_numpy())
        if name in in_offsets:
            raise InvalidInput(f"offset {name!r} must not be missing: {label} is")
        if coding is None and df[name].isna().all():
            raise InvalidInput(f"predictor {name!r} must have values: all are missing")
        if coding is not None and name not in coding.missing:
            raise InvalidInput(
                f"predictor {name!r} must not be missing, since it was not in the table that "
                f"decides the coding: {label} is"
            )
    return missing


def _present(factor: Factor, df: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Rows (n,) in which no column that the factor reads is missing."""
    return np.asarray(df[list(factor.columns.values())].notna().all(axis=1))


def _factor_values(factor: Factor, df: pd.DataFrame, state: State) -> Coded:
    """Values of a factor, which are 0, or level -1, where a column that it reads is missing."""
    present = _present(factor, df)
    coded = code_factor(factor, df if present.all() else df[present], state)
    if present.all():
        return coded
    if isinstance(coded, Numbers):
        values = np.zeros((len(df), coded.values.shape[1]))
        values[present] = coded.values
        return replace(coded, values=values)
    codes = np.full(len(df), -1)
    codes[present] = coded.codes
    return replace(coded, codes=codes)


def _zero_where_missing(
    matrix: Matrix, spec: Any, present: Mapping[str, npt.NDArray[np.bool_]]
) -> None:
    """Set the columns of a term to 0 in rows where one of its factors is not `present` (n,)."""
    start = 0
    for part in spec.structure:
        stop = start + len(part.columns)
        for factor in part.term.factors:
            if factor.expr in present:
                matrix.X[~present[factor.expr], start:stop] = 0.0
        start = stop


def _independent_indicators(X: FloatArray, columns: pd.DataFrame) -> tuple[str, ...]:
    """Columns whose indicator of missing values is no combination of X and of those before it."""
    kept = []
    for name in columns:
        indicator = columns[name].isna().to_numpy(dtype=np.float64)
        residual = indicator - X @ np.linalg.lstsq(X, indicator, rcond=None)[0]
        if np.abs(residual).max() > _INDEPENDENT:
            X = np.column_stack([X, indicator])
            kept.append(str(name))
    return tuple(kept)


def _with_indicators(matrix: Matrix, df: pd.DataFrame, names: Sequence[str]) -> Matrix:
    """The matrix with a column `is.na(name)` for each of `names`."""
    if not names:
        return matrix
    labels = [f"is.na({name})" for name in names]
    return replace(
        matrix,
        X=np.column_stack([matrix.X, df[[*names]].isna().to_numpy(dtype=np.float64)]),
        columns=(*matrix.columns, *labels),
        terms=(*matrix.terms, *labels),
    )


def _check_values(
    text: str, values: Coded, present: npt.NDArray[np.bool_], index: pd.Index
) -> None:
    if isinstance(values, Numbers):
        wrong = np.asarray(~np.isfinite(values.values).all(axis=1))
        must, does = "be finite", "is not"
    else:
        wrong = values.codes < 0
        must = "lie within its breaks" if text.startswith("cut(") else "have one of its levels"
        does = "does not"
    wrong &= present
    if wrong.any():
        raise InvalidInput(f"predictor {text!r} must {must}: {first_row(index, wrong)} {does}")


def _matrix(formula: Formula, coded: Mapping[str, Coded], n: int, spec: Any) -> tuple[Matrix, Any]:
    """Design matrix of factors that were evaluated on n records, by formulaic, and its record;
    `spec` is that of another table, where it was decided which columns are left out to keep full
    rank."""
    table, context = {}, {}
    for text, values in coded.items():
        if isinstance(values, Numbers) and not values.names:
            table[text] = values.values[:, 0]
        else:
            context[text] = _encoded(values)
    frame = pd.DataFrame(table, index=pd.RangeIndex(n))
    if spec is None:
        matrices = _terms(formula).get_model_matrix(frame, context=context, na_action="ignore")
    else:
        matrices = spec.get_model_matrix(frame, context=context)
    X = np.array(matrices, dtype=np.float64, order="C")
    if X.shape[0] != n or X.shape[1] == 0:
        raise InvalidInput(
            f"formula {formula.text!r} must give a row per record and a column or more"
        )
    terms = [str(part.term) for part in matrices.model_spec.structure for _ in part.columns]
    columns = [str(column) for column in matrices.columns]
    offset = np.zeros(n)
    for values in (coded[factor.text] for factor in formula.offsets):
        assert isinstance(values, Numbers)
        with np.errstate(over="ignore"):  # refused later, with its row
            offset = offset + values.values[:, 0]
    matrix = Matrix(
        X=X,
        offset=offset,
        columns=tuple(columns),
        terms=tuple(terms),
    )
    return matrix, matrices.model_spec


def _terms(formula: Formula) -> Any:
    """The terms as formulaic's own, which looks each factor up by its text."""
    from formulaic import Formula as Terms
    from formulaic.parser.types import Factor as Looked
    from formulaic.parser.types import Term

    intercept = [Looked("1", eval_method="literal")]
    return Terms(
        [
            Term([Looked(factor.text, eval_method="lookup") for factor in term] or intercept)
            for term in formula.terms
        ]
    )


def _encoded(values: Coded) -> Any:
    """A factor of several columns, as formulaic takes it."""
    from formulaic.materializers.types import FactorValues
    from formulaic.transforms import C
    from formulaic.transforms.contrasts import ContrastsRegistry

    if isinstance(values, Numbers):
        columns = pd.DataFrame(values.values, columns=list(values.names))
        return FactorValues(columns, kind="numerical")
    codes = np.maximum(values.codes, 0)  # where missing: set to 0 in the matrix
    levels = pd.Categorical.from_codes(codes, categories=pd.Index(values.levels))
    contrasts = getattr(ContrastsRegistry, values.contrasts.removeprefix("contr."))
    return C(pd.Series(levels), contrasts())
