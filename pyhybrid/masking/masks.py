r"""Mask models p(W | X): what is drawn from the true value of a key, and how it weighs a candidate.

A mask model draws W from the true X. The released X* is drawn from p(X | Z, theta) p(W | X): a weak
mask (small variance, large separation) holds X* near X, a strong one leaves it to the association
model. Continuous keys are masked on their standardized scale (mean 0, standard deviation 1 in the
data), the others on their codes 0 .. levels - 1. Nothing here is differentially private.

References
----------
[J22] Jiang, Raftery, Steele, Wang (2022), JASA; [JC] Jiang (2025), short course on data privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count, check_numeric, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking.densities import (
    gaussian_mask_log_density,
    misclassification_log_density,
    mixture_mask_log_density,
)
from pyhybrid.masking.keys import key_kinds

__all__ = [
    "MASKS",
    "Evidence",
    "GaussianMask",
    "Mask",
    "MisclassificationMask",
    "MixtureMask",
    "level_log_density",
    "masks_by_type",
]

Codes = npt.NDArray[np.intp]
_LEVELS = ("binary", "ordered", "nominal")


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """What W says about one key of n records; masks write into its rows. Confidential.

    Attributes
    ----------
    center, precision : ndarray, shape (n,), or None
        Mean of the copies and K/s2, standardized scale, for a continuous key. A precision of 0 is
        a mask that is off.
    log_density : ndarray, shape (n, levels), or None
        log p(w | x) of each level, for any other key. Equal ones are a mask that is off.
    """

    center: FloatArray | None = None
    precision: FloatArray | None = None
    log_density: FloatArray | None = None

    @classmethod
    def none(cls, n: int, n_levels: int) -> Evidence:
        """Of masks that are off, for n records; no levels for a continuous key."""
        if n_levels:
            return cls(log_density=np.zeros((n, n_levels)))
        return cls(center=np.zeros(n), precision=np.zeros(n))


class Mask(Protocol):
    """A mask model for one key."""

    kinds: ClassVar[tuple[str, ...]]
    """Types of keys that it is for."""

    @property
    def n_levels(self) -> int | None:
        """Levels that a key must have; None if any number will do."""

    def draw(self, x: Any, rng: np.random.Generator) -> Any:
        """Draw W given the true X, shape (n,): standardized values, or codes."""

    def log_density(self, w: Any, x: Any) -> FloatArray:
        """log p(w | x) of each record, shape (n,), nats."""

    def tell(self, w: Any, rows: Codes, evidence: Evidence) -> None:
        """Write what W, drawn for these rows, says into the evidence, in place."""

    def weakened(self, factor: float) -> Mask:
        """The mask whose log density is 1/factor times this one's (up to a constant)."""

    def fitted(self, kind: str, n_levels: int) -> Mask:
        """The mask as it acts on a key of this type."""

    def describe(self) -> str:
        """The mask and its strength in words, for statements."""


@dataclass(frozen=True, kw_only=True)
class GaussianMask:
    """W_k = X + e_k, e_k ~ N(0, variance), k = 1 .. copies; for continuous keys [J22].

    What counts is variance / copies, the variance of their mean: towards 0 the released value is
    the true one, towards infinity the mask is off. Published: copies 20, variance 1.

    Attributes
    ----------
    copies : int, default 1
        K, from 1.
    variance : float
        s2 above 0, in units of the key's own variance.
    """

    kinds: ClassVar[tuple[str, ...]] = ("continuous",)
    n_levels: ClassVar[None] = None
    copies: int = 1
    variance: float

    def __post_init__(self) -> None:
        check_count(self.copies, "copies")
        check_positive(self.variance, "variance")

    def draw(self, x: Any, rng: np.random.Generator) -> FloatArray:
        """W, shape (n, copies), for standardized x of shape (n,)."""
        center = np.asarray(x, dtype=np.float64)[:, None]
        noise = rng.standard_normal((center.shape[0], self.copies))
        return np.asarray(center + np.sqrt(self.variance) * noise)

    def log_density(self, w: Any, x: Any) -> FloatArray:
        """log p(w | x), shape (n,), for w of shape (n, copies) and x of shape (n,)."""
        return gaussian_mask_log_density(w, x, self.variance)

    def tell(self, w: Any, rows: Codes, evidence: Evidence) -> None:
        """Mean of the copies and the precision of it, into these rows."""
        assert evidence.center is not None
        assert evidence.precision is not None
        evidence.center[rows] = np.mean(w, axis=1)
        evidence.precision[rows] = self.copies / self.variance

    def weakened(self, factor: float) -> GaussianMask:
        """The mask with `factor` times the variance."""
        return replace(self, variance=self.variance * check_positive(factor, "factor"))

    def fitted(self, kind: str, n_levels: int) -> GaussianMask:
        """The mask itself."""
        return self

    def describe(self) -> str:
        """Copies and variance in words."""
        return f"Gaussian mask, {self.copies} copies, variance {self.variance:g} of the key's own"


@dataclass(frozen=True, kw_only=True)
class MixtureMask:
    """W = a X + u, u ~ N(0, 1), for codes X of binary and ordered keys [J22]: a normal mixture.

    Towards infinity the released value is the true one, towards 0 the mask is off. Published: a =
    6. Given `n_levels` the levels have no order (nominal keys, an extension of ours): W is a vector
    with a / sqrt(2) at the place of the level, 0 elsewhere, plus N(0, I), so that the centers of
    any two levels lie a apart. A release sets it for nominal keys.

    Attributes
    ----------
    separation : float
        a above 0: distance between the centers of neighboring levels.
    n_levels : int, optional
        Levels of a nominal key.
    """

    kinds: ClassVar[tuple[str, ...]] = _LEVELS
    separation: float
    n_levels: int | None = None

    def __post_init__(self) -> None:
        check_positive(self.separation, "separation")
        if self.n_levels is not None:
            check_count(self.n_levels, "n_levels", at_least=2)

    def draw(self, x: Any, rng: np.random.Generator) -> FloatArray:
        """W, shape (n,), or (n, n_levels) for nominal keys."""
        codes = np.asarray(x, dtype=np.intp)
        if self.n_levels is None:
            return np.asarray(self.separation * codes + rng.standard_normal(codes.size))
        w = rng.standard_normal((codes.size, self.n_levels))
        w[np.arange(codes.size), codes] += self.separation / np.sqrt(2)
        return w

    def log_density(self, w: Any, x: Any) -> FloatArray:
        """log p(w | x), shape (n,)."""
        return mixture_mask_log_density(w, x, self.separation)

    def weakened(self, factor: float) -> MixtureMask:
        """The mask with the separation divided by sqrt(factor)."""
        scaled = self.separation / np.sqrt(check_positive(factor, "factor"))
        return replace(self, separation=float(scaled))

    def tell(self, w: Any, rows: Codes, evidence: Evidence) -> None:
        """Log density of every level, into these rows."""
        _tell_levels(self, w, rows, evidence)

    def fitted(self, kind: str, n_levels: int) -> MixtureMask:
        """With the levels of the key if it is nominal: these have no order."""
        return replace(self, n_levels=n_levels) if kind == "nominal" else self

    def describe(self) -> str:
        """Separation in words."""
        return f"mixture mask, separation {self.separation:g}"


@dataclass(frozen=True, kw_only=True)
class MisclassificationMask:
    """P(W = v | X = u) from a matrix; for binary, ordered and nominal keys [JC].

    The identity gives back the true value, equal rows switch the mask off.

    Attributes
    ----------
    matrix : tuple of tuples of float
        Row u holds P(W = v | X = u), v = 0 .. levels - 1; in [0, 1], each row's sum 1. Any square
        array is taken.
    """

    kinds: ClassVar[tuple[str, ...]] = _LEVELS
    matrix: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        rows = check_numeric(self.matrix, "matrix")
        if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or rows.shape[0] < 2:
            raise InvalidInput(f"matrix must be square, at least 2 x 2: found shape {rows.shape}")
        if not ((rows >= 0).all() and np.allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-9)):
            raise InvalidInput("matrix must hold probabilities with each row's sum 1")
        object.__setattr__(self, "matrix", tuple(tuple(map(float, row)) for row in rows))

    @classmethod
    def keep(cls, probability: float, n_levels: int) -> MisclassificationMask:
        """W = X with `probability` in (0, 1], else one of the other levels, equally likely."""
        keep = check_positive(probability, "probability")
        levels = check_count(n_levels, "n_levels", at_least=2)
        if keep > 1:
            raise InvalidInput(f"probability must lie in (0, 1]: found {keep:g}")
        other = (1 - keep) / (levels - 1)
        return cls(matrix=np.full((levels, levels), other) + (keep - other) * np.eye(levels))  # type: ignore[arg-type]

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.matrix)

    def draw(self, x: Any, rng: np.random.Generator) -> Codes:
        """W, codes of shape (n,)."""
        steps = np.cumsum(np.asarray(self.matrix), axis=1)[:, :-1]
        uniform = rng.random(np.size(x))[:, None]
        return np.asarray((uniform >= steps[np.asarray(x, dtype=np.intp)]).sum(axis=1))

    def log_density(self, w: Any, x: Any) -> FloatArray:
        """log P(w | x), shape (n,); -inf where it is 0."""
        return misclassification_log_density(w, x, self.matrix)

    def weakened(self, factor: float) -> MisclassificationMask:
        """The mask with each probability to the power 1/factor, rows normalized again."""
        flat = np.asarray(self.matrix) ** (1 / check_positive(factor, "factor"))
        return type(self)(matrix=flat / flat.sum(axis=1, keepdims=True))

    def tell(self, w: Any, rows: Codes, evidence: Evidence) -> None:
        """Log probability of W from every level, into these rows."""
        _tell_levels(self, w, rows, evidence)

    def fitted(self, kind: str, n_levels: int) -> MisclassificationMask:
        """The mask itself."""
        return self

    def describe(self) -> str:
        """Range of the probabilities that W is the true level."""
        keep = np.diag(self.matrix)
        low, high = f"{keep.min():.3g}", f"{keep.max():.3g}"
        kept = low if low == high else f"{low} to {high}"
        return f"misclassification mask, {self.n_levels} levels, each kept with probability {kept}"


MASKS: tuple[type[Mask], ...] = (GaussianMask, MixtureMask, MisclassificationMask)


def level_log_density(mask: Mask, w: Any, n_levels: int) -> FloatArray:
    """log p(w | x) for each level x, shape (n, n_levels)."""
    n = np.shape(w)[0]
    each = [mask.log_density(w, np.full(n, level)) for level in range(n_levels)]
    return np.stack(each, axis=1)


def masks_by_type(
    df: pd.DataFrame,
    keys: Sequence[str],
    *,
    copies: int = 20,
    variance: float = 1.0,
    separation: float = 2.0,
    types: Mapping[str, str] | None = None,
) -> dict[str, GaussianMask | MixtureMask]:
    """A mask for each key by its type, of strengths that change a good part of the records.

    Continuous keys get `GaussianMask(copies, variance)`, all others `MixtureMask(separation)`.

    Notes
    -----
    copies 20 and variance 1 are as published [J22]. So is separation 6, which changes next to no
    category: of two equally frequent levels that nothing else predicts it leaves 99.8 % of the
    records as they are. The default of 2 leaves 78 % of two such levels, 65 % of five ordered and
    50 % of five nominal ones. What else predicts a key, and unequal frequencies, raise the shares:
    a release states them by key.
    """
    normal = GaussianMask(copies=copies, variance=variance)
    mixture = MixtureMask(separation=separation)
    kinds = key_kinds(df, keys, types)
    return {name: normal if kind in normal.kinds else mixture for name, kind in kinds.items()}


def _tell_levels(mask: Mask, w: Any, rows: Codes, evidence: Evidence) -> None:
    assert evidence.log_density is not None
    n_levels = evidence.log_density.shape[1]
    evidence.log_density[rows] = level_log_density(mask, w, n_levels)
