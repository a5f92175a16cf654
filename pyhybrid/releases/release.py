"""A release: synthetic data with their charge, and the private record of how they were made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.checks import FloatArray
from pyhybrid.engines import Diagnostics, Provenance
from pyhybrid.errors import InvalidInput
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import PosteriorFit
from pyhybrid.primitives.library import NoiseProvenance
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.epsilon import epsilon_text
from pyhybrid.randomness import new_identifier
from pyhybrid.releases.statement import privacy_statement

if TYPE_CHECKING:
    from pyhybrid.releases.ledger import Ledger

__all__ = ["Confidential", "Release"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Confidential:
    """What must stay with the data owner: functions of the data, and the seed.

    Attributes
    ----------
    labels : Index, length n
        Row labels of the records.
    alpha : ndarray, shape (n,)
        Record weights in [0, 1]; of shape (0,) for a mechanism without weights.
    lipschitz : ndarray, shape (n,)
        By-record Lipschitz bounds of the released fit, nats; of shape (0,) without a fit.
    lipschitz_bound : float
        Overall bound, nats.
    entropy : int
        Root of all random streams: the seed.
    censored : ndarray of bool, shape (n,), or None
        Records whose weighted log-likelihood met the cap in some draw, if there is a cap.
    """

    labels: pd.Index
    alpha: FloatArray
    lipschitz: FloatArray
    lipschitz_bound: float
    entropy: int
    censored: npt.NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        return f"<Confidential record of {len(self.labels)} records>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """Synthetic data sets and everything that belongs to them.

    Attributes
    ----------
    synthetic : list of DataFrame
        m tables with the columns, order, index, dtypes and category levels of the data.
    charge : PrivacyCharge
        What the release costs, all sets together.
    diagnostics : Diagnostics or None
        Convergence of the released fit; None for a mechanism without a sampler.
    settings : mapping
        Public settings of mechanism and model.
    synthesized, predictors : tuple of str
        Columns that were replaced; columns the model read and left as they are.
    provenance : Provenance or NoiseProvenance
        Engine, version, program hash and (confidential) engine seed; or what made the noise.
    seeded : bool
        True if the user gave a seed.
    confidential : Confidential
        Weights, bounds, seed. Never publish.
    identifier : str
        Tells this release from every other one, also from one that came out the same.
    fit : PosteriorFit or None
        The released fit; not saved.
    reweighted : Reweighted or None
        The fit before re-weighting and all steps, if there was one; only the steps are saved.
    parts : tuple of Release
        The releases of single columns that a sequential synthesis is made of, in their order;
        each has its own charge, weights and bounds. Empty otherwise.
    """

    synthetic: list[pd.DataFrame]
    charge: PrivacyCharge
    diagnostics: Diagnostics | None
    settings: Mapping[str, Any]
    synthesized: tuple[str, ...]
    predictors: tuple[str, ...]
    provenance: Provenance | NoiseProvenance
    seeded: bool
    confidential: Confidential
    identifier: str = field(default_factory=new_identifier)
    fit: PosteriorFit | None = field(default=None, repr=False)
    reweighted: Reweighted | None = field(default=None, repr=False)
    parts: tuple[Release, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        c = self.charge
        return (
            f"<Release of {c.n_synthetic} synthetic set(s) of {len(self.synthetic[0])} records by "
            f"{c.mechanism}: epsilon = {epsilon_text(c.epsilon)} "
            f"({c.kind}, {c.relation} one record)>"
        )

    @property
    def statement(self) -> str:
        """The privacy statement in plain words (Markdown), fit to be published."""
        return privacy_statement(self)

    def with_unsynthesized(self, table: pd.DataFrame) -> Release:
        """The same release with every column that was not synthesised taken from `table`.

        For files whose text is to come back letter by letter ("007", "1.50", "NA").
        """
        if not table.index.equals(self.synthetic[0].index):
            raise InvalidInput("table must have the rows of the synthetic data, in their order")
        restored = []
        for synthetic in self.synthetic:
            whole = table.copy()
            whole.attrs = {}  # notes on the confidential table would be published with it
            for column in self.synthesized:
                whole[column] = synthetic[column]
            restored.append(whole)
        parts = tuple(replace(part, synthetic=restored) for part in self.parts)
        return replace(self, synthetic=restored, parts=parts)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        file_format: str = "csv",
        attachments: Mapping[str, str] | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        """Write the release: ``public/`` to give away and ``confidential/`` to keep.

        The folder is written aside and renamed, so that it is there whole or not at all;
        ``confidential/`` can be read by its owner only.

        Parameters
        ----------
        folder : path
            New or empty, unless `overwrite`.
        overwrite : bool, default False
            Replace what is in `folder`.
        file_format : {"csv", "parquet"}
            Of the synthetic tables.
        attachments : mapping of str to str, optional
            Further text files for ``confidential/``, by file name.
        ledger : Ledger, optional
            Takes the charge before anything is written; the entry's number and hash are kept in
            ``confidential/run.json``. Saving the same release again costs nothing more.

        Raises
        ------
        InvalidInput
            If the folder is not empty, or the format is unknown; see also `Ledger.add`.
        BudgetExceeded
            If the charge is more than what is left in the ledger; nothing is written.
        SaveFailed
            On a disk error; nothing is left behind.
        """
        from pyhybrid.releases.folder import save_release

        save_release(
            self,
            folder,
            overwrite=overwrite,
            file_format=file_format,
            attachments=attachments or {},
            ledger=ledger,
        )

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Release:
        """Read a release that `save` wrote; `fit` is None.

        Raises
        ------
        InvalidInput
            If the folder is no release, is incomplete, or was written by a later version.
        """
        from pyhybrid.releases.folder import load_release

        return load_release(folder)
