"""What every mechanism answers, whether or not it fits a model.

What a mechanism says of itself: its public settings, and the names of its random streams.

From a fit and its charge to synthetic tables and the record of what was done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import check_choice, check_count, check_finite, check_fraction
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import ConvergenceRule, Draws, Engine, SamplerSettings
from pyhybrid.fitting.replicates import joined, synthesize
from pyhybrid.fitting.reweighting import Reweighted, Reweighting
from pyhybrid.fitting.session import FitProgress, FitSession
from pyhybrid.measures.survey import SurveyDesign
from pyhybrid.models.base import Model
from pyhybrid.models.composite.survey_weighted import SurveyWeighted, weights_told
from pyhybrid.models.formula.row_rules import RowRule
from pyhybrid.models.hypothetical_records import Support, check_support
from pyhybrid.privacy.case_deletion import Refits
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.epsilon import RELATIONS
from pyhybrid.privacy.gaussian_curve import check_delta
from pyhybrid.privacy.hypothetical_records import PossibleAccount
from pyhybrid.privacy.local_account import ACCOUNTINGS, LocalAccount
from pyhybrid.releases.data_fingerprint import data_mark
from pyhybrid.releases.record import Confidential, ReleaseRecord
from pyhybrid.releases.release import Release

__all__ = [
    "Made",
    "Mechanism",
    "MechanismSettings",
    "check_no_fit",
    "check_unit_of_noise",
    "made_of",
]


class Mechanism(Protocol):
    """One interface, one release path: a row of `pyhybrid.mechanisms`, or a sequence of them."""

    @property
    def name(self) -> str:
        """Name of the mechanism."""

    @property
    def synthesizes(self) -> tuple[str, ...]:
        """Columns that a release replaces, in the order of synthesis."""

    @property
    def relation(self) -> str:
        """Neighboring databases of the charge."""

    @property
    def delta_of_charge(self) -> float | None:
        """Delta that a local release is counted at; None if it is not counted at one."""

    @property
    def undecided(self) -> dict[str, str]:
        """Reason by column why what a model reads needs the owner's decision to be published."""

    def describe(self) -> dict[str, Any]:
        """Public settings."""

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
        progress: FitProgress | None = None,
        leave_one_out: int | None = None,
    ) -> Release:
        """Synthetic data with their charge; see `PseudoPosteriorMechanism.release`.

        Raises
        ------
        InvalidInput
            For a setting that the mechanism has no use for.
        """


def check_no_fit(
    name: str,
    *,
    engine: str | Engine,
    settings: SamplerSettings | None,
    rule: ConvergenceRule | None,
    on_not_converged: str,
    leave_one_out: int | None,
    seed: int | None,
) -> None:
    """Refuse settings of chains, and a seed, given to a mechanism with noise in place of a fit."""
    if (engine, settings, rule, on_not_converged, leave_one_out) != (
        "auto",
        None,
        None,
        "raise",
        None,
    ):
        raise InvalidInput(
            f"{name} fits no model: give no engine, settings, rule, on_not_converged or "
            "leave_one_out (--engine, --chains, --warmup, --draws, --adapt-delta, "
            "--on-not-converged, --leave-one-out)"
        )
    if seed is not None:
        raise InvalidInput(
            f"seed must not be given to {name}: noise from OpenDP cannot be seeded, as "
            "whoever could reproduce it could subtract it"
        )


def check_unit_of_noise(unit: str | None, rows_per_unit: int | None) -> None:
    """Refuse a unit of privacy without the rows that it can have, which scale the noise."""
    if (unit is None) != (rows_per_unit is None):
        raise InvalidInput(
            "unit and rows_per_unit must be given together: noise for a unit is scaled by the "
            "rows that it can have at most, which are never counted in the data"
        )
    if rows_per_unit is not None:
        check_count(rows_per_unit, "rows_per_unit")


@dataclass(frozen=True)
class MechanismSettings:
    """Settings of all mechanisms; see
    `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`."""

    model: Model
    starts_from_unweighted: ClassVar[bool] = False
    """True if `weights` asks for the unweighted fit: the weighted one starts from where it is."""

    _: KW_ONLY
    draw_quantile: float = 1.0
    relation: str = "remove"
    safety_factor: float = 1.0
    reweighting: bool | Reweighting = False
    unit: str | None = None
    accounting: str = "gaussian"
    delta: float = 1e-6
    support: Support | None = None
    design: SurveyDesign | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.model, "bind") or isinstance(self.model, type):
            raise InvalidInput(
                "model must be a pyhybrid model, such as ph.Poisson('y ~ x'): found "
                f"{getattr(self.model, '__name__', type(self.model).__name__)}"
            )
        self._take_design()
        check_fraction(self.draw_quantile, "draw_quantile")
        check_choice(self.relation, "relation", RELATIONS)
        check_choice(self.accounting, "accounting", ACCOUNTINGS)
        check_delta(self.delta)
        if check_finite(self.safety_factor, "safety_factor") < 1:
            raise InvalidInput(f"safety_factor must be >= 1: found {self.safety_factor:g}")
        if not isinstance(self.reweighting, (bool, Reweighting)):
            raise InvalidInput(
                f"reweighting must be True, False or a Reweighting: found {self.reweighting!r}"
            )

        if self.unit is not None and not isinstance(self.unit, str):
            raise InvalidInput(f"unit must be the name of a column: found {self.unit!r}")
        check_support(self.support)
        if self.support is not None and self.design is not None:
            raise InvalidInput(
                "support= and design= do not go together: what a possible record's survey weight "
                "would be is not declared"
            )

    def _take_design(self) -> None:
        """The model under survey weights, and the survey's unit where no other one is given.

        A model that has survey weights already brings its design: the unit is that of the survey,
        whichever of the two was given.
        """
        if isinstance(self.model, SurveyWeighted):
            if self.design not in (None, self.model.design):
                raise InvalidInput(
                    "design must be the one that the model has its survey weights from: found "
                    "another; give it once, to the mechanism or to SurveyWeighted"
                )
            object.__setattr__(self, "design", self.model.design)
        elif self.design is not None:
            object.__setattr__(self, "model", SurveyWeighted(self.model, self.design))
        if self.design is not None and self.unit is None:
            object.__setattr__(self, "unit", self.design.unit)

    def private_settings(self) -> dict[str, Any]:
        """Settings that are confidential: not published, but part of what names the streams."""
        return {}

    @property
    def synthesizes(self) -> tuple[str, ...]:
        """Columns that a release replaces, by what the model says of itself, before it is bound."""
        said = self.model.describe()
        return (said.get("outcome") or str(said["formula"]).partition("~")[0].strip().strip("`"),)

    def reads(self) -> dict[str, tuple[str, ...]]:
        """Columns of the data that the mechanism itself reads beside its model, by what they are
        to it."""
        return {} if self.unit is None else {"unit": (self.unit,)}

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return type(self).__name__

    @property
    def delta_of_charge(self) -> float | None:
        """Delta that a local release is counted at; None if it is not counted at one."""
        return self.delta if self.accounting == "gaussian" else None

    @property
    def undecided(self) -> dict[str, str]:
        """Reason by column why what a model reads needs the owner's decision to be published."""
        return weights_told(self.model)

    def describe(self) -> dict[str, Any]:
        """Public settings of the mechanism and its model."""
        own = {
            f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("model", "design")
        }
        plan = self.reweighting
        if self.support is None:  # names of random streams stay what they were
            del own["support"]
        own["reweighting"] = asdict(plan) if isinstance(plan, Reweighting) else plan
        if isinstance(plan, Reweighting) and plan.risk == "size":  # ... here, too
            del own["reweighting"]["risk"]
        model = self.model.describe()
        if self.unit is not None and "unit" in model:  # a model's own is that of its outcome
            own["unit_of_privacy"] = own.pop("unit")
        return {"mechanism": self.name, **own, **model}

    def stream(self) -> str:
        """Name of this mechanism's random streams: unlike settings never share one."""
        settings = [self.describe(), self.private_settings()]
        text = json.dumps(settings, sort_keys=True)
        return f"synthesis/{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Made:
    """Tables, and what a mechanism says of the column that it made of them. No release yet."""

    record: ReleaseRecord
    tables: list[pd.DataFrame]


def made_of(
    session: FitSession,
    path: Reweighted,
    *,
    charge: PrivacyCharge,
    account: LocalAccount | None,
    refits: Refits | None,
    possible: PossibleAccount | None,
    settings: Mapping[str, Any],
    draws: Draws,
    kept: npt.NDArray[np.bool_],
    stream: str,
    given: Sequence[pd.DataFrame] | None,
    rules: Sequence[RowRule] = (),
) -> Made:
    """Synthesize what `charge` was made for from the `draws` that are `kept`, shape (S,).

    `stream` names the random numbers; `given` and `rules` are those of
    `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism.make_from`.
    """
    bound, fit, report = session.bound, path.fit, session.progress
    made = synthesize(
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
        rules=rules,
        progress=None if report is None else lambda a, b: report("synthetic data", a, b),
    )
    session.note_release(stream, charge.n_draws_released)
    tables = [bound.table] * charge.n_synthetic if given is None else given
    record = ReleaseRecord(
        charge=charge,
        diagnostics=fit.diagnostics,
        settings=settings,
        synthesized=bound.synthesized,
        predictors=bound.predictors,
        provenance=draws.provenance,
        requested=None if fit.exact is not None else session.settings,
        seeded=session.streams.seeded,
        confidential=Confidential(
            labels=bound.table.index,
            alpha=fit.alpha,
            lipschitz=fit.bounds.by_record,
            lipschitz_bound=fit.bounds.overall,
            entropy=session.streams.entropy,
            censored=fit.censored,
            data=data_mark(bound.table) if given is None else None,
            account=account,
            refits=refits,
            possible=possible,
        ),
        exposed=session.exposed,
        fit=fit,
        reweighted=path if path.steps else None,
    )
    whole = [joined(*each) for each in zip(tables, made, strict=True)]
    return Made(record=record, tables=whole)
