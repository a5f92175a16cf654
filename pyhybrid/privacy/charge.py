r"""Privacy charges: what one release costs, as facts and one account.

An account turns what was measured into an epsilon. A local charge has those of one posterior draw
side by side, `Lipschitz`, `Range` and `Gaussian`, and is counted by one of them; a strict charge,
and one of several parts, has `Spent`, of the whole release ([S22] sec. 2 and 4.5, app. A.3; [C25]
sec. 3; [DR19]; [DRS22]). What a charge says in words is the privacy statement's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

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
    CHANGED,
    KINDS,
    RELATIONS,
    STRICT,
    add_epsilons,
    at_least,
    check_delta,
    compose_mu,
    epsilon_of_bound,
    epsilon_of_mu,
    epsilon_of_rho,
    epsilon_of_zcdp,
    epsilon_text,
    lipschitz_sides,
    mu_of_release,
    round_up,
    shown,
)


class Account(ABC):
    """What every account says: epsilon of a release, and what the release adds to others."""

    of_draws: ClassVar[bool] = True
    """Whether it was measured on posterior draws, so that it holds for their database alone."""
    mu: float | None = None
    rho: float | None = None

    @property
    def needs_delta(self) -> bool:
        """Whether its epsilon is one at a delta."""
        return self.mu is not None

    @abstractmethod
    def epsilon(self, n_draws: int, relation: str, delta: float) -> float:
        """Of m draws, pure or at `delta`; not rounded."""

    def spent(self, epsilon: float, n_draws: int, relation: str) -> Spent:
        """What m draws, of this epsilon as it is stated, add to other releases."""
        return Spent(pure=epsilon, rho_of_pure=None)


@dataclass(frozen=True, kw_only=True)
class Lipschitz(Account):
    """Delta of one draw, nats, and the largest range of what changes when a record leaves, which
    counts where it is more than 2 Delta; terms may have `either_sign`."""

    bound: float
    change: float = 0.0
    either_sign: bool = False

    def epsilon(self, n_draws: int, relation: str, delta: float) -> float:
        of_bound = lipschitz_sides(relation, self.either_sign) * shown(self.bound)
        return at_least(n_draws * max(of_bound, CHANGED[relation] * shown(self.change)))


@dataclass(frozen=True, kw_only=True)
class Range(Account):
    """Largest range of own terms and of what changes when a record leaves, of one draw, nats."""

    loss_range: float

    def epsilon(self, n_draws: int, relation: str, delta: float) -> float:
        return at_least(n_draws * CHANGED[relation] * shown(self.loss_range))


@dataclass(frozen=True, kw_only=True)
class Gaussian(Account):
    """Mu of one draw under `remove`, as far as the Gaussian limit holds."""

    mu: float

    def epsilon(self, n_draws: int, relation: str, delta: float) -> float:
        return epsilon_of_mu(self.of_release(n_draws, relation), delta)

    def of_release(self, n_draws: int, relation: str) -> float:
        """Mu of m draws under the relation: what composes by squares."""
        return mu_of_release(self.mu, n_draws_released=n_draws, relation=relation)

    def spent(self, epsilon: float, n_draws: int, relation: str) -> Spent:
        return Spent(mu=self.of_release(n_draws, relation))


@dataclass(frozen=True, kw_only=True)
class Spent(Account):
    """What whole releases cost together, under their relation, in parts that add up in unlike ways:
    pure epsilons, nats, with their rho if it is known; rho of Gaussian noise; mu by squares."""

    of_draws: ClassVar[bool] = False
    pure: float = 0.0
    rho_of_pure: float | None = 0.0
    rho: float = 0.0
    mu: float = 0.0

    @classmethod
    def of(cls, parts: Iterable[Spent]) -> Spent:
        """All parts together; 0 for none."""
        spent = list(parts)
        of_pure = [part.rho_of_pure for part in spent]
        return cls(
            pure=add_epsilons(part.pure for part in spent),
            rho_of_pure=None if None in of_pure else _sum(of_pure),
            rho=_sum(part.rho for part in spent),
            mu=compose_mu([part.mu for part in spent]),
        )

    @property
    def needs_delta(self) -> bool:
        """True if a part is of Gaussian noise, or of the Gaussian limit."""
        return self.rho > 0 or self.mu > 0

    def spent(self, epsilon: float, n_draws: int, relation: str) -> Spent:
        """Itself; without noise the pure epsilon as it is stated."""
        return self if self.needs_delta else Spent(pure=epsilon, rho_of_pure=self.rho_of_pure)

    def epsilon(self, n_draws: int = 1, relation: str = "remove", delta: float = 0.0) -> float:
        """The smallest of what composition gives at `delta`, not rounded: pure epsilons added to
        what mu alone costs, or mu and rho by their rho; or the rho of all. At a delta of 0 the
        pure epsilons."""
        if delta == 0:
            return self.pure
        if not self.needs_delta:
            of_rho = None if self.rho_of_pure is None else epsilon_of_rho(self.rho_of_pure, delta)
            return self.pure if of_rho is None else min(self.pure, of_rho)
        rho = _sum([self.rho, at_least(shown(self.mu) ** 2 / 2)])
        noise = epsilon_of_zcdp(rho, delta)
        if self.rho == 0:
            noise = min(noise, epsilon_of_mu(self.mu, delta))
        together = at_least(shown(self.pure) + shown(noise))
        if self.rho_of_pure is None:
            return together
        return min(together, epsilon_of_zcdp(_sum([self.rho_of_pure, rho]), delta))


def _sum(numbers: Iterable[float | None]) -> float:
    return at_least(sum((shown(n) for n in numbers if n is not None), Fraction(0)))


_ACCOUNTS: Mapping[str, type[Account]] = {
    account.__name__: account for account in (Lipschitz, Range, Gaussian, Spent)
}


@dataclass(frozen=True, kw_only=True)
class PrivacyCharge:
    """Privacy cost of one release: all `n_synthetic` data sets together.

    Attributes
    ----------
    kind : {"asymptotic local", "strict"}
        Asymptotic local: holds for this database, estimated from posterior draws, contracting to
        a global guarantee as n grows. Strict: holds for every database of the stated relation.
    relation : {"remove", "replace"}
        Neighboring databases: one record left out, or one record replaced.
    n_synthetic, n_draws_released : int
        Data sets released, 0 for an answer that is no data set (a noisy mean); posterior draws or
        noisy histograms they were simulated from.
    accounts : mapping of str to Account
        By accounting: "lipschitz", "range" and "gaussian" of a local charge; "pure", "zcdp" or
        "gaussian" of a strict one; "composed" of unlike parts. `accounting` is the one that counts.
    delta : float
        Of (epsilon, delta), a public number; 0 of a pure epsilon.
    bound : float or None
        The papers' Delta of one draw at the weights as they are, or the cap, nats. Confidential.
    n_draws : int or None
        Posterior draws S that a local charge was computed from.
    draw_quantile, safety_factor : float
        q of `lipschitz_bounds`; s in epsilon = 2 s Delta, which the accounts have and `bound` not.
    cap : float or None
        M of a censored or truncated likelihood, nats.
    density_above_one : bool
        True if log densities above 0 can occur (continuous outcome).
    converged : bool
        False if a release was insisted on although the chains had not converged.
    unit : str or None
        Unit of privacy: the column whose equal values make rows one unit, or None for single rows.
        The relation and epsilon are those of a whole unit.
    facts : mapping
        What the statement says of assumptions and of what is not covered: plain JSON values,
        public. See `pyhybrid.releases.statement`.
    parts : tuple of PrivacyCharge
        Of a charge that was composed.
    """

    mechanism: str
    kind: str
    relation: str
    n_synthetic: int
    n_draws_released: int
    accounts: Mapping[str, Account] = field(repr=False)
    accounting: str
    delta: float = 0.0
    bound: float | None = field(default=None, repr=False)
    n_draws: int | None = None
    draw_quantile: float = 1.0
    cap: float | None = None
    safety_factor: float = 1.0
    density_above_one: bool = False
    converged: bool = True
    unit: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    parts: tuple[PrivacyCharge, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        check_choice(self.relation, "relation", RELATIONS)
        check_choice(self.accounting, "accounting", self.accounts)
        check_fraction(self.draw_quantile, "draw_quantile")
        check_count(self.n_synthetic, "n_synthetic", at_least=0)
        check_count(self.n_draws_released, "n_draws_released")
        if self.n_draws is not None:
            check_count(self.n_draws, "n_draws")
        if check_finite(self.safety_factor, "safety_factor") < 1:
            raise InvalidInput(f"safety_factor must be >= 1: found {self.safety_factor:g}")
        if self.unit is not None and not isinstance(self.unit, str):
            raise InvalidInput(f"unit must be the name of a column or None: found {self.unit!r}")
        for account in self.accounts.values():
            for name, value in vars(account).items():
                if value is not None and not isinstance(value, bool):
                    check_nonnegative(value, name)
        if self.kind == STRICT and self.account.of_draws:
            raise InvalidInput("a strict charge must be of noise or a cap: found one of draws")
        if self.account.needs_delta:
            check_delta(self.delta)
        elif self.delta != 0:
            raise InvalidInput(
                f"delta must be 0 for accounting={self.accounting!r}: found {self.delta:g}"
            )

    @property
    def account(self) -> Account:
        """What epsilon is counted from."""
        return self.accounts[self.accounting]

    @property
    def epsilon(self) -> float:
        """Of all released data sets, in nats, rounded up, by the chosen accounting."""
        epsilon = self.epsilon_by(self.accounting)
        assert epsilon is not None
        return epsilon

    def epsilon_by(self, accounting: str, *, delta: float | None = None) -> float | None:
        """Epsilon of all sets by another accounting, rounded up; None if it is not known."""
        at = self.delta if delta is None else delta
        account = self.accounts.get(accounting)
        if account is None or (account.needs_delta and at == 0):
            return None
        epsilon = account.epsilon(self.n_draws_released, self.relation, at)
        return round_up(epsilon, kind=self.kind)

    @property
    def epsilon_published(self) -> float | None:
        """The papers' epsilon of a local release: 2 Delta a draw, the weights taken as fixed."""
        if self.parts:
            known = [part.epsilon_published or part.epsilon for part in self.parts]
            return None if self.kind == STRICT else add_epsilons(known)
        if self.bound is None or "lipschitz" not in self.accounts:
            return None
        return epsilon_of_bound(
            self.bound,
            n_draws_released=self.n_draws_released,
            relation=self.relation,
            density_above_one=self.density_above_one,
            safety_factor=self.safety_factor,
        )

    @property
    def mu(self) -> float | None:
        """Mu of one draw of a local release under `remove`, of a strict one of all under its
        relation; None where it is not known."""
        account = self.accounts.get("gaussian")
        return None if account is None else account.mu

    @property
    def rho(self) -> float | None:
        """Rho of all noise of a charge that is counted by it."""
        account = self.accounts.get("zcdp")
        return None if account is None else account.rho

    @property
    def epsilon_lipschitz(self) -> float | None:
        """Epsilon by the papers' accounting, 2 Delta a draw, or what changes if that is more."""
        return self.epsilon_by("lipschitz")

    @property
    def epsilon_range(self) -> float | None:
        """Epsilon by range accounting, R a draw."""
        return self.epsilon_by("range")

    @property
    def spent(self) -> Spent:
        """What the whole release adds to others: stated epsilons, mu by squares, rho."""
        return self.spent_by(self.accounting)

    def spent_by(self, accounting: str) -> Spent:
        """The same by another accounting that the charge has."""
        epsilon = self.epsilon_by(accounting) or 0.0
        return self.accounts[accounting].spent(epsilon, self.n_draws_released, self.relation)

    @property
    def cost(self) -> str:
        """Epsilon, and delta where there is one, in words."""
        at = f" at delta = {self.delta:g}" if self.delta else ""
        return f"epsilon = {epsilon_text(self.epsilon)}{at}"

    @property
    def protected(self) -> str:
        """Unit that the relation speaks of: one record, or all records of one unit."""
        if self.unit is None:
            return "one record"
        # On one line: a line break in a name could forge a heading of the statement.
        return f"all records of one {' '.join(self.unit.split())}"

    @property
    def in_short(self) -> str:
        """The cost with kind and relation, in one line."""
        return f"{self.cost} ({self.kind}, {self.relation} {self.protected})"

    def __repr__(self) -> str:
        return f"<Privacy charge of {self.mechanism}: {self.in_short}>"

    def _repr_html_(self) -> str:
        rows = {
            "privacy loss": self.cost,
            "kind": self.kind,
            "neighbors": f"{self.relation} {self.protected}",
            "synthetic sets": self.n_synthetic,
            "posterior draws released": self.n_draws_released,
        }
        return html_rows(f"Privacy charge of {self.mechanism}", rows)

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
        loss_range: float | None = None,
        facts: Mapping[str, Any] | None = None,
        **stated: Any,
    ) -> PrivacyCharge:
        """Charge of noise that was calibrated to `epsilon`, > 0, for each of its draws; of Gaussian
        noise to `rho` for each draw, or to `mu`, > 0, of the whole release under the relation, at a
        delta that is `stated`, as other fields may be.

        A draw whose terms have a `loss_range`, nats, under the relation, counts by it where rho
        adds [CR21].

        Examples
        --------
        >>> PrivacyCharge.strict(mechanism="laplace_sum", epsilon=0.5, relation="remove").epsilon
        0.5
        """
        m = check_count(n_draws_released, "n_draws_released")
        if mu is not None:
            name, spent = "gaussian", Spent(mu=check_positive(mu, "mu"))
        elif rho is not None:
            name, spent = "zcdp", Spent(rho=at_least(m * shown(check_positive(rho, "rho"))))
        else:
            name, least = "pure", shown(check_positive(epsilon, "epsilon"))
            of_draw = least**2 / 2 if loss_range is None else shown(loss_range) ** 2 / 8
            spent = Spent(pure=at_least(m * least), rho_of_pure=at_least(m * of_draw))
        return cls(
            mechanism=mechanism,
            kind=STRICT,
            relation=relation,
            n_synthetic=n_synthetic,
            n_draws_released=m,
            accounts={name: spent},
            accounting=name,
            facts=dict(facts or {}),
            **stated,
        )

    def as_dict(self) -> dict[str, Any]:
        """All fields, confidential ones included, as plain JSON types."""
        return {
            **vars(self),
            "accounts": {
                name: {"account": type(account).__name__, **vars(account)}
                for name, account in self.accounts.items()
            },
            "facts": dict(self.facts),
            "parts": [part.as_dict() for part in self.parts],
        }

    def public(self) -> dict[str, Any]:
        """What may be published, with epsilon by each accounting: no bound, no range."""
        hidden = ("accounts", "bound", "facts", "parts")
        shown_fields = {name: value for name, value in vars(self).items() if name not in hidden}
        public = {"mechanism": self.mechanism, "epsilon": self.epsilon, **shown_fields,
                  "spent": asdict(self.spent)}  # fmt: skip
        if self.mu is not None:
            public["mu"] = self.mu
        if self.kind == STRICT:
            return public
        return {
            **public,
            "epsilon_published": self.epsilon_published,
            "epsilon_lipschitz": self.epsilon_lipschitz,
            "epsilon_range": self.epsilon_range,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> PrivacyCharge:
        """Inverse of `as_dict`."""
        try:
            accounts = {
                name: _ACCOUNTS[account["account"]](
                    **{k: v for k, v in account.items() if k != "account"}
                )
                for name, account in stored["accounts"].items()
            }
            parts = tuple(map(cls.from_dict, stored["parts"]))
            return cls(**{**stored, "accounts": accounts, "parts": parts})
        except (AttributeError, KeyError, TypeError) as error:
            raise InvalidInput(f"not a privacy charge: {error}") from None
