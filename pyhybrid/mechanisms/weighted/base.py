"""The release path that all pseudo posterior mechanisms share.

A mechanism is a weight map: it says how alpha comes from the data (`weights`); everything else,
from the fit to the charge, is here. A new mechanism is one class with one such method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count, check_draws_released
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import Draws, Provenance
from pyhybrid.fitting.replicates import joined, synthesize
from pyhybrid.fitting.reweighting import Reweighted, Reweighting, reweighted_fit
from pyhybrid.fitting.session import FitOptions, FitSession, PosteriorFit
from pyhybrid.mechanisms.accounting.charge import charge_of_fit, check_delta_of, with_evidence
from pyhybrid.mechanisms.accounting.loss_account import (
    account_of_fit,
    known_without,
    possible_account,
    refits_by_default,
    refits_without,
    risk_draws,
    risks_joined,
    stepped,
)
from pyhybrid.mechanisms.mechanism import Made, MechanismSettings
from pyhybrid.models.base import BoundModel
from pyhybrid.models.hypothetical_records import support_text
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import bound_of_epsilon
from pyhybrid.privacy.hypothetical_records import PossibleAccount, WeightsWith, weights_with
from pyhybrid.privacy.leave_one_out import Refits, with_refits
from pyhybrid.privacy.local_account import LocalAccount, WeightsWithoutRecords
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weight_sensitivity import Map, Weigh, WeightsWithout, risk_weights_without
from pyhybrid.privacy.weights import risk_of
from pyhybrid.releases.record import Confidential, Origin, ReleaseRecord, Remarks
from pyhybrid.releases.release import Release


@dataclass(frozen=True, kw_only=True, eq=False)
class Accounts:
    """What a released draw discloses about present, left out (in refits) and possible records."""

    present: LocalAccount | None = None
    refits: Refits | None = None
    possible: PossibleAccount | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Charged:
    """A fit, what a draw of it tells and what a release of it costs; nothing was drawn yet."""

    path: Reweighted
    accounts: Accounts
    charge: PrivacyCharge


@dataclass(frozen=True)
class PseudoPosteriorMechanism(MechanismSettings, ABC):
    """Base of the mechanisms that release draws from a weighted posterior [S22 eq. 3].

    Parameters
    ----------
    model : Model
        Synthesizer, e.g. ``NegativeBinomial("visits ~ 1")``.
    draw_quantile : float, default 1
        See `pyhybrid.lipschitz_bounds`; below 1 the charge has a failure probability.
    relation : {"remove", "replace"}
        Neighboring databases of the charge.
    safety_factor : float, default 1
        s in epsilon = 2 s Delta [S22 sec. 4.5]: to turn a local bound into a global one, up to
        1.05 for n > 1000 and from 1.05 to 1.10 below.
    reweighting : bool or Reweighting, default False
        Raise weights that leave slack below the overall bound; see `pyhybrid.fitting.reweighting`.
    unit : str, optional
        Column that says whose rows they are: the rows that share a value of it are one unit of
        privacy. Their terms are summed before bounds, weights and censoring, and epsilon is that
        of a whole unit. If omitted each row is a unit, and a person with k rows has k times the
        epsilon.
    accounting : {"gaussian", "range", "lipschitz"}
        What a local release costs, counted by the deviation of a record's log-likelihood over the
        posterior (an epsilon at `delta`), by its range, or by its size as in the papers
        (2 Delta); see `pyhybrid.privacy.local_account`. The charge carries all three. Where the
        Gaussian limit does not hold, or draws are dropped, the range is charged. Censored releases
        are charged their cap, whatever is given here.
    delta : float, default 1e-6
        Public, in (0, 1 / n), n the number of records or units; of Gaussian accounting.
    support : mapping, optional
        Possible records, declared and not read from the data: by column a range
        ``(lowest, highest)`` or a list of values, e.g. ``{"visits": (0, 100), "sex": ["f", "m"]}``.
        It must have the outcome; predictors that it leaves out take the rows of the data. Range,
        mu and the Lipschitz bound are then the largest over the records present and over all that
        could be added, on a grid; the charge states both.
    design : str, optional
        Column of survey weights, which average about 1: they multiply the records' terms, before
        privacy weights and censoring; see `pyhybrid.models.SurveyWeighted`.
    """

    @abstractmethod
    def weights(self, session: FitSession) -> FloatArray:
        """Record weights alpha (n,) for the session's data; may ask it for other fits."""

    def recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """How the weights change when a record leaves; None if they do not, or it is not known."""
        return None

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """The weights with each of the records of `possible` added, for `support`."""
        raise InvalidInput(
            f"support needs a mechanism whose weights are known for other records: {self.name} "
            "is none under these settings"
        )

    def bound_of(self, bound: float | None, epsilon: float | None, either_sign: bool) -> float:
        """The bound, or cap, of one draw in nats: as given, or that of an epsilon."""
        if bound is not None:
            return bound
        assert epsilon is not None
        return bound_of_epsilon(
            epsilon,
            relation=self.relation,
            density_above_one=either_sign,
            safety_factor=self.safety_factor,
        )

    def for_draws(self, n_draws: int) -> PseudoPosteriorMechanism:
        """This mechanism for a release of so many draws; its weights may depend on their number."""
        return self

    def unweighted(self, session: FitSession) -> PosteriorFit:
        """The unweighted fit at the mechanism's quantile."""
        return session.unweighted(draw_quantile=self.draw_quantile)

    def map_without(
        self,
        session: FitSession,
        risks: FloatArray,
        weigh: Weigh,
        *,
        risk: str = "size",
        before: WeightsWithout | None = None,
    ) -> WeightsWithout:
        """Weights by a map of `risks` (n,) of the unweighted fit, with and without each record."""
        draws = risk_draws(session, self.unweighted(session), risk)
        return risk_weights_without(draws, session.once(risks), weigh, before)

    def possible_terms(self, session: FitSession, possible: BoundModel) -> LogLik:
        """Log-likelihood of possible records at the kept draws of the unweighted fit."""
        fit = self.unweighted(session)
        return possible.log_lik(fit.draws).at(fit.bounds.kept_draws)

    def map_joined(
        self,
        session: FitSession,
        possible: BoundModel,
        risks: FloatArray,
        weigh: Map,
        *,
        risk: str = "size",
    ) -> WeightsWith:
        """Weights by a map of `risks` (n,) of the unweighted fit, with each possible record."""
        log_lik = self.possible_terms(session, possible)
        others, draws = risk_of(log_lik, risk), risk_draws(session, self.unweighted(session), risk)
        leverage, joined = risks_joined(draws, risks, log_lik, others)
        return weights_with(weigh, risks, others, moves=lambda _: leverage, joined=joined)

    def remarks(self, bound: BoundModel) -> Remarks:
        """What the owner should know of the data beside bounds and weights. Confidential."""
        return {}

    def _release(
        self, df: pd.DataFrame, m: int, n_draws_released: int, options: FitOptions, k: int | None
    ) -> Release:
        self._check_leave_one_out(k)
        session = options.session(self.bind(df))
        return self.release_from(
            session, n_synthetic=m, n_draws_released=n_draws_released, leave_one_out=k
        )

    def release_from(
        self,
        session: FitSession,
        *,
        n_synthetic: int,
        n_draws_released: int,
        leave_one_out: int | None = None,
    ) -> Release:
        """Release from the data and fits of `session`; see `release`.

        Each release from one session takes draws of theta that none before it took, and random
        numbers of its own: their charges add.
        """
        m, drawn, k = n_synthetic, n_draws_released, leave_one_out
        made = self.make_from(session, n_synthetic=m, n_draws_released=drawn, leave_one_out=k)
        origin = Origin(
            data=session.bound.table,
            model=self.model,
            session=session.for_report(),
            remarks=partial(self.remarks, session.bound),
        )
        return Release.of(made.record, made.tables, origin=origin)

    def make_from(
        self,
        session: FitSession,
        *,
        n_synthetic: int,
        n_draws_released: int,
        given: Sequence[pd.DataFrame] | None = None,
        fitted: Reweighted | None = None,
        leave_one_out: int | None = None,
    ) -> Made:
        """Tables and record of `release_from`, or of a step of a sequence, which is no release by
        itself.

        In m `given` tables, whose other columns were synthesized before, the model's column is
        replaced. `fitted` is what `fit` gave for this session, in another process perhaps.
        """
        session = session.by_unit(self.unit)
        mechanism = self.for_draws(n_draws_released) if fitted is None else self
        charged = mechanism.charged_from(
            session,
            n_synthetic=n_synthetic,
            n_draws_released=n_draws_released,
            fitted=fitted,
            leave_one_out=leave_one_out,
        )
        return mechanism._made(session, charged, given)

    def charged_from(
        self,
        session: FitSession,
        *,
        n_synthetic: int,
        n_draws_released: int,
        fitted: Reweighted | None = None,
        leave_one_out: int | None = None,
    ) -> Charged:
        """The fit and the charge of a release from `session`, of this mechanism's unit."""
        m = check_count(n_synthetic, "n_synthetic")
        check_draws_released(n_draws_released, m)
        if getattr(session.bound, "model", self.model) != self.model:
            raise InvalidInput("session must be over the mechanism's model: it is over another")
        self._check_leave_one_out(leave_one_out)
        self.check_records(session)
        path = self.fit(session) if fitted is None else fitted
        accounts = self._accounts(session, path, leave_one_out)
        charge = self._charge(
            session.bound, path.fit, accounts, n_synthetic=m, n_draws_released=n_draws_released
        )
        self._check_charge(session, charge)
        return Charged(path=path, accounts=accounts, charge=charge)

    def check_records(self, session: FitSession) -> None:
        """Raise if a release must not be made of so few records, whatever their outcomes."""

    def _check_charge(self, session: FitSession, charge: PrivacyCharge) -> None:
        """Raise if a release must not cost this; nothing was drawn yet."""

    def _made(
        self,
        session: FitSession,
        charged: Charged,
        given: Sequence[pd.DataFrame] | None,
    ) -> Made:
        """Synthesize what was charged, from draws of an exact posterior's own for it."""
        bound, charge, stream = session.bound, charged.charge, self.stream()
        fit, (draws, kept) = charged.path.fit, self.released_draws(charged)
        columns = synthesize(
            bound,
            draws,
            kept,
            n_synthetic=charge.n_synthetic,
            n_draws_released=charge.n_draws_released,
            streams=session.streams,
            stream=stream,
            earlier=session.releases_of(stream),
            drawn_for_this=fit.exact is not None,
            given=given,
            correct=self.correction(session, given),
            progress=session.steps_of("synthetic data"),
        )
        session.note_release(stream, charge.n_draws_released)
        tables = [bound.table] * charge.n_synthetic if given is None else given
        whole = [joined(*each) for each in zip(tables, columns, strict=True)]
        return Made(record=self.record_of(session, charged, draws.provenance), tables=whole)

    def correction(
        self, session: FitSession, given: Sequence[pd.DataFrame] | None
    ) -> Callable[[Draws, Streams], Draws] | None:
        """From the draws that are released to those that are simulated from, if they are others,
        by these draws and the predictors alone, at no cost; `given` as in `make_from`."""
        return None

    def released_draws(self, charged: Charged) -> tuple[Draws, npt.NDArray[np.bool_]]:
        """Draws that a release of what was charged takes, and which of them it may, (S,): those of
        its fit, or of an exact posterior so many made for it."""
        fit, n_draws = charged.path.fit, charged.charge.n_draws_released
        if fit.exact is None:
            return fit.draws, fit.bounds.kept_draws
        made = fit.exact.released_draws(n_draws, relation=self.relation)
        return made, np.ones(n_draws, dtype=bool)

    def record_of(
        self, session: FitSession, charged: Charged, provenance: Provenance
    ) -> ReleaseRecord:
        """What a release of what was charged says of itself."""
        bound, fit, accounts = session.bound, charged.path.fit, charged.accounts
        return ReleaseRecord(
            charge=charged.charge,
            diagnostics=fit.diagnostics,
            settings=self.describe(),
            synthesized=bound.synthesized,
            predictors=bound.predictors,
            provenance=provenance,
            requested=None if fit.exact is not None else session.settings,
            seeded=session.streams.seeded,
            confidential=Confidential(
                labels=bound.table.index,
                alpha=fit.alpha,
                lipschitz=fit.bounds.by_record,
                lipschitz_bound=fit.bounds.overall,
                entropy=session.streams.entropy,
                censored=fit.censored,
                account=accounts.present,
                refits=accounts.refits,
                possible=accounts.possible,
            ),
            exposed=session.exposed,
            fit=fit,
            reweighted=charged.path if charged.path.steps else None,
        )

    def leave_one_out(self, session: FitSession, *, k: int = 5) -> Refits:
        """Refits without each of the `k` records, or units, that a release discloses most about.

        Evidence by itself, nothing is released; ``release(..., leave_one_out=k)`` also charges what
        it finds. Confidential.

        Raises
        ------
        InvalidInput
            For a censored mechanism, whose cap is charged.
        """
        session = session.by_unit(self.unit)
        self._check_leave_one_out(check_count(k, "k"))
        refits = self._accounts(session, self.fit(session), k).refits
        assert refits is not None
        return refits

    def is_strict(self, bound: BoundModel) -> bool:
        """True if a release of `bound` would be strict, as far as can be told before a fit."""
        return False

    def fit(self, session: FitSession) -> Reweighted:
        """The weighted fit that draws are released from (`.fit`), and how it was reached."""
        session = session.by_unit(self.unit)
        if self.accounting == "gaussian":  # before anything is fitted
            check_delta_of(self.delta, session.n_units)
        alpha = self.weights(session)
        label = "unweighted fit" if (alpha == 1).all() else f"{self.name} fit"
        near = None
        if self.starts_from_unweighted and not (alpha == 1).all():
            near = session.unweighted(draw_quantile=self.draw_quantile).draws.warm_start()
        start = session.fit(alpha, label=label, draw_quantile=self.draw_quantile, warm_start=near)
        if self.reweighting is False:
            return Reweighted(start=start, fit=start, steps=())
        plan = Reweighting() if self.reweighting is True else self.reweighting
        return reweighted_fit(session, start, plan)

    def _charge(
        self, bound: BoundModel, fit: PosteriorFit, accounts: Accounts, **released: int
    ) -> PrivacyCharge:
        """Cost of releasing from `fit`, local and asymptotic unless a mechanism is stricter;
        `released` are n_synthetic and n_draws_released."""
        assert accounts.present is not None
        charge = charge_of_fit(
            self.name,
            fit,
            bound,
            account=accounts.present,
            accounting=self.accounting,
            delta=self.delta,
            relation=self.relation,
            unit=self.unit,
            possible=accounts.possible,
            support=None if self.support is None else support_text(self.support),
            safety_factor=self.safety_factor,
            **released,
        )
        return charge if accounts.refits is None else with_evidence(charge, accounts.refits)

    def charge_of(
        self, session: FitSession, path: Reweighted, *, n_synthetic: int, n_draws_released: int
    ) -> PrivacyCharge:
        """Cost of a release from the fit `path` of `session`."""
        released = {"n_synthetic": n_synthetic, "n_draws_released": n_draws_released}
        return self._charge(
            session.bound, path.fit, self._accounts(session, path, None), **released
        )

    def _accounts(self, session: FitSession, path: Reweighted, k: int | None) -> Accounts:
        """What a released draw tells, with k refits, or as many as are made by default."""
        without = self._without(session, path)
        account, refits = account_of_fit(session, path.fit, without), None
        known = known_without(session, path.fit, without)
        wanted = refits_by_default(session, account, known) if k is None else k
        if wanted:
            refits = refits_without(
                session,
                path.fit,
                account,
                k=wanted,
                without=known,
                asked=k is not None,
            )
            account = with_refits(account, refits)
        return Accounts(present=account, refits=refits, possible=self._possible(session, path))

    def _possible(self, session: FitSession, path: Reweighted) -> PossibleAccount | None:
        """What a released draw would disclose about records of the declared support."""
        if self.support is None:
            return None
        if self.reweighting is not False:
            raise InvalidInput(
                "support needs weights that are known for other records: re-weighted ones are not; "
                "give no reweighting, or no support"
            )
        return possible_account(session, path.fit, self.support, self.joined)

    def _without(self, session: FitSession, path: Reweighted) -> WeightsWithoutRecords | None:
        """How the weights of the released fit change when a record leaves."""
        without = self.recomputed(session)
        return without if self.reweighting is False else stepped(session, path, without)

    def _check_leave_one_out(self, k: int | None) -> int:
        """k, 0 if it is not given, checked before anything is fitted."""
        return 0 if k is None else check_count(k, "leave_one_out", at_least=0)

    def final_recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """How the final weights change when a record leaves, re-weighted ones, too."""
        if self.reweighting is False:
            return self.recomputed(session)
        return self._without(session, self.fit(session))

    def final_weights(self, session: FitSession) -> FloatArray:
        """The weights after re-weighting, if this mechanism re-weights, shape (n,)."""
        return self.weights(session) if self.reweighting is False else self.fit(session).fit.alpha
