"""The result of a comparison: its rows, what made them, a table and a page for a supplement."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.reports import drawing as draw
from pyhybrid.reports.page import (
    Marked,
    Section,
    Table,
    facts_of_table,
    render_page,
    section,
)
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
_COLUMNS = (
    "part", "quantity", "python", "r", "difference", "tolerance", "unit", "numbers", "agrees",
)  # fmt: skip
_ABOUT = {
    "table": "Outcome and design matrix as Python reads the formula, and as R's model.matrix does. "
    "Columns of the matrix are compared in any order.",
    "array functions": "Each function of the Python package and the function of the same name of "
    "the R package, an independent implementation, on generated input.",
    "same draws": "At the same parameter values. Python: numpy's log-likelihood and Python's "
    "functions. R: the log_lik that the Stan program wrote, and R's functions. Where digits cancel "
    "in a sum, as in the leave-one-out loop of the papers' supplement, the difference is relative "
    "to the largest number.",
    "posterior means": "Of two engines, each from its own draws. The difference is in "
    "Monte Carlo standard errors of the difference (ArviZ, both fits). f is the log-likelihood of "
    "a record and alpha its weight: the largest |alpha f| of a draw is what the Lipschitz bound is "
    "the maximum of.",
    "published program": "The program that a paper prints or describes, and the default one, which "
    "has the same posterior: each from draws of its own, on a part of a study's data. 2 Delta is "
    "the papers' epsilon of one draw. Errors are those of 20 blocks of about independent draws; of "
    "several numbers the largest difference, corrected for their number. log_lik, which the "
    "program writes weighted, is compared at the same theta with numpy's.",
    "supplement": "The script that the supplement prints, sourced as it is by R, and the functions "
    "of this package, on the same log-likelihoods.",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A quantity in both languages. Confidential if it was computed from a user's own table.

    Attributes
    ----------
    part : str
        Which part of the comparison it belongs to.
    quantity : str
        What was computed.
    python, r : float
        The values of the two `sides`; of several numbers the pair that is furthest apart, and if
        all are the same the largest.
    difference : float
        Largest difference over all numbers, in `unit`; infinite if shapes differ.
    tolerance : float
        Largest difference that is still agreement.
    unit : {"relative", "standard error"}
        Relative to the larger of the two numbers (at least 0.001), or in Monte Carlo standard
        errors of the difference of two posterior means.
    numbers : int
        How many pairs of numbers were compared.
    sides : tuple of two str, default ("Python", "R")
        What was held against what: two engines of Python's by name, where neither is R's.
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
    """Compare two values of one quantity: numbers, arrays, or records of them.

    Parameters
    ----------
    part, quantity : str
    python, r : float, array_like, mapping or dataclass
        Of two records the numeric fields that both have are compared.
    tolerance : float
        Relative.
    to_largest : bool, default False
        Take differences relative to the largest number of all instead of element by element, for
        results of sums in which digits cancel.
    sides : tuple of two str
    """
    left, right = _numbers(python, r)
    if left.shape != right.shape or left.size == 0:
        return Row(
            part=part,
            quantity=f"{quantity}: shapes {left.shape} and {right.shape}",
            python=np.nan,
            r=np.nan,
            difference=np.inf,
            tolerance=tolerance,
            numbers=max(left.size, right.size),
            sides=sides,
        )
    left, right = left.ravel(), right.ravel()
    apart = _differences(left, right, to_largest)
    with np.errstate(invalid="ignore"):
        size = np.where(np.isfinite(left), np.abs(left), -1.0)
    furthest = int(np.argmax(apart)) if apart.max() > 0 else int(np.argmax(size))
    return Row(
        part=part,
        quantity=quantity,
        python=float(left[furthest]),
        r=float(right[furthest]),
        difference=float(apart.max()),
        tolerance=tolerance,
        numbers=left.size,
        sides=sides,
    )


def _differences(left: FloatArray, right: FloatArray, to_largest: bool) -> FloatArray:
    """Relative differences, 0 for equal infinities and two NaN, infinite for unlike ones."""
    size = np.maximum(np.maximum(np.abs(left), np.abs(right)), _FLOOR)
    if to_largest:
        size = np.full_like(size, size.max())
    with np.errstate(invalid="ignore"):
        apart = np.abs(left - right) / size
    apart = np.where(np.isnan(apart), np.inf, apart)
    return np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, apart)


def _numbers(python: Any, r: Any) -> tuple[FloatArray, FloatArray]:
    """Both values as arrays of like meaning."""
    if is_dataclass(python) and not isinstance(python, type):
        python = asdict(python)
    if not isinstance(python, Mapping):
        return _array(python), _array(r)
    shared = [name for name in python if name in r and not isinstance(python[name], str)]
    left = [_array(python[name]) for name in shared]
    right = [_array(r[name]) for name in shared]
    if [a.shape for a in left] != [b.shape for b in right]:
        return np.zeros(sum(a.size for a in left)), np.zeros(sum(b.size for b in right) + 1)
    join = [np.concatenate([a.ravel() for a in side] or [np.zeros(0)]) for side in (left, right)]
    return join[0], join[1]


def _array(value: Any) -> FloatArray:
    """A value without axes of length 1: R has no scalars, and Python has no columns."""
    return np.atleast_1d(np.squeeze(np.asarray(value, dtype=np.float64)))


@dataclass(frozen=True, kw_only=True)
class Speed:
    """What a program took by an engine: seconds of its fits without compiling, effective draws of
    the worst monitored quantity, summed over fits, and divergent transitions.

    `text` is "published" or "default".
    """

    program: str
    text: str
    engine: str
    seconds: float
    effective: float
    divergent: int

    @property
    def rate(self) -> float:
        """Effective draws per second."""
        return self.effective / self.seconds


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
        Model, sampler settings, name and size of the table.
    seed : int
        All random numbers, those of the generated input included, come from it.
    own_data : bool
        True if a table of the user's was compared.
    left_out : tuple of str
        What was not compared, and why.
    notes : tuple of str
        What the engines had to say.
    speeds : tuple of Speed
        Of published programs and ours.
    """

    rows: tuple[Row, ...]
    versions: Mapping[str, str]
    programs: Mapping[str, str]
    settings: Mapping[str, str]
    seed: int
    own_data: bool
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    speeds: tuple[Speed, ...] = ()

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
            [{name: getattr(row, name) for name in _COLUMNS} for row in self.rows],
            columns=list(_COLUMNS),
        )
        return table

    def report(self) -> str:
        """The comparison as one HTML file without scripts or references."""
        sections = [_verdict(self.rows, self.verdict, self.left_out)]
        explained = set()
        for part in dict.fromkeys(row.part for row in self.rows):
            kind = part.split(":")[0]
            sections.append(
                Section(
                    heading=part[0].upper() + part[1:],
                    paragraphs=[] if kind in explained else [[_ABOUT[kind]]],
                    tables=[_table([row for row in self.rows if row.part == part])],
                )
            )
            explained.add(kind)
        if self.speeds:
            sections.append(self._speed_section())
        sections.append(Section(heading="Left out", bullets=[*self.left_out] or ["Nothing."]))
        made_by = Table(
            caption="Versions, seed, settings and programs: what is needed to repeat this.",
            header=["What", "Value"],
            rows=list(self._made_by().items()),
        )
        return render_page(
            "Python against R: validation of pyhybrid",
            [*sections, Section(heading="Made by", tables=[made_by])],
            confidential=self.own_data,
            advice="a comparison on generated data can be published",
            facts=self._facts(),
        )

    def _facts(self) -> list[str]:
        """The line below the title: date, table, model and engines."""
        said = self.settings
        size = int(said["records"]), int(said.get("columns", 0))
        own = [said[name] for name in ("formula", "model", "engines") if name in said]
        return [*facts_of_table(said["table"], *size), *own]

    def _speed_section(self) -> Section:
        rows = [[*speed_cells(speed)] for speed in self.speeds]
        table = Table(header=list(SPEED_HEADER), rows=rows, numbers=True)
        picture = plot_published(self.table, self.speeds)
        return section("published", figures=[picture], tables=[table])

    def as_dict(self) -> dict[str, Any]:
        """The comparison in JSON's types, numbers that are not finite as texts."""
        finite = dict.fromkeys(("python", "r", "difference"), number_or_text)
        rows = [
            {k: finite.get(str(k), lambda v: v)(v) for k, v in row.items()}
            for row in self.table.to_dict("records")
        ]
        speeds = [{**asdict(speed), "rate": speed.rate} for speed in self.speeds]
        made = {**self._made_by(), "left_out": list(self.left_out)}
        return {"verdict": self.verdict, "rows": rows, "speeds": speeds, "made_by": made}

    def _made_by(self) -> dict[str, str]:
        programs = {f"sha256 of {name}": digest for name, digest in self.programs.items()}
        notes = "; ".join(self.notes) or "none"
        return {
            **self.versions, "seed": str(self.seed), **self.settings, **programs, "notes": notes
        }  # fmt: skip

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the report, whole or not at all; only its owner can read one on their own table.

        A path that ends in .csv gets the rows alone, in .json rows and speeds, any other the page.

        Raises
        ------
        InvalidInput
            If the file exists and `overwrite` is False, or is a folder.
        SaveFailed
            On a disk error; nothing is left behind.
        """
        check_new_file(path, overwrite=overwrite, what="report")
        kind = Path(path).suffix.lower()
        if kind == ".csv":
            text = self.table.to_csv(index=False)
        else:
            text = json.dumps(self.as_dict(), indent=2) if kind == ".json" else self.report()
        write_files({Path(path): text}, private=self.own_data)


SPEED_HEADER = ("program", "engine", "seconds", "effective", "per second")


def speed_cells(speed: Speed) -> tuple[str, ...]:
    """Cells of a table of speeds."""
    return (
        f"{speed.program}, {speed.text}", speed.engine, f"{speed.seconds:.2f}",
        f"{speed.effective:,.0f}", f"{speed.rate:,.0f}",
    )  # fmt: skip


def number_or_text(value: float) -> float | str:
    """A number as JSON has it."""
    return value if np.isfinite(value) else str(value)


def _agreement(sides: tuple[str, str], rows: Sequence[Row]) -> str:
    names, wrong = " and ".join(sides), sum(not row.agrees for row in rows)
    if wrong:
        return f"{names} disagree on {wrong} of {len(rows)} quantities"
    return f"{names} agree on all {len(rows)} quantities"


def _verdict(rows: Sequence[Row], verdict: str, left_out: Sequence[str]) -> Section:
    text = "Difference is the largest over all numbers compared; relative to the larger of the two "
    text += "numbers (at least 0.001) unless a table says otherwise. Shown is the pair of numbers "
    text += "that is furthest apart; of how many pairs is in the last column."
    lacking = ", ".join(cause.partition(":")[0] for cause in left_out)
    without = [[f"Left out, for the reasons given below: {lacking}."]] if lacking else []
    wrong = [row.quantity for row in rows if not row.agrees]
    return Section(
        heading="Verdict",
        paragraphs=[["", f"{verdict}."], *without, [text]],
        bullets=[f"Disagrees: {quantity}" for quantity in wrong],
    )


def _table(rows: list[Row]) -> Table:
    unit = UNITS[rows[0].unit]
    return Table(
        caption=f"{unit[0].upper()}{unit[1:]}.",
        header=["Quantity", "Verdict", *rows[0].sides, "Difference", "Tolerance", "Pairs"],
        rows=[
            [
                row.quantity,
                Marked(text="", word="agrees" if row.agrees else "DISAGREES"),
                f"{row.python:.6g}",
                f"{row.r:.6g}",
                f"{row.difference:.2g}",
                f"{row.tolerance:.2g}",
                f"{row.numbers:,}",
            ]
            for row in rows
        ],
        numbers=True,
    )


def plot_published(rows: pd.DataFrame, speeds: Sequence[Any]) -> Any:
    """Published programs' differences from ours, and both's effective draws per second."""
    shown = rows[(rows["unit"] == "standard error") & np.isfinite(rows["difference"])]
    parts = list(dict.fromkeys(shown["part"]))
    height = 1.2 + 0.35 * max(len(parts), len(speeds))
    left, right = draw.new_panels(11, height, columns=2)
    for place, part in enumerate(parts):
        apart = shown.loc[shown["part"] == part, "difference"]
        left.plot(apart, np.full(len(apart), place), "o", color=draw.COLORS[0], alpha=0.5, ms=5)
    left.axvline(5, color="0.4", ls="--", lw=1)
    draw.rows_of(left, [part.partition(": ")[2] for part in parts])
    left.set_xlabel("difference, Monte Carlo standard errors (at most 5)")
    for place, speed in enumerate(speeds):
        right.barh(place, speed.rate, color=draw.COLORS[speed.text == "default"])
    draw.rows_of(right, [f"{each.program}, {each.text}, {each.engine}" for each in speeds])
    right.set_xscale("log")
    right.set_xlabel("effective draws per second")
    for ax in (left, right):
        ax.invert_yaxis()
    return draw.finish(left)
