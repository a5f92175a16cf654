r"""A column alone: smooth shares of its cells from one noisy table, and which bins are merged.

Two-way tables need few bins, or noise drowns them; values need many, or all within a wide bin are
alike. So a column is first measured alone in all bins of its domain, and

.. math:: \log \mu_k = a + \log w_k + s_k + e_k,\qquad
    \tilde c_k \mid \mu \approx N(\mu_k,\ \mu_k + \sigma^2),

with w the widths of bins, s smooth (second differences N(0, 1 / lambda): a P-spline on the bins)
and e independent, N(0, tau^2), for heaps; levels have no s. Both scales maximize the approximate
marginal likelihood. What noise drowns is smoothed over: a tail without records keeps falling.

All of it is a function of the noisy counts and the public domain: post-processing.

References
----------
Eilers, Marx (1996), Flexible smoothing with B-splines and penalties, Statistical Science 11:89-121.
MacKay (1992), Bayesian interpolation, Neural Computation 4:415-447. Panter, Dite (1951),
Quantization distortion in pulse-count modulation, Proc. IRE 39:44-48 (bins by a power of density).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import linalg

from pyhybrid.core.checks import FloatArray
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.mechanisms.marginals.spread import spread

__all__ = ["OneWay", "fit_one_way", "merged", "within"]

_STEPS, _CLOSE = 60, 1e-3
_SMOOTH, _OWN = (1e-3, 1e6), (1e-3, 3.0)  # ends of lambda and of tau
_SD_OF_LINE = 10.0  # of what second differences leave free
_LEAST = 0.5  # records: what is not in a reference may be in the data
_FEWEST = 0.25  # records of a merged bin, in parts of what it would have if all had the same
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class OneWay:
    """Posterior of the log counts of a domain's cells given one noisy table.

    Attributes
    ----------
    mode : ndarray, shape (K,)
    root : ndarray, shape (K, R)
        A root of the covariance about it.
    """

    mode: FloatArray
    root: FloatArray

    @property
    def shares(self) -> FloatArray:
        """Of the cells at the mode, shape (K,)."""
        return _shares(self.mode)

    def sample(self, n: int, rng: np.random.Generator) -> list[FloatArray]:
        """n draws of the shares."""
        each = rng.standard_normal((n, self.root.shape[1]))
        return [_shares(self.mode + self.root @ own) for own in each]


def _shares(log_counts: FloatArray) -> FloatArray:
    found = np.exp(log_counts - log_counts.max())
    return np.asarray(found / found.sum())


def fit_one_way(
    noisy: FloatArray, *, variance: float, domain: ColumnDomain, known: FloatArray | None = None
) -> OneWay:
    """Smooth one noisy table.

    Parameters
    ----------
    noisy : ndarray, shape (K,)
        Counts of the domain's cells, in records.
    variance : float
        Of the noise of a cell, >= 0.
    domain : ColumnDomain
        With at least three bins.
    known : ndarray, shape (K,), optional
        Counts of the same cells in a reference, times its weight, without noise.
    """
    design, second = _design(domain)
    offset = _log_widths(domain)
    scales = (1.0, 0.5)
    at = np.zeros(design.shape[1])
    total = max(float(noisy.sum()), 1.0)
    at[0] = np.log(total) - np.log(np.exp(offset).sum())
    for _ in range(_STEPS):
        precision = _precision(domain, second, scales)
        moved, root = _step(at, noisy, variance, known, design, offset, precision)
        found = _new_scales(moved, root, second, domain)
        changed = np.abs(np.log(np.divide(found, scales))).max() + np.abs(moved - at).max()
        at, scales = moved, found
        if changed < _CLOSE:
            break
    spread = linalg.solve_triangular(root, np.eye(at.size), lower=True).T
    return OneWay(mode=offset + design @ at, root=np.asarray(design @ spread))


def _log_widths(domain: ColumnDomain) -> FloatArray:
    """Of cells: of bins in steps, so that a level is a cell of one step, at their middle size."""
    found = np.zeros(domain.n_cells)
    first, n_bins = len(domain.levels), len(domain.bins) - 1
    widths = np.log(np.diff(domain.bins))
    found[first : first + n_bins] = widths - np.median(widths)
    return found


def _design(domain: ColumnDomain) -> tuple[FloatArray, FloatArray]:
    """Of a constant, s by bin and e by cell, shape (K, 1 + B + K); second differences (B, B)."""
    first, n_bins, n_cells = len(domain.levels), len(domain.bins) - 1, domain.n_cells
    smooth = np.zeros((n_cells, n_bins))
    smooth[first : first + n_bins] = np.eye(n_bins)
    design = np.hstack([np.ones((n_cells, 1)), smooth, np.eye(n_cells)])
    differences = np.diff(np.eye(n_bins), n=2, axis=0)
    return design, differences.T @ differences


def _precision(domain: ColumnDomain, second: FloatArray, scales: tuple[float, float]) -> FloatArray:
    n_bins, n_cells = second.shape[0], domain.n_cells
    free = np.full(n_cells, 1 / _SD_OF_LINE**2)
    first = len(domain.levels)
    free[first : first + n_bins] = 1 / scales[1] ** 2
    line = np.eye(n_bins) / _SD_OF_LINE**2 / n_bins
    constant = np.full((1, 1), 1e-6)
    return np.asarray(linalg.block_diag(constant, scales[0] * second + line, np.diag(free)))


def _step(
    at: FloatArray,
    noisy: FloatArray,
    variance: float,
    known: FloatArray | None,
    design: FloatArray,
    offset: FloatArray,
    precision: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """One Gauss-Newton step, halved until it helps, and the root of the precision before it."""

    def mean(here: FloatArray) -> FloatArray:
        return np.exp(np.clip(offset + design @ here, -30, 30))

    mu = mean(at)
    weight = 1 / (mu + max(variance, 1e-6))
    if known is not None:
        times = max(float(noisy.sum()), 1.0) / known.sum()
        own = 1 / (times * (mu + _LEAST))
        noisy = (weight * noisy + own * times * known) / (weight + own)
        weight = weight + own
    slope = mu[:, None] * design
    root = linalg.cholesky(slope.T @ (weight[:, None] * slope) + precision, lower=True)
    move = linalg.cho_solve((root, True), slope.T @ (weight * (noisy - mu)) - precision @ at)

    def objective(here: FloatArray) -> float:
        rest = noisy - mean(here)
        return float(rest @ (weight * rest) + here @ precision @ here)

    before, length = objective(at), 1.0
    while length > 1e-3 and objective(at + length * move) > before:
        length /= 2
    return np.asarray(at + length * move), root


def _new_scales(
    at: FloatArray, root: FloatArray, second: FloatArray, domain: ColumnDomain
) -> tuple[float, float]:
    """MacKay's update of lambda and tau."""
    n_bins, first = second.shape[0], len(domain.levels)
    spread = linalg.cho_solve((root, True), np.eye(at.size))
    s = slice(1, 1 + n_bins)
    e = slice(1 + n_bins + first, 1 + 2 * n_bins + first)
    rough = float(at[s] @ second @ at[s] + np.sum(second * spread[s, s]))
    own = float(at[e] @ at[e] + np.trace(spread[e, e]))
    smooth = np.clip((n_bins - 2) / max(rough, 1e-12), *_SMOOTH)
    return float(smooth), float(np.clip(np.sqrt(own / n_bins), *_OWN))


def merged(domain: ColumnDomain, shares: FloatArray, most_bins: int) -> ColumnDomain:
    """The domain with neighboring bins merged to at most so many.

    Bins have equal parts of the root of share times width: between equal shares, which put a whole
    tail into one bin, and equal widths, which put nearly all records into one.

    Parameters
    ----------
    domain : ColumnDomain
    shares : ndarray, shape (K,)
        Of its cells, from noisy counts.
    most_bins : int
    """
    first, n_bins = len(domain.levels), len(domain.bins) - 1
    if n_bins <= most_bins:
        return domain
    own = shares[first : first + n_bins]
    along = np.cumsum(np.sqrt(own * np.diff(domain.bins)))
    inner = np.searchsorted(along, along[-1] * np.arange(1, most_bins) / most_bins) + 1
    inner = np.unique(inner[inner < n_bins])
    if not inner.size:  # all in the last bin: two are left, as a domain needs
        inner = np.array([n_bins - 1])
    cuts = _with_records([0, *inner, n_bins], own, most_bins)
    return replace(domain, bins=tuple(domain.bins[cut] for cut in cuts))


def _with_records(cuts: Sequence[int], shares: FloatArray, most_bins: int) -> list[int]:
    """Cuts without the bins that hold too little, the thinnest first; two bins are left."""
    least = _FEWEST * shares.sum() / most_bins
    below = np.concatenate([[0.0], np.cumsum(shares)])
    found = list(cuts)
    while len(found) > 3:
        held = np.diff(below[found])
        thin = int(np.argmin(held))
        if held[thin] >= least:
            break
        left = thin > 0 and (thin == len(held) - 1 or held[thin - 1] <= held[thin + 1])
        del found[thin if left else thin + 1]
    return found


def within(
    domain: ColumnDomain,
    few: ColumnDomain,
    cells: IntArray,
    shares: FloatArray,
    rng: np.random.Generator,
    *,
    even: bool = False,
) -> IntArray:
    """A cell of `domain` for each record, drawn within its cell of `few`, shape (n,).

    Parameters
    ----------
    domain, few : ColumnDomain
        Before and after bins were merged.
    cells : ndarray of int, shape (n,)
        Of `few`.
    shares : ndarray, shape (K,)
        Of the cells of `domain`.
    even : bool, default False
        Spread the records of each cell of `few`, in place of one by one.
    """
    first = len(domain.levels)
    cuts = first + np.searchsorted(domain.bins, few.bins)  # cells of domain where bins of few start
    below = np.concatenate([[0.0], np.cumsum(shares)])
    start = np.concatenate([np.arange(first), cuts, [domain.n_cells]])  # a missing cell comes last
    low, high = below[start[cells]], below[start[cells + 1]]
    at = low + (high - low) * (spread(cells, rng) if even else rng.random(cells.size))
    found = np.searchsorted(below, at, side="right") - 1
    return np.asarray(np.clip(found, start[cells], start[cells + 1] - 1), dtype=np.int64)
