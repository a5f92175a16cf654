"""The release path that all pseudo posterior mechanisms share.

A mechanism is a weight map: it says how alpha comes from the data (`weights`); everything else,
from the fit to the charge, is here. A new mechanism is one class with one such method.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, fields, replace
from typing import Any, ClassVar

import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_draws_released,
    check_finite,
    check_fraction,
)
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.engines import Provenance
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.fitting.replicates import choose_draws, joined, synthesize
from pyhybrid.fitting.reweighting import Reweighted, Reweighting, reweighted_alike, reweighted_fit
from pyhybrid.fitting.session import FitOptions, FitSession, PosteriorFit
from pyhybrid.mechanisms.accounting import (
    check_delta_of,
    facts_of_fit,
    facts_of_loss,
    local_loss,
    sole_informants_of,
)
from pyhybrid.mechanisms.mechanism import REFITS, Made, Mechanism
from pyhybrid.models.base import BoundModel, Model, with_survey_weights
from pyhybrid.models.columns.form import read_in_forms
from pyhybrid.models.formula.terms import sides_of
from pyhybrid.models.formula.values import with_columns
from pyhybrid.privacy.charge import Account, Gaussian, Lipschitz, PrivacyCharge, Range
from pyhybrid.privacy.conversions import (
    ASYMPTOTIC_LOCAL,
    RELATIONS,
    at_least,
    bound_of_epsilon,
    check_delta,
    shown,
)
from pyhybrid.privacy.refits import ACCOUNTINGS, LocalLoss
from pyhybrid.releases.record import Confidential, Origin, ReleaseRecord
from pyhybrid.releases.release import Release


@dataclass(frozen=True)
class PseudoPosteriorMechanism(Mechanism, ABC):
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
        s in epsilon = 2 s Delta, to turn a local bound into a global one: up to 1.05 for n > 1000,
        to 1.10 below [S22 sec. 4.5]. At n = 100 study A has bounds 1.14 times as large.
    reweighting : bool or Reweighting, default False
        Raise weights that leave slack below the overall bound; see `pyhybrid.fitting.reweighting`.
    unit : str, optional
        Column that says whose rows they are: the rows that share a value of it are one unit of
        privacy. Their terms are summed before bounds, weights and censoring, and epsilon is that
        of a whole unit. If omitted each row is a unit, and a person with k rows has k times the
        epsilon.
    accounting : {"lipschitz", "range", "gaussian"}
        What a local release costs, counted by the size of what changes when a record leaves, as in
        the papers (2 Delta), by its range, or by its deviation (mu, and an epsilon at `delta`); see
        `pyhybrid.privacy.refits`. The charge carries all three. Gaussian accounting needs all
        draws. Censored releases are charged their cap, whatever is given here.
    delta : float, default 1e-6
        Public, in (0, 1 / n), n the number of records or units; of Gaussian accounting.
    design : str, optional
        Column of survey weights, which average about 1: they multiply the records' terms, before
        privacy weights and censoring; see `pyhybrid.models.base.SurveyWeights`.
    """

    model: Model
    starts_from_unweighted: ClassVar[bool] = False
    """True if `weights` asks for the unweighted fit: the weighted one starts from where it is."""

    _: KW_ONLY
    draw_quantile: float = 1.0
    relation: str = "remove"
    safety_factor: float = 1.0
    reweighting: bool | Reweighting = False
    unit: str | None = None
    accounting: str = "lipschitz"
    delta: float = 1e-6
    design: str | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.model, "bind") or isinstance(self.model, type):
            raise InvalidInput(
                "model must be a pyhybrid model, such as ph.Poisson('y ~ x'): found "
                f"{getattr(self.model, '__name__', type(self.model).__name__)}"
            )
        check_fraction(self.draw_quantile, "draw_quantile")
        check_choice(self.relation, "relation", RELATIONS)
        check_choice(self.accounting, "accounting", ACCOUNTINGS)
        check_delta(self.delta)
        if check_finite(self.safety_factor, "safety_factor") < 1:
            raise InvalidInput(f"safety_factor must be >= 1: found {self.safety_factor:g}")
        if self.accounting == "gaussian" and self.draw_quantile < 1:
            raise InvalidInput(
                "gaussian accounting needs all draws: leave draw_quantile at 1, or take another "
                "accounting"
            )
        if not isinstance(self.reweighting, (bool, Reweighting)):
            raise InvalidInput(
                f"reweighting must be True, False or a Reweighting: found {self.reweighting!r}"
            )

        for name in ("unit", "design"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InvalidInput(f"{name} must be the name of a column: found {value!r}")

    def private_settings(self) -> dict[str, Any]:
        """Settings that are confidential: not published, but part of what names the streams."""
        hidden = (f.name for f in fields(self) if f.metadata.get("confidential"))
        return {name: getattr(self, name) for name in hidden}

    @property
    def synthesizes(self) -> tuple[str, ...]:
        """Columns that a release replaces, by what the model says of itself, before it is bound."""
        described = self.model.describe()
        return (described.get("outcome") or sides_of(str(described["formula"]))[0],)

    def bind(self, df: pd.DataFrame) -> BoundModel:
        """The model joined to `df`, whose outcome is read in its declared form, if it has one."""
        return self._weighted(self.model.bind(read_in_forms(df, self.forms(df))))

    def _weighted(self, bound: BoundModel) -> BoundModel:
        return bound if self.design is None else with_survey_weights(bound, self.design)

    def reads(self) -> dict[str, tuple[str, ...]]:
        """Columns that the mechanism itself reads beside its model, by what they are to it."""
        return {} if self.unit is None else {"unit": (self.unit,)}

    @property
    def delta_of_charge(self) -> float | None:
        return self.delta if self.accounting == "gaussian" else None

    @property
    def undecided(self) -> dict[str, str]:
        reason = "its survey weights may disclose the outcome: synthesize them together with it, "
        return {} if self.design is None else {self.design: f"{reason}or leave them out"}

    def describe(self) -> dict[str, Any]:
        settings = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("model", "design")
            and not f.metadata.get("confidential")
            and not ("shown" in f.metadata and getattr(self, f.name) == f.default)
        }
        plan = self.reweighting
        settings["reweighting"] = asdict(plan) if isinstance(plan, Reweighting) else plan
        weights = {} if self.design is None else {"design": self.design}
        model = {**self.model.describe(), **weights}
        if self.unit is not None and "unit" in model:  # a model's own is that of its outcome
            settings["unit_of_privacy"] = settings.pop("unit")
        return {"mechanism": self.name, **settings, **model}

    def stream(self) -> str:
        """Name of this mechanism's random streams: unlike settings never share one."""
        settings = [self.describe(), self.private_settings()]
        text = json.dumps(settings, sort_keys=True)
        return f"synthesis/{hashlib.sha256(text.encode()).hexdigest()}"

    @abstractmethod
    def weights(self, session: FitSession) -> FloatArray:
        """Record weights alpha (n,) for the session's data; may ask it for other fits."""

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

    def unweighted(self, session: FitSession) -> PosteriorFit:
        """The unweighted fit at the mechanism's quantile."""
        return session.unweighted(draw_quantile=self.draw_quantile)

    searched: ClassVar[tuple[str, ...]] = ()
    """Settings that lower epsilon, of which `meet_epsilon` searches for the first, or another."""

    def limits(self, session: FitSession, searched: str) -> tuple[float, float]:
        """Smallest and largest value of the setting that is searched for."""
        return -1.0 if searched == "shift" else 0.0, 1.0

    def _release(
        self, df: pd.DataFrame, m: int, n_draws_released: int, options: FitOptions, refits: int
    ) -> Release:
        session = options.session(self.bind(df))
        return self.release_from(
            session, n_synthetic=m, n_draws_released=n_draws_released, refits=refits
        )

    def release_from(
        self, session: FitSession, *, n_synthetic: int, n_draws_released: int, refits: int = REFITS
    ) -> Release:
        """Release from the data and fits of `session`; see `release`. Each takes draws of theta
        that none before it took, and random numbers of its own: their charges add."""
        m = check_count(n_synthetic, "n_synthetic")
        check_draws_released(n_draws_released, m)
        made = self.make(session, m, n_draws_released, refits)
        return Release.of(made.record, made.tables, origin=Origin(data=session.bound.table))

    def make(
        self,
        session: FitSession,
        m: int,
        n_draws_released: int,
        refits: int,
        given: Sequence[pd.DataFrame] | None = None,
    ) -> Made:
        """m tables and their record: a release, or a step of a sequence, where in the `given`
        tables columns before this one were synthesized."""
        session = self.opened(session)
        self.refuse(session, refits)
        path = self.fit(session)
        loss = self.loss(session, path, refits)
        charge = self.charge(session, path, loss, m, n_draws_released)
        chosen = choose_draws(
            session, path.fit, self.stream(), n_draws_released, relation=self.relation
        )
        columns = synthesize(session, chosen, m, given)
        table, tables = session.bound.table, []
        for before, column in zip(given or [table] * m, columns, strict=True):
            whole, forms = joined(before, column), self.forms(table).items()
            tables.append(
                with_columns(whole, {name: form.cast(whole[name]) for name, form in forms})
            )
        record = self._record(session, path, charge, loss, chosen.draws.provenance)
        return Made(record=record, tables=tables)

    def opened(self, session: FitSession) -> FitSession:
        """The session by the mechanism's units, over records whose outcome is read in its form."""
        survey = session.bound.survey
        weighted_by = None if survey is None else survey.column
        if session.bound.model != self.model or weighted_by != self.design:
            raise InvalidInput(
                "session must be over the mechanism's model: it is over another, or other weights"
            )
        table = session.bound.table
        read = read_in_forms(table, self.forms(table))
        if read is not table:
            session = replace(session, bound=self._weighted(self.model.bind(read)))
        return session.by_unit(self.unit)

    def refuse(self, session: FitSession, refits: int) -> None:
        """Refuse, before any outcome is read, a record or unit that nearly alone informs a
        coefficient: no draws tell what it costs. Without refits the charge says so instead."""
        check_count(refits, "refits", at_least=0)
        if refits % 2:
            raise InvalidInput(f"refits must be even, half of them of each kind: found {refits}")
        for whose, column, share in sole_informants_of(session) if refits else ():
            raise InvalidInput(
                f"{whose} nearly alone informs a coefficient ({column}: a share of {share:.2f} of "
                f"its information, the most is .30), so that no refit tells what it costs: drop or "
                f"merge {column}, leave the record out, or take "
                "ClippedScores"
            )

    def fit(self, session: FitSession, like: Reweighted | None = None) -> Reweighted:
        """The weighted fit that draws are released from (`.fit`), and how it was reached;
        re-weighted by the constants of the path `like`, if that is given."""
        session = session.by_unit(self.unit)
        if self.accounting == "gaussian":  # before anything is fitted
            check_delta_of(self.delta, session.n_units)
        alpha = self.weights(session)
        plain = bool((alpha[session.present] == 1).all())
        near = None
        if self.starts_from_unweighted and not plain:
            near = self.unweighted(session).draws.warm_start()
        start = session.fit(
            alpha,
            label="unweighted fit" if plain else f"{self.name} fit",
            draw_quantile=self.draw_quantile,
            warm_start=near,
        )
        if self.reweighting is False:
            return Reweighted(start=start, fit=start)
        if like is not None:
            return Reweighted(start=start, fit=reweighted_alike(session, start, like))
        plan = Reweighting() if self.reweighting is True else self.reweighting
        return reweighted_fit(session, start, plan)

    def loss(self, session: FitSession, path: Reweighted, refits: int) -> LocalLoss | None:
        """What a released draw tells, by so many refits without a record or unit, all of it
        computed anew; None where the charge does not depend on it. Confidential."""
        return local_loss(
            session,
            path.fit,
            lambda other: self.fit(other, like=path).fit,
            refits=refits,
            delta=self.delta,
        )

    def charge(
        self, session: FitSession, path: Reweighted, loss: LocalLoss | None, m: int, n_draws: int
    ) -> PrivacyCharge:
        """Cost of releasing from `path`: local and asymptotic, by each accounting whose numbers are
        finite; SamplingError if the one asked for is not."""
        assert loss is not None
        fit, bound = path.fit, session.bound
        if not math.isfinite(fit.bounds.overall):
            raise SamplingError(
                "the Lipschitz bound must be finite: a record with a positive weight has a "
                "likelihood of 0 under some draw; use a mechanism that gives such records weight 0"
            )
        delta = self.delta if self.accounting == "gaussian" else 0.0
        check_delta_of(delta, session.n_units)

        def safe(number: float) -> float:
            return at_least(shown(self.safety_factor) * shown(number))

        accounts: dict[str, Account] = {}
        if math.isfinite(loss.change):
            accounts["lipschitz"] = Lipschitz(
                bound=safe(fit.bounds.overall),
                change=safe(loss.change),
                either_sign=bound.density_above_one,
            )
        if math.isfinite(loss.loss_range):
            accounts["range"] = Range(loss_range=safe(loss.loss_range))
        if math.isfinite(loss.mu):
            accounts["gaussian"] = Gaussian(mu=safe(loss.mu))
        if self.accounting not in accounts:
            raise SamplingError(
                "what leaves with a record must be finite at every draw: it is not in a refit "
                "without one; use a mechanism that gives such records weight 0"
            )
        return PrivacyCharge(
            mechanism=self.name,
            kind=ASYMPTOTIC_LOCAL,
            relation=self.relation,
            accounts=accounts,
            accounting=self.accounting,
            delta=delta,
            bound=fit.bounds.overall,
            n_draws=int(fit.bounds.kept_draws.size),
            draw_quantile=fit.bounds.draw_quantile,
            safety_factor=self.safety_factor,
            density_above_one=bound.density_above_one,
            converged=fit.converged,
            unit=session.unit,
            facts={**facts_of_fit(fit, bound), **facts_of_loss(fit, session, loss)},
            n_synthetic=m,
            n_draws_released=n_draws,
        )

    def _record(
        self,
        session: FitSession,
        path: Reweighted,
        charge: PrivacyCharge,
        loss: LocalLoss | None,
        provenance: Provenance,
    ) -> ReleaseRecord:
        """What a release says of itself."""
        bound, fit = session.bound, path.fit
        return ReleaseRecord(
            charge=charge,
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
                loss=loss,
            ),
            exposed={**exposed_columns(bound.table, bound.synthesized), **self.undecided},
            fit=fit,
            reweighted=path if path.steps else None,
        )

    def why_local(self, bound: BoundModel) -> str | None:
        """What a strict release of `bound` lacks, as known before a fit; None if nothing."""
        return "a mechanism that holds for every database"

    def final_weights(self, session: FitSession) -> FloatArray:
        """The weights after re-weighting, if this mechanism re-weights, shape (n,)."""
        return self.weights(session) if self.reweighting is False else self.fit(session).fit.alpha
