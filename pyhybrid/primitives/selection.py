r"""The exponential mechanism: choose among finitely many candidates by a score of the data.

Candidate c with score u(x, c) is chosen with a probability proportional to

.. math:: \exp\left( \frac{\epsilon \, u(x, c)}{2 \, \Delta u} \right), \qquad
   \Delta u = \max_{c, x \sim x'} |u(x, c) - u(x', c)|.

The 2 is there since a neighbor may raise the score of one candidate and lower all the others: the
numerator changes by a factor of at most e^{epsilon/2}, and so does the sum in the denominator.

It is drawn by adding Gumbel noise of scale 2 Delta u / epsilon to each score and taking the best,
which has exactly these probabilities. `pyhybrid.ScalarWeighted` is the same mechanism with the
log-likelihood as its score and all parameter values as its candidates.

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
    """A chosen candidate.

    Attributes
    ----------
    value : int
        Position of the chosen candidate.
    candidate : object
        The candidate itself; its position if no candidates were given.
    sensitivity, scale : float
        Largest change of a score between neighbors; scale of the Gumbel noise on each score.
    """

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
        Score of each candidate on the data, higher is better. Confidential.
    sensitivity : float
        Largest change of any score between neighbors of `relation`, above 0: stated by the user
        from how the score is made. A count of records has 1 under either relation.
    epsilon : float
        Above 0, nats.
    relation : {"remove", "replace"}
        The neighbors that `sensitivity` was worked out for.
    candidates : sequence of length k, optional
        Public names of the candidates, fixed without looking at the data.

    Raises
    ------
    InvalidInput
        For sensitivity or epsilon <= 0, fewer than 2 scores, or one that is not finite.
    EngineUnavailable
        If OpenDP is not installed.

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
    measurement, scale = _measurement(change, eps)
    chosen = int(measurement(values))
    assumed = (
        "No score changes by more than the stated sensitivity between neighbors, and the "
        "candidates were fixed without looking at the data."
    )
    return NoisyChoice(
        value=chosen,
        candidate=chosen if candidates is None else candidates[chosen],
        sensitivity=change,
        scale=scale,
        charge=PrivacyCharge.strict(
            mechanism="exponential_mechanism",
            epsilon=eps,
            relation=relation,
            facts={"assumes": [assumed]},
        ),
    )


def _measurement(sensitivity: float, epsilon: float) -> tuple[Any, float]:
    """OpenDP's noisy maximum with Gumbel noise, and its scale; its rho = epsilon^2 / 8 of zCDP is
    that of the exponential mechanism's epsilon, which is read back from it."""
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    scale = math.nextafter(2 * sensitivity / epsilon, math.inf)
    with refusals():
        measurement = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
        stated = math.sqrt(8 * measurement.map(sensitivity))
    if stated > epsilon * (1 + 1e-12):
        raise InvalidInput(f"epsilon must be within what OpenDP can calibrate: found {epsilon:g}")
    return measurement, scale
