r"""Propensity scores: how well a classifier tells synthetic records from the data.

Data and synthetic records are stacked, N = n + n_syn rows; p_i is the fitted probability that row i
is synthetic and c = n_syn / N. [JC], [SN18]:

.. math:: \text{pMSE} = \frac1N \sum_i (p_i - c)^2,

0 if no row can be told apart, c (1 - c) if every row can (1/4 at equal sizes). A classifier finds
chance differences, so pMSE is set against its null expectation: what it would be if both were
samples of one population.

References
----------
[JC] Jiang (2025), short course on data privacy.
[SN18] Snoke, Raab, Nowok, Dibben, Slavkovic (2018), J. Royal Stat. Soc. A 181:663-688.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import linalg
from scipy.special import expit

from pyhybrid.core.checks import (
    BoolArray,
    FloatArray,
    check_choice,
    check_count,
    check_flag,
    check_vector,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import generator_of
from pyhybrid.measures.estimates import check_weights
from pyhybrid.measures.reconcile import keeps_rows, reconcile_tables
from pyhybrid.running.tasks import Progress

_MOST_STEPS, _STEEPEST = 100, 35.0
_SMALLEST_LEAF, _MOST_LEAVES = 20, 500
_MOST_THREADS = 4
_MOST_ELEMENTS = 60_000_000
_MOST_LEVELS = 50

Null = tuple[float, float]
"""Mean and standard deviation of pMSE where nothing but chance tells the rows apart."""


def pmse(propensities: Any, is_synthetic: Any, *, weights: Any = None) -> float:
    """Mean squared distance of propensities from the share of synthetic rows; in [0, 1].

    Parameters
    ----------
    propensities : array_like, shape (N,)
        Probability of being synthetic, in [0, 1].
    is_synthetic : array_like of bool, shape (N,)
        Of rows of both kinds.
    weights : array_like, shape (N,), optional
        Design weights above 0: means are weighted, and c is the share of weight that is synthetic.

    Examples
    --------
    >>> pmse([0.0, 0.0, 1.0, 1.0], [False, False, True, True])
    0.25
    """
    p = check_vector(propensities, "propensities")
    label = check_vector(is_synthetic, "is_synthetic", length=p.size)
    if not np.isin(label, (0, 1)).all() or not 0 < label.mean() < 1:
        raise InvalidInput("is_synthetic must hold True and False, for rows of both kinds")
    if not ((p >= 0) & (p <= 1)).all():
        raise InvalidInput("propensities must lie in [0, 1]")
    weight = check_weights(weights, p.size)
    return float(np.average((p - np.average(label, weights=weight)) ** 2, weights=weight))


def logistic_propensities(
    basis: FloatArray, is_synthetic: BoolArray, weight: FloatArray
) -> FloatArray:
    """Fitted probabilities (N,) of an unpenalized logistic regression on an orthonormal `basis` (N,
    k). statsmodels stops where rows are separable: here linear predictors are held at 35."""
    y = is_synthetic.astype(np.float64)

    def deviance(linear: FloatArray) -> float:
        return float(np.sum(weight * (np.logaddexp(0, linear) - y * linear)))

    linear = np.zeros(y.size)
    loss = deviance(linear)
    for _ in range(_MOST_STEPS):
        p = expit(linear)
        curved = weight * np.maximum(p * (1 - p), 1e-12)
        information = basis.T @ (basis * curved[:, None]) + 1e-12 * np.eye(basis.shape[1])
        slope = basis.T @ (weight * (y - p))
        step = basis @ linalg.solve(information, slope, assume_a="pos")
        new, lower = linear, loss
        for half in range(30):
            new = np.clip(linear + step / 2**half, -_STEEPEST, _STEEPEST)
            lower = deviance(new)
            if lower < loss:
                break
        if lower > loss - 1e-10 * (1 + loss):
            break
        linear, loss = new, lower
    return np.asarray(expit(linear))


def orthonormal_design(columns: FloatArray) -> FloatArray:
    """Orthonormal basis (N, rank) of an intercept and `columns` (N, p), whatever their units."""
    n = columns.shape[0]
    centered = columns - columns.mean(axis=0)
    size = np.sqrt((centered**2).sum(axis=0))
    constant = size <= 1e-10 * np.sqrt(n) * np.abs(columns).max(axis=0, initial=0)
    varied = centered[:, ~constant] / size[~constant]
    intercept = np.full((n, 1), 1 / np.sqrt(n))
    if not varied.shape[1]:
        return intercept
    basis, triangle, _ = linalg.qr(varied, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > 1e-9 * diagonal[0]).sum())
    return np.hstack([intercept, basis[:, :rank]])


def null_pmse(basis: FloatArray, is_synthetic: BoolArray, weight: FloatArray, null: str) -> Null:
    """Mean and sd of pMSE, near S'(B'B)^{-1}S / N with S the score at equal propensities, if the
    synthesis is right: "population", both are samples of one, mean c (1-c) (k-1) / N; "paired", row
    n + i may be exchanged with row i. S has terms w_i (y_i - c) b_i."""
    total, k = basis.shape
    if null == "population" and (weight == 1).all():
        c = float(is_synthetic.mean())
        size = c * (1 - c) / total
        return size * (k - 1), size * float(np.sqrt(2 * (k - 1)))
    c = float(weight[is_synthetic].sum() / weight.sum())
    middle = weight @ basis / weight.sum()
    term = (basis - middle) * (weight * np.where(is_synthetic, 1 - c, -c))[:, None]
    if null == "paired":
        term = term[is_synthetic] + term[~is_synthetic]
    information = basis.T @ (basis * weight[:, None])
    spread = linalg.solve(information, term.T @ term, assume_a="pos") / weight.sum()
    # spread is similar to a symmetric matrix, the trace of whose square is that of spread.
    return float(np.trace(spread)), max(2 * float(np.trace(spread @ spread)), 0.0) ** 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class PropensityUtility:
    """How well a classifier tells m synthetic sets from the data. Confidential.

    Attributes
    ----------
    pmse, ratio, standardised : float
        Averages over the sets. The ratio is pMSE over its null mean, `standardised` its distance
        from the null mean in null standard deviations (0 for a null without spread).
    by_set : DataFrame, m rows
        pmse, null_mean, null_sd, ratio, standardised, null of each set.
    classifier : {"logistic", "cart"}
    """

    pmse: float
    ratio: float
    standardised: float
    by_set: pd.DataFrame
    classifier: str


@bar_in_notebooks
def propensity_utility(
    real: Any,
    synthetic: Any = None,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    classifier: str = "logistic",
    interactions: bool = False,
    null: str = "auto",
    n_permutations: int = 20,
    weights: str | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
) -> PropensityUtility:
    """Let a classifier tell synthetic records from the data; each set by itself.

    Parameters
    ----------
    real, synthetic : DataFrame; DataFrame or sequence of m DataFrames
        Data and synthetic sets from anywhere; see `pyhybrid.measures.reconcile`, whose
        `Tables` may be given as `real` alone, without columns or weights.
    columns, categorical : sequence of str
        Columns to compare, all if omitted; columns of numbers that are codes.
    classifier : {"logistic", "cart"}
        Unpenalized logistic regression on main effects, or scikit-learn's classification tree
        with leaves of at least 20 rows and 1/500 of all, which sees any shape of difference.
    interactions : bool, default False
        With "logistic": products of all pairs of columns, too.
    null : {"auto", "population", "paired"}
        What pMSE is set against: rows of data and set are two samples of one population, or row i
        of both may change places. "auto": "paired" for a set with as many rows as the data and a
        column equal to theirs row by row, as partial synthesis leaves it; else "population".
    n_permutations : int, default 20
        Refits to permuted labels that give the null mean and sd of CART, at least 2.
    weights : str, optional
        Column of design weights of the data, which is then not compared itself. A set that has it,
        too, is weighted by its own column; one that has not stands for the population as it is.
        Weights of a table are divided by their mean.
    rng : Generator or int, optional
        Of the permutations, or its seed.
    progress : callable, optional
        Called with (what is being done, permutations done, permutations in all).

    Raises
    ------
    InvalidInput
        As `reconcile_tables`; for unknown options; for a design that would not fit in memory.

    Notes
    -----
    A missing number is set to the mean beside an indicator column (logistic), or is a branch of the
    tree; a missing category is one of its own. Categories enter CART as codes; of more than 50 the
    logistic regression takes the most frequent, the others being its reference.
    """
    tables = reconcile_tables(real, synthetic, columns, categorical, weights)
    check_choice(classifier, "classifier", ("logistic", "cart"))
    check_choice(null, "null", ("auto", "population", "paired"))
    check_count(n_permutations, "n_permutations", at_least=2)
    if check_flag(interactions, "interactions") and classifier == "cart":
        raise InvalidInput("classifier 'cart' takes no interactions: use 'logistic'")
    generator = generator_of(rng)
    rows: list[dict[str, Any]] = []
    weight_data, *weight_sets = tables.mean_weights
    for table, name, weight_set in zip(tables.synthetic, tables.names, weight_sets, strict=True):
        null_of_set = null
        if null == "auto":
            null_of_set = "paired" if keeps_rows(tables.real, table) else "population"
        elif null == "paired" and len(tables.real) != len(table):
            raise InvalidInput(
                f"null='paired' needs sets with the rows of the data: {name} has not"
            )
        stacked = pd.concat([tables.real, table], ignore_index=True)
        label = np.arange(len(stacked)) >= len(tables.real)
        weight = np.concatenate([weight_data, weight_set])
        if classifier == "cart":
            if null_of_set == "population":
                shuffled = [generator.permutation(label) for _ in range(n_permutations)]
            else:  # row i of data and set change places with probability 1/2
                swapped = generator.random((n_permutations, label.size // 2)) < 0.5
                shuffled = [*np.hstack([swapped, ~swapped])]
            seed, step = int(generator.integers(2**31)), f"CART permutations, {name}"
            report = None if progress is None else functools.partial(progress, step)
            p, (mean, sd) = _by_cart(stacked, label, shuffled, weight, seed, report)
        else:
            p, (mean, sd) = _by_logistic(stacked, label, null_of_set, interactions, weight)
        distance = pmse(p, label, weights=weight)
        rows.append({
            "pmse": distance, "null_mean": mean, "null_sd": sd,
            "ratio": distance / mean if mean > 1e-15 else 0.0,
            "standardised": (distance - mean) / sd if sd > 1e-15 else 0.0, "null": null_of_set,
        })  # fmt: skip
    by_set = pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="set"))
    means = by_set[["pmse", "ratio", "standardised"]].mean().to_dict()
    return PropensityUtility(**means, by_set=by_set, classifier=classifier)


def _by_logistic(
    stacked: pd.DataFrame, label: BoolArray, null: str, interactions: bool, weight: FloatArray
) -> tuple[FloatArray, Null]:
    parts = [_main_effects(stacked[column]) for column in stacked.columns]
    width = sum(part.shape[1] for part in parts)
    width += width * width // 2 if interactions else 0
    if len(stacked) * width > _MOST_ELEMENTS:
        raise InvalidInput(
            f"the propensity model must fit in memory: {len(stacked)} rows and up to {width} "
            "columns do not; leave out columns or interactions, or use classifier='cart'"
        )
    if interactions:
        pairs = [*combinations(parts, 2)]
        parts += [(a[:, :, None] * b[:, None, :]).reshape(len(a), -1) for a, b in pairs]
    basis = orthonormal_design(np.hstack(parts))
    expected = null_pmse(basis, label, weight, null)
    return logistic_propensities(basis, label, weight), expected


def _main_effects(column: pd.Series) -> FloatArray:
    """Standardized numbers, or indicators of all levels but the first, and of missing values."""
    missing = column.isna().to_numpy(dtype=np.float64)[:, None]
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy()
        frequent = np.argsort(-np.bincount(codes[codes >= 0]), kind="stable")[:_MOST_LEVELS]
        levels = np.sort(frequent)[1 if frequent.size == len(column.cat.categories) else 0 :]
        columns = (codes[:, None] == levels).astype(np.float64)
    else:
        values = column.to_numpy(dtype=np.float64)
        values = values / (np.nanmax(np.abs(values)) or 1.0)  # squares of 1e300 overflow
        mean = np.nanmean(values)
        spread = np.nanstd(values) or 1.0
        columns = ((np.where(np.isnan(values), mean, values) - mean) / spread)[:, None]
    return np.hstack([columns, missing]) if missing.any() else columns


def _by_cart(
    stacked: pd.DataFrame,
    label: BoolArray,
    shuffled: Sequence[BoolArray],
    weight: FloatArray,
    seed: int,
    report: Callable[[int, int], None] | None,
) -> tuple[FloatArray, Null]:
    """Propensities and null; `report` takes how many of the `shuffled` labels are done, of all."""
    from sklearn.tree import DecisionTreeClassifier

    # Trees see the order of values only: ranks keep it where single precision would not.
    ranks = stacked.select_dtypes("number").rank(method="dense")
    codes = stacked.select_dtypes("category").apply(lambda column: column.cat.codes)
    inputs = pd.concat([ranks, codes], axis=1)[[*stacked]].to_numpy(dtype=np.float32)
    leaf = max(_SMALLEST_LEAF, label.size // _MOST_LEAVES)

    def propensities(labels: BoolArray) -> FloatArray:
        tree = DecisionTreeClassifier(min_samples_leaf=leaf, random_state=seed)
        fitted = tree.fit(inputs, labels, sample_weight=weight)
        return np.asarray(fitted.predict_proba(inputs)[:, 1])

    def distance(labels: BoolArray) -> float:
        return pmse(propensities(labels), labels, weights=weight)

    chance = []
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_THREADS)) as threads:  # no GIL in trees
        for done, value in enumerate(threads.map(distance, shuffled), start=1):
            chance.append(value)
            if report is not None:
                report(done, len(shuffled))
    return propensities(label), (float(np.mean(chance)), float(np.std(chance, ddof=1)))
