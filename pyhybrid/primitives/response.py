r"""Randomized response: each person's yes or no is kept or turned round before anyone sees it.

Keep the true answer with probability p, give the other one with probability 1 - p. Whatever is
reported, it is at most p / (1 - p) times as likely under one true answer as under the other:

.. math:: \epsilon = \log \frac{p}{1 - p}, \qquad p = \frac{e^{\epsilon}}{1 + e^{\epsilon}}.

With true share t, a reported yes has probability r = t p + (1 - t)(1 - p); solved for t at the
reported share, :math:`\hat t = (\bar r - (1 - p)) / (2 p - 1)` is unbiased. Given the true answers
each report has the variance p (1 - p), hence that of the estimate is exactly
:math:`p (1 - p) / (n (2 p - 1)^2)`.

References
----------
Warner (1965), JASA 60:63-69. [JC]; [DR14] sec. 3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.core.checks import BoolArray, check_each, check_positive, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.primitives.noise import PrivateAnswer, load_opendp
from pyhybrid.privacy.charge import PrivacyCharge


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

    The charge is epsilon for all reports together: a neighboring database differs in one person's
    answer, and each report depends on one answer only.

    Parameters
    ----------
    answers : array_like of bool or of 0 and 1, shape (n,)
        True answers, one per person. Confidential.
    epsilon : float
        Above 0, nats; log(3) keeps three answers of four. Refused if too large for a probability
        below 1. Other errors as of `laplace_sum`.

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
        raise InvalidInput(
            f"epsilon must give a keep probability within (1/2, 1): found {eps:g}, which gives "
            f"{keep:.17g}"
        )
    facts = {"assumes": ["Each person gives one answer."], "not_covered": ["Who took part."]}
    return RandomizedResponse(
        value=np.array([measurement(bool(answer)) for answer in truth], dtype=bool),
        keep_probability=keep,
        charge=PrivacyCharge.strict(
            mechanism="randomized_response", epsilon=eps, relation="replace", facts=facts
        ),
    )
