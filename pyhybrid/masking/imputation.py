r"""Masking by data augmentation (DA-MI): targeted multiple imputation of quasi-identifiers [J22].

The association model p(X | Z, theta) is fitted to the true keys X; a mask W is drawn from each true
key; the released X* is drawn from p(X | Z, theta) p(W | X). W carries what the association model
gets wrong, so that analyses keep their coefficients. W is drawn anew for every set, so that the
sets vary about the data as the combining rules assume. **Not differentially private.**
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_choice, check_count
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.masking.chains import AssociationModel, Chains, GibbsSettings, Snapshot, run_chains
from pyhybrid.masking.columns import BoundKeys, KeySynthesis, bind_keys
from pyhybrid.masking.copula import CopulaModel
from pyhybrid.masking.masks import Evidence, KeyMasks, check_masks, described, draw_evidence
from pyhybrid.masking.release import PARTIAL, MaskedRelease, masked_release
from pyhybrid.masking.sequence import SequentialModel
from pyhybrid.masking.subgroups import RiskSubgroups
from pyhybrid.measures.matching import MatchingRisk, matching_risk
from pyhybrid.measures.models import NESTED, SINGLE, ModelUtility, model_utility
from pyhybrid.running.tasks import Progress

ASSOCIATIONS: dict[str, Callable[[BoundKeys, np.random.Generator], AssociationModel]] = {
    "sequential": SequentialModel,
    "copula": CopulaModel,
}
_IMPUTATIONS = 5
_COPULA = GibbsSettings(warmup=200, draws=800)


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedFit:
    """An association model fitted to one data set, with `chains.diagnostics`, and draws of the
    parameters by key in `chains.quantities`. Any masks can be applied to it. Confidential."""

    data: pd.DataFrame
    bound: BoundKeys
    model: AssociationModel
    chains: Chains
    streams: Streams

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
    n_imputations : int, optional
        Imputations of missing keys, from 2; 5 if omitted. Only for keys with missing values.
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
    n_imputations: int | None = None
    subgroups: RiskSubgroups | None = None
    settings: GibbsSettings | None = None
    on_not_converged: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.masks, Mapping):
            raise InvalidInput(f"masks must be a mapping by key: found {type(self.masks).__name__}")
        check_choice(self.association, "association", ASSOCIATIONS)
        check_choice(self.on_not_converged, "on_not_converged", ("raise", "warn"))
        if self.n_imputations is not None:
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
        chains = run_chains(
            model,
            n_snapshots=self._nests(bound) or self.n_synthetic,
            settings=self._chain_settings,
            streams=source,
            on_not_converged=self.on_not_converged,
            progress=progress,
        )
        return MaskedFit(data=df, bound=bound, model=model, chains=chains, streams=source)

    @bar_in_notebooks
    def release_from(self, fit: MaskedFit, *, progress: Progress | None = None) -> MaskedRelease:
        """Release from a fit of the same keys, with this object's masks.

        All releases from one fit share their random numbers, so that masks can be compared: publish
        one of them only. Two together would show what the masks differ by.
        """
        self._check(fit.bound, fit.data)
        nests = self._nests(fit.bound)
        rng = fit.streams.generator("masking: synthesis")
        settings = self._chain_settings
        tables = []
        for snapshot in self._draws(fit, nests, rng):
            evidence = self._evidence(fit, snapshot, rng)
            drawn = fit.model.synthesize(snapshot, evidence, rng, sweeps=settings.sweeps)
            tables.append(fit.bound.released(fit.data, drawn))
            if progress is not None:
                progress("synthetic sets", len(tables), self.n_synthetic * (nests or 1))
        lengths = ("chains", "warmup", "draws", "sweeps")
        return masked_release(
            tables,
            fit.data,
            method=f"masking by data augmentation, {self.association} association model",
            masks={key: described(self.masks.get(key)) for key in self.keys},
            rule=PARTIAL if nests is None else NESTED,
            n_imputations=nests or 1,
            diagnostics=fit.chains.diagnostics,
            settings={
                "association": self.association,
                **fit.bound.described(),
                **{name: getattr(settings, name) for name in lengths},
            },
            streams=fit.streams,
            subgroups=None if self.subgroups is None else self.subgroups.by_record,
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
        if not bound.any_key_missing and self.n_imputations is not None:
            raise InvalidInput(
                "n_imputations is for keys with missing values: none is missing; leave it out"
            )
        if bound.any_key_missing and self.n_synthetic < 2:
            raise InvalidInput(
                "n_synthetic must be at least 2 where keys have missing values, for the rule that "
                "combines imputations: found 1"
            )

    @property
    def _chain_settings(self) -> GibbsSettings:
        if self.settings is not None:
            return self.settings
        return _COPULA if self.association == "copula" else GibbsSettings()

    def _nests(self, bound: BoundKeys) -> int | None:
        """Imputations, or None if no key has missing values."""
        return (self.n_imputations or _IMPUTATIONS) if bound.any_key_missing else None

    def _draws(self, fit: MaskedFit, nests: int | None, rng: np.random.Generator) -> Any:
        """One posterior draw for each set; within an imputation the imputed values stay."""
        needed = nests or self.n_synthetic
        if len(fit.chains.snapshots) < needed:
            raise InvalidInput(
                f"the fit must hold {needed} draws: it holds {len(fit.chains.snapshots)}; fit "
                "again with this n_synthetic"
            )
        for snapshot in fit.chains.snapshots[:needed]:
            yield snapshot
            if nests is None:
                continue
            state = fit.model.resume(snapshot)
            for _ in range(self.n_synthetic - 1):
                for _ in range(self._chain_settings.between):
                    fit.model.sweep(state, rng, adapt=False, impute=False)
                yield fit.model.snapshot(state)

    def _evidence(
        self, fit: MaskedFit, snapshot: Snapshot, rng: np.random.Generator
    ) -> dict[str, Evidence]:
        columns = {column.name: column for column in fit.bound.keys}
        groups = None if self.subgroups is None else self.subgroups.by_record
        return draw_evidence(self.masks, columns, snapshot.values, groups, rng)


def masked_utility(
    release: MaskedRelease, df: pd.DataFrame, formula: str, **options: Any
) -> ModelUtility:
    """`pyhybrid.measures.model_utility`, whose options it takes, of the confidential data and a
    release, by its rule. Where keys have missing values the model of the data uses the records
    without."""
    if release.rule == NESTED:
        options |= {"n_imputations": release.n_imputations}
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
