r"""What a release costs: epsilon, privacy charges, composition.

A charge is created by the mechanism that made a release and states everything needed to read its
epsilon: kind, neighbour relation, number of data sets, where the number came from, what it
assumes and what it does not cover.

References
----------
[S22] sec. 2 and 4.5, app. A.3; [C25] sec. 3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pyhybrid.errors import InvalidInput
from pyhybrid.validation import (
    check_choice,
    check_count,
    check_finite,
    check_flag,
    check_fraction,
    check_positive,
)

__all__ = [
    "ASYMPTOTIC_LOCAL",
    "CONFIDENTIAL_FIELDS",
    "KINDS",
    "RELATIONS",
    "STRICT",
    "PrivacyCharge",
    "add_epsilons",
    "bound_of_epsilon",
    "compose",
    "compose_charges",
    "epsilon_of_bound",
    "epsilon_text",
    "round_up",
]

ASYMPTOTIC_LOCAL = "asymptotic local"
STRICT = "strict"
KINDS = (ASYMPTOTIC_LOCAL, STRICT)
RELATIONS = ("remove", "replace")
CONFIDENTIAL_FIELDS = ("bound",)
_PRICE_FIELDS = ("density_above_one", "safety_factor")
_DECIMALS = {ASYMPTOTIC_LOCAL: 2, STRICT: 6}


@dataclass(frozen=True, kw_only=True)
class PrivacyCharge:
    """Privacy cost of one release: all `n_synthetic` data sets together.

    Attributes
    ----------
    mechanism : str
        Name of the mechanism, e.g. ``"LipschitzWeighted"``.
    epsilon : float
        For all released data sets, in nats, rounded up.
    kind : {"asymptotic local", "strict"}
        Asymptotic local: holds for this database, estimated from posterior draws, contracting to
        a global guarantee as n grows. Strict: holds for every database of the stated relation.
    relation : {"remove", "replace"}
        Neighbouring databases: one record left out, or one record replaced.
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
    assumes: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        check_choice(self.relation, "relation", RELATIONS)
        check_fraction(self.draw_quantile, "draw_quantile")
        check_count(self.n_synthetic, "n_synthetic", at_least=0)
        check_count(self.n_draws_released, "n_draws_released")
        if self.n_draws is not None or self.kind != STRICT:
            check_count(self.n_draws, "n_draws")
        due = epsilon_of_bound(
            self.bound,
            n_draws_released=self.n_draws_released,
            relation=self.relation,
            density_above_one=self.density_above_one,
            safety_factor=self.safety_factor,
            kind=self.kind,
        )
        if check_finite(self.epsilon, "epsilon") < due:
            raise InvalidInput(
                f"epsilon must be at least what the bound costs, {due:g}: found {self.epsilon:g}"
            )

    @classmethod
    def strict(
        cls,
        *,
        mechanism: str,
        epsilon: float,
        relation: str,
        n_synthetic: int = 0,
        n_draws_released: int = 1,
        assumes: tuple[str, ...] = (),
        not_covered: tuple[str, ...] = (),
    ) -> PrivacyCharge:
        """Charge of noise that was calibrated to `epsilon`, > 0, for each of its draws.

        The bound of one draw is epsilon / 2, the same split as for posterior draws.

        Examples
        --------
        >>> PrivacyCharge.strict(mechanism="laplace_sum", epsilon=0.5, relation="remove").epsilon
        0.5
        """
        bound = check_positive(epsilon, "epsilon") / 2
        return cls(
            mechanism=mechanism,
            epsilon=epsilon_of_bound(
                bound, n_draws_released=n_draws_released, relation=relation, kind=STRICT
            ),
            kind=STRICT,
            relation=relation,
            n_synthetic=n_synthetic,
            n_draws_released=n_draws_released,
            bound=bound,
            assumes=assumes,
            not_covered=not_covered,
        )

    def as_dict(self) -> dict[str, Any]:
        """All fields, confidential ones included, as plain JSON types."""
        fields = asdict(self)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in fields.items()}

    def public(self) -> dict[str, Any]:
        """The fields that may be published; the bound itself is not among them."""
        return {k: v for k, v in self.as_dict().items() if k not in CONFIDENTIAL_FIELDS}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> PrivacyCharge:
        """Inverse of `as_dict`."""
        try:
            tuples = {name: tuple(fields[name]) for name in ("assumes", "not_covered")}
            return cls(**{**fields, **tuples})
        except (KeyError, TypeError) as error:
            raise InvalidInput(f"not a privacy charge: {error}") from None


def epsilon_of_bound(
    bound: float,
    *,
    n_draws_released: int = 1,
    relation: str = "remove",
    density_above_one: bool = False,
    safety_factor: float = 1.0,
    kind: str = ASYMPTOTIC_LOCAL,
) -> float:
    r"""Privacy cost :math:`\epsilon = 2 s \Delta` per released draw, summed over draws, rounded up.

    Parameters
    ----------
    bound : float
        Overall Lipschitz bound Delta in nats, >= 0, finite.
    n_draws_released : int, default 1
        Posterior draws released; data sets simulated from one draw cost no more than one.
    relation : {"remove", "replace"}
        Leaving one record out changes one term of the log posterior. Replacing it changes two,
        f(x) and f(x'); their difference stays within Delta if both lie in [-Delta, 0], so nothing
        is added for discrete outcomes. If a density can exceed 1 they may have unlike signs:
    density_above_one : bool, default False
        doubles the cost under "replace" (epsilon = 4 Delta).
    safety_factor : float, default 1
        s >= 1, to turn a local bound into a global one: up to 1.05 for n > 1000, 1.10 below.
    kind : {"asymptotic local", "strict"}
        Decides the rounding: up, to 2 decimals for estimates, to 6 for strict charges.

    Returns
    -------
    float
        Epsilon in nats.

    References
    ----------
    [S22] sec. 2, sec. 4.5 and app. A.3.

    Examples
    --------
    >>> epsilon_of_bound(2.5, n_draws_released=3)
    15.0
    """
    bound = check_finite(bound, "bound")
    if bound < 0:
        raise InvalidInput(f"bound must be >= 0: found {bound:g}")
    draws = check_count(n_draws_released, "n_draws_released")
    check_choice(relation, "relation", RELATIONS)
    check_flag(density_above_one, "density_above_one")
    factor = check_finite(safety_factor, "safety_factor")
    if factor < 1:
        raise InvalidInput(f"safety_factor must be >= 1: found {factor:g}")
    check_choice(kind, "kind", KINDS)
    sides = 4 if relation == "replace" and density_above_one else 2
    # Exact arithmetic on the shortest repr, so that 2 x 0.15 is 0.3 and not just above it.
    return _ceiling(sides * draws * Fraction(repr(factor)) * Fraction(repr(bound)), kind)


def bound_of_epsilon(
    epsilon: float,
    *,
    relation: str = "remove",
    density_above_one: bool = False,
    safety_factor: float = 1.0,
) -> float:
    """Bound (or cap M) for which one released draw costs `epsilon`: epsilon / 2, or / 4.

    The inverse of `epsilon_of_bound`, whose parameters it shares; nats.
    """
    sides = (
        4 if check_choice(relation, "relation", RELATIONS) == "replace" and density_above_one else 2
    )
    return check_positive(epsilon, "epsilon") / (
        sides * check_positive(safety_factor, "safety_factor")
    )


def epsilon_text(epsilon: float) -> str:
    """Epsilon in full, never rounded down for display: 12345.64, 5, 0.000001."""
    return format(Decimal(repr(float(epsilon))), "f").removesuffix(".0")


def round_up(epsilon: float, *, kind: str = ASYMPTOTIC_LOCAL) -> float:
    """Round an epsilon (nats, >= 0) up as charges of this `kind` are rounded."""
    epsilon = check_finite(epsilon, "epsilon")
    check_choice(kind, "kind", KINDS)
    if epsilon < 0:
        raise InvalidInput(f"epsilon must be >= 0: found {epsilon:g}")
    return _ceiling(Fraction(repr(epsilon)), kind)


def _ceiling(value: Fraction, kind: str) -> float:
    # Fractions, as a Decimal context would round half to even at 28 digits before the ceiling.
    unit: int = 10 ** _DECIMALS[kind]
    try:
        return math.ceil(value * unit) / unit
    except OverflowError:
        raise InvalidInput("epsilon must be a number that floats can hold: it is larger") from None


def compose(charges: Sequence[PrivacyCharge], *, allow_unlike: bool = False) -> float:
    """Sequential composition: the sum of the epsilons of charges of one kind and relation.

    Parameters
    ----------
    charges : sequence of PrivacyCharge
        Releases computed from the same confidential data.
    allow_unlike : bool, default False
        Add charges of unlike kind or relation; the sum is then no formal guarantee of any kind.

    Returns
    -------
    float
        Epsilon in nats; 0 for no charges.

    Raises
    ------
    InvalidInput
        If kinds or relations differ and `allow_unlike` is False.
    """
    labels = sorted({f"{charge.kind}, {charge.relation}" for charge in charges})
    if len(labels) > 1 and not allow_unlike:
        raise InvalidInput(
            f"charges must be of one kind and relation: found {'; '.join(labels)}; "
            "a sum of unlike charges is no guarantee, pass allow_unlike=True to add all the same"
        )
    return add_epsilons(charge.epsilon for charge in charges)


def compose_charges(
    charges: Sequence[PrivacyCharge], *, mechanism: str, allow_unlike: bool = False
) -> PrivacyCharge:
    """One charge for data sets whose columns were released one after the other.

    Epsilons add (sequential composition). So do the bounds: the log-likelihood of a whole record
    is the sum of those of its columns. Where only some densities can exceed 1, or safety factors
    differ, bounds are first brought to the largest of both.

    Parameters
    ----------
    charges : sequence of PrivacyCharge
        Of one relation, number of sets and number of released draws.
    mechanism : str
        Name of what was made of them.
    allow_unlike : bool, default False
        Take strict charges beside local ones. What holds for every database holds for this one:
        the whole is then asymptotic local, and says so.

    Raises
    ------
    InvalidInput
        For no charges, unlike relations or numbers, or unlike kinds that are not allowed.
    """
    if not charges:
        raise InvalidInput("charges must hold at least one charge: found none")
    for name in ("relation", "n_synthetic", "n_draws_released"):
        found = sorted({str(getattr(charge, name)) for charge in charges})
        if len(found) > 1:
            raise InvalidInput(f"charges must agree in {name}: found {', '.join(found)}")
    first, kinds = charges[0], {charge.kind for charge in charges}
    if len(kinds) > 1 and not allow_unlike:
        raise InvalidInput(
            f"charges must be of one kind: found {' and '.join(sorted(kinds))}; allow_unlike=True "
            "states the whole as asymptotic local, the weaker of the two"
        )
    kind = first.kind if len(kinds) == 1 else ASYMPTOTIC_LOCAL
    above, factor = (max(getattr(c, f) for c in charges) for f in _PRICE_FIELDS)
    exact = sum(
        _shown(c.bound) * _shown(c.safety_factor) * _price(c.density_above_one, c) for c in charges
    ) / (_price(above, first) * _shown(factor))
    bound = float(exact)
    if _shown(bound) > exact:  # or the epsilon due for it would be rounded up once more
        bound = math.nextafter(bound, 0)
    draws = [c.n_draws for c in charges if c.n_draws is not None]
    mixed = ("Strict charges of some columns were added to local ones of others.",)
    return PrivacyCharge(
        mechanism=mechanism,
        epsilon=add_epsilons(c.epsilon for c in charges),
        kind=kind,
        relation=first.relation,
        n_synthetic=first.n_synthetic,
        n_draws_released=first.n_draws_released,
        bound=bound,
        n_draws=min(draws, default=None),
        draw_quantile=min(c.draw_quantile for c in charges),
        safety_factor=factor,
        density_above_one=above,
        converged=all(c.converged for c in charges),
        assumes=_together(c.assumes for c in charges) + (mixed if len(kinds) > 1 else ()),
        not_covered=_together(c.not_covered for c in charges),
    )


def _shown(number: float) -> Fraction:
    """The number that a reader sees, exactly; numpy's own floats are shown as Python's."""
    return Fraction(repr(float(number)))


def _price(above_one: bool, charge: PrivacyCharge) -> int:
    return 4 if charge.relation == "replace" and above_one else 2


def _together(sentences: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Each sentence once, in order of first appearance."""
    return tuple(dict.fromkeys(itertools.chain(*sentences)))


def add_epsilons(epsilons: Iterable[float]) -> float:
    """Exact sum of stated epsilons: 0.1 + 0.1 + 0.1 is 0.3. Says nothing of what they mean."""
    return float(sum((Decimal(repr(float(epsilon))) for epsilon in epsilons), Decimal(0)))
