"""HTML report of a comparison: charges, estimates and the papers' figures. CONFIDENTIAL."""

from __future__ import annotations

import numpy as np

from pyhybrid.engines import Provenance
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.reports.convergence import convergence_section
from pyhybrid.reports.figures.mechanisms import (
    plot_bound_against_weight,
    plot_bounds,
    plot_intervals,
    plot_mean_density,
    plot_weights,
)
from pyhybrid.reports.numbers import interval_text
from pyhybrid.reports.page import Section, Table, picture_of, render_page
from pyhybrid.reports.reweighting import reweighting_section
from pyhybrid.reports.verdicts import comparison_verdict
from pyhybrid.studies.comparing.comparison import DATA, NOT_COVERED, Comparison, synthetic_means
from pyhybrid.studies.comparing.outcome import outcome_of

__all__ = [
    "charge_name",
    "charges_title",
    "comparison_report",
    "in_lines",
    "statistic_names",
]

_NAMES = {"q15": "15th percentile", "q90": "90th percentile"}


def comparison_report(comparison: Comparison) -> str:
    """Return the report as one HTML file without scripts or references. Confidential."""
    releases = comparison.releases
    sections = [
        comparison_verdict(comparison),
        Section(heading="What this page is", paragraphs=_opening(comparison)),
        _charges(comparison),
        _estimates(comparison),
        _bounds(comparison),
        _weights(comparison),
        *(
            reweighting_section(f"Re-weighting: {name}", release.reweighted)
            for name, release in releases.items()
            if release.reweighted
        ),
        _mean_density(comparison),
        _convergence(comparison),
    ]
    title = f"Comparison of mechanisms: {comparison.outcome}"
    return render_page(title, sections, confidential=True, advice="publish no part of this page")


def _opening(comparison: Comparison) -> list[list[str]]:
    return [[NOT_COVERED], [_sharing(comparison)], [_engine(comparison)]]


def charges_title(comparison: Comparison) -> str:
    """What all charges of a comparison have in common."""
    charge = next(iter(comparison.releases.values())).charge
    sets, draws = charge.n_synthetic, charge.n_draws_released
    kinds = _kinds(comparison)
    kind = kinds.pop() if len(kinds) == 1 else "UNLIKE KINDS, epsilons do not compare"
    return (
        f"{sets} synthetic set{'s' * (sets > 1)} each, from {draws} draw{'s' * (draws > 1)}; "
        f"{kind}; nats"
    )


def statistic_names(comparison: Comparison) -> dict[str, str]:
    """What is estimated, as people call it."""
    return {name: _NAMES.get(name, name) for name in comparison.estimates["statistic"].unique()}


def charge_name(comparison: Comparison, name: str, *, gap: str = "\n") -> str:
    """A mechanism's name, with kind and relation of its charge where they differ."""
    charge = comparison.releases[name].charge
    kind = f"{gap}({_kind(charge)})" if len(_kinds(comparison)) > 1 else ""
    return f"{in_lines(name, gap=gap)}{kind}"


def _kinds(comparison: Comparison) -> set[str]:
    return {_kind(release.charge) for release in comparison.releases.values()}


def _kind(charge: PrivacyCharge) -> str:
    return f"{charge.kind}, {charge.relation} {charge.protected}"


def in_lines(name: str, *, gap: str = "\n") -> str:
    """A mechanism's name with room to break."""
    return name.replace(":", f":{gap}").replace(",", f",{gap}")


def _sharing(comparison: Comparison) -> str:
    return (
        f"Fits made: {comparison.fits_made}. Fits saved by sharing them between the mechanisms: "
        f"{comparison.fits_saved}. Refits that re-weighting saved by importance estimates: "
        f"{comparison.table['refits_saved'].sum()}."
    )


def _charges(comparison: Comparison) -> Section:
    rows = [
        [
            charge_name(comparison, row["mechanism"], gap=" "),
            epsilon_text(float(row["epsilon"])),
            _accounting(comparison.releases[row["mechanism"]].charge),
            f"{row['lipschitz_bound']:.3f}",
            f"{row['efficiency']:.3f}",
            f"{row['effective_sample_size']:,.0f}",
            f"{row['refits']} / {row['refits_saved']}",
        ]
        for _, row in comparison.table.iterrows()
    ]
    caption = (
        f"{charges_title(comparison)}. Smaller bounds and epsilons are safer. Efficiency is the "
        "mean by-record bound over the overall one, at most 1. The effective sample size of the "
        "weights is at most the number of records; larger is better."
    )
    header = ["Mechanism", "Epsilon, all sets", "Accounting", "Bound", "Efficiency",
              "Effective size", "Refits / saved"]  # fmt: skip
    table = Table(caption=caption, header=header, rows=rows, numbers=True)
    return Section(heading="Charges", tables=[table])


def _accounting(charge: PrivacyCharge) -> str:
    """How epsilon was counted: "gaussian, at delta 1e-06"; by the range there is no delta."""
    at = f", at delta {charge.delta:g}" if charge.delta else ""
    return f"{charge.accounting}{at}"


def _estimates(comparison: Comparison) -> Section:
    named = comparison.estimates.assign(
        statistic=comparison.estimates["statistic"].map(statistic_names(comparison))
    )
    by_source = named.set_index(["source", "statistic"])
    statistics = list(statistic_names(comparison).values())
    rows = [
        [
            in_lines(source, gap=" "),
            *(interval_text(by_source.loc[(source, name)]) for name in statistics),
        ]
        for source in (DATA, *comparison.releases)
    ]
    caption = (
        "Estimates with 95 % intervals by resampling; for synthetic data the Wasserstein "
        "barycenter over the sets. Near the data is better."
    )
    picture = picture_of(
        plot_intervals(named, reference=DATA),
        alt="Estimates with intervals of the data and of each mechanism, one panel per statistic.",
        caption="Shaded: the interval of the data.",
    )
    table = Table(caption=caption, header=["Source", *statistics], rows=rows, numbers=True)
    return Section(heading=f"Utility: {comparison.outcome}", pictures=[picture], tables=[table])


def _bounds(comparison: Comparison) -> Section:
    kept = {name: each.confidential for name, each in comparison.releases.items()}
    overall = {in_lines(name): each.lipschitz_bound for name, each in kept.items()}
    figure = plot_bounds(
        {in_lines(name): each.lipschitz for name, each in kept.items()}, overall=overall
    )
    marked = ", ".join(f"{name} {each.lipschitz_bound:.2f}" for name, each in kept.items())
    picture = picture_of(
        figure,
        alt=f"Violins of by-record Lipschitz bounds. Overall bounds in nats: {marked}.",
        caption="The overall bound is set by the tip. A violin with its mass near the tip wastes "
        "little: that is what re-weighting aims at.",
    )
    return Section(heading="By-record bounds", pictures=[picture])


def _weights(comparison: Comparison) -> Section:
    pictures = [
        picture_of(
            plot_weights({name: r.confidential.alpha for name, r in comparison.releases.items()}),
            alt="Histograms of the record weights of each mechanism.",
            caption="Records at exactly 0 and exactly 1 are set apart.",
        )
    ]
    for name, release in comparison.releases.items():
        kept = release.confidential
        if release.reweighted is None and np.ptp(kept.alpha) > 0:
            figure = plot_bound_against_weight(
                kept.alpha, kept.lipschitz, overall=kept.lipschitz_bound
            )
            alt = f"Scatter plot of by-record bound against weight, {name}."
            pictures.append(picture_of(figure, alt=alt, caption=f"{name}: bound against weight."))
    return Section(heading="Record weights", pictures=pictures)


def _mean_density(comparison: Comparison) -> Section:
    means = synthetic_means(comparison)
    varied = {name: draws for name, draws in means.items() if np.ptp(draws) > 0}
    of = outcome_of(comparison.session.bound).of_mean
    heading = f"Density of the {of}"
    if not varied:
        return Section(heading=heading, paragraphs=[["All synthetic means are equal."]])
    picture = picture_of(
        plot_mean_density(varied, label=f"{of} in a synthetic set"),
        alt=f"Densities of the {of}, one curve per mechanism.",
        caption="Over posterior draws: the posterior of the mean, with the noise of simulating "
        "the records of one set.",
    )
    return Section(heading=heading, pictures=[picture])


def _convergence(comparison: Comparison) -> Section:
    fits = {name: release.diagnostics for name, release in comparison.releases.items()}
    return convergence_section(
        {name: found for name, found in fits.items() if found is not None},
        of="the released fits",
    )


def _engine(comparison: Comparison) -> str:
    made = (release.provenance for release in comparison.releases.values())
    engines = (f"{p.engine} {p.engine_version}" for p in made if isinstance(p, Provenance))
    return f"Engine: {', '.join(dict.fromkeys(engines))}."
