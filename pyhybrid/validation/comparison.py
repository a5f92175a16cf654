"""The result of a comparison: its rows, what made them, a table and a page for a supplement."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.releases.words import Words
from pyhybrid.reports.page import Cell, Marked, Section, Table, facts_of_table, render_page
from pyhybrid.running.files import check_new_file, write_files

EXACT = 1e-12
"""Relative tolerance of the same formula on the same numbers."""
ARITHMETIC = 1e-10
"""Relative tolerance of the same quantity through a log-likelihood computed twice."""
MONTE_CARLO = 5.0
"""Tolerance between posterior means, in Monte Carlo standard errors of their difference."""

RELATIVE, ERRORS = "relative", "standard error"
UNITS = {RELATIVE: "relative difference", ERRORS: "difference in Monte Carlo standard errors"}
"""The units of differences in words."""
_FLOOR = 1e-3  # numbers below it are results of differences from 1: their error is absolute
_WORDS = Words("pyhybrid.validation")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A quantity in both languages. Confidential if it was computed from a user's own table.

    The values are those of the two `sides`, Python and R unless two engines or texts were held
    against each other: of several numbers the pair that is furthest apart, and if all are the same
    the largest. The difference is the largest over all `numbers` pairs, infinite if shapes differ:
    relative to the larger of two (at least 0.001), or in Monte Carlo standard errors.
    """

    part: str
    quantity: str
    python: float
    r: float
    difference: float
    tolerance: float
    unit: str = RELATIVE
    numbers: int = 1
    sides: tuple[str, str] = ("Python", "R")

    @property
    def agrees(self) -> bool:
        """True if the difference is within the tolerance; a NaN is not."""
        return bool(self.difference <= self.tolerance)


def compare(
    part: str,
    quantity: str,
    python: Any,
    r: Any,
    *,
    tolerance: float = EXACT,
    to_largest: bool = False,
    sides: tuple[str, str] = ("Python", "R"),
) -> Row:
    """Compare two values of one quantity, numbers or arrays; `to_largest`: relative to the largest
    number of all, for results of sums in which digits cancel."""
    left, right = _array(python), _array(r)
    numbers = max(left.size, right.size)
    if left.shape == right.shape and numbers:
        left, right = left.ravel(), right.ravel()
        apart = _differences(left, right, to_largest)
    else:
        quantity = f"{quantity}: shapes {left.shape} and {right.shape}"
        left = right = np.array([np.nan])
        apart = np.array([np.inf])
    size = np.where(np.isfinite(left), np.abs(left), -1.0)
    furthest = int(np.argmax(apart)) if apart.max() > 0 else int(np.argmax(size))
    return Row(
        part=part, quantity=quantity, python=float(left[furthest]), r=float(right[furthest]),
        difference=float(apart.max()), tolerance=tolerance, numbers=numbers, sides=sides,
    )  # fmt: skip


def in_errors(
    part: str, quantity: str, python: Any, r: Any, difference: Any, sides: tuple[str, str]
) -> Row:
    """Two estimates whose `difference` is in Monte Carlo standard errors."""
    return Row(
        part=part, quantity=quantity, python=float(python), r=float(r),
        difference=float(difference), tolerance=MONTE_CARLO, unit=ERRORS, sides=sides,
    )  # fmt: skip


def _differences(left: FloatArray, right: FloatArray, to_largest: bool) -> FloatArray:
    """Relative differences, 0 for equal infinities and two NaN, infinite for unlike ones."""
    size = np.maximum(np.maximum(np.abs(left), np.abs(right)), _FLOOR)
    if to_largest:
        size = np.full_like(size, size.max())
    with np.errstate(invalid="ignore"):
        apart = np.abs(left - right) / size
    apart = np.where(np.isnan(apart), np.inf, apart)
    return np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, apart)


def _array(value: Any) -> FloatArray:
    """A value without axes of length 1: R has no scalars, and Python has no columns."""
    return np.atleast_1d(np.squeeze(np.asarray(value, dtype=np.float64)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Validation:
    """Python held against R: a row per quantity, and what is needed to repeat it: versions, SHA-256
    of Stan programs, settings, the seed of all random numbers. Confidential if a table of the
    user's was compared (`own_data`). `left_out` says what was not compared, and why; `notes` is
    what engines had to say."""

    rows: tuple[Row, ...]
    versions: Mapping[str, str]
    programs: Mapping[str, str]
    settings: Mapping[str, str]
    seed: int
    own_data: bool = False
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
        verdicts = []
        for sides in dict.fromkeys(row.sides for row in self.rows):
            agree = [row.agrees for row in self.rows if row.sides == sides]
            names, wrong = " and ".join(sides), agree.count(False)
            said = f"disagree on {wrong} of" if wrong else "agree on all"
            verdicts.append(f"{names} {said} {len(agree)} quantities")
        return ", ".join(verdicts)

    @property
    def table(self) -> pd.DataFrame:
        """The rows as a table."""
        rows = [{**vars(row), "agrees": row.agrees} for row in self.rows]
        table: pd.DataFrame = pd.DataFrame(rows).drop(columns="sides")
        return table

    def report(self) -> str:
        """The comparison as one HTML file without scripts or references."""
        lacking = ", ".join(cause.partition(":")[0] for cause in self.left_out)
        read = [[text] for text in _WORDS.rendered("verdict", lacking=lacking)]
        wrong = [f"Disagrees: {row.quantity}" for row in self.disagreements]
        sections = [
            Section(heading="Verdict", paragraphs=[["", f"{self.verdict}."], *read], bullets=wrong)
        ]
        parts = dict.fromkeys(row.part for row in self.rows)
        first = {part.split(":")[0]: part for part in reversed(parts)}  # where a kind is explained
        for part in parts:
            kind, rows = part.split(":")[0], [row for row in self.rows if row.part == part]
            text = [_WORDS.rendered(kind)] if first[kind] == part else []
            heading = part[0].upper() + part[1:]
            sections.append(Section(heading=heading, paragraphs=text, tables=[_table(rows)]))
        said, notes = self.settings, "; ".join(self.notes) or "none"
        programs = {f"sha256 of {name}": digest for name, digest in self.programs.items()}
        facts = {**self.versions, "seed": str(self.seed), **said, **programs, "notes": notes}
        made_by = Table(
            caption=_WORDS.sentence("made by"), header=["What", "Value"], rows=[*facts.items()]
        )
        sections += [
            Section(heading="Left out", bullets=[*self.left_out] or ["Nothing."]),
            Section(heading="Made by", tables=[made_by]),
        ]
        size = int(said["records"]), int(said.get("columns", 0))
        return render_page(
            "Python against R: validation of pyhybrid", sections, confidential=self.own_data,
            advice="a comparison on generated data can be published",
            facts=[
                *facts_of_table(said["table"], *size),
                *(said[name] for name in ("formula", "model", "engines") if name in said),
            ],
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the report, whole or not at all, or with a path that ends in .csv the rows alone;
        only its owner can read one on their own table. InvalidInput if the file exists and is not
        to be overwritten, or is a folder; SaveFailed on a disk error."""
        check_new_file(path, overwrite=overwrite, what="report")
        rows_alone = Path(path).suffix.lower() == ".csv"
        text = self.table.to_csv(index=False) if rows_alone else self.report()
        write_files({Path(path): text}, private=self.own_data)


def _table(rows: list[Row]) -> Table:
    unit = UNITS[rows[0].unit]
    cells: list[list[Cell]] = [
        [
            row.quantity, Marked(text="", word="agrees" if row.agrees else "DISAGREES"),
            f"{row.python:.6g}", f"{row.r:.6g}", f"{row.difference:.2g}", f"{row.tolerance:.2g}",
            f"{row.numbers:,}",
        ]
        for row in rows
    ]  # fmt: skip
    header = ["Quantity", "Verdict", *rows[0].sides, "Difference", "Tolerance", "Pairs"]
    return Table(caption=f"{unit[0].upper()}{unit[1:]}.", header=header, rows=cells, numbers=True)
