"""HTML reports of a release: one for its owner, one that may be published.

Both are single files without scripts or references to other files, and depend on nothing but
their arguments. What the public one says comes from the privacy statement alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np
import pandas as pd

import pyhybrid
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Provenance
from pyhybrid.fitting.replicates import joined
from pyhybrid.mechanisms import Unweighted
from pyhybrid.primitives.library import NoiseProvenance
from pyhybrid.privacy.epsilon import epsilon_text
from pyhybrid.releases.record import ReleaseRecord
from pyhybrid.releases.release import Release
from pyhybrid.reports.checklist import review_checklist
from pyhybrid.reports.columns import (
    by_predictor,
    column_section,
    lost_relations,
    predictive_section,
)
from pyhybrid.reports.figures.mechanisms import (
    plot_bound_against_weight,
    plot_bounds,
    plot_weights,
)
from pyhybrid.reports.fits import convergence_section, exact_section, reweighting_section
from pyhybrid.reports.page import (
    Cell,
    Marked,
    Section,
    Table,
    number_text,
    picture_of,
    render_page,
    setting_text,
    statement_sections,
    without_steps,
)
from pyhybrid.reports.record_loss import loss_section, told_section
from pyhybrid.reports.side_by_side import side_by_side
from pyhybrid.reports.verdicts import verdict_section

__all__ = ["public_report", "release_pages", "release_report"]


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
        verdict_section(release, data, lost_relations(release, data)),
        Section(heading="Privacy statement", paragraphs=note),
        *without_steps(release, statement_sections(statement, level=3)),
        *side_by_side(dict(reversed(releases.items())), data),
        charge_section(releases),
        *steps_section(release),
        *told_section(releases),
        *loss_section(release),
        *([_bounds(release, releases), _weights(release, releases)] if _is_fitted(release) else []),
        *_reweighting(release),
        *(column_section(column, data, releases) for column in release.synthesized),
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


_CHARGE = {
    "mechanism": "How the record weights come from the data.",
    "epsilon": "Privacy loss of all released data sets together, nats, rounded up. From 0; smaller "
    "is safer.",
    "accounting": "How epsilon was counted. Gaussian: by how much a record's log-likelihood varies "
    "over the posterior, an epsilon at delta. Range: by how far it moves at most. Lipschitz: by "
    "how large it is, as in the papers. The two other numbers stand below.",
    "delta": "Probability by which the factor exp(epsilon) may be exceeded, a public number in "
    "[0, 1 / n); 0 but for Gaussian accounting and Gaussian noise. Smaller is safer.",
    "rho": "Zero-concentrated privacy of the noise, nats: rho of several releases adds. From 0; "
    "smaller is safer.",
    "epsilon_range": "Epsilon of the same release by range accounting, without a delta.",
    "epsilon_lipschitz": "Epsilon of the same release by the papers' accounting, 2 Δ for a draw.",
    "mu": "What one draw tells of the record it tells most of, in the way that a normal value with "
    "deviation 1 tells whether its mean is 0 or mu: the upper end. From 0; below 0.5 little, "
    "above 3 nearly all. Draws add by squares.",
    "mu_standard_error": "Monte Carlo standard error of mu. More draws make it smaller.",
    "loss_range": "Confidential. Largest range R of any record's weighted log-likelihood over the "
    "draws, nats. From 0; smaller is safer.",
    "support": "Declared records that could have been; epsilon, bound, range and mu are then the "
    "largest over them and over the records present.",
    "epsilon_present": "Epsilon of the records present alone, where a support is declared.",
    "mu_present": "Mu of the records present alone, where a support is declared.",
    "kind": "Asymptotic local: holds for this database and contracts to a global guarantee as the "
    "number of records grows. Strict: holds for every database.",
    "relation": "Neighboring databases of the guarantee: one record removed, or one replaced.",
    "n_synthetic": "Synthetic data sets released, m. From 1.",
    "n_draws_released": "Posterior draws the sets were simulated from: 1 or m. Epsilon grows in "
    "proportion to it, by Gaussian accounting about as its square root.",
    "bound": "Confidential. Overall Lipschitz bound Δ of one draw, nats: the largest absolute "
    "weighted log-likelihood of any record in any draw. From 0; smaller is safer.",
    "n_draws": "Posterior draws S from which the bound was computed. More draws come nearer to the "
    "largest possible bound, from below.",
    "draw_quantile": "Share of draws kept, in (0, 1]. Below 1 the bound may fail, with the "
    "probability that the statement gives.",
    "cap": "Largest log-likelihood of a record, M, nats, if it was censored or truncated. Smaller "
    "is safer.",
    "safety_factor": "Factor s in epsilon, from 1, that turns a local bound into a global one. "
    "Larger is safer.",
    "density_above_one": "Whether a record's term can be above 0, as densities and terms less a "
    "center can; the replace relation then costs twice as much by the Lipschitz bound.",
    "converged": "Whether the sampler met the convergence rule. If not, epsilon may be too small.",
}
_WITHOUT_FIT = {
    "mechanism": "What made the sets: no model, and no record weights.",
    "n_draws_released": "Noisy histograms the sets were drawn from. Epsilon grows in proportion to "
    "it.",
    "bound": "Half the epsilon of one noisy histogram, nats. From 0; smaller is safer.",
}
_OF_STEPS = {
    "mechanism": "What made the sets: the steps of a sequence, each with a mechanism of its own.",
    "n_draws_released": "Posterior draws of each step that the sets were simulated from: 1 or m.",
    "bound": "Confidential. Overall Lipschitz bound Δ of one draw of all steps, nats: the sum over "
    "the steps. From 0; smaller is safer.",
}
_OF_SUPPORTS = {"support", "epsilon_present", "mu_present"}
_OF_RHO = {"delta", "rho"}
_OF_FITS = {
    "accounting",
    "delta",
    "epsilon_range",
    "epsilon_lipschitz",
    "mu",
    "mu_standard_error",
    "loss_range",
    "support",
    "epsilon_present",
    "mu_present",
    "n_draws",
    "draw_quantile",
    "cap",
    "safety_factor",
    "density_above_one",
    "converged",
}


def charge_section(releases: Mapping[str, Release]) -> Section:
    """The table of the charges, the last release first."""
    charges = [release.charge for release in releases.values()][::-1]
    fitted = any(release.confidential.alpha.size > 0 for release in releases.values())
    stepped = any(release.parts for release in releases.values())
    meanings = _CHARGE if fitted else {**_CHARGE, **(_OF_STEPS if stepped else _WITHOUT_FIT)}
    declared = any(charge.support is not None for charge in charges)
    show = dict.fromkeys(("epsilon", "epsilon_range", "epsilon_lipschitz"), _cost_text)
    by_rho = any(charge.rho is not None for charge in charges)
    shown = {
        field
        for field in meanings
        if (fitted or stepped or field not in _OF_FITS) and (declared or field not in _OF_SUPPORTS)
    }
    shown = shown | _OF_RHO if by_rho else shown - {"rho"}
    rows = [
        [
            field,
            *(show.get(field, number_text)(getattr(charge, field)) for charge in charges),
            meaning,
        ]
        for field, meaning in meanings.items()
        if field in shown
    ]
    table = Table(
        caption="The privacy charge. Every number, its range and its direction.",
        header=["Quantity", *list(releases)[::-1], "What it is"],
        rows=rows,
    )
    return Section(heading="Privacy charge", tables=[table])


def _cost_text(epsilon: float | None) -> str:
    return "–" if epsilon is None else str(epsilon)


_HEADER = ("Column", "Mechanism", "Model", "Epsilon", "Bound, nats", "Mean weight", "R-hat",
           "Effective sample", "Divergent", "Seconds")  # fmt: skip


def steps_section(release: Release) -> list[Section]:
    """The table of the steps, in their order; none of a release of one step."""
    if not release.parts:
        return []
    rows = [_row(columns, step) for columns, step in release.steps.items()]
    table = Table(
        caption="Steps, in their order. Confidential: bounds and weights. Effective sample: the "
        "smallest, for means.",
        header=_HEADER,
        rows=rows,
        numbers=True,
    )
    made = Table(
        caption=f"How each step was made. The same in all: {_shared(release) or 'nothing'}.",
        header=["Column", "Formula", "Program", "Weights", "Draws", "Other settings"],
        rows=[_made(columns, step, _common(release)) for columns, step in release.steps.items()],
    )
    text = "Each step has a page of its own beside this one, report_step_1.html and so on."
    return [Section(heading="Steps of the sequence", paragraphs=[[text]], tables=[table, made])]


_OWN_COLUMNS = ("formula", "model", "mechanism")
Settings = dict[str, str]


def _settings(step: ReleaseRecord) -> Settings:
    """Settings as people write them, without those that were not given."""
    shown = {name: setting_text(value) for name, value in step.settings.items()}
    return {name: text for name, text in shown.items() if text != number_text(None)}


def _common(release: Release) -> Settings:
    """Settings that all steps have alike."""
    first, *others = (_settings(step) for step in release.steps.values())
    alike = {k: v for k, v in first.items() if all(other.get(k) == v for other in others)}
    return {k: v for k, v in alike.items() if k not in _OWN_COLUMNS}


def _shared(release: Release) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in _common(release).items())


def _made(columns: str, step: ReleaseRecord, common: Settings) -> list[Cell]:
    made, alpha, own = step.provenance, step.confidential.alpha, _settings(step)
    program, chains = "–", "–"
    if isinstance(made, Provenance):
        program = f"{made.program}.stan" if made.program else "–"
        chains = f"{made.settings.chains} chains of {made.settings.draws:,}"
    other = {k: v for k, v in own.items() if k not in common and k not in _OWN_COLUMNS}
    return [
        columns,
        own.get("formula", "–"),
        program,
        f"{alpha.min():.3f} to {alpha.max():.3f}" if alpha.size else "–",
        chains,
        ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in other.items()) or "–",
    ]


def _row(columns: str, step: ReleaseRecord) -> list[Cell]:
    kept, made, found = step.confidential, step.provenance, step.diagnostics
    fit: list[Cell] = ["–", "–", "–"]
    if found is not None:
        rhat = number_text(found.max_rhat)
        fit = [
            rhat if found.converged else Marked(text=rhat, word="POOR"),
            f"{found.min_ess_bulk:,.0f}",
            number_text(found.n_divergent),
        ]
    seconds = isinstance(made, Provenance) and made.seconds > 0
    return [
        columns,
        step.charge.mechanism,
        str(step.settings.get("model", "–")),
        epsilon_text(step.charge.epsilon),
        number_text(kept.lipschitz_bound),
        f"{kept.alpha.mean():.3f}" if kept.alpha.size else "–",
        *fit,
        f"{made.seconds:.2f}" if seconds and isinstance(made, Provenance) else "–",
    ]
