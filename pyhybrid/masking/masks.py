r"""Mask models p(W | X) [J22]: what is drawn from the true value of a key, and its density.

A weak mask (small variance, large separation) holds the released X* near X, a strong one leaves it
to the association model. Continuous keys are masked standardized, others as codes 0 .. levels - 1.

Continuous: prior N(mu, sigma2), W_k ~ N(X, s2), k = 1 .. K, gives a normal with precision
1/sigma2 + K/s2 and mean (mu/sigma2 + sum_k W_k/s2) / precision. Categorical: probabilities
proportional to prior times exp(log density). W is drawn once from the true keys; what it says, an
`Evidence` for each key, is all that synthesis sees of them.

Masks may differ by risk subgroup: low, at least k0 other records match on all keys; medium, at
least k0 match on those with levels, but fewer also on the continuous ones; high, the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    IntArray,
    check_count,
    check_fraction,
    check_nonnegative,
    check_numeric,
    check_positive,
    check_vector,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking.columns import Column, read_keys
from pyhybrid.measures.matching import match_counts
from pyhybrid.models.formula.values import numbers_of

_LOG_2PI = float(np.log(2 * np.pi))
SUBGROUPS = ("low", "medium", "high")
_nothing = functools.partial(np.zeros, 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedNormal:
    """Normal distribution of a continuous key given its mask; both of shape (n,)."""

    mean: FloatArray
    variance: FloatArray


def gaussian_mask_log_density(w: Any, x: Any, variance: float) -> FloatArray:
    """Sum over k of log N(w_ik; x_i, s2), shape (n,), for w (n, K), x (n,) and variance s2 > 0."""
    s2 = check_positive(variance, "variance")
    values, copies = _pair(x, w)
    squares = (copies - values[:, None]) ** 2
    constant = copies.shape[1] * (_LOG_2PI + np.log(s2))
    return np.asarray(-0.5 * (constant + squares.sum(axis=1) / s2))


def mixture_mask_log_density(w: Any, x: Any, separation: float) -> FloatArray:
    """log N(w; a x, 1), shape (n,), for codes x (n,) from 0 and separation a > 0; for w of shape
    (n, levels), nominal, with centers a apart."""
    a = check_positive(separation, "separation")
    observed = check_numeric(w, "w")
    codes, copies = _pair(x, observed[:, None] if observed.ndim == 1 else observed)
    levels = copies.shape[1]
    centers = a * codes[:, None]
    if observed.ndim > 1:
        centers = a / np.sqrt(2) * np.eye(levels)[_codes(codes, levels)]
    return np.asarray(-0.5 * (levels * _LOG_2PI + ((copies - centers) ** 2).sum(axis=1)))


def misclassification_log_density(w: Any, x: Any, matrix: Any) -> FloatArray:
    """log P(W = w | X = x) from a matrix with row x and column w, shape (n,); codes from 0."""
    rows = check_numeric(matrix, "matrix")
    values, observed = _pair(x, check_vector(w, "w")[:, None])
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    return np.asarray(logs[_codes(values, len(rows)), _codes(observed[:, 0], len(rows))])


def masked_normal(mean: Any, variance: Any, w: Any, mask_variance: float) -> MaskedNormal:
    """Distribution of a continuous key given W (n, K), by precision weighting of p(X | Z, theta),
    of `mean` and `variance` (n,), and the mask, of variance s2; variances are above 0."""
    s2 = check_positive(mask_variance, "mask_variance")
    center, copies = _pair(mean, w)
    spread = check_vector(variance, "variance", length=center.size)
    if not (spread > 0).all():
        raise InvalidInput("variance must be above 0 in every record")
    precision = 1 / spread + copies.shape[1] / s2
    total = center / spread + copies.sum(axis=1) / s2
    return MaskedNormal(mean=total / precision, variance=1 / precision)


def masked_level_probabilities(prior: Any, log_density: Any) -> FloatArray:
    """Probabilities of the levels of a key given W, from P(X = x | Z, theta) and log p(w | x), each
    of shape (n, levels); each record has a level at which both are positive."""
    p, logs = check_numeric(prior, "prior"), check_numeric(log_density, "log_density")
    if p.ndim != 2 or p.shape != logs.shape or not p.size:
        raise InvalidInput(
            "prior and log_density must share a shape (n, levels): "
            f"found {p.shape} and {logs.shape}"
        )
    weights = p * np.exp(logs - logs.max(axis=1, keepdims=True))
    total = weights.sum(axis=1, keepdims=True)
    if not ((p >= 0).all() and np.isfinite(total).all() and (total > 0).all()):
        raise InvalidInput("each record must have a level with positive prior and density")
    return np.asarray(weights / total)


def _pair(x: Any, w: Any) -> tuple[FloatArray, FloatArray]:
    """x of shape (n,) and w of shape (n, K)."""
    values, copies = check_vector(x, "x"), check_numeric(w, "w")
    if copies.ndim != 2 or copies.shape[0] != values.size or not copies.size:
        raise InvalidInput(
            f"w must have one row for each of {values.size} records: found shape {copies.shape}"
        )
    return values, copies


def _codes(values: FloatArray, levels: int) -> IntArray:
    codes = values.astype(np.intp)
    if ((codes != values) | (codes < 0) | (codes >= levels)).any():
        raise InvalidInput(f"codes must be whole numbers from 0 to {levels - 1}")
    return codes


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """What W says about a key. Continuous: `center` and `precision` K/s2 (n,), standardized; 0 is a
    mask that is off. Else `log_density` (n, levels) of w given x. Confidential."""

    center: FloatArray = field(default_factory=_nothing)
    precision: FloatArray = field(default_factory=_nothing)
    log_density: FloatArray = field(default_factory=_nothing)


@dataclass(frozen=True, kw_only=True)
class GaussianMask:
    """W_k = X + e_k, e_k ~ N(0, variance), k = 1 .. copies; for continuous keys [J22].

    What counts is variance / copies, the variance of their mean: towards 0 the released value is
    the true one, towards infinity the mask is off. Published: K = 20 copies of variance s2 = 1, in
    units of the key's variance.
    """

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

    def describe(self) -> str:
        """Copies and variance in words."""
        return f"Gaussian mask, {self.copies} copies, variance {self.variance:g} of the key's own"


@dataclass(frozen=True, kw_only=True)
class MixtureMask:
    """W = a X + u, u ~ N(0, 1), for codes X of binary and ordered keys [J22]: a normal mixture.

    As the separation a of the centers of neighboring levels goes towards infinity the released
    value is the true one, towards 0 the mask is off. Published: a = 6. Given `n_levels` the levels
    have no order (nominal keys, an extension of ours): W is a vector with a / sqrt(2) at the place
    of the level, 0 elsewhere, plus N(0, I), so that the centers of any two levels lie a apart. A
    release sets it for nominal keys.
    """

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

    def describe(self) -> str:
        """Separation in words."""
        return f"mixture mask, separation {self.separation:g}"


@dataclass(frozen=True, kw_only=True)
class MisclassificationMask:
    """P(W = v | X = u) from a matrix; for binary, ordered and nominal keys [JC].

    The `matrix` is any square array: row u holds P(W = v | X = u), v = 0 .. levels - 1, in [0, 1],
    each row's sum 1. The identity gives back the true value, equal rows switch the mask off.
    """

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
        keep = check_fraction(probability, "probability")
        levels = check_count(n_levels, "n_levels", at_least=2)
        other = (1 - keep) / (levels - 1)
        return cls(matrix=np.full((levels, levels), other) + (keep - other) * np.eye(levels))  # type: ignore[arg-type]

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.matrix)

    @property
    def epsilon(self) -> float:
        """Local epsilon of W itself, nats: the largest log P(W = v | u) / P(W = v | u'); infinite
        if a level never comes from another. Of W, not of released keys, whose model saw all X."""
        rows = np.asarray(self.matrix)
        held = rows[:, rows.max(axis=0) > 0]
        with np.errstate(divide="ignore"):
            return float(np.log(held.max(axis=0) / held.min(axis=0)).max())

    def draw(self, x: Any, rng: np.random.Generator) -> IntArray:
        """W, codes of shape (n,)."""
        steps = np.cumsum(np.asarray(self.matrix), axis=1)[:, :-1]
        uniform = rng.random(np.size(x))[:, None]
        return np.asarray((uniform >= steps[np.asarray(x, dtype=np.intp)]).sum(axis=1))

    def describe(self) -> str:
        """Probabilities that W is the true level, in words."""
        kept = ", ".join(f"{probability:.3g}" for probability in np.diag(self.matrix))
        return f"misclassification mask, levels kept with probability {kept}"


Mask = GaussianMask | MixtureMask | MisclassificationMask
KeyMasks = Mapping[str, Mask | Mapping[str, Mask | None] | None]
"""Mask of each key: one, one by risk subgroup, or None (off)."""


def level_log_density(
    mask: MixtureMask | MisclassificationMask, w: Any, n_levels: int
) -> FloatArray:
    """log p(w | x) for each level x, shape (n, n_levels)."""
    levels = (np.full(len(w), level) for level in range(n_levels))
    if isinstance(mask, MixtureMask):
        logs = [mixture_mask_log_density(w, x, mask.separation) for x in levels]
    else:
        logs = [misclassification_log_density(w, x, mask.matrix) for x in levels]
    return np.stack(logs, axis=1)


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
    return {
        column.name: normal if column.kind == "continuous" else mixture
        for column in read_keys(df, keys, types=types)
    }


def check_masks(masks: KeyMasks, columns: Mapping[str, Column], *, subgroups: bool) -> None:
    """Refuse masks on columns that are no keys, of the wrong type, or by unknown subgroups."""
    for name, of_key in masks.items():
        if name not in columns:
            raise InvalidInput(
                f"masks must be for keys: {name!r} is none; keys are {', '.join(columns)}"
            )
        by_group, column = _by_subgroup(of_key), columns[name]
        if not {*by_group} <= {*SUBGROUPS}:
            raise InvalidInput(
                f"the masks of {name!r} must be by {', '.join(SUBGROUPS)}: found "
                f"{', '.join(map(str, by_group))}"
            )
        if isinstance(of_key, Mapping) and not subgroups:
            raise InvalidInput(f"masks by risk subgroup, as for {name!r}, need subgroups=")
        continuous = column.kind == "continuous"
        fits = GaussianMask if continuous else MixtureMask | MisclassificationMask
        wanted = "GaussianMask" if continuous else f"mask of {column.n_levels} levels"
        for mask in (mask for mask in by_group.values() if mask is not None):
            n_levels = getattr(mask, "n_levels", None)
            if not isinstance(mask, fits) or n_levels not in (None, column.n_levels):
                raise InvalidInput(
                    f"the mask of {name!r}, which is {column.kind}, must be a {wanted}: found "
                    f"{type(mask).__name__}"
                )


def draw_evidence(
    masks: KeyMasks,
    columns: Mapping[str, Column],
    truth: Mapping[str, npt.NDArray[Any]],
    groups: npt.NDArray[Any] | None,
    rng: np.random.Generator,
) -> dict[str, Evidence]:
    """Draw W of every masked key from the true values."""
    evidence = {}
    for name, column in columns.items():
        x = truth[name]
        center, precision = np.zeros(x.size), np.zeros(x.size)
        logs = np.zeros((x.size, column.n_levels))
        parts = {g: mask for g, mask in _by_subgroup(masks.get(name)).items() if mask is not None}
        for group, mask in parts.items():
            rows = np.arange(x.size) if groups is None else np.flatnonzero(groups == group)
            if not rows.size:
                continue
            if isinstance(mask, MixtureMask) and column.kind == "nominal":
                mask = replace(mask, n_levels=column.n_levels)
            w = mask.draw(x[rows], rng)
            if isinstance(mask, GaussianMask):
                center[rows], precision[rows] = w.mean(axis=1), mask.copies / mask.variance
            else:
                logs[rows] = level_log_density(mask, w, column.n_levels)
        if parts:
            evidence[name] = Evidence(center=center, precision=precision, log_density=logs)
    return evidence


def described(of_key: Any) -> str:
    """What `masks` hold for one key, in words."""
    if of_key is None:
        return "mask off: drawn from the association model alone"
    if isinstance(of_key, Mapping):
        return "by risk subgroup: " + "; ".join(f"{g}, {described(m)}" for g, m in of_key.items())
    return str(of_key.describe())


def _by_subgroup(of_key: Any) -> dict[str, Any]:
    return dict(of_key) if isinstance(of_key, Mapping) else dict.fromkeys(SUBGROUPS, of_key)


@dataclass(frozen=True, kw_only=True, eq=False)
class RiskSubgroups:
    """Risk subgroup of each record, "low", "medium" or "high"; other records that match it on all
    keys (`n_matches`), and on those with levels only; radius of the continuous keys in their units.
    Confidential."""

    by_record: npt.NDArray[np.str_]  # (n,)
    n_matches: IntArray
    n_matches_levels: IntArray
    k0: int
    radius: Mapping[str, float]
    labels: pd.Index

    def __repr__(self) -> str:
        return f"<RiskSubgroups of {len(self.labels)} records, confidential>"

    @property
    def table(self) -> pd.DataFrame:
        """Records, share, median matches of each subgroup: subgroup, records, share, ..."""
        columns = {"median_matches": self.n_matches, "median_matches_levels": self.n_matches_levels}
        by_group = pd.DataFrame(columns).groupby(self.by_record)
        table: pd.DataFrame = by_group.median().reindex(SUBGROUPS)
        table.insert(0, "records", by_group.size().reindex(SUBGROUPS, fill_value=0))
        table.insert(1, "share", table["records"] / len(self.labels))
        numbered: pd.DataFrame = table.rename_axis("subgroup").reset_index()
        return numbered


def risk_subgroups(
    df: pd.DataFrame,
    keys: Sequence[str],
    k0: int,
    radius: float | Mapping[str, float] | None = None,
    *,
    types: Mapping[str, str] | None = None,
) -> RiskSubgroups:
    """Sort records into low, medium and high risk by how many others match them.

    Parameters
    ----------
    df : DataFrame, n rows
        The confidential data.
    keys : sequence of str
        What an intruder may know.
    k0 : int
        Other records that make a match harmless, from 1.
    radius : number, or mapping of continuous key to number, optional
        Largest distance that matches, >= 0; 0 for continuous keys that it does not name. Keys
        with levels must be equal. Missing equals missing of the same key, and nothing else.
    types : mapping of str to str, optional
        As in `MaskedImputation`.
    """
    k0 = check_count(k0, "k0")
    columns = read_keys(df, keys, types=types)
    continuous = [column for column in columns if column.kind == "continuous"]
    names = [column.name for column in continuous]
    given = radius if isinstance(radius, Mapping) else dict.fromkeys(names, radius or 0.0)
    for name, value in given.items():
        if name not in names:
            raise InvalidInput(f"radius must be of continuous keys: {name!r} is none")
        check_nonnegative(value, f"radius of {name!r}")
    radii = {name: float(given.get(name, 0.0)) for name in names}
    codes = [np.where(c.missing, -1, c.values) for c in columns if c.kind != "continuous"]
    levels = np.column_stack([np.zeros(len(df)), *codes])
    on_levels = match_counts(levels, levels) - 1
    reach = [0.0] * levels.shape[1]
    numbers = []
    for column in continuous:  # a missing number is a level of its own
        numbers += [column.missing, np.where(column.missing, 0.0, numbers_of(column.like))]
        reach += [0.0, radii[column.name]]
    table = np.column_stack([levels, *numbers])
    on_all = match_counts(table, table, reach) - 1
    groups = np.where(on_all >= k0, "low", np.where(on_levels >= k0, "medium", "high"))
    return RiskSubgroups(
        by_record=groups, n_matches=on_all, n_matches_levels=on_levels, k0=k0, radius=radii,
        labels=df.index,
    )  # fmt: skip
