"""HTML reports of a comparison of mechanisms and of a risk-utility curve. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyhybrid.engines import Provenance
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.reports import figures, page
from pyhybrid.reports.release import bounds_section, convergence_section, reweighting_section
from pyhybrid.reports.verdicts import comparison_verdict, curve_verdict, judged_cell
from pyhybrid.studies.comparing import curve as curves
from pyhybrid.studies.comparing.comparison import DATA, NOT_COVERED, Comparison

EPSILON_OF_CURVE = (
    "Epsilon of one released draw, twice the Lipschitz bound, asymptotic local, remove one record, "
    "nats."
)
_NAMES = {"q15": "15th percentile", "q90": "90th percentile"}


def comparison_report(comparison: Comparison, facts: Sequence[str] = ()) -> str:
    """Return the report as one HTML file without scripts or references, `facts` below its title.
    Confidential."""
    releases = comparison.releases
    made = (release.provenance for release in releases.values())
    engines = [f"{p.engine} {p.engine_version}" for p in made if isinstance(p, Provenance)]
    fitted = {name: r for name, r in releases.items() if r.fit is not None}
    alphas = {name: release.confidential.alpha for name, release in fitted.items()}
    parts = [
        page.section(
            "comparison", paragraphs=[[NOT_COVERED]], comparison=comparison,
            engines=list(dict.fromkeys(engines)),
        ),
        _charges(comparison),
    ]  # fmt: skip
    if fitted:
        weights = page.section("comparison, weights", figures=[figures.plot_weights(alphas)])
        parts += [bounds_section("comparison, bounds", fitted), weights]
    parts += [
        reweighting_section(f"Re-weighting: {name}", release.reweighted)
        for name, release in fitted.items()
        if release.reweighted
    ]
    sampled = {name: r.diagnostics for name, r in fitted.items() if r.diagnostics is not None}
    if sampled:
        parts.append(convergence_section(sampled, of="the released fits"))
    folded = (replace(part, folded=True) for part in parts)
    sections = [comparison_verdict(comparison), _estimates(comparison), *folded]
    title = f"Comparison of mechanisms: {comparison.outcome}"
    return page.render_page(title, sections, confidential=True, advice=page.NOTHING, facts=facts)


def _charges(comparison: Comparison) -> page.Section:
    names = ["mechanism", "epsilon", "accounting", "delta", "lipschitz_bound", "efficiency",
             "effective_sample_size", "refits"]  # fmt: skip
    charges = [comparison.releases[name].charge for name in comparison.table["mechanism"]]
    shown = comparison.table[names].assign(epsilon=comparison.table["epsilon"].map(epsilon_text))
    shown["kind"] = [f"{c.kind}, {c.relation} {c.protected}" for c in charges]
    return page.section(
        "comparison, charges", tables=[page.frame_table(shown)], sets=charges[-1].n_synthetic,
        draws=charges[-1].n_draws_released,
    )  # fmt: skip


def _estimates(comparison: Comparison) -> page.Section:
    table = comparison.estimates.replace({"statistic": _NAMES})
    names = list(table["statistic"].unique())
    by_source = table.set_index(["source", "statistic"])
    rows = [
        [source, *(page.interval_text(by_source.loc[(source, name)]) for name in names)]
        for source in (DATA, *comparison.releases)
    ]
    return page.section(
        "comparison, estimates",
        figures=[figures.plot_intervals(table, reference=DATA)],
        tables=[page.Table(header=["Source", *names], rows=rows, numbers=True)],
        outcome=comparison.outcome,
    )


_COLUMNS = {
    "mechanism": "", "scale": "scale", "shift": "shift", "epsilon": "epsilon",
    "bound_ratio": "ratio", "max_ecdf": "max-ECDF", "avg_ecdf": "avg-ECDF", "error_mean": "mean",
    "error_median": "median", "error_q15": "15th", "error_q90": "90th",
}  # fmt: skip
"""Columns of the table that are shown, with their headings; the last four are errors."""


def curve_report(curve: curves.RiskUtilityCurve, facts: Sequence[str] = ()) -> str:
    """Return the report as one HTML file without scripts or references, `facts` below its title.
    Confidential."""
    shown = curve.table.assign(epsilon=curve.table["epsilon"].map(epsilon_text))
    rows: list[list[page.Cell]] = [
        [judged_cell(name, row[name]) if name == "max_ecdf" else page.number_text(row[name])
         for name in _COLUMNS]
        for _, row in shown.iterrows()
    ]  # fmt: skip
    table = page.Table(header=list(_COLUMNS.values()), rows=rows, numbers=True)
    about = [[curves.NOT_COVERED]]
    sections = [
        curve_verdict(curve),
        page.section("curve", figures=[figures.plot_curve(curve.table)], paragraphs=about),
        page.section("curve, points", tables=[table], curve=curve, epsilon=EPSILON_OF_CURVE),
    ]
    title = f"Risk and utility: {curve.outcome}"
    return page.render_page(title, sections, confidential=True, advice=page.NOTHING, facts=facts)
