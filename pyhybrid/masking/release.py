"""A masked release: synthetic sets and how to combine them; see `pyhybrid.masking.statement`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import pyhybrid
from pyhybrid.core.checks import check_choice, check_flag, check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams, new_identifier
from pyhybrid.engines import Diagnostics
from pyhybrid.masking.folder import MaskedFolder, load_masked, save_masked
from pyhybrid.masking.statement import RiskStatement, stated_shares, unchanged_shares
from pyhybrid.models.formula.values import with_columns
from pyhybrid.releases.folder import FORMATS
from pyhybrid.running.files import whole_only

__all__ = ["MaskedConfidential", "MaskedRelease", "masked_release"]


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedConfidential:
    """What must stay with the data owner.

    Attributes
    ----------
    labels : Index, length n
        Row labels of the records.
    subgroups : ndarray of str, shape (n,), or None
        Risk subgroup of each record, if masks differ by it.
    entropy : int
        The seed.
    """

    labels: pd.Index
    subgroups: npt.NDArray[np.str_] | None
    entropy: int

    def __repr__(self) -> str:
        return f"<Confidential record of {len(self.labels)} records>"


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedRelease:
    """Data sets with synthetic keys. NOT differentially private.

    Attributes
    ----------
    synthetic : list of DataFrame
        m tables, or m x r imputation by imputation, with the columns, order, index, dtypes and
        category levels of the data; every column but the keys is unchanged, its missing values
        too; keys are complete.
    n_imputations, n_per_imputation : int
        m and r of the nested rule; 1 and m otherwise.
    rule : {"partially_synthetic", "nested"}
        Combining rule for estimates of the sets [R03], [R04]; for `pyhybrid.pool`.
    statement : RiskStatement
    diagnostics : Diagnostics or None
        Convergence of the association model; None for comparators, which have no chains.
    settings : mapping
        Public settings.
    seeded : bool
        True if the user gave a seed.
    confidential : MaskedConfidential
        Seed and subgroups. Never publish.
    identifier : str
        Tells this release from every other one.
    data : DataFrame or None
        The confidential records, for the owner's report; None of a release that was loaded.
    """

    synthetic: list[pd.DataFrame]
    n_imputations: int
    n_per_imputation: int
    rule: str
    statement: RiskStatement
    diagnostics: Diagnostics | None
    settings: Mapping[str, Any]
    seeded: bool
    confidential: MaskedConfidential
    identifier: str = field(default_factory=new_identifier)
    data: pd.DataFrame | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # Notes on the confidential table (attrs) would be published with the files of some formats.
        bare = [table.copy(deep=False) if table.attrs else table for table in self.synthetic]
        for table in bare:
            table.attrs = {}
        object.__setattr__(self, "synthetic", bare)

    def __repr__(self) -> str:
        return (
            f"<MaskedRelease of {len(self.synthetic)} set(s) of {len(self.synthetic[0])} records, "
            f"keys {', '.join(self.keys)}: NOT differentially private, no epsilon>"
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that were replaced."""
        return self.statement.keys

    @property
    def nested(self) -> list[list[pd.DataFrame]]:
        """The sets by imputation: m lists of r tables."""
        r = self.n_per_imputation
        return [self.synthetic[k : k + r] for k in range(0, len(self.synthetic), r)]

    def with_unsynthesized(self, table: pd.DataFrame) -> MaskedRelease:
        """The same release with every column but the keys taken from `table`, as it stands there.

        For files whose text is to come back letter by letter ("007", "1.50", "NA").
        """
        if not table.index.equals(self.synthetic[0].index):
            raise InvalidInput("table must have the rows of the synthetic data, in their order")
        keys = list(self.keys)
        restored = [with_columns(table, {k: s[k] for k in keys}) for s in self.synthetic]
        return replace(self, synthetic=restored)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        file_format: str = "csv",
        report: bool = True,
        attachments: Mapping[str, str | bytes] | None = None,
    ) -> None:
        """Write ``public/`` to give away and ``confidential/`` to keep; there whole or not at all.

        Parameters
        ----------
        folder : path
            New or empty, unless `overwrite`.
        overwrite : bool, default False
        file_format : {"csv", "parquet"}
        report : bool, default True
            Write the owner's report as well, ``confidential/report.html``. A release that was
            loaded no longer has the data, and gets none.
        attachments : mapping of str to str or bytes, optional
            Further files for ``confidential/``, by file name.

        Raises
        ------
        InvalidInput
            If the folder is not empty, or the format is unknown.
        SaveFailed
            On a disk error; nothing is left behind.
        """
        check_choice(file_format, "file_format", FORMATS)
        check_output_folder(folder, overwrite=overwrite)
        check_flag(report, "report")
        pages = pyhybrid.masked_pages(self) if report else {}
        save_masked(
            self._folder(), folder, overwrite=overwrite, file_format=file_format,
            attachments={**pages, **(attachments or {})},
        )  # fmt: skip

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> MaskedRelease:
        """Read a release that `save` wrote.

        Raises
        ------
        InvalidInput
            If the folder is no masked release, is incomplete, or was written by a later version.
        """
        with whole_only(folder, "masked release"):
            return _of_folder(load_masked(folder))

    def _folder(self) -> MaskedFolder:
        return MaskedFolder(
            tables=self.synthetic,
            statement=asdict(self.statement),
            statement_text=self.statement.text,
            settings=self.settings,
            diagnostics=self.diagnostics,
            seeded=self.seeded,
            identifier=self.identifier,
            labels=self.confidential.labels,
            subgroups=self.confidential.subgroups,
            entropy=self.confidential.entropy,
        )


def _of_folder(found: MaskedFolder) -> MaskedRelease:
    statement = RiskStatement(**found.statement)
    return MaskedRelease(
        synthetic=found.tables,
        n_imputations=statement.n_imputations,
        n_per_imputation=statement.n_sets // statement.n_imputations,
        rule=statement.rule,
        statement=statement,
        diagnostics=found.diagnostics,
        settings=found.settings,
        seeded=found.seeded,
        identifier=found.identifier,
        confidential=MaskedConfidential(
            labels=found.labels, subgroups=found.subgroups, entropy=found.entropy
        ),
    )


def masked_release(
    synthetic: Sequence[pd.DataFrame],
    df: pd.DataFrame,
    *,
    method: str,
    masks: Mapping[str, str],
    rule: str,
    n_imputations: int,
    diagnostics: Diagnostics | None,
    settings: Mapping[str, Any],
    streams: Streams,
    subgroups: npt.NDArray[np.str_] | None = None,
) -> MaskedRelease:
    """The release of these sets of `df` with its statement, for every synthesizer of keys.

    Parameters
    ----------
    synthetic : sequence of DataFrame
        Imputation by imputation.
    df : DataFrame
        The confidential data.
    method : str
    masks : mapping of str to str
        Mask of each key in words; its names are the keys.
    rule : {"partially_synthetic", "nested"}
    n_imputations : int
    diagnostics : Diagnostics or None
    settings : mapping
        Public.
    streams : Streams
    subgroups : ndarray of str, shape (n,), or None
    """
    keys = tuple(masks)
    statement = RiskStatement(
        method=method,
        keys=keys,
        masks=dict(masks),
        n_records=len(df),
        n_sets=len(synthetic),
        n_imputations=n_imputations,
        rule=rule,
        unchanged=stated_shares(unchanged_shares(df, synthetic, keys), len(df)),
    )
    return MaskedRelease(
        synthetic=list(synthetic),
        n_imputations=n_imputations,
        n_per_imputation=len(synthetic) // n_imputations,
        rule=rule,
        statement=statement,
        diagnostics=diagnostics,
        settings=settings,
        seeded=streams.seeded,
        confidential=MaskedConfidential(
            labels=df.index, subgroups=subgroups, entropy=streams.entropy
        ),
        data=df,
    )
