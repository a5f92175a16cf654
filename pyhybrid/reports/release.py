"""The owner's HTML report of a release: a single file without scripts or references to other
files, which depends on nothing but its arguments; sections on its  CONFIDENTIAL."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import unescape
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Diagnostics
from pyhybrid.fitting.exact import ExactPosterior
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.models.columns.kinds import kind_from_dict
from pyhybrid.models.formula.values import with_columns
from pyhybrid.releases.record import Origin, ReleaseRecord
from pyhybrid.releases.release import Release
from pyhybrid.reports import columns as by_column
from pyhybrid.reports import figures, page, verdicts
from pyhybrid.reports.checklist import review_checklist

_SETS = 3
_FEW = 6  # columns whose cards show values


def release_pages(release: Release, *, in_ledger: bool = False) -> dict[str, str]:
    """The owner's pages of a release by file name, as `Release.save` writes them. CONFIDENTIAL.

    A release that was loaded has no data, and the checklist alone.
    """
    checklist = {"checklist.html": review_checklist(release, in_ledger=in_ledger)}
    if release.origin is None:
        return checklist
    named = release.origin.table
    release, data = with_days(release, release.origin.data)
    return {"report.html": release_report(release, data, table=named), **checklist}


def with_days(release: Release, data: pd.DataFrame) -> tuple[Release, pd.DataFrame]:
    """Both with columns of dates as numbers, steps (days, seconds) since their first one."""
    domain = release.settings.get("domain", {})
    forms: dict[str, Any] = {name: kind_from_dict(cells["dates"]) for name, cells in domain.items()
             if isinstance(cells, Mapping) and "dates" in cells}  # fmt: skip

    def counted(table: pd.DataFrame) -> pd.DataFrame:
        steps = {name: pd.Series(form.numbers(table[name]), index=table.index)
                 for name, form in forms.items() if name in table}  # fmt: skip
        return with_columns(table, {name: own.where(own >= 0) for name, own in steps.items()})

    if not forms:
        return release, data
    return replace(release, synthetic=[*map(counted, release.synthetic)]), counted(data)


def release_report(release: Release, data: pd.DataFrame, *, table: str = "") -> str:
    """Return the owner's report as one HTML file, images inlined. CONFIDENTIAL: shows weights,
    bounds and data, but not the seed. `table` is the name of the file."""
    release = beside_data(release, data)
    judged, ratios = verdicts.judged_columns(release, data), by_column.pair_ratios(release, data)
    top = verdicts.verdict_section(release, judged, by_column.damaged_pairs(ratios))
    limits = verdicts.limits_text(one.measure for measures in judged.values() for one in measures)
    about = page.sentence("at a glance", "text", few=release.charge.n_synthetic > 1,
                     sets=min(3, len(release.synthetic)), limits=limits)  # fmt: skip
    mechanism = release.charge.mechanism
    columns = [
        by_column.column_section(
            name, data[name], [table[name] for table in release.synthetic], mechanism
        )
        for name in release.synthesized
    ]
    marks = [page.Section(tables=[verdicts.judged_table(judged)])] if judged else []
    kept = {} if release.origin is None else release.origin.relations
    rows = [[text, f"{of_data:.1%}", f"{of_rows:.1%}"] for text, (of_data, of_rows) in kept.items()]
    header = ("relation", "records that keep it", "synthetic rows")
    relations = [page.section("relations", tables=[page.Table(header=header, rows=rows)])]
    estimates, of_records, convergence = (
        [
            replace(part, heading=f"{part.heading}: {', '.join(step.synthesized)}")
            if release.parts else part
            for step, origin in _steps(release) for part in sections(step, origin)
        ]
        for sections in (estimates_section, _of_records, _convergence)
    )  # fmt: skip
    sections = [
        replace(top, cards=cards_of(judged, release, data), paragraphs=[[about], *top.paragraphs]),
        *(relations if rows else []),
        *by_column.repeated_section(release, data),
        *by_column.pairs_section(ratios),
        page.folded("Each column", [*marks, *columns]),
        *(replace(part, folded=True) for part in estimates),
        page.folded("Privacy charge and single records", [charge_section(release), *of_records]),
        replace(page.section("statement"), folded=True, markdown=unescape(release.statement)),
        *([page.folded("How it was made", convergence)] if convergence else []),
    ]
    facts = facts_of(release, data, table)
    return page.render_page("Release report", sections, confidential=True, facts=facts)


def _steps(release: Release) -> list[tuple[ReleaseRecord, Origin | None]]:
    """Each step of a sequence, or the release, with what it comes from."""
    if not release.parts:
        return [(release, release.origin)]
    origins = release.origin.steps if release.origin else ()
    return list(itertools.zip_longest(release.parts, origins))


def beside_data(release: Release, data: pd.DataFrame) -> Release:
    """The release with other columns as they are in the data: some are left out of what is
    published, or are numbers there, or text of a file."""
    n = len(release.synthetic[0])
    if len(data) != n:
        raise InvalidInput(f"data must have the {n} records of the release: found {len(data)}")
    missing = [column for column in release.synthesized if column not in data.columns]
    if missing:
        raise InvalidInput(f"data must have the synthesized columns: {missing[0]!r} is not in it")
    columns = list(release.synthesized)
    tables = [table[columns].set_axis(data.index) for table in release.synthetic]
    return replace(release, synthetic=[joined(data, table) for table in tables])


def _of_records(release: ReleaseRecord, _: Origin | None) -> list[page.Section]:
    """What a draw discloses by record; bounds and weights of a fit, and how they were found."""
    kept, sections, name = release.confidential, told_section(release), release.charge.mechanism
    if not kept.alpha.size:
        return sections
    bound, finite = kept.lipschitz_bound, kept.lipschitz[np.isfinite(kept.lipschitz)]
    efficiency = float(finite.mean()) / bound if bound > 0 else 1.0
    violin = figures.plot_bounds({name: kept.lipschitz}, overall={name: bound})
    drawn = [figures.plot_weights({name: kept.alpha})]
    if np.ptp(kept.alpha) > 0:
        drawn.append(figures.plot_bound_against_weight(kept.alpha, kept.lipschitz, overall=bound))
    sections += [
        page.section("bounds", figures=[violin], bound=bound, efficiency=efficiency),
        page.section("weights", figures=drawn, alpha=kept.alpha, mechanism=name),
    ]
    if release.reweighted is not None:
        sections.append(reweighting_section(release.reweighted))
    return sections


def _convergence(release: ReleaseRecord, _: Origin | None) -> list[page.Section]:
    found = release.diagnostics
    if release.fit is not None and release.fit.exact is not None:
        return [exact_section(release.fit.exact)]
    return [] if found is None else [convergence_section(found)]


def charge_section(release: Release) -> page.Section:
    """The table of the charge: what is of use for it, explained."""
    charge, about = release.charge, page.meanings("charge")
    of_fits = page.meanings("charge of fits")
    if release.confidential.alpha.size or release.parts:
        about |= of_fits
    if charge.accounting == "zcdp":
        about["delta"] = of_fits["delta"]
    else:
        del about["rho"]
    rows = []
    for field, text in about.items():
        value = getattr(charge, field)
        exact = field.startswith("epsilon") and value is not None
        rows.append(
            [field, str(value) if exact else page.number_text(value).replace("none", "–"), text]
        )
    header = ["Quantity", charge.mechanism, "What it is"]
    return page.section("charges", tables=[page.Table(header=header, rows=rows)])


def facts_of(release: Release, data: pd.DataFrame, table: str) -> list[str]:
    """The line below the title: date, table, model and mechanism, sets, epsilon."""
    charge = release.charge
    named = [step.settings for step in release.parts or (release,)]
    models = {str(s.get("value", s).get("model")) for s in named}  # "value" if some are missing
    models -= {"None", charge.mechanism}
    made = " and ".join(sorted(models)[:3])
    by = f"{made} by {charge.mechanism}" if made else charge.mechanism
    known = [*page.facts_of_table(table, *data.shape), by]
    return [*known, number_of(charge.n_synthetic, "synthetic set"), f"{charge.cost}, {charge.kind}"]


def cards_of(
    judged: Mapping[str, Sequence[verdicts.Judged]], release: Release, data: pd.DataFrame
) -> list[page.Card]:
    """A small picture of each column with the worst of its words."""
    few, cards = len(judged) <= _FEW, []
    for column, measures in judged.items():
        sets = [table[column] for table in release.synthetic[:_SETS]]
        figure = by_column.small_figure(data[column], sets)
        shown = measures[: len(measures) if len(judged) == 1 else few]
        cards.append(page.Card(
            name=column, word=verdicts.worst_word(measures),
            picture=page.picture_of(figure, alt=page.sentence("at a glance", "alt", column=column)),
            values=[(m.label, page.Marked(text=m.text, word=m.word)) for m in shown],
        ))  # fmt: skip
    return cards


def estimates_section(release: ReleaseRecord, origin: Origin | None) -> list[page.Section]:
    """Published estimates beside those of the same model without clip and noise. Confidential."""
    exact = {} if origin is None else origin.without_privacy()
    if release.estimates is None or not exact:
        return []
    published = release.estimates.frame()
    published = published.loc[published.index.isin(list(exact))]
    alone = np.array([exact[name] for name in published.index])
    half = figures.NORMAL * published["std_error_without_noise"].to_numpy()
    compared = published.rename(columns={
        "estimate": "synthetic_estimate", "lower": "synthetic_lower", "upper": "synthetic_upper",
    }).assign(estimate=alone, lower=alone - half, upper=alone + half)  # fmt: skip
    off = (compared["synthetic_estimate"] - compared["estimate"]) / compared["std_error"]
    shown = pd.DataFrame({
        "Coordinate": compared.index, "Without privacy": compared["estimate"],
        "Published": compared["synthetic_estimate"], "lower": compared["synthetic_lower"],
        "upper": compared["synthetic_upper"], "Off, in its errors": off,
    })  # fmt: skip
    figure = figures.plot_forest(compared, "published")
    return [page.section("published estimates", figures=[figure], tables=[page.frame_table(shown)])]


def told_section(release: ReleaseRecord) -> list[page.Section]:
    """Figure and largest of the deviations by record; none where these are not known, as of a
    release that was read from a folder or is censored."""
    loss, unit = release.confidential.loss, release.charge.unit
    if loss is None or not np.isfinite(loss.mu) or loss.mu == 0:
        return []
    largest, name = float(loss.deviations.max()), release.charge.mechanism
    section = page.section(
        "told", figures=[figures.plot_told({name: loss.deviations}, charged=largest)],
        largest=largest, n=loss.deviations.size, whose="record" if unit is None else "unit",
        near=int((loss.deviations > largest / 2).sum()), refits=len(loss.refits),
    )  # fmt: skip
    return [section]


def convergence_section(found: Diagnostics, *, of: str = "the released fit") -> page.Section:
    """Worst values over all scalar quantities of a fit, by what `of` says was fitted."""
    said = f"The chains {'converged' if found.converged else 'HAVE NOT CONVERGED'}."
    rows = [
        [field, page.number_text(getattr(found, field)), about]
        for field, about in page.meanings("diagnostics").items()
        if getattr(found, field) is not None
    ]
    return page.section(
        "convergence", paragraphs=[[said], *([problem] for problem in found.problems)],
        tables=[page.Table(header=["Diagnostic", "Value", "What it is"], rows=rows)],
        of=of, rule=found.rule.describe(),
    )  # fmt: skip


def exact_section(exact: ExactPosterior) -> page.Section:
    """Whether the grid is fine and wide enough. CONFIDENTIAL: the answer is a function of the data,
    and another grid, chosen after a look at this, is a choice that no charge covers."""
    coarse = [name for name, cells in exact.resolution.items() if cells < 1]
    edge = float(1 - exact.mass[tuple(slice(1, -1) for _ in exact.grid.axes)].sum())
    return page.section("exact", exact=exact, coarse=coarse, edge=edge)


def reweighting_section(path: Reweighted) -> page.Section:
    """Bounds and weights before and after, and every step of the search. Confidential."""
    before, after = path.start, path.fit
    scatter = figures.plot_bound_against_weight(
        after.alpha, after.bounds.by_record, overall=after.bounds.overall,
        before=(before.alpha, before.bounds.by_record, before.bounds.overall),
    )  # fmt: skip
    rows = [(place, step.round, step.k, step.bound, step.efficiency, bool(step.accepted))
            for place, step in enumerate(path.steps, start=1)]  # fmt: skip
    header = ["Step", "Round", "k", "Refitted bound", "Efficiency", "Within"]
    return page.section(
        "reweighting",
        figures=[scatter, figures.plot_weights_before_after(before.alpha, after.alpha)],
        tables=[page.frame_table(pd.DataFrame(rows, columns=header))],
        before=before.bounds, after=after.bounds,
    )  # fmt: skip
