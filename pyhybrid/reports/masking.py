"""HTML report of a masked release: what an analysis keeps, what an intruder gains. CONFIDENTIAL."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from pyhybrid.core.checks import number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking import MaskedRelease, RiskSubgroups, risk_subgroups
from pyhybrid.masking.imputation import naming_share, release_risk
from pyhybrid.measures.matching import MatchingRisk
from pyhybrid.measures.models import ModelUtility
from pyhybrid.measures.summaries import MEASURES, RiskSummary
from pyhybrid.reports import figures, page
from pyhybrid.reports.columns import column_section
from pyhybrid.reports.measures import model_section
from pyhybrid.reports.release import convergence_section
from pyhybrid.reports.verdicts import Judged, in_short, listed

FEW = 5  # other records that match one of low risk, unless said otherwise


def masked_pages(release: MaskedRelease) -> dict[str, str]:
    """The owner's page of a masked release by file name, as `MaskedRelease.save` writes it.

    CONFIDENTIAL. An intruder is taken to match keys exactly; for other radii and for an analysis
    beside it see `mask_report`.
    """
    data = release.data
    before, after = (release_risk(each, data, keys=release.keys) for each in (None, release))
    groups = risk_subgroups(data, release.keys, FEW, types=release.settings["keys"])
    page = mask_report(release, data, before=before, after=after, subgroups=groups)
    return {"report.html": page}


def mask_report(
    release: MaskedRelease,
    data: pd.DataFrame,
    *,
    before: MatchingRisk,
    after: MatchingRisk,
    utility: ModelUtility | None = None,
    subgroups: RiskSubgroups | None = None,
    table: str = "",
) -> str:
    """Return the report as one HTML file without scripts or references. Confidential. `before` and
    `after` are risks of the data as they are and of the release, for the same keys and radius.
    `table` is the name of the data below the title."""
    if not data.index.equals(release.synthetic[0].index):
        raise InvalidInput("data must be the records of the release, in its order")
    release = replace(release, data=data)
    masks = [f"{key}: {mask}" for key, mask in release.statement.masks.items()]
    sections = [mask_verdict(release, before, after, utility)]
    if utility is not None:
        sections.append(model_section(utility, "An analysis on data and sets"))
    sections.append(_risk(before, after))
    if subgroups is not None:
        sections.append(_subgroups(subgroups))
    sections.append(_keys(release, data))
    if release.diagnostics is not None:
        sections.append(convergence_section(release.diagnostics, of="the association model"))
    sections.append(page.section("mask, statement", bullets=masks, method=release.statement.method))
    facts = [
        *page.facts_of_table(table, *data.shape), f"{listed(release.keys, 6)} masked",
        number_of(len(release.synthetic), "synthetic set"), "no epsilon",
    ]  # fmt: skip
    return page.render_page("Masked release", sections, confidential=True, facts=facts)


def mask_verdict(
    release: MaskedRelease,
    before: MatchingRisk,
    after: MatchingRisk,
    utility: ModelUtility | None = None,
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


def _subgroups(groups: RiskSubgroups) -> page.Section:
    columns = ["subgroup", "records", "share", "median_matches", "median_matches_levels"]
    radius = ", ".join(f"{name} within {value:g}" for name, value in groups.radius.items())
    return page.section(
        "mask, subgroups", figures=[figures.plot_subgroups(groups)],
        tables=[page.frame_table(groups.table[columns])], groups=groups, radius=radius,
    )  # fmt: skip


def _keys(release: MaskedRelease, data: pd.DataFrame) -> page.Section:
    kinds, parts = release.settings["keys"], []
    for key in release.keys:
        sets = [table[key] for table in release.synthetic]
        shown = _in_order(data[key]) if kinds[key] == "ordered" else data[key]
        levels = kinds[key] != "continuous"
        parts.append(replace(column_section(key, shown, sets, levels=levels), level=3))
    rows = [[key, str(kinds[key]), f"{share:.3f}"] for key, share in release.unchanged.items()]
    table = page.Table(header=["key", "type", "unchanged"], rows=rows, numbers=True)
    return replace(page.section("mask, keys", tables=[table]), parts=parts)


def _in_order(column: pd.Series) -> pd.Series:
    """Whole numbers and categories as an ordered category, which pages show in its order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    levels = [str(level) for level in sorted(column.dropna().unique())]
    return column.astype(str).astype(pd.CategoricalDtype(levels, ordered=True))
