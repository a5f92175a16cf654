"""Count-weighted synthesis (CW): weights fall as a record stands alone among the values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_choice, check_finite, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.session import FitSession
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.count_risk import count_without, pairwise_risk, radius_risk
from pyhybrid.privacy.hypothetical_records import WeightsWith, weights_with
from pyhybrid.privacy.local_account import WeightsWithoutRecords
from pyhybrid.privacy.weight_sensitivity import weights_without
from pyhybrid.privacy.weights import count_weights


@dataclass(frozen=True)
class CountWeighted(PseudoPosteriorMechanism):
    """Weights from the share of records outside a ball around each sensitive value.

    Risk is counted among the records that have a value; those whose value is missing are alike,
    and at no risk. With a `unit` every record gets the lowest weight among the records of its unit.

    Parameters
    ----------
    scale, shift : float, default 1 and 0
        c and g of clip(c (1 - risk) + g, 0, 1).
    radius : float, default 0.2
        Of the ball, above 0: a share of the value or in its unit; see `pyhybrid.radius_risk`.
    kind : {"relative", "absolute"}
    pattern : tuple of str, default ()
        Columns of the data that an intruder knows: risk is counted among records that share them.
    pairwise : bool, default False
        Use `pyhybrid.arrays.pairwise_risk` in place of the radius risk.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.

    References
    ----------
    [H22]; [V25] alg. 3.
    """

    scale: float = 1.0
    shift: float = 0.0
    radius: float = 0.2
    kind: str = "relative"
    pattern: tuple[str, ...] = ()
    pairwise: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_finite(self.scale, "scale")
        check_finite(self.shift, "shift")
        check_positive(self.radius, "radius")
        check_choice(self.kind, "kind", ("relative", "absolute"))
        if isinstance(self.pattern, str):
            raise InvalidInput(f"pattern must be a tuple of columns: found {self.pattern!r}")

    def weights(self, session: FitSession) -> FloatArray:
        """Count weights of the sensitive values, shape (n,); needs no fit."""
        return self._weights_of(session, np.arange(session.bound.n))

    def _weights_of(self, session: FitSession, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Weights of some rows, counted among themselves."""
        measure, known = pairwise_risk if self.pairwise else radius_risk, self._known(session)
        risk = measure(
            np.nan_to_num(session.bound.outcome[rows]),
            radius=self.radius,
            kind=self.kind,
            pattern=None if known is None else known[rows],
        )
        alpha = count_weights(risk, scale=self.scale, shift=self.shift)
        return alpha if session.units is None else session.units.at(rows).lowest(alpha)

    def recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """Counts without each record, or unit."""
        if self.pairwise or session.units is not None:
            of = session.owner

            def weigh(kept: npt.NDArray[np.intp]) -> FloatArray:
                rows = np.flatnonzero(np.isin(of, kept))
                return self._weights_of(session, rows)[np.unique(of[rows], return_index=True)[1]]

            return weights_without(weigh, int(of.max()) + 1)
        return count_without(
            np.nan_to_num(session.bound.outcome),
            radius=self.radius,
            kind=self.kind,
            pattern=self._known(session),
            scale=self.scale,
            shift=self.shift,
        )

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """Counts with one more record; none for pairwise risk, patterns and missing values."""
        if self.pairwise or self._known(session) is not None:
            return super().joined(session, possible)
        return weights_with(
            lambda y: count_weights(
                radius_risk(y, radius=self.radius, kind=self.kind),
                scale=self.scale,
                shift=self.shift,
            ),
            session.bound.outcome,
            possible.outcome,
            moves=lambda y: 1 + np.abs(y - np.median(session.bound.outcome)),
        )

    def reads(self) -> dict[str, tuple[str, ...]]:
        """The pattern, and the unit if there is one."""
        return {**super().reads(), "pattern": self.pattern}

    def _known(self, session: FitSession) -> npt.NDArray[np.object_] | None:
        missing = np.isnan(session.bound.outcome)
        if not self.pattern and not missing.any():
            return None
        table = session.bound.table
        for column in self.pattern:
            if column not in table.columns:
                raise InvalidInput(f"pattern column {column!r} must be in the data: it is not")
            if column in session.bound.synthesized:
                raise InvalidInput(f"pattern column {column!r} must not be synthesized: it is")
        known: npt.NDArray[np.object_] = table[list(self.pattern)].to_numpy(dtype=object)
        return np.column_stack([known, missing.astype(object)]) if missing.any() else known
