"""Models fitted to the data and to m synthetic or imputed sets: `pool`, `model_utility`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_count, check_numeric
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures import combining
from pyhybrid.measures.combining import Combined
from pyhybrid.measures.estimates import average_one, check_level
from pyhybrid.measures.reconcile import reconcile_tables
from pyhybrid.measures.utility import interval_overlap, standardised_difference

NESTED, SINGLE = "nested", "single"
"""Sets that are syntheses of imputations [R04]; no rule: one set, taken as if it were data."""

RULES = ("partially_synthetic", "fully_synthetic", "noise_aware", "multiple_imputation", NESTED)
MODEL_RULES = (*RULES[:-1], SINGLE)
"""Rules for m sets that are on one footing; "nested" needs to know the imputations."""
_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|(?<![A-Za-z_])-?\d[\w.+-]*")
_WITH_WEIGHTS = ("ols", "logit", "probit", "poisson")
_ROUNDING = 1e-12  # of a coefficient: smaller standard errors hold no residual


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled(Combined):
    """Combined inference of p quantities, with their `names`: terms of the models, or q1, q2, ...
    of arrays; its arrays have shape (p,)."""

    names: tuple[str, ...]

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Estimate, standard_error, df, lower, upper, p_value (of 0) and adjusted, by name."""
        from scipy import stats  # slow to import

        error, size = self.standard_error, np.abs(self.estimate)
        ratio = np.divide(size, error, out=np.where(size > 0, np.inf, 0.0), where=error > 0)
        lower, upper = self.interval(level)
        by_term: pd.DataFrame = pd.DataFrame({
            "estimate": self.estimate, "standard_error": error, "df": self.df, "lower": lower,
            "upper": upper, "p_value": 2 * stats.t.sf(ratio, self.df), "adjusted": self.adjusted,
        }, index=pd.Index(self.names, name="term"))  # fmt: skip
        return by_term


def pool(models: Any, *, rule: str = "partially_synthetic") -> Pooled:
    """Combine models fitted to m sets, or (estimate, variance) pairs, into one inference.

    Parameters
    ----------
    models : sequence of m results or pairs
        Results of statsmodels, or anything with `params` and `bse`, or pairs (estimate, variance)
        of numbers or of vectors. For ``rule="nested"`` m such sequences of one length r.
    rule : str
        "partially_synthetic" [R03] for data of which some columns are synthesized;
        "fully_synthetic" [RRR03] for data of which all are and whose records are fresh;
        "noise_aware" for sets of `NoisyMarginals`, however many of their columns are synthesized;
        "multiple_imputation", Rubin's rules, for imputed missing values; "nested" [R04] for both,
        each of m imputations synthesized r times.

    Raises
    ------
    InvalidInput
        For fewer sets than the rule needs, models of unlike terms, estimates that are not finite.

    Examples
    --------
    >>> pool([(1.0, 0.5), (2.0, 0.7), (3.0, 0.6)]).table()["df"].round(2).tolist()
    [15.68]
    """
    check_choice(rule, "rule", RULES)
    flat = nests = _sequence(models, "models")
    if rule == NESTED:
        nests = [_sequence(nest, f"models of imputation {i}") for i, nest in enumerate(nests, 1)]
        if len({len(nest) for nest in nests}) > 1:
            raise InvalidInput("the rule 'nested' needs as many syntheses of each imputation")
        flat = [fit for nest in nests for fit in nest]
    named = [_estimates_of(fit, f"model {number}") for number, fit in enumerate(flat, start=1)]
    names = named[0][0]
    for number, (terms, _, _) in enumerate(named, start=1):
        if terms != names:
            raise InvalidInput(
                f"models must have the same terms in one order: model {number} and model 1 differ"
            )
    shape = (len(nests), -1, len(names)) if rule == NESTED else (len(nests), len(names))
    q, v = (np.array([fit[part] for fit in named]).reshape(shape) for part in (1, 2))
    return Pooled(names=names, **vars(getattr(combining, f"combine_{rule}")(q, v)))


def _estimates_of(model: Any, name: str) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Names, estimates and variances, each of length p, of a fitted model or a pair."""
    if hasattr(model, "params") and hasattr(model, "bse"):
        q, variances = check_numeric(model.params, name), check_numeric(model.bse, name) ** 2
    elif isinstance(model, (tuple, list)) and len(model) == 2:
        q, variances = (np.atleast_1d(check_numeric(part, name)) for part in model)
    else:
        raise InvalidInput(
            f"{name} must be a fitted model with params and bse, or a pair (estimate, variance): "
            f"found {type(model).__name__}"
        )
    if q.shape != variances.shape or q.ndim != 1:
        raise InvalidInput(
            f"{name} must have as many variances as estimates: found {variances.shape}, {q.shape}"
        )
    terms = getattr(getattr(model, "params", None), "index", None)  # of a Series
    numbered = (f"q{number}" for number in range(1, q.size + 1))
    names = tuple(numbered if terms is None else map(str, terms))
    if not np.isfinite([q, variances]).all():
        raise InvalidInput(f"{name} must have finite estimates and variances")
    return names, q, variances


def _sequence(values: Any, name: str) -> list[Any]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, (list, tuple)) or not values:
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
    formula, model, rule : str
    n_used : tuple of int, length 1 + m
        Records without missing values that entered the fit of the data and of each set.
    pooled : Pooled or None
        None without a rule.
    """

    table: pd.DataFrame
    formula: str
    model: str
    rule: str
    n_used: tuple[int, ...]
    pooled: Pooled | None

    @property
    def mean_overlap(self) -> float:
        """Mean interval overlap of the terms."""
        return float(self.table["interval_overlap"].mean())


def model_utility(
    real: Any,
    synthetic: Any,
    formula: str,
    *,
    model: str = "ols",
    categorical: Any = (),
    rule: str = "partially_synthetic",
    n_imputations: int | None = None,
    level: float = 0.95,
    weights: str | None = None,
) -> ModelUtility:
    """Fit a model of statsmodels to the data and to each synthetic set, combine and compare.

    Parameters
    ----------
    real, synthetic, categorical
        As in `pyhybrid.measures.propensity_utility`.
    formula : str
        As `statsmodels.formula.api` reads it; names may stand in backticks.
    model : str, default "ols"
        Name of a model in `statsmodels.formula.api`: ols, logit, probit, poisson,
        negativebinomial, quantreg, ...
    rule : str
        How the m fits are combined, see `pyhybrid.measures.pool`; "single" for one set takes its
        fit as it is, and its interval is then too short.
    n_imputations : int, optional
        For the nested rule: imputations that the sets belong to, as many sets each, in order.
    level : float, default 0.95
        Of the intervals, in (0, 1).
    weights : str, optional
        Column of design weights, as in `pyhybrid.measures.propensity_utility`, for "ols", and for
        "logit", "probit" and "poisson", which are then fitted as generalized linear models. Weights
        are divided by their mean. Standard errors are those of a model with unequal variances.

    Raises
    ------
    InvalidInput
        As `reconcile_tables`; for m = 1 under a rule; for a model that cannot be fitted, does not
        converge or has other terms in some table, which is named.
    """
    tables = reconcile_tables(real, synthetic, categorical=categorical, weights=weights)
    check_choice(rule, "rule", (*MODEL_RULES, NESTED))
    check_level(level)
    m = len(tables.synthetic)
    if (n_imputations is None) == (rule == NESTED):
        raise InvalidInput("n_imputations must be given with the rule 'nested', and only with it")
    if (m == 1) != (rule == SINGLE):
        raise InvalidInput(
            f"rule='single' takes one synthetic set, other rules at least 2: found {rule!r} and {m}"
        )
    if n_imputations is not None and m % check_count(n_imputations, "n_imputations", at_least=2):
        raise InvalidInput(
            f"n_imputations must divide the number of sets, {m}: found {n_imputations}"
        )
    named = zip(("the data", *tables.names), tables.all, tables.weights, strict=True)
    fit_of_data, *fits = (
        _fit(table, formula, model, name, survey, weighing=weights is not None)
        for name, table, survey in named
    )
    original = _t_interval(fit_of_data, level)
    pooled, estimate, ends = None, fits[0].params, _t_interval(fits[0], level)
    if rule != SINGLE:
        per_nest = m // (n_imputations or m)
        nests = [fits[k : k + per_nest] for k in range(0, m, per_nest)]
        pooled = pool(nests if rule == NESTED else fits, rule=rule)
        estimate, ends = pooled.estimate, pooled.interval(level)
    if list(fits[0].params.index) != list(fit_of_data.params.index):
        raise InvalidInput("the model must have the same terms in data and sets: levels differ")
    truth = np.asarray(fit_of_data.params)
    table = pd.DataFrame({
        "estimate": truth, "lower": original[0], "upper": original[1],
        "synthetic_estimate": estimate, "synthetic_lower": ends[0], "synthetic_upper": ends[1],
        "interval_overlap": interval_overlap(original, ends),
        "standardised_difference": standardised_difference(truth, estimate, fit_of_data.bse),
    }, index=fit_of_data.params.index.rename("term"))  # fmt: skip
    n_used = tuple(int(fit.nobs) for fit in (fit_of_data, *fits))
    return ModelUtility(
        table=table, formula=formula, model=model, rule=rule, n_used=n_used, pooled=pooled
    )


def _fit(
    table: pd.DataFrame, formula: str, model: str, name: str, weights: FloatArray, *, weighing: bool
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
    if outcome in table and {*table[outcome].dropna().astype(str)} <= {"False", "True"}:
        codes = table[outcome].astype(object).map({"False": 0.0, "True": 1.0})
        table = table.assign(**{outcome: codes})  # logical, which tables of one form hold as text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters of them is checked below
            read = _for_patsy(formula, table.columns)
            built = build(read, table)
            design = np.asarray(built.exog)
            quiet = {"disp": 0} if model not in ("ols", "wls", "gls", "glm", "quantreg") else {}
            if (weights == 1).all():
                fit = built.fit(**quiet)
            else:
                rows = np.asarray(built.data.row_labels, dtype=np.intp)  # tables count from 0
                fit = _weighted_fit(read, table.iloc[rows], model, weights[rows])
            errors = np.asarray(fit.bse, dtype=np.float64)
    except Exception as error:  # parsers and optimizers raise their own kinds
        reason = _VALUE.sub(  # but for words of the formula: it may quote the data
            lambda of: of[0] if of[0].strip("'\"") in formula else "#", str(error).split("\n")[0]
        )
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
    return pattern.sub(
        lambda name: name[0] if name[0][0] in "'\"" else f"Q({name[0].strip('`')!r})", formula
    )


def _weighted_fit(formula: str, used: pd.DataFrame, model: str, weights: FloatArray) -> Any:
    """The fit by weights that average 1 over the records without missing values."""
    import statsmodels.api as sm
    import statsmodels.formula.api as smf
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    warnings.simplefilter("error", PerfectSeparationWarning)
    weight, of = average_one(weights), sm.families
    if model == "ols":
        return smf.wls(formula, used, weights=weight).fit()
    probit = of.Binomial(of.links.Probit())
    family = {"logit": of.Binomial(), "probit": probit, "poisson": of.Poisson()}[model]
    return smf.glm(formula, used, var_weights=weight, family=family).fit()


def _t_interval(fit: Any, level: float) -> FloatArray:
    """Interval of each coefficient, shape (2, p): t for linear models, normal for the others."""
    from scipy import stats  # slow to import

    degrees = fit.df_resid if getattr(fit, "use_t", False) else np.inf
    half = stats.t.ppf((1 + level) / 2, degrees) * np.asarray(fit.bse)
    return np.stack([fit.params - half, fit.params + half])
