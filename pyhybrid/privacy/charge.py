r"""What a release costs: epsilon, privacy charges, composition.

A charge is created by the mechanism that made a release and states everything needed to read its
epsilon: kind, neighbour relation, number of data sets, where the number came from, what it
assumes and what it does not cover.

References
----------
[S22] sec. 2 and 4.5, app. A.3; [C25] sec. 3.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyhybrid.checks import (
    check_choice,
    check_count,
    check_finite,
    check_fraction,
    check_positive,
)
from pyhybrid.errors import InvalidInput
from pyhybrid.privacy.epsilon import KINDS, RELATIONS, STRICT, epsilon_of_bound

__all__ = [
    "CONFIDENTIAL_FIELDS",
    "PrivacyCharge",
]

CONFIDENTIAL_FIELDS = ("bound",)


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
    seal : str
        Digest of all other fields, set by what made the charge. A copy whose fields were changed
        (`dataclasses.replace`) does not fit its seal; a charge made by hand has none. Neither is
        taken by a release, an answer or a ledger.
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
    seal: str = field(default="", repr=False, compare=False)

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
        ).sealed()

    def sealed(self) -> PrivacyCharge:
        """The same charge with its seal; called by what makes charges, and by nothing else."""
        return replace(self, seal=self._digest())

    @property
    def is_sealed(self) -> bool:
        """True if the charge is as it was made."""
        return hmac.compare_digest(self.seal, self._digest())

    def _digest(self) -> str:
        text = json.dumps(self.as_dict(), sort_keys=True, default=str)
        return hashlib.sha256(f"pyhybrid charge {text}".encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """All fields but the seal, confidential ones included, as plain JSON types."""
        fields = asdict(self)
        del fields["seal"]
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
