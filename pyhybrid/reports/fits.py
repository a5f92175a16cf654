"""Sections on fits: disclosure by record, bounds, convergence, re-weighting. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyhybrid.engines import Diagnostics
from pyhybrid.fitting.exact import ExactPosterior
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.releases.release import Release
from pyhybrid.reports import figures
from pyhybrid.reports.figures import NORMAL
from pyhybrid.reports.page import Section, Table, meanings, number_text, section

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bounds_section(name: str, releases: Mapping[str, Release], **values: Any) -> Section:
    """By-record bounds of each release. Confidential."""
    kept = {key: release.confidential for key, release in releases.items()}
    overall = {key: own.lipschitz_bound for key, own in kept.items()}
    figure = figures.plot_bounds({k: own.lipschitz for k, own in kept.items()}, overall=overall)
    marked = ", ".join(f"{key} {bound:.2f}" for key, bound in overall.items())
    return section(name, figures=[figure], marked=marked, **values)


def estimates_section(release: Release) -> list[Section]:
    """Published estimates beside those of the same model without clip and noise. Confidential."""
    exact = {} if release.origin is None else release.origin.without_privacy()
    if release.estimates is None or not exact:
        return []
    published = release.estimates.frame()
    published = published.loc[published.index.isin(list(exact))]
    alone = np.array([exact[name] for name in published.index])
    half = NORMAL * published["std_error_without_noise"].to_numpy()
    compared = published.rename(columns={
        "estimate": "synthetic_estimate", "lower": "synthetic_lower", "upper": "synthetic_upper",
    }).assign(estimate=alone, lower=alone - half, upper=alone + half)  # fmt: skip
    rows = [
        [
            str(name), number_text(row.estimate), number_text(row.synthetic_estimate),
            f"{number_text(row.synthetic_lower)} to {number_text(row.synthetic_upper)}",
            number_text((row.synthetic_estimate - row.estimate) / row.std_error),
        ]
        for name, row in zip(compared.index, compared.itertuples(), strict=True)
    ]  # fmt: skip
    header = ["Coordinate", "Without privacy", "Published", "95 % interval", "Off, in its errors"]
    return [
        section(
            "published estimates",
            figures=[figures.plot_forest({"published": compared})],
            tables=[Table(header=header, rows=rows, numbers=True)],
        )
    ]


_QUANTILES = {"median": 0.5, "90th percentile": 0.9, "99th percentile": 0.99, "largest": 1.0}


def told_section(release: Release) -> list[Section]:
    """Figure and table of deviation and range by record, and refits; none where these are not
    known, as of a release that was read from a folder or is censored."""
    loss, name = release.confidential.loss, release.charge.mechanism
    if loss is None or not np.isfinite(loss.mu) or loss.mu == 0:
        return []
    whose = "record" if release.charge.unit is None else "unit"
    rows = [
        [what, *map(number_text, np.quantile(values, list(_QUANTILES.values()), method="higher"))]
        for what, values in (("deviation", loss.deviations), ("range in nats", loss.ranges))
    ]
    largest = float(loss.deviations.max())
    drawn = figures.plot_told({name: loss.deviations}, charged=largest)
    told = section(
        "told",
        figures=[drawn],
        tables=[Table(header=["", *_QUANTILES], rows=rows, numbers=True)],
        largest=largest, n=loss.deviations.size, whose=whose,
        near=int((loss.deviations > largest / 2).sum()),
    )  # fmt: skip
    if not loss.refits:
        return [told]
    unit, labels = release.charge.unit, release.confidential.labels
    refits = [
        [
            str(labels[refit.record]) if unit is None else f"{unit} number {refit.record + 1}",
            number_text(loss.deviations[refit.record]),
            number_text(loss.ranges[refit.record]),
            number_text(refit.loss),
        ]
        for refit in loss.refits
    ]
    header = [f"{whose} left out", "deviation", "range", "loss"]
    table = Table(header=header, rows=refits, numbers=True)
    return [told, section("refits", tables=[table], whose=whose)]


def bounds_by_weight(release: Release) -> Figure | None:
    """Bound against weight of each record; none where all weights are the same. Confidential."""
    kept = release.confidential
    if np.ptp(kept.alpha) == 0:
        return None
    return figures.plot_bound_against_weight(
        kept.alpha, kept.lipschitz, overall=kept.lipschitz_bound
    )


def convergence_section(
    fits: Mapping[str, Diagnostics], *, of: str = "the released fit"
) -> Section:
    """Worst values over all scalar quantities of each fit, by what `of` says was fitted."""
    single, verdicts = len(fits) == 1, []
    for name, found in fits.items():
        who = "The chains" if single else f"The chains of {name}"
        verdicts.append([f"{who} {'converged' if found.converged else 'HAVE NOT CONVERGED'}."])
        verdicts += [[problem] for problem in found.problems]
    table = Table(
        header=["Diagnostic", *(["Value"] if single else fits), "What it is"],
        rows=[
            [field, *(number_text(getattr(found, field)) for found in fits.values()), about]
            for field, about in meanings("diagnostics").items()
            if field != "n_elsewhere" or any(each.n_elsewhere is not None for each in fits.values())
        ],
    )
    rule = next(iter(fits.values())).rule.describe()
    return section("convergence", paragraphs=verdicts, tables=[table], of=of, rule=rule)


def exact_section(exact: ExactPosterior) -> Section:
    """Whether the grid is fine and wide enough. CONFIDENTIAL: the answer is a function of the data,
    and another grid, chosen after a look at this, is a choice that no charge covers."""
    rows = [
        [axis.name, number_text(axis.lower), number_text(axis.upper), str(axis.size),
         number_text(exact.resolution[axis.name])]
        for axis in exact.grid.axes
    ]  # fmt: skip
    header = ["Coordinate", "Lower", "Upper", "Points", "Deviation in cells"]
    coarse = [name for name, cells in exact.resolution.items() if cells < 1]
    return section("exact", tables=[Table(header=header, rows=rows)], exact=exact, coarse=coarse)


def reweighting_section(heading: str, path: Reweighted) -> Section:
    """Bounds and weights before and after, and every step of the search. Confidential."""
    before, after = path.start, path.fit
    scatter = figures.plot_bound_against_weight(
        after.alpha,
        after.bounds.by_record,
        overall=after.bounds.overall,
        before=(before.alpha, before.bounds.by_record, before.bounds.overall),
    )
    rows = [
        [
            str(place),
            str(step.round),
            f"{step.k:.4f}",
            number_text(step.bound),
            number_text(step.efficiency),
            "yes" if step.accepted else "no",
        ]
        for place, step in enumerate(path.steps, start=1)
    ]
    header = ["Step", "Round", "k", "Refitted bound", "Efficiency", "Within"]
    return section(
        "reweighting",
        figures=[scatter, figures.plot_weights_before_after(before.alpha, after.alpha)],
        tables=[Table(header=header, rows=rows, numbers=True)],
        heading=heading, before=before.bounds, after=after.bounds,
    )  # fmt: skip
