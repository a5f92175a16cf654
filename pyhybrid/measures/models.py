"""Models fitted to the data and to m synthetic or imputed sets: `pool`, `model_utility`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_count, check_finite, check_numeric
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.combining import (
    Combined,
    combine_fully_synthetic,
    combine_multiple_imputation,
    combine_nested,
    combine_noise_aware,
    combine_partially_synthetic,
)
from pyhybrid.measures.estimates import average_one
from pyhybrid.measures.reconcile import reconcile_tables
from pyhybrid.measures.utility import (
    DATA,
    SYNTHETIC,
    interval_overlap,
    standardised_difference,
)

NESTED = "nested"
"""Sets that are syntheses of imputations [R04]."""

RULES: dict[str, Callable[..., Combined]] = {
    "partially_synthetic": combine_partially_synthetic,
    "fully_synthetic": combine_fully_synthetic,
    "noise_aware": combine_noise_aware,
    "multiple_imputation": combine_multiple_imputation,
    NESTED: combine_nested,
}
SINGLE = "single"
"""No rule: one synthetic set, taken as if it were data."""
MODEL_RULES = (*(name for name in RULES if name != NESTED), SINGLE)
"""Rules for m sets that are on one footing; "nested" needs to know the imputations."""
_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|(?<![A-Za-z_])-?\d[\w.+-]*")
_WITH_WEIGHTS = ("ols", "glm", "logit", "probit", "poisson")
_ROUNDING = 1e-12  # of a coefficient: smaller standard errors hold no residual


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
        from scipy import stats  # slow to import

        combined = self.combined
        error, size = combined.standard_error, np.abs(combined.estimate)
        ratio = np.divide(size, error, out=np.where(size > 0, np.inf, 0.0), where=error > 0)
        lower, upper = combined.interval(level)
        columns = {
            "estimate": combined.estimate,
            "standard_error": error,
            "df": combined.df,
            "lower": lower,
            "upper": upper,
            "p_value": 2 * stats.t.sf(ratio, combined.df),
            "adjusted": combined.adjusted,
        }
        by_term: pd.DataFrame = pd.DataFrame(columns, index=pd.Index(self.names, name="term"))
        return by_term

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
        See `pyhybrid.measures.combine_fully_synthetic`; for that rule only.

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
    See `pyhybrid.measures.combining`.

    Examples
    --------
    >>> pool([(1.0, 0.5), (2.0, 0.7), (3.0, 0.6)]).table()["df"].round(2).tolist()
    [15.68]
    """
    check_choice(rule, "rule", RULES)
    nests = _sequence(models, "models")
    flat = nests
    if rule == NESTED:
        nests = [_sequence(nest, f"models of imputation {i}") for i, nest in enumerate(nests, 1)]
        if len({len(nest) for nest in nests}) > 1:
            raise InvalidInput("the rule 'nested' needs as many syntheses of each imputation")
        flat = [fit for nest in nests for fit in nest]
    named = [estimates_of(fit, f"model {number}") for number, fit in enumerate(flat, start=1)]
    names = named[0][0]
    for number, (terms, _, _) in enumerate(named, start=1):
        if terms != names:
            unlike = sorted(set(terms) ^ set(names)) or [terms[0]]
            raise InvalidInput(
                f"models must have the same terms in one order: model {number} and model 1 differ "
                f"in {str(unlike[0]).partition('[')[0]!r}"
            )
    shape = (len(nests), -1, len(names)) if rule == NESTED else (len(nests), len(names))
    q, v = (np.array([fit[part] for fit in named]).reshape(shape) for part in (1, 2))
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
    return tuple(f"q{number}" for number in range(1, p + 1))


def _sequence(values: Any, name: str) -> list[Any]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, str) or not len(values):
        raise InvalidInput(f"{name} must be a sequence of at least one: {type(values).__name__}")
    return list(values)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelUtility:
    """A model on the data beside its combined fit on m synthetic sets. Confidential.

    Attributes
    ----------
    table : DataFrame
        By term: estimate, lower, upper of the data and, with the prefix ``synthetic_``, of the
        sets; interval_overlap; standardised_difference.
    mean_overlap, mean_difference : float
        Averages over the terms.
    formula, model, rule : str
    n_used : tuple of int, length 1 + m
        Records without missing values that entered the fit of the data and of each set.
    pooled : Pooled or None
        None without a rule.
    """

    table: pd.DataFrame
    mean_overlap: float
    mean_difference: float
    formula: str
    model: str
    rule: str
    n_used: tuple[int, ...]
    pooled: Pooled | None

    def intervals(self) -> pd.DataFrame:
        """Tidy: statistic (the term), source, estimate, lower, upper; for `plot_intervals`."""
        ends = ["estimate", "lower", "upper"]
        tidy: pd.DataFrame = pd.concat(
            [
                self.table[[prefix + name for name in ends]]
                .set_axis(ends, axis=1)
                .reset_index(names="statistic")
                .assign(source=source)
                for source, prefix in ((DATA, ""), (SYNTHETIC, "synthetic_"))
            ],
            ignore_index=True,
        )
        return tidy


def model_utility(
    real: Any,
    synthetic: Any,
    formula: str,
    *,
    model: str = "ols",
    options: Mapping[str, Any] | None = None,
    categorical: Any = (),
    rule: str = "partially_synthetic",
    n_imputations: int | None = None,
    level: float = 0.95,
    weights: str | None = None,
) -> ModelUtility:
    """Fit a model of statsmodels to the data and to each synthetic set, combine and compare.

    Parameters
    ----------
    real, synthetic
        As in `pyhybrid.measures.propensity_utility`.
    formula : str
        As `statsmodels.formula.api` reads it; names may stand in backticks.
    model : str, default "ols"
        Name of a model in `statsmodels.formula.api`: ols, logit, probit, poisson, glm,
        negativebinomial, quantreg, ...
    options : mapping, optional
        Handed to that model, e.g. ``{"family": sm.families.Gamma()}``.
    categorical : sequence of str
        Columns of numbers that are codes.
    rule : {"partially_synthetic", "fully_synthetic", "multiple_imputation", "nested", "single"}
        How the m fits are combined, see `pyhybrid.measures.pool`; "single" for one set takes its
        fit as it is, and its interval is then too short.
    n_imputations : int, optional
        For the nested rule: imputations that the sets belong to, as many sets each, in order.
    level : float, default 0.95
        Of the intervals, in (0, 1).
    weights : str, optional
        Column of design weights, as in `pyhybrid.measures.propensity_utility`, for "ols" and "glm",
        and for "logit", "probit" and "poisson", which are then fitted as generalized linear models.
        Weights are divided by their mean. Standard errors are those of a model with unequal
        variances.

    Returns
    -------
    ModelUtility

    Raises
    ------
    InvalidInput
        As `reconcile_tables`; for m = 1 under a rule; for a model that cannot be fitted, does not
        converge or has other terms in some table, which is named.

    References
    ----------
    [R03] and the others of `pyhybrid.measures.combining`, and
    `pyhybrid.measures.utility`.
    """
    tables = reconcile_tables(real, synthetic, categorical=categorical, weights=weights)
    check_choice(rule, "rule", (*MODEL_RULES, NESTED))
    m = len(tables.synthetic)
    per_imputation = _per_imputation(rule, m, n_imputations)
    if not 0 < check_finite(level, "level") < 1:
        raise InvalidInput(f"level must lie in (0, 1): found {level:g}")
    if m == 1 and rule != SINGLE:
        raise InvalidInput(
            f"the rule {rule!r} needs at least 2 synthetic sets: found 1; give more, or "
            "rule='single'"
        )
    if m > 1 and rule == SINGLE:
        raise InvalidInput(f"rule='single' takes one synthetic set: found {m}")
    fit_of_data, *fits = (
        fit_model(table, formula, model, options or {}, name, survey, weighing=weights is not None)
        for table, name, survey in zip(
            (tables.real, *tables.synthetic),
            ("the data", *tables.names),
            tables.weights(),
            strict=True,
        )
    )
    for fit, name in zip(fits, tables.names, strict=True):
        _check_terms(fit_of_data, fit, name)
    if rule == SINGLE:
        pooled, estimate, ends = None, np.asarray(fits[0].params), _t_interval(fits[0], level)
    else:
        nests = [fits[k : k + per_imputation] for k in range(0, m, per_imputation)]
        pooled = pool(nests if rule == NESTED else fits, rule=rule)
        estimate, ends = pooled.combined.estimate, pooled.combined.interval(level)
    table = _compared(fit_of_data, _t_interval(fit_of_data, level), estimate, ends)
    return ModelUtility(
        table=table,
        mean_overlap=float(table["interval_overlap"].mean()),
        mean_difference=float(table["standardised_difference"].mean()),
        formula=formula,
        model=model,
        rule=rule,
        n_used=tuple(int(fit.nobs) for fit in (fit_of_data, *fits)),
        pooled=pooled,
    )


def _check_terms(fit_of_data: Any, fit: Any, name: str) -> None:
    unlike = sorted(set(fit_of_data.params.index) ^ set(fit.params.index))
    if unlike:
        term = str(unlike[0]).partition("[")[0]  # what follows names a level
        raise InvalidInput(
            f"the model must have the same terms in {name} as in the data: {term!r} differs, in "
            "its levels perhaps"
        )


def _compared(fit: Any, original: FloatArray, estimate: FloatArray, ends: FloatArray) -> Any:
    """Coefficients of the data's fit with their interval beside the synthetic ones, by term."""
    truth, errors = np.asarray(fit.params), np.asarray(fit.bse)
    columns = {
        "estimate": truth,
        "lower": original[0],
        "upper": original[1],
        "synthetic_estimate": estimate,
        "synthetic_lower": ends[0],
        "synthetic_upper": ends[1],
        "interval_overlap": interval_overlap(original, ends),
        "standardised_difference": standardised_difference(truth, estimate, errors),
    }
    return pd.DataFrame(columns, index=pd.Index(fit.params.index, name="term"))


def _per_imputation(rule: str, n_sets: int, n_imputations: int | None) -> int:
    """Sets of each imputation; 1 for rules that know none."""
    if rule != NESTED:
        if n_imputations is not None:
            raise InvalidInput(f"n_imputations is for the rule 'nested': found rule={rule!r}")
        return 1
    if n_imputations is None:
        raise InvalidInput("the rule 'nested' needs n_imputations")
    if n_sets % check_count(n_imputations, "n_imputations", at_least=2):
        raise InvalidInput(
            f"n_imputations must divide the number of sets, {n_sets}: found {n_imputations}"
        )
    return n_sets // n_imputations


def fit_model(
    table: pd.DataFrame,
    formula: str,
    model: str,
    options: Mapping[str, Any],
    name: str,
    weights: FloatArray | None = None,
    *,
    weighing: bool = False,
) -> Any:
    """Fit of a model of statsmodels to one table, under its survey weights (n,) if it has some;
    `weighing` if any table of a comparison has."""
    import statsmodels.formula.api as smf

    build = getattr(smf, model, None) if isinstance(model, str) else None
    if not callable(build) or str(model).startswith("_"):
        raise InvalidInput(f"model must be one of statsmodels.formula.api: found {model!r}")
    if weighing and model not in _WITH_WEIGHTS:
        raise InvalidInput(
            f"a model with weights must be one of {', '.join(_WITH_WEIGHTS)}: found {model!r}"
        )
    outcome = str(formula).partition("~")[0].strip().strip("`")
    table = _with_zeros_and_ones(table, outcome)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters of them is checked below
            read = _for_patsy(formula, table.columns)
            built = build(read, table, **options)
            design = np.asarray(built.exog)
            quiet = {"disp": 0} if model not in ("ols", "wls", "gls", "glm", "quantreg") else {}
            if weights is None:
                fit = built.fit(**quiet)
            else:
                fit = _weighted_fit(built, read, table, model, options, weights)
            errors = np.asarray(fit.bse, dtype=np.float64)
    except Exception as error:  # parsers and optimizers raise their own kinds
        reason = _without_data(str(error).split("\n")[0], formula)
        if reason.startswith("endog has evaluated"):
            reason = (
                f"its outcome is no number; for one of its levels write I(1 * ({outcome} == 'x'))"
            )
        raise InvalidInput(f"{model} {formula!r} cannot be fitted to {name}: {reason}") from None
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise InvalidInput(
            f"{model} {formula!r} must have a design of full rank in {name}: a column is constant "
            "or a combination of others, as where a category does not occur"
        )
    converged = getattr(fit, "mle_retvals", {}) or {"converged": getattr(fit, "converged", True)}
    if not converged.get("converged", True) or not np.isfinite(errors).all():
        raise InvalidInput(f"{model} {formula!r} does not converge in {name}: use a smaller model")
    # Where residuals are 0, their deviation is 0 or a last digit, as the processor rounds.
    if (errors <= _ROUNDING * np.abs(np.asarray(fit.params, dtype=np.float64))).any():
        raise InvalidInput(
            f"{model} {formula!r} must leave something unexplained in {name}: standard errors are "
            "0, as for an outcome that is constant or a function of its predictors"
        )
    return fit


def _for_patsy(formula: str, columns: Iterable[Any]) -> str:
    """The formula as patsy has names that are in backticks, or hold dots or spaces."""
    odd = sorted((str(name) for name in columns if re.match(r"[^\W\d]\w*\W", str(name))), key=len)
    known = [rf"(?<![\w.]){re.escape(name)}(?![\w.])" for name in reversed(odd)]
    pattern = re.compile("|".join(["`[^`]+`", "'[^']*'", '"[^"]*"', *known]))

    def quoted(match: re.Match[str]) -> str:
        return match[0] if match[0][0] in "'\"" else f"Q({match[0].strip('`')!r})"

    return pattern.sub(quoted, formula)


def _weighted_fit(
    built: Any,
    formula: str,
    table: pd.DataFrame,
    model: str,
    options: Mapping[str, Any],
    weights: FloatArray,
) -> Any:
    """The fit by weights that average 1 over the records without missing values."""
    import statsmodels.api as sm
    import statsmodels.formula.api as smf
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    rows = np.asarray(built.data.row_labels, dtype=np.intp)  # tables are numbered from 0
    weight, used = average_one(weights[rows]), table.iloc[rows]
    families = {
        "logit": sm.families.Binomial,
        "probit": lambda: sm.families.Binomial(sm.families.links.Probit()),
        "poisson": sm.families.Poisson,
    }
    if model == "ols":
        weighted = smf.wls(formula, used, weights=weight, **options)
    else:
        family = {"family": families[model]()} if model in families else {}
        weighted = smf.glm(formula, used, var_weights=weight, **family, **options)
    warnings.simplefilter("error", PerfectSeparationWarning)
    return weighted.fit()


def _with_zeros_and_ones(table: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """The table with a logical outcome, which tables of one form hold as text, as 0 and 1."""
    words = set(table[outcome].dropna().astype(str)) if outcome in table else set()
    if not words or not words <= {"False", "True"}:
        return table
    coded: pd.DataFrame = table.copy(deep=False)
    true = table[outcome].astype(object).map(str) == "True"
    coded[outcome] = np.where(table[outcome].isna(), np.nan, true)
    return coded


def _without_data(reason: str, formula: str) -> str:
    """A reason given by others, with what stands neither in the formula nor in words left out."""
    return _VALUE.sub(
        lambda match: match.group() if match.group().strip("'\"") in formula else "#", reason
    )


def _t_interval(fit: Any, level: float) -> FloatArray:
    """Interval of each coefficient, shape (2, p): t for linear models, normal for the others."""
    from scipy import stats  # slow to import

    degrees = fit.df_resid if getattr(fit, "use_t", False) else np.inf
    half = stats.t.ppf((1 + level) / 2, degrees) * np.asarray(fit.bse)
    return np.stack([fit.params - half, fit.params + half])
