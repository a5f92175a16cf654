r"""Records that could have been: what anyone of a public support would tell by joining.

Local numbers look at the n records present. Given a declared support of possible records, the same
terms are evaluated for hypothetical ones. Adding record z multiplies the posterior by exp(g_z), so
that its range and deviation under the posterior at hand, and under the one with it, say what it
would cost; putting it in the place of a record adds that record's own.

References
----------
[DRS22] Dong, Roth, Su (2022), Gaussian differential privacy, JRSS B 84:3-37.
[DR19] Durfee, Rogers (2019), NeurIPS: bounded range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.checks import check_log_lik
from pyhybrid.privacy.gaussian_mu import GaussianMu, check_effective, mu_of_terms
from pyhybrid.privacy.ranges import LossRanges, loss_ranges
from pyhybrid.privacy.terms import terms_of

__all__ = ["PossibleRecords", "possible_records"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PossibleRecords:
    """Ranges and deviations over H hypothetical records. Confidential: they depend on the draws.

    Attributes
    ----------
    ranges : LossRanges
        By hypothetical record (H,); `overall` over the support.
    mu : GaussianMu
        By hypothetical record (H,), the neighbor being the database with it added.
    largest_range, largest_mu : int
        Which hypothetical record costs most.
    """

    ranges: LossRanges
    mu: GaussianMu
    largest_range: int
    largest_mu: int


def possible_records(
    log_lik: Any, alpha: Any, *, chains: int = 1, ess: Any = None
) -> PossibleRecords:
    """Loss ranges and mu of records of a declared support that are not in the data.

    Parameters
    ----------
    log_lik : array_like, shape (S, H)
        UNWEIGHTED log-likelihood in nats of H hypothetical records (a grid over the support) at the
        draws of the posterior at hand.
    alpha : array_like, shape (H,)
        The weight that each would get. From frozen quantities, this is exact; where weights are
        computed on the data, it is the map's value with the others' weights held.
    chains, ess
        As for `gaussian_mu`.

    Returns
    -------
    PossibleRecords
        For "remove" charge the larger of these and the numbers of the records present; for
        "replace" the sum of both.

    Raises
    ------
    InvalidInput
        For a wrong shape or weights outside [0, 1].

    Examples
    --------
    >>> grid = [[-1.0, -9.0], [-1.2, -7.0], [-0.9, -8.0], [-1.0, -8.5]]
    >>> possible_records(grid, [1.0, 0.1]).ranges.by_record.round(1)
    array([0.3, 0.2])
    """
    matrix = check_log_lik(log_lik)
    effective = check_effective(ess, matrix.shape[0], matrix.shape[1], chains)
    terms = terms_of(matrix, alpha)
    ranges, mu = loss_ranges(matrix, alpha), mu_of_terms(terms, chains, effective, 1)
    return PossibleRecords(
        ranges=ranges,
        mu=mu,
        largest_range=int(np.argmax(ranges.by_record)),
        largest_mu=int(np.argmax(mu.upper_by_record)),
    )
