"""A masked release: synthetic sets, how to combine them, and what is NOT promised."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.engines import Diagnostics
from pyhybrid.errors import InvalidInput
from pyhybrid.randomness import new_identifier

__all__ = ["NESTED", "PARTIAL", "MaskedConfidential", "MaskedRelease", "RiskStatement"]

PARTIAL, NESTED = "partially_synthetic", "nested"
_RULES = {
    PARTIAL: "Reiter (2003), for partially synthetic data: `combine_partially_synthetic`",
    NESTED: "Reiter (2004), for imputations that are synthesised: `combine_nested`",
}


@dataclass(frozen=True, kw_only=True)
class RiskStatement:
    """What stands where other releases have an epsilon. May be published.

    Attributes
    ----------
    method : str
        How the keys were synthesised.
    keys : tuple of str
        Columns that were replaced.
    masks : mapping of str to str
        Mask of each key in words.
    n_records, n_sets, n_imputations : int
        n; all sets; imputations they belong to (1 if no key had missing values).
    rule : str
        How to combine estimates of the sets.
    differentially_private : bool
        False, always.
    """

    method: str
    keys: tuple[str, ...]
    masks: Mapping[str, str]
    n_records: int
    n_sets: int
    n_imputations: int
    rule: str
    differentially_private: bool = field(default=False, init=False)

    def __repr__(self) -> str:
        return f"<RiskStatement: NOT differentially private, {self.method}>"

    @property
    def text(self) -> str:
        """The statement in plain words (Markdown)."""
        masks = "\n".join(f"- {name}: {mask}." for name, mask in self.masks.items())
        sets = f"{self.n_sets} synthetic data set(s)"
        if self.rule == NESTED:
            each = self.n_sets // self.n_imputations
            sets += f", {each} of each of {self.n_imputations} imputations of missing keys"
        names = " ".join(", ".join(self.keys).split())
        return f"""# Risk statement

**NOT differentially private.** There is no epsilon. This release does not bound what anybody can
learn about a record, whatever they know beside it; it makes it uncertain which record is whose.

{sets} of {self.n_records} records. The column(s) {names} were replaced; **all other columns are the
respondents' own values.** Method: {self.method}.

## What was done

{masks}

## Not covered

- Whoever knows values of the columns that were not replaced can recognise a record by them.
- Several sets together tell more than one: the average of a key over the sets is nearer to its true
  value than each of them.
- Values of the other columns stay with their record: who is found is found with all of them.
- Choices of keys, masks and models made by looking at the data.
- Whoever knows the seed can recompute the release from guesses of the data: it must stay secret.

## How to analyse it

Fit the same model to each set and combine by the rule of {_RULES[self.rule]}. Do not stack the
sets, and do not analyse one of them alone for its standard errors.
"""


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
        restored = [table.copy().assign(**{k: s[k] for k in keys}) for s in self.synthetic]
        return replace(self, synthetic=restored)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        file_format: str = "csv",
        attachments: Mapping[str, str | bytes] | None = None,
    ) -> None:
        """Write ``public/`` to give away and ``confidential/`` to keep; there whole or not at all.

        Parameters
        ----------
        folder : path
            New or empty, unless `overwrite`.
        overwrite : bool, default False
        file_format : {"csv", "parquet"}
        attachments : mapping of str to str or bytes, optional
            Further files for ``confidential/``, by file name.

        Raises
        ------
        InvalidInput
            If the folder is not empty, or the format is unknown.
        SaveFailed
            On a disk error; nothing is left behind.
        """
        from pyhybrid.masking.files import save_masked

        save_masked(
            self, folder, overwrite=overwrite, file_format=file_format,
            attachments=attachments or {},
        )  # fmt: skip

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> MaskedRelease:
        """Read a release that `save` wrote.

        Raises
        ------
        InvalidInput
            If the folder is no masked release, is incomplete, or was written by a later version.
        """
        from pyhybrid.masking.files import load_masked

        return load_masked(folder)
