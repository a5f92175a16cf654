"""Scalar-weighted synthesis (SW): the exponential mechanism under a log-likelihood utility."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pyhybrid.core.checks import FloatArray, check_positive
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.fitting.session import FitSession
from pyhybrid.mechanisms.accounting.loss_account import risk_draws, risks_joined
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.conversions import bound_of_epsilon
from pyhybrid.privacy.hypothetical_records import WeightsWith, weights_with
from pyhybrid.privacy.local_account import WeightsWithoutRecords
from pyhybrid.privacy.weight_sensitivity import risk_weights_without, scalar_map
from pyhybrid.privacy.weights import risk_of, scalar_weights


@dataclass(frozen=True)
class ScalarWeighted(PseudoPosteriorMechanism):
    """One weight for all records, epsilon / (2 Delta) with Delta of the unweighted fit.

    The refit under that weight has a bound of its own, near the target and usually above it; the
    charge states the refit's.

    Parameters
    ----------
    target_epsilon : float, optional
        Wanted epsilon of one released draw by the Lipschitz bound, above 0, nats; by the other
        accountings the same weights cost less.
    target_bound : float, optional
        Wanted bound, above 0, nats, e.g. the bound of another fit, and then confidential; exactly
        one of the two. On the command line it is read from a file: ``target_bound=@FILE``.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.

    References
    ----------
    [S22] sec. 3.1; [MT07].
    """

    starts_from_unweighted: ClassVar[bool] = True
    target_epsilon: float | None = None
    target_bound: float | None = field(default=None, repr=False, metadata={"confidential": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.target_epsilon is None) == (self.target_bound is None):
            raise InvalidInput("exactly one of target_epsilon and target_bound must be given")
        for name in ("target_epsilon", "target_bound"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name)

    def weights(self, session: FitSession) -> FloatArray:
        """The same weight for all n records, from the session's unweighted fit."""
        unweighted = session.unweighted(draw_quantile=self.draw_quantile).bounds.overall
        if not np.isfinite(unweighted):
            raise SamplingError("a scalar weight needs a finite unweighted bound: it is infinite")
        return scalar_weights(
            session.bound.n,
            target_bound=self._bound(session.bound.density_above_one),
            unweighted_bound=unweighted,
        )

    def recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """The weight without each record, whose absence moves the unweighted bound."""
        fit = session.unweighted(draw_quantile=self.draw_quantile)
        bounds = fit.bounds
        target = self._bound(session.bound.density_above_one)
        if self.draw_quantile < 1:  # the overall bound is then a quantile, above the largest kept
            target *= bounds.by_record.max() / bounds.overall
        draws, risks = risk_draws(session, fit, "size"), session.once(bounds.by_record)
        return risk_weights_without(draws, risks, scalar_map(target))

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """The weight with one more record, which lowers it if its bound is the largest."""
        fit = session.unweighted(draw_quantile=self.draw_quantile)
        target, f = self._bound(session.bound.density_above_one), fit.bounds.by_record
        log_lik = possible.log_lik(fit.draws).at(fit.bounds.kept_draws)
        possible_risks = risk_of(log_lik, "size")
        if not np.isfinite(possible_risks).all():
            raise SamplingError(
                "a scalar weight needs finite bounds of possible records: some are infinite; "
                "narrow the support"
            )
        leverage, joined = risks_joined(
            risk_draws(session, fit, "size"), f, log_lik, possible_risks
        )
        return weights_with(
            lambda values: scalar_weights(
                values.size, target_bound=target, unweighted_bound=float(values.max())
            ),
            f,
            possible_risks,
            moves=lambda _: leverage,
            joined=joined,
        )

    def describe(self) -> dict[str, Any]:
        """Public settings: a target bound may be the confidential bound of another fit."""
        settings = super().describe()
        del settings["target_bound"]
        return settings

    def private_settings(self) -> dict[str, Any]:
        """The target bound."""
        return {"target_bound": self.target_bound}

    def _bound(self, density_above_one: bool) -> float:
        if self.target_bound is not None:
            return self.target_bound
        assert self.target_epsilon is not None
        return bound_of_epsilon(
            self.target_epsilon,
            relation=self.relation,
            density_above_one=density_above_one,
            safety_factor=self.safety_factor,
        )
