"""What a re-weighting did, as a section of a report. CONFIDENTIAL."""

from __future__ import annotations

from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.reports.figures.mechanisms import plot_bound_against_weight, plot_weights_before_after
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Picture, Section, Table, picture_of

__all__ = ["reweighting_section"]


def reweighting_section(heading: str, path: Reweighted) -> Section:
    """Bounds and weights before and after, and every step of the search. Confidential."""
    before, after, by_size = path.start, path.fit, path.risk == "size"
    weights = picture_of(
        plot_weights_before_after(before.alpha, after.alpha),
        alt="Scatter plot of record weights after re-weighting against those before.",
        caption="Points above the diagonal: records whose weight was raised.",
    )
    pictures = [_bounds_and_weights(path), weights] if by_size else [weights]
    steps = (
        f"Steps of the search, from a bound of {before.bounds.overall:.3f} and an "
        f"efficiency of {before.bounds.efficiency:.3f} to {after.bounds.overall:.3f} and "
        f"{after.bounds.efficiency:.3f}."
        if by_size
        else f"Steps of the search. In place of the bound stands the largest {path.risk} of a "
        "weighted log-likelihood, nats."
    )
    rows = [
        [
            str(place),
            str(step.round),
            f"{step.k:.4f}",
            *(number_text(v) for v in (step.estimated_bound, step.bound, step.efficiency)),
            "saved" if not step.refitted else "yes" if step.accepted else "no",
        ]
        for place, step in enumerate(path.steps, start=1)
    ]
    table = Table(
        caption=f"{steps} Saved: the importance estimate ruled the refit out.",
        header=["Step", "Round", "k", "Estimated bound", "Refitted bound", "Efficiency", "Within"],
        rows=rows,
        numbers=True,
    )
    return Section(heading=heading, pictures=pictures, tables=[table])


def _bounds_and_weights(path: Reweighted) -> Picture:
    before, after = path.start, path.fit
    scatter = plot_bound_against_weight(
        after.alpha,
        after.bounds.by_record,
        overall=after.bounds.overall,
        before=(before.alpha, before.bounds.by_record, before.bounds.overall),
    )
    return picture_of(
        scatter,
        alt="By-record bound against weight before and after re-weighting.",
        caption="Records below the line have slack. Re-weighting raises their weights until "
        "they meet the line or reach weight 1; the line does not rise.",
    )
