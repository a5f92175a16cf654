"""HTML reports of a release: one for its owner, one that may be published.

Both are single files without scripts or references to other files, and depend on nothing but
their arguments. What the public one says comes from the privacy statement alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import pyhybrid
from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Provenance
from pyhybrid.fitting.replicates import joined
from pyhybrid.mechanisms import Unweighted
from pyhybrid.primitives.noise import NoiseProvenance
from pyhybrid.releases.release import Release
from pyhybrid.reports.by_predictor import by_predictor
from pyhybrid.reports.charge_section import charge_section
from pyhybrid.reports.checklist import review_checklist
from pyhybrid.reports.convergence import convergence_section
from pyhybrid.reports.exact import exact_section
from pyhybrid.reports.figures.mechanisms import (
    plot_bound_against_weight,
    plot_bounds,
    plot_distributions,
    plot_weights,
)
from pyhybrid.reports.level_parts import level_picture, level_table
from pyhybrid.reports.numbers import number_text, setting_text
from pyhybrid.reports.page import Picture, Section, Table, picture_of, render_page
from pyhybrid.reports.predictive import predictive_section
from pyhybrid.reports.record_loss import told_section
from pyhybrid.reports.refit_loss import loss_section
from pyhybrid.reports.reweighting import reweighting_section
from pyhybrid.reports.side_by_side import side_by_side
from pyhybrid.reports.statement import statement_sections, without_steps
from pyhybrid.reports.steps import steps_section
from pyhybrid.reports.verdict import verdict_section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["numeric_values", "public_report", "release_pages", "release_report"]

_RARE = "Rare levels carry the most risk and tend to weigh least."
_STATISTICS = {"mean": None, "median": 0.5, "15th percentile": 0.15, "90th percentile": 0.9}


def release_pages(release: Release) -> dict[str, str]:
    """The owner's pages of a release by file name, as `Release.save` writes them. CONFIDENTIAL.

    The unweighted release stands beside it where that fit was made anyway, and each step of a
    sequence has a page of its own. A release that was loaded has no data, and the checklist alone.
    """
    checklist = {"checklist.html": review_checklist(release)}
    if release.origin is None:
        return checklist
    data = release.origin.data
    pages = {"report.html": release_report(release, data, baseline=_baseline(release))}
    for place, (columns, step) in enumerate(release.steps.items(), start=1):
        title = f"Step {place} of {len(release.parts)}: {columns}"
        pages[f"report_step_{place}.html"] = release_report(step, data, title=title)
    return {**pages, **checklist}


def _baseline(release: Release) -> Release | None:
    """The unweighted release, of as many sets and draws, so that the epsilons can be compared."""
    origin, charge = release.origin, release.charge
    if origin is None or origin.model is None or charge.mechanism == "Unweighted":
        return None
    if origin.session is None or not origin.session.holds_unweighted:
        return None
    # A copy, as a release from the session itself would take other draws each time.
    session = origin.session.for_report()
    beside = Unweighted(origin.model, relation=charge.relation, unit=charge.unit)
    return beside.release_from(
        session, n_synthetic=charge.n_synthetic, n_draws_released=charge.n_draws_released
    )


def release_report(
    release: Release,
    data: pd.DataFrame,
    *,
    baseline: Release | None = None,
    title: str = "Release report",
) -> str:
    """Return the owner's report as one HTML file. CONFIDENTIAL: shows weights, bounds and data.

    Parameters
    ----------
    release : Release
        What is reported on.
    data : DataFrame
        The confidential records, in the order of the release.
    baseline : Release, optional
        Another release from the same records, such as Unweighted, shown beside it.
    title : str
        Of the page; names the step of a sequence.

    Returns
    -------
    str
        HTML without scripts or references; images are inlined. The seed is not in it.

    Raises
    ------
    InvalidInput
        If `data` or `baseline` have other records or lack a synthesized column.
    """
    statement, note = release.statement, [[_STATEMENT_NOTE]]
    if release.origin is not None and release.origin.compared is not None:
        release = replace(release, synthetic=list(release.origin.compared))
        note.append([_ROWS_NOTE])
    _check_records(release, data, baseline)
    release = _beside(release, data)
    releases = _by_name(release, baseline)
    sections = [
        verdict_section(release, data),
        Section(heading="Privacy statement", paragraphs=note),
        *without_steps(release, statement_sections(statement, level=3)),
        *side_by_side(dict(reversed(releases.items())), data),
        charge_section(releases),
        *steps_section(release),
        *told_section(releases),
        *loss_section(release),
        *([_bounds(release, releases), _weights(release, releases)] if _is_fitted(release) else []),
        *_reweighting(release),
        *(_outcome(column, data, releases) for column in release.synthesized),
        *by_predictor(release, data),
        *predictive_section(release),
        *_convergence(release),
        _provenance(release),
    ]
    return render_page(title, sections, confidential=True)


def public_report(release: Release) -> str:
    """Return the privacy statement as one HTML file, fit to be published.

    It is made of ``release.statement`` and nothing else: no weight, no bound, no seed.
    """
    return render_page(
        "Privacy statement", statement_sections(release.statement, level=2), confidential=False
    )


_STATEMENT_NOTE = (
    "This part, and only this part, is also in public/privacy_statement.md and may be published."
)
_ROWS_NOTE = (
    "Other rows were drawn for the files that are released. This page compares the data with the "
    "synthetic sets as they were before, row by row."
)


def _beside(release: Release, data: pd.DataFrame) -> Release:
    """The release with all other columns as they are in the data: some are left out of what is
    published, or are numbers there, or text of a file."""
    own = [table[list(release.synthesized)].set_axis(data.index) for table in release.synthetic]
    return replace(release, synthetic=[joined(data, table) for table in own])


def _check_records(release: Release, data: pd.DataFrame, baseline: Release | None) -> None:
    n = len(release.synthetic[0])
    if len(data) != n:
        raise InvalidInput(f"data must have the {n} records of the release: found {len(data)}")
    missing = [column for column in release.synthesized if column not in data.columns]
    if missing:
        raise InvalidInput(f"data must have the synthesized columns: {missing[0]!r} is not in them")
    if baseline is None:
        return
    if len(baseline.synthetic[0]) != n or baseline.synthesized != release.synthesized:
        raise InvalidInput("baseline must be a release of the same columns of the same records")
    if _is_fitted(baseline) != _is_fitted(release):
        raise InvalidInput("baseline must come from a fitted model if, and only if, release does")


def _is_fitted(release: Release) -> bool:
    """False for a mechanism without record weights and bounds."""
    return release.confidential.alpha.size > 0


def _by_name(release: Release, baseline: Release | None) -> dict[str, Release]:
    """Releases by the name of their mechanism, the baseline first."""
    name = release.charge.mechanism
    if baseline is None:
        return {name: release}
    other = baseline.charge.mechanism
    return {f"{other} (baseline)" if other == name else other: baseline, name: release}


def _bounds(release: Release, releases: Mapping[str, Release]) -> Section:
    kept = {name: each.confidential for name, each in releases.items()}
    bound = release.confidential.lipschitz_bound
    finite = release.confidential.lipschitz[np.isfinite(release.confidential.lipschitz)]
    efficiency = float(finite.mean()) / bound if bound > 0 else 1.0
    overall = {name: each.lipschitz_bound for name, each in kept.items()}
    marked = ", ".join(f"{name} {value:.2f}" for name, value in overall.items())
    picture = picture_of(
        plot_bounds({name: each.lipschitz for name, each in kept.items()}, overall=overall),
        alt=f"Violin plot of by-record Lipschitz bounds. Overall bounds in nats: {marked}.",
        caption="Width shows how many records have a bound of that size. The overall bound, and "
        "with it epsilon, is set by the few records at the tip.",
    )
    text = (
        f"The overall bound of one released draw is {number_text(bound)} nats. The mean by-record "
        f"bound is {efficiency:.0%} of it. This efficiency is at most 100 %; a low one leaves "
        "room to give records of weight below 1 more of it at the same epsilon, as re-weighting "
        "does."
    )
    return Section(heading="By-record bounds", paragraphs=[[text]], pictures=[picture])


def _weights(release: Release, releases: Mapping[str, Release]) -> Section:
    kept = release.confidential
    zero, one = int((kept.alpha == 0).sum()), int((kept.alpha == 1).sum())
    masses = f"{zero:,} of weight exactly 0, {one:,} of weight exactly 1"
    pictures = [
        picture_of(
            plot_weights({name: each.confidential.alpha for name, each in releases.items()}),
            alt=f"Histogram of record weights of {release.charge.mechanism}: {masses}.",
            caption=f"{kept.alpha.size:,} records, {masses}; the mean weight is "
            f"{kept.alpha.mean():.3f}. A record of weight 0 does not inform the model at all, one "
            "of weight 1 as fully as in an unweighted fit.",
        )
    ]
    if np.ptp(kept.alpha) > 0:
        pictures.append(
            picture_of(
                plot_bound_against_weight(kept.alpha, kept.lipschitz, overall=kept.lipschitz_bound),
                alt="Scatter plot of by-record bound against record weight with the overall bound.",
                caption="Records on the dashed line set epsilon. Those far below it, to the left "
                "of weight 1, could carry more weight at the same epsilon.",
            )
        )
    below = float((kept.alpha < 1).mean())
    share = (
        f"{below:.1%} of the weights are below 1. That the local guarantee becomes one for all "
        "databases, and that what is estimated stays right, rests on this share vanishing as the "
        "number of records grows [Savitsky, Williams, Hu (2022), assumption 4]: compare it with "
        "that of an earlier or smaller database."
    )
    return Section(heading="Record weights", paragraphs=[[share]], pictures=pictures)


def _reweighting(release: Release) -> list[Section]:
    path = release.reweighted
    return [] if path is None else [reweighting_section("Re-weighting", path)]


def _outcome(column: str, data: pd.DataFrame, releases: Mapping[str, Release]) -> Section:
    """Figure and table of one synthesized column, data against synthetic sets."""
    heading = f"Data against synthetic data: {column}"
    truth = numeric_values(data[column])
    sets = {
        name: [numeric_values(table[column]) for table in each.synthetic]
        for name, each in releases.items()
    }
    everything = [truth, *(values for each in sets.values() for values in each)]
    if not all(values.size for values in everything):
        synthetic = {
            name: [table[column] for table in each.synthetic] for name, each in releases.items()
        }
        picture = level_picture(column, data[column], synthetic, advice=_RARE)
        table = level_table(column, data[column], synthetic)
        return Section(heading=heading, pictures=[picture], tables=[table])
    whole = all((values == np.floor(values)).all() for values in everything)
    pictures = []
    if whole or all(np.ptp(values) > 0 for values in everything):
        scale = "log" if truth.max() > 3 * np.quantile(truth, 0.9) else "linear"
        figure = plot_distributions(truth, sets, discrete=whole, scale=scale, label=column)
        pictures = [_distribution_picture(figure, column, whole)]
    return Section(heading=heading, pictures=pictures, tables=[_statistics(truth, sets)])


def _distribution_picture(figure: Figure, column: str, whole: bool) -> Picture:
    kind = "Relative frequencies" if whole else "Density and distribution function"
    return picture_of(
        figure,
        alt=f"{kind} of {column} in the data and in the synthetic sets.",
        caption="Where a line leaves the data, the synthetic sets distort the distribution; "
        "the shaded range shows how far the sets differ from each other. Look at the tails first: "
        "rare values carry the most risk and tend to weigh least.",
    )


def _statistics(truth: FloatArray, sets: Mapping[str, Sequence[FloatArray]]) -> Table:
    *others, own = sets
    target = _summary(truth)
    rows = [["data", *_compared(target, None)]]
    found = [_summary(values) for values in sets[own]]
    rows += [[f"set {i}", *_compared(each, target)] for i, each in enumerate(found, start=1)]
    for name in [own, *others]:
        mean = np.mean([_summary(values) for values in sets[name]], axis=0)
        rows.append([f"{name}, mean of {len(sets[name])}", *_compared(mean, target)])
    header = [""]
    for name in _STATISTICS:
        header += [name, f"{name.removesuffix(' percentile')} absolute error"]
    caption = "Summaries of data and synthetic sets. Absolute error: difference from the data, "
    caption += "in the unit of the outcome; from 0, smaller is better."
    return Table(caption=caption, header=header, rows=rows, numbers=True)


def _summary(values: FloatArray) -> FloatArray:
    """Mean, median, 15th and 90th percentile, shape (4,)."""
    return np.array(
        [values.mean() if q is None else np.quantile(values, q) for q in _STATISTICS.values()]
    )


def _compared(summary: FloatArray, target: FloatArray | None) -> list[str]:
    """Cells of a row: each statistic and how far it is off."""
    off = (
        ["–"] * summary.size if target is None else [number_text(x) for x in abs(summary - target)]
    )
    return [cell for pair in zip(map(number_text, summary), off, strict=True) for cell in pair]


def numeric_values(column: pd.Series) -> FloatArray:
    """Finite values of a column of numbers, shape (k,); none if it holds anything else."""
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        return np.empty(0)
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    if numbers.notna().sum() < column.notna().sum():
        return np.empty(0)
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(values[np.isfinite(values)])


def _convergence(release: Release) -> list[Section]:
    found = release.diagnostics
    if release.fit is not None and release.fit.exact is not None:
        return [exact_section(release.fit.exact)]
    return [] if found is None else [convergence_section({release.charge.mechanism: found})]


def _provenance(release: Release) -> Section:
    rows = {
        "pyhybrid": pyhybrid.__version__,
        **_made_by(release.provenance),
        **{name: setting_text(value) for name, value in release.settings.items()},
        "seed": "set by hand" if release.seeded else "from the operating system's entropy",
    }
    said = [(name, value) for name, value in rows.items() if value != _NOTHING]
    table = Table(caption="What made the draws.", header=["What", "Value"], rows=said)
    text = "The seed itself is in run.json beside this report and must stay there: whoever knows "
    text += "it can recompute the release from guesses of the data."
    return Section(heading="Provenance", paragraphs=[[text]], tables=[table])


_NOTHING = number_text(None)  # of a setting that was not given: no row


def _made_by(made: Provenance | NoiseProvenance) -> dict[str, str]:
    if isinstance(made, NoiseProvenance):
        return {"noise": made.noise, "library": f"{made.library} {made.version}"}
    if made.engine == "exact":
        return {"drawn by": f"the exponential mechanism of {made.engine_version}"}
    return {
        "engine": f"{made.engine} {made.engine_version}",
        "program": f"stan/{made.program}.stan",
        "program sha256": made.program_sha256,
        **{f.name: number_text(getattr(made.settings, f.name)) for f in fields(made.settings)},
        "seconds": f"{made.seconds:.2f}",
        "notes": "; ".join(made.notes) or "none",
    }
