"""Pictures of masking: risk subgroups, matching risk before and after, the tuning curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.reports.figures.style import (
    COLORS,
    INK,
    MARKERS,
    PALE,
    TEXT,
    finish,
    new_panels,
    plain,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pyhybrid.masking import RiskSubgroups, TunedMask

Points = Mapping[str, tuple[float, float]]
_GROUP_COLORS = {"low": COLORS[2], "medium": COLORS[4], "high": COLORS[1]}
_RISK = "share of records that an intruder names correctly"


def plot_subgroups(groups: RiskSubgroups) -> Figure:
    """Records by how many others match them on all keys, colored by subgroup, and their shares.

    Parameters
    ----------
    groups : RiskSubgroups
        Of `risk_subgroups`.
    """
    left, right = new_panels(7, 3.2, columns=2)
    top = max(int(np.quantile(groups.n_matches, 0.99)), groups.k0 + 1)
    step = max(1, -(-top // 40))
    edges = np.arange(0, top + 2 * step, step) - 0.5
    shown = np.minimum(groups.n_matches, edges[-1] - 0.5)
    below = np.zeros(edges.size - 1)
    for name, color in _GROUP_COLORS.items():
        counts = np.histogram(shown[groups.by_record == name], edges)[0]
        centers = (edges[1:] + edges[:-1]) / 2
        left.bar(centers, counts, width=step, bottom=below, color=color, label=f"{name} risk")
        below = below + counts
    left.axvline(groups.k0 - 0.5, color=INK, linestyle="--", linewidth=1.2)
    left.set(xlabel=f"other records that match on all keys ({top}+ at the end)", ylabel="records")
    left.locator_params(axis="x", integer=True)
    table = groups.table
    colors = [_GROUP_COLORS[name] for name in table["subgroup"]]
    bars = right.bar(table["subgroup"], table["share"], color=colors)
    labels = [f"{n:,}" for n in table["records"]]
    right.bar_label(bars, labels, fontsize=TEXT - 1)
    right.set(xlabel="risk subgroup", ylabel="share of records", ymargin=0.12)
    return finish(left)


def plot_match_risk(before: npt.ArrayLike, after: npt.ArrayLike) -> Figure:
    """Probability that an intruder names each record correctly, in the data and after masking.

    Parameters
    ----------
    before, after : array_like, shape (n,)
        `MatchingRisk.correct_by_record` of the data against themselves and of a release; [0, 1].
    """
    one, two = check_vector(before, "before"), check_vector(after, "after", length=np.size(before))
    ax = new_panels(5.8, 3.4)[0]
    edges = np.linspace(0, 1, 21)
    style = {"fill": True, "linewidth": 1.6}
    parts = (("the data as they are", one, PALE), ("synthetic keys", two, COLORS[0]))
    for name, values, color in parts:
        share = np.histogram(np.clip(values, 0, 1), edges)[0] / values.size
        label = f"{name}, mean {values.mean():.3f}"
        ax.stairs(share, edges, color=color, label=label, alpha=0.65, **style)
    ax.set(xlabel="probability that the intruder names the record", ylabel="share of records",
           ylim=(0, None))  # fmt: skip
    return finish(ax)


def plot_tuning(tuned: TunedMask, *, others: Points | None = None) -> Figure:
    """Loss against matching risk for each mask strength, the target and the choice.

    Parameters
    ----------
    tuned : TunedMask
        Of `tune_mask`.
    others : mapping of str to (risk, loss), optional
        Further points, such as comparators; see `pyhybrid.masking.imputation.coefficient_loss`.
    """
    table = tuned.table.sort_values("factor")
    if table.empty:
        raise InvalidInput("tuned must hold at least one mask strength: found none")
    ax = new_panels(6.2, 4.2)[0]
    ax.plot(table["risk"], table["loss"], "o-", color=COLORS[0], markersize=4, label="masks")
    ax.axvline(tuned.target_risk, color=INK, linestyle="--", linewidth=1.3, label="target risk")
    ax.plot([tuned.risk], [tuned.loss], "D", color=COLORS[1], markersize=9, label="chosen")
    ax.axvline(tuned.data_risk, color=INK, linestyle=":", linewidth=1.3, label="data as they are")
    _label_factors(ax, table)
    for place, (name, (risk, loss)) in enumerate((others or {}).items()):
        ax.plot([risk], [loss], MARKERS[(place + 2) % 6], color=COLORS[(place + 2) % 6],
                markersize=8, label=plain(name))  # fmt: skip
    ax.set(xscale="log", xlabel=_RISK, ylabel="loss (0 is best)")
    ax.set_ylim(0, ax.get_ylim()[1])
    return finish(ax)


def _label_factors(ax: Any, table: pd.DataFrame) -> None:
    """The factor beside every point that has room; masks switched off are "off"."""
    risks = np.maximum(table["risk"].to_numpy(dtype=float), 1e-9)
    losses, factors = table["loss"].to_numpy(dtype=float), table["factor"].to_numpy(dtype=float)
    places = np.column_stack([np.log10(risks), losses / max(losses.max(), 1e-9)])
    last = None
    for place, risk, loss, factor in zip(places, risks, losses, factors, strict=True):
        if last is not None and np.hypot(*(place - last)) < 0.06:
            continue
        last = place
        text = "off" if np.isinf(factor) else f"{factor:.3g}"
        style = {"xytext": (5, 5), "textcoords": "offset points", "fontsize": TEXT - 2}
        ax.annotate(text, (risk, loss), **style)
