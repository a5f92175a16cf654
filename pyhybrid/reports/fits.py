"""Sections on fits: convergence, exact sampling, re-weighting. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyhybrid.engines import Diagnostics
from pyhybrid.fitting.exact import ExactPosterior
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.reports.figures.mechanisms import plot_bound_against_weight, plot_weights_before_after
from pyhybrid.reports.page import Picture, Section, Table, number_text, picture_of

__all__ = ["convergence_section", "exact_section", "reweighting_section"]

_ABOUT = {
    "max_rhat": "Largest rank-normalized split R-hat. From 1; should be at most 1.01.",
    "worst": "Quantity with the largest R-hat.",
    "min_ess_bulk": "Smallest effective sample size for means. Larger is better; 100 per chain is "
    "the usual minimum.",
    "min_ess_tail": "The same for the tails, on which the bound depends.",
    "n_elsewhere": "Chains from dispersed starts that ended in another mode of a censored "
    "posterior. Should be 0; none if not looked for.",
    "n_divergent": "Divergent transitions after warm-up. Should be 0 or very few: the sampler may "
    "have missed part of the posterior.",
    "n_max_treedepth": "Transitions that reached the largest tree depth. They cost time, not "
    "correctness.",
    "n_draws": "Draws after warm-up, all chains together.",
    "n_chains": "Independent chains.",
    "attempts": "Fits made: 2 if the first had not converged.",
}


def convergence_section(
    fits: Mapping[str, Diagnostics], *, of: str = "the released fit"
) -> Section:
    """Worst values over all scalar quantities of each fit, one column per fit.

    Parameters
    ----------
    fits : mapping of str to Diagnostics
        By the name of the mechanism or model.
    of : str
        What was fitted.
    """
    verdicts, single = [], len(fits) == 1
    well = [name for name, found in fits.items() if found.converged]
    if well:
        verdicts.append([f"The chains{'' if single else f' of {_listed(well)}'} converged."])
    for name, found in fits.items():
        if not found.converged:
            who = "The chains" if single else f"The chains of {name}"
            verdicts.append([f"{who} HAVE NOT CONVERGED."])
        verdicts += [[problem] for problem in found.problems]
    rule = next(iter(fits.values())).rule.describe()
    table = Table(
        caption=f"Worst values over all scalar quantities of {of}. Rule: {rule}.",
        header=["Diagnostic", *(["Value"] if single else fits), "What it is"],
        rows=[
            [field, *(number_text(getattr(found, field)) for found in fits.values()), about]
            for field, about in _ABOUT.items()
            if field != "n_elsewhere" or any(each.n_elsewhere is not None for each in fits.values())
        ],
    )
    return Section(heading="Convergence", paragraphs=verdicts, tables=[table])


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


_COARSE, _AT_THE_EDGE = 1.0, 0.01


def exact_section(exact: ExactPosterior) -> Section:
    """Whether the grid is fine and wide enough. CONFIDENTIAL: the answer is a function of the data.

    A grid that is not costs accuracy and no privacy; another one, chosen after a look at this, is a
    choice made by looking at the data, which no charge covers.
    """
    edge, resolution = exact.mass_at_the_edge, exact.resolution
    paragraphs = [
        [
            f"Drawn exactly from {exact.grid.size} candidates, without chains: there is nothing to "
            f"converge. Posterior mass at the ends of the grid: {number_text(edge)}."
        ]
    ]
    coarse = [name for name, cells in resolution.items() if cells < _COARSE]
    if coarse:
        paragraphs.append(
            [
                f"COARSE: the posterior of {', '.join(coarse)} is narrower than a cell of the "
                "grid, and a released draw is further off than the data would allow."
            ]
        )
    if edge > _AT_THE_EDGE:
        paragraphs.append(
            [
                "AT THE EDGE: the posterior reaches the end of the region. The reference has "
                "drifted, or the cap is too small for it; calibrate on newer records."
            ]
        )
    rows = [
        [axis.name, number_text(axis.lower), number_text(axis.upper), str(axis.size),
         number_text(resolution[axis.name])]
        for axis in exact.grid.axes
    ]  # fmt: skip
    table = Table(
        caption="Confidential. The grid; last, the posterior standard deviation in cells, which "
        "should be above 1.",
        header=["Coordinate", "Lower", "Upper", "Points", "Deviation in cells"],
        rows=rows,
    )
    return Section(heading="Exact sampling", paragraphs=paragraphs, tables=[table])


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
