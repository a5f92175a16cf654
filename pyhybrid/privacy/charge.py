"""Privacy charges: what one release costs, and all that is needed to read it.

A charge is created by the mechanism that made a release. Its fields are described once, by the
class: those that are not shown (``repr=False``) are confidential, and left out of `public`.

References
----------
[S22] sec. 2 and 4.5, app. A.3; [C25] sec. 3.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

from pyhybrid.core.checks import (
    check_choice,
    check_count,
    check_finite,
    check_fraction,
    check_nonnegative,
    check_positive,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import html_rows
from pyhybrid.privacy.conversions import (
    KINDS,
    RELATIONS,
    STRICT,
    check_delta,
    epsilon_of_bound,
    epsilon_of_mu,
    epsilon_of_range,
    epsilon_of_zcdp,
    epsilon_text,
    mu_of_release,
    rho_of_epsilon,
    round_up,
)
from pyhybrid.privacy.local_account import ACCOUNTINGS

ZCDP = "zcdp"
"""Accounting of strict charges of Gaussian noise."""
_COUNTED = {"gaussian": "mu", "range": "loss_range", "lipschitz": "bound", ZCDP: "rho"}
"""By accounting, the field that epsilon is counted from."""
_ACCOUNT_FIELDS = ("accounting", "delta", "loss_range", "mu", "mu_standard_error")
_SUPPORT_FIELDS = ("support", "bound_present", "loss_range_present", "mu_present")


@dataclass(frozen=True, kw_only=True)
class PrivacyCharge:
    """Privacy cost of one release: all `n_synthetic` data sets together.

    Attributes
    ----------
    mechanism : str
        Name of the mechanism, e.g. ``"LipschitzWeighted"``.
    epsilon : float
        For all released data sets, in nats, rounded up, by the chosen `accounting`.
    kind : {"asymptotic local", "strict"}
        Asymptotic local: holds for this database, estimated from posterior draws, contracting to
        a global guarantee as n grows. Strict: holds for every database of the stated relation.
    relation : {"remove", "replace"}
        Neighboring databases: one record left out, or one record replaced.
    n_synthetic, n_draws_released : int
        Data sets released, 0 for an answer that is no data set (a noisy mean); posterior draws or
        noisy histograms they were simulated from (the cost grows with them).
    bound : float
        Overall Lipschitz bound of one draw, nats; of noise calibrated to epsilon, epsilon / 2.
        Confidential; left out of `public`.
    n_draws : int or None
        Posterior draws S from which the bound was computed; None for a strict charge whose bound
        was stated and not computed.
    draw_quantile : float
        q of `lipschitz_bounds`; 1 unless draws were dropped.
    cap : float or None
        M of a censored or truncated likelihood, nats.
    safety_factor : float
        s in epsilon = 2 s Delta.
    density_above_one : bool
        True if log densities above 0 can occur (continuous outcome).
    converged : bool
        False if the user insisted on a release although the chains had not converged.
    accounting : {"lipschitz", "range", "gaussian", "zcdp"}
        How epsilon was counted; see `pyhybrid.privacy.local_account`. A strict charge is counted
        by the bound that was given, or, of Gaussian noise, by zCDP or by its mu.
    delta : float
        Of (epsilon, delta), a public number; 0 unless `accounting` is "gaussian" or "zcdp".
    loss_range : float or None
        Largest range R of a record's weighted log-likelihood in one draw, nats. Confidential.
    range_failing : float or None
        Of Gaussian accounting: what one draw costs the records whose Gaussian limit does not hold,
        nats, by their loss or more. Epsilon is the larger of this and of mu. Confidential; its
        epsilon is public.
    mu : float or None
        One released draw is mu-GDP under `remove`, for the records whose Gaussian limit holds:
        upper end of the largest deviation. Of a strict charge: the whole release is mu-GDP under
        the charge's relation, whatever the number of draws.
    mu_standard_error : float or None
        Monte Carlo standard error of the largest deviation.
    rho : float or None
        One draw, noisy answer or histogram is rho-zCDP under the charge's relation: of "zcdp", and
        of strict charges of several histograms or parts, of which a draw has its share.
    unit : str or None
        Unit of privacy: the column whose equal values make rows one unit, or None for single rows.
        The relation and epsilon are those of a whole unit.
    support : str or None
        The declared records that could have been, in words; bound, range and mu are then the
        largest over them, each added to the data, and over the records present.
    bound_present, loss_range_present, mu_present : float or None
        The same of the records present alone, where a support is declared.
    assumes, not_covered : tuple of str
        Plain sentences.
    """

    mechanism: str
    epsilon: float
    kind: str
    relation: str
    n_synthetic: int
    n_draws_released: int
    bound: float = field(repr=False)
    n_draws: int | None = None
    draw_quantile: float = 1.0
    cap: float | None = None
    safety_factor: float = 1.0
    density_above_one: bool = False
    converged: bool = True
    accounting: str = "lipschitz"
    delta: float = 0.0
    loss_range: float | None = field(default=None, repr=False)
    range_failing: float | None = field(default=None, repr=False)
    mu: float | None = None
    mu_standard_error: float | None = None
    rho: float | None = None
    unit: str | None = None
    support: str | None = None
    bound_present: float | None = field(default=None, repr=False)
    loss_range_present: float | None = field(default=None, repr=False)
    mu_present: float | None = None
    assumes: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        check_choice(self.relation, "relation", RELATIONS)
        check_fraction(self.draw_quantile, "draw_quantile")
        if self.unit is not None and not isinstance(self.unit, str):
            raise InvalidInput(f"unit must be the name of a column or None: found {self.unit!r}")
        check_count(self.n_synthetic, "n_synthetic", at_least=0)
        check_count(self.n_draws_released, "n_draws_released")
        if self.n_draws is not None or self.kind != STRICT:
            check_count(self.n_draws, "n_draws")
        check_choice(self.accounting, "accounting", (*ACCOUNTINGS, ZCDP))
        self._check_account()
        due = self._epsilon_due()
        if check_finite(self.epsilon, "epsilon") < due:
            raise InvalidInput(
                f"epsilon must be at least what the bound costs, {due:g}: found {self.epsilon:g}"
            )

    def _check_account(self) -> None:
        for name in ("loss_range", "range_failing", "mu", "mu_standard_error", "rho"):
            value = getattr(self, name)
            if value is not None:
                check_nonnegative(value, name)
        name = _COUNTED[self.accounting]
        if getattr(self, name) is None:
            raise InvalidInput(
                f"{name} must be given for accounting={self.accounting!r}: found none"
            )
        if self.accounting == ZCDP and self.kind != STRICT:
            raise InvalidInput(f"zCDP of noise must be charged as strict: found {self.kind!r}")
        if self.accounting in ("gaussian", ZCDP):
            check_delta(self.delta)
        elif self.delta != 0:
            raise InvalidInput(
                f"delta must be 0 for accounting={self.accounting!r}: found {self.delta:g}"
            )

    def epsilon_by(self, accounting: str, *, delta: float | None = None) -> float | None:
        """Epsilon of all sets by another accounting, rounded up; None if it was not computed."""
        at = self.delta if delta is None else delta
        value = getattr(self, _COUNTED[check_choice(accounting, "accounting", _COUNTED)])
        if value is None or (accounting == "gaussian" and at == 0):
            return None
        if accounting == "lipschitz":
            return epsilon_of_bound(
                value,
                density_above_one=self.density_above_one,
                safety_factor=self.safety_factor,
                kind=self.kind,
                **self._released,
            )
        if accounting == "range":
            return self._epsilon_of_range(value)
        if accounting == ZCDP:
            rho = self.n_draws_released * value
            return round_up(epsilon_of_zcdp(rho, at), kind=self.kind)
        by_mu = round_up(epsilon_of_mu(self.mu_of_release, at), kind=self.kind)
        return max(by_mu, self.epsilon_failing)

    def _epsilon_due(self) -> float:
        epsilon = self.epsilon_by(self.accounting)
        assert epsilon is not None
        return epsilon

    @property
    def _released(self) -> dict[str, Any]:
        return {"n_draws_released": self.n_draws_released, "relation": self.relation}

    def _epsilon_of_range(self, loss_range: float) -> float:
        return epsilon_of_range(self.safety_factor * loss_range, kind=self.kind, **self._released)

    @property
    def epsilon_failing(self) -> float:
        """Epsilon for the records whose Gaussian limit does not hold; 0 if it holds for all."""
        return 0.0 if self.range_failing is None else self._epsilon_of_range(self.range_failing)

    @property
    def mu_of_release(self) -> float:
        """Mu of all sets under the charge's relation; what composes by squares."""
        assert self.mu is not None
        if self.kind == STRICT:
            return self.mu
        return mu_of_release(self.safety_factor * self.mu, **self._released)

    @property
    def epsilon_lipschitz(self) -> float | None:
        """Epsilon of the papers' accounting, 2 Delta a draw; None for noise, which has no bound."""
        if self.kind == STRICT and self.mu is not None:
            return None
        return self.epsilon_by("lipschitz")

    @property
    def epsilon_range(self) -> float | None:
        """Epsilon of range accounting, R a draw."""
        return self.epsilon_by("range")

    @property
    def epsilon_present(self) -> float | None:
        """Epsilon of the records present alone, by the chosen accounting; None without a declared
        support."""
        if self.support is None:
            return None
        bound = self.bound if self.bound_present is None else self.bound_present
        alone = replace(
            self,
            support=None,
            bound=min(bound, self.bound),
            loss_range=self.loss_range_present,
            mu=self.mu_present,
        )
        return alone.epsilon_by(self.accounting)

    @property
    def cost(self) -> str:
        """Epsilon, and delta where there is one, in words."""
        at = f" at delta = {self.delta:g}" if self.delta else ""
        return f"epsilon = {epsilon_text(self.epsilon)}{at}"

    def _repr_html_(self) -> str:
        rows = {
            "privacy loss": self.cost,
            "kind": self.kind,
            "neighbors": f"{self.relation} {self.protected}",
            "synthetic sets": self.n_synthetic,
            "posterior draws released": self.n_draws_released,
            "assumed": " ".join(self.assumes),
            "not covered": " ".join(self.not_covered),
        }
        return html_rows(f"Privacy charge of {self.mechanism}", rows)

    @classmethod
    def counted(cls, **given: Any) -> PrivacyCharge:
        """Charge of the fields given, whose epsilon is what its accounting makes of them."""
        draft = object.__new__(cls)
        defaults = {f.name: f.default for f in fields(cls) if f.default is not MISSING}
        for name, value in {**defaults, **given}.items():
            object.__setattr__(draft, name, value)
        draft._check_account()
        return cls(epsilon=draft._epsilon_due(), **given)

    @classmethod
    def strict(
        cls,
        *,
        mechanism: str,
        epsilon: float | None = None,
        relation: str,
        n_synthetic: int = 0,
        n_draws_released: int = 1,
        rho: float | None = None,
        mu: float | None = None,
        **stated: Any,
    ) -> PrivacyCharge:
        """Charge of noise that was calibrated to `epsilon`, > 0, for each of its draws; of Gaussian
        noise to `rho` or to `mu`, counted at a delta that is `stated`, as other fields may be.

        The bound of one draw is epsilon / 2, the same split as for posterior draws; several state
        their rho. `mu`, > 0, is that of the whole release under the relation: draws from what was
        measured once are post-processing and cost nothing more.

        Examples
        --------
        >>> PrivacyCharge.strict(mechanism="laplace_sum", epsilon=0.5, relation="remove").epsilon
        0.5
        >>> charge = PrivacyCharge.strict(
        ...     mechanism="ClippedScores", mu=0.2, delta=1e-6, relation="remove", n_synthetic=5
        ... )
        >>> round(charge.epsilon, 2)
        0.83
        """
        if mu is not None:
            epsilon = epsilon_of_mu(check_positive(mu, "mu"), stated.get("delta", 0.0))
            accounting = "gaussian"
        else:
            accounting = "lipschitz" if rho is None else ZCDP
        bound = check_positive(epsilon, "epsilon") / 2
        return cls.counted(
            mechanism=mechanism,
            accounting=accounting,
            rho=rho_of_epsilon(2 * bound) if mu is rho is None and n_draws_released > 1 else rho,
            mu=mu,
            kind=STRICT,
            relation=relation,
            n_synthetic=n_synthetic,
            n_draws_released=n_draws_released,
            bound=bound,
            **stated,
        )

    @property
    def protected(self) -> str:
        """Unit that the relation speaks of: one record, or all records of one unit."""
        if self.unit is None:
            return "one record"
        # On one line: a line break in a name could forge a heading of the statement.
        return f"all records of one {' '.join(self.unit.split())}"

    def as_dict(self) -> dict[str, Any]:
        """All fields, confidential ones included, as plain JSON types; `unit` if it is no row, and
        accounts if there are any."""
        stored = {each.name: getattr(self, each.name) for each in fields(self)}  # all plain values
        left_out = [name for name in ("rho", "range_failing") if stored[name] is None]
        if self.support is None:  # as charges were stored before one could be declared
            left_out += _SUPPORT_FIELDS
        if self.unit is None:  # as charges were stored before there were units
            left_out.append("unit")
        if self.accounting == "lipschitz" and self.loss_range is self.mu is None:
            left_out += _ACCOUNT_FIELDS  # ... and before there were accountings
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in stored.items()
            if name not in left_out
        }

    def public(self) -> dict[str, Any]:
        """The fields that may be published, with epsilon by each accounting; no bound, no range."""
        confidential = {each.name for each in fields(self) if not each.repr}
        shown = {k: v for k, v in self.as_dict().items() if k not in confidential}
        if self.kind == STRICT or self.mu is None:
            return shown
        others = {"epsilon_lipschitz": self.epsilon_lipschitz, "epsilon_range": self.epsilon_range}
        if self.range_failing is not None:
            others["epsilon_failing"] = self.epsilon_failing
        if self.support is not None:
            others["epsilon_present"] = self.epsilon_present
        return {**shown, **others}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> PrivacyCharge:
        """Inverse of `as_dict`."""
        try:
            tuples = {name: tuple(fields[name]) for name in ("assumes", "not_covered")}
            return cls(**{**fields, **tuples})
        except (KeyError, TypeError) as error:
            raise InvalidInput(f"not a privacy charge: {error}") from None
