r"""Choices among finitely many answers: randomized response and the exponential mechanism.

**Randomized response.** A person's yes or no is kept with probability p and turned round with
1 - p before anyone sees it. A report is at most p / (1 - p) times as likely under one true answer
as under the other:

.. math:: \epsilon = \log \frac{p}{1 - p}, \qquad p = \frac{e^{\epsilon}}{1 + e^{\epsilon}}.

With true share t, a reported yes has probability r = t p + (1 - t)(1 - p); solved for t at the
reported share, :math:`\hat t = (\bar r - (1 - p)) / (2 p - 1)` is unbiased, with the variance
:math:`p (1 - p) / (n (2 p - 1)^2)` given the true answers.

**The exponential mechanism** chooses candidate c, whose score is u(x, c), with a probability
proportional to

.. math:: \exp\left( \frac{\epsilon \, u(x, c)}{2 \, \Delta u} \right), \qquad
   \Delta u = \max_{c, x \sim x'} |u(x, c) - u(x', c)|.

The 2 is there since a neighbor may raise the score of one candidate and lower all the others: the
numerator changes by a factor of at most e^{epsilon/2}, and so does the sum in the denominator.
Adding Gumbel noise of scale 2 Delta u / epsilon to each score and taking the best has exactly these
probabilities. `pyhybrid.ScalarWeighted` is the same mechanism with the log-likelihood as its score.

References
----------
Warner (1965), JASA 60:63-69. [MT07] McSherry, Talwar (2007). [JC]; [DR14] sec. 3.2 and 3.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.core.checks import BoolArray, check_choice, check_each, check_positive, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.primitives.noise import PrivateAnswer, load_opendp, refusals
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import RELATIONS


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RandomizedResponse(PrivateAnswer):
    """Reported answers (n,), in the order of the persons, and what they say of the true share; p in
    (1/2, 1) is the probability that a report is the true answer."""

    value: BoolArray
    keep_probability: float

    def cost(self) -> float:
        """log(p / (1 - p))."""
        return math.log(self.keep_probability) - math.log1p(-self.keep_probability)

    @property
    def estimate(self) -> float:
        """Unbiased estimate of the true share of yes; may fall outside [0, 1]."""
        p = self.keep_probability
        return float((self.value.mean() - (1 - p)) / (2 * p - 1))

    @property
    def variance(self) -> float:
        """Exact variance of `estimate` about the true share among these n persons."""
        p = self.keep_probability
        return p * (1 - p) / (self.value.size * (2 * p - 1) ** 2)


def randomized_response(answers: Any, *, epsilon: float) -> RandomizedResponse:
    """Report each yes or no truthfully with probability e^epsilon / (1 + e^epsilon).

    `answers` (n,) are True or False, or 1 or 0, one per person; confidential. The charge is epsilon
    (nats; log(3) keeps three answers of four) for all reports together: a neighboring database
    differs in one person's answer, and each report depends on one answer only. Errors as of
    `laplace_sum`; and for an epsilon too large for a probability below 1.

    Examples
    --------
    >>> reported = randomized_response([True, False, True], epsilon=1.0)
    >>> round(reported.keep_probability, 4)
    0.7311
    """
    eps, truth = check_positive(epsilon, "epsilon"), check_vector(answers, "answers")
    check_each(np.isin(truth, (0, 1)), "answers must be True or False, 1 or 0: record {} is not")
    dp = load_opendp()
    keep = 1 / (1 + math.exp(-eps))
    while 0.5 < keep < 1:
        measurement = dp.m.make_randomized_response_bool(prob=keep)
        if measurement.map(1) <= eps:
            break
        keep = math.nextafter(keep, 0.5)
    else:
        raise InvalidInput(f"epsilon must give a keep probability within (1/2, 1): found {eps:g}")
    facts = {"assumes": ["Each person gives one answer."], "not_covered": ["Who took part."]}
    return RandomizedResponse(
        value=np.array([measurement(bool(answer)) for answer in truth], dtype=bool),
        keep_probability=keep,
        charge=PrivacyCharge.strict(
            mechanism="randomized_response", epsilon=eps, relation="replace", facts=facts
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyChoice(PrivateAnswer):
    """Position of the chosen candidate (`value`); largest change of a score between neighbors
    (`sensitivity`), and `scale` of the Gumbel noise on each score."""

    value: int
    sensitivity: float
    scale: float

    def cost(self) -> float:
        """2 sensitivity / scale."""
        return 2 * self.sensitivity / self.scale


def exponential_mechanism(
    scores: Any, *, sensitivity: float, epsilon: float, relation: str
) -> NoisyChoice:
    """Choose a candidate with probability proportional to exp(epsilon score / (2 sensitivity)).

    Parameters
    ----------
    scores : array_like, shape (k,)
        Of the candidates, which are public, on the data, higher is better. Confidential.
    sensitivity : float
        Largest change of any score between neighbors of `relation`, above 0: stated by the user
        from how the score is made. A count of records has 1 under either relation.
    epsilon : float
        Above 0, nats.
    relation : {"remove", "replace"}
        The neighbors that `sensitivity` was worked out for.

    Errors as of `laplace_sum`; and for fewer than 2 scores.

    Examples
    --------
    >>> exponential_mechanism([3, 90, 4], sensitivity=1, epsilon=2.0, relation="remove").value
    1
    """
    eps, change = check_positive(epsilon, "epsilon"), check_positive(sensitivity, "sensitivity")
    check_choice(relation, "relation", RELATIONS)
    values = check_vector(scores, "scores")
    if values.size < 2 or not np.isfinite(values).all():
        raise InvalidInput("scores must be finite, and of at least 2 candidates")
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    scale = math.nextafter(2 * change / eps, math.inf)
    with refusals():
        measurement = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
        # Its rho = epsilon^2 / 8 of zCDP is that of the exponential mechanism's epsilon.
        stated = math.sqrt(8 * measurement.map(change))
    if stated > eps * (1 + 1e-12):
        raise InvalidInput(f"epsilon must be within what OpenDP can calibrate: found {eps:g}")
    assumed = (
        "No score changes by more than the stated sensitivity between neighbors, and the "
        "candidates were fixed without looking at the data."
    )
    return NoisyChoice(
        value=int(measurement(values)), sensitivity=change, scale=scale,
        charge=PrivacyCharge.strict(
            mechanism="exponential_mechanism", epsilon=eps, relation=relation,
            facts={"assumes": [assumed]},
        ),
    )  # fmt: skip
