"""How good synthetic data are, in words, and the top of each page. CONFIDENTIAL.

Every measure has two limits. Up to the first a value is good: about as far from the data as a
second sample of the same population. Beyond the second it is poor: chance alone does not explain
it, or an analyst would notice. Sources: standardized difference and interval overlap, intervals of
two samples of equal size (they differ by 3 standard errors of one of them in 3 % of cases);
ratios, Raab, Nowok, Dibben (2021), arXiv:2109.12717, who call up to 3 good and above 10 poor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.masking.analysis import naming_share
from pyhybrid.measures.arrays.combining import combine_partially_synthetic
from pyhybrid.measures.arrays.estimates import max_ecdf
from pyhybrid.measures.arrays.intervals import interval_overlap, standardised_difference
from pyhybrid.measures.arrays.matching import MatchingRisk
from pyhybrid.measures.definitions import MEASURES
from pyhybrid.measures.summaries import RiskSummary, UtilitySummary
from pyhybrid.measures.tables.intervals import ModelUtility
from pyhybrid.privacy.epsilon import STRICT, epsilon_text
from pyhybrid.releases.release import Release
from pyhybrid.reports.checklist import COUNTED
from pyhybrid.reports.levels import shares_of
from pyhybrid.reports.page import Cell, Marked, Section, Table, number_text
from pyhybrid.studies.comparing.comparison import DATA, Comparison
from pyhybrid.studies.comparing.curve import RiskUtilityCurve
from pyhybrid.studies.comparing.curve_points import NEAR
from pyhybrid.studies.comparing.means import moved_away_text
from pyhybrid.studies.comparing.outcome import outcome_of

__all__ = ["FAIR", "GOOD", "LIMITS", "POOR", "comparison_verdict", "curve_verdict", "is_number",
           "judge_outcome", "mask_verdict", "measure_label", "risk_verdict", "utility_verdict",
           "verdict_section", "word_of"]  # fmt: skip

GOOD, FAIR, POOR = "good", "fair", "POOR"

LIMITS: Mapping[str, tuple[float, float]] = {
    "interval_overlap": (0.7, 0.2),
    "standardised_difference": (1.0, 3.0),
    "mean_error": (0.02, 0.1),
    "max_ecdf": (0.05, 0.1),
    "total_variation": (0.05, 0.1),
    "pmse_ratio": (3.0, 10.0),
    "table_ratio": (3.0, 10.0),
}
"""The last good and the first poor value by measure."""

_NORMAL = 1.959963984540054  # half a 95 % interval, in standard errors
_MOST_SETS = 3


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A value of a measure of utility, and how good it is. Confidential.

    Attributes
    ----------
    measure : str
        Key of `pyhybrid.measures.definitions.MEASURES`.
    label : str
        What it is called, and of what it is.
    value : float
    word : {"good", "fair", "POOR"}
    """

    measure: str
    label: str
    value: float
    word: str

    @property
    def text(self) -> str:
        """The value as people write it: an error in percent, the others with two digits."""
        if self.measure == "mean_error":
            return f"{self.value:.1%}"
        return number_text(self.value) if abs(self.value) >= 100 else f"{self.value:.2f}"


def word_of(measure: str, value: float) -> str:
    """Good, fair or POOR; empty for a measure without limits or a value that is none.

    Parameters
    ----------
    measure : str
        Key of `LIMITS`; what follows a comma says what it is of, as in reports.
    """
    limits = LIMITS.get(measure.split(",")[0])
    if limits is None or np.isnan(value):
        return ""
    good, poor = limits
    sign = 1 if good < poor else -1
    if sign * value <= sign * good:
        return GOOD
    return POOR if sign * value > sign * poor else FAIR


def measure_label(name: str) -> str:
    """Title of a measure with what it is of: "pMSE, logistic" for "pmse, logistic"."""
    measure, _, rest = name.partition(",")
    return MEASURES[measure].title + (f",{rest}" if rest else "")


def judge_outcome(data: pd.Series, sets: Sequence[pd.Series]) -> tuple[Judged, ...]:
    """Measures of one synthesized column: of its mean and distribution, or of its shares.

    Parameters
    ----------
    data : Series
        The column in the confidential data.
    sets : sequence of Series
        The same column of each synthetic set.
    """
    if not is_number(data):
        shares = shares_of(data, {"": sets})
        distance = np.abs(shares.synthetic[""] - shares.data).sum(axis=1).mean() / 2
        return (_judged("total_variation", "total variation of shares", float(distance)),)
    return judge_sets(_values(data), [_values(each) for each in sets])


def judge_sets(data: FloatArray, sets: Sequence[FloatArray]) -> tuple[Judged, ...]:
    """`judge_outcome` of finite numbers: of their mean, and of the first sets' distribution."""
    if min(data.size, *(each.size for each in sets)) < 2:
        return ()
    found: list[Judged] = []
    error = float(data.std(ddof=1) / np.sqrt(data.size))
    mean, ends = _mean_of_sets(sets)
    if data.mean() != 0:
        off = abs(mean - data.mean()) / abs(data.mean())
        found.append(_judged("mean_error", "error of the mean", float(off)))
    if error > 0:
        gap = float(standardised_difference(data.mean(), mean, error))
        found.append(_judged("standardised_difference", "standardized difference", gap))
        own = data.mean() + _NORMAL * error * np.array([-1.0, 1.0])
        if ends[0] < ends[1]:
            overlap = float(interval_overlap(own, ends))
            found.append(_judged("interval_overlap", "interval overlap", overlap))
    distance = float(np.mean([max_ecdf(data, each) for each in sets[:_MOST_SETS]]))
    return (*found, _judged("max_ecdf", "max-ECDF", distance))


def _mean_of_sets(sets: Sequence[FloatArray]) -> tuple[float, FloatArray]:
    """Mean over the sets and its 95 % interval, shape (2,), by [R03]; of one set at its word."""
    means = [float(each.mean()) for each in sets]
    variances = [float(each.var(ddof=1)) / each.size for each in sets]
    if len(sets) == 1:
        half = _NORMAL * np.sqrt(variances[0])
        return means[0], means[0] + half * np.array([-1.0, 1.0])
    if max(variances) == 0:
        return float(np.mean(means)), np.array([np.mean(means), np.mean(means)])
    combined = combine_partially_synthetic(means, variances)
    return float(combined.estimate), combined.interval()


def _judged(measure: str, label: str, value: float) -> Judged:
    assert measure in MEASURES
    return Judged(measure=measure, label=label, value=value, word=word_of(measure, value))


def is_number(column: pd.Series) -> bool:
    """True for a column of numbers, of which means can be taken: no dates, no truth values."""
    kind = column.dtype
    return (
        pd.api.types.is_numeric_dtype(kind)
        and not pd.api.types.is_bool_dtype(kind)
        and not pd.api.types.is_complex_dtype(kind)
    )


def _values(column: pd.Series) -> FloatArray:
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(numbers[np.isfinite(numbers)])


_EPSILON_OF_LITTLE_USE = 10.0  # nats: a factor of 22,000


def verdict_section(release: Release, data: pd.DataFrame, lost: Sequence[str] = ()) -> Section:
    """Plain words and one row for each synthesized column. Confidential."""
    judged = judged_columns(release, data)
    wrong = [*_wrong(release, judged), *lost]
    said = {"Promised. ": _promise(release), "How good. ": _how_good(judged)}
    return in_short(said, wrong, [_table(judged)] if judged else [])


def in_short(
    said: Mapping[str, str], wrong: Sequence[str], tables: Sequence[Table] = ()
) -> Section:
    """The section that a page opens with: sentences after a bold word, what looks wrong, tables."""
    return Section(
        heading="In short",
        paragraphs=[["", opening, text] for opening, text in said.items()],
        bullets=list(wrong) or ["Nothing that this page checks looks wrong."],
        tables=tables,
    )


def judged_columns(release: Release, data: pd.DataFrame) -> dict[str, tuple[Judged, ...]]:
    """Judged measures of each synthesized column that has some, in their order."""
    found = {
        column: judge_outcome(data[column], [table[column] for table in release.synthetic])
        for column in release.synthesized
    }
    return {column: judged for column, judged in found.items() if judged}


def _promise(release: Release) -> str:
    charge = release.charge
    which = "Whether any" if charge.relation == "remove" else "What any"
    does = "was in the data" if charge.relation == "remove" else "holds"
    factor = (
        f"{which} {charge.protected} {does} changes the probability of what is released by a "
        f"factor of at most exp(epsilon): {charge.cost}"
    )
    if charge.kind == STRICT:
        return f"{factor}. It is strict: it holds for every database."
    return (
        f"{factor}. It is local: estimated for this database from posterior draws, and no promise "
        "for another one."
    )


def _how_good(judged: Mapping[str, Sequence[Judged]]) -> str:
    worst = {column: _worst(each) for column, each in judged.items()}
    if not worst:
        return "No synthesized column could be compared with the data."
    parts = []
    for word, text in (
        (GOOD, "about as near to the data as a second sample would be"),
        (FAIR, "further from the data than a second sample, and still usable for much"),
        (POOR, "further from the data than chance explains"),
    ):
        columns = [column for column, own in worst.items() if own == word]
        if columns:
            parts.append(f"{word[0].upper()}{word[1:]} ({text}): {_listed(columns)}.")
    return " ".join(parts)


def _worst(judged: Sequence[Judged]) -> str:
    words = {each.word for each in judged}
    return next(word for word in (POOR, FAIR, GOOD) if word in words)


def _wrong(release: Release, judged: Mapping[str, Sequence[Judged]]) -> list[str]:
    found = [
        f"{column}: {', '.join(f'{e.label} {e.text}' for e in each if e.word == POOR)} (POOR). Do "
        "not use it for inference as it is; look at the figures below for what is lost."
        for column, each in judged.items()
        if any(e.word == POOR for e in each)
    ]
    charge, diagnostics = release.charge, release.diagnostics
    if not charge.converged or (diagnostics is not None and not diagnostics.converged):
        found.append("The sampler has NOT CONVERGED: epsilon may be too small.")
    if charge.epsilon > _EPSILON_OF_LITTLE_USE:
        found.append(
            f"Epsilon is above {_EPSILON_OF_LITTLE_USE:g}: by itself it promises next to nothing."
        )
    if release.confidential.censored is not None and release.confidential.censored.mean() > 0.5:
        found.append("More than half of the records met the cap: the model hears little of them.")
    return found


def _table(judged: Mapping[str, Sequence[Judged]]) -> Table:
    labels = list(dict.fromkeys(each.label for own in judged.values() for each in own))
    rows = []
    for column, own in judged.items():
        cells: dict[str, Cell] = {
            each.label: Marked(text=each.text, word=each.word) for each in own
        }
        rows.append([column, *(cells.get(label, "–") for label in labels)])
    return Table(
        caption="Synthetic data against the data, a row for each synthesized column. Error, "
        "standardized difference and interval overlap are of the mean. Good: like a second sample; "
        "POOR: more than chance explains.",
        header=["Column", *labels],
        rows=rows,
        numbers=True,
    )


def _listed(names: Sequence[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


_LITTLE_SAFER = 0.5  # of the risk of the data as they are: above it a mask protects little
_MOST_NAMED = 4  # if all have one word
_NORMAL_2 = 1.959963984540054  # half a 95 % interval, in standard errors
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
        chance = _NORMAL_2 * np.hypot(own["error_mean_se"], plain["error_mean_se"])
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
    words = {name: _worst_of(*(cell.word for cell in cells)) for name, cells in found.items()}
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


def _worst_of(*words: str) -> str:
    return next((word for word in (POOR, FAIR, GOOD) if word in words), "")
