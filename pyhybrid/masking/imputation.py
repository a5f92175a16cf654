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
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import check_choice, check_count
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.masking.association import AssociationModel, Snapshot
from pyhybrid.masking.chains import Chains, GibbsSettings, run_chains
from pyhybrid.masking.columns import Column
from pyhybrid.masking.copula import CopulaModel
from pyhybrid.masking.evidence import KeyMasks, check_masks, described, draw_evidence
from pyhybrid.masking.keys import BoundKeys, Roles, bind_keys, checked_names
from pyhybrid.masking.release import MaskedRelease, masked_release
from pyhybrid.masking.sequence import SequentialModel
from pyhybrid.masking.statement import NESTED, PARTIAL
from pyhybrid.masking.subgroups import RiskSubgroups
from pyhybrid.masking.tuning import TunedMask, tune_mask
from pyhybrid.running.tasks import Progress

__all__ = ["MaskedFit", "MaskedImputation"]

ASSOCIATIONS: dict[str, Callable[[BoundKeys, np.random.Generator], AssociationModel]] = {
    "sequential": SequentialModel,
    "copula": CopulaModel,
}
_IMPUTATIONS = 5
_COPULA = GibbsSettings(warmup=200, draws=800)


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedFit:
    """An association model fitted to one data set. Any masks can be applied to it. Confidential.

    Attributes
    ----------
    data : DataFrame
    bound : BoundKeys
    model : AssociationModel
    chains : Chains
        `chains.diagnostics`, and draws of the parameters by key in `chains.quantities`.
    left_out : tuple of str
        Columns that were not used as predictors, as no model covers them.
    streams : Streams
    """

    data: pd.DataFrame
    bound: BoundKeys
    model: AssociationModel
    chains: Chains
    left_out: tuple[str, ...]
    streams: Streams

    def __repr__(self) -> str:
        return f"<MaskedFit of {self.bound.n_records} records, confidential>"


@dataclass(frozen=True, kw_only=True)
class MaskedImputation:
    """Synthesis of quasi-identifiers (keys) by masking and multiple imputation [J22].

    Not differentially private: the release has a `RiskStatement`, no epsilon.

    Parameters
    ----------
    keys : sequence of str
        Columns to replace; all others are released as they are.
    masks : mapping of key to mask, default none
        A `GaussianMask`, `MixtureMask` or `MisclassificationMask`; or a mapping of "low", "medium",
        "high" to masks, with `subgroups`. A key without one has its mask off: it is drawn from the
        association model alone. `masks_by_type` gives all keys the published ones.
    association : {"sequential", "copula"}
        A sequence of conditional models by type, or a Gaussian copula.
    n_synthetic : int, default 5
        m, synthetic sets; of each imputation if keys have missing values.
    n_imputations : int, optional
        Imputations of missing keys, from 2; 5 if omitted. Only for keys with missing values.
    predictors : sequence of str, optional
        Columns of the association model beside the keys; all that a model covers if omitted.
        Where they have missing values these are imputed in the same sampler, for its own use: the
        column comes back as it was.
    order : sequence of str, optional
        Of the keys in the sequence. By default nominal, binary, ordered, continuous.
    types : mapping of column to {"continuous", "binary", "ordered", "nominal"}, optional
        Where what follows from the data is not meant; see `pyhybrid.masking.columns`.
    limits : mapping of key to (lower, upper), optional
        Released values of a continuous key are moved into them. Public, not read from the data.
    subgroups : RiskSubgroups, optional
        Of the same records; see `risk_subgroups`.
    settings : GibbsSettings, optional
        Longer chains for a copula, whose latents mix more slowly, if omitted.
    on_not_converged : {"raise", "warn"}

    Raises
    ------
    InvalidInput
        For arguments that are not as stated; on `fit` and `release`, see `bind_keys`.
    """

    keys: Sequence[str]
    masks: KeyMasks = field(default_factory=dict)
    association: str = "sequential"
    n_synthetic: int = 5
    n_imputations: int | None = None
    predictors: Sequence[str] | None = None
    order: Sequence[str] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    subgroups: RiskSubgroups | None = None
    settings: GibbsSettings | None = None
    on_not_converged: str = "raise"

    def __post_init__(self) -> None:
        checked_names(self.keys, "keys")
        if not isinstance(self.masks, Mapping):
            raise InvalidInput(f"masks must be a mapping by key: found {type(self.masks).__name__}")
        for name in ("predictors", "order"):
            given = getattr(self, name)
            if given is not None and len(given):
                checked_names(given, name)
        check_choice(self.association, "association", ASSOCIATIONS)
        check_choice(self.on_not_converged, "on_not_converged", ("raise", "warn"))
        check_count(self.n_synthetic, "n_synthetic")
        if self.n_imputations is not None:
            check_count(self.n_imputations, "n_imputations", at_least=2)

    def release(
        self, df: pd.DataFrame, *, seed: int | None = None, progress: Progress | None = None
    ) -> MaskedRelease:
        """Fit the association model to `df` and release synthetic sets.

        Parameters
        ----------
        df : DataFrame
            The confidential data; not modified.
        seed : int, optional
            For tests and papers; from the operating system if omitted.
        progress : callable, optional
            Called with (what is being done, steps done, steps in all).

        Raises
        ------
        InvalidInput
            See `bind_keys` and `fit`.
        NotConverged
            If the chains did not converge, also when run three times as long.
        """
        return self.release_from(self.fit(df, seed=seed, progress=progress), progress=progress)

    def fit(
        self, df: pd.DataFrame, *, seed: int | None = None, progress: Progress | None = None
    ) -> MaskedFit:
        """Fit the association model; it does not depend on the masks, and can be used for many."""
        source = streams(seed)
        bound, left_out = bind_keys(self._roles(), df)
        self._check(bound, df)
        model = ASSOCIATIONS[self.association](bound, source.generator("masking: start"))
        nests = self._nests(bound)
        chains = run_chains(
            model,
            n_snapshots=self.n_synthetic if nests is None else nests,
            settings=self._settings,
            streams=source,
            on_not_converged=self.on_not_converged,
            progress=progress,
        )
        return MaskedFit(
            data=df, bound=bound, model=model, chains=chains, left_out=left_out, streams=source
        )

    def release_from(self, fit: MaskedFit, *, progress: Progress | None = None) -> MaskedRelease:
        """Release from a fit of the same keys, with this object's masks.

        All releases from one fit share their random numbers, so that masks can be compared: publish
        one of them only. Two together would show what the masks differ by.
        """
        self._check(fit.bound, fit.data)
        nests = self._nests(fit.bound)
        rng = fit.streams.generator("masking: synthesis")
        tables = []
        draws = self._draws(fit, nests, rng)
        total = self.n_synthetic * (nests or 1)
        for place, snapshot in enumerate(draws, start=1):
            tables.append(self._table(fit, snapshot, rng))
            if progress is not None:
                progress("synthetic sets", place, total)
        return masked_release(
            tables,
            fit.data,
            method=f"masking by data augmentation, {self.association} association model",
            masks={key: described(self.masks.get(key)) for key in self.keys},
            rule=PARTIAL if nests is None else NESTED,
            n_imputations=nests or 1,
            diagnostics=fit.chains.diagnostics,
            settings=self._public_settings(fit),
            streams=fit.streams,
            subgroups=None if self.subgroups is None else self.subgroups.by_record,
        )

    def tune(self, df: pd.DataFrame, *, target_risk: float, **options: Any) -> TunedMask:
        """The strength of these masks that meets a target; see `tune_mask` for the options."""
        return tune_mask(self, df, target_risk=target_risk, **options)

    def with_masks(self, masks: KeyMasks) -> MaskedImputation:
        """The same with other masks."""
        return replace(self, masks=masks)

    @property
    def _settings(self) -> GibbsSettings:
        if self.settings is not None:
            return self.settings
        return _COPULA if self.association == "copula" else GibbsSettings()

    def _roles(self) -> Roles:
        return Roles(
            keys=tuple(self.keys),
            predictors=None if self.predictors is None else tuple(self.predictors),
            order=None if self.order is None else tuple(self.order),
            types=self.types,
            limits=self.limits,
        )

    def _check(self, bound: BoundKeys, df: pd.DataFrame) -> None:
        by_name = {column.name: column for column in bound.keys}
        check_masks(self.masks, by_name, subgroups=self.subgroups is not None)
        if set(by_name) != set(self.keys):
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

    def _nests(self, bound: BoundKeys) -> int | None:
        """Imputations, or None if no key has missing values."""
        if not bound.any_key_missing:
            return None
        return self.n_imputations or _IMPUTATIONS

    def _draws(self, fit: MaskedFit, nests: int | None, rng: np.random.Generator) -> Any:
        """One posterior draw for each set; within an imputation the imputed values stay."""
        needed = self.n_synthetic if nests is None else nests
        if len(fit.chains.snapshots) < needed:
            raise InvalidInput(
                f"the fit must hold {needed} draws: it holds {len(fit.chains.snapshots)}; fit "
                "again with this n_synthetic"
            )
        for snapshot in fit.chains.snapshots[:needed]:
            yield snapshot
            if nests is None:
                continue
            state = fit.model.resume(snapshot, rng)
            for _ in range(self.n_synthetic - 1):
                for _ in range(self._settings.between):
                    fit.model.sweep(state, rng, adapt=False, impute=False)
                yield fit.model.snapshot(state)

    def _table(self, fit: MaskedFit, snapshot: Snapshot, rng: np.random.Generator) -> pd.DataFrame:
        columns: dict[str, Column] = {column.name: column for column in fit.bound.keys}
        groups: npt.NDArray[Any] | None = (
            None if self.subgroups is None else self.subgroups.by_record
        )
        evidence = draw_evidence(self.masks, columns, snapshot.values, groups, rng)
        drawn = fit.model.synthesize(snapshot, evidence, rng, sweeps=self._settings.sweeps)
        table: pd.DataFrame = fit.data.copy()
        table.attrs = {}
        for name, column in columns.items():
            table[name] = column.decoded(drawn[name], table.index)
        return table

    def _public_settings(self, fit: MaskedFit) -> dict[str, Any]:
        s = self._settings
        return {
            "association": self.association,
            "keys": {column.name: column.kind for column in fit.bound.keys},
            "predictors": [c.name for c in (*fit.bound.complete, *fit.bound.incomplete)],
            "not_predictors": list(fit.left_out),
            "chains": s.chains,
            "warmup": s.warmup,
            "draws": s.draws,
            "sweeps": s.sweeps,
        }
