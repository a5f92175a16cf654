r"""The whole change that a record makes where weights were computed on the same data.

The papers' vector weights move when a record leaves, and 2 Delta ignores it. The whole change is

.. math::

    T_i(\theta) = \alpha_i f_i(\theta)
        + \sum_{j \ne i} (\alpha_j - \alpha_j^{(-i)}) f_j(\theta)

and :math:`\alpha_j^{(-i)}` differs from :math:`\alpha_j` for two reasons: the numbers that a map
takes from all records (smallest and largest risk, mean, deviation, counts), and **the risks
themselves**, which are read from draws of a posterior that lies elsewhere without record i. Every
risk moves by O(1/n); n of them add up to the order of the record's own term.

The posterior without i has weights :math:`w_s \propto \exp(-T_i(\theta_s))` on the draws that the
risks were read from. With mean m_j and deviation s_j of f_j over the draws, m'_j and s'_j under w,

.. math::

    \text{size: } |m'_j| + (r_j - |m_j|) s'_j / s_j, \qquad
    \text{deviation, depth: } r_j s'_j / s_j, \qquad
    \text{range: } r_j d'_j / d_j

is the risk r_j without i: the same standardized extreme, at the place and on the scale of the
posterior without i; d_j is the distance between the first and last decile of f_j.

Range, deviation and leave-one-out loss of T are those of `loss_ranges`, `gaussian_mu` and
`leave_one_out_loss`, which take the matrix of T as they take a log-likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from pyhybrid.core.checks import (
    FloatArray,
    IntArray,
    check_alpha,
    check_choice,
    check_finite,
    check_fraction,
    check_log_lik,
    check_positive,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.bounds import scaled_maxima
from pyhybrid.privacy.diagnostics import NearlyNormal
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weights import (
    RISKS,
    budget_mu,
    budget_power,
    budget_weights,
    leverage_of_rows,
    reweight,
    risk_of,
    scalar_weights,
    truncate_weights,
    weights_from_lipschitz,
)

Map = Callable[[FloatArray], FloatArray]
Weigh = Callable[[FloatArray, FloatArray], FloatArray]
"""From weights before (k,) and risks (k,) of the records kept to their weights (k,)."""
Refitted = Callable[[FloatArray], LogLik]
"""From weights (n,) without a record to the log-likelihood at draws of that posterior."""

_ELEMENTS = 10_000_000  # of the draws by rows that risks are moved with: 80 MB, held twice
_LARGEST = 1e150  # squares stay in the range of doubles
_ALONE = 1e-9  # share of a record's information that others have, too
_FEWEST = 100  # draws that are kept however many rows there are
PARTS = 5
"""Of the draws that weights are read from, for the chance of what a record moves them by."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightsWithout:
    """Weights of a database and of it without each record. Confidential.

    Attributes
    ----------
    alpha : ndarray, shape (n,)
        Weights of the whole database.
    without : callable
        From records (k,) to the weights without each of them, (n, k); the entry of the record that
        left is of those alike that stay, if its row stands for several, and else does not count.
    refitted : callable
        From a record and a `Refitted` to the weights (n,) without it, made from fits without it.
    movers : ndarray of int, shape (k,)
        Records whose absence changes the weight of another.
    leverage : ndarray, shape (n,)
        How far the posterior that risks were read from moves without each record; 0 where risks do
        not come from draws.
    part : callable, optional
        From the number of one of `PARTS` parts of those draws to the same read from the others; not
        given if they do not.
    """

    alpha: FloatArray
    without: Callable[[IntArray], FloatArray]
    refitted: Callable[[int, Refitted], FloatArray]
    movers: IntArray
    leverage: FloatArray
    part: Callable[[int], WeightsWithout] | None = None

    @classmethod
    def one_by_one(cls, alpha: FloatArray, one: Callable[[int], FloatArray]) -> WeightsWithout:
        """From weights (n,) and a map from a record to the weights (n,) without it."""
        return cls(
            alpha=alpha,
            without=lambda records: np.column_stack([one(int(i)) for i in records]),
            refitted=lambda i, _: one(i),
            movers=np.arange(alpha.size),
            leverage=np.zeros(alpha.size),
        )

    def general(self) -> WeightsWithout:
        """Itself; see `CountWithout.general`."""
        return self

    def mapped(self, change: Map) -> WeightsWithout:
        """The same after a map that changes each weight by itself: (n,) to (n,)."""
        return replace(
            self,
            alpha=change(self.alpha),
            without=lambda records: change(self.without(records)),
            refitted=lambda i, refit: change(self.refitted(i, refit)),
            part=None if self.part is None else lambda p: self.of_part(p).mapped(change),
        )

    def of_part(self, part: int | None) -> WeightsWithout:
        """`part`, or all for None; itself where no draws are read."""
        return self if part is None or self.part is None else self.part(part)

    def changes(self, records: IntArray) -> FloatArray:
        """Change as each record leaves: its weight, and of others alpha_j less that without it."""
        return self.change_to(self.without(records), records)

    def change_to(self, weights: FloatArray, records: IntArray) -> FloatArray:
        """`changes` to `weights` (n, k) without each of the records."""
        change, column = self.alpha[:, None] - weights, np.arange(records.size)
        change[records, column] = self.alpha[records]
        return change

    def terms(self, matrix: FloatArray) -> FloatArray:
        """T, shape (S, n), for a checked log-likelihood matrix."""
        return moved_terms(LogLik.of(matrix), self, np.arange(self.alpha.size))


@dataclass(frozen=True, kw_only=True, eq=False)
class RiskDraws:
    """Draws that risks were read from, and how these risks move without a record. Confidential."""

    log_lik: LogLik  # unweighted, at the draws
    risk: str  # "size", "range" or "deviation"
    weights: WeightsWithout  # of the posterior that the draws come from
    thinned: bool = True  # False to use all draws, however many rows there are
    frozen: bool = False  # True of a posterior that does not depend on the data: risks stay
    points: FloatArray | None = None  # of risks by depth: parameters at the draws, (S, p)

    @cached_property
    def chosen(self) -> IntArray:
        """Draws that risks are moved with: as many as memory allows."""
        n_draws = len(next(iter(self.log_lik.blocks()))[1])
        elements = _ELEMENTS // 10 if self.risk == "range" else _ELEMENTS  # sorted, for deciles
        most = max(_FEWEST, elements // self.log_lik.n_rows) if self.thinned else n_draws
        return np.unique(np.linspace(0, n_draws - 1, min(most, n_draws)).astype(np.intp))

    @cached_property
    def by_row(self) -> FloatArray:
        """Log-likelihood of the distinct rows at the chosen draws, (S', n_rows)."""
        chosen = self.log_lik.at(self.chosen)
        blocks = [np.asarray(block, np.float64) for _, block in chosen.blocks()]
        rows = np.concatenate(blocks, axis=1)
        return np.where((np.abs(rows) < _LARGEST).all(axis=0), rows, 0.0)  # else no epsilon at all

    @cached_property
    def normal(self) -> NearlyNormal | None:
        """The chosen draws, where it is known that they are nearly normal."""
        if self.points is None:
            return None
        by_row = self.log_lik.summed_by_row(self.weights.alpha[:, None])[:, 0]
        return NearlyNormal.of(self.points[self.chosen], self.by_row @ by_row)

    @cached_property
    def _mean(self) -> FloatArray:
        """Mean of each row, (n_rows,)."""
        return np.asarray(self.by_row.mean(axis=0))

    @cached_property
    def _spread(self) -> FloatArray:
        """Deviation of each row, (n_rows,); of the range as risk, distance of its deciles."""
        if self.risk == "range":
            return _interdecile(*self._sorted, np.full(len(self.by_row), 1 / len(self.by_row)))
        return np.asarray(self.by_row.std(axis=0))

    @cached_property
    def _centered(self) -> tuple[FloatArray, FloatArray]:
        """Rows less their mean, and squared, (S', n_rows)."""
        centered = self.by_row - self._mean
        return centered, centered**2

    @cached_property
    def _slopes(self) -> FloatArray:
        """Of the rows in the powers of the nearly normal parameters."""
        assert self.normal is not None
        return self.normal.slopes(self._centered[0])

    @cached_property
    def _sorted(self) -> tuple[FloatArray, IntArray]:
        """Each row in ascending order, (S', n_rows), and its draws in that order."""
        order = np.argsort(self.by_row, axis=0)
        return np.take_along_axis(self.by_row, order, axis=0), order

    @cached_property
    def leverage(self) -> FloatArray:
        """Deviation of each record's term under the draws' posterior, shape (n,)."""
        if self.frozen:
            return np.zeros(self.log_lik.n)
        return np.asarray(self.weights.alpha * self.by_row.std(axis=0)[self.log_lik.row_of])

    def risks_without(
        self, risks: FloatArray, records: IntArray, part: int | None = None
    ) -> FloatArray:
        """`risks` (n,) without each of the records, (n, k), from the draws at hand but a `part`."""
        if self.frozen:
            return np.repeat(risks[:, None], records.size, axis=1)
        changes = self.weights.of_part(part).changes(records)
        return self.risks_under(risks, -self.by_row @ self.log_lik.summed_by_row(changes), part)

    def risks_under(
        self, risks: FloatArray, log_ratio: FloatArray, part: int | None = None
    ) -> FloatArray:
        """`risks` (n,) under posteriors with these log density ratios (S', k) to the draws', but a
        `part` of them: blocks, as draws that follow each other are alike."""
        place = np.arange(len(log_ratio)) * PARTS // len(log_ratio)
        used = np.ones(len(log_ratio)) if part is None else np.where(place == part, 0.0, 1.0)
        seen = np.where(used[:, None] > 0, log_ratio, -np.inf)
        importance = np.exp(seen - seen.max(axis=0))
        importance /= importance.sum(axis=0)
        if self.risk == "range":
            spreads = [_interdecile(*self._sorted, weights) for weights in importance.T]
            if part is not None:
                here = _interdecile(*self._sorted, used / used.sum())
                spreads = [_over(spread * self._spread, here) for spread in spreads]
            return np.column_stack([self._moved(risks, self._mean, spread) for spread in spreads])
        centered, squares = self._centered
        shift = importance.T @ centered
        variance = importance.T @ squares - shift**2
        if self.normal is not None:
            variance = variance - self.normal.chance(log_ratio, self._slopes, used)
        if part is not None:
            here = (used / used.sum()) @ centered
            shift = shift - here
            variance = _over(variance * self._spread**2, (used / used.sum()) @ squares - here**2)
        spread = np.sqrt(np.maximum(variance, 0.0))
        moved = zip(shift + self._mean, spread, strict=True)
        return np.column_stack([self._moved(risks, *moments) for moments in moved])

    def risks_refitted(self, risks: FloatArray, record: int, refit: Refitted) -> FloatArray:
        """`risks` (n,) without the record, from draws of a fit without it."""
        if self.frozen:
            return risks
        weights = self.weights.refitted(record, refit)
        if self.risk == "depth":
            change = self.weights.change_to(weights[:, None], np.array([record]))
            log_ratio = -self.by_row @ self.log_lik.summed_by_row(change)
            return self.risks_under(risks, log_ratio)[:, 0]
        without = refit(weights)
        rows = RiskDraws(log_lik=without, risk=self.risk, weights=self.weights)
        return self._moved(risks, rows._mean, rows._spread)

    def _moved(self, risks: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
        """Risks at the same standardized extreme of a posterior with this mean and spread."""
        scale = _over(spread, self._spread)
        row = self.log_lik.row_of
        if self.risk != "size":
            return risks * scale[row]
        moved = np.where(self._mean < 0, -mean, mean)
        return np.maximum(moved[row] + (risks - np.abs(self._mean)[row]) * scale[row], 0.0)


def _over(above: FloatArray, below: FloatArray) -> FloatArray:
    """The quotient (..., r); 1 where `below` (r,) is not above 0."""
    return np.divide(above, below, out=np.ones_like(above), where=below > 0)


def _interdecile(rows: FloatArray, order: IntArray, weights: FloatArray) -> FloatArray:
    """Distance of the weighted first and last decile of sorted rows (S, r), weights of sum 1."""
    ordered = weights[order]
    mass = np.cumsum(ordered, axis=0) - ordered / 2
    ends = []
    for share in (0.1, 0.9):
        above = np.clip((mass < share).sum(axis=0), 1, len(rows) - 1)[None]
        (low, high), (left, right) = (
            [np.take_along_axis(values, above - step, axis=0)[0] for step in (1, 0)]
            for values in (rows, mass)
        )
        at = np.divide(share - left, right - left, out=np.zeros_like(left), where=right > left)
        ends.append(low + np.clip(at, 0.0, 1.0) * (high - low))
    return np.asarray(ends[1] - ends[0])


def constant_weights(alpha: Any) -> WeightsWithout:
    """Weights (n,) that no record's absence changes."""
    held = np.asarray(alpha, dtype=np.float64)
    return WeightsWithout(
        alpha=held,
        without=lambda records: np.repeat(held[:, None], records.size, axis=1),
        refitted=lambda *_: held,
        movers=np.zeros(0, dtype=np.intp),
        leverage=np.zeros(held.size),
    )


def weights_without(weigh: Callable[[IntArray], Any], n: int) -> WeightsWithout:
    """Any map of the records alone, for n: `weigh` gives kept records (k,) their weights (k,). For
    maps that read no draws, such as counts; one call for each record that is looked at."""
    everyone = np.arange(n)

    def one(i: int) -> FloatArray:
        kept = np.delete(everyone, i)
        alpha = np.zeros(n)
        if kept.size:
            alpha[kept] = check_alpha(weigh(kept), kept.size)
        return alpha

    return WeightsWithout.one_by_one(check_alpha(weigh(everyone), n), one)


def risk_weights_without(
    draws: RiskDraws,
    risks: FloatArray,
    weigh: Weigh,
    before: WeightsWithout | None = None,
    *,
    one_less: Weigh | None = None,
    part: int | None = None,
) -> WeightsWithout:
    """Weights by a map of `risks` (n,) that were read from `draws`, infinity allowed; `before` has
    weights of 1 if omitted. `one_less` is the map of a record less, if it is another. How they move
    is read from all draws but a `part`, if one is given."""
    base = constant_weights(np.ones(risks.size)) if before is None else before

    def one(i: int, alpha: FloatArray, moved: FloatArray) -> FloatArray:
        kept, weights = np.delete(np.arange(risks.size), i), np.zeros(risks.size)
        if kept.size:
            weights[kept] = (one_less or weigh)(alpha[kept], moved[kept])
        return weights

    def without(records: IntArray) -> FloatArray:
        moved = draws.risks_without(risks, records, part).T
        alphas = base.of_part(part).without(records).T
        columns = zip(map(int, records), alphas, moved, strict=True)
        return np.column_stack([one(*column) for column in columns])

    return WeightsWithout(
        alpha=weigh(base.alpha, risks),
        without=without,
        refitted=lambda i, refit: one(
            i, base.refitted(i, refit), draws.risks_refitted(risks, i, refit)
        ),
        movers=np.arange(risks.size),
        leverage=np.maximum(base.leverage, draws.leverage),
        part=None
        if draws.frozen
        else lambda p: risk_weights_without(draws, risks, weigh, before, one_less=one_less, part=p),
    )


def lipschitz_without(
    log_lik: Any,
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    transform: str = "linear",
    threshold: float | None = None,
    risk: str = "size",
    frozen_draws: bool = False,
) -> WeightsWithout:
    """Lipschitz weights (LW) with and without each record [S22] sec. 3; [V25] alg. 2.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood in nats at draws of the unweighted posterior, which the weights
        are computed from.
    scale, shift, transform, threshold, risk
        As in `lipschitz_weights`.
    frozen_draws : bool, default False
        True if the draws do not depend on these records (a public or an earlier data set): risks
        then stay when a record leaves.
    """

    def weigh(_: FloatArray, risks: FloatArray) -> FloatArray:
        return weights_from_lipschitz(
            risks, scale=scale, shift=shift, transform=transform, threshold=threshold
        )

    return _mapped_without(log_lik, risk, frozen_draws, weigh)


def scalar_without(
    log_lik: Any, *, target_bound: float, frozen_draws: bool = False
) -> WeightsWithout:
    """`scalar_weights` with and without each record: the unweighted bound moves, and all with it.

    `log_lik` (finite) and `frozen_draws` as in `lipschitz_without`; [S22] sec. 3.1.
    """
    weigh = scalar_map(check_positive(target_bound, "target_bound"))
    return _mapped_without(log_lik, "size", frozen_draws, weigh)


def budget_maps(
    mu: float, n_parameters: int, n: int, outcomes: str = "counts"
) -> tuple[Weigh, Weigh]:
    """`budget_weights` of risks by depth, after the leverages of `budget_without`: of n records or
    units, and of one less."""

    def of(number: int) -> Weigh:
        part = budget_mu(mu, n=max(number, 1), n_parameters=n_parameters, outcomes=outcomes)
        return lambda leverage, risks: budget_weights(
            risks, mu=part, leverage=leverage, outcomes=outcomes
        )

    return of(n), of(n - 1)


def budget_without(
    X: FloatArray,
    *,
    mu: float,
    n_parameters: int,
    unit: IntArray | None = None,
    n_parts: int = 1,
    outcomes: str = "counts",
) -> tuple[WeightsWithout, WeightsWithout]:
    """`budget_leverage`, in the place of weights, and the public weights, once for each record or
    unit, with and without each of them; but for refits the public weights are held, by which
    leverages were found: what they change is of second order. The model may be `n_parts`
    regressions on X."""
    owner = np.arange(len(X)) if unit is None else unit
    others = n_parameters - n_parts * X.shape[1]
    n_others = max(others, 0 if X.shape[1] else 1)
    n = int(owner.max()) + 1
    how: Any = {"n_parameters": n_parameters, "outcomes": outcomes}
    here, there = (budget_mu(mu, n=max(k, 1), **how) for k in (n, n - 1))
    how = {"n_others": n_others, "n_parts": n_parts}
    by_record = leverage_of_rows(X, mu=here, unit=unit, **how)
    power = budget_power(by_record, mu=here)
    first = np.unique(owner, return_index=True)[1]
    leverage, total = by_record[first], power.sum()
    basis = linalg.orth(X)
    share = (power / n_parts)[:, None]
    whitened = linalg.solve_triangular(
        np.linalg.cholesky((basis * share).T @ basis), basis.T, lower=True
    )

    def without(records: IntArray) -> FloatArray:
        columns = []
        for record in records:
            gone = np.flatnonzero(owner == record)
            weight = power[gone]
            own = whitened[:, gone] * np.sqrt(weight / n_parts)
            left, axes = linalg.eigh(np.eye(gone.size) - own.T @ own)
            beside = axes.T @ own.T @ whitened  # (k, n)
            left[left < _ALONE] = np.inf  # what the record alone tells of is nobody else's
            others = n_others / (total - weight.sum()) - n_others / total
            added = (beside**2 / left[:, None]).sum(axis=0) + others
            columns.append(leverage + np.bincount(owner, weights=added))
        return np.column_stack(columns)

    def refitted(record: int, _: Refitted) -> FloatArray:
        kept, found = owner != record, np.asarray(leverage.copy())
        others = None if unit is None else owner[kept]
        left = leverage_of_rows(X[kept], mu=there, unit=others, **how)
        found[np.unique(owner[kept])] = left[np.unique(owner[kept], return_index=True)[1]]
        return found

    leverages = WeightsWithout(
        alpha=leverage,
        without=without,
        refitted=refitted,
        movers=np.arange(leverage.size),
        leverage=np.zeros(leverage.size),
    )
    public = replace(
        leverages,
        alpha=budget_power(leverage, mu=here),
        without=lambda records: budget_power(without(records), mu=there),
        refitted=lambda i, refit: budget_power(refitted(i, refit), mu=there),
    )
    return leverages, public


def scalar_map(target: float) -> Weigh:
    """min(1, target / largest risk) for all records."""

    def weigh(_: FloatArray, risks: FloatArray) -> FloatArray:
        top = float(risks.max())
        if top == 0:
            return np.ones(risks.size)
        return scalar_weights(risks.size, target_bound=target, unweighted_bound=top)

    return weigh


def truncate_without(
    weights: Any, log_lik: Any, *, cap: float, frozen_draws: bool = False
) -> WeightsWithout:
    """`truncate_weights` after any of these, a `WeightsWithout` or `CountWithout`.

    Each weight is cut by its own risk of the unweighted fit: `log_lik` and `frozen_draws` as in
    `lipschitz_without`; [S22] sec. 4.4, [C25] sec. 2.2.
    """
    weigh = truncate_map(check_positive(cap, "cap"))
    return _mapped_without(log_lik, "size", frozen_draws, weigh, before=weights.general())


def truncate_map(cap: float) -> Weigh:
    """0 where alpha_i f_i is above the cap."""
    return lambda alpha, risks: truncate_weights(alpha, risks, cap=cap)


def scale_without(weights: Any, *, scale: float = 1.0, shift: float = 0.0) -> Any:
    """Down-scaling clip(scale alpha + shift, 0, 1) of finished weights [C25] sec. 4.4."""
    scale, shift = check_finite(scale, "scale"), check_finite(shift, "shift")
    return weights.mapped(lambda alpha: np.clip(scale * alpha + shift, 0, 1))


def reweight_without(
    weights: Any,
    log_lik: Any,
    *,
    k: float = 0.95,
    risk: str = "size",
    frozen_draws: bool = False,
) -> WeightsWithout:
    """One re-weighting step at fixed k, with and without each record [V25] eq. 2.1 and alg. 1.

    Parameters
    ----------
    weights : WeightsWithout or CountWithout
        Of the fit that the step starts from.
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood at draws of the posterior weighted by `weights`, in nats; finite
        where a weight is above 0.
    k : float, default 0.95
        In (0, 1].
    risk : {"size", "range", "deviation"}
        What is leveled.
    frozen_draws : bool
        As in `lipschitz_without`.
    """
    base = weights.general()
    weigh = reweight_map(check_fraction(k, "k"))
    return _mapped_without(log_lik, risk, frozen_draws, weigh, before=base, of=base)


def reweight_map(k: float) -> Weigh:
    """clip(k alpha D / D_i, 0, 1) of records of finite bound."""
    return lambda alpha, risks: reweight(alpha, scaled_maxima(risks, alpha), k=k)


def _mapped_without(
    log_lik: Any,
    risk: str,
    frozen: bool,
    weigh: Weigh,
    *,
    before: WeightsWithout | None = None,
    of: WeightsWithout | None = None,
) -> WeightsWithout:
    """Weights by a map of risks at draws of the posterior weighted by `of`, 1 if omitted."""
    check_choice(risk, "risk", RISKS)
    if not isinstance(log_lik, LogLik) and np.ndim(log_lik) == 1:
        raise InvalidInput(
            "log_lik must be the matrix (S, n) at the draws that risks were read from: found a "
            "vector; risks alone do not tell how they move when a record leaves"
        )
    lazy = log_lik if isinstance(log_lik, LogLik) else LogLik.of(check_log_lik(log_lik))
    weights = constant_weights(np.ones(lazy.n)) if of is None else of
    _check_records(lazy.n, weights)
    draws = RiskDraws(log_lik=lazy, risk=risk, weights=weights, frozen=frozen)
    return risk_weights_without(draws, risk_of(lazy, risk), weigh, before)


def _check_records(n: int, weights: Any) -> None:
    if n != weights.alpha.size:
        raise InvalidInput(
            f"log_lik must have {weights.alpha.size} records, as the weights: found {n}"
        )


def recomputed_terms(log_lik: Any, weights: Any) -> FloatArray:
    """T_i at each draw, shape (S, n), nats, from a log-likelihood and weights with and without.

    Confidential. Goes to `loss_ranges`, `gaussian_mu`, `gaussian_limit` and `leave_one_out_loss`
    without weights.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood in nats at draws from the posterior weighted by `weights.alpha`.
    weights : WeightsWithout or CountWithout
        From `lipschitz_without`, `count_without`, `scalar_without` and what follows them.

    Examples
    --------
    >>> reference = [[-1.5, -2.0, -4.0], [-1.0, -2.0, -3.5]]
    >>> log_lik = [[-1.0, -2.0, -4.0], [-1.5, -2.0, -3.0]]
    >>> recomputed_terms(log_lik, lipschitz_without(reference, frozen_draws=True)).round(2)
    array([[-0.6, -1.6, -1.6],
           [-1.1, -1.6, -1.6]])
    """
    matrix = check_log_lik(log_lik).astype(np.float64, copy=False)
    _check_records(matrix.shape[1], weights)
    return np.asarray(weights.terms(matrix))


def moved_terms(log_lik: LogLik, weights: WeightsWithout, records: IntArray) -> FloatArray:
    """T of some records, shape (S, k), of a log-likelihood in blocks."""
    width = max(1, _ELEMENTS // weights.alpha.size)
    parts = [
        log_lik.totals(weights.changes(records[start : start + width]))
        for start in range(0, records.size, width)
    ]
    return np.concatenate(parts, axis=1) if parts else np.zeros((0, 0))
