"""Strict releases by formula: clipped scores, without a reference and without chains.

Fisher scoring in a few rounds. Each round sums the clipped scores of all records at a public point,
adds Gaussian noise, and steps; see `pyhybrid.privacy.scores`. The first point comes from a noisy
histogram of the outcome. What is released is an estimate with its known error: any number of
synthetic sets, drawn from it, costs no more.

What one record can change: its outcome enters the bin counts of the start and one term of each
sum, and nothing else. Of a model with zeros, codes or missing values the scores of its blocks are
stacked and clipped as one. Predictors, the number and order of records, family, levels, codes,
decimals and ends are public: declared, or published as they are. An outcome that the model does not
take (text, a negative number) counts as absent; no error, warning or setting depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_positive
from pyhybrid.core.errors import InvalidInput, SourceFailed
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitProgress, read_units
from pyhybrid.measures.reconcile import survey_weights
from pyhybrid.mechanisms.accounting import check_delta_of
from pyhybrid.mechanisms.mechanism import Made, NoiseMechanism, check_columns
from pyhybrid.mechanisms.scored_records import (
    PARTS,
    ScoredSource,
    ScoredTable,
    bind_source,
    counted_bins,
    without_outcome,
)
from pyhybrid.models.columns.form import Form, numbers_in, places_of_levels
from pyhybrid.models.columns.support import draw_within, shortest
from pyhybrid.models.families.two_block import value_of
from pyhybrid.models.formula.design import Design, Matrix, read_design
from pyhybrid.models.formula.terms import parse_formula, sides_of
from pyhybrid.models.formula.values import with_columns
from pyhybrid.models.scoring import Scoring
from pyhybrid.primitives.noise import gaussian_sums
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import CHANGED, RELATIONS, check_delta, compose_mu, mu_of_epsilon
from pyhybrid.privacy.scores import (
    STEPS_OF_CLIP,
    ScoringDesign,
    clip_scores,
    narrowed,
    posterior_covariance,
    scoring_design,
    scoring_step,
)
from pyhybrid.releases.record import Estimates, Origin, ReleaseRecord
from pyhybrid.sources.source import Source

ROUNDS = (0.04, 0.06, 0.1, 0.2, 0.6)
"""Shares of mu^2, less that of the start, which the rounds have."""
ROUNDS_OF_FEW = (0.05, 0.1, 0.2, 0.65)
"""The same of few records, which noise keeps from the estimate more than distance does."""
ROUNDS_FROM_START = (0.25, 0.75)
"""The same where a start is given."""
_OF_START, _OF_START_IF_FEW, _FEW = 0.05, 0.15, 2_000
_SIMULATED = 40_000  # scores of simulated outcomes in a round
_ROWS = 50_000  # of the predictors, sampled, that outcomes are simulated at
_DOUBLED = 8  # times less one, that epsilon is doubled to find one that is enough
WIDEST = 2.5  # times: beyond it draws of a logarithm that is badly known can be far off
_MOST_STEPS, _NEAR, _NO_NOISE = 25, 0.1, 1e6  # of a start from a reference


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoringFit:
    """A released estimate, what is published of it, and what it was spent for."""

    estimates: Estimates
    covariance_of_draws: FloatArray  # (d, d), under which what is badly known does not go far
    mus: tuple[float, ...]  # of the start and of each round

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """A point (d,) that a set is drawn at: the estimate with its error."""
        theta, covariance = self.estimates.values, self.covariance_of_draws
        return np.asarray(
            rng.multivariate_normal(theta, covariance, method="eigh", check_valid="ignore")
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredEstimate:
    """A released estimate, which the rows of sets are drawn from, and the record of all sets."""

    mechanism: ClippedScores
    fit: ScoringFit
    bound: ScoredTable | ScoredSource
    record: ReleaseRecord
    random: Streams

    def state(self) -> dict[str, Any]:
        """All that rows are drawn from, as JSON."""
        return {
            "estimates": self.fit.estimates.as_dict(),
            "covariance_of_draws": self.fit.covariance_of_draws.tolist(),
            "mus": self.fit.mus,
            "n_synthetic": self.record.charge.n_synthetic,
            "entropy": str(self.random.entropy),
        }

    def rows(self, public: pd.DataFrame, place: int, random: Streams) -> pd.DataFrame:
        """The column of set `place`, from 1, for these public columns."""
        theta = self.fit.draw(self.random.generator(f"set {place}"))
        matrix = self.bound.sample.design.recoded(without_outcome(public, self.mechanism.outcome))
        return self.mechanism.replicate(matrix, theta, random.generator("rows"))


@dataclass(frozen=True)
class ClippedScores(NoiseMechanism):
    """Release a column strictly, from noisy sums of clipped scores.

    Strict for every table of the same predictors, at any size; (epsilon, delta) by exact Gaussian
    differential privacy. No reference, no sampler, no convergence.

    Parameters
    ----------
    model : Model
        Poisson, NegativeBinomial, Bernoulli, Categorical, Ordinal, NormalRegression, LogNormal,
        Gamma, Beta or BetaRegression, with ``zeros=``, ``codes=`` and ``missing=``. Its levels, or
        decimals, must be declared. Coefficients have the normal prior, whatever prior it has.
    epsilon : float, default 1
        Of the whole release, any number of sets, nats.
    delta : float, default 1e-6
        Public, below one over the number of records or units.
    relation : {"remove", "replace"}
        Neighbors: one record's outcome is absent, or is another; its predictors stay. The noise
        for "replace" is twice as large.
    unit : str, optional
        Column of persons or other units: epsilon protects all outcomes of a unit.
    weights : str, optional
        Column of survey weights, which is published: scores are multiplied by it, so that the
        model is that of the population.
    start : mapping, optional
        A public first point by the names of the coordinates, in place of the noisy histogram;
        `from_reference` has one of a public or earlier table. Indicators of missing predictors
        that it does not name start at 0.

    References
    ----------
    [KSC89] Kuensch, Stefanski, Carroll (1989), JASA 84; [DRS22] Dong, Roth, Su (2022), JRSS B;
    [ABL23] Avella-Medina, Bradshaw, Loh (2023), Annals of Statistics 51.

    Examples
    --------
    >>> model = ph.Poisson("visits ~ age")
    >>> release = ph.ClippedScores(model, epsilon=1).release(df, n_synthetic=5)
    >>> ph.estimates(release)
    """

    model: Any
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    relation: str = "remove"
    unit: str | None = None
    weights: str | None = None
    start: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.model, "scoring") or isinstance(self.model, type):
            raise InvalidInput(
                "model must be a built-in pyhybrid model, such as ph.Poisson('y ~ x'): found "
                f"{getattr(self.model, '__name__', type(self.model).__name__)}"
            )
        check_positive(self.epsilon, "epsilon")
        check_delta(self.delta)
        check_choice(self.relation, "relation", RELATIONS)
        for name in ("unit", "weights"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InvalidInput(f"{name} must be the name of a column: found {value!r}")
        self.model.declared_form  # noqa: B018 -- refuses what is not declared

    @property
    def outcome(self) -> str:
        """The column that is synthesized."""
        return sides_of(self.model.formula)[0]

    @property
    def synthesizes(self) -> tuple[str, ...]:
        return (self.outcome,)

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        return {self.outcome: self.model.declared_form}

    def reads(self) -> dict[str, tuple[str, ...]]:
        """Columns that the mechanism itself reads beside its model, by what they are to it."""
        named = {"unit": self.unit, "weights": self.weights}
        return {what: (name,) for what, name in named.items() if name is not None}

    def describe(self) -> dict[str, Any]:
        settings = {"epsilon": self.epsilon, "delta": self.delta, "relation": self.relation}
        start = self.start and dict(self.start)
        beside = {"unit_of_privacy": self.unit, "survey_weights": self.weights, "start": start}
        given = {name: value for name, value in beside.items() if value is not None}
        model = {**self.model.describe(), "prior": "normal"}
        return {"mechanism": self.name, **settings, **given, **model}

    def bind(self, df: pd.DataFrame) -> ScoredTable:
        """Join the model to `df`; raises InvalidInput for what is wrong with names, predictors,
        units and weights, all of them public, and for nothing in the outcome."""
        read = [name for names in self.reads().values() for name in names]
        check_columns(df, (self.outcome, *read))
        public = without_outcome(df, self.outcome)
        design = read_design(self.model.formula, public, any_rank=True, one_value=True)
        _refuse_all_records_terms(design)
        unit, weights = np.arange(len(df)), None
        if self.unit is not None:
            unit = read_units(public, self.unit, (self.outcome,)).of
        if self.weights is not None:
            weights = survey_weights(public[self.weights], self.weights, zero=True)
        scoring = self.model.scoring(design)
        bound = ScoredTable(
            table=df,
            scoring=scoring,
            public=scoring,
            outcome=self.model.outcome_numbers(df[self.outcome]),
            design=design,
            unit=unit,
            weights=None if weights is None else weights / weights.mean(),
        )
        check_delta_of(self.delta, bound.n_units)
        return bound

    def predicted_widths(self, df: pd.DataFrame) -> pd.DataFrame:
        """How much wider intervals will be for privacy, before anything is spent: the ratio of
        standard errors with and without it (`width`), by coordinate, at a nominal point, from the
        predictors, n and epsilon alone."""
        return self._widths(self.bind(df))

    def _widths(self, bound: ScoredTable | ScoredSource) -> pd.DataFrame:
        scoring, mu = bound.sample.public, self._mus(bound)[1][-1]
        design = self._design(bound, np.zeros(scoring.d), mu, streams(0))
        noise = CHANGED[self.relation] * design.clip / mu
        alone = np.diag(np.linalg.inv(design.information))
        width = np.sqrt(np.diag(design.covariance(noise)) / alone)
        widths: pd.DataFrame = pd.DataFrame({"coordinate": scoring.names, "width": width})
        return widths

    def _refuse_too_few(self, bound: ScoredTable | ScoredSource) -> None:
        """Refuse, by public facts, a release whose intervals would say nothing."""
        middle = float(self._widths(bound)["width"].median())
        if middle <= WIDEST:
            return
        larger = (replace(self, epsilon=self.epsilon * 2**k) for k in range(1, _DOUBLED))
        enough = (m.epsilon for m in larger if m._widths(bound)["width"].median() <= WIDEST)
        epsilon = next(enough, None)
        advice = "" if epsilon is None else f", or an epsilon of {epsilon:g}"
        raise InvalidInput(
            f"too few records for this epsilon: with {bound.n_units} records, "
            f"{bound.sample.public.d} coordinates and epsilon {self.epsilon:g} intervals would be "
            f"{middle:.1f} times as wide as without privacy; take fewer predictors{advice}"
        )

    def from_reference(self, reference: pd.DataFrame) -> ClippedScores:
        """The same mechanism, which starts from the estimate of a public or earlier table.

        The start is the penalized maximum likelihood estimate, public from then on: it is printed
        in the statement, and the reference's records are not protected.
        """
        plain = replace(self, delta=min(self.delta, 0.5 / max(len(reference), 1)), start=None)
        bound = plain.bind(reference)
        scoring = bound.scoring

        def exact(bin_of: Callable[[FloatArray], FloatArray], n_bins: int) -> FloatArray:
            return counted_bins(bound.outcome, bin_of, n_bins) / PARTS

        theta = scoring.start(exact, 1.0)
        for number in range(_MOST_STEPS):
            design = plain._design(bound, theta, _NO_NOISE, streams(number))
            scores = bound.scores(theta)
            total = clip_scores(scores, design.whitening, design.clip).sum(axis=0)
            prior, before = scoring.prior(theta), theta
            theta = scoring_step(
                theta, total, design, *prior, noise_sd=0.0, predictors=scoring.linear
            )
            if np.abs(np.linalg.solve(design.whitening, theta - before)).max() < _NEAR:
                break
        return replace(self, start=dict(zip(scoring.names, theta.tolist(), strict=True)))

    def _with_noise(self, sums: Any, sensitivity: int, mu: float) -> FloatArray:
        return gaussian_sums(sums, sensitivity, mu)

    def fit(self, bound: ScoredTable | ScoredSource, random: Streams) -> ScoringFit:
        """The noisy estimate; every look at the outcomes is in this function."""
        (of_start, of_rounds), scoring = self._mus(bound), bound.sample.public
        theta, sensitivity = self._start(bound), CHANGED[self.relation]
        for number, mu in enumerate(of_rounds):
            design = self._design(bound, theta, mu, random.child(f"round {number}"))
            total = bound.score_sum(theta, design)
            noisy = self._with_noise(total, sensitivity * STEPS_OF_CLIP, mu)
            gradient, precision = scoring.prior(theta)
            noise_sd = sensitivity * design.clip / mu
            theta = scoring_step(
                theta,
                noisy * (design.clip / STEPS_OF_CLIP),
                design,
                gradient,
                precision,
                noise_sd=noise_sd,
                predictors=scoring.linear,
            )
        covariance = posterior_covariance(design, precision, noise_sd=noise_sd)
        estimates = Estimates(
            names=scoring.names,
            values=theta,
            covariance=covariance,
            covariance_without_noise=posterior_covariance(design, precision, noise_sd=0.0),
        )
        return ScoringFit(
            estimates=estimates,
            covariance_of_draws=narrowed(covariance, scoring.linear),
            mus=(*of_start, *of_rounds),
        )

    # --- Parts of a fit --------------------------------------------------------------------------

    def _mus(self, bound: ScoredTable | ScoredSource) -> tuple[list[float], list[float]]:
        """Mu of each look of the start, and of each round; the start has a larger share of mu^2
        where few records are in each bin."""
        # A little less, so that adding squares does not round epsilon up.
        mu = mu_of_epsilon(self.epsilon, self.delta) * (1 - 1e-9)
        if self.start is not None:
            return [], [mu * float(np.sqrt(share)) for share in ROUNDS_FROM_START]
        few, looks = bound.n_units < _FEW, bound.sample.public.looks
        first, rounds = (_OF_START_IF_FEW, ROUNDS_OF_FEW) if few else (_OF_START, ROUNDS)
        each = mu * float(np.sqrt(first / looks))
        return [each] * looks, [mu * float(np.sqrt((1 - first) * share)) for share in rounds]

    def _start(self, bound: ScoredTable | ScoredSource) -> FloatArray:
        scoring = bound.sample.public
        if self.start is not None:
            unknown = set(scoring.names) ^ set(self.start)
            of_one_table = tuple(f"is.na({name})" for name in bound.sample.design.predictors)
            unknown = {name for name in unknown if not name.endswith(of_one_table)}
            if unknown:
                raise InvalidInput(
                    f"start must have the coordinates {', '.join(scoring.names)}: "
                    f"{sorted(unknown)[0]!r} is missing, or none of them"
                )
            return np.array([float(self.start.get(name, 0.0)) for name in scoring.names])
        mu, sensitivity = self._mus(bound)[0][0], CHANGED[self.relation]
        records_of_unit = bound.n_records / bound.n_units

        def noisy_counts(bin_of: Callable[[FloatArray], FloatArray], n_bins: int) -> FloatArray:
            counts = bound.bin_counts(bin_of, n_bins)
            return self._with_noise(counts, sensitivity * PARTS, mu) * (records_of_unit / PARTS)

        return scoring.start(noisy_counts, sensitivity / mu * records_of_unit)

    def _design(
        self, bound: ScoredTable | ScoredSource, theta: FloatArray, mu: float, random: Streams
    ) -> ScoringDesign:
        """I, G, b and C of a round, from outcomes simulated at theta."""
        rng, n, part = random.generator("simulated outcomes"), bound.n_units, bound.sample
        if part.n_records > _ROWS:
            units = rng.permutation(n)[: max(1, round(_ROWS * n / part.n_records))]
            part = part.public_rows(np.flatnonzero(np.isin(part.unit, units)))
        repeats = max(1, -(-_SIMULATED // part.n_records))
        several = part.public.rows(np.tile(np.arange(part.n_records), repeats))
        scores = several.scores(theta, several.simulate(theta, rng))
        drawn = scores.reshape(repeats, part.n_records, -1)
        weighted = None
        if part.weights is not None:
            weighted = part.sets_by_unit(part.weights[:, None] * drawn)
        return scoring_design(
            part.sets_by_unit(drawn),
            bound.sample.public.prior(theta)[1],
            mu=mu,
            sensitivity=CHANGED[self.relation],
            n=n,
            weighted=weighted,
        )

    # --- The release -----------------------------------------------------------------------------

    def origin(self, df: pd.DataFrame) -> Origin:
        """What the owner's report needs, with estimates at the records themselves. Confidential."""

        def without_privacy() -> Mapping[str, float]:
            try:
                return self.from_reference(df).start or {}
            except InvalidInput:  # a record of a sequence cannot be coded: it was absent
                return {}

        return Origin(data=df, without_privacy=without_privacy)

    def _made(self, df: pd.DataFrame, m: int, progress: FitProgress | None) -> Made:
        return self.make(self.bind(df), streams(), [df] * m, progress)

    def make(
        self,
        bound: ScoredTable,
        random: Streams,
        given: Sequence[pd.DataFrame],
        progress: FitProgress | None = None,
        outcomes: Sequence[str] = (),
    ) -> Made:
        """The estimate, and m tables in which the column is drawn anew; in the `given` tables
        others were synthesized before. No column of `outcomes`, those of a whole sequence, has a
        say in which others need a decision."""
        public = bound.table.drop(columns=list(outcomes or self.synthesizes))
        estimate, tables = self._estimated(bound, public, len(given), random), []
        for place, table in enumerate(given, start=1):
            column = estimate.rows(table, place, random.child(f"set {place}"))
            tables.append(joined(table, column.set_axis(table.index)))
            if progress is not None:
                progress("synthetic data", place, len(given))
        return Made(record=estimate.record, tables=tables)

    def _estimated(
        self,
        bound: ScoredTable | ScoredSource,
        public: pd.DataFrame,
        m: int,
        random: Streams,
        fit: ScoringFit | None = None,
    ) -> ScoredEstimate:
        """What m sets are drawn from beside the columns `public`: a new estimate, or `fit`."""
        if fit is None:
            self._refuse_too_few(bound)
            fit = self.fit(bound, random)
        record = self._record(
            public,
            self._charge(fit, m),
            random,
            predictors=(*bound.sample.design.predictors, *self.reads().get("weights", ())),
            noise=f"discrete Gaussian on sums of scores, in {len(fit.mus)} looks",
            counts="scores",
        )
        record = replace(record, estimates=fit.estimates)
        return ScoredEstimate(mechanism=self, fit=fit, bound=bound, record=record, random=random)

    # --- Tables that stay where they are ---------------------------------------------------------

    def bind_source(self, source: Source) -> ScoredSource:
        """Join the model to a source; see `bind`."""
        for name, what in (("unit", self.unit), ("weights", self.weights)):
            if what is not None:
                raise InvalidInput(
                    f"{name} must be left out for a table that stays where it is: its records are "
                    "summed in parts, each as a unit of weight 1"
                )
        bound = bind_source(self.model, source)
        _refuse_all_records_terms(bound.sample.design)
        check_delta_of(self.delta, bound.n_units)
        return bound

    def estimate(self, source: Source, n_synthetic: int) -> ScoredEstimate:
        """The noisy estimate from a source, from which rows are drawn part by part."""
        bound = self.bind_source(source)
        return self._estimated(bound, bound.sample.table, n_synthetic, streams())

    def estimate_of(self, state: Mapping[str, Any], source: Source) -> ScoredEstimate:
        """Inverse of `ScoredEstimate.state`."""
        fit = ScoringFit(
            estimates=Estimates.from_dict(state["estimates"]),
            covariance_of_draws=np.array(state["covariance_of_draws"]),
            mus=tuple(state["mus"]),
        )
        bound, random = self.bind_source(source), streams(int(state["entropy"]))
        if bound.sample.public.names != fit.estimates.names:
            raise SourceFailed("the table must be the one that was estimated from: it has changed")
        return self._estimated(bound, bound.sample.table, state["n_synthetic"], random, fit)

    def replicate(
        self, matrix: Matrix, theta: FloatArray, rng: np.random.Generator
    ) -> pd.DataFrame:
        """The column drawn anew at theta (d,), in its declared form."""
        *indicators, (_, values, of_values) = self.model.scoring(matrix).blocks_at(theta)
        drawn, left = np.full(len(matrix.X), None, dtype=object), np.arange(len(matrix.X))
        for name, indicator, of_indicator in indicators:
            yes = indicator.rows(left).simulate(of_indicator, rng) == 1
            drawn[left[yes]] = value_of(name)
            left = left[~yes]
        drawn[left] = self._values(values.rows(left), of_values, left.size, rng)
        form = self.model.declared_form
        column: pd.DataFrame = form.cast(pd.Series(drawn, name=self.outcome)).to_frame()
        return column

    def _values(
        self, scoring: Scoring, theta: FloatArray, n: int, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Levels, or numbers within the declared ends, drawn at theta (d,): shape (n,)."""
        form = self.model.declared_form
        if form.levels is not None:
            levels = np.array([*form.levels], dtype=object)
            return np.asarray(levels[scoring.simulate(theta, rng).astype(np.intp)])

        def outcomes(rows: Any) -> FloatArray:
            drawn = scoring.rows(rows).simulate(theta, rng)
            return np.asarray(self.model.from_support(drawn, form.decimals))

        ends = self.model.support(form.dtype)
        return draw_within(outcomes, n, ends, self.model.points)

    def _charge(self, fit: ScoringFit, m: int) -> PrivacyCharge:
        return PrivacyCharge.strict(
            mechanism=self.name,
            mu=compose_mu(fit.mus),
            delta=self.delta,
            relation=self.relation,
            n_synthetic=m,
            unit=self.unit,
            facts={
                "columns": [self.outcome],
                "assumes": [
                    "Family, formula, form of the released column and the start were declared "
                    "without looking at its confidential values.",
                    "Predictors, number and order of the records are public: neighbors differ in "
                    "the outcome of one record; where it is absent, its predictors stay.",
                    *self.model.assumptions,
                ],
                "not_covered": [
                    "Who is in the data: the guarantee hides values and their influence, not "
                    "membership.",
                    "Other releases from the same data: their mu add by squares.",
                ],
            },
        )


def release_in_sequence(
    steps: Sequence[ClippedScores], df: pd.DataFrame, m: int, progress: FitProgress | None
) -> list[Made]:
    """Each step's estimate and tables, given the columns synthesized before it.

    What a step reads of a column synthesized before is public in its synthetic version alone:
    coding, information, clip and center come from the first synthetic table, scores from the
    confidential rows. A record whose value cannot be coded so is absent from the step.
    """
    _check_reads(steps, df)
    random, steps_made, tables = streams(), [], [df] * m
    outcomes = [step.outcome for step in steps]
    synthesized: dict[str, Form] = {}
    for place, step in enumerate(steps, start=1):
        try:
            bound = _bound_after(step, df, tables[0], synthesized)
        except InvalidInput as error:
            raise InvalidInput(f"step {place}: {error}") from None
        numbers = random.child(f"step {place}")
        steps_made.append(step.make(bound, numbers, tables, progress, outcomes))
        tables = steps_made[-1].tables
        synthesized[step.outcome] = step.model.declared_form
    return steps_made


def _check_reads(steps: Sequence[ClippedScores], df: pd.DataFrame) -> None:
    """Before a look at any outcome: no step reads what is synthesized later, or may be missing."""
    forms = {step.outcome: step.model.declared_form for step in steps}
    for place, step in enumerate(steps, start=1):
        later = {other.outcome for other in steps[place:]}
        for name in parse_formula(step.model.formula, df).predictors:
            why = "has missing=True" if name in forms and forms[name].missing else None
            why = "is synthesized later" if name in later else why
            if why is not None:
                raise InvalidInput(f"step {place}: it must not read {name!r}, which {why}")


def _bound_after(
    step: ClippedScores, df: pd.DataFrame, drawn: pd.DataFrame, synthesized: Mapping[str, Form]
) -> ScoredTable:
    """The step bound to the confidential records `df`, coded by the synthetic table `drawn`."""
    public = step.bind(drawn)
    before = [name for name in public.design.predictors if name in synthesized]
    outcome = step.model.outcome_numbers(df[step.outcome])
    if not before:
        return replace(public, table=df, outcome=outcome)
    table = without_outcome(df, step.outcome)
    present = np.ones(len(df), dtype=bool)
    for name in before:
        form, values = synthesized[name], df[name]
        known = (
            places_of_levels(values, form.levels) >= 0
            if form.levels
            else np.isfinite(numbers_in(values))
        )
        present &= known
        kept = shortest(values).astype(object).where(known, drawn[name].astype(object))
        table = with_columns(table, {name: form.cast(form.read(kept))})
    matrix, coded = _coded_by(public.design, table)
    outcome[~(present & coded)] = np.nan
    return replace(public, table=df, scoring=step.model.scoring(matrix), outcome=outcome)


def _coded_by(design: Design, table: pd.DataFrame) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """The table coded as the design's, and which records could be: one that cannot (a level or a
    number for which a term is not defined) is 0, and found by halves, so that no error tells."""
    n, width = len(table), design.X.shape[1]
    X, offset, coded = np.zeros((n, width)), np.zeros(n), np.zeros(n, dtype=bool)
    left = [np.arange(n)]
    while left:
        rows = left.pop()
        try:
            matrix = design.recoded(table.iloc[rows])
        except InvalidInput:
            if rows.size > 1:
                left += np.array_split(rows, 2)
            continue
        X[rows], offset[rows], coded[rows] = matrix.X, matrix.offset, True
    matrix = Matrix(
        X=X, offset=offset, columns=design.columns, terms=design.terms, indicators=design.indicators
    )
    return matrix, coded


def _refuse_all_records_terms(design: Design) -> None:
    """A term such as scale(x) reads all records; with constants it reads its own."""
    if not design.data_dependent:
        return
    term = design.data_dependent[0]
    hint = "write its constants (knots=c(...), levels=c(...), I((x - 40) / 10), raw=TRUE)"
    raise InvalidInput(f"formula terms must read one record at a time: {term} reads all; {hint}")
