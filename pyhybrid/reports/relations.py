"""What rows of one person have in common, which independent rows lose."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd

from pyhybrid.fitting.disclosive_columns import repeated_identifiers
from pyhybrid.models.formula.values import is_number
from pyhybrid.releases.release import Release
from pyhybrid.reports.page import Section, Table, number_text, section

_MOST, _NOTEWORTHY = 12, 0.05


def repeated_section(release: Release, data: pd.DataFrame) -> list[Section]:
    """Intraclass correlation of synthesized numbers within persons with several rows, in the data;
    in a release that draws rows independently it is 0."""
    units = [release.charge.unit] if release.charge.unit else repeated_identifiers(data)
    named = next((unit for unit in units if unit in data and unit not in release.synthesized), None)
    if named is None:
        return []
    columns = [name for name in release.synthesized if name in data and is_number(data[name])]
    shares = {name: intraclass_correlation(data[name], data[named]) for name in columns[:_MOST]}
    rows = [[name, number_text(share)] for name, share in shares.items() if share > _NOTEWORTHY]
    table = Table(header=("column", "intraclass correlation in the data"), rows=rows)
    return [section("persons", tables=[table], unit=named)] if rows else []


def intraclass_correlation(values: pd.Series, group: pd.Series) -> float:
    """ICC(1) of one-way analysis of variance, of groups of any sizes; NaN if there are no two rows
    of a group (Donner 1986, International Statistical Review 54)."""
    known = values.notna() & group.notna()
    y = values[known].to_numpy(dtype=np.float64)
    keys = group[known].where(group[known].map(lambda key: isinstance(key, Hashable)))
    codes = pd.factorize(keys)[0]
    sizes = np.bincount(codes[codes >= 0])
    n, groups = y.size, sizes.size
    if groups < 2 or n <= groups:
        return float("nan")
    means = np.bincount(codes, y) / sizes
    within = float(((y - means[codes]) ** 2).sum()) / (n - groups)
    between = float((sizes * (means - y.mean()) ** 2).sum()) / (groups - 1)
    typical = (n - (sizes**2).sum() / n) / (groups - 1)
    total = between + (typical - 1) * within
    return (between - within) / total if total > 0 else float("nan")
