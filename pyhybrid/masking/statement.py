"""What stands where other releases have an epsilon: the risk statement of a masked release.

How many records keep their own value of a key is part of it: who analyzes or judges the release
must know whether a key was replaced in substance or in name only. The shares are functions of the
confidential data, and no epsilon covers them, as none covers the release. They are rounded to steps
that weigh ten records or more, and not given below 40 records: who knows all records but one would
otherwise read off whether that one kept its value. Rounding makes this rare, not impossible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from pyhybrid.measures.tables.combining import NESTED

__all__ = [
    "ALMOST_ALL",
    "NESTED",
    "PARTIAL",
    "RiskStatement",
    "rounding_step",
    "stated_shares",
    "unchanged_shares",
]

PARTIAL = "partially_synthetic"
ALMOST_ALL = 0.95
"""A key that more records keep than this is called left as it was."""
_STEPS = (0.01, 0.05, 0.1, 0.25)
_RECORDS_IN_A_STEP = 10
_RULES = {
    PARTIAL: "Reiter (2003), for partially synthetic data: `combine_partially_synthetic`",
    NESTED: "Reiter (2004), for imputations that are synthesized: `combine_nested`",
}


@dataclass(frozen=True, kw_only=True)
class RiskStatement:
    """What stands where other releases have an epsilon. May be published.

    Attributes
    ----------
    method : str
        How the keys were synthesized.
    keys : tuple of str
        Columns that were synthesized.
    masks : mapping of str to str
        Mask of each key in words.
    n_records, n_sets, n_imputations : int
        n; all sets; imputations they belong to (1 if no key had missing values).
    rule : str
        How to combine estimates of the sets.
    unchanged : mapping of str to float or None
        By key, the share of records whose released value equals their own, averaged over the sets
        and rounded to `rounding_step`; None where it is not given, empty in releases of earlier
        versions. Computed from the confidential data: see the module.
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
    unchanged: Mapping[str, float | None] = field(default_factory=dict)
    differentially_private: bool = field(default=False, init=False)

    def __repr__(self) -> str:
        return f"<RiskStatement: NOT differentially private, {self.method}>"

    @property
    def left_as_they_were(self) -> tuple[str, ...]:
        """Keys that nearly all records keep, 95 % or more as stated: replaced in name only."""
        return tuple(key for key in self.keys if (self.unchanged.get(key) or 0.0) >= ALMOST_ALL)

    @property
    def text(self) -> str:
        """The statement in plain words (Markdown)."""
        masks = "\n".join(f"- {name}: {mask}." for name, mask in self.masks.items())
        sets = f"{self.n_sets} synthetic data set{'s' if self.n_sets > 1 else ''}"
        if self.rule == NESTED:
            each = self.n_sets // self.n_imputations
            sets += f", {each} of each of {self.n_imputations} imputations of missing keys"
        return f"""# Risk statement

**NOT differentially private.** There is no epsilon. This release does not bound what anybody can
learn about a record, whatever they know beside it; it makes it uncertain which record is whose.

{sets} of {self.n_records} records. {self._replaced()} **All other columns are the respondents' own
values.** Method: {self.method}.

## What was done

{masks}

## How much was changed

{self._changed()}

## Not covered

- Whoever knows values of the columns that were not synthesized can recognize a record by them.
- Several sets together tell more than one: the average of a key over the sets is nearer to its true
  value than each of them.
- Values of the other columns stay with their record: who is found is found with all of them.
- Choices of keys, masks and models made by looking at the data.
- Whoever knows the seed can recompute the release from guesses of the data: it must stay secret.

## How to analyze it

Fit the same model to each set and combine by the rule of {_RULES[self.rule]}. Do not stack the
sets, and do not analyze one of them alone for its standard errors.
"""

    def _replaced(self) -> str:
        """Which keys were replaced, and which in name only."""
        left = self.left_as_they_were
        drawn = [key for key in self.keys if key not in left]
        found = []
        if drawn:
            found.append(
                f"{_columns(drawn)} {_were(drawn)} replaced by draws, which can equal the "
                "values they replace."
            )
        if left:
            found.append(
                f"**{_columns(left)} {'hold' if len(left) > 1 else 'holds'} the respondents' own "
                "values in nearly all "
                "records**: a draw was made for each, and equals what it replaces."
            )
        return " ".join(found)

    def _changed(self) -> str:
        step = rounding_step(self.n_records)
        if not self.unchanged:
            return "Not stated."
        if step is None:
            return "Not stated: with so few records a share would point at single ones."
        lines = [f"- {name}: {_share(share, step)}." for name, share in self.unchanged.items()]
        return (
            "Share of records whose released value equals their own, averaged over the sets and\n"
            f"rounded to steps of {step:.0%}. The shares were counted on the confidential data; no "
            "epsilon covers them.\n\n" + "\n".join(lines)
        )


def unchanged_shares(
    df: pd.DataFrame, synthetic: Sequence[pd.DataFrame], keys: Sequence[str]
) -> dict[str, float]:
    """By key, the share of values of the data that the sets keep, averaged over them; confidential.

    Missing values of the data do not count.
    """
    found = {}
    for key in keys:
        there = df[key].notna().to_numpy()
        own = df[key].array[there]
        kept = [float((t[key].array[there] == own).mean()) for t in synthetic]
        found[key] = sum(kept) / len(kept)
    return found


def stated_shares(shares: Mapping[str, float], n_records: int) -> dict[str, float | None]:
    """The shares as they may stand in a statement: rounded, or None below 40 records."""
    step = rounding_step(n_records)
    if step is None:
        return dict.fromkeys(shares)
    return {key: round(round(share / step) * step, 2) for key, share in shares.items()}


def rounding_step(n_records: int) -> float | None:
    """The smallest step of shares that is worth at least ten records; None if there is none."""
    return next((step for step in _STEPS if step * n_records >= _RECORDS_IN_A_STEP), None)


def _share(share: float | None, step: float) -> str:
    if share is None:
        return "not stated"
    if share <= step / 2:
        return f"less than {step / 2:.1%}"
    if share >= 1 - step / 2:
        return f"more than {1 - step / 2:.1%}"
    return f"about {share:.0%}"


def _columns(names: Sequence[str]) -> str:
    return f"The column{'s' if len(names) > 1 else ''} {_listed(names)}"


def _were(names: Sequence[str]) -> str:
    return "were" if len(names) > 1 else "was"


def _listed(keys: Sequence[str]) -> str:
    return " ".join(", ".join(keys).split())
