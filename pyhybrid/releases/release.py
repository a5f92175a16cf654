"""A release: synthetic data with their charge, and the private record of how they were made."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

import pyhybrid
from pyhybrid.core.checks import check_choice, check_flag, check_output_folder, number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import html_rows
from pyhybrid.core.randomness import new_identifier
from pyhybrid.fitting.replicates import in_one_dtype, joined
from pyhybrid.privacy.conversions import STRICT
from pyhybrid.releases.column_decisions import Decisions, check_decided, decided_tables
from pyhybrid.releases.folder import (
    FORMATS,
    escaped,
    published,
    read_records,
    read_run,
    read_tables,
    with_drawn_levels,
    write_beside,
    write_tables,
)
from pyhybrid.releases.ledger import Ledger, LedgerEntry
from pyhybrid.releases.record import Origin, ReleaseRecord
from pyhybrid.releases.statement import privacy_statement
from pyhybrid.running.files import folder_aside, whole_only


@dataclass(frozen=True, kw_only=True, eq=False)
class Release(ReleaseRecord):
    """Synthetic data sets and everything that belongs to them. Posterior draws of the released fit
    for ArviZ are ``release.fit.draws.to_inference_data()``: confidential as a whole, as is what
    `pyhybrid.reports.plot_release` draws of it.

    Attributes
    ----------
    synthetic : list of DataFrame
        m tables with the columns, order, index, dtypes and category levels of the data.
    identifier : str
        Distinguishes this release from every other, also from one with the same values.
    parts : tuple of ReleaseRecord
        What each step of a sequential synthesis did, in their order, with its own charge, weights
        and bounds, and without tables. Empty otherwise.
    origin : Origin or None
        The data, for the owner's report; None of a release that was loaded.

    The others are those of `pyhybrid.releases.record.ReleaseRecord`.
    """

    synthetic: list[pd.DataFrame]
    identifier: str = field(default_factory=new_identifier)
    parts: tuple[ReleaseRecord, ...] = field(default=(), repr=False)
    origin: Origin | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        c = self.charge
        return (
            f"<Release of {number_of(c.n_synthetic, 'synthetic set')} of "
            f"{len(self.synthetic[0])} records by {c.mechanism}: {c.in_short}>"
        )

    def _repr_html_(self) -> str:
        c = self.charge
        rows = {
            "synthesized": ", ".join(self.synthesized),
            "synthetic sets": f"{c.n_synthetic} of {len(self.synthetic[0]):,} records, from "
            f"{c.n_draws_released} draw{'s' * (c.n_draws_released > 1)}",
            "privacy loss": c.in_short,
        }
        return html_rows(f"Release by {c.mechanism}", rows)

    @property
    def statement(self) -> str:
        """The privacy statement in plain words (Markdown), fit to be published."""
        return privacy_statement(self, n_records=len(self.synthetic[0]), parts=self.parts)

    @staticmethod
    def of(
        record: ReleaseRecord,
        tables: list[pd.DataFrame],
        *,
        parts: Sequence[ReleaseRecord] = (),
        identifier: str | None = None,
        origin: Origin | None = None,
    ) -> Release:
        """The release of `tables` with its record; for mechanisms."""
        return Release(
            **{f.name: getattr(record, f.name) for f in fields(ReleaseRecord)},
            synthetic=in_one_dtype(tables, record.synthesized),
            identifier=new_identifier() if identifier is None else identifier,
            parts=tuple(parts),
            origin=origin,
        )

    @property
    def entropy(self) -> int:
        """Root of its random numbers. Confidential."""
        return self.confidential.entropy

    def with_unsynthesized(self, table: pd.DataFrame) -> Release:
        """The same release with every column that was not synthesized taken from `table`.

        For files whose text is to come back letter by letter ("007", "1.50", "NA"). Columns may be
        left out of `table`; none may be added, and the synthesized ones stay as they are.
        """
        if not table.index.equals(self.synthetic[0].index):
            raise InvalidInput("table must have the rows of the synthetic data, in their order")
        added = [name for name in table.columns if name not in self.synthetic[0].columns]
        if added:  # such as one that was dropped
            raise InvalidInput(
                f"table must have no columns but those of the release: {added[0]!r} is not in it"
            )
        synthesized = list(self.synthesized)
        restored = [joined(table, synthetic[synthesized]) for synthetic in self.synthetic]
        return replace(self, synthetic=restored)

    def with_facts(self, **facts: Any) -> Release:
        """The same release, whose charge states more."""
        charge = replace(self.charge, facts={**self.charge.facts, **facts})
        return replace(self, charge=charge)

    def with_decisions(self, decisions: Decisions) -> Release:
        """The release with columns left out, or replaced by numbers, as `decisions` say.

        Raises
        ------
        InvalidInput
            For a column that needs a decision and has none, or a name that is no column's.
        """
        table, before = self.synthetic[0], self.decisions
        labels = [str(name or "index") for name in table.index.names]
        names = [*map(str, table.columns), *labels, *before.drop]
        whole = before.with_these(decisions)
        check_decided(self.exposed, whole, names, self.synthesized)
        hidden = {*whole.drop, *whole.ids} & {*self.predictors}
        if hidden and any(step.estimates is not None for step in self.parts or (self,)):
            raise InvalidInput(
                f"{min(hidden)!r} must be published as it is: clipped scores take predictors and "
                "survey weights as public; leave it out of the formula"
            )
        if whole == before:
            return self
        new = replace(whole, ids=tuple(name for name in whole.ids if name not in before.ids))
        tables = decided_tables(self.synthetic, new, self.confidential.entropy)
        return replace(self, synthetic=tables, decisions=whole)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        file_format: str = "csv",
        report: bool = True,
        ledger: Ledger | None = None,
        drop: str | Sequence[str] = (),
        keep: str | Sequence[str] = (),
        ids: str | Sequence[str] = (),
        excel_safe: bool = False,
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
        report : bool, default True
            Write the owner's report as well, ``confidential/report.html``; if that fails, a warning
            says so. A release that was loaded no longer has the data, and gets none.
        ledger : Ledger, optional
            Takes the charge before anything is written; the entry's number is kept in
            ``confidential/run.json``. Saving the same release again costs nothing more.
        drop, keep, ids : str or sequence of str
            Columns that were not synthesized: to leave out, to publish as they are although they
            look like names, identifiers, free text or a function of a synthesized column, and to
            replace by numbers; row labels by the name of the index, or "index".
        excel_safe : bool, default False
            Write an apostrophe before texts that a spreadsheet would take for formulas, those that
            begin with = + - or @ and are no numbers.

        Raises
        ------
        InvalidInput
            If the folder is not empty, the format is unknown, or a column needs a decision (named
            with the reason); see also `Ledger.add`.
        BudgetExceeded
            If the charge is more than what is left in the ledger; nothing is written.
        SaveFailed
            On a disk error; nothing is left behind.
        """
        check_choice(file_format, "file_format", FORMATS)
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InvalidInput(f"ledger must be a Ledger: found {type(ledger).__name__}")
        check_output_folder(folder, overwrite=overwrite)
        check_flag(report, "report")
        check_flag(excel_safe, "excel_safe")
        decided = self.with_decisions(Decisions.of(drop, keep, ids))
        pages = report_pages(decided, ledger is not None) if report else {}
        # Before the folder: nothing is written past the budget, and no data are without an entry.
        entry = None if ledger is None else ledger.add(decided)
        notes, statement, names = decided.notes(entry), decided.statement, decided.synthesized
        tables = [*map(escaped, decided.synthetic)] if excel_safe else decided.synthetic
        with folder_aside(folder, overwrite=overwrite, private=False) as aside:
            if decided.charge.kind != STRICT:  # whose levels are declared
                tables = with_drawn_levels(tables, names)
            bare = [published(table, names) for table in tables]
            (aside / "public").mkdir(mode=0o755)
            write_tables(aside / "public", bare, file_format, names, excel_safe=excel_safe)
            write_beside(
                aside, decided, statement=statement, notes=notes, attachments=pages,
                parts=decided.parts,
            )  # fmt: skip

    def notes(self, entry: LedgerEntry | None) -> dict[str, Any]:
        """What the record of the run says of the release and its `entry` in a ledger."""
        number = None if entry is None else {"entry": entry.number}
        return {"identifier": self.identifier, "ledger": number}

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Release:
        """Read a release that `save` wrote; `fit` is None.

        Raises
        ------
        InvalidInput
            If the folder is no release, is incomplete or changed, or was written by a later
            version.
        """
        root = Path(folder)
        with whole_only(root, "release"):
            run = read_run(root)
            tables = read_tables(root / "public", run["charge"]["n_synthetic"])
            record, parts = read_records(root, run, tables[0].index)
        return Release.of(record, tables, parts=parts, identifier=str(run["identifier"]))


def report_pages(release: Release, in_ledger: bool) -> dict[str, str]:
    """The owner's report; no release is lost to it."""
    try:
        return dict(pyhybrid.reports.release_pages(release, in_ledger=in_ledger))
    except Exception as error:
        warnings.warn(
            f"the release is saved without its report, which failed ({type(error).__name__}): "
            "please report this, without data",
            RuntimeWarning,
            stacklevel=3,
        )
        return {}
