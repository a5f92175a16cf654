"""Audits of noisy marginals: the tables that the mechanism counts, on every pair of neighbors.

Discrete Laplace noise of scale b on whole numbers has the privacy loss ||change||_1 / b, exactly,
for the change of all cells together; Gaussian noise of scale sigma is rho-zCDP with
rho = ||change||_2^2 / (2 sigma^2), whose epsilon at delta is what is audited. What changes is read
off the mechanism's own tables, b and sigma off the noise that it really takes. Of a release in two
steps (`most_bins`) each step is counted on the bins that noise may lead to: merged or not.

Of a private choice one course of earlier answers is held fixed, which leads to the same model for
all databases; each round adds the loss of its choice, the largest log ratio of the exponential
mechanism's own probabilities, and that of the chosen table.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import logsumexp

from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms import NoisyMarginals
from pyhybrid.mechanisms.marginals.domain import PARTS
from pyhybrid.mechanisms.marginals.measurement import Measured, Measuring
from pyhybrid.mechanisms.marginals.selection import by_candidate, chosen_tables, counts_of, score
from pyhybrid.primitives.tables import CrossTable, NoisyTables, cross_counts
from pyhybrid.privacy.zcdp import epsilon_of_zcdp
from pyhybrid.validation.audits.finding import EXACT, AuditFinding

__all__ = ["largest_loss", "marginals_audits"]

_EPSILON, _DELTA = 1.0, 1e-6
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

    counts: npt.NDArray[np.float64]
    scale: float
    delta: float
    choice: bool = False


Run = Callable[[pd.DataFrame], Sequence[_Step]]


def _run_of(mechanism: NoisyMarginals) -> Run:
    if mechanism.select == "private":
        return functools.partial(_rounds, mechanism, _course(mechanism))
    return functools.partial(_steps, mechanism)


def marginals_audits() -> list[AuditFinding]:
    """Both relations, each with mechanisms that were broken on purpose; needs OpenDP."""
    found = []
    for (name, form), relation in itertools.product(_FORMS.items(), ("replace", "remove")):
        mechanism = _mechanism(relation, **form)
        own = largest_loss(_run_of(mechanism), relation)
        for control, run in _broken(mechanism).items():
            found.append(
                AuditFinding(
                    mechanism=name,
                    relation=relation,
                    method=EXACT,
                    epsilon=_EPSILON,
                    loss=own,
                    control=control,
                    control_loss=largest_loss(run, relation),
                )
            )
    return found


def largest_loss(run: Run, relation: str) -> float:
    """Over all databases of two records, and all that differ by one of them."""
    seen = {records: run(_database(records)) for records in itertools.product(_RECORDS, repeat=2)}
    seen |= {(record,): run(_database((record,))) for record in _RECORDS}
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
    for a, b in zip(one, other, strict=True):
        if a.counts.shape != b.counts.shape:  # what comes out tells which database it was
            return math.inf
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
    made: pd.DataFrame = pd.DataFrame({"y": y, "z": z, "x": _PUBLIC[: len(records)]})
    return made


def _mechanism(relation: str, **changes: Any) -> NoisyMarginals:
    """Tables of y and x, z and x, z and y; x is shared out between the ends of its range. Of a
    release in two steps y has four bins, of which a record is in the outer ones."""
    y: Any = {"bins": [0, 0.25, 0.5, 0.75, 1]} if "most_bins" in changes else (0, 1)
    own: dict[str, Any] = {
        "domain": {"y": y, "z": (0, 1), "x": {"bins": [0, 1, 2]}},
        "given": ["x"],
        "epsilon": _EPSILON,
        "relation": relation,
    }
    return NoisyMarginals(**{**own, **changes})


def _steps(mechanism: NoisyMarginals, df: pd.DataFrame) -> list[_Step]:
    """What each step counts, and its noise as it is taken."""
    measuring = mechanism._measuring(df)
    answers = measuring.of(df).answers
    tables: list[Sequence[CrossTable]] = [measuring.two_way(df, _merged(measuring))]
    if measuring.binned:
        tables.insert(0, measuring.one_way(df, measuring.binned))
    return [_step(own, answer) for own, answer in zip(tables, answers, strict=True)]


def _course(mechanism: NoisyMarginals) -> Measured:
    """One course of answers and choices, on records enough to simulate from."""
    df: pd.DataFrame = pd.concat([_database(((0, 0), (1, 1)))] * 1000, ignore_index=True)
    return chosen_tables(mechanism._measuring(df), df, streams(1), most_rounds=4)


def _rounds(mechanism: NoisyMarginals, course: Measured, df: pd.DataFrame) -> list[_Step]:
    """Columns alone, and the rounds of a course: scores against the model that puts all records
    into the first cell, with the noise and the tables of the course."""
    measuring = mechanism._measuring(df)
    first, *later = course.answers
    found = [_step(measuring.one_way(df, tuple(measuring.order)), first)]
    tables = by_candidate(measuring, measuring.two_way(df, measuring.domain))
    scores = []
    for own in (counts_of(table.codes, table.n_rows, table.cells) for table in tables.values()):
        scores.append(score(own, np.array([len(df), *np.zeros(own.size - 1)]), 0.0))
    for choice, answer in zip(course.choices, later, strict=True):
        found.append(
            _Step(
                counts=np.array(scores),
                scale=choice.scale,
                delta=answer.charge.delta,
                choice=True,
            )
        )
        found.append(_step([tables[choice.candidate]], answer))
    return found


def _merged(measuring: Measuring) -> dict[str, Any]:
    """Every column of many bins cut in the middle: a cut that noise can lead to."""
    few = {
        name: replace(measuring.domain[name], bins=measuring.domain[name].bins[::2])
        for name in measuring.binned
    }
    return {**measuring.domain, **few}


def _step(tables: Sequence[CrossTable], answer: NoisyTables) -> _Step:
    counts = cross_counts(tables, unit=PARTS) / PARTS
    return _Step(counts=counts, scale=answer.scale, delta=answer.charge.delta)


def _broken(mechanism: NoisyMarginals) -> dict[str, Run]:
    run = _run_of(mechanism)

    def halved(df: pd.DataFrame) -> list[_Step]:
        return [replace(step, scale=step.scale / 2) for step in run(df)]

    def of_one(df: pd.DataFrame) -> list[_Step]:
        """Noise that is scaled for one table, added to all of them."""
        measuring = mechanism._measuring(df)
        tables = measuring.two_way(df, _merged(measuring))
        return [_step(tables, measuring.noisy(tables[:1], measuring.price))]

    def read(df: pd.DataFrame) -> list[_Step]:
        levels = {name: {"levels": [*df[name].unique().tolist(), 9]} for name in ("y", "z")}
        own: dict[str, Any] = {**levels, "x": mechanism.domain["x"]}
        return _steps(replace(mechanism, domain=own), df)

    def not_charged(df: pd.DataFrame) -> list[_Step]:
        """Each step at the whole price."""
        steps = _steps(mechanism, df)
        measuring = mechanism._measuring(df)
        noisy = [
            measuring.noisy(tables, measuring.price)
            for tables in (
                measuring.one_way(df, measuring.binned),
                measuring.two_way(df, _merged(measuring)),
            )
        ]
        return [replace(s, scale=own.scale) for s, own in zip(steps, noisy, strict=True)]

    def greedy(df: pd.DataFrame) -> list[_Step]:
        """The best score, with a thousandth of its noise."""
        return [replace(s, scale=s.scale / 1000) if s.choice else s for s in run(df)]

    def squared(df: pd.DataFrame) -> list[_Step]:
        """Scores that a record changes by more than by itself."""
        return [replace(s, counts=s.counts**2) if s.choice else s for s in run(df)]

    if mechanism.select == "private":
        return {"noise / 2": halved, "the best score": greedy, "scores squared": squared}
    found = {"noise / 2": halved, "noise of one table": of_one}
    if mechanism.most_bins is None:
        return {**found, "levels read": read}
    return {**found, "a step not charged": not_charged}
