"""The result of a comparison: its rows, what made them, a table and a report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pyhybrid.running.files import check_new_file, write_files
from pyhybrid.validation.agreement.page import validation_page
from pyhybrid.validation.agreement.rows import Row

__all__ = ["Validation"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Validation:
    """Python held against R. Confidential if a table of the user's was compared.

    Attributes
    ----------
    rows : tuple of Row
        One per quantity.
    versions : mapping of str to str
        Version of everything that took part.
    programs : mapping of str to str
        SHA-256 of the text of each Stan program that ran.
    settings : mapping of str to str
        Model, sampler settings, size of the table.
    seed : int
        All random numbers, those of the generated input included, come from it.
    own_data : bool
        True if a table of the user's was compared.
    left_out : tuple of str
        What was not compared, and why.
    notes : tuple of str
        What the engines had to say.
    """

    rows: tuple[Row, ...]
    versions: Mapping[str, str]
    programs: Mapping[str, str]
    settings: Mapping[str, str]
    seed: int
    own_data: bool
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Validation of {len(self.rows)} quantities: {self.verdict}>"

    @property
    def disagreements(self) -> tuple[Row, ...]:
        """The rows whose difference exceeds its tolerance."""
        return tuple(row for row in self.rows if not row.agrees)

    @property
    def agrees(self) -> bool:
        """True if every quantity agrees."""
        return bool(self.rows) and not self.disagreements

    @property
    def verdict(self) -> str:
        """The verdict in words: of Python and R, then of engines held against each other."""
        return ", ".join(
            _agreement(sides, [row for row in self.rows if row.sides == sides])
            for sides in dict.fromkeys(row.sides for row in self.rows)
        )

    @property
    def table(self) -> pd.DataFrame:
        """The rows as a table."""
        table: pd.DataFrame = pd.DataFrame(
            {
                "part": [row.part for row in self.rows],
                "quantity": [row.quantity for row in self.rows],
                "python": [row.python for row in self.rows],
                "r": [row.r for row in self.rows],
                "difference": [row.difference for row in self.rows],
                "tolerance": [row.tolerance for row in self.rows],
                "unit": [row.unit for row in self.rows],
                "numbers": [row.numbers for row in self.rows],
                "agrees": [row.agrees for row in self.rows],
            }
        )
        return table

    def report(self) -> str:
        """The comparison as one HTML file without scripts or references."""
        programs = {f"sha256 of {name}": digest for name, digest in self.programs.items()}
        return validation_page(
            self.rows,
            verdict=self.verdict,
            left_out=self.left_out,
            made_by={
                **self.versions,
                "seed": str(self.seed),
                **self.settings,
                **programs,
                "notes": "; ".join(self.notes) or "none",
            },
            confidential=self.own_data,
        )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the report, whole or not at all; only its owner can read one on their own table.

        Raises
        ------
        InvalidInput
            If the file exists and `overwrite` is False, or is a folder.
        SaveFailed
            On a disk error; nothing is left behind.
        """
        check_new_file(path, overwrite=overwrite, what="report")
        write_files({Path(path): self.report()}, private=self.own_data)


def _agreement(sides: tuple[str, str], rows: Sequence[Row]) -> str:
    names, wrong = " and ".join(sides), sum(not row.agrees for row in rows)
    if wrong:
        return f"{names} disagree on {wrong} of {len(rows)} quantities"
    return f"{names} agree on all {len(rows)} quantities"
