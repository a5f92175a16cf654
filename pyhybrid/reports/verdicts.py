"""The top of the pages on a curve, a comparison, utility, risk and masks: what they say, in words.

That of a release is in `pyhybrid.reports.verdict`. CONFIDENTIAL, like the pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from pyhybrid.masking.analysis import naming_share
from pyhybrid.measures.arrays.intervals import interval_overlap
from pyhybrid.measures.arrays.matching import MatchingRisk
from pyhybrid.measures.summaries import RiskSummary, UtilitySummary
from pyhybrid.measures.tables.intervals import ModelUtility
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.releases.release import Release
from pyhybrid.reports.checklist import COUNTED
from pyhybrid.reports.judged import FAIR, GOOD, POOR, measure_label, word_of
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Marked, Section, Table
from pyhybrid.reports.verdict import in_short
from pyhybrid.studies.comparing.comparison import DATA, Comparison
from pyhybrid.studies.comparing.curve import RiskUtilityCurve
from pyhybrid.studies.comparing.curve_points import NEAR
from pyhybrid.studies.comparing.means import moved_away_text
from pyhybrid.studies.comparing.outcome import outcome_of

__all__ = [
    "comparison_verdict",
    "curve_verdict",
    "mask_verdict",
    "risk_verdict",
    "utility_verdict",
]

_LITTLE_SAFER = 0.5  # of the risk of the data as they are: above it a mask protects little
_MOST_NAMED = 4  # if all have one word
_NORMAL = 1.959963984540054  # half a 95 % interval, in standard errors
_ROUNDED = 0.99  # epsilons are rounded up
_TELLS = 0.1  # of an attribute risk above that without the keys


def curve_verdict(curve: RiskUtilityCurve) -> Section:
    """Which weights are nearer to the data at equal epsilon, and how near."""
    table = curve.table
    points = table[table["mechanism"] != "Unweighted"]
    pairs = points.pivot_table(index=["scale", "shift"], columns="mechanism", values="max_ecdf")
    ahead = int((pairs["LW"] < pairs["SW"]).sum())
    words = {
        f"{row.mechanism} ({row.scale:g}, {row.shift:g})": word_of("max_ecdf", row.max_ecdf)
        for row in points.itertuples(index=False)
    }
    wrong = [*_mean_lost(table), *_costs_unlike(table)]
    beside = "At equal epsilon" if _equal(points).all() else "At the same epsilon or less for SW"
    costs = [epsilon_text(float(end)) for end in (points["epsilon"].min(), points["epsilon"].max())]
    counted = " and ".join(COUNTED[each] for each in table["accounting"].unique())
    if not table["converged"].all():
        wrong.append(f"{int((~table['converged']).sum())} fits have NOT CONVERGED: their epsilons "
                     "may be too small.")  # fmt: skip
    poor = sum(word == POOR for word in words.values())
    if poor == len(words):
        wrong.append("No point is near the data: look at the model before the weights.")
    elif poor:
        wrong.append(f"{poor} of {len(words)} points are far from the data by max-ECDF (POOR).")
    return in_short(
        {
            "Promised. ": f"One released draw costs an epsilon of {costs[0]} to {costs[1]}, "
            f"counted {counted}; it is local, estimated for this database.",
            "Which weights. ": f"{beside} the distribution under Lipschitz weights (LW) is "
            f"nearer to the data than under scalar weights (SW) at {ahead} of {len(pairs)} points, "
            "by max-ECDF.",
            "How good. ": f"By max-ECDF, points with (scale, shift). {_by_word(words)}",
        },
        wrong,
    )


def _mean_lost(table: pd.DataFrame) -> list[str]:
    """Which weights take the mean further from the data than the unweighted fit, beyond chance."""
    plain = table[table["mechanism"] == "Unweighted"].iloc[0]
    found = []
    for name, own in table[table["mechanism"] != "Unweighted"].groupby("mechanism"):
        further = own["error_mean"] - plain["error_mean"]
        chance = _NORMAL * np.hypot(own["error_mean_se"], plain["error_mean_se"])
        lost = int((further > chance).sum())
        if lost:
            found.append(
                f"{name}: the mean is further from the data than in the unweighted fit, by more "
                f"than chance explains, at {lost} of {len(own)} points; the figure below shows how "
                "far."
            )
    return found


def _equal(points: pd.DataFrame) -> pd.Series:
    """Of each point of a curve, whether its epsilon is that of LW beside it."""
    return points["epsilon_ratio"] >= _ROUNDED * min(NEAR.values())


def _costs_unlike(table: pd.DataFrame) -> list[str]:
    """Where the curve has no pair of equal epsilons, and where weights cost more than none."""
    plain, points = table.iloc[0], table.iloc[1:]
    vector, less = points[points["mechanism"] == "LW"], points[~_equal(points)]
    found = []
    dear = int((vector["epsilon"] > plain["epsilon"]).sum())
    if dear:
        cost = epsilon_text(plain["epsilon"])
        found.append(
            f"LW costs more than weights of 1, whose epsilon is {cost}, at {dear} of {len(vector)} "
            "points: look at the unweighted fit before you choose."
        )
    if len(less):
        ends = less["epsilon_ratio"].min(), less["epsilon_ratio"].max()
        shares = " to ".join(f"{100 * end:.0f}" for end in ends)
        found.append(
            f"SW costs less than LW beside it at {len(less)} of {len(vector)} points ({shares} % "
            "of its epsilon): no scalar weight was found that costs as much."
        )
    return found


def comparison_verdict(comparison: Comparison) -> Section:
    """Epsilon of each mechanism, and how near its estimates are to those of the data."""
    own = comparison.estimates.set_index(["source", "statistic"])[["estimate", "lower", "upper"]]
    of_numbers = "mean" in own.loc[DATA].index
    found = {
        name: (_of_mean if of_numbers else _of_shares)(own.loc[DATA], own.loc[name])
        for name in comparison.releases
    }
    measures = _OF_MEAN if of_numbers else _OF_SHARES
    words = {name: _worst(*(cell.word for cell in cells)) for name, cells in found.items()}
    table = Table(
        caption="Epsilon of all sets, and how far estimates are from those of the data. Good: like "
        "a second sample; POOR: more than chance explains.",
        header=["Mechanism", "Epsilon", *measures],
        rows=[
            [name, epsilon_text(release.charge.epsilon), *found[name]]
            for name, release in comparison.releases.items()
        ],
        numbers=True,
    )
    cheapest = min(comparison.releases.items(), key=lambda item: item[1].charge.epsilon)
    wrong = [
        f"{name} has NOT CONVERGED: its epsilon may be too small."
        for name, release in comparison.releases.items()
        if not release.charge.converged
    ]
    wrong += _poor(found, measures)
    levels = bool(outcome_of(comparison.session.bound).shares)
    if comparison.moved_away:
        text = moved_away_text(comparison.moved_away, comparison.outcome, levels=levels)
        wrong.append(f"{text[0].upper()}{text[1:]}.")
    wrong += _costs_more(comparison)
    said = {
        "Promised. ": f"The smallest epsilon, {epsilon_text(cheapest[1].charge.epsilon)}, is that "
        f"of {cheapest[0]}. All were computed on the confidential data.",
        "How good. ": _by_word(words),
    }
    return in_short(said, wrong, [table])


def _poor(found: Mapping[str, Sequence[Marked]], measures: Sequence[str]) -> list[str]:
    """A sentence for each mechanism with measures that are POOR, which names them."""
    sentences = []
    for name, cells in found.items():
        poor = [
            f"{what[0].lower()}{what[1:]} {cell.text}"
            for what, cell in zip(measures, cells, strict=True)
            if cell.word == POOR
        ]
        if poor:
            sentences.append(f"{name}: {', '.join(poor)} (POOR).")
    return sentences


def _costs_more(comparison: Comparison) -> list[str]:
    """Re-weighted candidates that cost more than the same weights before."""

    def before(release: Release) -> dict[str, object]:
        return {k: v for k, v in release.settings.items() if k != "reweighting"}

    found = []
    for name, release in comparison.releases.items():
        for other, own in comparison.releases.items():
            least, most = own.charge.epsilon, release.charge.epsilon
            if release.reweighted is None or own.reweighted is not None:
                continue
            if most > least and before(release) == before(own):
                risk = release.reweighted.risk
                kept = "Lipschitz bound" if risk == "size" else risk
                found.append(
                    f"{name} costs more than {other}: epsilon {epsilon_text(most)} against "
                    f"{epsilon_text(least)}. Re-weighting looks at the {kept} under the weights it "
                    f"finds; the charge is by {release.charge.accounting}."
                )
    return found


def utility_verdict(summaries: Mapping[str, UtilitySummary]) -> Section:
    """How many measures of each version are good, fair and poor, and which are poor."""
    said, wrong = {}, []
    for name, found in summaries.items():
        words = {key: word_of(key, value) for key, value in found.overall().items()}
        judged = {key: word for key, word in words.items() if word}
        counts = ", ".join(
            f"{sum(word == each for word in judged.values())} {each}" for each in (GOOD, FAIR, POOR)
        )
        said["How good. " if len(summaries) == 1 else f"{name}. "] = (
            f"Of {len(judged)} measures that have limits: {counts}."
        )
        mark = "" if len(summaries) == 1 else f"{name}: "
        wrong += [
            f"{mark}{measure_label(key)}{_which(found, key)} is "
            f"{number_text(found.overall()[key])} (POOR)."
            for key, word in judged.items()
            if word == POOR
        ]
    promised = "Nothing: these numbers describe the sets, and no epsilon covers them."
    return in_short({"Promised. ": promised, **said}, wrong)


def _which(found: UtilitySummary, key: str) -> str:
    """Name of the column, or pair, that a measure's worst value is of: " (income)"."""
    measure, _, of = key.partition(", ")
    one, two = found.one_and_two_way.one_way, found.one_and_two_way.two_way
    if of == "worst pair":
        worst = two.iloc[int(two["ratio"].argmax())]
        return f" ({worst['first']} and {worst['second']})"
    if of != "worst column":
        return ""
    name = measure.removeprefix("table_")
    own = found.columns.distances if measure in found.columns.distances else one
    return f" ({own['column'].iloc[int(own[name].argmax())]})"


def risk_verdict(summaries: Mapping[str, RiskSummary]) -> Section:
    """What the intruder finds, and whether keys tell more than no keys."""
    said, wrong = {}, []
    for name, found in summaries.items():
        overall, single = found.overall(), len(summaries) == 1
        matching = found.matching
        named = matching.correct_by_record
        text = (
            f"One who knows {', '.join(found.keys)} believes to have found a target with "
            f"probability {overall['matching_risk']:.2%} on average"
        )
        if named is not None:
            text += f", and names one correctly with probability {float(named.mean()):.2%}"
            certain = int((named >= 1).sum())
            if certain:
                wrong.append(
                    f"{'' if single else f'{name}: '}{certain:,} of {matching.n_targets:,} targets "
                    f"{'is' if certain == 1 else 'are'} named correctly and with certainty in "
                    f"every set: protect {'it' if certain == 1 else 'them'}."
                )
        learned = "".join(f" {sentence}" for sentence in _learned(overall))
        said["Found. " if single else f"{name}. "] = f"{text}.{learned}"
        wrong += _telling(overall, "" if single else f"{name}: ")
    promised = "Nothing: risk against one kind of intruder is no bound on what others find."
    return in_short({"Promised. ": promised, **said}, wrong)


def _learned(overall: Mapping[str, float]) -> list[str]:
    """What matches tell of each sensitive column, beside all records together."""
    return [
        f"Of the matches, {overall[key]:.1%} have the target's value of {column}; of all records, "
        f"{overall[f'attribute_baseline, {column}']:.1%}."
        for key in overall
        for measure, _, column in [key.partition(", ")]
        if measure == "attribute_risk"
    ]


def mask_verdict(
    before: MatchingRisk,
    after: MatchingRisk,
    utility: ModelUtility | None,
    left_as_they_were: Iterable[str],
    unchanged: Mapping[str, float],
) -> Section:
    """What the masks take from an intruder, what they change, and what an analysis keeps."""
    was, now = naming_share(before), naming_share(after)
    said = {
        "Promised. ": "Nothing that holds against all intruders: masks have no epsilon.",
        "Risk. ": f"One who knows the keys identifies {now:.2%} of the records correctly; in "
        f"the data as they are, {was:.2%}.",
        "Changed. ": "Records that keep their own value: "
        + ", ".join(f"{key} {share:.0%}" for key, share in unchanged.items())
        + ".",
    }
    if utility is not None:
        word = word_of("interval_overlap", utility.mean_overlap)
        said["How good. "] = (
            f"Intervals of the analysis overlap by {utility.mean_overlap:.2f} on average ({word}), "
            f"the worst of them by {float(utility.table['interval_overlap'].min()):.2f}."
        )
    wrong = [
        f"{key} is left as it was in nearly all records: its mask protects little."
        for key in left_as_they_were
    ]
    if was > 0 and now > _LITTLE_SAFER * was:
        wrong.append("More than half of the risk of the data as they are is left (POOR).")
    if utility is not None and word_of("interval_overlap", utility.mean_overlap) == POOR:
        wrong.append("The analysis is not kept (POOR): weaker masks, or other keys, would help.")
    return in_short(said, wrong)


def _telling(overall: Mapping[str, float], mark: str) -> list[str]:
    """Sensitive columns that an intruder with keys finds more often than one without."""
    found = []
    for key, value in overall.items():
        measure, _, column = key.partition(", ")
        base = overall.get(f"attribute_baseline, {column}")
        if measure == "attribute_risk" and base is not None and value > base + _TELLS:
            found.append(
                f"{mark}{column} is found with probability {number_text(value)} by one who knows "
                f"the keys, {number_text(base)} without them."
            )
    return found


def _by_word(words: Mapping[str, str]) -> str:
    """ "Good: LW, CW. POOR: SW."; what has no word is left out."""
    parts = []
    for word in (GOOD, FAIR, POOR):
        names = [name for name, own in words.items() if own == word]
        if names:
            all_of_them = len(names) == len(words) > _MOST_NAMED
            shown = f"all {len(names)}" if all_of_them else ", ".join(names)
            parts.append(f"{word[0].upper()}{word[1:]}: {shown}.")
    return " ".join(parts) or "Nothing that has limits could be computed."


_OF_MEAN = ("Error of the mean", "Interval overlap of the mean")
_OF_SHARES = ("Total variation of shares",)


def _of_mean(truth: pd.DataFrame, found: pd.DataFrame) -> list[Marked]:
    """Cells of an outcome of numbers."""
    was, now = truth.loc["mean"], found.loc["mean"]
    off = float(abs(now["estimate"] - was["estimate"]) / abs(was["estimate"] or np.nan))
    ends = [each[["lower", "upper"]].to_numpy(dtype=np.float64) for each in (was, now)]
    short = any(not low < high for low, high in ends)
    overlap = np.nan if short else float(interval_overlap(ends[0], ends[1]))
    return [
        Marked(text="–" if np.isnan(off) else f"{off:.1%}", word=word_of("mean_error", off)),
        Marked(text="–" if short else f"{overlap:.2f}", word=word_of("interval_overlap", overlap)),
    ]


def _of_shares(truth: pd.DataFrame, found: pd.DataFrame) -> list[Marked]:
    """The cell of an outcome of levels: half the sum of the differences of their shares."""
    off = float((found["estimate"] - truth["estimate"]).abs().sum()) / 2
    return [Marked(text=f"{off:.3f}", word=word_of("total_variation", off))]


def _worst(*words: str) -> str:
    return next((word for word in (POOR, FAIR, GOOD) if word in words), "")
