r"""The exponential mechanism: choose among finitely many candidates by a score of the data.

Candidate c with score u(x, c) is chosen with a probability proportional to

.. math:: \exp\left( \frac{\epsilon \, u(x, c)}{2 \, \Delta u} \right), \qquad
   \Delta u = \max_{c, x \sim x'} |u(x, c) - u(x', c)|.

The 2 is there since a neighbor may raise the score of one candidate and lower all the others: the
numerator changes by a factor of at most e^{epsilon/2}, and so does the sum in the denominator.
Adding Gumbel noise of scale 2 Delta u / epsilon to each score and taking the best has exactly these
probabilities. `pyhybrid.ScalarWeighted` is the same mechanism with the log-likelihood as its score.

References
----------
[MT07] McSherry, Talwar (2007). [JC]; [DR14] sec. 3.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.core.checks import check_choice, check_positive, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.primitives.noise import PrivateAnswer, load_opendp, refusals
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import RELATIONS


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyChoice(PrivateAnswer):
    """A chosen candidate: its position (`value`) and the candidate itself, which is the position if
    none were given; largest change of a score between neighbors (`sensitivity`), and `scale` of the
    Gumbel noise on each score."""

    value: int
    candidate: Any
    sensitivity: float
    scale: float

    def cost(self) -> float:
        """2 sensitivity / scale."""
        return 2 * self.sensitivity / self.scale


def exponential_mechanism(
    scores: Any,
    *,
    sensitivity: float,
    epsilon: float,
    relation: str,
    candidates: Sequence[Any] | None = None,
) -> NoisyChoice:
    """Choose a candidate with probability proportional to exp(epsilon score / (2 sensitivity)).

    Parameters
    ----------
    scores : array_like, shape (k,)
        Of the candidates on the data, higher is better. Confidential.
    sensitivity : float
        Largest change of any score between neighbors of `relation`, above 0: stated by the user
        from how the score is made. A count of records has 1 under either relation.
    epsilon : float
        Above 0, nats.
    relation : {"remove", "replace"}
        The neighbors that `sensitivity` was worked out for.
    candidates : sequence of length k, optional
        Public names of the candidates, fixed without looking at the data.

    Errors as of `laplace_sum`; and for fewer than 2 scores.

    Examples
    --------
    >>> choice = exponential_mechanism([3, 90, 4], sensitivity=1, epsilon=2.0, relation="remove")
    >>> choice.value
    1
    """
    eps, change = check_positive(epsilon, "epsilon"), check_positive(sensitivity, "sensitivity")
    check_choice(relation, "relation", RELATIONS)
    values = check_vector(scores, "scores")
    if values.size < 2 or not np.isfinite(values).all():
        raise InvalidInput("scores must be finite, and of at least 2 candidates")
    if candidates is not None and len(candidates) != values.size:
        raise InvalidInput(f"candidates must be {values.size}, one per score")
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    scale = math.nextafter(2 * change / eps, math.inf)
    with refusals():
        measurement = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
        # Its rho = epsilon^2 / 8 of zCDP is that of the exponential mechanism's epsilon.
        stated = math.sqrt(8 * measurement.map(change))
    if stated > eps * (1 + 1e-12):
        raise InvalidInput(f"epsilon must be within what OpenDP can calibrate: found {eps:g}")
    chosen = int(measurement(values))
    assumed = (
        "No score changes by more than the stated sensitivity between neighbors, and the "
        "candidates were fixed without looking at the data."
    )
    charge = PrivacyCharge.strict(
        mechanism="exponential_mechanism",
        epsilon=eps,
        relation=relation,
        facts={"assumes": [assumed]},
    )
    candidate = chosen if candidates is None else candidates[chosen]
    return NoisyChoice(
        value=chosen, candidate=candidate, sensitivity=change, scale=scale, charge=charge
    )
