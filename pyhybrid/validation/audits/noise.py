"""Audits of noise: tables that are counted on every pair of neighbors, and mechanisms as they run.

*Noisy marginals, exactly.* Discrete Laplace noise of scale b on whole numbers has the privacy loss
||change||_1 / b, exactly, for the change of all cells together; Gaussian noise of scale sigma is
rho-zCDP with rho = ||change||_2^2 / (2 sigma^2), whose epsilon at delta is what is audited. What
changes is read off the mechanism's own tables, b and sigma off the noise that it really takes. Of a
release in two steps (`most_bins`) each step is counted on the bins that noise may lead to: merged
or not. Of a private choice one course of earlier answers is held fixed, which leads to the same
model for all databases; each round adds the loss of its choice, the largest log ratio of the
exponential mechanism's own probabilities, and that of the chosen table.

*Primitives and perturbed histograms, as they run.* Each pair of databases is one that attains the
stated epsilon, or nearly, and each score tells the two apart. OpenDP's noise has no seed. The
control is the same mechanism with less noise.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms import NoisyMarginals, PerturbedHistogram
from pyhybrid.mechanisms.marginals.domain import PARTS, ColumnDomain
from pyhybrid.mechanisms.marginals.measurement import Measured, Measuring, Tables
from pyhybrid.mechanisms.marginals.selection import by_candidate, chosen_tables, score, true_counts
from pyhybrid.primitives import (
    dp_kmeans,
    exponential_mechanism,
    laplace_counts,
    laplace_histogram,
    laplace_mean,
    laplace_sum,
    randomized_response,
)
from pyhybrid.primitives.tables import NoisyTables, cross_counts
from pyhybrid.privacy.conversions import epsilon_of_zcdp
from pyhybrid.privacy.epsilon_audit import audit_epsilon
from pyhybrid.validation.audits.finding import EPSILON, AuditFinding

_DELTA = 1e-6
_PUBLIC = (0, 2)  # predictors of the two records
_RECORDS = [*itertools.product((0, 1), (0, 1))]
"""Every (y, z) that a record can have."""
_FORMS: dict[str, dict[str, Any]] = {
    "NoisyMarginals": {},
    "NoisyMarginals, Gaussian": {"delta": _DELTA},
    "NoisyMarginals, two steps": {"most_bins": 2},
    "NoisyMarginals, two steps, Gaussian": {"most_bins": 2, "delta": _DELTA},
    "NoisyMarginals, private choice": {"select": "private"},
    "NoisyMarginals, private choice, Gaussian": {"select": "private", "delta": _DELTA},
}


@dataclass(frozen=True, kw_only=True)
class _Step:
    """Counts of one database in one step, in records, or scores, and the scale of their noise."""

    counts: FloatArray
    scale: float
    delta: float
    choice: bool = False


Run = Callable[[pd.DataFrame], Sequence[_Step]]
Seen = dict[tuple[tuple[int, int], ...], Sequence[_Step]]
"""From the records of a database to its steps."""


def _run_of(mechanism: NoisyMarginals) -> Run:
    if mechanism.select == "private":
        return functools.partial(_rounds, mechanism, _course(mechanism))
    return functools.partial(_steps, mechanism)


def marginals_audits() -> list[AuditFinding]:
    """Both relations, each with mechanisms that were broken on purpose; needs OpenDP."""
    findings = []
    for (name, form), relation in itertools.product(_FORMS.items(), ("replace", "remove")):
        mechanism = _mechanism(relation, **form)
        seen = _seen(_run_of(mechanism), relation)
        lost = _largest_loss(seen, relation)
        for control, broken in _broken(mechanism, seen).items():
            findings.append(
                AuditFinding.exact(name, relation, lost, control, _largest_loss(broken, relation))
            )
    return findings


def _seen(run: Run, relation: str) -> Seen:
    """All databases of two records, and those with a record less where `relation` has them."""
    databases = [*itertools.product(_RECORDS, repeat=2)]
    if relation == "remove":
        databases += [(record,) for record in _RECORDS]
    return {records: run(_database(records)) for records in databases}


def _largest_loss(seen: Seen, relation: str) -> float:
    """Over all databases that differ by one record."""
    worst = 0.0
    for one, other in itertools.product(seen, repeat=2):
        replaced = one[0] == other[0] and len(one) == len(other) == 2
        removed = one[:1] == other and len(one) == 2
        if replaced if relation == "replace" else removed:
            worst = max(worst, _loss(seen[one], seen[other]))
    return worst


def _loss(one: Sequence[_Step], other: Sequence[_Step]) -> float:
    """Of all steps: pure losses add, and rho does."""
    pure = rho = delta = 0.0
    if [step.counts.shape for step in one] != [step.counts.shape for step in other]:
        return math.inf  # what comes out tells which database it was
    for a, b in zip(one, other, strict=True):
        change, scale, delta = a.counts - b.counts, min(a.scale, b.scale), a.delta
        if a.choice:
            ratios = change / scale - logsumexp(a.counts / scale) + logsumexp(b.counts / scale)
            rho += float(np.ptp(ratios)) ** 2 / 8 if delta else 0.0  # of a bounded range
            pure += 0.0 if delta else float(np.abs(ratios).max())
        elif delta:
            rho += float(change @ change) / (2 * scale**2)
        else:
            pure += float(np.abs(change).sum()) / scale
    return pure + (epsilon_of_zcdp(rho, delta) if rho else 0.0)


def _database(records: tuple[tuple[int, int], ...]) -> pd.DataFrame:
    y, z = ([record[place] for record in records] for place in (0, 1))
    table: pd.DataFrame = pd.DataFrame({"y": y, "z": z, "x": _PUBLIC[: len(records)]})
    return table


def _mechanism(relation: str, **changes: Any) -> NoisyMarginals:
    """Tables of y and x, z and x, z and y; x is shared out between the ends of its range. Of a
    release in two steps y has four bins, of which a record is in the outer ones."""
    y: Any = {"bins": [0, 0.25, 0.5, 0.75, 1]} if "most_bins" in changes else (0, 1)
    options: dict[str, Any] = {
        "domain": {"y": y, "z": (0, 1), "x": {"bins": [0, 1, 2]}},
        "given": ["x"],
        "epsilon": EPSILON,
        "relation": relation,
    }
    return NoisyMarginals(**{**options, **changes})


def _steps(mechanism: NoisyMarginals, df: pd.DataFrame) -> list[_Step]:
    """Counts of each step, and its noise as it is taken."""
    measuring, tables = _tables(mechanism, df)
    steps = []
    if measuring.most_bins is not None:
        alone = measuring.one_way(df, tuple(measuring.order))
        steps.append(_step(alone, measuring.first(df).answer))
    for places, price in measuring.by_size(tables):
        alike = [tables[place] for place in places]
        steps.append(_step(alike, measuring.noisy(alike, price)))
    return steps


def _tables(mechanism: NoisyMarginals, df: pd.DataFrame) -> tuple[Measuring, Tables]:
    measuring = mechanism._measuring(df)
    return measuring, measuring.two_way(df, _merged(measuring))


def _course(mechanism: NoisyMarginals) -> Measured:
    """One course of answers and choices, on records enough to simulate from."""
    df: pd.DataFrame = pd.concat([_database(((0, 0), (1, 1)))] * 1000, ignore_index=True)
    return chosen_tables(mechanism._measuring(df), df, streams(1), most_rounds=4)


def _rounds(mechanism: NoisyMarginals, course: Measured, df: pd.DataFrame) -> list[_Step]:
    """Columns alone, and the rounds of a course: scores against the model that puts all records
    into the first cell, with the noise and the tables of the course."""
    measuring = mechanism._measuring(df)
    first, *later = course.answers
    steps = [_step(measuring.one_way(df, tuple(measuring.order)), first)]
    tables = by_candidate(measuring, measuring.two_way(df, measuring.domain))
    scores = []
    for counts in map(true_counts, tables.values()):
        scores.append(score(counts, np.array([len(df), *np.zeros(counts.size - 1)]), 0.0))
    for choice, answer in zip(course.choices, later, strict=True):
        steps.append(
            _Step(
                counts=np.array(scores),
                scale=choice.scale,
                delta=answer.charge.delta,
                choice=True,
            )
        )
        steps.append(_step([tables[choice.candidate]], answer))
    return steps


def _merged(measuring: Measuring) -> dict[str, Any]:
    """Every column of many bins cut in the middle: a cut that noise can lead to."""
    few = {
        name: replace(measuring.domain[name], bins=measuring.domain[name].bins[::2])
        for name in measuring.binned
    }
    return {**measuring.domain, **few}


def _step(tables: Tables, answer: NoisyTables) -> _Step:
    counts = cross_counts(tables, unit=PARTS) / PARTS
    return _Step(counts=counts, scale=answer.scale, delta=answer.charge.delta)


def _broken(mechanism: NoisyMarginals, seen: Seen) -> dict[str, Seen]:
    """Controls: other runs, or the steps that were `seen` of the mechanism, changed."""

    def changed(change: Callable[[_Step], _Step]) -> Seen:
        return {records: [change(step) for step in steps] for records, steps in seen.items()}

    def of_one(df: pd.DataFrame) -> list[_Step]:
        """Noise that is scaled for one table, added to all of them."""
        measuring, tables = _tables(mechanism, df)
        return [_step(tables, measuring.noisy(tables[:1], measuring.price))]

    def read(df: pd.DataFrame) -> list[_Step]:
        levels = {name: {"levels": [*df[name].unique().tolist(), 9]} for name in ("y", "z")}
        domain: dict[str, Any] = {**levels, "x": mechanism.domain["x"]}
        return _steps(replace(mechanism, domain=domain), df)

    def not_charged(df: pd.DataFrame) -> list[_Step]:
        """Each step at the whole price."""
        measuring, tables = _tables(mechanism, df)
        each = (measuring.one_way(df, tuple(measuring.order)), tables)
        return [_step(own, measuring.noisy(own, measuring.price)) for own in each]

    def greedy(step: _Step) -> _Step:
        """The best score, with a thousandth of its noise."""
        return replace(step, scale=step.scale / 1000) if step.choice else step

    def squared(step: _Step) -> _Step:
        """Scores that a record changes by more than by itself."""
        return replace(step, counts=step.counts**2) if step.choice else step

    halved = changed(lambda step: replace(step, scale=step.scale / 2))
    if mechanism.select == "private":
        return {
            "noise / 2": halved,
            "the best score": changed(greedy),
            "scores squared": changed(squared),
        }
    other, run = "levels read", read
    if mechanism.most_bins is not None:
        other, run = "a step not charged", not_charged
    relation = mechanism.relation
    return {
        "noise / 2": halved,
        "noise of one table": _seen(of_one, relation),
        other: _seen(run, relation),
    }


# --- Mechanisms as they run -----------------------------------------------------------------------

_CANDIDATES = 6
Score = Callable[[Any, float, int], FloatArray]
"""From a database, an epsilon and a number of runs to one score per run."""


@dataclass(frozen=True)
class NoiseCase:
    """A mechanism, two neighbors and a score of outputs, run a `share` of the runs asked for (whole
    releases take longer); the control at `control_times` epsilon, with so many times less noise."""

    mechanism: str
    relation: str
    databases: tuple[Any, Any]
    score: Score
    share: float = 1.0
    epsilon: float = EPSILON
    control_times: float = 2.0


def noise_audit(case: NoiseCase, *, runs: int, confidence: float) -> AuditFinding:
    """Lower confidence bounds on the loss of one case, and of it with half the noise."""
    n = max(8, int(case.share * runs))

    def bound(epsilon: float) -> float:
        one, other = (case.score(database, epsilon, n) for database in case.databases)
        return audit_epsilon(one, other, confidence=confidence).lower_bound

    return AuditFinding(
        mechanism=case.mechanism,
        relation=case.relation,
        method="sampled",
        epsilon=case.epsilon,
        loss=bound(case.epsilon),
        control=f"noise / {case.control_times:g}",
        control_loss=bound(case.control_times * case.epsilon),
    )


def _repeated(run: Callable[[Any, float], float]) -> Score:
    return lambda database, epsilon, n: np.array([run(database, epsilon) for _ in range(n)])


def _response(answer: bool, epsilon: float, runs: int) -> FloatArray:
    """Every person is a run."""
    return np.asarray(
        randomized_response(np.full(runs, answer), epsilon=epsilon).value, dtype=np.float64
    )


def _counts(relation: str) -> Score:
    def run(codes: list[int], epsilon: float) -> float:
        c = laplace_counts(codes, n_categories=2, epsilon=epsilon, relation=relation).value
        # Count 0 is there (and, for a replacement, count 1 is not).
        return float(c[0] if relation == "remove" else min(c[0], 1 - c[1]))

    return _repeated(run)


def _histogram(values: list[float], epsilon: float) -> float:
    return float(laplace_histogram(values, lower=0, upper=1, n_bins=2, epsilon=epsilon).value[0])


def _sum(relation: str) -> Score:
    def run(values: list[float], epsilon: float) -> float:
        how: Any = {"lower": 0, "upper": 1, "epsilon": epsilon, "relation": relation}
        return float(laplace_sum(values, whole=True, **how).value)

    return _repeated(run)


def _mean(values: list[float], epsilon: float) -> float:
    return float(laplace_mean(values, lower=0, upper=1, epsilon=epsilon).value)


def _choice(scores: list[float], epsilon: float) -> float:
    """1 if the first candidate was chosen."""
    chosen = exponential_mechanism(scores, sensitivity=1, epsilon=epsilon, relation="replace")
    return float(chosen.value == 0)


def _centers(rows: list[list[float]], epsilon: float) -> float:
    """Which of two corners the one row is in, by noisy counts and by noisy sums."""
    clusters = dp_kmeans(rows, n_clusters=2, n_rounds=1, epsilon=epsilon, start=[[1.0], [-1.0]])
    counts, sums = clusters.counts, clusters.counts * clusters.value[:, 0]
    by_counts = abs(counts[0]) + abs(counts[1] - 1) - abs(counts[0] - 1) - abs(counts[1])
    filled = counts >= 1  # the center of an empty cluster tells nothing of its sum
    by_sum = np.where(filled, np.abs(sums) - np.abs(sums - [1, -1]), 0.0)
    other = np.where(filled, np.abs(sums) - np.abs(sums - [1, -1]), 0.0)
    return float(by_counts + by_sum[0] - other[1])


def released_shares(own_bin: int, epsilon: float, runs: int) -> FloatArray:
    """Share of the first bin in `runs` noisy histograms of one record."""
    mechanism = PerturbedHistogram(column="y", lower=0, upper=1, n_bins=2, epsilon=epsilon)
    return np.array([mechanism._noisy_shares(np.array([own_bin]))[0] for _ in range(runs)])


def share_in_first_bin(value: int, epsilon: float, runs: int) -> FloatArray:
    """Over whole releases of many sets from one histogram: the share of values in the first bin."""
    df = pd.DataFrame({"y": [value]})
    mechanism = PerturbedHistogram(column="y", lower=0, upper=1, n_bins=2, epsilon=epsilon)
    return np.array(
        [
            np.mean([t["y"].iloc[0] < 0.5 for t in mechanism.release(df, n_synthetic=5).synthetic])
            for _ in range(runs)
        ]
    )


def _answer_tables(answer: int, epsilon: float, runs: int) -> FloatArray:
    """The noisy table of one record's answer, as in `_counts`."""
    domain = {"y": ColumnDomain(levels=(0, 1))}
    mechanism = NoisyMarginals(domain=domain, epsilon=epsilon)
    df = pd.DataFrame({"y": [answer]})
    measuring = mechanism._measuring(df)
    tables = [measuring.of(df).answers[-1].tables()[0].ravel() for _ in range(runs)]
    return np.array([min(cells[0], 1 - cells[1]) for cells in tables])


_FAVORED = [1.0] + [0.0] * _CANDIDATES, [0.0] + [1.0] * _CANDIDATES
_SLOW = {"share": 0.4, "control_times": 3}
_RELEASES = {"share": 0.25, "epsilon": 2.0, "control_times": 3}
# What these two show is only a part of their noise: a weaker control would not be seen.
_CHOICE = {"share": 0.5, "control_times": 4}
_CLUSTERS = {"share": 0.35, "control_times": 6}
NOISE = (
    NoiseCase("randomized_response", "replace", (True, False), _response),
    NoiseCase("laplace_counts", "remove", ([0], []), _counts("remove")),
    NoiseCase("laplace_counts", "replace", ([0], [1]), _counts("replace")),
    NoiseCase("laplace_histogram", "remove", ([0.25, 0.75], [0.75]), _repeated(_histogram)),
    NoiseCase("laplace_sum", "remove", ([1, 1], [1]), _sum("remove"), **_SLOW),
    NoiseCase("laplace_sum", "replace", ([1], [0]), _sum("replace"), **_SLOW),
    NoiseCase("laplace_mean", "replace", ([1], [0]), _repeated(_mean), **_SLOW),
    NoiseCase("exponential_mechanism", "replace", _FAVORED, _repeated(_choice), **_CHOICE),
    NoiseCase("dp_kmeans", "replace", ([[1.0]], [[-1.0]]), _repeated(_centers), **_CLUSTERS),
    NoiseCase("NoisyMarginals, its tables", "replace", (0, 1), _answer_tables),
    NoiseCase("PerturbedHistogram, its shares", "replace", (0, 1), released_shares),
    NoiseCase(
        "PerturbedHistogram, whole releases", "replace", (0, 1), share_in_first_bin, **_RELEASES
    ),
)
"""Every mechanism whose noise comes from OpenDP."""
