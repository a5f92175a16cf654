"""A study: simulated or given databases, quantities measured on each, published numbers.

Beside the description, what the studies share: a session over one database, rows of a mechanism on
it, and claims in words.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from importlib.resources import files
from typing import Any, Concatenate, NamedTuple, ParamSpec

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule, SamplerSettings
from pyhybrid.fitting.session import FitSession, PosteriorFit, open_session
from pyhybrid.measures.estimates import STATISTICS, avg_ecdf, max_ecdf, summaries
from pyhybrid.mechanisms import ClippedScores, PseudoPosteriorMechanism
from pyhybrid.models.base import Model
from pyhybrid.releases.words import Words
from pyhybrid.studies.comparing.comparison import DATA
from pyhybrid.studies.comparing.curve import sets_without_charge

ACCOUNTING = "lipschitz"
"""The papers' own: epsilon is twice the Lipschitz bound. Every mechanism of a study counts so."""
ROW = ("setting", "synthesizer", "quantity")
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
"""Columns of a summary with quartiles over databases."""
BOUND, MAX_ECDF = "Lipschitz bound", "max-ECDF"
"""Names of quantities."""
DIFFERENCE, _OF_TWO = "difference", "{}, {} less {}"
"""Name of the synthesizer, and the quantity, of a comparison on the same databases."""
LESS = "less the data's"
"""Of centers of intervals: what a database has in common with its synthetic data falls out."""
_WORDS = Words("pyhybrid.studies")
SCORES = "clipped scores"
"""Name of a synthesizer that no paper has."""
NOTES = {"Censor_w": _WORDS.sentence("Censor_w", "note")}
"""Of synthesizers, in each line that names them."""
FEWEST = 10
"""Databases that a verdict needs."""
Pairs = Mapping[str, Sequence[tuple[str, str]]]
"""Synthesizers whose difference is judged on the same databases, by quantity."""
Found = tuple[str, bool | None]
"""A finding in words, and whether a claim holds; None if that cannot be said."""
Asked = ParamSpec("Asked")
Check = Callable[[pd.DataFrame], Found]
"""What a study's summary says of a claim."""


class Measured(NamedTuple):
    """One number from one database: what was measured, on which synthesizer."""

    synthesizer: str
    quantity: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Published:
    """A number of a paper, `shown` as published, and the row of the study's summary beside it.

    Ours agrees if the 95 % interval of our mean over databases, with the `error` (standard) of
    theirs, reaches [low, high]; beside the number of one database, if the 95 % prediction interval
    of another database does, and does not hold `null`. A number of `other_data` than ours, which
    are not at hand, is no evidence. A `note` says why ours may differ: simulated data, one chain
    against several. `experiment` is what was tried as a cause, and what came of it.
    """

    setting: str
    synthesizer: str
    quantity: str
    shown: str
    low: float
    high: float
    error: float = 0.0
    one_database: bool = False
    other_data: bool = False
    note: str = ""
    experiment: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement that is no single number, of a paper or `by` ourselves; `check` takes the study's
    summary and gives what was found, and whether the claim holds by the `threshold`, in words.
    `note` and `experiment` are those of `Published`; `fewest` databases it needs."""

    text: str
    threshold: str
    check: Check
    by: str = "stated"
    note: str = ""
    experiment: str = ""
    fewest: int = FEWEST


def claim(name: str, check: Check, /, *, fewest: int = FEWEST, **values: Any) -> Claim:
    """The claim whose words are in the section `name` of `words.jinja`, with `values` filled in."""
    fields = ("text", "threshold", "by", "note", "experiment")
    words = {field: text for field in fields for text in _WORDS.rendered(name, field, **values)}
    return Claim(check=check, fewest=fewest, **words)


def published_in(study: str) -> tuple[Published, ...]:
    """The published numbers of a study, from `published.csv`, in its order."""
    table = files("pyhybrid.studies").joinpath("published.csv").read_text("utf-8")
    lines = []
    for row in csv.DictReader(table.splitlines()):
        if row.pop("study") == study:
            flags = {name: row[name] == "yes" for name in ("one_database", "other_data")}
            numbers = {name: float(row[name] or 0) for name in ("low", "high", "error")}
            fields: dict[str, Any] = {**row, **flags, **numbers}
            lines.append(Published(**fields))
    return tuple(lines)


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of a study is run: databases per setting, and what else makes it quick."""

    replicates: int
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study of the papers, A to J, or of what they leave open, and its source, a paper and its
    section.

    `measure` gives the rows of one database from its setting, random streams and options; it is at
    the top level of a module and runs in any process. `quick` takes about a minute.
    """

    name: str
    title: str
    source: str
    settings: tuple[str, ...]  # kinds of database, such as sample sizes
    measure: Callable[[str, Streams, Mapping[str, Any]], list[Measured]]
    quick: Size
    paper: Size
    read_data: Callable[[str | os.PathLike[str]], Any] | None = (
        None  # of real ones, if it takes any
    )
    data_setting: str = ""  # the one that is then run in the place of all others
    needs_data: str = ""  # the file that it cannot be run without, and where it is
    published: tuple[Published, ...] = ()
    claims: tuple[Claim, ...] = ()
    compared: Pairs = field(default_factory=dict)


def frame(**columns: Any) -> pd.DataFrame:
    """A table of columns."""
    table: pd.DataFrame = pd.DataFrame(columns)
    return table


def read_columns(
    path: str | os.PathLike[str], names: Mapping[str, Sequence[str]], what: str
) -> pd.DataFrame:
    """Columns of a CSV file, each under its name here, from the first of its names in files. A file
    that cannot be read, or lacks a column, is refused with `what` it must be."""
    try:
        table = pd.read_csv(path, low_memory=False)
        there = {name: [c for c in in_files if c in table] for name, in_files in names.items()}
        lacks = [name for name, columns in there.items() if not columns]
        if lacks:
            raise ValueError(f"it lacks {', '.join(lacks)}")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"data {path} must be {what}: {str(error).splitlines()[0]}") from None
    return frame(**{name: table[columns[0]] for name, columns in there.items()})


def row_of(summary: pd.DataFrame, setting: str, synthesizer: str, quantity: str) -> pd.Series:
    """One row of a summary; NaN if it has no such row."""
    rows = summary[(summary[list(ROW)] == [setting, synthesizer, quantity]).all(axis=1)]
    row: pd.Series = rows.iloc[0] if len(rows) else pd.Series(float("nan"), index=summary.columns)
    return row


def mean_of(summary: pd.DataFrame, setting: str, synthesizer: str, quantity: str) -> float:
    """One mean of a summary; NaN if it has no such row."""
    return float(row_of(summary, setting, synthesizer, quantity)["mean"])


def summarize(rows: pd.DataFrame, compared: Pairs | None = None) -> pd.DataFrame:
    """Mean over databases with its Monte Carlo standard error (missing for one), range and
    quartiles, one row per setting, synthesizer and quantity of `rows`, in order of first
    appearance; then the differences of the pairs `compared`."""
    rows = pd.concat([rows, *_differences(rows, compared or {})])
    grouped = rows.groupby(list(ROW), sort=False)["value"]
    table: pd.DataFrame = grouped.agg(["size", "mean", "std", "min", "max"]).reset_index()
    table.columns = pd.Index([*ROW, "n", "mean", "mc_error", "lowest", "highest"])
    table["mc_error"] = table["mc_error"] / table["n"] ** 0.5
    for name, share in QUARTILES.items():
        table[name] = grouped.quantile(share).to_numpy()
    return table


def _differences(rows: pd.DataFrame, compared: Pairs) -> Iterator[pd.DataFrame]:
    """By how much farther the first of two synthesizers is off than the second, on each database:
    from its data, or of distances from 0, on that side of it where their means are."""
    of_pairs = rows[rows["quantity"].isin(compared)]
    for (setting, quantity), part in of_pairs.groupby(["setting", "quantity"], sort=False):
        wide = part.pivot(index="replicate", columns="synthesizer", values="value")
        off = wide.sub(wide[DATA], axis=0) if DATA in wide else wide
        off *= np.sign(off.mean())
        named = {"setting": setting, "synthesizer": DIFFERENCE}
        for one, other in compared[quantity]:
            if {one, other} <= {*off}:
                rows = (off[one] - off[other]).dropna().to_frame("value")
                yield rows.assign(**named, quantity=_OF_TWO.format(quantity, one, other))


def means_of(
    summary: pd.DataFrame, setting: str, synthesizers: Iterable[str], quantity: str
) -> dict[str, float]:
    """Means of a summary by synthesizer; see `mean_of`."""
    return {name: mean_of(summary, setting, name, quantity) for name in synthesizers}


def checking(find: Callable[Concatenate[pd.DataFrame, Asked], Found]) -> Callable[Asked, Check]:
    """A function of a summary and of what is asked about it, as one that makes checks of claims
    from what is asked."""
    return wraps(find)(lambda *asked, **named: lambda summary: find(summary, *asked, **named))


@checking
def of_means(
    summary: pd.DataFrame,
    setting: str,
    names: Iterable[str],
    quantity: str,
    words: str,
    holds: Callable[..., Any],
    form: str = ".3f",
) -> Found:
    """Whether a function of the means of several synthesizers holds."""
    means = means_of(summary, setting, names, quantity)
    return f"{words}: {listed(means, form)}", bool(holds(*means.values()))


def listed(values: Mapping[Any, float] | pd.Series, form: str = ".2f") -> str:
    """Names with their values, in words."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def falls(before: pd.Series, after: pd.Series, to: float = 0.0) -> bool | None:
    """Whether the mean comes nearer `to`; None within 2 standard errors of the difference, and of
    means over fewer databases than a verdict needs."""
    change = abs(after["mean"] - to) - abs(before["mean"] - to)
    error = math.hypot(before["mc_error"], after["mc_error"])
    return _below_zero(change, error, min(before["n"], after["n"]))


def _below_zero(mean: float, error: float, n: float) -> bool | None:
    return None if n < FEWEST or not abs(mean) > 2 * error else bool(mean < 0)


def nearer(
    summary: pd.DataFrame,
    setting: str,
    better: str,
    worse: Iterable[str],
    quantity: str,
    *,
    to_data: bool = False,
) -> Found:
    """Whether a mean of `better` is nearer than those of all `worse` to 0, or to the data's: by the
    difference on the same databases, where the study compares the two so."""
    target = means_of(summary, setting, [DATA] if to_data else [], quantity)
    rows = {name: row_of(summary, setting, name, quantity) for name in (better, *worse)}
    center = target.get(DATA, 0.0)
    shown = listed({**target, **{name: row["mean"] for name, row in rows.items()}}, ".4g")
    few = min(row["n"] for row in rows.values())
    shown += f" ({few:.0f} databases)" if few < FEWEST else ""
    parts, unpaired = [], ""
    for name in worse:
        pair = row_of(summary, setting, DIFFERENCE, _OF_TWO.format(quantity, better, name))
        if math.isnan(pair["n"]):
            unpaired = ", as if on different databases" if few >= FEWEST else ""
            parts.append(falls(rows[name], rows[better], to=center))
        else:
            parts.append(_below_zero(pair["mean"], pair["mc_error"], pair["n"]))
    return f"{quantity}: {shown}{unpaired}", all_hold(parts)


def all_hold(parts: Iterable[bool | None]) -> bool | None:
    """False if one is, else None if one is or there is none."""
    parts = list(parts)
    if False in parts:
        return False
    return None if None in parts or not parts else True


def together(found: Iterable[Found]) -> Found:
    """Several findings as one, which holds if all do."""
    texts, parts = zip(*found, strict=True)
    return "; ".join(texts), all_hold(parts)


def too_few(summary: pd.DataFrame, setting: str) -> str:
    """The reason why a setting is no evidence, or none."""
    n = int(summary.loc[summary["setting"] == setting, "n"].max())
    return f"{n} databases" if n < FEWEST else ""


@checking
def in_each_setting(
    summary: pd.DataFrame,
    check: Callable[[pd.DataFrame, str], Found],
    left_out: Callable[[pd.DataFrame, str], str] = too_few,
) -> Found:
    """Whether what one of summary and setting checks holds in every setting; a setting that is
    `left_out` for a reason is shown with it, and is no evidence."""
    shown, counted = [], []
    for setting in summary["setting"].unique():
        text, holds = check(summary, setting)
        why = left_out(summary, setting)
        shown.append(f"{setting}: {text}" + (f", not counted: {why}" if why else ""))
        counted += [] if why else [holds]
    return "; ".join(shown), all_hold(counted)


def is_nearer(
    better: str,
    *worse: str,
    by: Sequence[str] = (MAX_ECDF,),
    setting: str = "",
    to_data: bool = False,
) -> Check:
    """The check of `nearer` by several quantities, in one setting, or in each of them."""

    def check(summary: pd.DataFrame, setting: str) -> Found:
        return together(nearer(summary, setting, better, worse, q, to_data=to_data) for q in by)

    return partial(check, setting=setting) if setting else in_each_setting(check)


def sampler_of(options: Mapping[str, Any]) -> SamplerSettings:
    """Chains, on one core unless told."""
    own = {of.name: options[of.name] for of in fields(SamplerSettings) if of.name in options}
    return SamplerSettings(**{"parallel_chains": 1, **own})


def session_over(
    model: Model, df: pd.DataFrame, streams: Streams, options: Mapping[str, Any]
) -> FitSession:
    """A session; whether chains converged is in its diagnostics."""
    rhat, ess = options.get("rhat", 1.01), options.get("ess_per_chain", 100)
    return open_session(
        model.bind(df),
        seed=streams.entropy,
        engine=options["engine"],
        settings=sampler_of(options),
        rule=ConvergenceRule(rhat=rhat, ess_per_chain=ess),
        on_not_converged="warn",
    )


def fits_and_sets(
    mechanisms: Mapping[str, PseudoPosteriorMechanism], session: FitSession, n_sets: int = 1
) -> Iterator[tuple[str, PosteriorFit, list[pd.Series]]]:
    """The fit of each mechanism, and the outcome in sets as a release of it has them."""
    outcome = session.bound.synthesized[0]
    for name, mechanism in mechanisms.items():
        fit = mechanism.fit(session).fit
        sets = sets_without_charge(session, mechanism, fit, n_sets)
        yield name, fit, [table[outcome] for table in sets]


@dataclass(frozen=True, kw_only=True, eq=False)
class _RepeatableScores(ClippedScores):
    """Clipped scores with noise that a study can repeat and a release never has: floating-point
    noise from a seed protects nobody."""

    rng: np.random.Generator

    def _with_noise(self, sums: Any, sensitivity: int, mu: float) -> FloatArray:
        noise: FloatArray = self.rng.normal(scale=sensitivity / mu, size=len(sums))
        return np.asarray(sums) + noise


def score_sets(
    model: Any, table: pd.DataFrame, epsilon: float, streams: Streams, n_sets: int = 1
) -> list[pd.Series]:
    """Outcomes of sets by clipped scores, at delta 1e-6."""
    rng = streams.generator(SCORES)
    asked = {"decimals": 9, "prior": "normal"}
    how: Any = {name: asked[name] for name in asked.keys() & model.__dataclass_fields__.keys()}
    scores = _RepeatableScores(replace(model, **how), epsilon=epsilon, delta=1e-6, rng=rng)
    bound = scores.bind(table)
    fit, rows = scores.fit(bound, streams.child(SCORES)), bound.design.recoded(table)
    return [scores.replicate(rows, fit.draw(rng), rng)[scores.outcome] for _ in range(n_sets)]


def records_at_cap(fit: PosteriorFit) -> float:
    """Of a truncation, those of weight 0 but the riskiest, which has it by the Lipschitz map."""
    return float((fit.alpha == 0).sum() - 1 if fit.censored is None else fit.censored.sum())


def measured(synthesizer: str, values: Mapping[str, Any]) -> list[Measured]:
    """Numbers of one synthesizer by quantity."""
    return [Measured(synthesizer, quantity, float(value)) for quantity, value in values.items()]


def estimand_rows(synthesizer: str, values: FloatArray, end: str = "") -> list[Measured]:
    """Numbers (4,) of the papers' estimands, with an `end` of the quantities' names."""
    quantities = (f"{statistic}{end}" for statistic in STATISTICS)
    return measured(synthesizer, dict(zip(quantities, values, strict=True)))


def utility_rows(name: str, data: pd.Series, synthetic: pd.Series) -> list[Measured]:
    """Distances of distribution functions [C25] sec. 4.3, and the papers' estimands."""
    real, released = data.to_numpy(), synthetic.to_numpy()
    distances = {MAX_ECDF: max_ecdf(real, released), "avg-ECDF": avg_ecdf(real, released)}
    return [*measured(name, distances), *estimand_rows(name, summaries(released))]
