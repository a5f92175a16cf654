"""How good synthetic data are: numbers with their limits, and the top of each page. CONFIDENTIAL.

Every measure has two limits: up to the first a value is good, beyond the second it is poor. The
limits of ratios, interval overlap and standardized difference follow samples of the same size
(means of two samples differ by 3 standard errors of one of them in 3 % of cases; ratios: Raab,
Nowok, Dibben (2021), arXiv:2109.12717). The others say what an analyst would notice, whatever the
number of records is: a second sample of few records can be beyond them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.measures.combining import combine_partially_synthetic
from pyhybrid.measures.estimates import max_ecdf
from pyhybrid.measures.summaries import MEASURES, RiskSummary, UtilitySummary
from pyhybrid.measures.utility import interval_overlap, standardised_difference
from pyhybrid.models.formula.values import is_number
from pyhybrid.privacy.conversions import STRICT, epsilon_text
from pyhybrid.releases.release import Release
from pyhybrid.reports.figures import NORMAL
from pyhybrid.reports.page import Cell, Marked, Section, Table, number_text, rendered, sentence
from pyhybrid.studies.comparing.comparison import DATA, Comparison, present
from pyhybrid.studies.comparing.curve import RiskUtilityCurve

GOOD, FAIR, POOR = "good", "fair", "POOR"
WORDS = (POOR, FAIR, GOOD)

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
_MOST_SETS, _MOST_POOR = 3, 3
_DISTANCES = ("max_ecdf", "total_variation")
_NOTHING_WRONG = "The checks of this page found nothing wrong."


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


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A value of a measure of utility (a key of `pyhybrid.measures.MEASURES`) and what it is called
    and of what it is; an error may be `in_deviations`. Confidential."""

    measure: str
    label: str
    value: float
    in_deviations: bool = False

    @property
    def word(self) -> str:
        """How good it is; empty for a value that is none."""
        return word_of(self.measure, self.value)

    @property
    def rank(self) -> int:
        """0 of POOR, 1 of fair, and more."""
        return [*WORDS, ""].index(self.word)

    @property
    def text(self) -> str:
        """The value as people write it: an error in percent, the others with two digits."""
        if np.isnan(self.value):
            return "–"
        if self.measure == "mean_error":
            percent = f"{self.value:.1%}" if self.value < 1 else f"{self.value:,.0%}"
            return f"{self.value:.2f} deviations" if self.in_deviations else percent
        return number_text(self.value) if abs(self.value) >= 100 else f"{self.value:.2f}"

    @property
    def cell(self) -> Cell:
        """The value with its word."""
        return Marked(text=self.text, word=self.word) if self.word else self.text


def worst_word(measures: Sequence[Judged]) -> str:
    """The worst word of the measures; empty for none."""
    return min(measures, key=lambda one: one.rank).word if measures else ""


def limit_texts(measure: str) -> tuple[str, str]:
    """The two limits of a measure in print."""
    form = ".0%" if measure == "mean_error" else "g"
    good, poor = LIMITS[measure]
    return f"{good:{form}}", f"{poor:{form}}"


def limits_text(measures: Iterable[str]) -> str:
    """What the words mean: the limits of these measures."""
    each = ", ".join(
        f"{MEASURES[name].title} {' and '.join(limit_texts(name))}"
        for name in dict.fromkeys(measures)
    )
    return sentence("verdict", "limits", each=each) if each else ""


def judged_cell(name: str, value: float | None) -> Cell:
    """A value with its word, where the measure has limits."""
    if value is None:
        return "–"
    word, text = word_of(name, value), number_text(value)
    return Marked(text=text, word=word) if word else text


def measure_label(name: str) -> str:
    """Title of a measure with what it is of: "pMSE, logistic" for "pmse, logistic"."""
    measure, _, rest = name.partition(",")
    return MEASURES[measure].title + (f",{rest}" if rest else "")


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names with commas between, so many at `most`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def level_shares(column: pd.Series) -> pd.Series:
    """Share of each level as text, the most frequent first; missing values are a level."""
    known: pd.Series = column.astype(str).where(column.notna(), "missing")
    return known.value_counts(normalize=True)


def judge_outcome(data: pd.Series, sets: Sequence[pd.Series]) -> tuple[Judged, ...]:
    """Measures of one synthesized column, in the data and in each set: of its mean, of the first
    sets' distribution and of missing values, or of its shares."""
    if not is_number(data):
        truth = level_shares(data)
        off = [level_shares(column).sub(truth, fill_value=0.0).abs().sum() / 2 for column in sets]
        distance = np.mean(off)
        return (_judged("total_variation", "total variation of shares", distance),)
    real, *made = (_finite(column) for column in (data, *sets))
    judged: list[Judged] = []
    if min(real.size, *(values.size for values in made)) > 1:
        error = float(real.std(ddof=1) / np.sqrt(real.size))
        mean, ends = _mean_of_sets(made)
        if real.any():
            judged.append(judge_mean(mean, real.mean(), real.std()))
        if error > 0:
            gap = standardised_difference(real.mean(), mean, error)
            judged.append(_judged("standardised_difference", "standardized difference", gap))
            if ends[0] < ends[1]:
                interval = real.mean() + NORMAL * error * np.array([-1.0, 1.0])
                overlap = interval_overlap(interval, ends)
                judged.append(_judged("interval_overlap", "interval overlap", overlap))
        distance = np.mean([max_ecdf(real, values) for values in made[:_MOST_SETS]])
        judged.append(_judged("max_ecdf", "max-ECDF", distance))
    missing = np.array([column.isna().mean() for column in (data, *sets)])
    if missing.any():
        off = np.abs(missing[1:] - missing[0]).mean()
        judged.append(_judged("total_variation", "error of the share missing", off))
    return tuple(judged)


def judged_columns(release: Release, data: pd.DataFrame) -> dict[str, tuple[Judged, ...]]:
    """`judge_outcome` of each synthesized column that has measures, the worst first: by word, then
    by distance of the distributions."""
    judged = {
        column: judge_outcome(data[column], [table[column] for table in release.synthetic])
        for column in release.synthesized
    }

    def place(column: str) -> tuple[int, float]:
        far = max((m.value for m in judged[column] if m.measure in _DISTANCES), default=0.0)
        return min(measure.rank for measure in judged[column]), -far

    return {column: judged[column] for column in sorted(filter(judged.get, judged), key=place)}


def judge_mean(made: float, mean: float, deviation: float) -> Judged:
    """The error of a mean as a share of it, or in deviations of the column where it is near 0."""
    near = abs(mean) < _NEAR_0 * deviation
    off = float(abs(made - mean) / ((deviation if near else abs(mean)) or np.nan))
    label = "error of the mean"
    return Judged(measure="mean_error", label=label, value=off, in_deviations=near)


def _mean_of_sets(sets: Sequence[FloatArray]) -> tuple[float, FloatArray]:
    """Mean over the sets and its 95 % interval, shape (2,), by [R03]; of one set as of data."""
    means = [float(values.mean()) for values in sets]
    variances = [float(values.var(ddof=1)) / values.size for values in sets]
    if len(sets) > 1 and max(variances) > 0:
        combined = combine_partially_synthetic(means, variances)
        return float(combined.estimate), combined.interval()
    half = NORMAL * np.sqrt(variances[0])
    return float(np.mean(means)), np.mean(means) + half * np.array([-1.0, 1.0])


def _judged(measure: str, label: str, value: Any) -> Judged:
    return Judged(measure=measure, label=label, value=float(value))


def _finite(column: pd.Series) -> FloatArray:
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(numbers[np.isfinite(numbers)])


def in_short(
    name: str,
    judged: Mapping[str, Sequence[Judged]],
    wrong: Iterable[str] = (),
    said: Mapping[str, str] | None = None,
    **values: Any,
) -> Section:
    """The section that a page opens with: the guarantee (``promised`` of the name's words), further
    sentences after a bold word, which of what is `judged` is good and which not, and what is wrong:
    POOR values beside their limits, ``wrong`` of the words, and what is given."""
    sentences = {"Guarantee. ": sentence(name, "promised", **values), **(said or {})}
    if judged:
        by_word = {word: [name for name, measures in judged.items() if worst_word(measures) == word]
                   for word in reversed(WORDS)}  # fmt: skip
        parts = [
            f"{w[0].upper()}{w[1:]}: {listed(names)}." for w, names in by_word.items() if names
        ]
        nothing = "Nothing that has limits could be computed."
        sentences["How good. "] = " ".join(parts) or nothing
    named = []
    for column, measures in judged.items():
        poor = [f"{one.label} {one.text} (beyond {limit_texts(one.measure)[1]})"
                for one in measures if one.word == POOR]  # fmt: skip
        named += [f"{column} is POOR: {', '.join(poor)}."] if poor else []
    if len(named) > _MOST_POOR:  # each is marked in a table
        named = [sentence("verdict, all poor", poor=len(named), of=len(judged))]
    bullets = [*named, *wrong, *rendered(name, "wrong", **values)]
    return Section(
        heading="In short",
        paragraphs=[["", opening, text] for opening, text in sentences.items()],
        bullets=bullets or [_NOTHING_WRONG],
    )


def judged_table(
    judged: Mapping[str, Sequence[Judged]], first: str, beside: Mapping[str, Sequence[str]]
) -> Table:
    """A row for each name, with columns `beside` it, and a column for each measure with limits."""
    labels = {m.label: m.measure for measures in judged.values() for m in measures}
    heads = []
    for label, measure in labels.items():
        good, poor = limit_texts(measure)
        heads.append(f"{label[0].upper()}{label[1:]} (good to {good}, POOR beyond {poor})")
    rows = []
    for place, (name, measures) in enumerate(judged.items()):
        cells = {measure.label: measure.cell for measure in measures}
        others = [column[place] for column in beside.values()]
        rows.append([name, *others, *(cells.get(label, "–") for label in labels)])
    header = [first, *beside, *heads]
    return Table(caption=sentence("verdict", "table"), header=header, rows=rows, numbers=True)


def verdict_section(
    release: Release, judged: Mapping[str, Sequence[Judged]], lost: Sequence[str] = ()
) -> Section:
    """What a release guarantees, how good its columns are, what looks wrong, and sentences on
    relations that are `lost`. Confidential."""
    censored, diagnostics = release.confidential.censored, release.diagnostics
    return in_short(
        "verdict", judged, lost,
        charge=release.charge, strict=release.charge.kind == STRICT,
        converged=release.charge.converged and (diagnostics is None or diagnostics.converged),
        censored=censored is not None and censored.mean() > 0.5,
        drifted=[] if release.origin is None else release.origin.drifted,
    )  # fmt: skip


def judged_candidates(comparison: Comparison) -> dict[str, list[Judged]]:
    """By mechanism, error and interval overlap of the mean, or total variation of the shares."""
    ends = comparison.estimates.set_index(["source", "statistic"])[["estimate", "lower", "upper"]]
    truth, names = ends.loc[DATA], list(comparison.releases)
    if "mean" not in truth.index:
        off = {name: (ends.loc[name] - truth)["estimate"].abs().sum() / 2 for name in names}
        label = "total variation of shares"
        return {name: [_judged("total_variation", label, value)] for name, value in off.items()}
    deviation = float(present(comparison.session.bound.outcome).std())
    was, judged = truth.loc["mean"].to_numpy(dtype=np.float64), {}
    for name in names:
        now = ends.loc[name].loc["mean"].to_numpy(dtype=np.float64)
        known = was[1] < was[2] and now[1] < now[2]
        overlap = interval_overlap(was[1:], now[1:]) if known else np.nan
        judged[name] = [
            judge_mean(now[0], was[0], deviation),
            _judged("interval_overlap", "interval overlap of the mean", overlap),
        ]
    return judged


def comparison_verdict(comparison: Comparison) -> Section:
    """Epsilon of each mechanism, and how near its estimates are to those of the data."""
    judged, releases = judged_candidates(comparison), comparison.releases
    costs = {name: release.charge.epsilon for name, release in releases.items()}
    cheapest = min(costs, key=lambda name: costs[name])
    wrong = [
        f"{name} has NOT CONVERGED: its epsilon may be too small."
        for name, release in releases.items()
        if not release.charge.converged
    ]
    least: dict[str, Any] = {"epsilon": epsilon_text(costs[cheapest]), "cheapest": cheapest}
    section = in_short("verdict of a comparison", judged, wrong, **least)
    beside = {"Epsilon": [epsilon_text(cost) for cost in costs.values()]}
    return replace(section, tables=[judged_table(judged, "Mechanism", beside)])


def curve_verdict(curve: RiskUtilityCurve) -> Section:
    """What the points cost."""
    points = curve.table[curve.table["mechanism"] != "Unweighted"]
    values: dict[str, Any] = {
        "low": float(points["epsilon"].min()),
        "high": float(points["epsilon"].max()),
        "unconverged": int((~curve.table["converged"]).sum()),
    }
    return in_short("verdict of a curve", {}, **values)


def utility_verdict(summary: UtilitySummary) -> Section:
    """How many measures are good, fair and poor, and which are poor."""
    judged = [
        _judged(key.split(",")[0], measure_label(key), value)
        for key, value in summary.overall().items()
        if word_of(key, value)
    ]
    words = [measure.word for measure in judged]
    counts = ", ".join(f"{words.count(word)} {word}" for word in reversed(WORDS))
    said = {"Measures. ": f"Of {len(words)} that have limits: {counts}."}
    return in_short("verdict of utility", {"synthetic data": judged}, (), said)


def risk_verdict(summary: RiskSummary) -> Section:
    """What the intruder finds, and who is found for certain."""
    correct = summary.matching.correct_by_record
    values = {
        "keys": summary.keys,
        "risk": summary.overall()["matching_risk"],
        "correct": None if correct is None else float(correct.mean()),
        "certain": 0 if correct is None else int((correct >= 1).sum()),
        "targets": summary.matching.n_targets,
    }
    said = {"What is found. ": sentence("verdict of risk", "found", **values)}
    return in_short("verdict of risk", {}, (), said, **values)
