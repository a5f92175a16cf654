"""Sections on fits: disclosure by record, bounds, convergence, re-weighting. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.engines import Diagnostics
from pyhybrid.fitting.exact import ExactPosterior
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.releases.record import Origin, ReleaseRecord
from pyhybrid.reports import figures
from pyhybrid.reports.figures import NORMAL
from pyhybrid.reports.page import Section, Table, frame_table, meanings, number_text, section


def bounds_section(name: str, releases: Mapping[str, ReleaseRecord], **values: Any) -> Section:
    """By-record bounds of each release. Confidential."""
    kept = {key: release.confidential for key, release in releases.items()}
    overall = {key: own.lipschitz_bound for key, own in kept.items()}
    figure = figures.plot_bounds({k: own.lipschitz for k, own in kept.items()}, overall=overall)
    marked = ", ".join(f"{key} {bound:.2f}" for key, bound in overall.items())
    return section(name, figures=[figure], marked=marked, **values)


def estimates_section(release: ReleaseRecord, origin: Origin | None) -> list[Section]:
    """Published estimates beside those of the same model without clip and noise. Confidential."""
    exact = {} if origin is None else origin.without_privacy()
    if release.estimates is None or not exact:
        return []
    published = release.estimates.frame()
    published = published.loc[published.index.isin(list(exact))]
    alone = np.array([exact[name] for name in published.index])
    half = NORMAL * published["std_error_without_noise"].to_numpy()
    compared = published.rename(columns={
        "estimate": "synthetic_estimate", "lower": "synthetic_lower", "upper": "synthetic_upper",
    }).assign(estimate=alone, lower=alone - half, upper=alone + half)  # fmt: skip
    off = (compared["synthetic_estimate"] - compared["estimate"]) / compared["std_error"]
    shown = pd.DataFrame({
        "Coordinate": compared.index, "Without privacy": compared["estimate"],
        "Published": compared["synthetic_estimate"], "lower": compared["synthetic_lower"],
        "upper": compared["synthetic_upper"], "Off, in its errors": off,
    })  # fmt: skip
    figure = figures.plot_forest({"published": compared})
    return [section("published estimates", figures=[figure], tables=[frame_table(shown)])]


def told_section(release: ReleaseRecord) -> list[Section]:
    """Figure and largest of deviation and range by record, and refits; none where these are not
    known, as of a release that was read from a folder or is censored."""
    loss, unit = release.confidential.loss, release.charge.unit
    if loss is None or not np.isfinite(loss.mu) or loss.mu == 0:
        return []
    whose, labels = "record" if unit is None else "unit", release.confidential.labels
    largest, name = float(loss.deviations.max()), release.charge.mechanism
    told = section(
        "told", figures=[figures.plot_told({name: loss.deviations}, charged=largest)],
        largest=largest, n=loss.deviations.size, whose=whose,
        near=int((loss.deviations > largest / 2).sum()),
    )  # fmt: skip
    if not loss.refits:
        return [told]
    refits = pd.DataFrame(
        [(str(labels[i]) if unit is None else f"{unit} number {i + 1}", loss.deviations[i],
          loss.ranges[i], refit.loss) for refit in loss.refits for i in [refit.record]],
        columns=[f"{whose} left out", "deviation", "range", "loss"],
    )  # fmt: skip
    return [told, section("refits", tables=[frame_table(refits)], whose=whose)]


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
    rows = [(axis.name, axis.lower, axis.upper, axis.size, exact.resolution[axis.name])
            for axis in exact.grid.axes]  # fmt: skip
    header = ["Coordinate", "Lower", "Upper", "Points", "Deviation in cells"]
    coarse = [name for name, cells in exact.resolution.items() if cells < 1]
    table = frame_table(pd.DataFrame(rows, columns=header))
    return section("exact", tables=[table], exact=exact, coarse=coarse)


def reweighting_section(heading: str, path: Reweighted) -> Section:
    """Bounds and weights before and after, and every step of the search. Confidential."""
    before, after = path.start, path.fit
    scatter = figures.plot_bound_against_weight(
        after.alpha, after.bounds.by_record, overall=after.bounds.overall,
        before=(before.alpha, before.bounds.by_record, before.bounds.overall),
    )  # fmt: skip
    rows = [(place, step.round, step.k, step.bound, step.efficiency, bool(step.accepted))
            for place, step in enumerate(path.steps, start=1)]  # fmt: skip
    header = ["Step", "Round", "k", "Refitted bound", "Efficiency", "Within"]
    return section(
        "reweighting",
        figures=[scatter, figures.plot_weights_before_after(before.alpha, after.alpha)],
        tables=[frame_table(pd.DataFrame(rows, columns=header))],
        heading=heading, before=before.bounds, after=after.bounds,
    )  # fmt: skip
