"""What each measure is: one line, its range, its direction, and its value at both ends.

Tables, reports and JSON print from here, so that no number stands without its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MEASURES", "Measure"]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure of utility or disclosure risk.

    Attributes
    ----------
    title : str
        As tables call it.
    about : {"utility", "risk"}
    definition : str
        One line.
    range : str
    direction : str
        Which way is better: more useful, or safer.
    at_best : str
        Value of perfect data: as good as the data (utility), or without risk (risk).
    at_worst : str
        Value of useless data (utility), or of the data published as they are (risk).
    """

    title: str
    about: str
    definition: str
    range: str
    direction: str
    at_best: str
    at_worst: str


def _utility(title: str, definition: str, *rest: str) -> Measure:
    return _measure(title, "utility", definition, *rest)


def _risk(title: str, definition: str, *rest: str) -> Measure:
    return _measure(title, "risk", definition, *rest)


def _measure(
    title: str, about: str, definition: str, ends: str, direction: str, best: str, worst: str
) -> Measure:
    return Measure(
        title=title, about=about, definition=definition, range=ends, direction=direction,
        at_best=best, at_worst=worst,
    )  # fmt: skip


_LESS, _MORE = "smaller is more useful", "larger is more useful"
_SAFER, _RISKIER = "larger is safer", "smaller is safer"

MEASURES = {
    "max_ecdf": _utility(
        "max-ECDF",
        "Largest gap between the distribution functions of a column in data and synthetic set.",
        "[0, 1]", _LESS, "0", "1: the values do not overlap",
    ),
    "avg_ecdf": _utility(
        "avg-ECDF",
        "Mean squared gap between the distribution functions over all pooled values.",
        "[0, 1]", _LESS, "0", "1/3: the values do not overlap, sets of equal size",
    ),
    "estimates": _utility(
        "estimate",
        "Mean or percentile with a 95 % interval by resampling; of m sets, averaged quantile by "
        "quantile (Wasserstein barycenter).",
        "unit of the column", "near the data is more useful", "that of the data", "any",
    ),
    "total_variation": _utility(
        "total variation",
        "Half the sum of absolute differences of the shares in the cells of a table.",
        "[0, 1]", _LESS, "0", "1: no cell in common",
    ),
    "table_ratio": _utility(
        "table ratio",
        "Voas-Williamson or Freeman-Tukey distance of two tables over its expectation for two "
        "samples of one population.",
        "from 0", _LESS, "0; about 1 for a second sample", "in the order of n",
    ),
    "pmse": _utility(
        "pMSE",
        "Mean squared distance of the propensities of being synthetic from the share of synthetic "
        "rows.",
        "[0, 1/4] for sets as large as the data", _LESS, "0", "1/4: every row can be told apart",
    ),
    "pmse_ratio": _utility(
        "pMSE ratio",
        "pMSE over its expectation if nothing but chance told data and synthetic rows apart.",
        "from 0", _LESS, "0; about 1 for a second sample", "1/4 over the expectation: large",
    ),
    "pmse_standardised": _utility(
        "standardized pMSE",
        "pMSE less its expectation under chance, in standard deviations under chance.",
        "any number", _LESS, "about 0 for a second sample; below for a copy", "large",
    ),
    "specks": _utility(
        "SPECKS",
        "Kolmogorov-Smirnov distance of the propensities of data and synthetic rows.",
        "[0, 1]", _LESS, "0", "1: every row can be told apart",
    ),
    "interval_overlap": _utility(
        "interval overlap",
        "Overlap of the confidence intervals of a coefficient from data and synthetic sets, as a "
        "share of their lengths.",
        "up to 1, negative for disjoint intervals", _MORE, "1", "0 or below: disjoint",
    ),
    "standardised_difference": _utility(
        "standardized difference",
        "Distance of a coefficient from that of the data, in standard errors of the data.",
        "from 0", _LESS, "0", "2 and more: outside the interval of the data",
    ),
    "mean_error": _utility(
        "error of the mean",
        "Distance of the mean of the synthetic sets from that of the data, as a share of the "
        "latter.",
        "from 0", _LESS, "0", "in the order of 1",
    ),
    "matching_risk": _risk(
        "matching risk I",
        "1/c with c the synthetic records that match a target on the keys, 0 for none, averaged "
        "over sets and targets: the intruder's confidence, whether right or wrong.",
        "[0, 1]", _RISKIER, "0: nothing matches", "1 if all records are unique on the keys",
    ),
    "expected_match_risk": _risk(
        "expected match risk",
        "Expected number of targets identified correctly when the intruder picks a match at "
        "random.",
        "[0, n]", _RISKIER, "0", "number of distinct records on the keys",
    ),
    "true_match_rate": _risk(
        "true match rate",
        "Share of targets whose only match is their own record.",
        "[0, 1]", _RISKIER, "0", "share of records that are unique on the keys",
    ),
    "false_match_rate": _risk(
        "false match rate",
        "Share of single matches that are another's record; 0 if there is no single match.",
        "[0, 1]", _SAFER, "1: single matches mislead", "0",
    ),
    "n_unique_matches": _risk(
        "targets with one match",
        "Targets that exactly one synthetic record matches, true or false; average over the sets.",
        "[0, n]", _RISKIER, "0", "records that are unique on the keys",
    ),
    "n_no_match": _risk(
        "targets without a match",
        "Targets that no synthetic record matches; average over the sets.",
        "[0, n]", _SAFER, "n", "0",
    ),
    "attribute_risk": _risk(
        "attribute risk",
        "Share of a target's matches whose sensitive value lies within the radius of the target's.",
        "[0, 1]", _RISKIER, "that of records outside the data", "1 if keys determine the value",
    ),
    "attribute_baseline": _risk(
        "without the keys",
        "Attribute risk of an intruder who knows no key: share of all synthetic records within "
        "the radius.",
        "[0, 1]", _RISKIER, "the same as with the keys", "below that with the keys",
    ),
    "attribute_holdout": _risk(
        "records outside the data",
        "Attribute risk of records that were not used for the synthesis: what is learned of "
        "anybody.",
        "[0, 1]", "to compare with", "the same as of the data", "below that of the data",
    ),
    "replicated_uniques": _risk(
        "replicated uniques",
        "Share of records alone with their keys in the data that are alone with the same keys in "
        "the synthetic set; equality, no radius.",
        "[0, 1]", _RISKIER, "0", "share of records that are unique on the keys",
    ),
}  # fmt: skip
"""Every measure by name."""
