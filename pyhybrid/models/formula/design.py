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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import BoolArray, FloatArray, IntArray, check_names, not_a_frame
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.coding import Coded, State, categories, code_factor, takes_all_records
from pyhybrid.models.formula.terms import Factor, Formula, parse_formula
from pyhybrid.models.formula.values import first_row, is_number, row_label

_INDEPENDENT = 1e-6  # of an indicator, not explained by other columns of the design
INTERCEPT = "Intercept"
"""Name of its column."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """A design matrix (n, K) with the sum of offsets (n,), each column's name, which may hold a
    level, and term, which does not; `indicators` are the predictors with a column that is 1 where
    they are missing."""

    X: FloatArray
    offset: FloatArray
    columns: tuple[str, ...]
    terms: tuple[str, ...]
    indicators: tuple[str, ...] = ()

    def named(self, place: int) -> str:
        """How messages name a column: by its term, and by its place among the columns of the term
        rather than by its level, which is a value of the data."""
        term = self.terms[place]
        nth = f" (column {place - self.terms.index(term) + 1} of it)"
        return repr(term) + (nth if self.terms.count(term) > 1 else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Design(Matrix):
    """Outcome `y` (n,), finite, and predictors of one regression, and how they were coded: `state`
    is what the factors took from the data, `spec` formulaic's record of contrasts and of columns
    left out, `missing` the predictors with missing values. Confidential."""

    formula: Formula
    y: FloatArray
    state: State = field(repr=False)
    spec: Any = field(repr=False)
    missing: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        return self.formula.outcome

    @property
    def predictors(self) -> tuple[str, ...]:
        """Columns that the terms read."""
        return self.formula.predictors

    @property
    def has_offset(self) -> bool:
        """True if the formula has an ``offset()``."""
        return bool(self.formula.offsets)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Terms whose coding depends on all records."""
        return tuple(sorted(f.text for f in self.formula.factors if takes_all_records(f)))

    def recoded(self, df: pd.DataFrame) -> Matrix:
        """Design matrix and offset of another table, coded as this one's; InvalidInput names the
        row of levels that the data did not have, of non-finite values, and of missing values in
        columns that had none."""
        return _code_table(self.formula, df, self)[0]


def read_design(
    formula: str,
    df: pd.DataFrame,
    numbers_of: Callable[[pd.Series, str], FloatArray] | None = None,
    at: IntArray | None = None,
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
    check_table(df)
    parsed = parse_formula(formula, df)
    values = df[parsed.outcome] if at is None else df[parsed.outcome].iloc[at]
    if values.isna().any():
        label = first_row(values.index, values.isna().to_numpy())
        raise InvalidInput(
            f"outcome {parsed.outcome!r} must not be missing: {label} is; "
            "drop or impute such rows before synthesis, or give the model missing=True"
        )
    y = (numbers_of or _numbers)(values, parsed.outcome)
    if at is None and not one_value and np.ptp(y) == 0:
        raise InvalidInput(
            f"outcome {parsed.outcome!r} must vary: all {y.size} records have the same value"
        )
    matrix, coding = _code_table(parsed, df)
    _check_rank(matrix, any_rank=any_rank)
    if at is not None:
        matrix = replace(matrix, X=matrix.X[at], offset=matrix.offset[at])
    return Design(**vars(matrix), **coding, formula=parsed, y=y)


def check_table(df: Any) -> None:
    """Raise InvalidInput for what is no table of two records or more with names."""
    if not isinstance(df, pd.DataFrame):
        raise not_a_frame(df)
    if df.shape[1] == 0 or len(df) == 0:
        raise InvalidInput(f"data must have rows and columns: found shape {df.shape}")
    if len(df) < 2:
        raise InvalidInput("data must have at least 2 records: found 1")
    check_names(df.columns, df.index.names)


def _numbers(values: pd.Series, name: str) -> FloatArray:
    if not is_number(values) or pd.api.types.is_complex_dtype(values):
        raise InvalidInput(
            f"outcome {name!r} must be numeric: found {values.dtype}; take a model of levels "
            "(bernoulli, categorical, ordinal), or make numbers of it by pd.to_numeric()"
        )
    y = values.to_numpy(dtype=np.float64)
    if not np.isfinite(y).all():
        label = first_row(values.index, ~np.isfinite(y))
        raise InvalidInput(f"outcome {name!r} must be finite: {label} is not")
    return y


def _check_rank(matrix: Matrix, *, any_rank: bool) -> None:
    """Refuse columns that are combinations of others, by pivoted QR of the scaled design."""
    from scipy.linalg import qr

    X = matrix.X
    with np.errstate(over="ignore"):
        size = np.sqrt((X**2).sum(axis=0))
    if not np.isfinite(size).all():
        raise InvalidInput("predictors must be small enough to square: rescale the large ones")
    if any_rank:
        return
    triangle, order = qr(X / np.where(size > 0, size, 1.0), mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > diagonal[0] * max(X.shape) * np.finfo(float).eps).sum())
    if rank < X.shape[1]:
        named = ", ".join(matrix.named(int(place)) for place in order[rank:])
        raise InvalidInput(
            f"the design must have full column rank: rank {rank} of {X.shape[1]} columns; "
            f"{named} is constant, zero, or a combination of the others: leave it out, or a level "
            "that no record has"
        )


def indicator_of(predictor: str) -> str:
    return f"is.na({predictor})"


def _code_table(
    formula: Formula, df: pd.DataFrame, known: Design | None = None
) -> tuple[Matrix, dict[str, Any]]:
    """Design matrix of `df`, and what a `Design` keeps of how it was made; `known` is that of
    another table, which `df` is then coded by."""
    missing = _missing_predictors(formula, df, known)
    state = {} if known is None else dict(known.state)
    present = {f.text: df[list(f.columns)].notna().all(axis=1).to_numpy() for f in formula.factors}
    coded = {f.text: _factor_values(f, df, state, present[f.text]) for f in formula.factors}
    X, spec = _matrix(formula, coded, len(df), None if known is None else known.spec)
    offset = np.zeros(len(df))
    with np.errstate(over="ignore"):  # refused below, with its row
        for factor in formula.offsets:
            offset = offset + coded[factor.text]
    terms = [part.term for part in spec.structure for _ in part.columns]
    for column, term in enumerate(terms):  # 0 where a factor is missing
        for text in {factor.expr for factor in term.factors} & present.keys():
            X[~present[text], column] = 0.0
    columns, names = tuple(map(str, spec.column_names)), tuple(map(str, terms))
    matrix = Matrix(X=X, offset=offset, columns=columns, terms=names)
    finite = np.isfinite(X)
    if not finite.all():  # a product of finite numbers
        row, column = np.argwhere(~finite)[0]
        label, named = row_label(df.index, int(row)), matrix.named(int(column))
        raise InvalidInput(f"predictor {named} must be finite: {label} is not")
    if (wrong := ~np.isfinite(offset)).any():  # a sum of finite numbers
        label = first_row(df.index, wrong)
        raise InvalidInput(f"the sum of the offsets must be finite: {label} is not")
    indicators = _independent_indicators(X, df[missing]) if known is None else known.indicators
    if indicators:
        more = tuple(map(indicator_of, indicators))
        X = np.column_stack([X, df[[*indicators]].isna().to_numpy(dtype=np.float64)])
        columns, names = (*columns, *more), (*names, *more)
        matrix = replace(matrix, X=X, columns=columns, terms=names, indicators=indicators)
    return matrix, {"state": state, "spec": spec, "missing": tuple(missing)}


def _missing_predictors(formula: Formula, df: pd.DataFrame, known: Design | None) -> list[str]:
    """Predictors with missing values. Refused are those of an offset, those without any value, and,
    where the table is coded as another, those that had no missing value there."""
    missing = [name for name in formula.predictors if df[name].isna().any()]
    in_offsets = {name for factor in formula.offsets for name in factor.columns}
    for name in missing:
        label = first_row(df.index, df[name].isna().to_numpy())
        if name in in_offsets:
            raise InvalidInput(f"offset {name!r} must not be missing: {label} is")
        if known is None and df[name].isna().all():
            raise InvalidInput(f"predictor {name!r} must have values: all are missing")
        if known is not None and name not in known.missing:
            raise InvalidInput(
                f"predictor {name!r} must not be missing, since it was not in the table that "
                f"decides the coding: {label} is"
            )
    return missing


def _factor_values(factor: Factor, df: pd.DataFrame, state: State, present: BoolArray) -> Coded:
    """Values of a factor, which are 0, or level -1, in rows that are not `present` (n,);
    InvalidInput names the first row with a value that is none."""
    coded = code_factor(factor, df if present.all() else df[present], state)
    if isinstance(coded, pd.Categorical):
        wrong, does = np.asarray(coded.codes < 0), "does not"
        must = "lie within its breaks" if "cut" in factor.calls else "have one of its levels"
    else:
        wrong, does = np.asarray(~np.atleast_2d(np.isfinite(coded).T).all(axis=0)), "is not"
        must = "be days as in 2001-12-31" if "days" in factor.calls else "be finite"
    if wrong.any():
        label = first_row(df.index[present], wrong)
        raise InvalidInput(f"predictor {factor.text!r} must {must}: {label} {does}")
    if present.all():
        return coded
    if isinstance(coded, pd.Categorical):
        codes = np.full(len(df), -1)
        codes[present] = coded.codes
        return categories(codes, coded.categories, ordered=bool(coded.ordered))
    values = np.zeros((len(df), *coded.shape[1:]))
    values[present] = coded
    return values


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


def _matrix(
    formula: Formula, coded: Mapping[str, Coded], n: int, spec: Any
) -> tuple[FloatArray, Any]:
    """Columns (n, K) of factors that were evaluated on n records, by formulaic, and its ModelSpec;
    `spec` is that of another table, where it was decided which are left out to keep full rank."""
    from formulaic import Formula as Terms
    from formulaic.parser.types import Factor as Looked
    from formulaic.parser.types import Term

    values = {f.text: _for_formulaic(f, coded[f.text]) for f in formula.factors}
    options = {}
    if spec is None:  # the terms as formulaic's own, which looks each factor up by its text
        one, options = [Looked("1", eval_method="literal")], {"na_action": "ignore"}
        looked = [[Looked(f.text, eval_method="lookup") for f in term] for term in formula.terms]
        spec = Terms([Term(factors or one) for factors in looked])
    frame = pd.DataFrame(index=pd.RangeIndex(n))
    matrices = spec.get_model_matrix(frame, context=values, output="numpy", **options)
    return np.array(matrices, dtype=np.float64, order="C"), matrices.model_spec


def _for_formulaic(factor: Factor, values: Coded) -> Any:
    """Values of a factor as formulaic takes them."""
    from formulaic.materializers.types import FactorValues
    from formulaic.transforms import C
    from formulaic.transforms.contrasts import ContrastsRegistry

    if isinstance(values, pd.Categorical):
        codes = np.maximum(values.codes, 0)  # where missing: set to 0 in the matrix
        levels = categories(codes, values.categories)
        contrasts = factor.contrasts or ("contr.poly" if values.ordered else "contr.treatment")
        return C(pd.Series(levels), getattr(ContrastsRegistry, contrasts.removeprefix("contr."))())
    if values.ndim == 1:
        return pd.Series(values)
    names = [str(place + 1) for place in range(values.shape[1])]
    return FactorValues(pd.DataFrame(values, columns=names), kind="numerical")
