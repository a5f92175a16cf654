r"""Counts of a table in the data against those in a synthetic set.

With a the counts of the data scaled to n_syn and b those of the set, over cells not empty in both:
Voas-Williamson :math:`\sum (a - b)^2 / ((a + b)/2)`, Freeman-Tukey
:math:`4 \sum (\sqrt a - \sqrt b)^2`. With d cells, either has an expectation near
(d - 1)(1 + n_syn/n) if both are samples of one population.

References
----------
Voas, Williamson (2001), Geographical and Environmental Modeling 5:177-200; Freeman, Tukey (1950),
Annals of Mathematical Statistics 21:607-611; Raab, Nowok, Dibben (2021), arXiv:2109.12717.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.core.checks import check_choice, check_numeric
from pyhybrid.core.errors import InvalidInput

__all__ = ["STATISTICS", "TableDistance", "table_distance"]

STATISTICS = ("voas_williamson", "freeman_tukey")


@dataclass(frozen=True, kw_only=True)
class TableDistance:
    """Distance of two tables of counts.

    Attributes
    ----------
    statistic : float
        Voas-Williamson or Freeman-Tukey, from 0; 0 for equal shares.
    ratio : float
        Over its expectation for two samples of one population; near 1 there, 0 for equal shares.
    total_variation : float
        Half the sum of absolute differences of shares, in [0, 1].
    n_cells : int
        Cells that are not empty in both.
    """

    statistic: float
    ratio: float
    total_variation: float
    n_cells: int


def table_distance(
    data: Any, synthetic: Any, *, statistic: str = "voas_williamson"
) -> TableDistance:
    """Compare two tables of counts of the same cells.

    Parameters
    ----------
    data, synthetic : array_like, of one shape
        Counts >= 0, in any number of dimensions, each of sum above 0.
    statistic : {"voas_williamson", "freeman_tukey"}

    Raises
    ------
    InvalidInput
        For unlike shapes, negative or infinite counts, or an empty table.

    Examples
    --------
    >>> round(table_distance([10, 10], [5, 15]).statistic, 3)
    5.333
    """
    check_choice(statistic, "statistic", STATISTICS)
    a, b = check_numeric(data, "data"), check_numeric(synthetic, "synthetic")
    for name, counts in (("data", a), ("synthetic", b)):
        if not np.isfinite(counts).all() or (counts < 0).any() or counts.sum() == 0:
            raise InvalidInput(f"counts of {name} must be finite and >= 0, some above 0")
    if a.shape != b.shape:
        raise InvalidInput(f"tables must have the same cells: found {a.shape} and {b.shape}")
    n, n_syn = a.sum(), b.sum()
    filled = (a > 0) | (b > 0)
    a, b = a[filled] * (n_syn / n), b[filled]
    if statistic == "voas_williamson":
        found = float(np.sum((a - b) ** 2 / ((a + b) / 2)))
    else:
        found = float(4 * np.sum((np.sqrt(a) - np.sqrt(b)) ** 2))
    expected = (a.size - 1) * (1 + n_syn / n)
    return TableDistance(
        statistic=found,
        ratio=found / expected if a.size > 1 else 0.0,
        total_variation=float(np.abs(a - b).sum() / (2 * n_syn)),
        n_cells=int(a.size),
    )
