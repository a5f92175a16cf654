r"""Losses rarer than any draw shows, where the Gaussian limit does not hold.

A range of S draws says nothing of losses rarer than about 1/S. The loss of a record depends on the
distribution of its term g alone, and g of ordered draws is a function h of normal scores z. h is
continued beyond the draws by its expansion to second order,

.. math:: h(z) = a + b z + c (z^2 - 1), \quad b = E[g z], \quad c = E[g (z^2 - 1)] / 2,

under which z is N(0, 1) with the record and normal without it, too: the posterior without the
record has variance v = 1/(1 + 2c) and mean -b v, and the loss of a draw is

.. math:: L(z) = b z + c z^2 + b^2 v / 2 + \log(v) / 2.

Linear terms (c = 0) are the Gaussian limit; c is what a curved term, and a posterior without the
record that is wider or narrower, add to it. Both directions are followed to probability delta.

References
----------
[CF38] Cornish, Fisher (1938), Revue de l'Institut International de Statistique 5:307-320.
[DRS22] Dong, Roth, Su (2022), Gaussian differential privacy, JRSS B 84:3-37.
[S22] Savitsky, Williams, Hu (2022), JMLR 23:1-37, sec. 2: loss but for a probability (pDP).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from pyhybrid.core.checks import FloatArray
from pyhybrid.privacy.effective_draws import effective_draws
from pyhybrid.privacy.gaussian_mu import STANDARD_ERRORS

__all__ = ["expansion_of", "loss_of_expansion"]


def expansion_of(terms: FloatArray, chains: int) -> FloatArray:
    """Upper end of b, and both ends of c, of each column.

    Parameters
    ----------
    terms : ndarray, shape (S, k)
        Finite; draws stacked chain after chain.
    chains : int

    Returns
    -------
    ndarray, shape (3, k)
        b and c are two standard errors of a normal term away from their estimates: b / sqrt(2 S),
        b / sqrt(6 S), S being effective draws.
    """
    moved = terms - terms.mean(axis=0)
    size = np.abs(moved).max(axis=0)
    shown = moved / np.where(size > 0, size, 1.0)  # powers stay in the range of doubles
    few = np.minimum(effective_draws(shown**2, chains), effective_draws(shown**3, chains))
    z = ndtri((np.arange(len(terms)) + 0.5) / len(terms))
    ordered = np.sort(moved, axis=0)
    b, c = z @ ordered / len(z), (z**2 - 1) @ ordered / (2 * len(z))
    margin = STANDARD_ERRORS * b / np.sqrt(few)
    return np.stack([b + margin / np.sqrt(2), c - margin / np.sqrt(6), c + margin / np.sqrt(6)])


def loss_of_expansion(expansion: FloatArray, delta: float) -> FloatArray:
    """Loss of one released draw, nats, exceeded with probability delta at most; by record, (k,).

    Parameters
    ----------
    expansion : ndarray, shape (3, k)
        As `expansion_of` gives it.
    delta : float
        In (0, 1).

    Returns
    -------
    ndarray, shape (k,)
        The larger of both directions and both ends of c. Infinite where c may be so far below 0
        that there is no posterior without the record.
    """
    slope, *bends = expansion
    return np.maximum(*(_loss(slope, bend, -float(ndtri(delta / 2))) for bend in bends))


def _loss(b: FloatArray, c: FloatArray, depth: float) -> FloatArray:
    exists = 1 + 2 * c > 0
    c = np.where(exists, c, 0.0)
    variance = 1 / (1 + 2 * c)
    at = -0.5 * b / np.where(c == 0, np.inf, c)  # where the quadratic turns

    def loss(z: FloatArray) -> FloatArray:
        return b * z + c * z**2 + b**2 * variance / 2 + np.log(variance) / 2

    def largest(sign: int, center: FloatArray, reach: FloatArray) -> FloatArray:
        ends = (center - reach, center + reach, np.clip(at, center - reach, center + reach))
        return np.asarray(np.max([sign * loss(z) for z in ends], axis=0))

    found = np.maximum(
        largest(1, np.zeros_like(b), np.full_like(b, depth)),
        largest(-1, -b * variance, depth * np.sqrt(variance)),
    )
    return np.asarray(np.where(exists, found, np.inf))
