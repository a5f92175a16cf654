"""How good synthetic data are, in words, and the top of each page. CONFIDENTIAL.

Every measure has two limits: up to the first a value is good, beyond the second it is poor. The
limits of ratios, interval overlap and standardized difference follow samples of the same size
(means of two samples differ by 3 standard errors of one of them in 3 % of cases; ratios: Raab,
Nowok, Dibben (2021), arXiv:2109.12717). The others say what an analyst would notice, whatever the
number of records is: a second sample of few records can be beyond them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.masking.imputation import naming_share
from pyhybrid.measures.combining import combine_partially_synthetic
from pyhybrid.measures.estimates import max_ecdf
from pyhybrid.measures.matching import MatchingRisk
from pyhybrid.measures.models import ModelUtility
from pyhybrid.measures.summaries import MEASURES, RiskSummary, UtilitySummary
from pyhybrid.measures.utility import interval_overlap, standardised_difference
from pyhybrid.privacy.conversions import STRICT, epsilon_text
from pyhybrid.releases.release import Release
from pyhybrid.reports.checklist import COUNTED
from pyhybrid.reports.levels import shares_of
from pyhybrid.reports.page import Cell, Marked, Section, Table, number_text, rendered, sentence
from pyhybrid.studies.comparing.comparison import DATA, Comparison, outcome_of
from pyhybrid.studies.comparing.curve import NEAR, RiskUtilityCurve

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

_NEAR_0 = 0.1  # deviations: the error of a smaller mean is given in deviations
_NORMAL = 1.959963984540054  # half a 95 % interval, in standard errors
_MOST_SETS = 3


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A value of a measure of utility (a key of `pyhybrid.measures.MEASURES`), what it is called
    and of what it is, and how good it is; an error may be `in_deviations`. Confidential."""

    measure: str
    label: str
    value: float
    word: str
    in_deviations: bool = False

    @property
    def text(self) -> str:
        """The value as people write it: an error in percent, the others with two digits."""
        if self.measure == "mean_error":
            return _error_text(self.value, self.in_deviations)
        return number_text(self.value) if abs(self.value) >= 100 else f"{self.value:.2f}"


def word_of(measure: str, value: float) -> str:
    """Good, fair or POOR; empty for a measure without limits or a value that is none. What follows
    a comma in the name of a measure says what it is of, as in reports."""
    limits = LIMITS.get(measure.split(",")[0])
    if limits is None or np.isnan(value):
        return ""
    good, poor = limits
    sign = 1 if good < poor else -1
    if sign * value <= sign * good:
        return GOOD
    return POOR if sign * value > sign * poor else FAIR


def judged_cell(name: str, value: float | None, text: str | None = None) -> Cell:
    """A value, or its `text`, with its word, where the measure has limits."""
    if value is None:
        return "–"
    word, shown = word_of(name, value), text or number_text(value)
    return Marked(text=shown, word=word) if word else shown


def measure_label(name: str) -> str:
    """Title of a measure with what it is of: "pMSE, logistic" for "pmse, logistic"."""
    measure, _, rest = name.partition(",")
    return MEASURES[measure].title + (f",{rest}" if rest else "")


def judge_outcome(data: pd.Series, sets: Sequence[pd.Series]) -> tuple[Judged, ...]:
    """Measures of one synthesized column, in the data and in each set: of its mean and
    distribution, or of its shares."""
    if not is_number(data):
        shares = shares_of(data, {"": sets}, most=None)
        distance = np.abs(shares.synthetic[""] - shares.data).sum(axis=1).mean() / 2
        return (_judged("total_variation", "total variation of shares", float(distance)),)
    found = judge_sets(_values(data), [_values(each) for each in sets])
    gone = np.array([each.isna().mean() for each in (data, *sets)])
    if not gone.any():
        return found
    off = float(np.abs(gone[1:] - gone[0]).mean())
    return (*found, _judged("total_variation", "error of the share missing", off))


def judge_columns(
    release: Release, data: pd.DataFrame, columns: Iterable[str]
) -> dict[str, tuple[Judged, ...]]:
    """`judge_outcome` of each of these columns that has measures."""
    own = {c: judge_outcome(data[c], [t[c] for t in release.synthetic]) for c in columns}
    return {column: measures for column, measures in own.items() if measures}


def judge_sets(data: FloatArray, sets: Sequence[FloatArray]) -> tuple[Judged, ...]:
    """`judge_outcome` of finite numbers: of their mean, and of the first sets' distribution."""
    if min(data.size, *(each.size for each in sets)) < 2:
        return ()
    found: list[Judged] = []
    error = float(data.std(ddof=1) / np.sqrt(data.size))
    mean, ends = _mean_of_sets(sets)
    if data.any():
        off, near = mean_error(mean, data.mean(), data.std())
        found.append(replace(_judged("mean_error", "error of the mean", off), in_deviations=near))
    if error > 0:
        gap = float(standardised_difference(data.mean(), mean, error))
        found.append(_judged("standardised_difference", "standardized difference", gap))
        own = data.mean() + _NORMAL * error * np.array([-1.0, 1.0])
        if ends[0] < ends[1]:
            overlap = float(interval_overlap(own, ends))
            found.append(_judged("interval_overlap", "interval overlap", overlap))
    distance = float(np.mean([max_ecdf(data, each) for each in sets[:_MOST_SETS]]))
    return (*found, _judged("max_ecdf", "max-ECDF", distance))


def mean_error(made: float, mean: float, deviation: float) -> tuple[float, bool]:
    """The error of a mean as a share of it, or, and then True, in deviations of the column where
    the mean is near 0."""
    near = abs(mean) < _NEAR_0 * deviation
    return float(abs(made - mean) / ((deviation if near else abs(mean)) or np.nan)), near


def _error_text(off: float, in_deviations: bool) -> str:
    percent = "–" if np.isnan(off) else f"{off:.1%}" if off < 1 else f"{off:,.0%}"
    return f"{off:.2f} deviations" if in_deviations else percent


def _mean_of_sets(sets: Sequence[FloatArray]) -> tuple[float, FloatArray]:
    """Mean over the sets and its 95 % interval, shape (2,), by [R03]; of one set as of data."""
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


_NOTHING_WRONG = "The checks of this page found nothing wrong."
_MOST_NAMED = 4  # if all have one word
_MOST_POOR = 3  # columns that have a sentence each
_ROUNDED = 0.99  # epsilons are rounded up
_TELLS = 0.1  # of an attribute risk above that without the keys


def _in_short(
    name: str, said: dict[str, str], wrong: list[str], tables: Sequence[Table] = (), **values: Any
) -> Section:
    """The section that a page opens with: the guarantee, further sentences after a bold word,
    what looks wrong (``wrong`` of the name's words, and what is given), tables."""
    sentences = {"Guarantee. ": sentence(name, "promised", **values), **said}
    bullets = [*wrong, *rendered(name, "wrong", **values)]
    return Section(
        heading="In short",
        paragraphs=[["", opening, text] for opening, text in sentences.items()],
        bullets=bullets or [_NOTHING_WRONG],
        tables=tables,
    )


def verdict_section(release: Release, data: pd.DataFrame, lost: Sequence[str] = ()) -> Section:
    """What a release guarantees, how good its columns are, what looks wrong, and sentences on
    relations that are `lost`. Confidential."""
    judged = judge_columns(release, data, release.synthesized)
    poor = {
        column: ", ".join(f"{each.label} {each.text}" for each in measures if each.word == POOR)
        for column, measures in judged.items()
    }
    wrong = [sentence("verdict, poor", column=c, poor=text) for c, text in poor.items() if text]
    if len(wrong) > _MOST_POOR:  # each is marked in a table
        wrong = [sentence("verdict, all poor", poor=len(wrong), columns=len(judged))]
    censored, found = release.confidential.censored, release.diagnostics
    top = _in_short(
        "verdict",
        {"How good. ": _how_good(judged)},
        wrong,
        [_judged_table(judged)] if judged else [],
        charge=release.charge,
        strict=release.charge.kind == STRICT,
        converged=release.charge.converged and (found is None or found.converged),
        censored=censored is not None and censored.mean() > 0.5,
    )
    if not lost:
        return top
    said = [] if top.bullets == [_NOTHING_WRONG] else top.bullets
    return replace(top, bullets=[*said, *lost])


def _how_good(judged: Mapping[str, Sequence[Judged]]) -> str:
    worst = {column: worst_of(each.word for each in own) for column, own in judged.items()}
    if not worst:
        return "No synthesized column could be compared with the data."
    parts = []
    for word, text in (
        (GOOD, "all measures within their first limits"),
        (FAIR, "a measure between its limits; usable for many purposes"),
        (POOR, "a measure beyond its second limit"),
    ):
        columns = [column for column, own in worst.items() if own == word]
        if columns:
            parts.append(f"{word[0].upper()}{word[1:]} ({text}): {listed(columns)}.")
    return " ".join(parts)


def worst_of(words: Iterable[str]) -> str:
    """The worst of the words; empty for none."""
    present = set(words)
    return next((word for word in (POOR, FAIR, GOOD) if word in present), "")


def _judged_table(judged: Mapping[str, Sequence[Judged]]) -> Table:
    labels = list(dict.fromkeys(each.label for measures in judged.values() for each in measures))
    rows = []
    for column, measures in judged.items():
        cells: dict[str, Cell] = {
            each.label: Marked(text=each.text, word=each.word) for each in measures
        }
        rows.append([column, *(cells.get(label, "–") for label in labels)])
    caption = sentence("verdict", "table")
    return Table(caption=caption, header=["Column", *labels], rows=rows, numbers=True)


def limits_text(measures: Iterable[str]) -> str:
    """What the words mean: the limits of these measures."""
    named = {"total_variation": "total variation or error of the share missing"}
    each = ", ".join(
        f"{named.get(name, MEASURES[name].title)} {good:{form}} and {poor:{form}}"
        for name in dict.fromkeys(measures)
        for good, poor in [LIMITS[name]]
        for form in [".0%" if name == "mean_error" else "g"]
    )
    return sentence("verdict", "limits", each=each) if each else ""


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names with commas between, so many at `most`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def curve_verdict(curve: RiskUtilityCurve) -> Section:
    """Which weights are nearer to the data at equal epsilon, and how near."""
    table = curve.table
    points = table[table["mechanism"] != "Unweighted"]
    pairs = points.pivot_table(index=["scale", "shift"], columns="mechanism", values="max_ecdf")
    words = {
        f"{row.mechanism} ({row.scale:g}, {row.shift:g})": word_of("max_ecdf", row.max_ecdf)
        for row in points.itertuples(index=False)
    }
    values: dict[str, Any] = {
        "equal": _equal(points).all(),
        "ahead": int((pairs["LW"] < pairs["SW"]).sum()),
        "pairs": len(pairs),
        "low": epsilon_text(float(points["epsilon"].min())),
        "high": epsilon_text(float(points["epsilon"].max())),
        "counted": COUNTED["lipschitz"],
        "unconverged": int((~table["converged"]).sum()),
        "poor": sum(word == POOR for word in words.values()),
        "points": len(words),
    }
    said = {
        "Which weights. ": sentence("verdict of a curve", "which", **values),
        "How good. ": f"By max-ECDF, points with (scale, shift). {_by_word(words)}",
    }
    wrong = [*_mean_lost(table), *_costs_unlike(table)]
    return _in_short("verdict of a curve", said, wrong, **values)


def _mean_lost(table: pd.DataFrame) -> list[str]:
    """Which weights take the mean further from the data than the unweighted fit, beyond chance."""
    plain = table[table["mechanism"] == "Unweighted"].iloc[0]
    sentences = []
    for name, points in table[table["mechanism"] != "Unweighted"].groupby("mechanism"):
        further = points["error_mean"] - plain["error_mean"]
        chance = _NORMAL * np.hypot(points["error_mean_se"], plain["error_mean_se"])
        lost = int((further > chance).sum())
        if lost:
            sentences.append(sentence("mean lost", name=name, lost=lost, points=len(points)))
    return sentences


def _equal(points: pd.DataFrame) -> pd.Series:
    """Of each point of a curve, whether its epsilon is that of LW beside it."""
    return points["bound_ratio"] >= _ROUNDED * NEAR


def _costs_unlike(table: pd.DataFrame) -> list[str]:
    """Where the curve has no pair of equal epsilons, and where weights cost more than none."""
    plain, points = table.iloc[0], table.iloc[1:]
    vector, less = points[points["mechanism"] == "LW"], points[~_equal(points)]
    return rendered(
        "costs unlike",
        cost=epsilon_text(plain["epsilon"]),
        dear=int((vector["epsilon"] > plain["epsilon"]).sum()),
        points=len(vector),
        less=len(less),
        low=100 * less["bound_ratio"].min(),
        high=100 * less["bound_ratio"].max(),
    )


def weights_of(release: Release) -> str:
    """How the weights were made, whatever name the candidate has."""
    return f"{release.charge.mechanism}{', re-weighted' if release.reweighted else ''}"


def comparison_verdict(comparison: Comparison) -> Section:
    """Epsilon of each mechanism, and how near its estimates are to those of the data."""
    ends = comparison.estimates.set_index(["source", "statistic"])[["estimate", "lower", "upper"]]
    of_numbers = "mean" in ends.loc[DATA].index
    outcome = outcome_of(comparison.session.bound)
    of = partial(_of_mean, deviation=float(outcome.spread()[0])) if of_numbers else _of_shares
    cells = {name: of(ends.loc[DATA], ends.loc[name]) for name in comparison.releases}
    measures = _OF_MEAN if of_numbers else _OF_SHARES
    words = {name: worst_of(cell.word for cell in own) for name, own in cells.items()}
    costs = {name: release.charge.epsilon for name, release in comparison.releases.items()}
    ways = dict.fromkeys(COUNTED.get(way, "") for way in comparison.table["accounting"])
    said = sentence("verdict of a comparison", "table", counted=" and ".join(filter(None, ways)))
    table = Table(
        caption=f"{said} {limits_text(measures.values())}",
        header=["Mechanism", "Weights", "Epsilon", *measures],
        rows=[
            [name, weights_of(comparison.releases[name]), epsilon_text(cost), *cells[name]]
            for name, cost in costs.items()
        ],
        numbers=True,
    )
    wrong = [
        f"{name} has NOT CONVERGED: its epsilon may be too small."
        for name, release in comparison.releases.items()
        if not release.charge.converged
    ]
    wrong += _poor(cells, measures)
    wrong += _costs_more(comparison)
    cheapest = min(costs, key=lambda name: costs[name])
    return _in_short(
        "verdict of a comparison", {"How good. ": _by_word(words)}, wrong, [table],
        epsilon=epsilon_text(costs[cheapest]), cheapest=cheapest,
    )  # fmt: skip


def _poor(found: Mapping[str, Sequence[Marked]], measures: Iterable[str]) -> list[str]:
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

    return [
        sentence(
            "costs more",
            name=name,
            other=other,
            most=epsilon_text(release.charge.epsilon),
            least=epsilon_text(plain.charge.epsilon),
            counted=COUNTED.get(release.charge.accounting, "by the cap"),
        )
        for name, release in comparison.releases.items()
        for other, plain in comparison.releases.items()
        if release.reweighted is not None and plain.reweighted is None
        if release.charge.epsilon > plain.charge.epsilon and before(release) == before(plain)
    ]


def utility_verdict(summaries: Mapping[str, UtilitySummary]) -> Section:
    """How many measures of each version are good, fair and poor, and which are poor."""
    said, wrong = {}, []
    for name, found in summaries.items():
        overall = found.overall()
        words = {key: word for key, value in overall.items() if (word := word_of(key, value))}
        counts = ", ".join(
            f"{sum(word == each for word in words.values())} {each}" for each in (GOOD, FAIR, POOR)
        )
        said["How good. " if len(summaries) == 1 else f"{name}. "] = (
            f"Of {len(words)} measures that have limits: {counts}."
        )
        mark = "" if len(summaries) == 1 else f"{name}: "
        wrong += [
            f"{mark}{measure_label(key)}{_which(found, key)} is {number_text(overall[key])} (POOR)."
            for key, word in words.items()
            if word == POOR
        ]
    return _in_short("verdict of utility", said, wrong)


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
    table = found.columns.distances if measure in found.columns.distances else one
    return f" ({table['column'].iloc[int(table[name].argmax())]})"


def risk_verdict(summaries: Mapping[str, RiskSummary]) -> Section:
    """What the intruder finds, and whether keys tell more than no keys."""
    said, wrong = {}, []
    for name, found in summaries.items():
        overall, single = found.overall(), len(summaries) == 1
        correct = found.matching.correct_by_record
        mark = "" if single else f"{name}: "
        values = {
            "keys": found.keys,
            "risk": overall["matching_risk"],
            "correct": None if correct is None else float(correct.mean()),
            "certain": 0 if correct is None else int((correct >= 1).sum()),
            "targets": found.matching.n_targets,
        }
        text = " ".join([sentence("verdict of risk", "found", **values), *_learned(overall)])
        said["Found. " if single else f"{name}. "] = text
        wrong += [f"{mark}{each}" for each in rendered("verdict of risk", "certain", **values)]
        for key, value in overall.items():
            measure, _, column = key.partition(", ")
            base = overall.get(f"attribute_baseline, {column}")
            if measure == "attribute_risk" and base is not None and value > base + _TELLS:
                wrong.append(
                    f"{mark}{column} is found with probability {number_text(value)} by one who "
                    f"knows the keys, {number_text(base)} without them."
                )
    return _in_short("verdict of risk", said, wrong)


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
    word = "" if utility is None else word_of("interval_overlap", utility.mean_overlap)
    values: dict[str, Any] = {"was": was, "now": now, "word": word, "poor": POOR}
    name = "verdict of a mask"
    kept = ", ".join(f"{key} {share:.0%}" for key, share in unchanged.items())
    said = {
        "Risk. ": sentence(name, "risk", **values),
        "Changed. ": f"Records that keep their own value: {kept}.",
    }
    if utility is not None:
        least = float(utility.table["interval_overlap"].min())
        said["How good. "] = sentence(
            name, "good", mean=utility.mean_overlap, least=least, word=word
        )
    wrong = [
        f"{key} is left as it was in nearly all records: its mask protects little."
        for key in left_as_they_were
    ]
    return _in_short(name, said, wrong, **values)


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


_OF_MEAN = {"Error of the mean": "mean_error", "Interval overlap of the mean": "interval_overlap"}
_OF_SHARES = {"Total variation of shares": "total_variation"}


def _of_mean(truth: pd.DataFrame, found: pd.DataFrame, deviation: float) -> list[Marked]:
    """Cells of an outcome of numbers, of this deviation."""
    was, now = truth.loc["mean"], found.loc["mean"]
    off, near = mean_error(now["estimate"], was["estimate"], deviation)
    ends = [each[["lower", "upper"]].to_numpy(dtype=np.float64) for each in (was, now)]
    short = any(not low < high for low, high in ends)
    overlap = np.nan if short else float(interval_overlap(ends[0], ends[1]))
    return [
        Marked(text=_error_text(off, near), word=word_of("mean_error", off)),
        Marked(text="–" if short else f"{overlap:.2f}", word=word_of("interval_overlap", overlap)),
    ]


def _of_shares(truth: pd.DataFrame, found: pd.DataFrame) -> list[Marked]:
    """The cell of an outcome of levels: half the sum of the differences of their shares."""
    off = float((found["estimate"] - truth["estimate"]).abs().sum()) / 2
    return [Marked(text=f"{off:.3f}", word=word_of("total_variation", off))]
