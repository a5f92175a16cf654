"""Perturbed histogram (PH): synthetic values from noisy counts in given bins, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_draws_released,
    check_positive,
    did_you_mean,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitProgress
from pyhybrid.fitting.units import check_rows_per_unit
from pyhybrid.mechanisms.accounting.local_charge import public_sentences, unsynthesized_sentence
from pyhybrid.mechanisms.cells import Cells, bins_of, check_grid, levels_of
from pyhybrid.mechanisms.mechanism import check_no_fit, check_unit_of_noise
from pyhybrid.mechanisms.synthesis_step import Made
from pyhybrid.models.columns.form import check_levels_given
from pyhybrid.models.columns.support import check_decimals
from pyhybrid.models.formula.row_rules import RowRule, meeting
from pyhybrid.primitives import laplace_counts
from pyhybrid.primitives.checks import check_bounds
from pyhybrid.primitives.library import NoiseProvenance, opendp_version
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.epsilon import RELATIONS, epsilon_text
from pyhybrid.privacy.histogram import perturbed_probabilities
from pyhybrid.releases.data_fingerprint import data_mark
from pyhybrid.releases.record import Confidential, ReleaseRecord
from pyhybrid.releases.release import Release
from pyhybrid.releases.report_context import Origin

__all__ = ["BoundHistogram", "PerturbedHistogram"]

IntArray = npt.NDArray[np.int64]
_NOISE = {"replace": 2, "remove": 1}  # counts that a neighbor changes


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundHistogram:
    """A perturbed histogram joined to a table. Confidential.

    Attributes
    ----------
    table : DataFrame
    cells : Cells
        Where each record lies.
    """

    table: pd.DataFrame
    cells: Cells
    column: str

    @property
    def synthesized(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def predictors(self) -> tuple[str, ...]:
        """None: it takes no predictors."""
        return ()

    def draw(self, shares: FloatArray, rng: np.random.Generator) -> pd.DataFrame:
        """The column drawn anew from cells with probabilities `shares` (B,)."""
        return self.cells.draw(shares, rng).to_frame()

    def __repr__(self) -> str:
        return f"<Histogram of {self.column!r}, {self.cells.n_cells} cells>"


@dataclass(frozen=True, kw_only=True)
class PerturbedHistogram:
    r"""Draw synthetic values from a histogram whose counts got Laplace(2 / epsilon) noise.

    The range is cut into equal bins, or the levels of a categorical column are declared, and each
    count gets noise from OpenDP; negative ones become 0, the rest are normalized to probabilities.
    A synthetic value is uniform within a bin drawn with them, or the level. Only the counts touch
    the data: all that follows is post-processing.

    The guarantee is strict: it holds for every database of the stated range or levels, at any n,
    without a sampler. n is public. Under ``replace`` a record lowers one count by 1 and raises
    another, a sensitivity of 2; under ``remove`` it is 1, and the noise half as large. Each column
    is drawn by itself: its associations with other columns are lost.

    Counts stay whole numbers with noise, so that it is the discrete Laplace distribution of the
    same scale. Type and decimals of what is released are declared, not read from the column.

    Parameters
    ----------
    column : str
        The column to synthesize.
    lower, upper : float
        Public range of the column, both ends included: from a codebook, never from the data.
    n_bins : int
        Number of bins B >= 2, public; at most the numbers of so many `decimals` in range.
    epsilon : float
        Of one noisy histogram, above 0, nats.
    unit : str, optional
        Column that says whose rows they are: epsilon is that of all rows of a unit.
    rows_per_unit : int, optional
        With `unit`: rows of a unit at most, public and given, never counted. The noise has
        `rows_per_unit` times the scale.
    levels : tuple, optional
        In place of `lower`, `upper` and `n_bins`: the public levels of a column of texts, logicals,
        categories or codes, two or more.
    relation : {"replace", "remove"}
    decimals : int, optional
        Of released values, 0 to 15: 0 for whole numbers. If omitted, values are whole where `lower`
        and `upper` are whole numbers more than 1 apart, and no fewer than `n_bins` of them; real
        numbers otherwise.

    Raises
    ------
    InvalidInput
        For a range, bin count or epsilon that is missing or wrong.

    References
    ----------
    [C25] supplement 1; Wasserman, Zhou (2010), JASA 105:375-389.

    Examples
    --------
    >>> mechanism = PerturbedHistogram(column="age", lower=0, upper=110, n_bins=11, epsilon=1.0)
    >>> mechanism.release(pd.DataFrame({"age": [31, 52, 52, 18]})).charge.epsilon
    1.0
    """

    column: str
    lower: float = None  # type: ignore[assignment]
    upper: float = None  # type: ignore[assignment]
    n_bins: int = None  # type: ignore[assignment]
    epsilon: float = None  # type: ignore[assignment]
    unit: str | None = None
    rows_per_unit: int | None = None
    levels: tuple[Any, ...] | None = None
    relation: str = "replace"
    decimals: int | None = None
    delta_of_charge: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InvalidInput(f"column must be the name of a column: found {self.column!r}")
        check_choice(self.relation, "relation", RELATIONS)
        self._check_cells()
        check_positive(self.epsilon, "epsilon")
        check_unit_of_noise(self.unit, self.rows_per_unit)

    def _check_cells(self) -> None:
        if self.levels is not None:
            ranged = (self.lower, self.upper, self.n_bins, self.decimals)
            if any(own is not None for own in ranged):
                raise InvalidInput(
                    "levels must be given in place of lower, upper, n_bins and decimals"
                )
            if isinstance(self.levels, str) or len(self.levels) < 2:
                raise InvalidInput("levels must be a tuple of two values or more")
            object.__setattr__(self, "levels", check_levels_given(self.levels, len(self.levels)))
            return
        check_bounds(self.lower, self.upper)
        if self.n_bins is None or isinstance(self.n_bins, str):
            raise InvalidInput(
                f"n_bins must be a whole number: found {self.n_bins!r}; it is never read from the "
                "data: give it, it is part of the guarantee"
            )
        check_count(self.n_bins, "n_bins", at_least=2)
        check_decimals(self.decimals)
        if self.form_decimals is not None:
            check_grid(self.lower, self.upper, self.n_bins, self.form_decimals)

    @property
    def form_decimals(self) -> int | None:
        """Decimals of released numbers, given or declared by the ends of the range; None of
        reals."""
        if self.decimals is not None:
            return self.decimals
        whole = self.lower % 1 == 0 and self.upper % 1 == 0
        between = self.upper - self.lower
        return 0 if whole and between > 1 and between + 1 >= self.n_bins else None

    @classmethod
    def for_formula(cls, formula: str, **options: Any) -> PerturbedHistogram:
        """The mechanism for the outcome of a formula without predictors, ``"y ~ 1"``."""
        outcome, _, predictors = (part.strip() for part in formula.partition("~"))
        if not outcome or predictors != "1":
            raise InvalidInput(
                f"a perturbed histogram takes no predictors: the formula must be "
                f"'{outcome or 'y'} ~ 1', found {formula!r}"
            )
        return cls(column=outcome.strip("`"), **options)

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return type(self).__name__

    @property
    def synthesizes(self) -> tuple[str, ...]:
        """Columns that a release replaces."""
        return (self.column,)

    @property
    def undecided(self) -> dict[str, str]:
        """Reason by column why what a model reads needs the owner's decision to be published."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Public settings of the mechanism."""
        own = asdict(self)
        if self.levels is None:  # as releases were stored before there were levels
            del own["levels"]
        else:
            own["levels"] = list(self.levels)
        for name, usual in (("relation", "replace"), ("decimals", None)):
            if own[name] == usual:
                del own[name]
        return {"mechanism": self.name, **own}

    def reads(self) -> dict[str, tuple[str, ...]]:
        """Columns that the mechanism itself reads beside its own, by what they are to it."""
        return {} if self.unit is None else {"unit": (self.unit,)}

    def release(
        self,
        df: pd.DataFrame,
        *,
        n_synthetic: int = 1,
        n_draws_released: int | None = None,
        seed: int | None = None,
        engine: str | Engine = "auto",
        settings: SamplerSettings | None = None,
        rule: ConvergenceRule | None = None,
        on_not_converged: str = "raise",
        leave_one_out: int | None = None,
        progress: FitProgress | None = None,
    ) -> Release:
        """Count, add noise, charge and draw.

        Parameters
        ----------
        df : DataFrame
            Confidential records. Not modified.
        n_synthetic : int, default 1
            m, the number of synthetic data sets.
        n_draws_released : int, optional
            Noisy histograms the sets are drawn from: 1 (at the price of one, as drawing from a
            released histogram is post-processing; the default) or `n_synthetic`, at epsilon each.
        seed : int, optional
            OpenDP takes its noise from the operating system and cannot be seeded: a seed is
            refused.
        engine, settings, rule, on_not_converged, leave_one_out
            Of mechanisms that fit a model: refused here.
        progress : callable, optional
            See `pyhybrid.fitting.session.open_session`.

        Returns
        -------
        Release
            Without `diagnostics` and `fit`: nothing is sampled that could fail to converge.

        Raises
        ------
        InvalidInput
            For a missing column, an outcome that is missing, not numeric or out of range (its row
            is named), a seed, or a setting of a fit.
        EngineUnavailable
            If OpenDP is not installed.
        """
        m = check_count(n_synthetic, "n_synthetic")
        released = check_draws_released(1 if n_draws_released is None else n_draws_released, m)
        check_no_fit(
            self.name,
            engine=engine,
            settings=settings,
            rule=rule,
            on_not_converged=on_not_converged,
            leave_one_out=leave_one_out,
            seed=seed,
        )
        made = self.make_from(
            self.bind(df),
            streams(),
            n_synthetic=m,
            n_draws_released=released,
            progress=progress,
        )
        return Release.of(made.record, made.tables, origin=Origin(data=df))

    def make_from(
        self,
        bound: BoundHistogram,
        random: Streams,
        *,
        n_synthetic: int,
        n_draws_released: int,
        given: Sequence[pd.DataFrame] | None = None,
        rules: Sequence[RowRule] = (),
        progress: FitProgress | None = None,
    ) -> Made:
        """What `release` releases, or a step of a sequence, which is no release by itself.

        `given` are m tables in which other columns were synthesized before.
        """
        shares = [self._noisy_shares(bound.cells.place) for _ in range(n_draws_released)]
        tables = []
        for place in range(n_synthetic):
            rng = random.generator(f"histogram/{place + 1}")
            known = bound.table if given is None else given[place]
            draw = partial(bound.draw, shares[place % n_draws_released], rng)
            tables.append(joined(known, meeting(rules, draw, known) if rules else draw()))
            if progress is not None:
                progress("synthetic data", place + 1, n_synthetic)
        record = self._record(bound.table, n_synthetic, n_draws_released, random)
        return Made(record=record, tables=tables)

    def bind(self, df: pd.DataFrame) -> BoundHistogram:
        """Check `df` and find each record's cell; see `release`."""
        if not isinstance(df, pd.DataFrame) or len(df) == 0:
            raise InvalidInput(f"data must be a DataFrame with rows: found {type(df).__name__}")
        if list(df.columns).count(self.column) != 1:
            known = ", ".join(str(c) for c in df.columns[:20])
            near = did_you_mean(self.column, df.columns)
            raise InvalidInput(
                f"column {self.column!r} must be in the data, once{near}: found {known}"
            )
        twice = df.columns[df.columns.duplicated()]
        if len(twice):
            raise InvalidInput(f"column names must be unique: {twice[0]!r} occurs more than once")
        own = df[self.column]
        if self.levels is not None:
            cells = levels_of(own, self.levels)
        else:
            cells = bins_of(own, self.lower, self.upper, self.n_bins, self.form_decimals)
        check_rows_per_unit(df, self.unit, self.rows_per_unit, (self.column,))
        return BoundHistogram(table=df, cells=cells, column=self.column)

    @property
    def _epsilon_of_a_row(self) -> float:
        return float(self.epsilon) / (self.rows_per_unit or 1)

    def _noisy_shares(self, place: IntArray) -> FloatArray:
        """Probabilities of the cells, shape (B,); the only step that looks at the data."""
        n_cells = self.n_bins if self.levels is None else len(self.levels)
        noisy = laplace_counts(
            place, n_categories=n_cells, epsilon=self._epsilon_of_a_row, relation=self.relation
        )
        return perturbed_probabilities(noisy.value, np.zeros(n_cells))

    def _record(self, df: pd.DataFrame, m: int, released: int, random: Streams) -> ReleaseRecord:
        charge = PrivacyCharge.strict(
            mechanism=self.name,
            epsilon=self.epsilon,
            relation=self.relation,
            n_synthetic=m,
            n_draws_released=released,
            unit=self.unit,
            assumes=(
                self._fixed_sentence,
                "The number of records is public.",
                self._form_sentence,
            ),
            not_covered=(
                unsynthesized_sentence((self.column,)),
                *public_sentences(self.unit),
                "Choices made by looking at the confidential data: range, bins, epsilon, and "
                "which of several releases was kept.",
                "Other releases from the same data: their epsilons add up.",
                "Whether anything was released is itself an answer: values out of range are "
                "refused.",
            ),
        )
        return ReleaseRecord(
            charge=charge,
            diagnostics=None,
            settings=self.describe(),
            synthesized=(self.column,),
            predictors=(),
            provenance=NoiseProvenance(
                library="OpenDP",
                version=opendp_version(),
                noise=f"discrete Laplace of scale {_NOISE[self.relation]} / "
                f"{epsilon_text(self._epsilon_of_a_row)} on each count",
            ),
            seeded=False,
            exposed=exposed_columns(df, (self.column,)),
            confidential=Confidential(
                labels=df.index,
                alpha=np.empty(0),
                lipschitz=np.empty(0),
                lipschitz_bound=charge.bound,
                entropy=random.entropy,
                data=data_mark(df),
            ),
        )

    @property
    def _fixed_sentence(self) -> str:
        if self.levels is not None:
            return "The levels were fixed without looking at the data."
        return "The range and the number of bins were fixed without looking at the data."

    @property
    def _form_sentence(self) -> str:
        if self.levels is not None:
            return "Released values are the declared levels, in a type that is no function of data."
        shown = "real" if self.form_decimals is None else f"of {self.form_decimals} decimals"
        return f"Released values are numbers, {shown}: declared, and not read from the column."
