r"""Moves for columns with missing values, which a draw of each part given the others leaves slowly.

Where a group of records never shows a value (earnings of those who do not work), its mean is known
from the prior alone; imputed values hold it where it is, and so do the coefficients of later
columns that make up for it. Two exact moves cross this:

- a column with levels has its parameters drawn with its missing values summed out (`Unknown` of
  `pyhybrid.masking.families`);
- coefficients b of a continuous column are moved to b + d together with its missing values, which
  go along by D d (D their design), and with the coefficients of each later column, which lose s d
  (s its slope on this one). Linear predictors of records with missing values stay as they are, the
  map has Jacobian 1, and what is left are the records that show the value: b has its conjugate
  normal given these, and later columns their likelihood there and their priors. An elliptical
  slice draws d.

References
----------
Yu, Meng (2011), J. Computational and Graphical Statistics 20:531-570, on moving parameters and
missing values together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.masking.draws import elliptical_slice
from pyhybrid.masking.families import SLOPE_PRECISION, LevelModel, NormalPosterior

__all__ = ["Later", "draw_step"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Later:
    """A later column on the records that show the value of this one.

    Attributes
    ----------
    model : LevelModel, or None for a normal regression
    theta : ndarray
        Its parameters; of a normal regression slopes and residual variance.
    own : ndarray, shape (C,)
        Its slopes on this column.
    eta : ndarray, shape (n, C)
        Its linear predictors.
    x : ndarray, shape (n,)
    """

    model: LevelModel | None
    theta: FloatArray
    own: FloatArray
    eta: FloatArray
    x: npt.NDArray[Any]

    def moved(self, step: FloatArray) -> FloatArray:
        """Parameters after a step of shape (p,) of the column."""
        if self.model is not None:
            return self.model.shifted(self.theta, -np.outer(step, self.own))
        theta: FloatArray = self.theta.copy()
        theta[: step.size] -= step * self.own[0]
        return theta

    def log_density(self, step: FloatArray, shift: FloatArray) -> float:
        """Of its values and parameters after the step, which moves the column by `shift` (n,)."""
        theta = self.moved(step)
        eta = self.eta - shift[:, None] * self.own
        if self.model is None:
            squares = float(((self.x - eta[:, 0]) ** 2).sum())
            slopes = theta[:-1]
            return -0.5 * (squares + SLOPE_PRECISION * float(slopes @ slopes)) / float(theta[-1])
        logs = self.model.log_probability(eta, self.model.cuts(self.theta), self.x)
        return float(logs.sum()) + self.model.log_prior(theta)


def draw_step(
    theta: FloatArray,
    design: FloatArray,
    x: FloatArray,
    later: Sequence[Later],
    rng: np.random.Generator,
) -> FloatArray:
    """Step d of the coefficients of a normal regression, shape (p,).

    Parameters
    ----------
    theta : ndarray, shape (p + 1,)
        Coefficients and residual variance.
    design, x : ndarray, shapes (n, p) and (n,)
        Of the records that show the value.
    later : sequence of Later
    """
    start, variance = theta[:-1], float(theta[-1])
    posterior = NormalPosterior.of(design, x)
    mean, noise = posterior.mean, posterior.noise(variance, rng)

    def likelihood(values: FloatArray, _: npt.NDArray[np.intp]) -> FloatArray:
        step = values[0] - start
        shift = design @ step
        return np.array([sum(each.log_density(step, shift) for each in later)])

    drawn = elliptical_slice(start[None, :], mean[None, :], noise[None, :], likelihood, rng)
    return np.asarray(drawn[0] - start)
