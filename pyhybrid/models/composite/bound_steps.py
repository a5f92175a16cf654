"""A model of several steps joined to a table: one bound model of all its parts.

What a record tells is the sum of its log-likelihoods in all steps, so that weights, bounds and caps
act on the whole record, and one charge covers all parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.engines.base import Draws, FirstTry, StanProgram
from pyhybrid.engines.programs import DROPPED, SHARED, joint_program
from pyhybrid.models.base import Model
from pyhybrid.models.columns.support import support_said
from pyhybrid.models.composite.frozen_steps import frozen_parts, frozen_terms, terms_with_frozen
from pyhybrid.models.composite.steps import (
    Amount,
    Inflated,
    Node,
    Part,
    Replicate,
    amounts_of,
    inflated_of,
    of_part,
    parts_of,
    with_missing,
)  # fmt: skip
from pyhybrid.models.families.aggregation import Rows, distinct_rows, weighted_rows
from pyhybrid.models.families.cap_data import cap_data
from pyhybrid.models.families.coefficients import NORMAL_ACCEPTANCE
from pyhybrid.models.families.regression import Parameters, Positions
from pyhybrid.models.formula.design import Design
from pyhybrid.models.formula.values import Completion
from pyhybrid.models.grid import GridForm
from pyhybrid.privacy.censoring import Cap, FrozenParts, FrozenTerms
from pyhybrid.privacy.log_lik import LogLik

__all__ = ["BoundParts", "designs_of"]

_BLOCK_ELEMENTS = 2_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundParts:
    """A model of several steps joined to a table. Confidential.

    Attributes
    ----------
    model : Model
    table : DataFrame
    column : str
        The outcome's.
    root : Node
    completion : Completion, optional
        How missing predictors are completed before the parts read them.
    said : tuple of str
        Sentences that a charge must state.
    """

    model: Model
    table: pd.DataFrame
    column: str
    root: Node
    completion: Completion | None = None
    said: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.model.name} of {self.column!r} bound to {self.n} records>"

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.table)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """All models, in the order of their steps."""
        return tuple(parts_of(self.root))

    @cached_property
    def amounts(self) -> tuple[Amount, ...]:
        """Where values come from."""
        return tuple(amounts_of(self.root))

    @property
    def program(self) -> StanProgram:
        """The parts' programs as one."""
        programs = {part.name: part.bound.program.name for part in self.parts}
        if self.inflated is None:
            return joint_program(programs, " + ".join(f"of_{name}" for name in programs))
        own = (self.inflated.zero.name, self.inflated.count.part.name)
        mixture = f"zero_inflated(of_{own[0]}, of_{own[1]}, at_zero)"
        others = [f"of_{name}" for name in programs if name not in own]
        return joint_program(
            programs,
            " + ".join([*others, mixture]),
            functions=("functions/zero_inflated.stan",),
            data="  array[n_terms] int<lower=0, upper=1> at_zero;  // 1: the count is 0\n",
        )

    @cached_property
    def inflated(self) -> Inflated | None:
        """The mixture of zeros and counts, if there is one."""
        return inflated_of(self.root)

    @property
    def synthesized(self) -> tuple[str, ...]:
        """The outcome's column."""
        return (self.column,)

    @property
    def predictors(self) -> tuple[str, ...]:
        """Columns read by any part."""
        names = {name for part in self.parts for name in part.bound.predictors}
        return tuple(sorted({self.completion.source(n) if self.completion else n for n in names}))

    @property
    def outcome(self) -> FloatArray:
        """Sensitive values, shape (n,); NaN where they are missing."""
        return self.numbers_of(self.table[self.column])

    def numbers_of(self, column: pd.Series) -> FloatArray:
        """Values of the outcome, the data's or a replicate's, as numbers; NaN where missing."""
        there = column.notna().to_numpy(dtype=bool)
        values = np.full(len(column), np.nan)
        values[there] = self.amounts[0].part.bound.numbers_of(column[there])
        return values

    @property
    def design_columns(self) -> tuple[str, ...]:
        """Names of the columns of the parts' designs."""
        return tuple(
            f"{part.name}: {name}" for part in self.parts for name in part.bound.design_columns
        )

    @property
    def likelihood_parameters(self) -> tuple[str, ...]:
        """Names of the variables that the likelihood reads."""
        return tuple(
            f"{name}_{part.name}"
            for part in self.parts
            for name in part.bound.likelihood_parameters
        )

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Terms of the formulas whose coding depends on all records."""
        read = () if self.completion is None else self.completion.data_dependent
        own = (text for part in self.parts for text in part.bound.data_dependent)
        return tuple(dict.fromkeys((*own, *read)))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the parts assume, and what is said of missing values."""
        ends = [amount.released_ends for amount in self.amounts]
        whole = (min(low for low, _ in ends), max(high for _, high in ends))
        single = {
            text for amount in self.amounts
            for text in support_said(self.column, amount.part.bound.model.declared_support)
        }  # fmt: skip
        own = (text for part in self.parts for text in part.bound.assumptions)
        others = (text for text in own if text not in single)
        return tuple(dict.fromkeys((*self.said, *others, *support_said(self.column, whole))))

    @property
    def density_above_one(self) -> bool:
        """True if a log-likelihood above 0 is possible."""
        return any(part.bound.density_above_one for part in self.parts)

    @property
    def first_try(self) -> FirstTry | None:
        """The most careful of the parts' first tries. None if one has none, or if zeros and counts
        are mixed and have scales of a published prior: what one part says of the other is not in
        its hints.
        """
        tries = [part.bound.first_try for part in self.parts]
        found = [each for each in tries if each is not None]
        if len(found) < len(tries):
            return None
        largest = max(each.acceptance for each in found)
        if self.inflated is not None and largest != NORMAL_ACCEPTANCE:
            return None
        metrics = {each.metric for each in found}
        return FirstTry(acceptance=largest, metric="adapted" if "adapted" in metrics else "unit")

    @property
    def takes_center(self) -> bool:
        """True: the programs of all parts do."""
        return True

    @property
    def grid_form(self) -> GridForm | None:
        """None: there are too many parameters."""
        return None

    @property
    def decimals_given(self) -> bool:
        """True if the number of decimals of released values does not depend on the data."""
        return all(amount.part.bound.decimals_given for amount in self.amounts)

    @property
    def decimals(self) -> int | None:
        """Number of decimals of released values; None for all that floating point has."""
        return self.amounts[0].part.bound.decimals

    @cached_property
    def rows(self) -> Rows:
        """Distinct records: of the same row in every part."""
        rows = []
        for part in self.parts:
            own = np.full(self.n, -1, dtype=np.intp)
            own[part.at] = part.bound.row_of
            rows.append(own)
        return distinct_rows(np.column_stack(rows))

    def stan_data(
        self,
        alpha: FloatArray,
        *,
        cap: float | Cap | None = None,
        dispersion: float = 1.0,
        emit_log_lik: bool = False,
    ) -> dict[str, Any]:
        """Data block of the program; see `pyhybrid.models.base.BoundModel`."""
        clip = None if cap is None else Cap.of(cap)
        by_term = clip is not None or emit_log_lik or self.inflated is not None
        rows = weighted_rows(self.rows, alpha, None if clip is None else clip.unit)
        first = rows.first if by_term else rows.first[:0]
        data = {
            **cap_data(clip, first),
            "emit_log_lik": int(emit_log_lik),
            "by_term": int(by_term),
            "n_terms": first.size,
            "frequency": rows.frequency[: first.size],
            "weights": alpha[first],
        }
        if self.inflated is not None:
            data["at_zero"] = self.inflated.at_zero[first].astype(np.int64)
        frozen = None if clip is None else clip.frozen
        assert frozen is None or isinstance(frozen, FrozenParts)
        n_rows = {}
        for part in self.parts:
            weights = alpha[part.at]
            rows_of_part = part.bound.stan_rows(weights)
            n_rows[part.name] = rows_of_part.first.size
            after = None if frozen is None else frozen.parts.get(part.name)
            own = part.bound.stan_data(
                weights,
                # Any: the part's rows are written then, and the frozen ones after them.
                cap=Cap(below=1.0, above=1.0, frozen=after) if by_term else None,
                dispersion=dispersion,
                emit_log_lik=emit_log_lik,
            )
            left_out = (*SHARED, *DROPPED)
            data |= {f"{k}_{part.name}": v for k, v in own.items() if k not in left_out}
            place, row_of = part.place_of[first], rows_of_part.row_of
            data[f"row_{part.name}"] = np.where(place < 0, 1, row_of[place] + 2)
        return data if frozen is None else terms_with_frozen(data, frozen, n_rows)

    def frozen(self, alpha: FloatArray, center: FloatArray, chosen: Positions) -> FrozenParts:
        """Frozen rows of the records `chosen`; see `BoundRegression.frozen`."""
        none = np.zeros(self.n, dtype=bool)
        at_zero = none if self.inflated is None else self.inflated.at_zero
        return frozen_parts(self.parts, self.rows.row_of, at_zero, alpha, center, chosen)

    def log_lik(self, draws: Draws) -> LogLik:
        """Unweighted log-likelihood, one column per distinct record."""
        return LogLik(make=lambda: self.log_lik_blocks(draws), row_of=self.rows.row_of)

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        """Unweighted log-likelihood, (S, b) at a time: the sum over the parts."""
        parameters = {part.name: part.parameters(draws) for part in self.parts}
        size = max(1, _BLOCK_ELEMENTS // draws.n_draws)
        for start in range(0, self.rows.first.size, size):
            first = self.rows.first[start : start + size]
            own = {p.name: self._terms(p, parameters[p.name], first) for p in self.parts}
            yield self._joined(own, None if self.inflated is None else self.inflated.at_zero[first])

    def frozen_log_lik(self, frozen: FrozenTerms, draws: Draws) -> LogLik:
        """Unweighted log-likelihood of frozen records; see `BoundRegression.frozen_log_lik`."""
        assert isinstance(frozen, FrozenParts)
        parameters = {part.name: part.parameters(draws) for part in self.parts}

        def blocks() -> Iterator[FloatArray]:
            size = max(1, _BLOCK_ELEMENTS // draws.n_draws)
            for start in range(0, frozen.count.size, size):
                here = slice(start, start + size)
                own = frozen_terms(self.parts, frozen, parameters, here)
                yield self._joined(own, frozen.at_zero[here])

        row_of = np.repeat(np.arange(frozen.count.size), frozen.count)
        return LogLik(make=blocks, row_of=row_of)

    def _terms(self, part: Part, parameters: Parameters, first: Positions) -> FloatArray:
        """Log-likelihood (S, b) of the records `first` (b,) in one part; 0 of those not in it."""
        n_draws = len(next(iter(parameters.values())))
        made = np.zeros((n_draws, first.size))
        place = part.place_of[first]
        here = np.flatnonzero(place >= 0)
        if here.size:
            rows, own = np.unique(part.bound.row_of[place[here]], return_inverse=True)
            made[:, here] = part.bound.terms(parameters, rows)[:, own]
        return made

    def _joined(
        self, own: Mapping[str, FloatArray], at: npt.NDArray[np.bool_] | None
    ) -> FloatArray:
        """The sum over the parts, with a mixture where a count is 0, `at` (b,)."""
        total: FloatArray = np.sum(list(own.values()), axis=0)
        if self.inflated is None:
            return total
        zero, count = own[self.inflated.zero.name], own[self.inflated.count.part.name]
        with np.errstate(divide="ignore"):
            none = np.log(-np.expm1(zero[:, at])) + count[:, at]
        total[:, at] += np.logaddexp(zero[:, at], none) - zero[:, at] - count[:, at]
        return total

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        """What the parts monitor."""
        return {
            f"{name}_{part.name}": values
            for part in self.parts
            for name, values in part.bound.monitored(of_part(draws, part.name)).items()
        }

    def replicate(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        given: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """The outcome drawn anew, step by step; see `pyhybrid.models.base.BoundModel`."""
        table = self.table if given is None else given
        if self.completion is not None:
            table = self.completion.of(table)
        made = Replicate(
            draws={part.name: of_part(draws, part.name) for part in self.parts},
            draw=draw,
            rng=rng,
            matrices={part.name: part.bound.design.recoded(table) for part in self.parts},
            values=np.full(self.n, np.nan),
        )
        made.fill(self.root, np.arange(self.n))
        like = self.table[self.column]
        there = ~np.isnan(made.values)
        part = self.amounts[0].part
        if there.all():
            return part.bound.released(made.values, like).to_frame()
        own = part.bound.released(made.values[there], like[there])
        return with_missing(own, there, like).to_frame()


def designs_of(bound: Any) -> list[Design]:
    """The designs of a bound model, or of its parts, that were coded by a formula."""
    parts = bound.parts if hasattr(bound, "root") else ()
    designs = [getattr(each, "design", None) for each in (bound, *(part.bound for part in parts))]
    return [own for own in designs if isinstance(own, Design) and own.coding is not None]
