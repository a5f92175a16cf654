"""Noisy marginals: synthetic columns from two-way tables with noise, without Stan.

Every synthesized column has a table with each of its predictors. All cells of all tables get noise
from OpenDP, and a log-linear model is fitted to what comes out: p(y | x) proportional to
exp(sum_j theta_j(y, x_j)). Synthetic values are drawn from it. The tables are the only step that
looks at confidential values; any number of synthetic sets costs what one costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_flag,
    check_positive,
    did_you_mean,
    number_of,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitProgress, check_rows_per_unit
from pyhybrid.mechanisms.accounting import SAY_SO, check_delta_of
from pyhybrid.mechanisms.marginals.domain import ColumnDomain, Predictor, read_domain, starts_of
from pyhybrid.mechanisms.marginals.measure import (
    ALONE,
    CountedSource,
    Measuring,
    check_sizes,
    most_cells,
    n_effects,
)
from pyhybrid.mechanisms.marginals.sample import (
    Records,
    following_others,
    simulated,
    spread,
    within,
)
from pyhybrid.mechanisms.mechanism import Made, NoiseMechanism, check_columns, check_unit_of_noise
from pyhybrid.models.columns.form import Form
from pyhybrid.models.formula.values import is_number
from pyhybrid.primitives.noise import NoiseProvenance
from pyhybrid.primitives.tables import NoisyTables, Price, size_of_noise
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import RELATIONS, check_delta
from pyhybrid.releases.record import ReleaseRecord
from pyhybrid.running.tasks import one_blas_thread
from pyhybrid.sources.source import Source

_MOST_EVEN = 200_000  # rows of a part that are drawn evenly, beyond which they are many
AUTO = "auto"
_CELL = 5.0  # records of a cell of two columns of as many bins, in mean sizes of its noise
_AUTO_BINS, _AUTO_EFFECTS = (3, 20), 1000  # fits take the third power of effects
_CELLS_OF_PUBLIC = 5
_KEPT = 16.0  # cells of a table that noise leaves apart: a third of what pairs tell is then kept
_NO_COLUMNS = pd.DataFrame(index=range(2))  # a source is released without public columns
_ASSUMES = (
    "The domains of all columns, their order and their predictors were fixed without looking at "
    "the confidential columns.",
    "The number of records is public, and so are the types of the columns and how they mark "
    "missing values: the same for every possible record.",
)
_AT_ENDS = "Numbers beyond the bins of their domain are counted in the first or last one: {}."
_OF_REFERENCE = {
    True: "The records of the reference, which is public.",
    False: "The records of the reference: the model that is drawn from has them without noise.",
}


@dataclass(frozen=True, kw_only=True)
class NoisyMarginals(NoiseMechanism):
    r"""Draw synthetic columns from a log-linear model fitted to noisy two-way tables.

    Strict for every database of the stated domain, at any n. A record is in one cell of each of T
    tables: removing it changes T counts by 1, replacing it 2 T. Each table gets a part of epsilon,
    larger ones a larger part, and its cells discrete Laplace noise of scale 1 / part or 2 / part.
    Fewer predictors mean less noise. With `given`, columns are synthesized in order beside public
    ones; without, the whole table is. Of several sets each has effects drawn from their posterior
    given the noisy tables, so that ``pool(..., rule="noise_aware")`` gives honest intervals. A
    single set is drawn at the mode, and evenly: its tables are the model's but for about a record
    in each cell. In it, and with a reference, numbers follow the other columns within merged bins.

    Parameters
    ----------
    domain : mapping of str to ColumnDomain
        The columns to synthesize, in their order, each with its public domain; a list stands for
        levels. Domains of columns in `given` say how these are cut.
    epsilon : float
        Of all tables together, above 0, nats.
    given : sequence of str
        Public predictors, released as they are. Numbers are cut in eighths of their records, unless
        `domain` says how.
    predictors : mapping of str to sequence of str, optional
        Of each synthesized column: public columns, and columns before it; all of them if a column
        is not named. Choose them without looking at the confidential data.
    delta : float, optional
        Public, below 1 / n: noise is then discrete Gaussian, by parts of the rho of zCDP that
        (epsilon, delta) allows. Of many tables it is the smaller noise. None for pure epsilon.
    most_bins : int or "auto", optional
        If given, every synthesized column is first measured alone, at a fifth of the price.
        Neighboring bins are then merged to so many for the tables with predictors, and values are
        drawn within these as the column alone has them: give narrow bins, 50 to 300. "auto" takes
        as many as the noise leaves apart, 3 to 20, by n alone, fewer where models would be large.
    relation : {"replace", "remove"}
        Neighboring databases. n and the public columns are the same in both.
    reference : DataFrame, optional
        Other records, public or historical: their tables are measurements, too, with the errors of
        sampling and of a drift of a tenth. Where they differ by more, this costs accuracy, not
        privacy; they are **not protected**.
    public : bool, default False
        True if the reference is public; the charge says which.
    holds_no_released_record : bool, default False
        The owner confirms that the reference holds none of the records to be released; without that
        it is refused.
    unit, rows_per_unit : str, int, optional
        See `PerturbedHistogram`.

    References
    ----------
    McKenna, Miklau, Sheldon (2021), Winning the NIST contest: a scalable and general approach to
    differentially private synthetic data, J. Privacy and Confidentiality 11(3). Räisä, Jälkö,
    Kaski, Honkela (2023), Noise-aware statistical inference with differentially private synthetic
    data, AISTATS.

    Examples
    --------
    >>> mechanism = NoisyMarginals(
    ...     domain={"visits": ColumnDomain(bins=(0, 1, 3, 10, 100))}, given=["age"], epsilon=1.0
    ... )
    >>> df = pd.DataFrame({"visits": [0, 2, 7, 30] * 9, "age": range(20, 56)})
    >>> mechanism.release(df, n_synthetic=20).charge.epsilon
    1.0
    """

    domain: Mapping[str, ColumnDomain]
    epsilon: float
    delta: float | None = None
    most_bins: int | str | None = None
    given: Sequence[str] = ()
    predictors: Mapping[str, Sequence[str]] | None = None
    relation: str = "replace"
    reference: pd.DataFrame | None = field(default=None, repr=False, compare=False)
    public: bool = False
    holds_no_released_record: bool = False
    unit: str | None = None
    rows_per_unit: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.given, str):
            raise InvalidInput(f"given must be a list of columns: found {self.given!r}")
        object.__setattr__(self, "domain", read_domain(self.domain))
        object.__setattr__(self, "given", tuple(self.given))
        check_positive(self.epsilon, "epsilon")
        if self.delta is not None:
            check_delta(self.delta)
        if isinstance(self.most_bins, str) and self.most_bins != AUTO:
            raise InvalidInput(f"most_bins must be a number or 'auto': found {self.most_bins!r}")
        if self.most_bins not in (None, AUTO):
            check_count(self.most_bins, "most_bins", at_least=2)
        check_choice(self.relation, "relation", RELATIONS)
        check_flag(self.public, "public")
        if self.reference is not None and not check_flag(
            self.holds_no_released_record, "holds_no_released_record"
        ):
            raise InvalidInput(
                f"a reference must be confirmed, as reading it costs no epsilon: {SAY_SO}"
            )
        if not self.synthesizes:
            raise InvalidInput("domain must hold a column that is not in given: it holds none")
        check_unit_of_noise(self.unit, self.rows_per_unit)
        self._check_predictors()

    def _check_predictors(self) -> None:
        """Refuse predictors that are neither public nor synthesized before their column."""
        for column, names in (self.predictors or {}).items():
            if column not in self.synthesizes:
                raise InvalidInput(
                    f"predictors must be of columns that are synthesized: {column!r} is none"
                    f"{did_you_mean(column, self.synthesizes)}"
                )
            before = (*self.given, *self.synthesizes[: self.synthesizes.index(column)])
            for name in names:
                if name not in before:
                    raise InvalidInput(
                        f"predictors of {column!r} must be in given, or before it in domain: "
                        f"{name!r} is not{did_you_mean(name, before)}"
                    )

    @property
    def synthesizes(self) -> tuple[str, ...]:
        return tuple(name for name in self.domain if name not in self.given)

    @property
    def order(self) -> dict[str, tuple[str, ...]]:
        """Predictors of each synthesized column."""
        chosen, columns = self.predictors or {}, self.synthesizes
        return {
            column: tuple(chosen.get(column, (*self.given, *columns[:place])))
            for place, column in enumerate(columns)
        }

    @property
    def n_tables(self) -> int:
        """Tables T that are measured with predictors."""
        return sum(max(1, len(reads)) for reads in self.order.values())

    def bins_of(self, n: int) -> int | None:
        """Bins of a column in tables with predictors, at most, for n records: public. "auto" takes
        the root of n over five times the mean size of the noise on a cell."""
        if not isinstance(self.most_bins, str):
            return self.most_bins
        cells = self._resolvable_cells(n)
        if self.reference is not None:
            cells = max(cells, len(self.reference) / _CELL)
        least, most = _AUTO_BINS
        for bins in range(int(np.clip(round(math.sqrt(cells)), least, most)), least, -1):
            sizes = dict.fromkeys(self.given, _CELLS_OF_PUBLIC)
            sizes |= {name: most_cells(domain, bins) for name, domain in self.domain.items()}
            if max(n_effects(sizes, self.order).values()) <= _AUTO_EFFECTS:
                return bins
        return least

    def _resolvable_cells(self, n: int) -> float:
        """Cells of a table of two columns that the noise leaves apart."""
        price = self._price.part((1 - ALONE) / self.n_tables)
        return n / (_CELL * size_of_noise(price, self.relation))

    def too_few(self, n: int) -> str | None:
        """What to say of n records whose relations this epsilon hides; public."""
        cells = self._resolvable_cells(n)
        if self.n_tables < 2 or self.reference is not None or cells >= _KEPT:
            return None
        price = Price.of(self.epsilon, self.delta).of_one_in(cells / _KEPT)  # so much less noise
        whose = "" if self.unit is None else f", up to {self.rows_per_unit} for a {self.unit},"
        return (
            f"{n:,} records{whose} are too few for {self.n_tables} tables at epsilon "
            f"{self.epsilon:g}: relations between columns will be lost; take an epsilon of "
            f"{math.ceil(2 * price.epsilon) / 2:g}, fewer columns, or a reference"
        )

    @property
    def _price(self) -> Price:
        """Of one row, all tables together."""
        return Price.of(self.epsilon, self.delta).of_one_in(self.rows_per_unit or 1)

    @property
    def delta_of_charge(self) -> float | None:
        return self.delta

    def describe(self) -> dict[str, Any]:
        names = ("epsilon", "delta", "most_bins", "relation", "n_tables", "unit", "rows_per_unit")
        reference = None
        if self.reference is not None:
            reference = {"records": len(self.reference), "public": self.public}
        return {
            "mechanism": self.name,
            "domain": {name: domain.as_dict() for name, domain in self.domain.items()},
            "predictors": {name: list(reads) for name, reads in self.order.items()},
            **{name: getattr(self, name) for name in names},
            "reference": reference,
        }

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        return {name: domain.form for name, domain in self.domain.items()}

    def _made(self, df: pd.DataFrame, m: int, progress: FitProgress | None) -> Made:
        check_columns(df, (*self.synthesizes, *self.given))
        check_delta_of(self.delta or 0, len(df))
        check_rows_per_unit(df, self.unit, self.rows_per_unit, self.synthesizes)
        random = streams()
        estimate, tables = self._estimated(self._counted(df, m), df, m, random), []
        for place in range(1, m + 1):
            tables.append(joined(df, estimate.rows(df, place, random).set_axis(df.index)))
            if progress is not None:
                progress("synthetic data", place, m)
        return Made(record=estimate.record, tables=tables)

    def _estimated(
        self, measuring: Measuring, public: pd.DataFrame, m: int, random: Streams
    ) -> EstimatedTable:
        """The model that m sets are drawn from. Measuring alone looks at confidential values."""
        rng, drawn = random.generator("alone"), measuring.for_intervals
        with one_blas_thread():  # many solves of moderate size: threads wait for each other
            results = measuring.all_tables()
            models = measuring.models(results, random)
            effects = {
                name: model.sample(m, random.generator(f"effects/{name}"))
                if drawn
                else [model.mode]
                for name, model in models.items()
            }
            shares = {
                name: alone.sample(m, rng) if drawn else [alone.shares]
                for name, alone in results.alone.items()
            }
        return EstimatedTable(
            mechanism=self,
            record=self._record_of(public, noise_of(results.answers), random, m),
            public=measuring.data.public,
            domain=results.domain,
            predictors={name: model.predictors for name, model in models.items()},
            effects=effects,
            shares=shares,
        )

    def _record_of(
        self, public: pd.DataFrame, noise: str, random: Streams, m: int
    ) -> ReleaseRecord:
        """The record of m sets."""
        told = {"noise": noise, "counts": "tables"}
        return self._record(public, self._charge(m), random, tuple(self.given), **told)

    def _charge(self, m: int) -> PrivacyCharge:
        """Of all that was measured, however many sets are drawn."""
        price, has_reference = Price.of(self.epsilon, self.delta), self.reference is not None
        ends = ", ".join(name for name in self.synthesizes if self.domain[name].clamp)
        return PrivacyCharge.strict(
            mechanism=self.name,
            epsilon=price.epsilon,
            rho=price.rho,
            delta=price.delta,
            relation=self.relation,
            n_synthetic=m,
            unit=self.unit,
            facts={
                "columns": list(self.synthesizes),
                "public_rows": True,
                "chosen": "domains, predictors, epsilon",
                "refused": "values outside of their domain",
                "other_reference": has_reference,
                "assumes": [*_ASSUMES, *([_AT_ENDS.format(ends)] if ends else [])],
                "not_covered": [_OF_REFERENCE[self.public]] if has_reference else [],
            },
        )

    def _counted(self, df: pd.DataFrame, m: int = 1) -> Measuring:
        """What is counted of a data frame for m sets."""
        fine, counted = {name: self.domain[name] for name in self.synthesizes}, None
        if self.reference is not None:
            try:
                check_columns(self.reference, (*self.synthesizes, *self.given))
                counted = Records.of(self.reference, fine, {})
            except InvalidInput as error:
                raise InvalidInput(f"reference: {error}") from None
        public, of_reference = public_predictors(df, self.reference, self.domain, self.given)
        check_sizes(fine, self.order, public, self.bins_of(len(df)))
        reference = counted and replace(counted, public=of_reference)
        return self._measuring(Records.of(df, fine, public), m, reference)

    def _measuring(
        self, data: Records | CountedSource, m: int, reference: Records | None = None
    ) -> Measuring:
        return Measuring(
            data=data,
            order=self.order,
            most_bins=self.bins_of(data.n),
            price=self._price,
            relation=self.relation,
            reference=reference,
            for_intervals=m > 1,
        )

    def estimate(self, source: Source, m: int) -> EstimatedTable:
        """The model of a source, from which rows are drawn part by part."""
        for name in ("unit", "reference", "given"):
            value = getattr(self, name)
            if value is not None and len(value):
                raise InvalidInput(
                    f"{name} must be left out for a table that stays where it is: all columns that "
                    "are released are synthesized from noisy counts of its records"
                )
        source.check_columns(self.synthesizes)
        n = source.count()
        check_delta_of(self.delta or 0, n)
        check_sizes(self.domain, self.order, {}, self.bins_of(n))
        measuring = self._measuring(CountedSource(domain=self.domain, source=source, n=n), m)
        return self._estimated(measuring, _NO_COLUMNS, m, streams())

    def estimate_of(self, state: Mapping[str, Any], source: Source) -> EstimatedTable:
        """Inverse of `EstimatedTable.state`."""
        random, m = streams(int(state["entropy"])), state["n_synthetic"]
        return EstimatedTable(
            mechanism=self,
            record=self._record_of(_NO_COLUMNS, state["noise"], random, m),
            public={},
            domain={n: ColumnDomain.from_dict(fields) for n, fields in state["domain"].items()},
            predictors={name: tuple(reads) for name, reads in state["predictors"].items()},
            effects={name: [*map(np.array, sets)] for name, sets in state["effects"].items()},
            shares={name: [*map(np.array, sets)] for name, sets in state["shares"].items()},
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EstimatedTable:
    """A model that sets are drawn from: merged cells, predictors in order, and the effects and
    shares of fine cells of each set, by column."""

    mechanism: NoisyMarginals
    record: ReleaseRecord
    public: Mapping[str, Predictor]
    domain: Mapping[str, ColumnDomain]
    predictors: Mapping[str, tuple[str, ...]]
    effects: Mapping[str, Sequence[FloatArray]]
    shares: Mapping[str, Sequence[FloatArray]]

    def state(self) -> dict[str, Any]:
        """All that rows are drawn from, as JSON."""
        provenance = self.record.provenance
        assert isinstance(provenance, NoiseProvenance)
        return {
            "domain": {name: domain.as_dict() for name, domain in self.domain.items()},
            "predictors": {name: list(reads) for name, reads in self.predictors.items()},
            "effects": {
                name: [*map(np.ndarray.tolist, sets)] for name, sets in self.effects.items()
            },
            "shares": {name: np.array(sets).tolist() for name, sets in self.shares.items()},
            "n_synthetic": self.record.charge.n_synthetic,
            "noise": provenance.noise,
            "entropy": str(self.record.confidential.entropy),
        }

    def rows(self, public: pd.DataFrame, place: int, random: Streams) -> pd.DataFrame:
        """Columns of set `place`, from 1, for so many rows as `public` has. Those of a single set
        are even; sets to be compared have the noise of a sample that rules for several count on. Of
        a single set, and with a reference, numbers follow the other columns within merged bins."""
        single, n = self.record.charge.n_synthetic == 1, len(public)
        even = single and n <= _MOST_EVEN
        records = Records(domain=self.domain, public=self.public, n=n)
        effects, columns = {name: sets[place - 1] for name, sets in self.effects.items()}, {}
        stream = f"marginals/{place}"
        records = simulated(self.predictors, records, effects, random, stream, even=even)
        follows = single or self.mechanism.reference is not None
        for name, places in records.places.items():
            fine = self.mechanism.domain[name]
            if fine != self.domain[name]:
                rng = random.generator(f"bins/{place}/{name}")
                order = following_others(name, records, rng) if follows else None
                starts = starts_of(fine, records.domain[name])
                places = within(starts, places, self.shares[name][place - 1], rng, order)
            rng = random.generator(f"within/{place}/{name}")
            at = spread(places, rng) if even else rng.random(places.size)
            columns[name] = fine.values(places, at, name=name)
        table: pd.DataFrame = pd.DataFrame(columns)
        return table


def public_predictors(
    df: pd.DataFrame,
    reference: pd.DataFrame | None,
    domain: Mapping[str, ColumnDomain],
    given: Sequence[str],
) -> tuple[dict[str, Predictor], dict[str, Predictor]]:
    """Public predictors of the data and of a reference, in the same cells."""
    public, of_reference = {}, {}
    for name in given:
        column = df[name]
        if reference is not None:
            both = [column, reference[name]]
            if both[0].dtype != both[1].dtype and not all(map(is_number, both)):
                both = [values.astype(object) for values in both]
            column = pd.concat(both, ignore_index=True).rename(name)
        predictor = Predictor.of_public(column, domain.get(name))
        public[name] = predictor.rows(slice(len(df)))
        of_reference[name] = predictor.rows(slice(len(df), None))
    return public, of_reference


def noise_of(answers: Sequence[NoisyTables]) -> str:
    """All noise, scale by scale."""
    same: dict[str, list[NoisyTables]] = {}
    for answer in answers:
        same.setdefault(f"{answer.noise} of scale {answer.scale:g}", []).append(answer)
    sentences = []
    for noise, alike in same.items():
        n_tables = number_of(sum(len(answer.shapes) for answer in alike), "table")
        counts = sum(answer.value.size for answer in alike)
        sentences.append(f"{noise} on each count of {n_tables}, {counts} counts in all")
    return "; ".join(sentences)
