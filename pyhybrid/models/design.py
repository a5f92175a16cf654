"""From a table and a Wilkinson formula to an outcome and a design matrix, coded as R codes them.

Unordered categorical predictors get treatment contrasts against their first level, ordered ones
polynomial contrasts (`contr.poly`), logicals one column; rows are never dropped.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.checks import FloatArray
from pyhybrid.errors import InvalidInput

__all__ = ["Design", "read_design", "row_label"]

_BY_RECORD = frozenset(
    {"C", "I", "abs", "cos", "exp", "exp10", "exp2", "log", "log10", "log2", "sin", "sqrt"}
)
_ELEMENTWISE = (ast.Expression, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare,
                ast.operator, ast.unaryop, ast.cmpop, ast.expr_context)  # fmt: skip
_MOST_LEVELS = 1000
_RECODED = re.compile(r"C\(`(.+?)`, (?:contr\.poly|levels=\[False, True\])\)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """Outcome and predictors of one regression.

    Attributes
    ----------
    outcome : str
        Name of the outcome's column.
    y : ndarray, shape (n,)
        Outcome as floats, finite.
    X : ndarray, shape (n, K)
        Design matrix of full column rank.
    columns : tuple of str
        Names of its columns.
    predictors : tuple of str
        Columns of the table that the right-hand side reads.
    data_dependent : tuple of str
        Terms whose coding depends on all records (centring, splines, orthogonal polynomials).
    coding : object
        formulaic's record of how the columns were made: levels, contrasts, centring.
    """

    outcome: str
    y: FloatArray
    X: FloatArray
    columns: tuple[str, ...]
    predictors: tuple[str, ...]
    data_dependent: tuple[str, ...] = ()
    coding: Any = field(default=None, repr=False)

    def matrix_of(self, df: pd.DataFrame) -> FloatArray:
        """Design matrix (n, K) of another table, coded as this one's.

        Raises
        ------
        InvalidInput
            For levels that the data did not have, and for missing or non-finite values.
        """
        X, columns, _ = _matrix(self.coding, "of the model", df, self.predictors)
        if columns != self.columns:
            raise InvalidInput(f"predictors must be coded as {self.columns}: found {columns}")
        return X


def read_design(formula: str, df: pd.DataFrame) -> Design:
    """Evaluate `formula` on `df`.

    Raises
    ------
    InvalidInput
        For a formula that does not parse, a column that is not in the data, missing or non-finite
        values (the first row's label is given), fewer than two records, a constant outcome, or a
        design without full column rank (the columns to blame are named).
    """
    _check_table(df)
    parsed, outcome = _parse(formula, df)
    y = _outcome(df[outcome], outcome)
    predictors = tuple(sorted(str(v) for v in parsed.required_variables if v in df.columns))
    X, columns, coding = _matrix(_as_r_codes(parsed, df), formula, df, predictors)
    _check_rank(X, columns)
    return Design(
        outcome=outcome,
        y=y,
        X=X,
        columns=columns,
        predictors=predictors,
        data_dependent=_data_dependent(parsed),
        coding=coding,
    )


def row_label(index: pd.Index, position: int) -> str:
    """How messages name a row: by its label in the table's index."""
    label = index[position]
    return f"row {label.item() if isinstance(label, np.generic) else label!r}"


def _check_table(df: Any) -> None:
    if not isinstance(df, pd.DataFrame):
        raise InvalidInput(f"data must be a pandas DataFrame: found {type(df).__name__}")
    if df.shape[1] == 0 or len(df) == 0:
        raise InvalidInput(f"data must have rows and columns: found shape {df.shape}")
    if len(df) < 2:
        raise InvalidInput("data must have at least 2 records: found 1")
    twice = df.columns[df.columns.duplicated()]
    if len(twice):
        raise InvalidInput(f"column names must be unique: {twice[0]!r} occurs more than once")


def _parse(formula: str, df: pd.DataFrame) -> tuple[Any, str]:
    """Return formulaic's right-hand side and the name of the outcome's column."""
    from formulaic import Formula

    if not isinstance(formula, str) or formula.count("~") != 1:
        raise InvalidInput(f"formula must be of the form 'outcome ~ predictors': found {formula!r}")
    left, _, right = formula.partition("~")
    outcome = left.strip().strip("`")
    if outcome not in df.columns:
        known = ", ".join(str(c) for c in df.columns[:20])
        raise InvalidInput(f"outcome {outcome!r} must be a column of the data: found {known}")
    try:
        context = {"__formulaic_variables_available__": [c for c in df.columns if c != outcome]}
        rhs = Formula(right.strip(), _context=context)
        terms = list(rhs)
    except Exception as error:  # its parser trips over some texts before it can refuse them
        reason = str(error).split("\n")[0]
        raise InvalidInput(f"formula {formula!r} does not parse: {reason}") from None
    if not terms or not all(hasattr(term, "factors") for term in terms):
        raise InvalidInput(f"formula {formula!r} must have one right-hand side with a term")
    if outcome in rhs.required_variables:
        raise InvalidInput(f"outcome {outcome!r} must not be among the predictors of {formula!r}")
    return rhs, outcome


def _outcome(values: pd.Series, name: str) -> FloatArray:
    if values.isna().any():
        where = int(np.flatnonzero(values.isna())[0])
        raise InvalidInput(
            f"outcome {name!r} must not be missing: {row_label(values.index, where)} is; "
            "drop or impute such rows before synthesis"
        )
    if isinstance(values.dtype, pd.CategoricalDtype) or not pd.api.types.is_numeric_dtype(values):
        raise InvalidInput(f"outcome {name!r} must be numeric: found {values.dtype}")
    if pd.api.types.is_complex_dtype(values) or pd.api.types.is_bool_dtype(values):
        raise InvalidInput(f"outcome {name!r} must be numeric: found {values.dtype}")
    y = values.to_numpy(dtype=np.float64)
    infinite = np.flatnonzero(~np.isfinite(y))
    if infinite.size:
        raise InvalidInput(
            f"outcome {name!r} must be finite: {row_label(values.index, int(infinite[0]))} is not"
        )
    if np.ptp(y) == 0:
        raise InvalidInput(f"outcome {name!r} must vary: all {y.size} records have the same value")
    return y


def _matrix(
    coding: Any, formula: str, df: pd.DataFrame, predictors: tuple[str, ...]
) -> tuple[FloatArray, tuple[str, ...], Any]:
    """Design matrix, names of its columns, and how formulaic made them (its model spec).

    `coding` is a formula, or the model spec of another table.
    """
    from formulaic.errors import DataMismatchWarning

    for name in predictors:
        if df[name].isna().any():
            where = int(np.flatnonzero(df[name].isna())[0])
            label = row_label(df.index, where)
            raise InvalidInput(f"predictor {name!r} must not be missing: {label} is")
        _check_levels(df[name])
    try:
        # log(-1) and the like are found below, with their row.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter(
                "error", DataMismatchWarning
            )  # a level that the data did not have
            table = coding.get_model_matrix(
                _text_as_objects(df, predictors),
                **({} if hasattr(coding, "na_action") else {"na_action": "ignore"}),
            )
    except Exception as error:  # a formula may call anything; whatever it raises is bad input
        reason = str(error).split("\n")[0]
        raise InvalidInput(f"formula {formula!r} cannot be evaluated: {reason}") from None
    for column, dtype in table.dtypes.items():  # dates and intervals go through formulaic as such
        if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_complex_dtype(dtype):
            raise InvalidInput(
                f"predictors must be numbers, text, logicals or categories: {column!r} is {dtype}"
            )
    X = np.array(table, dtype=np.float64, order="C")
    columns = tuple(_RECODED.sub(r"\1", str(column)) for column in table.columns)
    if X.shape[0] != len(df) or X.shape[1] == 0:
        raise InvalidInput(f"formula {formula!r} must give a row per record and a column or more")
    infinite = np.argwhere(~np.isfinite(X))
    if infinite.size:
        label, column = row_label(df.index, int(infinite[0, 0])), columns[infinite[0, 1]]
        raise InvalidInput(f"predictor {column!r} must be finite: {label} is not")
    return X, columns, table.model_spec


def _check_levels(values: pd.Series) -> None:
    """Refuse a predictor whose coding would fill memory before anything else could be said."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        levels = len(values.cat.categories)
    elif pd.api.types.is_numeric_dtype(values.dtype) or len(values) <= _MOST_LEVELS:
        return
    else:
        levels = values.nunique()
    if levels > _MOST_LEVELS:
        raise InvalidInput(
            f"predictor {str(values.name)!r} must have at most {_MOST_LEVELS} levels: found "
            f"{levels}; put levels together, or leave it out"
        )


def _text_as_objects(df: pd.DataFrame, predictors: tuple[str, ...]) -> pd.DataFrame:
    """Text in one of pandas' extension dtypes as objects: formulaic takes it for numbers."""
    kinds = ("string", "string[pyarrow]", "large_string[pyarrow]")
    text = [name for name in predictors if str(df[name].dtype) in kinds]
    return df.astype(dict.fromkeys(text, object)) if text else df


def _data_dependent(rhs: Any) -> tuple[str, ...]:
    """Factors that may look at more than their own record: all but arithmetic on columns and the
    functions of `_BY_RECORD`. An attribute, a method, a spline, a centring: all count."""
    factors = {factor.expr for term in rhs for factor in term.factors}
    return tuple(sorted(expr for expr in factors if not _is_by_record(expr)))


def _is_by_record(expression: str) -> bool:
    try:
        tree = ast.parse(re.sub(r"`[^`]*`", "column", expression), mode="eval")
    except SyntaxError:
        return bool(re.fullmatch(r"[^(){}\[\].+*/-]+", expression))  # a column with an odd name
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if not (isinstance(node.func, ast.Name) and node.func.id in _BY_RECORD):
                return False
        elif not isinstance(node, _ELEMENTWISE):
            return False
    return True


def _as_r_codes(rhs: Any, df: pd.DataFrame) -> Any:
    """Give ordered factors R's polynomial contrasts, and make logicals factors, as they are in R;
    formulaic codes the rest as R does."""
    from formulaic import Formula
    from formulaic.parser.types import Factor, Term

    ordered = {
        str(name)
        for name, dtype in df.dtypes.items()
        if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered
    }

    logical = {str(name) for name in df.columns if pd.api.types.is_bool_dtype(df[name].dtype)}
    coding = dict.fromkeys(ordered, "contr.poly") | dict.fromkeys(logical, "levels=[False, True]")

    def recoded(factor: Any) -> Any:
        if factor.expr in coding:
            return Factor(f"C(`{factor.expr}`, {coding[factor.expr]})", eval_method="python")
        return factor

    return Formula([Term([recoded(factor) for factor in term.factors]) for term in rhs])


def _check_rank(X: FloatArray, columns: tuple[str, ...]) -> None:
    """Refuse columns that are combinations of earlier ones, by pivoted QR of the scaled design."""
    from scipy.linalg import qr

    with np.errstate(over="ignore"):
        size = np.sqrt((X**2).sum(axis=0))
    if not np.isfinite(size).all():
        raise InvalidInput("predictors must be small enough to square: rescale the large ones")
    zero = np.flatnonzero(size == 0)
    if zero.size:
        raise InvalidInput(f"predictor {columns[zero[0]]!r} must not be all zero: drop it")
    triangle, order = qr(X / size, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > diagonal[0] * max(X.shape) * np.finfo(float).eps).sum())
    if rank < X.shape[1]:
        named = ", ".join(repr(columns[place]) for place in order[rank:])
        raise InvalidInput(
            f"the design must have full column rank: rank {rank} of {X.shape[1]} columns; "
            f"{named} is a combination of the others"
        )
