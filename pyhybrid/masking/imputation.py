r"""Masking by data augmentation (DA-MI): targeted multiple imputation of quasi-identifiers [J22].

The association model p(X | Z, theta) is fitted to the true keys X; a mask W is drawn from each true
key; the released X* is drawn from p(X | Z, theta) p(W | X). W carries what the association model
gets wrong, so that analyses keep their coefficients. W is drawn anew for every set, so that the
sets vary about the data as the combining rules assume. **Not differentially private.**
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_count
from pyhybrid.core.errors import InvalidInput, NotConverged
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.engines.convergence import ConvergenceRule, Diagnostics, diagnose_quantities
from pyhybrid.masking.columns import BoundKeys, KeySynthesis, bind_keys
from pyhybrid.masking.copula import CopulaModel
from pyhybrid.masking.masks import (
    Evidence,
    KeyMasks,
    RiskSubgroups,
    check_masks,
    described,
    draw_evidence,
)
from pyhybrid.masking.release import PARTIAL, MaskedRelease, masked_release
from pyhybrid.masking.sequence import SequentialModel
from pyhybrid.measures.matching import MatchingRisk, matching_risk
from pyhybrid.measures.models import NESTED, SINGLE, ModelUtility, model_utility
from pyhybrid.running.tasks import Progress

AssociationModel = SequentialModel | CopulaModel
"""p(X | Z, theta) with its Gibbs sampler, which is read-only: chains share it, each has a state."""


@dataclass(frozen=True, kw_only=True)
class GibbsSettings:
    """How long to sample: chains, sweeps of each to forget and to keep, from 2, 20 and 50; updates
    of all keys for one synthetic set (`sweeps`), which start from keys drawn given W, and between
    two syntheses of one imputation; the rule that chains are judged by."""

    chains: int = 4
    warmup: int = 100
    draws: int = 500
    sweeps: int = 30
    rule: ConvergenceRule = ConvergenceRule()  # noqa: RUF009

    def __post_init__(self) -> None:
        for name, least in {"chains": 2, "warmup": 20, "draws": 50, "sweeps": 1}.items():
            check_count(getattr(self, name), name, at_least=least)


ASSOCIATIONS: Mapping[str, type[AssociationModel]] = {
    "sequential": SequentialModel,
    "copula": CopulaModel,
}
_COPULA = GibbsSettings(warmup=200, draws=800)
_TICK = 10  # sweeps between two reports of progress


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedFit:
    """An association model fitted to one data set, to which any masks can be applied: draws of its
    `quantities` (chains, draws, d), by column, or the "correlation" of a copula; `states` of chains
    picked at random without replacement. Confidential."""

    data: pd.DataFrame
    bound: BoundKeys
    model: AssociationModel
    streams: Streams
    quantities: dict[str, FloatArray]
    states: tuple[Any, ...]
    diagnostics: Diagnostics

    def __repr__(self) -> str:
        return f"<MaskedFit of {self.bound.n_records} records, confidential>"


@dataclass(frozen=True, kw_only=True)
class MaskedImputation(KeySynthesis):
    """Synthesis of quasi-identifiers (keys) by masking and multiple imputation [J22].

    Not differentially private: the release has a `RiskStatement`, no epsilon.

    Parameters
    ----------
    keys : sequence of str
        Columns to replace; all others are released as they are.
    masks : mapping of key to mask, default none
        See `masks_by_type`; or a mapping of "low", "medium", "high" to masks, with `subgroups`. A
        key without one has its mask off: it is drawn from the association model alone.
    association : {"sequential", "copula"}
        A sequence of conditional models by type, or a Gaussian copula.
    n_synthetic : int, default 5
        m, synthetic sets; of each imputation if keys have missing values.
    n_imputations : int, default 5
        Imputations, from 2, where keys have missing values.
    predictors : sequence of str, optional
        Columns of the association model beside the keys; all that a model covers if omitted. Their
        missing values are imputed along, and come back as they were.
    order : sequence of str, optional
        Of the keys in the sequence. By default nominal, binary, ordered, continuous.
    types : mapping of column to {"continuous", "binary", "ordered", "nominal"}, optional
        Types other than those that follow from the data; see `pyhybrid.masking.columns`.
    subgroups : RiskSubgroups, optional
        Of the same records; see `risk_subgroups`.
    settings : GibbsSettings, optional
        Longer chains for a copula, whose latents mix more slowly, if omitted.
    on_not_converged : {"raise", "warn"}
    """

    masks: KeyMasks = field(default_factory=dict)
    association: str = "sequential"
    n_imputations: int = 5
    subgroups: RiskSubgroups | None = None
    settings: GibbsSettings | None = None
    on_not_converged: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.masks, Mapping):
            raise InvalidInput(f"masks must be a mapping by key: found {type(self.masks).__name__}")
        check_choice(self.association, "association", ASSOCIATIONS)
        check_choice(self.on_not_converged, "on_not_converged", ("raise", "warn"))
        check_count(self.n_imputations, "n_imputations", at_least=2)

    @bar_in_notebooks
    def release(
        self, df: pd.DataFrame, *, seed: int | None = None, progress: Progress | None = None
    ) -> MaskedRelease:
        """Fit the association model to `df` and release synthetic sets.

        The data are not modified; the seed is for tests and papers. NotConverged is raised if the
        chains did not converge, also when run three times as long.
        """
        return self.release_from(self.fit(df, seed=seed, progress=progress), progress=progress)

    @bar_in_notebooks
    def fit(
        self, df: pd.DataFrame, *, seed: int | None = None, progress: Progress | None = None
    ) -> MaskedFit:
        """Fit the association model; it does not depend on the masks, and can be used for many."""
        source = streams(seed)
        bound = bind_keys(self, df)
        self._check(bound, df)
        model = ASSOCIATIONS[self.association](bound, source.generator("masking: start"))
        n_states = self.n_imputations if bound.any_key_missing else self.n_synthetic
        once = self._chain_settings
        longer = replace(once, warmup=3 * once.warmup, draws=3 * once.draws)
        for attempt, lengths in enumerate((once, longer), start=1):
            draws = _run_chains(model, n_states, lengths, source, attempt, progress)
            fit = MaskedFit(data=df, bound=bound, model=model, streams=source, **draws)
            if fit.diagnostics.converged:
                return fit
        message = (
            f"the association model has not converged: {'; '.join(fit.diagnostics.problems)}; "
            "give more draws, fewer predictors, or another association"
        )
        if self.on_not_converged == "raise":
            raise NotConverged(message)
        warnings.warn(message, stacklevel=2)
        return fit

    @bar_in_notebooks
    def release_from(self, fit: MaskedFit, *, progress: Progress | None = None) -> MaskedRelease:
        """Release from a fit of the same keys, with this object's masks.

        All releases from one fit share their random numbers, so that masks can be compared: publish
        one of them only. Two together would show what the masks differ by.
        """
        self._check(fit.bound, fit.data)
        nested = fit.bound.any_key_missing
        n_imputations = self.n_imputations if nested else 1
        rng = fit.streams.generator("masking: synthesis")
        settings = self._chain_settings
        tables = []
        for state in self._states(fit, rng):
            evidence = self._evidence(fit, state, rng)
            drawn = fit.model.synthesize(state, evidence, rng, sweeps=settings.sweeps)
            tables.append(fit.bound.released(fit.data, drawn))
            if progress is not None:
                progress("synthetic sets", len(tables), self.n_synthetic * n_imputations)
        lengths = ("chains", "warmup", "draws", "sweeps")
        return masked_release(
            tables,
            fit.data,
            method=f"masking by data augmentation, {self.association} association model",
            masks={key: described(self.masks.get(key)) for key in self.keys},
            rule=NESTED if nested else PARTIAL,
            n_imputations=n_imputations,
            diagnostics=fit.diagnostics,
            settings={
                "association": self.association,
                **fit.bound.described(),
                **{name: getattr(settings, name) for name in lengths},
            },
            streams=fit.streams,
        )

    def with_masks(self, masks: KeyMasks) -> MaskedImputation:
        """The same with other masks."""
        return replace(self, masks=masks)

    def _check(self, bound: BoundKeys, df: pd.DataFrame) -> None:
        by_name = {column.name: column for column in bound.keys}
        check_masks(self.masks, by_name, subgroups=self.subgroups is not None)
        if set(by_name) != {*self.keys}:
            raise InvalidInput(f"the fit must be of keys {', '.join(self.keys)}")
        if self.subgroups is not None and not self.subgroups.labels.equals(df.index):
            raise InvalidInput("subgroups must be of the same records as the data")
        if bound.any_key_missing and self.n_synthetic < 2:
            raise InvalidInput(
                "n_synthetic must be at least 2 where keys have missing values, for the rule that "
                "combines imputations: found 1"
            )

    @property
    def _chain_settings(self) -> GibbsSettings:
        return self.settings or (_COPULA if self.association == "copula" else GibbsSettings())

    def _states(self, fit: MaskedFit, rng: np.random.Generator) -> Iterator[Any]:
        """A draw of the parameters for each set; within an imputation the imputed values stay."""
        nested = fit.bound.any_key_missing
        needed = self.n_imputations if nested else self.n_synthetic
        if len(fit.states) < needed:
            raise InvalidInput(
                f"the fit must hold {needed} draws: it holds {len(fit.states)}; fit again "
                "with these numbers of sets and imputations"
            )
        for kept in fit.states[:needed]:
            state = deepcopy(kept)
            yield state
            for _ in range(self.n_synthetic - 1 if nested else 0):
                for _ in range(self._chain_settings.sweeps):
                    fit.model.sweep(state, rng, adapt=False, impute=False)
                yield state

    def _evidence(
        self, fit: MaskedFit, state: Any, rng: np.random.Generator
    ) -> dict[str, Evidence]:
        columns = {column.name: column for column in fit.bound.keys}
        groups = None if self.subgroups is None else self.subgroups.by_record
        return draw_evidence(self.masks, columns, fit.model.completed(state), groups, rng)


def _run_chains(
    model: AssociationModel, n_states: int, settings: GibbsSettings, streams: Streams,
    attempt: int, progress: Progress | None,
) -> dict[str, Any]:  # fmt: skip
    """Quantities, picked states and diagnostics."""
    n_draws = settings.chains * settings.draws
    picker = streams.generator(f"masking: picked draws, attempt {attempt}")
    picked = picker.choice(n_draws, min(n_states, n_draws), replace=False)
    picks = [divmod(int(position), settings.draws) for position in picked]
    states: dict[tuple[int, int], Any] = {}
    done = [0] * settings.chains

    def run(chain: int) -> dict[str, list[FloatArray]]:
        """One chain: its quantities; what was picked of it goes into `states`."""
        rng = streams.generator(f"masking: chain {chain}, attempt {attempt}")
        state: Any = model.start(rng)
        kept: dict[str, list[FloatArray]] = {}
        for sweep in range(settings.warmup + settings.draws):
            model.sweep(state, rng, adapt=sweep < settings.warmup, impute=True)
            done[chain] = sweep + 1
            if progress is not None and sweep % _TICK == _TICK - 1:
                total = settings.chains * (settings.warmup + settings.draws)
                progress("association model", sum(done), total)
            draw = sweep - settings.warmup
            if draw < 0:
                continue
            for name, values in model.quantities(state).items():
                kept.setdefault(name, []).append(values)
            if (chain, draw) in picks:
                states[chain, draw] = deepcopy(state)
        return kept

    with ThreadPoolExecutor(min(settings.chains, os.cpu_count() or 1)) as pool:
        kept = list(pool.map(run, range(settings.chains)))
    quantities = {name: np.array([chain[name] for chain in kept]) for name in kept[0]}
    judged = diagnose_quantities(
        quantities, settings.rule, n_chains=settings.chains, n_draws=n_draws
    )
    return {
        "quantities": quantities,
        "states": tuple(states[pick] for pick in picks),
        "diagnostics": replace(judged, attempts=attempt),
    }


def masked_utility(
    release: MaskedRelease, df: pd.DataFrame, formula: str, **options: Any
) -> ModelUtility:
    """`pyhybrid.measures.model_utility`, whose options it takes, of the confidential data and a
    release, by its rule. Where keys have missing values the model of the data uses the records
    without."""
    if release.rule == NESTED:
        options |= {"n_imputations": release.statement.n_imputations}
    rule = release.rule if len(release.synthetic) > 1 else SINGLE
    return model_utility(df, release.synthetic, formula, rule=rule, **options)


def release_risk(
    release: MaskedRelease | None, df: pd.DataFrame, *, keys: Sequence[str], radius: Any = None
) -> MatchingRisk:
    """Matching risk on the keys; of the data published as they are if `release` is None."""
    sets = [df] if release is None else release.synthetic
    return matching_risk(df, sets, keys=keys, radius=radius, rows_correspond=True)


def naming_share(risk: MatchingRisk) -> float:
    """Share of targets that the intruder names correctly, in [0, 1]: mean of T_il / c_il."""
    if risk.correct_by_record is None:
        raise InvalidInput("rows of the sets must correspond to those of the data")
    return float(np.mean(risk.correct_by_record))
