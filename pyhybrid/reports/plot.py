"""A column of a release against the data, as a figure. CONFIDENTIAL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyhybrid.core.errors import InvalidInput
from pyhybrid.releases.release import Release
from pyhybrid.reports.figures.measures import plot_levels
from pyhybrid.reports.figures.mechanisms import plot_distributions
from pyhybrid.reports.levels import shares_of
from pyhybrid.reports.release import numeric_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_release"]


def plot_release(release: Release, column: str | None = None) -> Figure:
    """Data against synthetic sets: the distribution of a synthesized column. CONFIDENTIAL.

    Parameters
    ----------
    release : Release
        One that was made in this session: the data come from its `origin`.
    column : str, optional
        A synthesized column; the first one if omitted.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InvalidInput
        For a release that was loaded, which has no data, and for a column not synthesized.
    """
    if release.origin is None:
        raise InvalidInput(
            "release must be one that was made in this session: a release that was loaded has no "
            "data to be plotted against; give both to pyhybrid.utility_summary(data, "
            "release.synthetic)"
        )
    chosen = release.synthesized[0] if column is None else column
    if chosen not in release.synthesized:
        raise InvalidInput(
            f"column must be a synthesized one, {', '.join(release.synthesized)}: found {chosen!r}"
        )
    data, name = release.origin.data[chosen], release.charge.mechanism
    columns = [table[chosen] for table in release.synthetic]
    truth, sets = numeric_values(data), [numeric_values(each) for each in columns]
    everything = [truth, *sets]
    whole = all((values == np.floor(values)).all() for values in everything)
    varied = all(values.size and (whole or np.ptp(values) > 0) for values in everything)
    if not varied:
        shares = shares_of(data, {name: columns})
        return plot_levels(shares.levels, shares.data, shares.synthetic)
    scale = "log" if truth.max() > 3 * np.quantile(truth, 0.9) else "linear"
    return plot_distributions(truth, {name: sets}, discrete=whole, scale=scale, label=chosen)
