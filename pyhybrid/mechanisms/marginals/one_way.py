r"""A column alone: its shares from noisy counts, and its merged bins.

Two-way tables need few bins, or noise drowns them; values need many, or all within a wide bin are
alike. So a column is first measured alone in all bins of its domain, and

.. math:: \mu = n\, \operatorname{softmax}(\log w + s + e),\qquad
    \tilde c \mid \mu \approx N(Q \mu,\ Q \operatorname{diag}(\mu) Q' + \sigma^2),

with w the widths of bins times a t density with 3 degrees of freedom, from which s departs by
little unless counts say so; its center and unit are declared, or are the median and half the
distance of the quartiles of the noisy counts. s is smooth (second differences N(0, 1 / lambda): a
P-spline on the bins, on the scale arsinh((y - median) / unit), where a long tail is few steps long,
so that what noise drowns keeps falling) and e independent, N(0, tau^2); levels have no s. Both
scales maximize the approximate marginal likelihood. Noise that is cut at zero in each of many empty
cells would add up, and move a mean by more than all else. Blocks of bins, wider the further they
are from the center, are a second query where noise is Gaussian: they measure a tail with less noise
than its bins do.

References
----------
Eilers, Marx (1996), Flexible smoothing with B-splines and penalties, Statistical Science 11:89-121.
MacKay (1992), Bayesian interpolation, Neural Computation 4:415-447. Panter, Dite (1951),
Quantization distortion in pulse-count modulation, Proc. IRE 39:44-48 (bins by a power of density).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from pyhybrid.core.checks import FloatArray
from pyhybrid.mechanisms.marginals.domain import NO_PREDICTOR, ColumnDomain, starts_of
from pyhybrid.mechanisms.marginals.log_linear import Likelihood, Measurement

FEWEST_BINS = 3
"""A column of fewer is not smoothed."""
_STEPS, _CLOSE = 60, 1e-3
_SMOOTH, _INDEPENDENT, _START = (1e-3, 1e6), (1e-3, 3.0), (10.0, 0.1)  # of lambda, of tau
_SD_OF_LEVEL = 10.0  # of a log count
_SD_OF_LINE = 1.0  # of what second differences leave free, about the t density
_SPREAD = 1.7  # of the density about it, in units
_TAIL = (2.0, 1.5)  # (df + 1) / 2 of a t density, of even bins and of wider ones far out
_SEEN = 3.5  # deviations of noise above which records far out are there
_FEWEST = 0.25  # records of a merged bin, in parts of what it would have if all had the same


@dataclass(frozen=True, kw_only=True, eq=False)
class OneWay:
    """Posterior of the log counts of a column's cells given its measurements: its `mode` (K,), and
    a `root` (K, R) of the covariance about it."""

    mode: FloatArray
    root: FloatArray

    @property
    def shares(self) -> FloatArray:
        """Of the cells at the mode, shape (K,)."""
        return _softmax(self.mode)

    def sample(self, n: int, rng: np.random.Generator) -> list[FloatArray]:
        """n draws of the shares."""
        normals = rng.standard_normal((n, self.root.shape[1]))
        return [_softmax(self.mode + self.root @ normal) for normal in normals]

    def merged(self, name: str, n: int, domain: ColumnDomain, few: ColumnDomain) -> Measurement:
        """The counts of n records in the cells of `few`, the domain after bins were merged."""
        starts, counts = starts_of(domain, few)[:-1], n * self.shares
        slope = counts[:, None] * (self.root - self.shares @ self.root)
        stddev = np.sqrt(np.square(np.add.reduceat(slope, starts, axis=0)).sum(axis=1))[:, None]
        noisy = np.add.reduceat(counts, starts)[:, None]
        return Measurement(noisy=noisy, clique=(name, NO_PREDICTOR), stddev=stddev)


def _softmax(log_counts: FloatArray) -> FloatArray:
    counts = np.exp(log_counts - log_counts.max())
    return np.asarray(counts / counts.sum())


def smooth(
    measurements: Sequence[Measurement], domain: ColumnDomain, n: int, *, informed: bool = True
) -> OneWay:
    """The posterior of a column's log counts, n records in all.

    `informed`: start from the t density, which knows more than the domain says, so that intervals
    would be too short.
    """
    whole = np.eye(domain.n_cells)
    queries = np.vstack([whole if m.query is None else m.query for m in measurements])
    precisions = np.vstack([np.maximum(m.stddev, 1e-3) ** -2 for m in measurements])
    error = linalg.inv(queries.T @ (precisions * queries))
    noisy = error @ queries.T @ (precisions * np.vstack([m.noisy for m in measurements]))[:, 0]
    prior = _Prior(domain, noisy, informed=informed)
    counts = _Counts(noisy=noisy, error=error, n=n, prior=prior)
    start = prior.design.T @ _first_guess(measurements, counts)
    at, _, root, _ = counts.mode(start, np.array(_START), iterations=_STEPS, close=_CLOSE)
    spread = linalg.solve_triangular(root, whole, lower=True).T
    return OneWay(mode=prior.offset + prior.design @ at, root=np.asarray(prior.design @ spread))


def _first_guess(measurements: Sequence[Measurement], cells: _Counts) -> FloatArray:
    """Log counts of blocks, or with a reference of cells, above all noise, beside the offset, shape
    (K,): where few are expected slopes are about 0, so that no step leads up to them."""
    if len(measurements) == 1:
        return np.zeros(cells.noisy.size)
    widest = min(measurements, key=lambda m: m.noisy.size)
    query = np.eye(cells.noisy.size) if widest.query is None else widest.query
    mu, counts = query @ (cells.n * _softmax(cells.prior.offset)), query @ cells.noisy
    noise = np.sqrt(np.sum((query @ cells.error) * query, axis=1))
    seen = counts > _SEEN * noise
    return np.asarray(query.T @ np.log(np.where(seen, counts, mu) / mu))


class _Prior:
    """Of log counts s + e beside an `offset` (K,), along the directions of s, in which both are
    independent: `design` (K, K), `rough` (B,) the squared second differences of each."""

    def __init__(self, domain: ColumnDomain, noisy: FloatArray, *, informed: bool) -> None:
        edges, self.bins = np.array(domain.bins), domain.binned
        self.sd_of_line = _SD_OF_LINE if informed else _SD_OF_LEVEL
        self.design, self.offset = np.eye(domain.n_cells), np.zeros(domain.n_cells)
        # Widths in steps, so that a level is a cell of one step, at their middle size.
        widths, middle = np.log(np.diff(edges)), (edges[1:] + edges[:-1]) / 2
        self.offset[self.bins] = widths - np.median(widths)
        median, unit = _middle(edges, noisy[self.bins])
        center = median, unit
        if domain.center is not None and domain.unit is not None:
            informed, center = True, (domain.center, domain.unit)
        if informed:
            away = (middle - center[0]) / (_SPREAD * center[1])
            self.offset[self.bins] -= _TAIL[int(np.ptp(widths) > 1)] * np.log1p(away**2)
        rough, self.design[self.bins, self.bins] = linalg.eigh(_roughness(middle, median, unit))
        self.rough = np.maximum(rough, 0)

    def _variances(self, scales: FloatArray) -> tuple[FloatArray, float]:
        """Of s in each direction, shape (B,), and of e, at lambda and tau."""
        smooth = 1 / (scales[0] * self.rough + 1 / self.sd_of_line**2 / self.rough.size)
        return smooth, float(scales[1]) ** 2

    def precision(self, scales: FloatArray) -> FloatArray:
        """Of all directions, shape (K, K)."""
        diagonal = np.full(self.offset.size, 1 / _SD_OF_LEVEL**2)
        smooth, independent = self._variances(scales)
        diagonal[self.bins] = 1 / (smooth + independent)
        return np.diag(diagonal)

    def new_scales(self, effects: FloatArray, root: FloatArray, scales: FloatArray) -> FloatArray:
        """MacKay's update of lambda and tau: s and e given their sum, in each direction."""
        spread = linalg.solve_triangular(root, np.eye(effects.size), lower=True)
        squares = (effects**2 + np.square(spread).sum(axis=0))[self.bins]
        smooth, independent = self._variances(scales)
        part, left = smooth / (smooth + independent), smooth * independent / (smooth + independent)
        rough = float(self.rough @ (part**2 * squares + left))
        tau2 = float(np.mean((1 - part) ** 2 * squares + left))
        new = (self.rough.size - 2) / max(rough, 1e-12), math.sqrt(tau2)
        return np.asarray(np.clip(new, *np.transpose([_SMOOTH, _INDEPENDENT])))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Counts(Likelihood):
    """Of cells whose counts are estimated as `noisy` (K,), with errors of covariance `error`."""

    noisy: FloatArray
    error: FloatArray
    n: int
    prior: _Prior
    farthest = 2.0  # a log count

    def mean(self, effects: FloatArray) -> FloatArray:
        return self.n * _softmax(self.prior.offset + self.prior.design @ effects)

    def local(self, effects: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Of a softmax, and of counts that vary as Poisson ones."""
        slope = mean[:, None] * (self.prior.design - mean @ self.prior.design / self.n)
        return slope, np.diag(mean) + self.error


def _middle(edges: FloatArray, noisy: FloatArray) -> tuple[float, float]:
    """Median and half the distance of the quartiles of noisy counts in bins; counts below zero
    stay, or noise would add up over empty bins."""
    middle, below = (edges[1:] + edges[:-1]) / 2, np.cumsum(noisy)
    at = np.searchsorted(np.maximum.accumulate(below), np.array([0.25, 0.5, 0.75]) * below[-1])
    low, median, high = middle[np.minimum(at, middle.size - 1)]
    return float(median), max(float(high - low) / 2, float(np.median(np.diff(edges))))


def _roughness(middle: FloatArray, median: float, unit: float) -> FloatArray:
    """Matrix (B, B) of squared second differences of bins on the scale arsinh((y - median) / unit):
    free near most records, stiff far out."""
    along = np.arcsinh((middle - median) / unit)
    slopes = np.diff(np.eye(middle.size), axis=0) / np.diff(along)[:, None]
    bends = np.diff(slopes, axis=0) / np.sqrt((along[2:] - along[:-2]) / 2)[:, None]
    center = int(np.clip(np.argmin(np.abs(middle - median)) - 1, 0, middle.size - 3))
    bends /= np.abs(bends[center, center])
    return np.asarray(bends.T @ bends)


def blocks(domain: ColumnDomain) -> FloatArray:
    """A query (m, K), for tails: bins whose distance from the center, or from where most are
    expected, is alike within a factor of 2; levels and missing values alone."""
    edges = np.array(domain.bins)
    low, high = edges[0], edges[-1]
    expected = max(low, 0.0) if low >= 0 or domain.levels else (low + high) / 2
    center = expected if domain.center is None else domain.center
    least = max((domain.unit or (high - low) / 100) / 2, domain.step or 0.0)
    far = least * 2.0 ** np.arange(np.ceil(np.log2(max((high - low) / least, 1))) + 1)
    cuts = np.sort(np.concatenate([center - far, [center], center + far]))
    at = np.unique(np.searchsorted(edges[1:-1], cuts))
    block = np.arange(domain.n_cells)
    inner = np.searchsorted(at, np.arange(domain.n_bins), side="left")
    block[domain.binned] = len(domain.levels) + inner
    places = np.unique(block, return_inverse=True)[1]
    return np.eye(places.max() + 1)[:, places]


def merged_domain(domain: ColumnDomain, shares: FloatArray, most_bins: int) -> ColumnDomain:
    """The domain with neighboring bins merged to at most so many, of equal parts of the root of
    share times width: equal shares would put a whole tail into one bin, equal widths nearly all
    records. Bins that would hold too little go to a neighbor; two are left."""
    n_bins, held = domain.n_bins, shares[domain.binned]
    if n_bins <= most_bins:
        return domain
    along = np.cumsum(np.sqrt(held * np.diff(domain.bins)))
    inner = np.searchsorted(along, along[-1] * np.arange(1, most_bins) / most_bins) + 1
    # where all are in the last bin two are left, as a domain needs
    inner = np.unique(inner[inner < n_bins] if (inner < n_bins).any() else n_bins - 1)
    least = _FEWEST * held.sum() / most_bins
    below, cuts = np.concatenate([[0.0], np.cumsum(held)]), [0, *inner, n_bins]
    while len(cuts) > 3:
        sizes = np.diff(below[cuts])
        thin = int(np.argmin(sizes))
        if sizes[thin] >= least:
            break
        left = thin > 0 and (thin == len(sizes) - 1 or sizes[thin - 1] <= sizes[thin + 1])
        del cuts[thin if left else thin + 1]
    return replace(domain, bins=tuple(domain.bins[cut] for cut in cuts))
