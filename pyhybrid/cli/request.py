"""What `pyhybrid synthesize` was asked for, and what its three ways give back."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from pyhybrid.cli.options import named, names_of
from pyhybrid.core.checks import number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.tables.read import SourceTable


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of `synthesize`, parsed."""

    data: Path
    out: Path
    formula: list[str] = field(default_factory=list)
    model: list[str] = field(default_factory=list)
    mechanism: list[str] = field(default_factory=list)
    types: Path | None
    epsilon: float | None
    delta: float | None
    unit: str | None
    rows_per_unit: int | None
    reference: Path | None
    holds_no_released_record: bool
    n_synthetic: int
    drop: list[str]
    keep: list[str]
    id: list[str]
    ledger: Path | None
    fit: dict[str, Any]
    overwrite: bool

    def refuse(self, names: Collection[str], why: str) -> None:
        """Refuse options that were given and are of no use here."""
        given = [name for name in names if getattr(self, name) not in (None, [], {}, False)]
        if given:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise InvalidInput(f"{why}: leave out {options}")

    def of_formula(self, name: str, k: int) -> str | None:
        """The model or mechanism given for one of several formulas, or for all of them."""
        texts: list[str] = getattr(self, name)
        if len(texts) not in (0, 1, len(self.formula)):
            raise InvalidInput(
                f"--{name} must be given once, or once per --formula: found {len(texts)} for "
                f"{number_of(len(self.formula), 'formula')}"
            )
        return texts[k if len(texts) > 1 else 0] if texts else None

    def decided(self, df: pd.DataFrame) -> Decisions:
        """Decisions on columns, by their names."""
        return Decisions.of(*(names_of(names, df) for names in (self.drop, self.keep, self.id)))

    def check_confirmed(self) -> None:
        """Refuse a reference of which it is not said that it holds no released record."""
        if self.reference is not None and not self.holds_no_released_record:
            raise InvalidInput(
                "a strict release needs you to confirm, if it is true, that the reference holds "
                "none of the records to be released: --holds-no-released-record"
            )

    @property
    def mechanism_names(self) -> set[str]:
        """Names of the mechanisms asked for."""
        return {named(text)[0] for text in self.mechanism}

    def command(self, **changes: Sequence[object]) -> str:
        """The whole command, with changed options; without --fit and --overwrite."""
        options = ("formula", "model", "mechanism", "epsilon", "delta", "unit", "rows_per_unit",
                   "reference", "ledger", "drop", "keep", "id", "types", "out")  # fmt: skip
        words = ["pyhybrid", "synthesize", str(self.data)]
        for name in options:
            given = changes.get(name, getattr(self, name))
            for value in given if isinstance(given, (list, tuple)) else [given]:
                if value not in (None, ""):
                    shown = f"{value:g}" if isinstance(value, float) else str(value)
                    words += [f"--{name.replace('_', '-')}", shown]
        if self.holds_no_released_record:
            words.append("--holds-no-released-record")
        if self.n_synthetic != 1:
            words += ["--n-synthetic", str(self.n_synthetic)]
        return shlex.join(words)


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A release, and what saving it needs."""

    release: Release
    source: SourceTable
    decisions: Decisions
    ledger: Ledger | None
