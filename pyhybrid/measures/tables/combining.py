"""One inference from models fitted to m synthetic or imputed sets: `pool`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_numeric
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.arrays.combining import (
    Combined,
    combine_fully_synthetic,
    combine_multiple_imputation,
    combine_nested,
    combine_noise_aware,
    combine_partially_synthetic,
)

__all__ = ["NESTED", "RULES", "Pooled", "estimates_of", "pool"]

NESTED = "nested"
"""Sets that are syntheses of imputations [R04]."""

RULES: dict[str, Callable[..., Combined]] = {
    "partially_synthetic": combine_partially_synthetic,
    "fully_synthetic": combine_fully_synthetic,
    "noise_aware": combine_noise_aware,
    "multiple_imputation": combine_multiple_imputation,
    NESTED: combine_nested,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """Combined inference with the names of its p quantities.

    Attributes
    ----------
    names : tuple of str, length p
        Terms of the models; "q1", "q2", ... for arrays.
    combined : Combined
        Estimates, total variances, degrees of freedom, parts; arrays of shape (p,).
    rule : str
        Key of `RULES`.
    n_sets : int
        Sets that were combined; m x r for the nested rule.
    """

    names: tuple[str, ...]
    combined: Combined
    rule: str
    n_sets: int

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Estimate, standard_error, df, lower, upper, p_value (of 0) and adjusted, by name."""
        found = self.combined
        from scipy import stats  # slow to import

        lower, upper = found.interval(level)
        error = found.standard_error
        ratio = np.divide(
            np.abs(found.estimate), error, out=np.full(error.shape, np.inf), where=error > 0
        )
        ratio[(error == 0) & (found.estimate == 0)] = 0.0
        columns = {
            "estimate": found.estimate,
            "standard_error": error,
            "df": found.df,
            "lower": lower,
            "upper": upper,
            "p_value": 2 * stats.t.sf(ratio, found.df),
            "adjusted": found.adjusted,
        }
        found_table: pd.DataFrame = pd.DataFrame(columns, index=pd.Index(self.names, name="term"))
        return found_table

    def __repr__(self) -> str:
        return f"<Pooled {', '.join(self.names)} from {self.n_sets} sets, {self.rule}>"


def pool(models: Any, *, rule: str = "partially_synthetic", size_ratio: float = 1.0) -> Pooled:
    """Combine models fitted to m sets, or (estimate, variance) pairs, into one inference.

    Parameters
    ----------
    models : sequence of m results or pairs
        Each a result of statsmodels, or anything with `params` and `bse`; or a pair (estimate,
        variance) of numbers or of vectors of one length. For ``rule="nested"`` a sequence of m
        such sequences, one per imputation, each of the same length r.
    rule : str
        "partially_synthetic" [R03] for data of which some columns are synthesized;
        "fully_synthetic" [RRR03] for data of which all are and whose records are fresh;
        "noise_aware" for sets of `NoisyMarginals`, however many of their columns are synthesized;
        "multiple_imputation", Rubin's rules, for imputed missing values; "nested" [R04] for both,
        each of m imputations synthesized r times.
    size_ratio : float, default 1
        See `pyhybrid.combine_fully_synthetic`; for that rule only.

    Returns
    -------
    Pooled

    Raises
    ------
    InvalidInput
        For an unknown rule, fewer sets than it needs, models of unlike terms, estimates that are
        not finite, negative variances.

    References
    ----------
    See `pyhybrid.measures.arrays.combining`.

    Examples
    --------
    >>> pool([(1.0, 0.5), (2.0, 0.7), (3.0, 0.6)]).table()["df"].round(2).tolist()
    [15.68]
    """
    check_choice(rule, "rule", RULES)
    nests = _sequence(models, "models")
    if rule == NESTED:
        nests = [_sequence(nest, f"models of imputation {i}") for i, nest in enumerate(nests, 1)]
        if len({len(nest) for nest in nests}) > 1:
            raise InvalidInput("the rule 'nested' needs as many syntheses of each imputation")
    flat = [each for nest in nests for each in nest] if rule == NESTED else nests
    named = [estimates_of(each, f"model {place}") for place, each in enumerate(flat, start=1)]
    names = named[0][0]
    for place, (own, _, _) in enumerate(named, start=1):
        if own != names:
            unlike = sorted(set(own) ^ set(names)) or [own[0]]
            raise InvalidInput(
                f"models must have the same terms in one order: model {place} and model 1 differ "
                f"in {str(unlike[0]).partition('[')[0]!r}"
            )
    shape = (len(nests), -1, len(names)) if rule == NESTED else (len(nests), len(names))
    q, v = (np.array([each[part] for each in named]).reshape(shape) for part in (1, 2))
    options = {"size_ratio": size_ratio} if rule == "fully_synthetic" else {}
    return Pooled(names=names, combined=RULES[rule](q, v, **options), rule=rule, n_sets=len(flat))


def estimates_of(model: Any, name: str) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Names, estimates and variances, each of length p, of a fitted model or a pair."""
    if hasattr(model, "params") and hasattr(model, "bse"):
        params, errors = model.params, model.bse
        if isinstance(params, pd.DataFrame):  # several equations, as of a multinomial logit
            params, errors = params.T.stack(), np.asarray(errors).T
        named = isinstance(params, pd.Series)
        q, variances = np.ravel(np.asarray(params, dtype=np.float64)), np.ravel(errors) ** 2
        names = tuple(map(str, params.index)) if named else _numbered(q.size)
    elif isinstance(model, (tuple, list)) and len(model) == 2:
        q, variances = (np.atleast_1d(check_numeric(part, name)) for part in model)
        names = _numbered(q.size)
    else:
        raise InvalidInput(
            f"{name} must be a fitted model with params and bse, or a pair (estimate, variance): "
            f"found {type(model).__name__}"
        )
    if q.shape != variances.shape or q.ndim != 1:
        raise InvalidInput(
            f"{name} must have as many variances as estimates: found {variances.shape}, {q.shape}"
        )
    wrong = np.flatnonzero(~(np.isfinite(q) & np.isfinite(variances)))
    if wrong.size:
        raise InvalidInput(
            f"{name} must have finite estimates and variances: {names[wrong[0]]!r} has not"
        )
    return names, q, variances


def _numbered(p: int) -> tuple[str, ...]:
    return tuple(f"q{place}" for place in range(1, p + 1))


def _sequence(values: Any, name: str) -> list[Any]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, str) or not len(values):
        raise InvalidInput(f"{name} must be a sequence of at least one: {type(values).__name__}")
    return list(values)
