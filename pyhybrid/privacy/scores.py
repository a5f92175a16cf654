r"""Clipped scores: noisy Fisher scoring with bounded influence, arrays in and arrays out.

At a public point :math:`\theta_k` each record has a score :math:`s_i`, the gradient of its
log-likelihood (d,). With whitening W, :math:`W' I W = 1` for the information I of all records,

.. math::

    \psi_i = W's_i \min(1, C / |W's_i|), \qquad q = \sum_i \psi_i + N(0, (C / \mu_k)^2 1_d),

    G = \sum_i E[\psi_i s_i'], \qquad b = \sum_i E[\psi_i], \qquad
    S = \sum_i E[\psi_i \psi_i'] + (C / \mu_k)^2 1_d, \qquad A = G' S^{-1} G + P,

    \theta_{k+1} = \theta_k + A^{-1} (G' S^{-1} (q - b) + \nabla \log p(\theta_k)),

with P the precision of the prior. I, G, b and C come from outcomes simulated at :math:`\theta_k`
and from the predictors, which are public: they cost nothing. q is the only look at the outcomes.
The change of one record moves the sum by C at most (`remove`) or 2 C (`replace`), so that a round
is :math:`\mu_k`-GDP and rounds compose to :math:`\mu = \sqrt{\sum \mu_k^2}`. Subtracting b makes
the step unbiased at the model [KSC89]: clipping costs variance, not bias.

Linear about :math:`\theta_k`, :math:`N(\theta_{k+1}, A^{-1})` is the posterior given q, whose noise
is known: a coordinate that few records share stays near its prior, in place of being noise. Without
noise and clipping the step is Newton's.

References
----------
[KSC89] Kuensch, Stefanski, Carroll (1989), conditionally unbiased bounded-influence estimation,
JASA 84. [DRS22] Dong, Roth, Su (2022), Gaussian differential privacy, JRSS B. [ABL23]
Avella-Medina, Bradshaw, Loh (2023), Annals of Statistics 51.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_positive
from pyhybrid.core.errors import InvalidInput

STEPS_OF_CLIP = 2**30
"""Whole-number steps that the clip C is divided in, for the noise."""
CLIPS = tuple(0.5 * 2 ** (k / 2) for k in range(25))
"""Clips that are tried, as multiples of sqrt(d / n)."""
SLACK = 1.15
"""Over the smallest predicted error that a clip may have,"""
AFFORDED = 2.0
"""or over the error without privacy, whichever is more: the largest such clip is taken."""
LARGEST_DEVIATION = 0.75
"""Of a linear predictor, in a step or draw: of a logarithm, a mean 1.3 times too large."""
_SMALLEST_SPREAD = 1e-12  # of whitened sums: a coordinate whose scores are all 0
_MOST_NARROWED = 10  # times d, the rows that a covariance is narrowed by


def whitening_of(information: FloatArray) -> FloatArray:
    """W (d, d) with W' I W = 1, of a positive definite information (d, d): with S its diagonal,
    S^(-1/2) times the symmetric root of the inverse of S^(-1/2) I S^(-1/2)."""
    size = 1 / np.sqrt(np.diag(information))
    values, vectors = np.linalg.eigh(information * np.outer(size, size))
    root = vectors / np.sqrt(np.maximum(values, 1e-12 * values.max()))
    return np.asarray(size[:, None] * (root @ vectors.T))


def clip_scores(scores: FloatArray, whitening: FloatArray, clip: float) -> FloatArray:
    """Whitened scores with a norm of at most C.

    Parameters
    ----------
    scores : ndarray, shape (n, d)
        One row for each record, or sums over the records of a unit. A row that is not finite
        becomes 0.
    whitening : ndarray, shape (d, d)
    clip : float
        C, above 0.

    Returns
    -------
    ndarray, shape (n, d)

    Examples
    --------
    >>> clip_scores(np.array([[3.0, 4.0], [0.3, 0.4], [np.inf, 0.0]]), np.eye(2), 1.0)
    array([[0.6, 0.8],
           [0.3, 0.4],
           [0. , 0. ]])
    """
    check_positive(clip, "clip")
    with np.errstate(all="ignore"):
        # Not by BLAS, whose rows depend on how many there are: sums over parts must add up.
        rows = np.einsum("ij,kj->ik", scores, np.ascontiguousarray(whitening.T))
    whitened, norms = _finite(rows)
    return np.asarray(whitened * _shrinkage(norms, clip)[:, None])


def whole_scores(clipped: FloatArray, clip: float) -> npt.NDArray[np.int64]:
    """Clipped scores as whole numbers of steps of C / 2^30, rounded towards 0, shape (n, d).

    Rounding towards 0 makes no row longer, so that the sensitivity of the sum is 2^30 steps (C),
    or twice that under `replace`. What floating point may add to a row is taken off again by exact
    arithmetic: no row of the result is longer than 2^30.
    """
    steps = np.trunc(clipped * (STEPS_OF_CLIP / clip)).astype(np.int64)
    too_long = _longer_than_clip(steps)
    for _ in range(steps.shape[1] + 1):
        if not too_long.size:
            break
        largest = np.abs(steps[too_long]).argmax(axis=1)
        steps[too_long, largest] -= np.sign(steps[too_long, largest])
        too_long = _longer_than_clip(steps)
    steps[too_long] = 0  # never reached for rows of `clip_scores`
    return steps


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoringDesign:
    """What a round knows before it looks at an outcome, in the symbols of the module. Public."""

    whitening: FloatArray  # W, (d, d)
    clip: float  # C
    information: FloatArray  # I, (d, d), of the records and the prior
    jacobian: FloatArray  # G + W'P, (d, d)
    center: FloatArray  # b, (d,)
    variance: FloatArray  # (d, d) sum of E[psi psi'], of the sampling of records

    def covariance(self, noise_sd: float) -> FloatArray:
        """Sampling covariance (d, d) of a step by (G + W'P)^-1, by which C is chosen, under noise
        of this deviation; that of a release is `posterior_covariance`."""
        inverse = np.linalg.inv(self.jacobian)
        spread = self.variance + noise_sd**2 * np.eye(len(self.center))
        return np.asarray(inverse @ spread @ inverse.T)


def scoring_design(
    scores: FloatArray,
    precision: FloatArray,
    *,
    mu: float,
    sensitivity: float = 1.0,
    n: int | None = None,
    weighted: FloatArray | None = None,
    clips: Sequence[float] | None = None,
) -> ScoringDesign:
    """W, C, G and b of a round, from scores of simulated outcomes.

    C is chosen on a grid of multiples of sqrt(d / n), for each of which the variance of the
    estimate is predicted, in units of what the model has without privacy. The largest C is taken
    whose variance is within `SLACK` of the smallest, or within `AFFORDED` of that without privacy:
    a larger C costs noise and forgives a model that does not hold, such as tails that are longer.
    With many records noise is cheap, and next to nothing is clipped; the first C beyond the longest
    simulated score is the largest.

    Parameters
    ----------
    scores : ndarray, shape (R, n_rows, d)
        Scores of R simulated outcomes of each record (or unit) at the round's point.
    precision : ndarray, shape (d, d)
        P, minus the second derivative of the log prior.
    mu : float
        Of the round, above 0.
    sensitivity : float, default 1
        Of the sum of clipped scores in units of C: 1 for `remove`, 2 for `replace`.
    n : int, optional
        Number of records that the n_rows stand for: n_rows if omitted.
    weighted : ndarray, shape (R, n_rows, d), optional
        The scores times survey weights, which are clipped in their place.
    clips : sequence of float, optional
        Multiples of sqrt(d / n) that are tried: `CLIPS` if omitted.
    """
    repeats, rows, d = scores.shape
    total = rows if n is None else n
    share = total / (rows * repeats)
    plain = finite_rows(scores.reshape(-1, d))
    flat = plain if weighted is None else finite_rows(weighted.reshape(-1, d))
    information = share * flat.T @ flat + precision
    whitening = whitening_of(information)
    whitened = flat @ whitening
    # In whitened coordinates and units of the prior-free deviation, the criterion is a trace.
    half = np.linalg.inv(whitening)
    norms = np.sqrt((whitened**2).sum(axis=1))
    tried, enough = [], float(norms.max())
    for multiple in CLIPS if clips is None else clips:
        clip = multiple * float(np.sqrt(d / total))
        shrunk = whitened * _shrinkage(norms, clip)[:, None]
        jacobian = share * shrunk.T @ plain + whitening.T @ precision
        variance = share * shrunk.T @ shrunk
        # sum E[w] = 0 at the model: the mean of what is clipped off has the smaller error.
        center = share * (shrunk - whitened).sum(axis=0)
        design = ScoringDesign(
            whitening=whitening, clip=clip, information=information, jacobian=jacobian,
            center=center, variance=variance,
        )  # fmt: skip
        try:
            spread = half @ design.covariance(sensitivity * clip / mu) @ half.T
        except np.linalg.LinAlgError:
            continue
        tried.append((float(np.trace(spread)), design))
        if clip > enough:  # nothing is clipped: more would be noise alone
            break
    if not tried:
        raise InvalidInput("scores must span all coordinates: G is singular at every clip")
    most = max(SLACK * min(error for error, _ in tried), AFFORDED * d)
    return [design for error, design in tried if error <= most][-1]


def scoring_step(
    theta: FloatArray,
    noisy_sum: FloatArray,
    design: ScoringDesign,
    prior_gradient: FloatArray,
    precision: FloatArray,
    *,
    noise_sd: float,
    predictors: FloatArray | None = None,
    largest: float = 1.5,
) -> FloatArray:
    """The next point (d,), from the noisy sum q (d,) at `theta` (d,).

    Parameters
    ----------
    theta, noisy_sum, prior_gradient : ndarray, shape (d,)
        The last is the gradient of the log prior at theta.
    design : ScoringDesign
    precision : ndarray, shape (d, d)
        P, as the design was made with.
    noise_sd : float
        Of the noise of each coordinate of q: C / mu, or 2 C / mu under `replace`.
    predictors : ndarray, shape (n, d), optional
        Derivative of the linear predictor by the coordinates: the step uses the `narrowed`
        covariance, as a point that noise took far away would seem well known there, and is
        shortened until it moves the linear predictor by at most `largest` (root mean square), and
        a coordinate that the linear predictor does not have (a column of 0) by as much.
    largest : float, default 1.5
    """
    _, weighted = _of_sum(design, precision, noise_sd)
    covariance = posterior_covariance(design, precision, noise_sd=noise_sd)
    if predictors is not None:
        covariance = narrowed(covariance, predictors)
    step = covariance @ (weighted @ (noisy_sum - design.center) + prior_gradient)
    if predictors is not None:
        moved = float(np.sqrt(np.mean((predictors @ step) ** 2)))
        others = np.abs(step[~predictors.any(axis=0)]).max(initial=0.0)
        step = step * min(1.0, largest / max(moved, float(others), 1e-300))
    return np.asarray(theta + step)


def posterior_covariance(
    design: ScoringDesign, precision: FloatArray, *, noise_sd: float
) -> FloatArray:
    """Covariance (d, d) of theta given a noisy sum; arguments as of `scoring_step`."""
    plain, weighted = _of_sum(design, precision, noise_sd)
    covariance = np.linalg.inv(weighted @ plain + precision)
    return np.asarray((covariance + covariance.T) / 2)


def _of_sum(
    design: ScoringDesign, precision: FloatArray, noise_sd: float
) -> tuple[FloatArray, FloatArray]:
    """G and G' S^-1, (d, d)."""
    plain = design.jacobian - design.whitening.T @ precision
    spread = design.variance + (noise_sd**2 + _SMALLEST_SPREAD) * np.eye(len(plain))
    return plain, np.linalg.solve(spread, plain).T


def narrowed(
    covariance: FloatArray, predictors: FloatArray, largest: float = LARGEST_DEVIATION
) -> FloatArray:
    """A covariance (d, d) under which no linear predictor, a row of `predictors` (n, d), has a
    deviation above `largest`, nor a coordinate that no row has: conditioned on one such row after
    the other, the farthest first, which leaves what is known better as it is."""
    alone = np.eye(len(covariance))[~predictors.any(axis=0)]
    rows, narrow = np.vstack([predictors, alone]), covariance.copy()
    for _ in range(_MOST_NARROWED * len(covariance)):
        along = rows @ narrow
        variance = np.einsum("ij,ij->i", along, rows)
        worst = int(np.argmax(variance))
        if variance[worst] <= largest**2 * (1 + 1e-9):
            break
        excess = (variance[worst] - largest**2) / variance[worst] ** 2
        narrow -= excess * np.outer(along[worst], along[worst])
    return np.asarray(narrow)


def _longer_than_clip(steps: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    return np.flatnonzero((steps * steps).sum(axis=1) > STEPS_OF_CLIP**2)


def finite_rows(values: FloatArray) -> FloatArray:
    """Values (n, d) with 0 in rows that are not finite, or whose square is not."""
    return _finite(values)[0]


def _finite(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    with np.errstate(all="ignore"):
        squares = (values * values).sum(axis=1)
    finite = np.isfinite(squares)
    if not finite.all():
        values, squares = np.where(finite[:, None], values, 0.0), np.where(finite, squares, 0.0)
    return values, np.sqrt(squares)


def _shrinkage(norms: FloatArray, clip: float) -> FloatArray:
    """Factor (n,) that takes rows of these norms to a norm of at most `clip`."""
    return np.asarray(np.minimum(1.0, clip / np.maximum(norms, 1e-300)))
