"""A masked release: synthetic sets, how to combine them, and what stands in place of an epsilon.

The statement names the keys that were replaced in name only. What share of the records keeps its
own value is for the owner alone (`MaskedRelease.unchanged`).

On disk a masked release is laid out as others are (`pyhybrid.releases.folder`), but for
public/risk_statement.md and public/statement.json in place of statement and charge.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid
from pyhybrid.core.checks import check_choice, check_flag, check_output_folder, number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams, new_identifier
from pyhybrid.engines import Diagnostics
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.fitting.replicates import in_one_dtype
from pyhybrid.measures.models import NESTED
from pyhybrid.models.formula.values import with_columns
from pyhybrid.releases.column_decisions import Decisions, check_decided, decided_tables
from pyhybrid.releases.folder import (
    FORMATS,
    published,
    with_drawn_levels,
    write_json,
    write_private,
    write_tables,
)
from pyhybrid.releases.statement import decided_sentences
from pyhybrid.releases.words import environment, in_one_line
from pyhybrid.running.files import folder_aside

PARTIAL = "partially_synthetic"
_NEARLY_ALL, _FEWEST = 0.95, 40  # records that keep a key left as it was; of how many


@dataclass(frozen=True, kw_only=True)
class RiskStatement:
    """What stands where other releases have an epsilon: how the `keys` were synthesized, their
    masks in words, how to combine estimates of the sets. `left_as_they_were` are the keys that 95 %
    of the records or more keep, of 40 records or more: replaced in name only. May be published."""

    method: str
    keys: tuple[str, ...]
    masks: Mapping[str, str]
    n_records: int
    n_sets: int
    left_as_they_were: tuple[str, ...]
    n_imputations: int = 1  # if no key had missing values
    rule: str = PARTIAL
    differentially_private: bool = field(default=False, init=False)

    def __repr__(self) -> str:
        return f"<RiskStatement: NOT differentially private, {self.method}>"

    @property
    def text(self) -> str:
        """The statement in plain words (Markdown)."""
        template = files("pyhybrid.masking").joinpath("risk_statement.jinja").read_text("utf-8")
        words = environment(autoescape=False, row=lambda names: in_one_line(*names))
        drawn = [key for key in self.keys if key not in self.left_as_they_were]
        return words.from_string(template).render(of=self, nested=self.rule == NESTED, drawn=drawn)


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedRelease:
    """Data sets with synthetic keys. NOT differentially private.

    Attributes
    ----------
    synthetic : list of DataFrame
        m tables, or m x r imputation by imputation, with the columns, order, index, dtypes and
        category levels of the data (in files, of the sets); every column but the keys is unchanged,
        its missing values too; keys are complete.
    statement : RiskStatement
        Its `keys` and `rule` (for `pyhybrid.measures.pool`) are attributes of the release, too. Of
        the nested rule [R04] the r sets of one of its `n_imputations` follow each other.
    diagnostics : Diagnostics or None
        Convergence of the association model; None for comparators, which have no chains.
    settings : mapping
        Public settings.
    streams : Streams
        Of its random numbers. Confidential.
    data : DataFrame
        The confidential records, for the owner's report.
    identifier : str
        Tells this release from every other one.
    """

    synthetic: list[pd.DataFrame]
    statement: RiskStatement
    diagnostics: Diagnostics | None
    settings: Mapping[str, Any]
    streams: Streams
    data: pd.DataFrame
    identifier: str = field(default_factory=new_identifier)

    def __post_init__(self) -> None:
        # Notes on the confidential table (attrs) would be published with the files of some formats.
        bare = [table.copy(deep=False) for table in self.synthetic]
        for table in bare:
            table.attrs = {}
        object.__setattr__(self, "synthetic", bare)

    def __repr__(self) -> str:
        return (
            f"<MaskedRelease of {number_of(len(self.synthetic), 'set')} of "
            f"{len(self.synthetic[0])} records, keys {', '.join(self.keys)}: "
            "NOT differentially private, no epsilon>"
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that were replaced."""
        return self.statement.keys

    @property
    def rule(self) -> str:
        """Combining rule for estimates of the sets: "partially_synthetic" or "nested"."""
        return self.statement.rule

    @property
    def unchanged(self) -> dict[str, float]:
        """By key, the share of present values of the data that the sets keep; confidential."""
        return _unchanged(self.data, self.synthetic, self.keys)

    def with_unsynthesized(self, table: pd.DataFrame) -> MaskedRelease:
        """The release with every column but the keys from `table`, as it stands there."""
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
        drop: str | Collection[str] = (),
        keep: str | Collection[str] = (),
        ids: str | Collection[str] = (),
    ) -> None:
        """Write ``public/`` to give away and ``confidential/`` to keep; there whole or not at all.

        Parameters and errors as of `pyhybrid.Release.save`; `attachments` may be bytes, too.
        Columns that need a decision are those that look like names or identifiers, and those that
        give a key away.
        """
        check_choice(file_format, "file_format", FORMATS)
        check_output_folder(folder, overwrite=overwrite)
        check_flag(report, "report")
        decisions = Decisions.of(drop, keep, ids)
        exposed = exposed_columns(self.data, self.keys)
        check_decided(exposed, decisions, map(str, self.synthetic[0].columns), self.keys)
        pages = pyhybrid.reports.masked_pages(self) if report else {}
        sets = with_drawn_levels(self.synthetic, self.keys)
        sets = decided_tables(sets, decisions, self.streams.entropy)
        decided = (f"- {sentence}" for sentence in decided_sentences(decisions))
        words = "\n".join([self.statement.text, *decided])
        with folder_aside(folder, overwrite=overwrite, private=False) as aside:
            public, confidential = aside / "public", aside / "confidential"
            public.mkdir(mode=0o755)
            bare = [published(table, self.keys) for table in sets]
            write_tables(public, bare, file_format, self.keys)
            (public / "risk_statement.md").write_text(words, encoding="utf-8")
            write_json(public / "statement.json", asdict(self.statement))
            confidential.mkdir(mode=0o700)
            run = {
                "kind": "masked", "pyhybrid": pyhybrid.__version__,
                "identifier": self.identifier, "settings": dict(self.settings),
                "diagnostics": None if self.diagnostics is None else asdict(self.diagnostics),
                "seeded": self.streams.seeded, "seed": str(self.streams.entropy),
            }  # fmt: skip
            write_private(confidential, run, {**pages, **(attachments or {})})


def _unchanged(
    df: pd.DataFrame, synthetic: Sequence[pd.DataFrame], keys: Sequence[str]
) -> dict[str, float]:
    shares = {}
    for key in keys:
        there = df[key].notna().to_numpy()
        true = df[key].array[there]
        shares[key] = float(np.mean([(t[key].array[there] == true).mean() for t in synthetic]))
    return shares


def masked_release(
    synthetic: Sequence[pd.DataFrame],
    df: pd.DataFrame,
    *,
    masks: Mapping[str, str],
    streams: Streams,
    settings: Mapping[str, Any],
    diagnostics: Diagnostics | None = None,
    **said: Any,
) -> MaskedRelease:
    """The release of these sets of `df`, imputation by imputation; `masks` of keys are in words,
    and what else is `said` stands in the statement."""
    keys = tuple(masks)
    shares = _unchanged(df, synthetic, keys) if len(df) >= _FEWEST else {}
    statement = RiskStatement(
        keys=keys,
        masks=dict(masks),
        n_records=len(df),
        n_sets=len(synthetic),
        left_as_they_were=tuple(k for k, share in shares.items() if share >= _NEARLY_ALL),
        **said,
    )
    return MaskedRelease(
        synthetic=in_one_dtype(synthetic, keys),
        statement=statement,
        diagnostics=diagnostics,
        settings=settings,
        streams=streams,
        data=df,
    )
