r"""Records that could have been: what anyone of a public support would tell by joining.

Local numbers look at the n records present. Given a declared support of possible records, the same
terms are evaluated for hypothetical ones. Adding record z multiplies the posterior by exp(g_z), so
that its range and deviation under the posterior at hand, and under the one with it, say what it
would cost [DR19], [DRS22]; putting it in the place of a record adds that record's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, IntArray
from pyhybrid.privacy.bounds import LossRanges, loss_ranges
from pyhybrid.privacy.gaussian_limit import GaussianMu, effective_of, mu_of_terms
from pyhybrid.privacy.local_account import LocalAccount
from pyhybrid.privacy.log_lik import LogLik, terms_of

_MOVERS = 100  # possible records whose effect on the weights of others is computed


@dataclass(frozen=True, kw_only=True, eq=False)
class PossibleRecords:
    """Ranges and deviations over H hypothetical records. Confidential: they depend on the draws.

    Attributes
    ----------
    ranges, mu : LossRanges and GaussianMu
        By hypothetical record (H,), the neighbor being the database with it added; overall over
        the support.
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

    For "remove" charge the larger of these and the numbers of the records present; for "replace"
    the sum of both.

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

    Examples
    --------
    >>> grid = [[-1.0, -9.0], [-1.2, -7.0], [-0.9, -8.0], [-1.0, -8.5]]
    >>> possible_records(grid, [1.0, 0.1]).ranges.by_record.round(1)
    array([0.3, 0.2])
    """
    terms = terms_of(log_lik, alpha)
    mu = mu_of_terms(terms, effective_of(terms, ess, chains), 1)
    ranges = loss_ranges(log_lik, alpha)
    return PossibleRecords(
        ranges=ranges,
        mu=mu,
        largest_range=int(np.argmax(ranges.by_record)),
        largest_mu=int(np.argmax(mu.upper_by_record)),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class PossibleAccount:
    """The account of one draw over records that could have been, each added. Confidential."""

    account: LocalAccount  # by possible record
    lipschitz_bound: float  # largest weighted absolute log-likelihood of any, nats
    costliest: Mapping[str, Any]  # the one with the largest mu, by column
    n_looked_at: int  # on the grid

    def __repr__(self) -> str:
        return f"<PossibleAccount of {self.n_looked_at} possible records>"


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightsWith:
    """Weights of n records with each of H possible ones added. `movers` change others' weights:
    `joined` gives the weights (n,) of those present. `examined` move none, or most.
    Confidential."""

    present: FloatArray  # (n,) weights of the database as it is
    own: FloatArray  # (H,) weight of each possible record in the database with it
    movers: IntArray  # (k,)
    joined: Callable[[int], FloatArray]
    examined: IntArray  # (h,)

    @classmethod
    def held(cls, present: FloatArray, own: FloatArray) -> WeightsWith:
        """Weights that no other record changes."""
        return cls(
            present=present,
            own=own,
            movers=np.zeros(0, dtype=np.intp),
            joined=lambda _: present,
            examined=np.arange(own.size),
        )

    def mapped(
        self, present: Callable[[FloatArray], FloatArray], own: Callable[[FloatArray], FloatArray]
    ) -> WeightsWith:
        """The same after a map that changes each weight by itself."""
        return replace(
            self,
            present=present(self.present),
            own=own(self.own),
            joined=lambda h: present(self.joined(h)),
        )


def weights_with(
    weigh: Callable[[FloatArray], FloatArray],
    f: FloatArray,
    possible: FloatArray,
    *,
    moves: Callable[[FloatArray], Any],
    joined: Callable[[int], tuple[FloatArray, float]] | None = None,
) -> WeightsWith:
    """Weights of a map of all values `f` (n,) with each of `possible` (H,) added; `moves` says how
    much each moves the others' (H,), `joined` gives all others' values (n,) and its own with it."""
    present = weigh(f)
    size = np.broadcast_to(np.asarray(moves(possible), dtype=np.float64), possible.shape)
    movers = np.flatnonzero(size > 0)
    farthest = movers[np.argsort(-size[movers], kind="stable")[:_MOVERS]]
    still = np.flatnonzero(size <= 0)
    distinct, place = np.unique(possible, return_inverse=True)
    own = np.array([weigh(np.append(f, value))[-1] for value in distinct])[place]

    def whole(h: int) -> FloatArray:
        return weigh(np.append(*((f, possible[h]) if joined is None else joined(h))))

    own[farthest] = [whole(int(h))[-1] for h in farthest]
    return WeightsWith(
        present=present,
        own=own,
        movers=farthest,
        joined=lambda h: whole(h)[:-1],
        examined=np.sort(np.concatenate([still, farthest])),
    )


def joined_terms(log_lik: LogLik, possible: FloatArray, weights: WeightsWith) -> FloatArray:
    """T of the possible records that are examined, shape (S, h): what adding z changes, alpha_z f_z
    + sum_j (alpha_j(x with z) - alpha_j(x)) f_j; `possible` (S, H) is unweighted."""
    chosen = weights.examined
    terms = np.zeros((possible.shape[0], chosen.size))
    np.multiply(possible[:, chosen], weights.own[chosen], out=terms, where=weights.own[chosen] > 0)
    moving = np.flatnonzero(np.isin(chosen, weights.movers))
    if moving.size:
        change = np.stack([weights.joined(int(chosen[place])) for place in moving], axis=1)
        change -= weights.present[:, None]
        terms[:, moving] += log_lik.totals(change)
    return terms
