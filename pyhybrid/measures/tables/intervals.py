"""An analyst's model fitted to the data and to each synthetic set: overlap and differences."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_count, check_finite
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.arrays.intervals import interval_overlap, standardised_difference
from pyhybrid.measures.arrays.weighted import average_one
from pyhybrid.measures.tables.combining import NESTED, RULES, Pooled, pool
from pyhybrid.measures.tables.reconcile import Tables, reconcile_tables
from pyhybrid.measures.tables.sampled import Sampled, Weights

__all__ = ["MODEL_RULES", "SINGLE", "ModelUtility", "model_of_tables", "model_utility"]

SINGLE = "single"
"""No rule: one synthetic set, taken at its word."""

MODEL_RULES = (*(name for name in RULES if name != NESTED), SINGLE)
"""Rules for m sets that are on one footing; "nested" needs to know the imputations."""

_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|(?<![A-Za-z_])-?\d[\w.+-]*")
_WITH_WEIGHTS = ("ols", "glm", "logit", "probit", "poisson")
_ROUNDING = 1e-12  # of a coefficient: smaller standard errors hold no residual


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
        parts = []
        for source, prefix in (("data", ""), ("synthetic", "synthetic_")):
            part = self.table[[prefix + name for name in ("estimate", "lower", "upper")]]
            part = part.set_axis(["estimate", "lower", "upper"], axis=1).reset_index(names="term")
            parts.append(part.rename(columns={"term": "statistic"}).assign(source=source))
        tidy: pd.DataFrame = pd.concat(parts, ignore_index=True)
        return tidy


def model_utility(
    real: pd.DataFrame,
    synthetic: Any,
    formula: str,
    *,
    model: str = "ols",
    options: Mapping[str, Any] | None = None,
    categorical: Any = (),
    rule: str = "partially_synthetic",
    n_imputations: int | None = None,
    level: float = 0.95,
    weights: Weights = None,
) -> ModelUtility:
    """Fit a model of statsmodels to the data and to each synthetic set, combine and compare.

    Parameters
    ----------
    real, synthetic
        As in `pyhybrid.propensity_utility`.
    formula : str
        As `statsmodels.formula.api` reads it.
    model : str, default "ols"
        Name of a model in `statsmodels.formula.api`: ols, logit, probit, poisson, glm,
        negativebinomial, quantreg, ...
    options : mapping, optional
        Handed to that model, e.g. ``{"family": sm.families.Gamma()}``.
    categorical : sequence of str
        Columns of numbers that are codes.
    rule : {"partially_synthetic", "fully_synthetic", "multiple_imputation", "nested", "single"}
        How the m fits are combined, see `pyhybrid.pool`; "single" for one set takes its fit as
        it is, and its interval is then too short.
    n_imputations : int, optional
        For the nested rule: imputations that the sets belong to, as many sets each, in order.
    level : float, default 0.95
        Of the intervals, in (0, 1).
    weights : str or SurveyDesign, optional
        Column of design weights, as in `pyhybrid.propensity_utility`, for "ols" and "glm", and for
        "logit", "probit" and "poisson", which are then fitted as generalized linear models.
        Weights are divided by their mean. With a SurveyDesign standard errors are design-based
        (sandwich by clusters; strata, which make them smaller, are left out); with a column they
        are those of a model with unequal variances.

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
    [R03] and the others of `pyhybrid.measures.arrays.combining`, and
    `pyhybrid.measures.arrays.intervals`.
    """
    tables = reconcile_tables(real, synthetic, categorical=categorical, weights=weights)
    return model_of_tables(
        tables, formula, model=model, options=options, rule=rule, n_imputations=n_imputations,
        level=level,
    )  # fmt: skip


def model_of_tables(
    tables: Tables,
    formula: str,
    *,
    model: str = "ols",
    options: Mapping[str, Any] | None = None,
    rule: str = "partially_synthetic",
    n_imputations: int | None = None,
    level: float = 0.95,
) -> ModelUtility:
    """`model_utility` on tables that are reconciled already."""
    check_choice(rule, "rule", (*MODEL_RULES, NESTED))
    per_imputation = _per_imputation(rule, len(tables.synthetic), n_imputations)
    if not 0 < check_finite(level, "level") < 1:
        raise InvalidInput(f"level must lie in (0, 1): found {level:g}")
    m = len(tables.synthetic)
    if (m == 1) != (rule == SINGLE):
        raise InvalidInput(
            f"the rule {rule!r} needs at least 2 synthetic sets: found 1; give more, or "
            "rule='single'"
            if m == 1
            else f"rule='single' takes one synthetic set: found {m}"
        )
    names = ["the data", *tables.names]
    sampled = tables.sampled or [None] * len(names)
    fits = [
        fit_model(table, formula, model, options or {}, name, own)
        for table, name, own in zip((tables.real, *tables.synthetic), names, sampled, strict=True)
    ]
    for fit, name in zip(fits[1:], tables.names, strict=True):
        _check_terms(fits[0], fit, name)
    original = _t_interval(fits[0], level)
    pooled = None
    if rule != SINGLE:
        nests = [fits[k : k + per_imputation] for k in range(1, len(fits), per_imputation)]
        pooled = pool(nests if rule == NESTED else fits[1:], rule=rule)
    if pooled is None:
        estimate, ends = np.asarray(fits[1].params), _t_interval(fits[1], level)
    else:
        estimate, ends = pooled.combined.estimate, pooled.combined.interval(level)
    table = _table(fits[0], original, estimate, ends)
    return ModelUtility(
        table=table,
        mean_overlap=float(table["interval_overlap"].mean()),
        mean_difference=float(table["standardised_difference"].mean()),
        formula=formula,
        model=model,
        rule=rule,
        n_used=tuple(int(fit.nobs) for fit in fits),
        pooled=pooled,
    )


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


def _table(fit: Any, original: FloatArray, estimate: FloatArray, ends: FloatArray) -> pd.DataFrame:
    columns = {
        "estimate": np.asarray(fit.params),
        "lower": original[0],
        "upper": original[1],
        "synthetic_estimate": estimate,
        "synthetic_lower": ends[0],
        "synthetic_upper": ends[1],
        "interval_overlap": interval_overlap(original, ends),
        "standardised_difference": standardised_difference(
            np.asarray(fit.params), estimate, np.asarray(fit.bse)
        ),
    }
    table: pd.DataFrame = pd.DataFrame(columns, index=pd.Index(fit.params.index, name="term"))
    return table


def fit_model(
    table: pd.DataFrame,
    formula: str,
    model: str,
    options: Mapping[str, Any],
    name: str,
    sampled: Sampled | None = None,
) -> Any:
    """Fit of a model of statsmodels to one table, under design weights where it has some.

    Raises
    ------
    InvalidInput
        For a model that is unknown, takes no weights, cannot be fitted or does not converge.
    """
    import statsmodels.formula.api as smf

    build = getattr(smf, model, None) if isinstance(model, str) else None
    if not callable(build) or str(model).startswith("_"):
        raise InvalidInput(f"model must be one of statsmodels.formula.api: found {model!r}")
    if sampled is not None and model not in _WITH_WEIGHTS:
        raise InvalidInput(
            f"a model with weights must be one of {', '.join(_WITH_WEIGHTS)}: found {model!r}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters of them is checked below
            built = build(formula, table, **options)
            design = np.asarray(built.exog)
            quiet = {"disp": 0} if model not in ("ols", "wls", "gls", "glm", "quantreg") else {}
            if sampled is None or (sampled.weights is None and sampled.clusters is None):
                fit = built.fit(**quiet)
            else:
                fit = _survey_fit(built, formula, table, model, options, sampled)
            errors = np.asarray(fit.bse, dtype=np.float64)
    except Exception as error:  # parsers and optimizers raise their own kinds
        reason = _without_data(str(error).split("\n")[0], formula)
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
            "0 but for rounding, as where an outcome is constant or a function of its predictors"
        )
    return fit


def _survey_fit(
    built: Any,
    formula: str,
    table: pd.DataFrame,
    model: str,
    options: Mapping[str, Any],
    sampled: Sampled,
) -> Any:
    """The fit by weights that average 1 over the records without missing values."""
    import statsmodels.api as sm
    import statsmodels.formula.api as smf
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    rows = np.asarray(built.data.row_labels, dtype=np.intp)  # tables are numbered from 0
    weight = np.ones(len(table)) if sampled.weights is None else sampled.weights
    own, used = average_one(weight[rows]), table.iloc[rows]
    families = {
        "logit": sm.families.Binomial,
        "probit": lambda: sm.families.Binomial(sm.families.links.Probit()),
        "poisson": sm.families.Poisson,
    }
    if model == "ols":
        weighted = smf.wls(formula, used, weights=own, **options)
    else:
        family = {"family": families[model]()} if model in families else {}
        weighted = smf.glm(formula, used, var_weights=own, **family, **options)
    robust: dict[str, Any] = {}
    if sampled.clusters is not None:
        groups = {"groups": sampled.clusters[rows]}
        robust = {"cov_type": "cluster", "cov_kwds": groups, "use_t": True}
    warnings.simplefilter("error", PerfectSeparationWarning)
    return weighted.fit(**robust)


def _without_data(reason: str, formula: str) -> str:
    """A reason given by others, with what stands neither in the formula nor in words left out."""
    return _VALUE.sub(
        lambda found: found.group() if found.group().strip("'\"") in formula else "#", reason
    )


def _check_terms(first: Any, other: Any, name: str) -> None:
    unlike = sorted(set(first.params.index) ^ set(other.params.index))
    if unlike:
        term = str(unlike[0]).partition("[")[0]  # what follows names a level
        raise InvalidInput(
            f"the model must have the same terms in {name} as in the data: {term!r} "
            "differs, in its levels perhaps"
        )


def _t_interval(fit: Any, level: float) -> FloatArray:
    """Interval of each coefficient, shape (2, p): t for linear models, normal for the others."""
    from scipy import stats  # slow to import

    resid = getattr(fit, "df_resid_inference", None) or fit.df_resid  # clusters less 1
    degrees = resid if getattr(fit, "use_t", False) else np.inf
    half = stats.t.ppf((1 + level) / 2, degrees) * np.asarray(fit.bse)
    return np.stack([fit.params - half, fit.params + half])
