"""HTML report of a masked release: what an analysis keeps, what an intruder gains. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking import MaskedRelease, RiskSubgroups, TunedMask, risk_subgroups
from pyhybrid.masking.analysis import naming_share, release_risk
from pyhybrid.masking.statement import unchanged_shares
from pyhybrid.measures.arrays.matching import MatchingRisk
from pyhybrid.measures.tables.intervals import ModelUtility
from pyhybrid.reports.figures.masking import plot_match_risk, plot_subgroups, plot_tuning
from pyhybrid.reports.figures.mechanisms import plot_distributions, plot_intervals
from pyhybrid.reports.levels import level_picture, level_table
from pyhybrid.reports.page import Picture, Section, Table, number_text, picture_of, render_page
from pyhybrid.reports.side_by_side import plain_term
from pyhybrid.reports.verdicts import mask_verdict

__all__ = ["mask_report", "masked_pages"]

_ADVICE = "publish only the folder public/"
_FEW = 5  # other records that match one of low risk, unless said otherwise


def masked_pages(release: MaskedRelease) -> dict[str, str]:
    """The owner's page of a masked release by file name, as `MaskedRelease.save` writes it.

    CONFIDENTIAL. An intruder is taken to match keys exactly; for other radii and for an analysis
    beside it see `mask_report`. A release that was loaded has no data, and no page.
    """
    data = release.data
    if data is None:
        return {}
    before, after = (release_risk(each, data, keys=release.keys) for each in (None, release))
    groups = risk_subgroups(data, release.keys, _FEW, types=release.settings["keys"])
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
    tuned: TunedMask | None = None,
) -> str:
    """Return the report as one HTML file without scripts or references. Confidential.

    Parameters
    ----------
    release : MaskedRelease
    data : DataFrame
        The confidential records, in the order of the release.
    before, after : MatchingRisk
        Of the data as they are, and of the release, for the same keys and radius.
    utility : ModelUtility, optional
        Of the user's model.
    subgroups : RiskSubgroups, optional
    tuned : TunedMask, optional

    Raises
    ------
    InvalidInput
        If `data` are not the records of the release.
    """
    if not data.index.equals(release.synthetic[0].index):
        raise InvalidInput("data must be the records of the release, in its order")
    unchanged = unchanged_shares(data, release.synthetic, release.keys)
    sections = [
        mask_verdict(before, after, utility, release.statement.left_as_they_were, unchanged),
        Section(heading="What this page is", paragraphs=[[
            "", "Not differentially private.", " There is no epsilon. What follows shows the risk "
            "against one kind of intruder, who knows the keys of a record and nothing else.",
        ]]),
        *([] if utility is None else [_utility(utility)]),
        _risk(before, after),
        *([] if tuned is None else [_tuning(tuned)]),
        *([] if subgroups is None else [_subgroups(subgroups)]),
        _keys(release, data, unchanged),
        *([] if release.diagnostics is None else [_convergence(release)]),
        _statement(release),
    ]  # fmt: skip
    return render_page("Masked release", sections, confidential=True, advice=_ADVICE)


def _utility(found: ModelUtility) -> Section:
    header = ["term", "data", "lower", "upper", "synthetic", "lower", "upper", "overlap", "diff."]
    rows = [
        [plain_term(term), *(number_text(float(value)) for value in found.table.loc[term])]
        for term in found.table.index
    ]
    caption = (
        f"{found.model}: {found.formula}. Estimates with 95 % intervals on the data "
        f"({found.n_used[0]:,} records without missing values) and combined over the synthetic "
        f"sets by the rule {found.rule.replace('_', ' ')}. Overlap of the intervals: 1 is equal, "
        "at most 0 is disjoint. Diff.: difference of estimates in standard errors of the data's; "
        "0 is best, below 1 is small beside sampling error."
    )
    mean = (
        f"Mean overlap {found.mean_overlap:.3f}, mean standardized difference "
        f"{found.mean_difference:.3f}."
    )
    drawn = found.intervals()
    picture = picture_of(
        plot_intervals(
            drawn.assign(statistic=drawn["statistic"].map(plain_term)), reference="data"
        ),
        alt="Coefficients with intervals, data beside synthetic.",
        caption="Shaded: the interval of the data.",
    )
    return Section(
        heading="An analysis on the data and on the synthetic sets",
        paragraphs=[[mean]],
        pictures=[picture],
        tables=[Table(caption=caption, header=header, rows=rows, numbers=True)],
    )


_MATCHING = {
    "named": ("records identified correctly, share", "Expected share of records that the "
              "intruder identifies correctly by the keys. From 0 to 1; smaller is safer."),
    "mean": ("match probability, mean", "The intruder's confidence in a match, right or wrong, "
             "averaged. From 0 to 1; smaller is safer."),
    "unique": ("unique matches", "Records with exactly one match."),
    "true": ("true match rate", "Share of all records with one match only, which is their own."),
    "false": ("false match rate", "Share of unique matches with another record. Larger is safer."),
    "none": ("records without a match", "Larger is safer."),
}  # fmt: skip


def _risk(before: MatchingRisk, after: MatchingRisk) -> Section:
    numbers = [_matching(risk) for risk in (before, after)]
    rows = [
        [title, *(number[name] for number in numbers), meaning]
        for name, (title, meaning) in _MATCHING.items()
    ]
    assert before.correct_by_record is not None
    assert after.correct_by_record is not None
    picture = picture_of(
        plot_match_risk(before.correct_by_record, after.correct_by_record),
        alt="Histogram of the probability of being identified, before and after.",
        caption="Each record's probability of being identified, averaged over the sets.",
    )
    caption = (
        f"An intruder who knows the keys of each of {after.n_targets:,} records; averages over "
        f"{after.n_sets} sets."
    )
    table = Table(caption=caption, header=["", "data", "synthetic", "meaning"], rows=rows)
    return Section(heading="Matching risk before and after", pictures=[picture], tables=[table])


def _matching(risk: MatchingRisk) -> dict[str, str]:
    return {
        "named": number_text(naming_share(risk)),
        "mean": number_text(risk.mean_risk),
        "unique": number_text(risk.n_unique_matches),
        "true": number_text(risk.true_match_rate),
        "false": number_text(risk.false_match_rate),
        "none": number_text(risk.n_no_match),
    }


def _tuning(tuned: TunedMask) -> Section:
    rows = [
        ["off" if row.factor == float("inf") else f"{row.factor:.4g}", f"{row.risk:.4f}",
         f"{row.mean_match:.4f}", f"{row.loss:.4f}", "yes" if row.meets_target else "no"]
        for row in tuned.table.itertuples()
    ]  # fmt: skip
    caption = (
        f"Target risk {tuned.target_risk:g}. Factor: variances are multiplied by it, separations "
        "divided by its square root; off: keys from the association model alone. Risk: share of "
        "records identified correctly. Loss: smaller is better."
    )
    header = ["factor", "risk", "match probability", "loss", "meets the target"]
    picture = picture_of(
        plot_tuning(tuned), alt="Loss of the analysis against matching risk, by mask.",
        caption=f"Chosen: factor {tuned.factor:.4g}, risk {tuned.risk:.4f}, loss {tuned.loss:.4f}.",
    )  # fmt: skip
    table = Table(caption=caption, header=header, rows=rows, numbers=True)
    return Section(heading="Mask strength", pictures=[picture], tables=[table])


def _subgroups(groups: RiskSubgroups) -> Section:
    rows = [
        [str(r.subgroup), f"{r.records:,}", f"{r.share:.3f}",
         number_text(r.median_matches), number_text(r.median_matches_levels)]
        for r in groups.table.itertuples()
    ]  # fmt: skip
    radius = ", ".join(f"{name} within {value:g}" for name, value in groups.radius.items())
    within = f" ({radius})" if radius else ""
    caption = (
        f"low: at least {groups.k0} other records match on all keys{within}; "
        f"medium: at least {groups.k0} match on the keys with levels, fewer also on the "
        "continuous ones; high: the rest."
    )
    header = ["subgroup", "records", "share", "median matches", "on levels only"]
    picture = picture_of(
        plot_subgroups(groups),
        alt="Numbers of records by their number of matches.",
        caption=f"Right of the dashed line, k0 = {groups.k0}, enough records match for low risk.",
    )
    table = Table(caption=caption, header=header, rows=rows, numbers=True)
    return Section(heading="Risk subgroups of the data", pictures=[picture], tables=[table])


def _keys(release: MaskedRelease, data: pd.DataFrame, unchanged: Mapping[str, float]) -> Section:
    kinds = release.settings["keys"]
    pictures, levels = [], []
    for key in release.keys:
        if kinds[key] == "continuous":
            pictures.append(_continuous_picture(key, release, data))
        else:
            own = _in_order(data[key]) if kinds[key] == "ordered" else data[key]
            sets = {"synthetic": [table[key] for table in release.synthetic]}
            pictures.append(level_picture(key, own, sets))
            levels.append(level_table(key, own, sets))
    rows = [[key, str(kinds[key]), f"{unchanged[key]:.3f}"] for key in release.keys]
    caption = "Unchanged: share of records whose released value equals their own, over all sets."
    table = Table(caption=caption, header=["key", "type", "unchanged"], rows=rows, numbers=True)
    return Section(heading="Keys", pictures=pictures, tables=[table, *levels])


def _in_order(column: pd.Series) -> pd.Series:
    """Whole numbers and categories as an ordered category, which pages show in its order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    levels = [str(level) for level in sorted(column.dropna().unique())]
    return column.astype(str).astype(pd.CategoricalDtype(levels, ordered=True))


def _continuous_picture(key: str, release: MaskedRelease, data: pd.DataFrame) -> Picture:
    values = data[key].to_numpy(dtype=float, na_value=float("nan"))
    sets = [table[key].to_numpy(dtype=float) for table in release.synthetic]
    return picture_of(
        plot_distributions(
            values[values == values], {"synthetic": sets}, discrete=False, label=key
        ),
        alt=f"Distribution of {key} in the data and in the synthetic sets.",
        caption=f"{key}: where a line leaves the data, masks distort its distribution.",
    )


def _convergence(release: MaskedRelease) -> Section:
    found = release.diagnostics
    assert found is not None
    text = (
        f"{found.n_chains} chains of {found.n_draws // found.n_chains} draws: worst R-hat "
        f"{found.max_rhat:.4f} ({found.worst}), smallest effective sample size "
        f"{found.min_ess_bulk:.0f}, {found.n_divergent} divergent transitions. "
        f"Rule: {found.rule.describe()}."
    )
    problems = [] if found.converged else [["", "Not converged: ", "; ".join(found.problems)]]
    return Section(heading="Convergence of the association model", paragraphs=[[text], *problems])


def _statement(release: MaskedRelease) -> Section:
    text = (
        "This part is also in public/risk_statement.md and may be published: "
        f"{release.statement.method}; not differentially private."
    )
    masks = [f"{key}: {mask}" for key, mask in release.statement.masks.items()]
    return Section(heading="Risk statement", paragraphs=[[text]], bullets=masks)
