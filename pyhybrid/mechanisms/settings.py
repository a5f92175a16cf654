"""What a mechanism says of itself: its public settings, and the names of its random streams."""

from __future__ import annotations

import hashlib
import json
from dataclasses import KW_ONLY, asdict, dataclass, fields
from typing import Any, ClassVar

from pyhybrid.core.checks import check_choice, check_finite, check_fraction
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.measures.survey import SurveyDesign
from pyhybrid.models.base import Model
from pyhybrid.models.composite.survey_weighted import SurveyWeighted, weights_told
from pyhybrid.models.hypothetical_records import Support, check_support
from pyhybrid.privacy.conversions import RELATIONS, check_delta
from pyhybrid.privacy.local_account import ACCOUNTINGS

__all__ = ["MechanismSettings"]


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
