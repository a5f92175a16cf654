"""HTML report of a masked release: what an analysis keeps, what an intruder gains. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pyhybrid.core.checks import number_of
from pyhybrid.masking import MaskedRelease, risk_subgroups
from pyhybrid.masking.imputation import naming_share, release_risk
from pyhybrid.measures.matching import MatchingRisk
from pyhybrid.measures.models import ModelUtility
from pyhybrid.measures.summaries import MEASURES, RiskSummary
from pyhybrid.reports import figures, page
from pyhybrid.reports.columns import column_section
from pyhybrid.reports.measures import model_section
from pyhybrid.reports.release import convergence_section
from pyhybrid.reports.verdicts import Judged, in_short, listed

FEW = 5  # other records that match one of low risk


def masked_pages(release: MaskedRelease) -> dict[str, str]:
    """The owner's page of a masked release by file name, as `MaskedRelease.save` writes it: for an
    intruder who matches keys exactly. CONFIDENTIAL."""
    return {"report.html": mask_report(release, mask_sections(release))}


def mask_report(
    release: MaskedRelease, sections: Sequence[page.Section], *, table: str = ""
) -> str:
    """Return `mask_sections` as one HTML file without scripts or references. Confidential. `table`
    is the name of the data below the title."""
    facts = [
        *page.facts_of_table(table, *release.data.shape), f"{listed(release.keys, 6)} masked",
        number_of(len(release.synthetic), "synthetic set"), "no epsilon",
    ]  # fmt: skip
    return page.render_page("Masked release", sections, confidential=True, facts=facts)


def mask_sections(
    release: MaskedRelease,
    *,
    radius: Mapping[str, float] | None = None,
    utility: ModelUtility | None = None,
) -> list[page.Section]:
    """What the report holds, the verdict first: the risk of an intruder who matches keys within
    this `radius`, and an analysis. Confidential."""
    data, types, within = release.data, release.settings["keys"], radius or {}
    before, after = (
        release_risk(each, data, keys=release.keys, radius=radius) for each in (None, release)
    )
    of_numbers = {key: value for key, value in within.items() if types[key] == "continuous"}
    groups = risk_subgroups(data, release.keys, FEW, of_numbers, types=types)
    masks = [f"{key}: {mask}" for key, mask in release.statement.masks.items()]
    sections = [_verdict(release, before, after, utility)]
    if utility is not None:
        sections.append(model_section(utility, "An analysis on data and sets"))
    columns = ["subgroup", "records", "share", "median_matches", "median_matches_levels"]
    reach = ", ".join(f"{name} within {value:g}" for name, value in groups.radius.items())
    drawn, table = figures.plot_subgroups(groups), page.frame_table(groups.table[columns])
    of_groups = page.section(
        "mask, subgroups", figures=[drawn], tables=[table], groups=groups, radius=reach
    )
    sections += [_risk(before, after), of_groups, _keys(release)]
    if release.diagnostics is not None:
        sections.append(convergence_section(release.diagnostics, of="the association model"))
    method = release.statement.method
    return [*sections, page.section("mask, statement", bullets=masks, method=method)]


def _verdict(
    release: MaskedRelease, before: MatchingRisk, after: MatchingRisk, utility: ModelUtility | None
) -> page.Section:
    """What the masks take from an intruder, what they change, and what an analysis keeps."""
    judged = {}
    if utility is not None:
        judged["analysis"] = [Judged("interval_overlap, mean", utility.mean_overlap)]
    values = {"was": naming_share(before), "now": naming_share(after)}
    changed = ", ".join(f"{key} {share:.0%}" for key, share in release.unchanged.items())
    said = {
        "Risk. ": page.sentence("verdict of a mask", "risk", **values),
        "Changed. ": f"Records that keep their own value: {changed}.",
    }
    wrong = [
        f"{key} is left as it was in nearly all records: its mask protects little."
        for key in release.statement.left_as_they_were
    ]
    return in_short("verdict of a mask", judged, wrong, said, **values)


def _risk(before: MatchingRisk, after: MatchingRisk) -> page.Section:
    risks = {"the data as they are": before, "synthetic keys": after}
    numbers = [RiskSummary(matching=r, attributes={}, keys=()).overall() for r in risks.values()]
    rows = []
    for name in numbers[0]:
        about = f"{MEASURES[name].definition} {MEASURES[name].direction.capitalize()}."
        rows.append([MEASURES[name].title, *(page.number_text(n[name]) for n in numbers), about])
    by_record = {name: np.asarray(risk.correct_by_record) for name, risk in risks.items()}
    table = page.Table(header=["", "data", "synthetic", "meaning"], rows=rows)
    figure = figures.plot_matching_risk(by_record)
    return page.section("mask, risk", figures=[figure], tables=[table], after=after)


def _keys(release: MaskedRelease) -> page.Section:
    data, kinds, parts = release.data, release.settings["keys"], []
    for key in release.keys:
        sets = [table[key] for table in release.synthetic]
        shown = _in_order(data[key]) if kinds[key] == "ordered" else data[key]
        levels = kinds[key] != "continuous"
        parts.append(column_section(key, shown, sets, levels=levels))
    rows = [[key, str(kinds[key]), f"{share:.3f}"] for key, share in release.unchanged.items()]
    table = page.Table(header=["key", "type", "unchanged"], rows=rows, numbers=True)
    return page.section("mask, keys", tables=[table], parts=parts)


def _in_order(column: pd.Series) -> pd.Series:
    """Whole numbers and categories as an ordered category, which pages show in its order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    levels = [str(level) for level in sorted(column.dropna().unique())]
    return column.astype(str).astype(pd.CategoricalDtype(levels, ordered=True))
