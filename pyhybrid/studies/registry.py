"""Study J: masking, CART and norm + logit on the pseudo registry of [J22].

The registry of scleroderma patients behind [J22] and [JC] is not public. The paper's supplement has
a pseudo registry of 698 records, `csrg.csv`, and the authors' results for it (web tables 17 to 19).
pyhybrid ships no record of it: the file is given as `data`. Each database of this study is that
file, with imputations, masks and syntheses of its own.

As the supplement does it: missing values of all variables are imputed 5 times, the keys of each
completed table are synthesized 3 times, and probit regressions of work disability are combined by
[R04]. Onset of ILD, known later and only of those without it at the start, is imputed 5 times in
each set; sets and imputations are combined as nested imputations. Errors of the masks are the same
in all sets, and so are the random numbers of CART, norm + logit and the onset in each imputation.
An intruder who knows the keys averages each record's chance over all sets and names the likeliest
if it is one alone; or does so on one table of the sets' mean ages and commonest categories. After
DA-MI who would be named gets the synthetic keys of a neighbor: nearest in age, else equal.

References
----------
Rubin (2003), Statistica Neerlandica 57:3-18 (nested imputation).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule
from pyhybrid.masking import (
    CartSynthesis,
    GibbsSettings,
    MaskedFit,
    MaskedImputation,
    ParametricSynthesis,
    masks_by_type,
)
from pyhybrid.masking.masks import Evidence
from pyhybrid.measures.combining import Combined, combine_multiple_imputation, combine_nested
from pyhybrid.measures.utility import interval_overlap, standardised_difference
from pyhybrid.studies.measuring import measured, read_columns
from pyhybrid.studies.study import Measured, Size, Study, published_in

FILE = "csrg.csv of [J22]'s supplement (folder csrg of the paper's code on GitHub, jasa-acs)"
Tables = Sequence[pd.DataFrame]
_SETTING = "698 records, missing values imputed"
_KEYS = ("Age", "Gender", "NewWhite", "MoreThanHighSchool")
_CLINICAL = ("Diffuse", "CentroPositive", "DiseaseDuration", "BaseFVC", "BaseDLCO", "BaseTLC")
_TERMS = (*_KEYS, *_CLINICAL)
_WORK, _ONSET, _START = "WorkDisabled", "OneYearILD", "BaselineILD"
_OUTCOMES = ("work disability", "onset of ILD")
_RECORDS, _M, _R, _YEARS = 698, 5, 3, (3, 5)
_DATA, _MASKED, _CART, _PARAMETRIC = "the data, imputed", "DA-MI", "CART", "norm + logit"
_BEFORE = "DA-MI before neighbors are swapped in"
# As synthpop does it: models of a resample for each set; rpart splits nodes of 15 records or more.
_COMPARATORS: dict[str, Any] = {
    _CART: functools.partial(CartSynthesis, proper=True, min_split=15),
    _PARAMETRIC: functools.partial(ParametricSynthesis, proper=True),
}
_OVERLAP, _APART, _OF_KEYS = "overlap", "standardized difference", "overlap of the keys"
_NAMED, _ON_MEAN = "% named, {} years", "% named on the sets' mean, {} years"


def pseudo_registry(path: str | os.PathLike[str]) -> pd.DataFrame:
    """The pseudo registry, with `Age` in standard deviations; refuses what is no such file."""
    columns = ["Age_raw", *_TERMS[1:], _WORK, _START, _ONSET]
    table = read_columns(path, {name: (name,) for name in columns}, FILE)
    numbers: pd.DataFrame = table.apply(pd.to_numeric, errors="coerce")
    codes, complete = numbers.drop(columns=["Age_raw", *_CLINICAL[2:]]), ["Age_raw", _WORK]
    if len(numbers) != _RECORDS or numbers[complete].isna().any(axis=None):
        raise InvalidInput(
            f"data {path} must be {FILE}: ages and work disability of {_RECORDS} records"
        )
    if not codes.isin([0, 1, np.nan]).all(axis=None):
        raise InvalidInput(f"data {path} must be {FILE}: codes are 0, 1 or missing")
    age = numbers["Age_raw"]
    numbers["Age"] = (age - age.mean()) / age.std()
    return numbers


def measure_j(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """Estimates, overlap and risk of DA-MI, CART and norm + logit."""
    registry = pseudo_registry(options["data"])
    rule = ConvergenceRule(rhat=1.1, ess_per_chain=10)
    lengths = {"warmup": options["warmup"], "draws": options["draws"]}
    how = {"settings": GibbsSettings(chains=2, sweeps=15, rule=rule, **lengths),
           "on_not_converged": "warn"}  # fmt: skip
    data = registry[[*_TERMS, _WORK]]
    completed, masked = _masked(data, streams, how)
    sets = {_MASKED: masked, **{name: _compared(name, completed, streams) for name in _COMPARATORS}}
    sets[_BEFORE] = masked
    rows = []
    for years in _YEARS:  # estimates are of the last, as in web tables 18 and 19
        radius = years / registry["Age_raw"].std()
        sets[_MASKED] = _with_neighbors(data, sets[_BEFORE], radius)
        for name, tables in sets.items():
            rows += _risk(name, data, tables, years, radius)
    del sets[_BEFORE]
    base = [
        combine_multiple_imputation(*_fits(completed, _WORK)),
        _onset(completed, registry, streams, how),
    ]
    combined_by = {_DATA: base}
    for name, tables in sets.items():
        synthesized = combine_nested(*(x.reshape(_M, _R, -1) for x in _fits(tables, _WORK)))
        combined_by[name] = [synthesized, _onset(tables, registry, streams, how)]
    for name, both in combined_by.items():
        for outcome, truth, combined in zip(_OUTCOMES, base, both, strict=True):
            estimates = zip(_TERMS, combined.estimate, strict=True)
            rows += measured(name, {f"{term}, {outcome}": value for term, value in estimates})
            rows += _utility(name, outcome, truth, combined) if name != _DATA else []
    return rows


# --- Imputation and synthesis ---------------------------------------------------------------------


class _OneMask(MaskedImputation):
    """DA-MI with the same errors of the masks in every set, as the supplement draws them."""

    def _evidence(
        self, fit: MaskedFit, state: Any, rng: np.random.Generator
    ) -> dict[str, Evidence]:
        return super()._evidence(fit, state, fit.streams.generator("one mask"))


def _masked(
    data: pd.DataFrame, streams: Streams, how: Mapping[str, Any]
) -> tuple[list[pd.DataFrame], list[pd.DataFrame]]:
    """Completed tables, and the sets of each, in order."""
    masks = masks_by_type(data, _KEYS, copies=20, variance=1.0, separation=6.0)
    masked = _OneMask(keys=_KEYS, masks=masks, n_synthetic=_R, n_imputations=_M, **how)
    fit = masked.fit(data, seed=streams.engine_seed("masking"))
    completed, tables = _completed(fit, data), masked.release_from(fit).synthetic
    return completed, [table.fillna(completed[k // _R]) for k, table in enumerate(tables)]


def _completed(fit: MaskedFit, data: pd.DataFrame) -> list[pd.DataFrame]:
    """The data with what the sampler imputed, draw by draw."""
    columns = (*fit.bound.keys, *fit.bound.incomplete)
    draws = [fit.model.completed(state) for state in fit.states]
    imputed = ({c.name: c.decoded(draw[c.name]) for c in columns} for draw in draws)
    return [data.fillna(pd.DataFrame(values)) for values in imputed]


def _compared(name: str, completed: Tables, streams: Streams) -> list[pd.DataFrame]:
    way = _COMPARATORS[name](keys=_KEYS, order=_KEYS, n_synthetic=_R)
    seed = streams.engine_seed(name)
    return [table for data in completed for table in way.release(data, seed=seed).synthetic]


def _onset(
    sets: Tables, registry: pd.DataFrame, streams: Streams, how: Mapping[str, Any]
) -> Combined:
    """The probit regression of the onset, imputed in each set."""
    way = MaskedImputation(keys=[_ONSET], n_synthetic=2, n_imputations=_M, **how)
    seed, at_risk = streams.engine_seed("onset"), registry[_START] == 0
    tables = []
    for table in sets:
        data = table.loc[at_risk, list(_TERMS)].assign(**{_ONSET: registry[_ONSET]})
        tables += _completed(way.fit(data, seed=seed), data)
    q, v = _fits(tables, _ONSET)
    return _nested_imputation(q.reshape(len(sets), _M, -1), v.reshape(len(sets), _M, -1))


# --- Inference and risk ---------------------------------------------------------------------------


def _fits(tables: Tables, outcome: str) -> tuple[FloatArray, FloatArray]:
    """Coefficients and their variances by expected information, each (tables, 10)."""
    from statsmodels.api import GLM, families  # slow to import

    fits = []
    for table in tables:
        design = np.column_stack([np.ones(len(table)), table[list(_TERMS)]])
        family = families.Binomial(families.links.Probit())
        fits.append(GLM(table[outcome].to_numpy(), design, family).fit())
    results = np.asarray([[fit.params[1:], fit.bse[1:] ** 2] for fit in fits])
    return results[:, 0], results[:, 1]


def _nested_imputation(q: FloatArray, v: FloatArray) -> Combined:
    """Rubin (2003) for r imputations of each of m: T = v + (1 + 1/m) B + (1 - 1/r) b."""
    m, r = q.shape[:2]
    between, within = q.mean(axis=1).var(axis=0, ddof=1), v.mean(axis=(0, 1))
    spread, rest = (1 + 1 / m) * between, (1 - 1 / r) * q.var(axis=1, ddof=1).mean(axis=0)
    total = within + spread + rest
    df = total**2 / (spread**2 / (m - 1) + rest**2 / (m * (r - 1)))
    return Combined(
        estimate=q.mean(axis=(0, 1)), variance=total, df=df, between=between, within=within,
        adjusted=np.zeros(total.shape, dtype=bool), rule="nested imputation",
    )  # fmt: skip


def _utility(name: str, outcome: str, base: Combined, synthesized: Combined) -> list[Measured]:
    overlap = interval_overlap(base.interval(), synthesized.interval())
    apart = standardised_difference(base.estimate, synthesized.estimate, base.standard_error)
    parts = {_OVERLAP: overlap, _APART: apart, _OF_KEYS: overlap[: len(_KEYS)]}
    return measured(name, {f"{what}, {outcome}": of.mean() for what, of in parts.items()})


def named(keys: FloatArray, sets: FloatArray, radius: float) -> npt.NDArray[np.bool_]:
    """True where the intruder names the record: it alone has the largest chance over the sets.

    Parameters
    ----------
    keys : ndarray, shape (n, k)
        True ones; the first may differ by `radius`, the others must be equal.
    sets : ndarray, shape (m, n, k)
        Synthetic ones; rows correspond.
    """
    chance = np.zeros((len(keys), len(keys)))
    for synthetic in sets:
        match = np.abs(keys[:, :1] - synthetic[:, 0]) <= radius
        match &= (keys[:, None, 1:] == synthetic[:, 1:]).all(axis=2)
        chance += match / np.maximum(match.sum(axis=1, keepdims=True), 1)
    largest = chance.max(axis=1)
    best = chance >= largest[:, None] - 1e-9
    return np.asarray(best.diagonal() & (best.sum(axis=1) == 1) & (largest > 0))


def _known(data: pd.DataFrame, sets: Tables) -> tuple[FloatArray, FloatArray]:
    """Keys of the records that miss none, and those of the sets."""
    rows = data[list(_KEYS)].notna().all(axis=1)
    keys, *others = (table.loc[rows, list(_KEYS)].to_numpy(float) for table in (data, *sets))
    return keys, np.stack(others)


def _with_neighbors(data: pd.DataFrame, sets: Tables, radius: float) -> list[pd.DataFrame]:
    keys, others = _known(data, sets)
    position = np.arange(len(keys))
    donors = position.copy()
    for i in np.flatnonzero(named(keys, others, radius)):
        like = np.flatnonzero((keys[:, 1:] == keys[i, 1:]).all(axis=1) & (position != i))
        donors[i] = like[np.abs(keys[like, 0] - keys[i, 0]).argmin()] if like.size else i
    rows = data.index[data[list(_KEYS)].notna().all(axis=1)]
    swapped = []
    for table, values in zip(sets, others, strict=True):
        swapped.append(table.copy())
        swapped[-1].loc[rows, list(_KEYS)] = values[donors]
    return swapped


def _risk(name: str, data: pd.DataFrame, sets: Tables, years: int, radius: float) -> list[Measured]:
    keys, others = _known(data, sets)
    mean = others.mean(axis=0, keepdims=True)
    mean[..., 1:] = mean[..., 1:] > 0.5
    parts = {_NAMED: others, _ON_MEAN: mean}
    return measured(
        name, {what.format(years): 100 * named(keys, parts[what], radius).mean() for what in parts}
    )


STUDY_J = Study(
    name="J",
    title="Masking, CART and norm + logit on the pseudo registry (needs data: csrg.csv)",
    source="[J22] supplement, [JC]",
    settings=(_SETTING,), measure=measure_j,
    quick=Size(replicates=5, options={"warmup": 100, "draws": 100}),
    paper=Size(replicates=20, options={"warmup": 100, "draws": 100}),
    needs_data=FILE,
    read_data=pseudo_registry,
    published=published_in("J"),
)  # fmt: skip
