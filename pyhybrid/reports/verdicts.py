"""How good synthetic data are: numbers with their limits, and the top of each page. CONFIDENTIAL.

Every measure has two limits: up to the first a value is good, beyond the second it is poor. The
limits of ratios, interval overlap and standardized difference follow samples of the same size
(means of two samples differ by 3 standard errors of one of them in 3 % of cases; ratios: Raab,
Nowok, Dibben (2021), arXiv:2109.12717). The others say what an analyst would notice, whatever the
number of records is: a second sample of few records can be beyond them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.measures.combining import combine_partially_synthetic
from pyhybrid.measures.estimates import max_ecdf
from pyhybrid.measures.summaries import MEASURES, RiskSummary, UtilitySummary
from pyhybrid.measures.utility import interval_overlap, standardised_difference
from pyhybrid.models.formula.values import is_number
from pyhybrid.privacy.conversions import STRICT
from pyhybrid.releases.release import Release
from pyhybrid.reports.figures import NORMAL
from pyhybrid.reports.page import Cell, Marked, Section, Table, number_text, rendered, sentence

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


@dataclass(frozen=True)
class Judged:
    """A value of a measure of utility, which is a key of `pyhybrid.measures.MEASURES` and, after a
    comma, what it is of; an error may be `in_deviations`. Confidential."""

    measure: str
    value: float
    in_deviations: bool = False

    @property
    def label(self) -> str:
        """Title of the measure with what it is of: "pMSE, logistic" for "pmse, logistic"."""
        name, _, rest = self.measure.partition(",")
        return MEASURES[name].title + (f",{rest}" if rest else "")

    @property
    def word(self) -> str:
        """Good, fair or POOR; empty for a measure without limits or a value that is none."""
        limits = LIMITS.get(self.measure.split(",")[0])
        if limits is None or np.isnan(self.value):
            return ""
        good, poor = limits
        sign = 1 if good < poor else -1
        if sign * self.value <= sign * good:
            return GOOD
        return POOR if sign * self.value > sign * poor else FAIR

    @property
    def rank(self) -> int:
        """0 of POOR, 1 of fair, and more."""
        return [*WORDS, ""].index(self.word)

    @property
    def text(self) -> str:
        """The value as people write it: an error in percent, what has limits with two digits."""
        if self.measure == "mean_error" and self.word:
            percent = f"{self.value:.1%}" if self.value < 1 else f"{self.value:,.0%}"
            return f"{self.value:.2f} deviations" if self.in_deviations else percent
        few = self.word and abs(self.value) < 100
        return f"{self.value:.2f}" if few else number_text(self.value)

    @property
    def cell(self) -> Cell:
        """The value with its word."""
        return Marked(text=self.text, word=self.word) if self.word else self.text


def worst_word(measures: Sequence[Judged]) -> str:
    """The worst word of the measures; empty for none."""
    return min(measures, key=lambda one: one.rank).word if measures else ""


def limit_texts(measure: str) -> tuple[str, str]:
    """The two limits of a measure in print."""
    name = measure.split(",")[0]
    form = ".0%" if name == "mean_error" else "g"
    good, poor = LIMITS[name]
    return f"{good:{form}}", f"{poor:{form}}"


def limits_text(measures: Iterable[str]) -> str:
    """What the words mean: the limits of these measures."""
    names = dict.fromkeys(measure.split(",")[0] for measure in measures)
    each = ", ".join(f"{MEASURES[name].title} {' and '.join(limit_texts(name))}" for name in names)
    return sentence("verdict", "limits", each=each) if each else ""


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
        apart = [level_shares(column).sub(truth, fill_value=0.0).abs().sum() / 2 for column in sets]
        return (Judged("total_variation", float(np.mean(apart))),)
    real, *drawn = (_finite(column) for column in (data, *sets))
    judged: list[Judged] = []
    if min(real.size, *(values.size for values in drawn)) > 1:
        error = float(real.std(ddof=1) / np.sqrt(real.size))
        mean, ends = _mean_of_sets(drawn)
        if real.any():  # a share of the mean, or in deviations of the column where it is near 0
            size, deviation = abs(float(real.mean())), float(real.std())
            near = size < _NEAR_0 * deviation
            off = float(abs(mean - real.mean()) / ((deviation if near else size) or np.nan))
            judged.append(Judged("mean_error", off, in_deviations=near))
        if error > 0:
            gap = standardised_difference(real.mean(), mean, error)
            judged.append(Judged("standardised_difference", float(gap)))
            if ends[0] < ends[1]:
                interval = real.mean() + NORMAL * error * np.array([-1.0, 1.0])
                judged.append(Judged("interval_overlap", float(interval_overlap(interval, ends))))
        distance = np.mean([max_ecdf(real, values) for values in drawn[:_MOST_SETS]])
        judged.append(Judged("max_ecdf", float(distance)))
    missing = np.array([column.isna().mean() for column in (data, *sets)])
    if missing.any():
        off_missing = float(np.abs(missing[1:] - missing[0]).mean())
        judged.append(Judged("total_variation, missing values", off_missing))
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


def _mean_of_sets(sets: Sequence[FloatArray]) -> tuple[float, FloatArray]:
    """Mean over the sets and its 95 % interval, shape (2,), by [R03]; of one set as of data."""
    means = [float(values.mean()) for values in sets]
    variances = [float(values.var(ddof=1)) / values.size for values in sets]
    if len(sets) > 1 and max(variances) > 0:
        combined = combine_partially_synthetic(means, variances)
        return float(combined.estimate), combined.interval()
    half = NORMAL * np.sqrt(variances[0])
    return float(np.mean(means)), np.mean(means) + half * np.array([-1.0, 1.0])


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
        parts = [f"{w[0].upper()}{w[1:]}: {listed(of)}." for w, of in by_word.items() if of]
        sentences["How good. "] = " ".join(parts) or "Nothing that has limits could be computed."
    poor = []
    for column, measures in judged.items():
        beyond = [f"{one.label} {one.text} (beyond {limit_texts(one.measure)[1]})"
                  for one in measures if one.word == POOR]  # fmt: skip
        poor += [f"{column} is POOR: {', '.join(beyond)}."] if beyond else []
    if len(poor) > _MOST_POOR:  # each is marked in a table
        poor = [sentence("verdict, all poor", poor=len(poor), of=len(judged))]
    bullets = [*poor, *wrong, *rendered(name, "wrong", **values)]
    return Section(
        heading="In short",
        paragraphs=[["", opening, text] for opening, text in sentences.items()],
        bullets=bullets or ["The checks of this page found nothing wrong."],
    )


def judged_table(judged: Mapping[str, Sequence[Judged]]) -> Table:
    """A row for each column, with a column for each measure with limits."""
    labels = {m.label: m.measure for measures in judged.values() for m in measures}
    heads = []
    for label, measure in labels.items():
        good, poor = limit_texts(measure)
        heads.append(f"{label[0].upper()}{label[1:]} (good to {good}, POOR beyond {poor})")
    rows = []
    for name, measures in judged.items():
        cells = {measure.label: measure.cell for measure in measures}
        rows.append([name, *(cells.get(label, "–") for label in labels)])
    caption = sentence("verdict", "table")
    return Table(caption=caption, header=["Column", *heads], rows=rows, numbers=True)


def verdict_section(
    release: Release, judged: Mapping[str, Sequence[Judged]], lost: Sequence[str] = ()
) -> Section:
    """What a release guarantees, how good its columns are, what looks wrong, and sentences on
    relations that are `lost`. Confidential."""
    censored, diagnostics = release.confidential.censored, release.diagnostics
    told, origin = {}, release.origin
    if origin is not None:  # published columns that give synthesized ones, and how
        gone = [*release.decisions.drop, *release.decisions.ids]
        data = origin.data.drop(columns=gone, errors="ignore")
        alone = exposed_columns(data.drop(columns=[*release.synthesized], errors="ignore"), ())
        found = exposed_columns(data, release.synthesized)
        told = {name: why for name, why in found.items() if name not in alone}
    return in_short(
        "verdict", judged, lost,
        charge=release.charge, strict=release.charge.kind == STRICT,
        converged=release.charge.converged and (diagnostics is None or diagnostics.converged),
        censored=censored is not None and censored.mean() > 0.5,
        drifted=[] if origin is None else origin.drifted,
        told=[f"{name}: {why}" for name, why in told.items()],
    )  # fmt: skip


def utility_verdict(summary: UtilitySummary) -> Section:
    """How many measures are good, fair and poor, and which are poor."""
    measures = [Judged(name, value) for name, value in summary.overall().items()]
    judged = [measure for measure in measures if measure.word]
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
