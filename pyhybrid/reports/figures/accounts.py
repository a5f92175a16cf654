"""What a release tells about each record: mu or loss by record, the most told about first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import check_finite, check_nonnegative_vector
from pyhybrid.privacy.diagnostics import RELIABLE_K
from pyhybrid.privacy.leave_one_out import LeaveOneOutLoss
from pyhybrid.reports.figures.mechanisms import Groups
from pyhybrid.reports.figures.style import (
    INK,
    NUMBER,
    RULE,
    STYLES,
    finish,
    finite_of,
    named,
    new_panels,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_losses", "plot_told"]


def plot_told(groups: Groups, *, charged: float) -> Figure:
    """Mu of every record in descending order, one line per mechanism; both axes logarithmic.

    Parameters
    ----------
    groups : mapping of str to array_like, shape (n,)
        Mu by record, >= 0. Infinite ones are left out and counted in the legend; so are zeros.
    charged : float
        Mu that is charged for one draw of the last group, marked by a line.
    """
    ax = new_panels(6.4, 3.6)[0]
    for place, (key, given) in enumerate(named(groups).items()):
        values = check_nonnegative_vector(finite_of(given, f"groups[{key!r}]"), f"groups[{key!r}]")
        shown = np.sort(values[values > 0])[::-1]
        left_out = _left_out(given, int((values == 0).sum()))
        ax.plot(
            np.arange(1, shown.size + 1), shown, label=plain(key) + left_out,
            drawstyle="steps-post", marker="." if shown.size < 50 else "",
            **STYLES[place % len(STYLES)],
        )  # fmt: skip
    level = check_finite(charged, "charged")
    ax.axhline(level, label=f"charged for {plain(list(groups)[-1])}", **RULE)
    _number(ax, level)
    ax.set(xscale="log", yscale="log", xlabel="records, the most told about first",
           ylabel="mu of one released draw")  # fmt: skip
    return finish(ax)


def plot_losses(found: LeaveOneOutLoss, *, charged: float | None = None) -> Figure:
    """Leave-one-out loss of each record over the draws, by its largest in descending order.

    Parameters
    ----------
    found : LeaveOneOutLoss
    charged : float, optional
        Epsilon of one draw, in nats, marked by a line.
    """
    ax = new_panels(7, 3.8)[0]
    order = np.argsort(-found.by_record, kind="stable")
    place = np.arange(1, order.size + 1)
    lines = {"largest over the draws": found.by_record}
    for k in reversed(range(len(found.probabilities))):
        share = found.probabilities[k]
        name = "median over the draws" if share == 0.5 else f"{share:.0%} of the draws below"
        lines[name] = found.quantiles[:, k]
    for (name, values), style in zip(lines.items(), STYLES, strict=False):
        ax.plot(place, values[order], label=name, linewidth=1.3, **style)
    if charged is not None:
        ax.axhline(charged, label="epsilon charged", **RULE)
        _number(ax, charged)
    unreliable = np.flatnonzero(found.pareto_k[order] > RELIABLE_K)
    if unreliable.size:
        at = found.by_record[order][unreliable]
        ax.plot(place[unreliable], at, "x", color=INK, markersize=5, label="unreliable estimate")
    ax.set(xscale="log", xlabel="records, the most told about first", ylabel="absolute loss, nats",
           ylim=(0, None))  # fmt: skip
    return finish(ax)


def _number(ax: Any, level: float) -> None:
    """The number of a horizontal line at its right end, where curves that fall are far below."""
    ax.text(1, level, f"{level:.3g}", transform=ax.get_yaxis_transform(), ha="right", **NUMBER)


def _left_out(given: npt.ArrayLike, zeros: int) -> str:
    infinite = int(np.isinf(np.asarray(given, dtype=np.float64)).sum())
    parts = [f"{n:,} {what}" for n, what in ((infinite, "not finite"), (zeros, "at 0")) if n]
    return f" ({', '.join(parts)})" if parts else ""
