"""What a cap costs: every neighbor enumerated, beside the paper's statement.

[C25] says that one draw costs epsilon = 2 M if one record is replaced. A posterior draw depends on
the data through the sum of the clipped terms and through the constant that normalizes it. If a
record leaves, the sum moves by at most M, and so does the logarithm of the constant: 2 M, under
relation "remove". If a record is replaced, its term moves from one end of [-M, M] to the other: by
2 M where log-densities take both signs, so that the loss reaches 4 M; where no density exceeds 1
all terms lie in [-M, 0], and 2 M is enough. Beta densities exceed 1. `replaced_and_removed`
enumerates both losses exactly. A release says which relation it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray
from pyhybrid.studies.study import Claim

__all__ = ["COST_OF_A_CAP", "replaced_and_removed"]


def replaced_and_removed(terms: FloatArray, *, cap: float) -> tuple[float, float]:
    """Largest privacy loss of one draw if a record is replaced, and if one is removed, in nats.

    By enumeration of all databases of two records over a finite set of possible ones and a finite
    set of parameters with equal prior weights: nothing is sampled and nothing bounded.

    Parameters
    ----------
    terms : ndarray, shape (T, v)
        Log-density of each possible record at each parameter, unclipped.
    cap : float
        M, nats.
    """
    clipped = np.clip(terms, -cap, cap)
    values = range(clipped.shape[1])

    def log_posterior(records: Sequence[int]) -> FloatArray:
        total = clipped[:, list(records)].sum(axis=1)
        return np.asarray(total - logsumexp(total))

    pairs = list(product(values, values))
    kept = {pair: log_posterior(pair) for pair in pairs}
    removed = max(
        float(np.abs(kept[first, second] - log_posterior([first])).max()) for first, second in pairs
    )
    replaced = max(
        float(np.abs(kept[first, second] - kept[first, other]).max())
        for first, second in pairs
        for other in values
    )
    return replaced, removed


def _cost_of_a_cap(_: pd.DataFrame) -> tuple[str, bool]:
    """A narrow density at one of two places against one at many: terms of both signs."""
    cap = 2.5
    terms = np.full((400, 2), -30.0)
    terms[0] = (-30.0, 30.0)
    terms[1:] = (30.0, -30.0)
    both, removed = replaced_and_removed(terms, cap=cap)
    below = replaced_and_removed(np.minimum(terms, 0.0), cap=cap)[0]
    found = (
        f"M = {cap:g}: removed {removed:.3f}, replaced {both:.3f}, replaced where no density "
        f"exceeds 1 {below:.3f}"
    )
    return found, both <= 2 * cap


COST_OF_A_CAP = Claim(
    text="one draw costs 2 M if a record is replaced",
    check=_cost_of_a_cap,
    note="2 M is the cost of a record that leaves; where densities exceed 1, as Beta's do, "
    "replacing one costs up to 4 M: enumerated at M = 2.5",
)
