"""Weights computed on the data: what is charged against the exact posteriors of conjugate models.

Every mechanism is a map from a database to weights, computed anew without a record, so that the
posteriors with and without it are known and with them the exact epsilon at delta 1e-6. Charged is
what a release charges: from draws of one posterior, and below 2,000 records from fits without the
two records that most is told about, too. Draws are quantiles, so that nothing here is chance but
their order; weights by budget are read from random draws, too, at the same levels of the posterior
with and without a record: by convexity, what holds at each set of levels holds over all of them.
As in a release, each round reads draws of its own, and the charge others.
`frozen` is the control: the same charge as if risks stayed when a record leaves.

    python -m benchmarks weights
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import gamma, norm

import pyhybrid as ph
from pyhybrid.privacy.leave_one_out import Refit, Refits, most_told, refit_loss, with_refits
from pyhybrid.privacy.local_account import LocalAccount, local_account
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weight_sensitivity import (
    RiskDraws,
    WeightsWithout,
    budget_maps,
    budget_without,
    lipschitz_without,
    reweight_without,
    risk_weights_without,
    scalar_without,
    truncate_without,
)
from pyhybrid.privacy.weights import BUDGET_ROUNDS, budget_mu, budget_power, risk_of

DELTA = 1e-6
_MU = ph.arrays.mu_of_epsilon(1, DELTA)
_SIZES = (20, 50, 200, 1000, 5000, 20_000)
_BY_CHANCE = (50, 200, 1000, 5000)
_DRAWS, _CHAINS, _REFITTED_BELOW, _REFITS = 2000, 4, 2000, 2
_BY_DEFAULT = 4000  # draws of a fit


@dataclass(frozen=True, kw_only=True)
class Conjugate:
    """A model whose weighted posterior is known.

    Attributes
    ----------
    records : ndarray, shape (n, ...)
        One row a record, or a person.
    posterior : callable
        From records and weights to a distribution.
    term : callable
        From parameters (S, 1) and records to log-likelihoods (S, n).
    levels : ndarray, shape (S,)
        Probabilities of the draws.
    chance : int, optional
        Number of the stream of random draws that each round of weights by budget takes for itself;
        the first `levels` if omitted.
    outcomes : str
        Which of those of weights by budget the records are.
    """

    records: np.ndarray
    posterior: Callable[[np.ndarray, np.ndarray], Any]
    term: Callable[[np.ndarray, np.ndarray], np.ndarray]
    levels: np.ndarray
    chance: int | None = None
    outcomes: str = "counts"

    def draws(self, records: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Of the parameter, (S, 1), from the posterior of `records` under `alpha`."""
        return np.asarray(self.posterior(records, alpha).ppf(self.levels))[:, None]

    def log_lik(self, records: np.ndarray, alpha: np.ndarray) -> LogLik:
        """Of all the model's records, at draws of the posterior of `records` under `alpha`."""
        theta = self.draws(records, alpha)
        rows, row_of = np.unique(self.records, axis=0, return_inverse=True)
        matrix = self.term(theta, rows)
        return LogLik(make=lambda: (matrix,), row_of=row_of.reshape(-1))

    def unweighted(self, kept: np.ndarray) -> LogLik:
        """At draws of the unweighted posterior of the records kept."""
        return self.log_lik(self.records[kept], np.ones(kept.size))

    def rounds(self) -> list[Conjugate]:
        """The model with the draws of each round of weights by budget."""
        sizes = [round(share * self.levels.size) for share in BUDGET_ROUNDS]
        if self.chance is None:
            return [replace(self, levels=self.levels[:size]) for size in sizes]
        rng = np.random.default_rng([self.chance, 1])
        return [replace(self, levels=rng.uniform(size=size)) for size in sizes]


def models(n: int, chance: int | None = None) -> dict[str, Conjugate]:
    """Heavy counts with one of its own, counts far from 0, persons of several rows, money; of
    random draws if `chance` is the number of their stream."""
    rng = np.random.default_rng(1)
    levels = np.random.default_rng(1).permutation((np.arange(_DRAWS) + 0.5) / _DRAWS)
    if chance is not None:
        levels = np.random.default_rng(chance).uniform(size=_BY_DEFAULT)
    heavy = rng.negative_binomial(1, 1 / 11, n).astype(float)
    heavy[:2] = heavy.max() + 5, 0
    far = rng.poisson(100, n).astype(float)
    rows = 1 + rng.poisson(1.5, n)
    persons = np.column_stack([rng.poisson(3 * rows), rows]).astype(float)
    money = rng.normal(0, 1, n).round(2)
    money[0] = 4.0
    count: dict[str, Any] = {
        "levels": levels,
        "chance": chance,
        "posterior": lambda y, alpha: gamma(1 + alpha @ y[:, 0], scale=1 / (0.1 + alpha @ y[:, 1])),
        "term": lambda t, y: y[:, 0] * np.log(t) - y[:, 1] * t - _factorials(y[:, 0]),
    }
    return {
        "heavy counts": Conjugate(records=np.column_stack([heavy, np.ones(n)]), **count),
        "Poisson(100)": Conjugate(records=np.column_stack([far, np.ones(n)]), **count),
        "persons": Conjugate(records=persons, **count),
        "normal": Conjugate(
            records=money[:, None],
            levels=levels,
            chance=chance,
            outcomes="amounts",
            posterior=lambda x, alpha: norm(
                alpha @ x[:, 0] / (0.01 + alpha.sum()), (0.01 + alpha.sum()) ** -0.5
            ),
            term=lambda t, x: norm.logpdf(x[:, 0], t),
        ),
    }


def _factorials(y: np.ndarray) -> np.ndarray:
    from scipy.special import gammaln

    return np.asarray(gammaln(y + 1))


Weights = Callable[[Conjugate, np.ndarray], np.ndarray]
"""From a model and the records kept to the weights of those."""


def _risks(model: Conjugate, kept: np.ndarray, log_lik: LogLik, risk: str = "size") -> np.ndarray:
    return risk_of(log_lik, risk)[kept]


def _lipschitz(model: Conjugate, kept: np.ndarray, risk: str = "size", **how: Any) -> np.ndarray:
    risks = _risks(model, kept, model.unweighted(kept), risk)
    return ph.arrays.weights_from_lipschitz(risks, **how)


def _scalar(model: Conjugate, kept: np.ndarray, target: float) -> np.ndarray:
    top = float(_risks(model, kept, model.unweighted(kept)).max())
    return ph.scalar_weights(kept.size, target_bound=target, unweighted_bound=top)


def _truncated(model: Conjugate, kept: np.ndarray, cap: float, **how: Any) -> np.ndarray:
    risks = _risks(model, kept, model.unweighted(kept))
    return ph.truncate_weights(_lipschitz(model, kept, **how), risks, cap=cap)


def _reweighted(model: Conjugate, kept: np.ndarray, **how: Any) -> np.ndarray:
    alpha = _lipschitz(model, kept, **how)
    risks = _risks(model, kept, model.log_lik(model.records[kept], alpha))
    return ph.reweight(alpha, alpha * risks, k=0.95)


def _budget(model: Conjugate, kept: np.ndarray) -> np.ndarray:
    outcomes = model.outcomes
    mu = budget_mu(_MU, n=kept.size, n_parameters=1, outcomes=outcomes)
    leverage = ph.arrays.budget_leverage(np.empty((kept.size, 0)), mu=mu)
    alpha = budget_power(leverage, mu=mu)
    for part in model.rounds():
        log_lik = part.log_lik(model.records[kept], alpha)
        risks = risk_of(log_lik, "depth")[kept]
        alpha = ph.arrays.budget_weights(risks, mu=mu, leverage=leverage, outcomes=outcomes)
    return alpha


def _budget_without(model: Conjugate, frozen: bool) -> WeightsWithout:
    none = np.empty((len(model.records), 0))
    how: Any = {"mu": _MU, "n_parameters": 1, "outcomes": model.outcomes}
    leverage, weights = budget_without(none, **how)
    here, there = budget_maps(n=len(none), **how)
    for part in model.rounds():
        log_lik = part.log_lik(model.records, weights.alpha)
        points = part.draws(model.records, weights.alpha)
        draws = RiskDraws(
            log_lik=log_lik, risk="depth", weights=weights, frozen=frozen, points=points
        )
        risks = risk_of(log_lik, "depth")
        weights = risk_weights_without(draws, risks, here, leverage, one_less=there)
    return weights


def _without(name: str, model: Conjugate, frozen: bool, how: Mapping[str, Any]) -> WeightsWithout:
    if name == "budget":
        return _budget_without(model, frozen)
    everyone = np.arange(len(model.records))
    reference = model.unweighted(everyone)
    if name == "scalar":
        return scalar_without(reference, target_bound=how["target"], frozen_draws=frozen)
    if name == "truncated":
        base = lipschitz_without(
            reference, frozen_draws=frozen, **{k: v for k, v in how.items() if k != "cap"}
        )
        return truncate_without(base, reference, cap=how["cap"], frozen_draws=frozen)
    base = lipschitz_without(reference, frozen_draws=frozen, **how)
    if name == "lipschitz":
        return base
    weighted = model.log_lik(model.records, base.alpha)
    return reweight_without(base, weighted, k=0.95, frozen_draws=frozen)


MAPS: dict[str, Weights] = {
    "lipschitz": _lipschitz, "scalar": _scalar, "truncated": _truncated, "re-weighted": _reweighted,
    "budget": _budget,
}  # fmt: skip
_TRANSFORMS = ("linear", "reciprocal", "logistic", "softmax")


def mechanisms() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name of a map and its settings."""
    for risk in ("size", "range", "deviation"):
        for transform in _TRANSFORMS:
            yield "lipschitz", {"risk": risk, "transform": transform}
    for transform in _TRANSFORMS:
        yield "re-weighted", {"transform": transform}
    yield "budget", {}
    yield "scalar", {"target": 2.0}
    yield "truncated", {"cap": 3.0, "transform": "reciprocal"}


def row(
    model: Conjugate, name: str, how: dict[str, Any], points: int = 10_000, control: bool = True
) -> dict[str, Any]:
    """Exact epsilon, the largest over the records that most is told about, and what is charged for
    it; as `frozen` the charge of the control."""
    weigh, everyone = partial(MAPS[name], **how), np.arange(len(model.records))
    without = _without(name, model, False, how)
    account = charged(model, without)
    if account is None:
        return {}
    alpha = weigh(model, everyone)
    np.testing.assert_allclose(without.alpha, alpha, rtol=1e-9, atol=1e-12)
    own = model.posterior(model.records, alpha)
    exact = 0.0
    for place in _looked_at(model, account):
        kept = np.delete(everyone, place)
        other = model.posterior(model.records[kept], weigh(model, kept))
        exact = max(exact, exact_epsilon(own, other, DELTA, points))
    found = {"exact": exact, "charged": epsilon_of(account)}
    if control:
        held = charged(model, _without(name, model, True, how))
        assert held is not None
        found["frozen"] = epsilon_of(held)
    return found


def charged(model: Conjugate, without: WeightsWithout) -> LocalAccount | None:
    """The account of one draw, with refits where they are made by default."""
    if not without.alpha.any():
        return None
    log_lik = model.log_lik(model.records, without.alpha)
    n_draws = model.levels.size
    account = local_account(
        log_lik, without.alpha, n_draws=n_draws, chains=_CHAINS, without=without
    )
    if len(model.records) >= _REFITTED_BELOW:
        return account
    refits = [
        _refit(model, without, log_lik, account, place)
        for place in most_told(account, _REFITS, without.leverage)
    ]
    return with_refits(account, Refits(each=tuple(refits)))


def _refit(
    model: Conjugate, without: WeightsWithout, log_lik: LogLik, account: LocalAccount, place: int
) -> Refit:
    kept = np.delete(np.arange(len(model.records)), place)

    def at(weights: np.ndarray) -> LogLik:
        return model.log_lik(model.records[kept], weights[kept])

    alpha = without.refitted(place, at)
    change = without.alpha - alpha
    change[place] = without.alpha[place]
    loss = refit_loss(log_lik.total(change), at(alpha).total(change), chains=_CHAINS)
    return Refit(
        record=place,
        mu=float(account.mu_by_record[place]),
        loss_range=float(account.loss_ranges[place]),
        loss=loss,
        chains=_CHAINS,
        converged=True,
    )


def _looked_at(model: Conjugate, account: LocalAccount) -> list[int]:
    """The four that most is told about, and the largest and smallest record."""
    ends = (np.argmax(model.records[:, 0]), np.argmin(model.records[:, 0]))
    return sorted({*most_told(account, 4), *map(int, ends)})


def epsilon_of(account: LocalAccount, otherwise: float = np.inf) -> float:
    """Of one draw, record by record, at delta 1e-6."""
    of_limit = account.largest_of_limit
    failing = account.loss_to(DELTA, otherwise=otherwise) if account.failing.size else 0.0
    return float(max(ph.epsilon_of_mu(of_limit, DELTA) if of_limit else 0.0, failing))


def table(sizes: tuple[int, ...] = _SIZES) -> pd.DataFrame:
    """All lines, with the charge over the exact number."""
    return _with_ratio(
        {"n": n, "model": label, "mechanism": name, **how, **found}
        for n in sizes
        for label, model in models(n).items()
        for name, how in mechanisms()
        if (found := row(model, name, how))
    )


def by_chance(sizes: tuple[int, ...] = _BY_CHANCE, streams: int = 10) -> pd.DataFrame:
    """Weights by budget that were read from random draws."""
    return _with_ratio(
        {"n": n, "model": label, "stream": stream, **row(model, "budget", {})}
        for n in sizes
        for stream in range(streams)
        for label, model in models(n, stream).items()
    )


def _with_ratio(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows))
    return frame.assign(ratio=frame["charged"] / frame["exact"])


def run() -> None:
    """Print both tables, and the lines below the truth."""
    for found in (table(), by_chance()):
        _print(found)


def _print(found: pd.DataFrame) -> None:
    print(found.to_string(index=False, float_format="{:.4g}".format))
    print(f"{len(found)} lines, {int((found['ratio'] < 1).sum())} below the exact number; "
          f"control: {int((found['frozen'] < found['exact']).sum())}")  # fmt: skip


def exact_epsilon(own: Any, other: Any, delta: float = DELTA, n_points: int = 400_000) -> float:
    """Epsilon at delta between two distributions with densities, the larger of both directions."""

    def one_way(p: Any, q: Any) -> float:
        levels = (np.arange(n_points) + 0.5) / n_points
        # Equal masses of p, and the tails of it in more detail.
        deep = np.geomspace(1e-16, 0.5 / n_points, 20_000)
        edges = np.unique(np.concatenate([[0.0], deep, levels]))
        edges = np.concatenate([p.ppf(edges), p.isf(edges[::-1])])
        points = np.unique(edges[np.isfinite(edges)])
        middle = (points[1:] + points[:-1]) / 2
        mass, loss = np.diff(p.cdf(points)), p.logpdf(middle) - q.logpdf(middle)
        upper = middle > p.median()
        mass[upper] = -np.diff(p.sf(points))[upper]

        def delta_at(epsilon: float) -> float:
            return float((mass * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())

        return 0.0 if delta_at(0.0) <= delta else float(
            brentq(lambda e: delta_at(e) - delta, 0.0, float(loss.max()))
        )  # fmt: skip

    return max(one_way(own, other), one_way(other, own))
